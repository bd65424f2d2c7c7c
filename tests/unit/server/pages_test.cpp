#include "server/pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace belay::inline v0::detail {

namespace {

TEST(Pages, ACursorComesBack)
{
    for (std::string const& key :
         {std::string(), std::string("tool"), std::string("a b  c"), std::string("\xC3\xA9\0\n", 4)})
        for (std::size_t const index : {std::size_t(0), std::size_t(1), std::size_t(123'456'789)}) {
            auto const at = parse_cursor("tools", to_cursor("tools", {index, key}));
            ASSERT_TRUE(at) << key;
            EXPECT_EQ(at->index, index);
            EXPECT_EQ(at->after, key);
        }
}

TEST(Pages, ACursorIsSafeInAnyPlace)
{
    auto const text = to_cursor("tools", {7, "\"\\\r\n/?&"});
    EXPECT_TRUE(std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c); })) << text;
}

TEST(Pages, ACursorOfAnotherListIsNone)
{
    auto const text = to_cursor("resourceTemplates", {1, "a"});
    EXPECT_TRUE(parse_cursor("resourceTemplates", text));
    EXPECT_FALSE(parse_cursor("resource", text));
    EXPECT_FALSE(parse_cursor("resources", text));
    EXPECT_FALSE(parse_cursor("prompts", text));
}

TEST(Pages, AChangedCursorIsNone)
{
    auto const good = to_cursor("tools", {1, "echo"});
    EXPECT_FALSE(parse_cursor("tools", good + "00"));
    EXPECT_FALSE(parse_cursor("tools", good + "6f"));
    EXPECT_FALSE(parse_cursor("tools", good.substr(0, good.size() - 2)));
    EXPECT_FALSE(parse_cursor("tools", good + good));
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto changed = good;
        changed[i] = changed[i] == '0' ? '1' : '0';
        EXPECT_FALSE(parse_cursor("tools", changed)) << i;
    }
    // "tools 1 echo", made up
    EXPECT_FALSE(parse_cursor("tools", "746f6f6c732031206563686f"));
}

TEST(Pages, OtherTextsAreNone)
{
    auto const good = to_cursor("tools", {1, "a"});
    auto upper = good;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (std::string const& text :
         {std::string(), std::string("0"), std::string("zz"), good.substr(1), good + "f", upper,
          std::string("746f6f6c73"), std::string("746f6f6c7320"), std::string("746f6f6c732031"),
          std::string("746f6f6c73202120"), std::string(17 * 1024, '6')})
        EXPECT_FALSE(parse_cursor("tools", text)) << text;
}

}

}
