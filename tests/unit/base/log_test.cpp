#include "base/log.hpp"

#include "base/log_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace belay::base {

namespace {

TEST(LogLevel, IsReadByItsName)
{
    constexpr std::string_view names[]
        = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(to_string(static_cast<log_level>(i)), names[i]);
        EXPECT_EQ(parse_log_level(names[i]), static_cast<log_level>(i));
    }
    for (auto const text : {"", "Debug", "INFO", "warn", " info", "info ", "trace", "fatal", "off", "0"})
        EXPECT_EQ(parse_log_level(text), std::nullopt) << text;
}

TEST(LogThreshold, TakesItsLevelAndAbove)
{
    log_threshold const least = log_level::warning;
    EXPECT_FALSE(least.takes(log_level::notice));
    EXPECT_TRUE(least.takes(log_level::warning));
    EXPECT_TRUE(least.takes(log_level::emergency));
    EXPECT_EQ(least, log_threshold(log_level::warning));
}

TEST(LogThreshold, TakesNothingWhenItIsOff)
{
    EXPECT_FALSE(log_threshold::off().takes(log_level::emergency));
    EXPECT_NE(log_threshold::off(), log_threshold(log_level::emergency));
}

TEST(Logger, PassesOnItsLevelAndAbove)
{
    std::vector<std::pair<log_level, std::string>> got;
    logger const log(
        log_level::warning, [&](log_level level, std::string_view text) { got.emplace_back(level, text); });
    log.debug("d");
    log.info("i");
    log.warning("w {}", 1);
    log.error("e {}", "x");
    EXPECT_EQ(
        got, (std::vector<std::pair<log_level, std::string>>{{log_level::warning, "w 1"}, {log_level::error, "e x"}}));
}

TEST(Logger, SaysNothingWhenItIsOff)
{
    int count = 0;
    logger const log(log_threshold::off(), [&](log_level, std::string_view) { ++count; });
    log.error("e");
    log.log(log_level::emergency, "x");
    EXPECT_EQ(count, 0);
}

TEST(Logger, MayBeLeftEmpty)
{
    logger const log;
    EXPECT_FALSE(log.enabled(log_level::error));
    log.error("nobody hears it");
}

logger stderr_logger(log_threshold level, log_format format)
{
    return line_logger(
        std::make_shared<std::atomic<log_threshold>>(level), format, stderr_output(format, std::size_t(1) << 20));
}

std::string on_stderr(log_format format, log_level level, std::string_view text)
{
    testing::internal::CaptureStderr();
    stderr_logger(log_level::debug, format).log(level, "{}", text);
    return testing::internal::GetCapturedStderr();
}

TEST(StderrLogger, WritesTimeLevelAndText)
{
    auto const line = on_stderr(log_format::text, log_level::info, "session opened");
    EXPECT_TRUE(
        std::regex_match(line, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info    session opened\n)")))
        << line;
}

TEST(StderrLogger, WritesJson)
{
    auto const line = on_stderr(log_format::json, log_level::error, "it failed");
    EXPECT_TRUE(std::regex_match(
        line,
        std::regex(R"(\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","level":"error","message":"it failed"\}\n)")))
        << line;
}

TEST(StderrLogger, EscapesTextInJson)
{
    auto const line = on_stderr(log_format::json, log_level::info, "a\"b\\c\nd\x01");
    EXPECT_NE(line.find(R"("message":"a\"b\\c\u000ad\u0001")"), std::string::npos) << line;
}

TEST(StderrLogger, WritesOneLinePerMessage)
{
    // What a tool throws may hold anything; it must not look like another line of the log.
    auto const line = on_stderr(log_format::text, log_level::info, "first\nsecond\r\nthird");
    EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
    EXPECT_EQ(line.find('\r'), std::string::npos) << line;
}

TEST(StderrLogger, WritesFieldsBesideTheText)
{
    auto const written = [](log_format format) {
        testing::internal::CaptureStderr();
        stderr_logger(log_level::info, format)
            .with("node", "n1")
            .log_fields(
                log_level::info, "session opened",
                {{"session", "ab12"}, {"odd", "a \"b\"\nc"}, {"none", ""}, {"n", -5}});
        return testing::internal::GetCapturedStderr();
    };
    auto const text = written(log_format::text);
    EXPECT_TRUE(text.ends_with("session opened node=n1 session=ab12 odd=\"a \\\"b\\\"\\u000ac\" none=\"\" n=-5\n"))
        << text;
    auto const json = written(log_format::json);
    EXPECT_TRUE(json.ends_with(
        R"("message":"session opened","node":"n1","session":"ab12","odd":"a \"b\"\u000ac","none":"","n":-5})"
        "\n"))
        << json;
}

TEST(Logger, TellsAPlainFunctionItsFieldsInTheText)
{
    std::vector<std::string> got;
    logger const log(log_level::info, [&](log_level, std::string_view text) { got.emplace_back(text); });
    log.info("plain");
    log.with("node", "n1").info("more {}", 1);
    log.log_fields(log_level::info, "fields", {{"a", "b"}});
    log.log_fields(log_level::debug, "below", {{"a", "b"}});
    log.at(log_level::debug).debug("now");
    EXPECT_EQ(got, (std::vector<std::string>{"plain", "more 1 node=n1", "fields a=b", "now"}));
}

TEST(Logger, FollowsALevelThatChanges)
{
    std::vector<std::string> got;
    auto const level = std::make_shared<std::atomic<log_threshold>>(log_level::warning);
    logger const log(level, [&](log_level, std::string_view text, auto) { got.emplace_back(text); });
    auto const more = log.with("node", "n1");
    auto const always = log.at(log_level::info);
    more.info("1");
    always.info("2");
    level->store(log_level::info);
    more.info("3");
    level->store(log_threshold::off());
    more.error("4");
    always.info("5");
    EXPECT_EQ(got, (std::vector<std::string>{"2", "3", "5"}));
}

TEST(StderrLogger, KeepsTheLinesOfSeveralThreadsWhole)
{
    testing::internal::CaptureStderr();
    {
        auto const log
            = stderr_logger(log_level::info, log_format::text); // written when it is destroyed, at the latest
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&log, i] {
                for (int n = 0; n < 100; ++n)
                    log.info("{}", std::string(200, static_cast<char>('a' + i)));
            });
        for (auto& each : threads)
            each.join();
    }
    auto const text = testing::internal::GetCapturedStderr();
    int lines = 0;
    for (std::size_t at = 0; at < text.size(); ++lines) {
        auto const end = text.find('\n', at);
        ASSERT_NE(end, std::string::npos);
        auto const line = text.substr(at, end - at);
        ASSERT_GE(line.size(), 200u);
        auto const body = line.substr(line.size() - 200);
        ASSERT_EQ(body, std::string(200, body[0]));
        at = end + 1;
    }
    EXPECT_EQ(lines, 400);
}

}

}
