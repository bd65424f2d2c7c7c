#include <belay/error.hpp>

#include <gtest/gtest.h>

#include <set>

namespace belay::inline v0 {

namespace {

TEST(Errc, HasASentenceOfItsOwnForEveryValue)
{
    std::set<std::string> texts;
    for (int value = 1; value <= static_cast<int>(errc::too_many_subscriptions); ++value)
        EXPECT_TRUE(texts.insert(make_error_code(static_cast<errc>(value)).message()).second) << value;
    EXPECT_FALSE(texts.contains("unknown error"));
}

TEST(Errc, IsNoErrorOfAnotherCategory)
{
    EXPECT_NE(make_error_code(errc::bad_request), std::error_code(1, std::generic_category()));
    EXPECT_EQ(make_error_code(errc::closed).category().name(), std::string("belay"));
}

TEST(Result, CarriesAnErrc)
{
    result<int> const failed = failure(errc::fenced);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error(), errc::fenced);
    EXPECT_NE(failed.error(), errc::finished);
}

}

}
