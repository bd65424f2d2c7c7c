#include "json/pattern.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace belay::inline v0::detail {

namespace {

bool finds(std::string_view expression, std::string_view text)
{
    return pattern(expression).is_in(text);
}

std::string pattern_refusal(std::string_view expression)
{
    try {
        pattern const taken(expression);
    } catch (std::invalid_argument const& error) {
        return error.what();
    }
    return "taken";
}

TEST(Pattern, IsFoundAnywhere)
{
    EXPECT_TRUE(finds("b", "abc"));
    EXPECT_FALSE(finds("d", "abc"));
    EXPECT_TRUE(finds("", "abc"));
    EXPECT_TRUE(finds("", ""));
    EXPECT_FALSE(finds("a", ""));
    EXPECT_TRUE(finds("bc", "abc"));
    EXPECT_FALSE(finds("ac", "abc"));
}

TEST(Pattern, IsHeldByItsAnchors)
{
    EXPECT_TRUE(finds("^ab", "abc"));
    EXPECT_FALSE(finds("^b", "abc"));
    EXPECT_TRUE(finds("bc$", "abc"));
    EXPECT_FALSE(finds("b$", "abc"));
    EXPECT_FALSE(finds("^abc$", "abc\n"));
    EXPECT_FALSE(finds("^b", "a\nb"));
    EXPECT_TRUE(finds("^$", ""));
    EXPECT_FALSE(finds("a^", "a"));
}

TEST(Pattern, Repeats)
{
    EXPECT_TRUE(finds("^a*$", ""));
    EXPECT_TRUE(finds("^a*$", "aaa"));
    EXPECT_FALSE(finds("^a+$", ""));
    EXPECT_TRUE(finds("^a+$", "a"));
    EXPECT_TRUE(finds("^a?b$", "b"));
    EXPECT_FALSE(finds("^a?b$", "aab"));
    EXPECT_TRUE(finds("^a{2}$", "aa"));
    EXPECT_FALSE(finds("^a{2}$", "aaa"));
    EXPECT_TRUE(finds("^a{2,}$", "aaaa"));
    EXPECT_FALSE(finds("^a{2,}$", "a"));
    EXPECT_TRUE(finds("^a{0,2}$", ""));
    EXPECT_FALSE(finds("^a{0,2}$", "aaa"));
    EXPECT_TRUE(finds("^(ab){2}c$", "ababc"));
    EXPECT_TRUE(finds("^a*?b+?c??$", "aabb"));
    EXPECT_TRUE(finds("^a{0}$", ""));
    EXPECT_TRUE(finds("^(a*)*$", "aaa"));
    EXPECT_TRUE(finds("^(a|b*|)+c$", "abac"));
}

TEST(Pattern, TakesABraceThatRepeatsNothingAsItself)
{
    EXPECT_TRUE(finds("^a{$", "a{"));
    EXPECT_TRUE(finds("^{a}$", "{a}"));
    EXPECT_TRUE(finds("^a{,2}$", "a{,2}"));
}

TEST(Pattern, Chooses)
{
    EXPECT_TRUE(finds("^(cat|dog)$", "dog"));
    EXPECT_FALSE(finds("^(cat|dog)$", "cow"));
    EXPECT_TRUE(finds("^(?:a|b|)$", ""));
    EXPECT_TRUE(finds("^(?<name>a|b)$", "b"));
    EXPECT_TRUE(finds("^a|c$", "bc"));
}

TEST(Pattern, KnowsSets)
{
    EXPECT_TRUE(finds("^[a-c_]+$", "ab_c"));
    EXPECT_FALSE(finds("^[a-c]+$", "abd"));
    EXPECT_TRUE(finds("^[^a-c]+$", "xyz"));
    EXPECT_FALSE(finds("^[^a-c]+$", "xaz"));
    EXPECT_TRUE(finds("^[-a]+$", "-a"));
    EXPECT_TRUE(finds("^[a-]+$", "-a"));
    EXPECT_TRUE(finds(R"(^[\]\\]+$)", R"(]\)"));
    EXPECT_TRUE(finds(R"(^[\d.]+$)", "1.2"));
    EXPECT_TRUE(finds(R"(^[\W]$)", "-"));
    EXPECT_FALSE(finds("[]", "a"));
    EXPECT_TRUE(finds("^[^]$", "\n"));
    EXPECT_TRUE(finds(R"(^[\b]$)", "\b"));
}

TEST(Pattern, KnowsEscapes)
{
    EXPECT_TRUE(finds(R"(^\d\D\w\W\s\S$)", "1a_- x"));
    EXPECT_FALSE(finds(R"(^\d$)", "\xE0\xA7\xAA")); // a digit elsewhere
    EXPECT_TRUE(finds(R"(^\s$)", "\xC2\xA0"));
    EXPECT_TRUE(finds(R"(^\t\n\v\f\r$)", "\t\n\v\f\r"));
    EXPECT_TRUE(finds(R"(^\x41\u0042\u{43}\cJ$)", "ABC\n"));
    EXPECT_TRUE(finds(R"(^\uD83D\uDC32$)", "\xF0\x9F\x90\xB2"));
    EXPECT_TRUE(finds(R"(^\.\*\+\?\(\)\[\]\{\}\^\$\|\/\-$)", ".*+?()[]{}^$|/-"));
    EXPECT_TRUE(finds(R"(^\0$)", std::string_view("\0", 1)));
}

TEST(Pattern, ADotIsAnythingButTheEndOfALine)
{
    EXPECT_TRUE(finds("^.$", "\xF0\x9F\x90\xB2"));
    EXPECT_FALSE(finds("^.$", "\n"));
    EXPECT_FALSE(finds("^.$", "\xE2\x80\xA8"));
    EXPECT_FALSE(finds("^.$", "ab"));
}

TEST(Pattern, CountsWhatIsNotUtf8OneByOne)
{
    EXPECT_TRUE(finds("^...$", "\xFF\xC3(")); // a lone byte, a lead byte without its second, a bracket
    EXPECT_TRUE(finds("^\\uFFFD$", "\x80"));
    EXPECT_TRUE(finds("^..$", "\xC0\x80"));      // overlong
    EXPECT_TRUE(finds("^...$", "\xED\xA0\x80")); // half of a pair
}

TEST(Pattern, KnowsBordersOfWords)
{
    EXPECT_TRUE(finds(R"(\bcat\b)", "a cat sat"));
    EXPECT_FALSE(finds(R"(\bcat\b)", "concatenate"));
    EXPECT_TRUE(finds(R"(\Bcat\B)", "concatenate"));
    EXPECT_FALSE(finds(R"(\Bcat)", "cat"));
}

TEST(Pattern, LooksAhead)
{
    constexpr auto password = R"(^(?=.*\d)(?=.*[a-z])(?!.*\s).{4,8}$)";
    EXPECT_TRUE(finds(password, "abc1"));
    EXPECT_FALSE(finds(password, "abcd"));
    EXPECT_FALSE(finds(password, "1234"));
    EXPECT_FALSE(finds(password, "ab 12"));
    EXPECT_FALSE(finds(password, "abc123456"));
    EXPECT_TRUE(finds("^(?!a(?=b))..$", "ac"));
    EXPECT_FALSE(finds("^(?!a(?=b))..$", "ab"));
    EXPECT_TRUE(finds("a(?!b)", "abac"));
    EXPECT_TRUE(finds("^(?:a(?=b|$)b?)+$", "ababa"));
}

TEST(Pattern, IsNotSlowWhereBacktrackingIs)
{
    std::string const text(20'000, 'a');
    EXPECT_FALSE(finds("^(a+)+$", text + "b"));
    EXPECT_FALSE(finds("^(a|aa)*b$", text));
    EXPECT_FALSE(finds("^(.*)*x(.*)*$", text));
}

TEST(Pattern, SaysWhyItIsRefused)
{
    EXPECT_EQ(pattern_refusal("a("), "this regular expression cannot be used: a ( without its ) (at character 2)");
    for (auto const& [expression, why] : {
             std::pair{"a)", "without its ("},
             {"[a", "[ without"},
             {"*", "nothing to repeat"},
             {"a**", "nothing to repeat"},
             {"(?=a)*", "nothing to repeat"},
             {"^{2}", "nothing to repeat"},
             {"a{2,1}", "wrong order"},
             {"[b-a]", "later one"},
             {"[\\d-a]", "later one"},
             {"\\", "at its end"},
             {"\\1", "back references"},
             {"(?<n>a)\\k<n>", "back references"},
             {"(?<=a)b", "look-behind"},
             {"(?<!a)b", "look-behind"},
             {"(?i)a", "kind of group"},
             {"\\p{L}", "not supported"},
             {"\\a", "no such"},
             {"\\x4", "hexadecimal"},
             {"\\u{110000}", "no such character"},
             {"\\c1", "letter"},
             {"a{100000}", "too large"},
             {"((a{100}){100}){100}", "too large"},
             {"(((){1000}){1000}){1000}", "too large"},
         })
        EXPECT_NE(pattern_refusal(expression).find(why), std::string::npos)
            << expression << ": " << pattern_refusal(expression);
}

TEST(Pattern, RefusesWhatIsNestedTooDeeply)
{
    EXPECT_NE(
        pattern_refusal(std::string(100'000, '(') + std::string(100'000, ')')).find("too deeply"), std::string::npos);
}

}

}
