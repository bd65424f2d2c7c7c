#include "json/parse.hpp"

#include "json/serialize.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/static_resource.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

using namespace belay::json_text;
namespace json = boost::json;

namespace {

std::string written(double value)
{
    std::string out;
    append_json_number(out, value);
    return out;
}

/// The bits, so that the sign of zero counts; an integer counts as the double it is written for.
std::uint64_t bits(json::value const& value)
{
    return std::bit_cast<std::uint64_t>(value.is_double() ? value.get_double() : value.to_number<double>());
}

std::string outcome(std::string_view text)
{
    auto const value = parse(text);
    if (value)
        return to_json(*value);
    switch (value.error()) {
    case parse_error::malformed: return "malformed";
    case parse_error::too_deep: return "too deep";
    case parse_error::inexact_number: return "inexact";
    }
    return "?";
}

TEST(JsonParse, ReadsEveryDoubleExactlyAndWritesItSo)
{
    std::mt19937_64 random(29);
    for (int round = 0; round < 40'000; ++round) {
        auto pattern = random();
        if (round % 8 == 0)
            pattern &= 0x800F'FFFF'FFFF'FFFF; // subnormal, and zero
        else if (round % 8 == 1)
            pattern
                = (pattern & 0x8007'FFFF'FFFF'FFFF) | 0x4340'0000'0000'0000 | (random() % 80) << 52; // whole numbers
        auto const value = std::bit_cast<double>(pattern);
        if (!std::isfinite(value))
            continue;
        // Its shortest text, by the standard library and by us; 17 digits; and all of its digits.
        char text[1200];
        for (auto const format : {0, 1, 2}) {
            auto* end = text;
            if (format == 0)
                end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
            else if (format == 1)
                end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 16).ptr;
            else if (round % 50 == 0)
                end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 1074).ptr;
            if (end == text)
                continue;
            std::string_view const shown(text, static_cast<std::size_t>(end - text));
            auto const read = parse(shown);
            ASSERT_TRUE(read && read->is_double()) << shown;
            ASSERT_EQ(bits(*read), pattern) << shown;
        }
        auto const ours = parse(written(value));
        ASSERT_TRUE(ours) << written(value);
        ASSERT_EQ(bits(*ours), value == 0 && !std::signbit(value) ? 0 : pattern) << written(value);
        ASSERT_EQ(to_json(*ours), written(value)); // also where it is read as an integer
    }
}

TEST(JsonParse, ReadsTheLimits)
{
    using limits = std::numeric_limits<double>;
    for (double const value :
         {limits::max(), limits::lowest(), limits::min(), -limits::min(), limits::denorm_min(), -limits::denorm_min(),
          limits::epsilon(), 9007199254740991.0, 9007199254740992.0, 9007199254740994.0, 9223372036854775808.0,
          18446744073709551616.0, 999999999999999900000.0, 1e21, 1e22, 1e23, 2.2250738585072011e-308,
          0.500000000000000166533453693773481063544750213623046875})
        EXPECT_EQ(bits(*parse(written(value))), std::bit_cast<std::uint64_t>(value)) << written(value);
}

TEST(JsonParse, KeepsTheSignOfZero)
{
    for (std::string_view const text : {"-0", "-0.0", "-0e0", "[-0]", "[-0                                        ]"})
        EXPECT_NE(outcome(text).find("-0.0"), std::string::npos) << text;
    EXPECT_EQ(outcome("0"), "0");
    EXPECT_EQ(outcome("0.0"), "0");
}

TEST(JsonParse, KeepsIntegersOf64Bits)
{
    for (std::string_view const text :
         {"1", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
          "18446744073709551615"}) {
        EXPECT_EQ(outcome(text), text);
        EXPECT_FALSE(parse(text)->is_double());
    }
}

TEST(JsonParse, KeepsLargerIntegersThatADoubleIsWrittenAs)
{
    for (std::string_view const text :
         {"18446744073709552000", "-18446744073709552000", "100000000000000000000", "123456789012345680000",
          "-9223372036854776000"})
        EXPECT_EQ(outcome(text), text);
    EXPECT_EQ(outcome("1000000000000000000000000"), "1e+24");
    EXPECT_EQ(outcome("1" + std::string(308, '0')), "1e+308");
}

TEST(JsonParse, RefusesIntegersThatNothingHolds)
{
    for (std::string_view const text :
         {"18446744073709551616", "18446744073709551617", "-9223372036854775809", "123456789012345678901234567890",
          "1180591620717411303424", "100000000000000000001", "[1,{\"a\":18446744073709551617}]"})
        EXPECT_EQ(outcome(text), "inexact") << text;
    EXPECT_EQ(outcome("1" + std::string(309, '0')), "inexact");
    EXPECT_EQ(outcome(std::string(100'000, '9')), "inexact");
}

TEST(JsonParse, RefusesWhatIsBeyondADouble)
{
    for (std::string_view const text :
         {"1e309", "-1e309", "1.7976931348623159e308", "1e400", "1e-400", "-1e-400", "2e-324", "1e99999999999",
          "1e-99999999999", "[1e999]"})
        EXPECT_EQ(outcome(text), "inexact") << text;
    EXPECT_EQ(outcome("0e400"), "0");
    EXPECT_EQ(outcome("3e-324"), "5e-324");
}

TEST(JsonParse, ReadsTheRestAsBoostDoes)
{
    std::mt19937 random(31);
    std::string_view const pieces[]
        = {"{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\\n\"", "1", "-", "true", "null", "0.5", " ", "\"", "x"};
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (auto left = random() % 12; left > 0; --left)
            text += pieces[random() % std::size(pieces)];
        json::error_code failed;
        auto const expected = json::parse(text, failed);
        auto const read = parse(text);
        ASSERT_EQ(read.has_value(), !failed) << text;
        if (read)
            ASSERT_EQ(*read, expected) << text;
    }
}

TEST(JsonParse, TakesTheLastOfTwoMembers)
{
    EXPECT_EQ(outcome(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");
}

TEST(JsonParse, HoldsToTheDepth)
{
    EXPECT_EQ(outcome(std::string(64, '[') + std::string(64, ']')).size(), 128u);
    EXPECT_EQ(outcome(std::string(65, '[') + std::string(65, ']')), "too deep");
    EXPECT_EQ(parse("[[]]", {}, 1).error(), parse_error::too_deep);
}

TEST(JsonParse, UsesTheStorage)
{
    unsigned char memory[4096];
    json::static_resource arena(memory);
    auto const value
        = belay::json_text::parse(R"({"a":["long enough not to be inside of the value itself",1.5]})", &arena);
    ASSERT_TRUE(value);
    EXPECT_EQ(value->storage().get(), &arena);
}

}
