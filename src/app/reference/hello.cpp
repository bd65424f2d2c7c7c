// The server that is mounted without sessions.
#include "app/reference/reference.hpp"

#include <fmt/format.h>

#include <chrono>

namespace belay::app {

namespace {

struct greet_args {
    std::string name = "world";
    static constexpr field docs[] = {field("name").describe("Whom to greet").defaulted()};
};
BOOST_DESCRIBE_STRUCT(greet_args, (), (name))

std::string greet(greet_args args)
{
    return fmt::format("Hello, {}!", args.name);
}

struct countdown_args {
    std::int64_t from = 5;
    static constexpr field docs[] = {field("from").describe("Seconds to count").range(1, 600).defaulted()};
};
BOOST_DESCRIBE_STRUCT(countdown_args, (), (from))

task<std::string> countdown(call& call, countdown_args args)
{
    auto progress = call.progress(static_cast<double>(args.from));
    for (auto left = args.from; left > 0; --left) {
        co_await call.sleep(std::chrono::seconds(1));
        auto text = fmt::format("{} to go", left - 1);
        co_await progress.step(std::move(text));
    }
    co_return "Liftoff";
}

}

// [server]
server hello_server(std::string version)
{
    server hello("hello", std::move(version));
    hello.instructions("A server without sessions: every request stands alone.");
    hello.tool("greet", greet).describe("Says hello").read_only();
    hello.tool("countdown", countdown).describe("Counts seconds down, with progress").read_only();
    return hello;
}
// [/server]

}
