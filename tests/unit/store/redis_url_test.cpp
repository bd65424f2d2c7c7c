#include "store/redis_url.hpp"

#include <gtest/gtest.h>

namespace belay::store {

namespace {

redis_place parsed(std::string_view text)
{
    auto const outcome = parse_redis_url(text);
    if (auto const* const why = std::get_if<std::string>(&outcome)) {
        ADD_FAILURE() << text << ": " << *why;
        return {};
    }
    return std::get<redis_place>(outcome);
}

std::string refused(std::string_view text)
{
    auto const outcome = parse_redis_url(text);
    auto const* const why = std::get_if<std::string>(&outcome);
    return why ? *why : std::string();
}

TEST(RedisUrl, HasAHostAndDefaults)
{
    auto const place = parsed("redis://cache");
    EXPECT_EQ(place.what, redis_place::kind::single);
    EXPECT_EQ(place.addresses, (std::vector<redis_address>{{"cache", 6379}}));
    EXPECT_FALSE(place.uses_tls);
    EXPECT_EQ(place.database, 0);
    EXPECT_TRUE(place.user.empty() && place.password.empty());
}

TEST(RedisUrl, HasAllParts)
{
    auto const place = parsed("rediss://me:p%40ss%3a@[::1]:7000/3");
    EXPECT_EQ(place.addresses, (std::vector<redis_address>{{"::1", 7000}}));
    EXPECT_TRUE(place.uses_tls);
    EXPECT_EQ(place.user, "me");
    EXPECT_EQ(place.password, "p@ss:");
    EXPECT_EQ(place.database, 3);
    EXPECT_EQ(parsed("redis://:secret@h").password, "secret");
    EXPECT_TRUE(parsed("redis://:secret@h").user.empty());
}

TEST(RedisUrl, NamesAUnixSocket)
{
    auto const place = parsed("redis+unix:///run/redis.sock?db=2");
    ASSERT_EQ(place.addresses.size(), 1u);
    EXPECT_EQ(place.addresses[0].path, "/run/redis.sock");
    EXPECT_EQ(place.database, 2);
}

TEST(RedisUrl, NamesSentinelsAndTheirService)
{
    auto const place = parsed("redis+sentinel://u:p@a,b:7/main/1");
    EXPECT_EQ(place.what, redis_place::kind::sentinel);
    EXPECT_EQ(place.addresses, (std::vector<redis_address>{{"a", 26379}, {"b", 7}}));
    EXPECT_EQ(place.service, "main");
    EXPECT_EQ(place.database, 1);
    EXPECT_TRUE(parsed("rediss+sentinel://a/main").uses_tls);
}

TEST(RedisUrl, NamesNodesOfACluster)
{
    auto const place = parsed("redis+cluster://a:1,b:2,c:3");
    EXPECT_EQ(place.what, redis_place::kind::cluster);
    EXPECT_EQ(place.addresses.size(), 3u);
}

TEST(RedisUrl, SaysWhatIsWrongWithoutThePassword)
{
    for (auto const* text :
         {"",
          "memory",
          "http://h",
          "redis://",
          "redis://h:0",
          "redis://h:70000",
          "redis://h:x",
          "redis://h/x",
          "redis://h/-1",
          "redis://a,b",
          "redis://u:secret%4@h",
          "redis://u:secret@",
          "redis://u:secret@h:x",
          "redis+unix://h/x",
          "redis+unix:///",
          "redis+sentinel://a",
          "redis+sentinel://u:secret@a/",
          "redis+cluster://a,/0",
          "redis+cluster://u:secret@a/1",
          "redis://[::1",
          "redis://a b"}) {
        auto const why = refused(text);
        EXPECT_FALSE(why.empty()) << text;
        EXPECT_EQ(why.find("secret"), std::string::npos) << text;
    }
}

TEST(RedisUrl, TellsRedisFromOtherStores)
{
    EXPECT_TRUE(is_redis_url("redis://h"));
    EXPECT_TRUE(is_redis_url("rediss+cluster://"));
    EXPECT_FALSE(is_redis_url("memory"));
    EXPECT_FALSE(is_redis_url("disk:///x"));
}

TEST(RedisUrl, IsWrittenForMessages)
{
    EXPECT_EQ(to_string(redis_address{"h", 1}), "h:1");
    EXPECT_EQ(to_string(redis_address{"::1", 2}), "[::1]:2");
    EXPECT_EQ(to_string(redis_address{"", 0, "/s"}), "/s");
}

}

}
