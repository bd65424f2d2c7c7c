#include "server/registry.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace belay::inline v0::detail {

namespace {

std::vector<std::string> keys_of(registry<int> const& of)
{
    std::vector<std::string> keys;
    for (auto const& each : of.now()->in_order)
        keys.push_back(each->as.key);
    return keys;
}

bool add(registry<int>& to, std::string key, int value)
{
    return to.add(std::make_shared<int const>(value), {std::move(key), {}});
}

TEST(Registry, KeepsTheOrderOfRegistration)
{
    registry<int> things;
    for (auto const* const key : {"c", "a", "b"})
        EXPECT_TRUE(add(things, key, 1));
    EXPECT_EQ(keys_of(things), (std::vector<std::string>{"c", "a", "b"}));
    EXPECT_TRUE(things.remove("a"));
    EXPECT_TRUE(add(things, "a", 2));
    EXPECT_EQ(keys_of(things), (std::vector<std::string>{"c", "b", "a"}));
}

TEST(Registry, KeepsTheFirstOfAKey)
{
    registry<int> things;
    EXPECT_TRUE(add(things, "a", 1));
    EXPECT_FALSE(add(things, "a", 2));
    EXPECT_EQ(*things.now()->find("a"), 1);
    EXPECT_EQ(keys_of(things).size(), 1u);
}

TEST(Registry, SaysWhetherThereWasSomethingToRemove)
{
    registry<int> things;
    EXPECT_TRUE(add(things, "a", 1));
    EXPECT_FALSE(things.remove("b"));
    EXPECT_TRUE(things.remove("a"));
    EXPECT_FALSE(things.remove("a"));
    EXPECT_EQ(things.now()->find("a"), nullptr);
}

TEST(Registry, ASnapshotDoesNotChange)
{
    registry<int> things;
    EXPECT_TRUE(add(things, "a", 1));
    auto const before = things.now();
    EXPECT_TRUE(things.remove("a"));
    EXPECT_TRUE(add(things, "b", 2));
    EXPECT_EQ(*before->find("a"), 1);
    EXPECT_EQ(before->find("b"), nullptr);
    EXPECT_EQ(before->in_order.size(), 1u);
}

}

}
