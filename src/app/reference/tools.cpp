// Tools that answer, take their time, and talk while they run.
#include "app/reference/parts.hpp"
#include "json/serialize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace belay::app::reference {

namespace {

std::chrono::nanoseconds milliseconds_of(double count)
{
    return std::chrono::nanoseconds(static_cast<std::int64_t>(count * 1e6));
}

std::string number(double value)
{
    std::string text;
    json_text::append_json_number(text, value);
    return text;
}

struct echo_args {
    std::string message;
    static constexpr field docs[] = {field("message").describe("Text to send back")};
};
BOOST_DESCRIBE_STRUCT(echo_args, (), (message))

std::string echo(echo_args args)
{
    return "Echo: " + args.message;
}

struct add_args {
    double a = 0;
    double b = 0;
    static constexpr field docs[] = {field("a").describe("First number"), field("b").describe("Second number")};
};
BOOST_DESCRIBE_STRUCT(add_args, (), (a, b))

std::string add(add_args args)
{
    auto const sum = args.a + args.b;
    if (!std::isfinite(sum))
        throw tool_error("The sum is larger than a number can be.");
    return fmt::format("The sum of {} and {} is {}.", number(args.a), number(args.b), number(sum));
}

struct operation_args {
    double duration = 10;
    double steps = 5;
    static constexpr field docs[] = {
        field("duration").describe("How long it takes, in seconds").range(0, 86400).defaulted(),
        field("steps").describe("In how many steps").range(1, 100000).defaulted(),
    };
};
BOOST_DESCRIBE_STRUCT(operation_args, (), (duration, steps))

task<std::string> long_running_operation(call& call, operation_args args)
{
    auto const steps = static_cast<int>(args.steps);
    auto progress = call.progress(steps);
    for (int step = 1; step <= steps; ++step) {
        co_await call.sleep(milliseconds_of(args.duration * 1000 / steps));
        co_await progress.step();
    }
    co_return fmt::format(
        "Long running operation completed. Duration: {} seconds, Steps: {}.", number(args.duration), steps);
}

struct notifications_args {
    double durationSeconds = 60;
    double intervalMs = 1000;
    std::string messagePrefix = "Test notification";
    static constexpr field docs[] = {
        field("durationSeconds").describe("How long to send notifications, in seconds").range(0, 86400).defaulted(),
        field("intervalMs").describe("Time between two notifications, in milliseconds").range(1, 3600000).defaulted(),
        field("messagePrefix").describe("What each notification begins with").defaulted(),
    };
};
BOOST_DESCRIBE_STRUCT(notifications_args, (), (durationSeconds, intervalMs, messagePrefix))

task<std::string> utility_notifications(call& call, notifications_args args)
{
    std::string const logger = "utility-notifications";
    auto const& prefix = args.messagePrefix;
    auto const count = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::floor(args.durationSeconds * 1000 / args.intervalMs)));
    auto text = fmt::format("{}: starting, {} messages every {} ms", prefix, count, number(args.intervalMs));
    co_await call.log(log_level::info, logger, std::move(text));
    auto progress = call.progress(static_cast<double>(count));
    for (std::int64_t i = 1; i <= count; ++i) {
        co_await call.sleep(milliseconds_of(args.intervalMs));
        double const elapsed = static_cast<double>(i) * args.intervalMs / 1000;
        text = fmt::format(
            "{} {}/{} ({:.1f}s elapsed, {:.1f}s remaining)", prefix, i, count, elapsed,
            std::max(0.0, args.durationSeconds - elapsed));
        co_await call.log(log_level::info, logger, std::move(text));
        co_await progress.step();
    }
    text = fmt::format("{}: complete, {} messages sent", prefix, count);
    co_await call.log(log_level::info, logger, std::move(text));
    std::string result = fmt::format(
        R"({{"success":true,"notificationsSent":{},"durationSeconds":{},"configuration":{{"durationSeconds":{},"intervalMs":{},"messagePrefix":)",
        count + 2, number(args.durationSeconds), number(args.durationSeconds), number(args.intervalMs));
    json_text::append_json_string(result, prefix);
    result += "}}";
    co_return result;
}

struct burst_args {
    std::int64_t count = 0;
    std::int64_t bytes = 100;
    static constexpr field docs[] = {
        field("count").describe("How many messages").range(0, 10000000),
        field("bytes").describe("Length of each message's data").range(1, 1048576).defaulted(),
    };
};
BOOST_DESCRIBE_STRUCT(burst_args, (), (count, bytes))

task<std::string> burst(call& call, burst_args args)
{
    for (std::int64_t i = 1; i <= args.count; ++i) {
        auto data = fmt::format("burst {}/{} ", i, args.count);
        data.resize(std::max(data.size(), static_cast<std::size_t>(args.bytes)), '.');
        co_await call.log(log_level::info, "burst", std::move(data));
    }
    co_return fmt::format("{} messages sent", args.count);
}

}

void add_tools(server& server)
{
    server.tool("echo", echo).describe("Sends a text back").read_only();
    server.tool("add", add).describe("Adds two numbers").read_only();
    server.tool("longRunningOperation", long_running_operation)
        .describe("Takes its time, and reports progress")
        .read_only();
    server.tool("utility-notifications", utility_notifications)
        .describe("Sends a notification at every interval for a while")
        .read_only();
    server.tool("burst", burst).describe("Sends many messages as fast as the caller reads them").read_only();
}

}
