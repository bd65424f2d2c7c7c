#include "store/redis_check.hpp"

#include <gtest/gtest.h>

#include <string>

namespace belay::store {

namespace {

using weight = redis_finding::weight;

/// A Redis as it should be, but for these lines.
std::string info_with(std::initializer_list<std::pair<std::string, std::string>> lines)
{
    std::map<std::string, std::string> all{
        {"redis_version", "7.0.15"}, {"redis_mode", "standalone"},       {"role", "master"},
        {"maxmemory", "0"},          {"maxmemory_policy", "noeviction"}, {"aof_enabled", "1"}};
    for (auto const& [name, value] : lines)
        all[name] = value;
    std::string info = "# Server\r\n";
    for (auto const& [name, value] : all)
        info += name + ':' + value + "\r\n";
    return info;
}

std::vector<redis_finding>
findings(std::initializer_list<std::pair<std::string, std::string>> lines, redis_place::kind what = {})
{
    redis_place place;
    place.what = what;
    return judge_redis({info_with(lines), ""}, place);
}

/// The one finding, whose sentence has those words.
testing::AssertionResult is_one(std::vector<redis_finding> const& found, weight how, std::string const& part)
{
    if (found.size() == 1 && found[0].how == how && found[0].sentence.find(part) != std::string::npos)
        return testing::AssertionSuccess();
    auto failed = testing::AssertionFailure() << found.size() << " findings";
    for (auto const& each : found)
        failed << "; " << each.sentence;
    return failed;
}

TEST(RedisCheck, FindsNothingWrongWithARedisAsItShouldBe)
{
    EXPECT_TRUE(findings({}).empty());
}

TEST(RedisCheck, NeedsAVersion)
{
    EXPECT_TRUE(is_one(findings({{"redis_version", "6.2.14"}}), weight::fault, "6.2.14 is too old"));
    EXPECT_TRUE(findings({{"redis_version", "10.0.1"}}).empty());
    EXPECT_TRUE(is_one(judge_redis({"", ""}, {}), weight::fault, "INFO"));
}

TEST(RedisCheck, NeedsWhatIsWrittenToStay)
{
    EXPECT_TRUE(
        is_one(findings({{"maxmemory", "100"}, {"maxmemory_policy", "allkeys-lru"}}), weight::fault, "allkeys-lru"));
    EXPECT_TRUE(is_one(findings({{"maxmemory_policy", "volatile-ttl"}}), weight::note, "noeviction"));
    EXPECT_TRUE(findings({{"maxmemory", "100"}}).empty());
}

TEST(RedisCheck, SaysWhatARestartLoses)
{
    EXPECT_TRUE(is_one(findings({{"aof_enabled", "0"}}), weight::note, "all sessions"));
    EXPECT_TRUE(
        is_one(judge_redis({info_with({{"aof_enabled", "0"}}), "3600 1"}, {}), weight::note, "last save point"));
}

TEST(RedisCheck, NeedsTheKindOfRedisThatWasNamed)
{
    EXPECT_TRUE(is_one(findings({{"redis_mode", "cluster"}}), weight::fault, "redis+cluster://"));
    EXPECT_TRUE(is_one(findings({}, redis_place::kind::cluster), weight::fault, "redis://"));
    EXPECT_TRUE(findings({{"redis_mode", "cluster"}}, redis_place::kind::cluster).empty());
    EXPECT_TRUE(is_one(findings({{"role", "slave"}}), weight::fault, "replica"));
}

TEST(RedisCheck, NamesMissingRights)
{
    EXPECT_TRUE(is_one(judge_redis({info_with({}), "", {"RPUSH", "TIME"}}, {}), weight::fault, "RPUSH, TIME"));
}

}

}
