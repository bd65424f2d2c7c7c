#include "http/field_text.hpp"

#include <gtest/gtest.h>

namespace belay::http {

TEST(FieldText, IsComparedWithoutRegardToCase)
{
    EXPECT_TRUE(equals_ignoring_case("Last-Event-ID", "last-event-id"));
    EXPECT_TRUE(equals_ignoring_case("", ""));
    EXPECT_FALSE(equals_ignoring_case("host", "hosts"));
    EXPECT_FALSE(equals_ignoring_case("@[", "`{")) << "letters only";
    EXPECT_FALSE(equals_ignoring_case("@[@[@[@[", "`{`{`{`{")) << "letters only";
    EXPECT_FALSE(equals_ignoring_case("\xc1\xc1\xc1\xc1\xc1\xc1\xc1\xc1", "\xe1\xe1\xe1\xe1\xe1\xe1\xe1\xe1"));
}

TEST(FieldText, IsComparedToItsLastByte)
{
    for (std::size_t size = 1; size < 40; ++size)
        for (std::size_t at = 0; at < size; ++at) {
            std::string capital(size, 'Q');
            std::string small(size, 'q');
            EXPECT_TRUE(equals_ignoring_case(capital, small));
            EXPECT_EQ(field_key(capital), field_key(small));
            capital[at] = 'R';
            EXPECT_FALSE(equals_ignoring_case(capital, small)) << size << ' ' << at;
        }
}

TEST(FieldText, IsTrimmed)
{
    EXPECT_EQ(trimmed(" \ta b\t "), "a b");
    EXPECT_EQ(trimmed("a"), "a");
    EXPECT_EQ(trimmed(" \t"), "");
    EXPECT_EQ(trimmed(""), "");
}

TEST(FieldText, IsOneLine)
{
    EXPECT_TRUE(is_one_line("a\tb"));
    EXPECT_TRUE(is_one_line(""));
    for (char const c : {'\r', '\n', '\0'})
        EXPECT_FALSE(is_one_line(std::string("a") + c + "b"));
}

TEST(FieldText, HasNumbers)
{
    std::string out = "n=";
    append_number(out, 0);
    append_number(out, ~std::size_t(0));
    EXPECT_EQ(out, "n=018446744073709551615");
}

}
