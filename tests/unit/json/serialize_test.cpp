#include "json/serialize.hpp"

#include <boost/json/parse.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

using namespace belay::json_text;
namespace json = boost::json;

namespace {

std::string in_quotes(std::string_view text)
{
    std::string out;
    append_json_string(out, text);
    return out;
}

template<class Number>
std::string number(Number value)
{
    std::string out;
    append_json_number(out, value);
    return out;
}

TEST(JsonString, IsAppendedToWhatIsThere)
{
    std::string out = "data: ";
    append_json_string(out, "x");
    EXPECT_EQ(out, "data: \"x\"");
}

TEST(JsonString, EscapesQuotesBackslashesAndControls)
{
    EXPECT_EQ(in_quotes(""), "\"\"");
    EXPECT_EQ(in_quotes("a\"b\\c"), R"("a\"b\\c")");
    EXPECT_EQ(in_quotes("\b\f\n\r\t"), R"("\b\f\n\r\t")");
    EXPECT_EQ(in_quotes(std::string_view("\0\x01\x1F", 3)), R"("\u0000\u0001\u001f")");
    EXPECT_EQ(in_quotes("/\x7F'<>&"), "\"/\x7F'<>&\"");
}

TEST(JsonString, EscapesEveryByteAtEveryPlaceAsBoostReadsIt)
{
    for (int c = 0; c < 0x80; ++c)
        for (std::size_t length = 1; length <= 20; ++length)
            for (std::size_t at = 0; at < length; ++at) {
                std::string text(length, 'x');
                text[at] = static_cast<char>(c);
                auto const written = in_quotes(text);
                ASSERT_EQ(std::string(json::parse(written).as_string()), text);
                bool const is_plain = c >= 0x20 && c != '"' && c != '\\';
                ASSERT_EQ(written.size() == length + 2, is_plain);
            }
}

TEST(JsonString, LeavesUtf8AsItIs)
{
    std::string const text = "Zürich 東京 \xF0\x9F\x98\x80 \xE2\x80\xA8 \xF4\x8F\xBF\xBF \xEF\xBF\xBF \xC2\x80";
    EXPECT_EQ(in_quotes(text), '"' + text + '"');
}

TEST(JsonString, ReplacesWhatIsNotUtf8)
{
    std::string const bad = "\xEF\xBF\xBD";
    auto const is = [&](std::string_view in, int count) {
        std::string expected = "\"a";
        for (int i = 0; i < count; ++i)
            expected += bad;
        EXPECT_EQ(in_quotes("a" + std::string(in) + "b"), expected + "b\"") << in;
    };
    is("\x80", 1);                 // a continuation without a lead
    is("\xFF", 1);
    is("\xC3", 1);                 // cut short
    is("\xE6\x9D", 2);
    is("\xF0\x9F\x98", 3);
    is("\xC0\xAF", 2);             // overlong
    is("\xE0\x80\xAF", 3);
    is("\xF0\x80\x80\xAF", 4);
    is("\xED\xA0\x80", 3);         // a surrogate
    is("\xF4\x90\x80\x80", 4);     // above U+10FFFF
    is("\xF5\x80\x80\x80", 4);
    EXPECT_EQ(in_quotes("\xC3"), '"' + bad + '"');
    EXPECT_EQ(in_quotes("\xC3\""), '"' + bad + "\\\"\"");
}

TEST(JsonString, OfRandomBytesIsAlwaysValidJson)
{
    std::mt19937 random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::string text(random() % 24, ' ');
        for (char& c : text)
            c = static_cast<char>(random());
        json::error_code failed;
        auto const read = json::parse(in_quotes(text), failed);
        ASSERT_FALSE(failed) << failed.message();
        ASSERT_EQ(in_quotes(std::string_view(read.as_string().data(), read.as_string().size())), in_quotes(text));
    }
}

TEST(JsonNumber, LooksAsInABrowser)
{
    EXPECT_EQ(number(0.0), "0");
    EXPECT_EQ(number(10.0), "10");
    EXPECT_EQ(number(-10.0), "-10");
    EXPECT_EQ(number(0.5), "0.5");
    EXPECT_EQ(number(3.14), "3.14");
    EXPECT_EQ(number(0.1 + 0.2), "0.30000000000000004");
    EXPECT_EQ(number(100000.0), "100000");
    EXPECT_EQ(number(123456789.125), "123456789.125");
    EXPECT_EQ(number(1e20), "100000000000000000000");
    EXPECT_EQ(number(1.2345678901234567e20), "123456789012345670000");
    EXPECT_EQ(number(-9223372036854775808.0), "-9223372036854776000");
    EXPECT_EQ(number(9007199254740994.0), "9007199254740994");
    EXPECT_EQ(number(1e21), "1e+21");
    EXPECT_EQ(number(-1.5e300), "-1.5e+300");
    EXPECT_EQ(number(0.000001), "0.000001");
    EXPECT_EQ(number(0.00000015), "1.5e-7");
    EXPECT_EQ(number(1e-10), "1e-10");
    EXPECT_EQ(number(5e-324), "5e-324");
    EXPECT_EQ(number(-1.2345678901234567e-6), "-0.0000012345678901234567");
}

TEST(JsonNumber, KeepsTheSignOfZero)
{
    EXPECT_EQ(number(-0.0), "-0.0");
    EXPECT_TRUE(std::signbit(json::parse(number(-0.0)).as_double()));
}

TEST(JsonNumber, IsNullIfItIsNotFinite)
{
    EXPECT_EQ(number(std::nan("")), "null");
    EXPECT_EQ(number(HUGE_VAL), "null");
    EXPECT_EQ(number(-HUGE_VAL), "null");
}

TEST(JsonNumber, WritesIntegersOfAllSizes)
{
    EXPECT_EQ(number(std::int64_t(0)), "0");
    EXPECT_EQ(number(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
    EXPECT_EQ(number(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
    EXPECT_EQ(number(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

TEST(JsonNumber, ReadsBackAsTheSameDouble)
{
    std::mt19937_64 random(11);
    for (int round = 0; round < 100'000; ++round) {
        auto value = std::bit_cast<double>(random());
        if (round % 2)
            value = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 140) - 90);
        if (!std::isfinite(value))
            continue;
        auto const text = number(value);
        double read = 0;
        auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), read);
        ASSERT_EQ(code, std::errc());
        ASSERT_EQ(end, text.data() + text.size());
        ASSERT_EQ(read, value) << text;
        json::error_code failed;
        static_cast<void>(json::parse(text, failed));
        ASSERT_FALSE(failed) << text;
    }
}

TEST(Json, WritesEveryKindCompactly)
{
    auto const text = R"({"a":[],"b":{},"c":[null,true,false,-1,18446744073709551615,0.25,"x\ny"],"":{"d":[[1],[2]]}})";
    EXPECT_EQ(to_json(json::parse(text)), text);
}

TEST(Json, IsAppendedToWhatIsThere)
{
    std::string out = "[";
    append_json(out, json::value(nullptr));
    out += ',';
    append_json(out, json::object{{"a", 1}});
    out += ',';
    append_json(out, json::array{});
    EXPECT_EQ(out, R"([null,{"a":1},[])");
}

TEST(Json, EscapesKeys)
{
    EXPECT_EQ(to_json(json::object{{"a\"\n", 1}}), R"({"a\"\n":1})");
}

TEST(Json, WritesDeepValues)
{
    json::value deep = 1;
    for (int i = 0; i < 1000; ++i) {
        json::array next;
        next.push_back(std::move(deep));
        deep = std::move(next);
    }
    EXPECT_EQ(to_json(deep), std::string(1000, '[') + "1" + std::string(1000, ']'));
}

}
