#include "store/redis_slot.hpp"

#include <gtest/gtest.h>

namespace belay::store {

namespace {

// As the specification of Redis Cluster has it, and as CLUSTER KEYSLOT says.
TEST(RedisSlot, IsThatOfTheSpecification)
{
    EXPECT_EQ(redis_slot("123456789"), 0x31c3 % redis_slot_count);
    EXPECT_EQ(redis_slot("foo"), 12182);
    EXPECT_EQ(redis_slot("bar"), 5061);
    EXPECT_EQ(redis_slot(""), 0);
}

TEST(RedisSlot, IsOfWhatIsBetweenBraces)
{
    EXPECT_EQ(redis_slot("belay:{foo}:d"), redis_slot("foo"));
    EXPECT_EQ(redis_slot("{foo}{bar}"), redis_slot("foo"));
    EXPECT_EQ(redis_slot("foo{}{bar}"), redis_slot("foo{}{bar}"));
    EXPECT_NE(redis_slot("foo{}{bar}"), redis_slot("bar"));
    EXPECT_EQ(redis_slot("foo{{bar}}zap"), redis_slot("{bar"));
}

}

}
