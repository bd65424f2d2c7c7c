#include "protocol/message.hpp"

#include "json/serialize.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <string_view>

namespace belay::protocol {

TEST(Message, NotificationsMayHaveNoParams)
{
    EXPECT_EQ(notification("a/b", ""), R"({"jsonrpc":"2.0","method":"a/b"})");
    EXPECT_EQ(notification("a/b", "{}"), R"({"jsonrpc":"2.0","method":"a/b","params":{}})");
    EXPECT_EQ(request("x-1", "a/b", ""), R"({"jsonrpc":"2.0","id":"x-1","method":"a/b"})");
}

TEST(Message, GivesAnAnswerAnotherId)
{
    EXPECT_EQ(answer_for(result_response("1", "{}"), R"("b,\"c")"), result_response(R"("b,\"c")", "{}"));
    EXPECT_EQ(answer_for(result_response(R"("a\",}")", R"({"x":1})"), "-7"), result_response("-7", R"({"x":1})"));
    rpc_error const error{code::cancelled, "gone", {}};
    EXPECT_EQ(answer_for(error_response("12", error), "13"), error_response("13", error));
}

TEST(Message, GivesProgressAnotherToken)
{
    auto const progress = [](std::string_view token) {
        return notification(
            "notifications/progress", R"({"progressToken":)" + std::string(token) + R"(,"progress":1})");
    };
    EXPECT_EQ(progress_for(progress("1"), R"("t")"), progress(R"("t")"));
    EXPECT_EQ(progress_for(progress(R"("t")"), "0"), progress("0"));
    EXPECT_EQ(progress_for(progress("1"), ""), "");
    auto const other = notification("notifications/message", R"({"progressToken":1})");
    EXPECT_EQ(progress_for(other, "2"), other);
    EXPECT_EQ(progress_for(other, ""), other);
}

namespace {

std::string name_of(message_kind kind)
{
    switch (kind) {
    case message_kind::request: return "request";
    case message_kind::notification: return "notification";
    case message_kind::response: return "response";
    }
    return "?";
}

/// What becomes of the bytes, as text: "request 1 ping", or the code and message of the refusal.
std::string read(std::string_view bytes, message_limits const& limits = {})
{
    auto const value = parse_json(bytes, {}, limits);
    if (!value)
        return std::to_string(value.error().code) + ' ' + value.error().message;
    auto const message = read_message(*value, limits);
    if (!message)
        return std::to_string(message.error().code) + ' ' + message.error().message;
    std::string text = name_of(message->kind);
    if (!message->id.empty())
        text += ' ' + message->id;
    if (!message->method.empty())
        text += ' ' + std::string(message->method);
    if (message->params)
        text += " with params";
    return text;
}

std::string request_with_id(std::string_view id)
{
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"m"})";
}

// --- what is read

struct reading {
    char const* bytes;
    char const* outcome;
};

TEST(Message, IsReadByItsMembers)
{
    for (auto const& [bytes, outcome] : {
             reading{R"({"jsonrpc":"2.0","id":1,"method":"ping"})", "request 1 ping"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{}})", "request 1 ping with params"},
             reading{R"({"method":"ping","id":"a","jsonrpc":"2.0"})", "request \"a\" ping"},
             reading{
                 R"({"jsonrpc":"2.0","method":"notifications/initialized"})", "notification notifications/initialized"},
             reading{R"({"jsonrpc":"2.0","id":1,"result":{}})", "response 1"},
             reading{R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}})", "response 1"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":"ping","extra":[1,2]})", "request 1 ping"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":""})", "request 1"},
             reading{" {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n", "request 1 ping"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":"p\u0069ng"})", "request 1 ping"},
         })
        EXPECT_EQ(read(bytes), outcome) << bytes;
}

TEST(Message, GivesItsParams)
{
    auto const value = parse_json(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":5}})", {});
    auto const message = read_message(*value);
    ASSERT_TRUE(message && message->params);
    EXPECT_EQ(message->params->at("a"), 5);
}

// --- numbers

TEST(Message, PassesEveryNumberOnAsItWas)
{
    std::mt19937_64 random(13);
    for (int round = 0; round < 20'000; ++round) {
        auto const value = std::bit_cast<double>(random());
        if (!std::isfinite(value))
            continue;
        std::string text;
        json_text::append_json_number(text, value);
        auto const read = parse_json(text, {});
        ASSERT_TRUE(read);
        ASSERT_EQ(json_text::to_json(*read), text);
    }
}

TEST(Message, IsRefusedForANumberThatWouldChange)
{
    for (std::string_view const number : {"1e400", "-1e400", "1e-400", "18446744073709551617", "1e99999999999"})
        EXPECT_EQ(
            read(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":)" + std::string(number) + "}}"),
            "-32700 Parse error: A number cannot be kept as it is: integers have 64 bits, others are doubles")
            << number;
}

// --- ids

TEST(MessageId, KeepsItsValueAndType)
{
    for (std::string_view const id :
         {"0", "1", "-1", "42", "9223372036854775807", "9223372036854775808", "18446744073709551615",
          "-9223372036854775808", R"("")", R"("1")", R"("0")", R"("abc")", R"("null")", R"("é")", R"("a\"b\\c\n")",
          R"("\u0000")", R"(" ")"})
        EXPECT_EQ(read(request_with_id(id)), "request " + std::string(id) + " m");
}

TEST(MessageId, IsRefusedWhereItIsNeitherAnIntegerNorAString)
{
    for (std::string_view const id :
         {"null", "true", "false", "1.5", "1.0", "1e3", "-0", "18446744073709552000", "[]", "[1]", "{}"})
        EXPECT_EQ(
            read(request_with_id(id)),
            "-32700 Parse error: Invalid JSON-RPC message: id must be an integer or a string of at most 256 bytes")
            << id;
}

TEST(MessageId, IsRefusedWhereItIsTooLong)
{
    EXPECT_TRUE(read(request_with_id('"' + std::string(256, 'x') + '"')).starts_with("request"));
    EXPECT_EQ(
        read(request_with_id('"' + std::string(257, 'x') + '"')),
        "-32600 Invalid Request: id must be an integer or a string of at most 256 bytes");
    EXPECT_TRUE(read(request_with_id("\"abcd\""), {64, 4}).starts_with("request"));
    EXPECT_TRUE(read(request_with_id("\"abcde\""), {64, 4}).starts_with("-32600"));
}

TEST(MessageId, IsGivenAsTextForTokensToo)
{
    EXPECT_EQ(id_text(json::value("t")), "\"t\"");
    EXPECT_EQ(id_text(json::value(7)), "7");
    EXPECT_EQ(id_text(json::value(-7)), "-7");
    EXPECT_EQ(id_text(json::value(7.5)), "");
    EXPECT_EQ(id_text(json::value(nullptr)), "");
    EXPECT_EQ(id_text(json::value(true)), "");
    EXPECT_EQ(id_text(json::array{1}), "");
    EXPECT_EQ(id_text(json::object{}), "");
}

// --- refusals

TEST(Message, IsRefusedWhereItIsNotJson)
{
    for (std::string_view const bytes :
         {"",
          " ",
          "{",
          "}",
          "{]",
          "nul",
          "tru",
          "01",
          "+1",
          ".5",
          "1.",
          "'a'",
          "\"a",
          "\"\\x\"",
          "\"\n\"",
          "{\"a\"}",
          "{\"a\":1,}",
          "[1,]",
          "{} {}",
          "{}x",
          "{a:1}",
          "NaN",
          "\xEF\xBB\xBF{}",
          "// c\n{}",
          "\"\\ud800\"",
          "\xFF"})
        EXPECT_EQ(read(bytes), "-32700 Parse error: Invalid JSON") << bytes;
}

TEST(Message, IsRefusedWhereItIsNotUtf8)
{
    for (std::string_view const text : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xC3", "\xF5\x80\x80\x80", "a\x80"})
        EXPECT_EQ(
            read(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(text) + "\"}"),
            "-32700 Parse error: Invalid JSON");
}

TEST(Message, IsRefusedWhereAZeroByteFollows)
{
    EXPECT_EQ(read(std::string_view("{}\0", 3)), "-32700 Parse error: Invalid JSON");
}

TEST(Message, IsRefusedWhereItIsNestedTooDeeply)
{
    auto const nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    EXPECT_EQ(read(nested(65)), "-32700 Parse error: JSON is nested too deeply");
    EXPECT_EQ(read(nested(100'000)), "-32700 Parse error: JSON is nested too deeply");
    EXPECT_TRUE(read(nested(64)).ends_with("expected an object"));
    EXPECT_EQ(read("[[]]", {1, 256}), "-32700 Parse error: JSON is nested too deeply");
}

TEST(Message, IsRefusedWithTheReason)
{
    for (auto const& [bytes, reason] : {
             reading{"null", "expected an object"},
             reading{"1", "expected an object"},
             reading{R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", "expected an object"},
             reading{"\"ping\"", "expected an object"},
             reading{"{}", "jsonrpc must be \"2.0\""},
             reading{R"({"jsonrpc":"1.0","id":1,"method":"ping"})", "jsonrpc must be \"2.0\""},
             reading{R"({"jsonrpc":2.0,"id":1,"method":"ping"})", "jsonrpc must be \"2.0\""},
             reading{R"({"jsonrpc":"2.00","id":1,"method":"ping"})", "jsonrpc must be \"2.0\""},
             reading{R"({"JSONRPC":"2.0","id":1,"method":"ping"})", "jsonrpc must be \"2.0\""},
             reading{R"({"jsonrpc":"2.0"})", "a message has a method, or an id and either a result or an error"},
             reading{R"({"jsonrpc":"2.0","id":1})", "a message has a method, or an id and either a result or an error"},
             reading{
                 R"({"jsonrpc":"2.0","result":{}})",
                 "a message has a method, or an id and either a result or an error"},
             reading{
                 R"({"jsonrpc":"2.0","id":1,"result":{},"error":{}})",
                 "a message has a method, or an id and either a result or an error"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":1})", "method must be a string"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":null})", "method must be a string"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":"m","params":[]})", "params must be an object"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":"m","params":null})", "params must be an object"},
             reading{R"({"jsonrpc":"2.0","id":1,"method":"m","params":"x"})", "params must be an object"},
             reading{R"({"jsonrpc":"2.0","method":"m","params":1})", "params must be an object"},
         })
        EXPECT_EQ(read(bytes), std::string("-32700 Parse error: Invalid JSON-RPC message: ") + reason) << bytes;
}

TEST(Message, QuotesNothingOfTheCallerInARefusal)
{
    auto const refusal = read(R"({"jsonrpc":"<script>","id":1,"method":"ping"})");
    EXPECT_EQ(refusal.find("script"), std::string::npos);
}

// --- what is written

TEST(Response, CarriesTheIdAsItWas)
{
    EXPECT_EQ(result_response("\"1\"", "{}"), R"({"jsonrpc":"2.0","id":"1","result":{}})");
    EXPECT_EQ(result_response("1", R"({"a":1})"), R"({"jsonrpc":"2.0","id":1,"result":{"a":1}})");
}

TEST(Response, CarriesAnError)
{
    EXPECT_EQ(
        error_response("null", {code::parse_error, "say \"what\"", {}}),
        R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"say \"what\""}})");
}

TEST(Response, CarriesTheDataOfAnError)
{
    EXPECT_EQ(
        error_response("0", {code::cancelled, "x", R"({"reason":"y"})"}),
        R"({"jsonrpc":"2.0","id":0,"error":{"code":-32800,"message":"x","data":{"reason":"y"}}})");
}

TEST(Notification, HasAMethodAndParams)
{
    EXPECT_EQ(notification("a/b", "{}"), R"({"jsonrpc":"2.0","method":"a/b","params":{}})");
    EXPECT_EQ(notification("a/b", {}), R"({"jsonrpc":"2.0","method":"a/b"})");
}

TEST(ObjectText, IsTheObjectOrAnEmptyOne)
{
    json::object const params{{"a", json::object{{"x", 1}}}, {"b", 2}, {"c", nullptr}};
    EXPECT_EQ(object_text(&params, "a"), R"({"x":1})");
    EXPECT_EQ(object_text(&params, "b"), "{}");
    EXPECT_EQ(object_text(&params, "c"), "{}");
    EXPECT_EQ(object_text(&params, "d"), "{}");
    EXPECT_EQ(object_text(nullptr, "a"), "{}");
}

}

}
