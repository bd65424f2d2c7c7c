#include "samples.hpp"

#include <boost/json/monotonic_resource.hpp>

#include <gtest/gtest.h>

#include <cmath>

using namespace samples;

namespace {

struct escaped {
    std::map<std::string, int> counts;
};
BOOST_DESCRIBE_STRUCT(escaped, (), (counts))

struct anything {
    json::value any;
    json::object extra;
    std::optional<json::value> perhaps;
    std::vector<json::value> many;
};
BOOST_DESCRIBE_STRUCT(anything, (), (any, extra, perhaps, many))

TEST(Decode, ReadsAStruct)
{
    auto const out = read<deploy_args>(R"({"service":"web","version":"1.2","copies":3})");
    ASSERT_TRUE(out);
    EXPECT_EQ(*out, (deploy_args{"web", "1.2", 3}));
}

TEST(Decode, LeavesAnAbsentOptionalEmpty)
{
    EXPECT_EQ(read<deploy_args>(R"({"service":"web","version":"1"})")->copies, std::nullopt);
}

TEST(Decode, TakesNullForAnOptionalAsAbsent)
{
    EXPECT_EQ(read<deploy_args>(R"({"service":"web","version":"1","copies":null})")->copies, std::nullopt);
}

TEST(Decode, IgnoresUnknownMembers)
{
    EXPECT_TRUE(read<place>(R"({"city":"Bern","canton":{"deep":[1,2,3]}})"));
    EXPECT_TRUE(read<nothing>(R"({"a":1})"));
}

TEST(Decode, NamesAMissingMember)
{
    auto const out = read<place>("{}");
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error(), (belay::decode_error{"/city", "required"}));
    EXPECT_EQ(out.error().text(), "/city: required");
}

TEST(Decode, NamesAMissingMemberInsideOthers)
{
    EXPECT_EQ(error_of<trip>(R"({"where":{}})"), "/where/city: required");
    EXPECT_EQ(error_of<trip>(R"({"where":{"city":"a"}})"), "/stops: required");
    EXPECT_EQ(error_of<trip>(R"({"where":{"city":"a"},"stops":[{"city":"b"},{}]})"), "/stops/1/city: required");
    EXPECT_EQ(
        error_of<trip>(R"({"where":{"city":"a"},"stops":[],"friends":{"ann":{"city":7}}})"),
        "/friends/ann/city: expected string");
    EXPECT_EQ(
        error_of<trip>(R"({"where":{"city":"a"},"stops":[],"friends":{},"home":{"city":"c","country":1}})"),
        "/home/country: expected string");
}

TEST(Decode, SaysWhatTheValueItselfShouldBeWithoutAPath)
{
    EXPECT_EQ(error_of<place>("[]"), "expected object");
    EXPECT_EQ(error_of<place>("null"), "expected object");
    EXPECT_EQ(error_of<bool>("1"), "expected boolean");
    EXPECT_EQ(error_of<int>("\"1\""), "expected integer");
    EXPECT_EQ(error_of<double>("\"1\""), "expected number");
    EXPECT_EQ(error_of<float>("true"), "expected number");
    EXPECT_EQ(error_of<std::string>("1"), "expected string");
    EXPECT_EQ(error_of<std::vector<int>>("{}"), "expected array");
    EXPECT_EQ((error_of<std::map<std::string, int>>("[]")), "expected object");
    EXPECT_EQ(error_of<json::object>("[]"), "expected object");
    EXPECT_EQ(error_of<std::string>("null"), "expected string");
    EXPECT_EQ(error_of<std::optional<int>>("true"), "expected integer");
}

TEST(Decode, TellsTheNamesOfAnEnum)
{
    EXPECT_EQ(read<level>("\"high\""), level::high);
    EXPECT_EQ(read<plain_enum>("\"green\""), green);
    EXPECT_EQ(error_of<level>("\"loud\""), R"(expected one of "low", "middle", "high")");
    EXPECT_EQ(error_of<level>("1"), R"(expected one of "low", "middle", "high")");
    EXPECT_EQ(error_of<level>("\"\""), R"(expected one of "low", "middle", "high")");
}

TEST(Decode, TellsTheDocumentedRangeWhateverIsWrong)
{
    auto const with = [](std::string const& copies) {
        return error_of<deploy_args>(R"({"service":"a","version":"b","copies":)" + copies + "}");
    };
    EXPECT_EQ(with("0"), "/copies: expected integer between 1 and 50");
    EXPECT_EQ(with("51"), "/copies: expected integer between 1 and 50");
    EXPECT_EQ(with("2.5"), "/copies: expected integer between 1 and 50");
    EXPECT_EQ(with("\"3\""), "/copies: expected integer between 1 and 50");
    EXPECT_EQ(with("1e300"), "/copies: expected integer between 1 and 50");
    EXPECT_EQ(with("1"), "no error");
    EXPECT_EQ(with("50"), "no error");
}

TEST(Decode, TellsOneSidedRanges)
{
    auto const with = [](std::string const& member, std::string const& value) {
        auto in = json::parse(R"({"at_least":0,"at_most":0,"few":0,"huge":1,"tiny":0})");
        in.as_object()[member] = json::parse(value);
        auto const out = belay::decode<bounded>(in);
        return out ? "no error" : out.error().text();
    };
    EXPECT_EQ(with("at_least", "-4"), "/at_least: expected integer of at least -3");
    EXPECT_EQ(with("at_least", "-3"), "no error");
    EXPECT_EQ(with("at_least", "3000000000"), "/at_least: expected integer between -3 and 2147483647");
    EXPECT_EQ(with("at_most", "2.6"), "/at_most: expected number of at most 2.5");
    EXPECT_EQ(with("at_most", "3"), "/at_most: expected number of at most 2.5");
    EXPECT_EQ(with("at_most", "2.5"), "no error");
    EXPECT_EQ(with("few", "11"), "/few: expected integer of at most 10");
    EXPECT_EQ(with("few", "-1"), "/few: expected integer between 0 and 10");
    EXPECT_EQ(with("huge", "0"), "/huge: expected integer between 1 and 18446744073709551615");
    EXPECT_EQ(with("huge", "18446744073709551615"), "no error");
    EXPECT_EQ(with("huge", "18446744073709551616"), "/huge: expected integer between 1 and 18446744073709551615");
    EXPECT_EQ(with("tiny", "-129"), "/tiny: expected integer between -128 and 127");
    EXPECT_EQ(with("tiny", "-128"), "no error");
}

TEST(Decode, ChecksDocumentedRangesOfDoubles)
{
    EXPECT_EQ(error_of<play_args>(R"({"duration":0.25})"), "/duration: expected number between 0.5 and 3600");
    EXPECT_EQ(error_of<play_args>(R"({"volume":3.15})"), "/volume: expected number between 0 and 3.14");
    EXPECT_EQ(error_of<play_args>(R"({"speed":-1})"), "/speed: expected number of at least 0");
    EXPECT_EQ(error_of<play_args>(R"({"tries":6})"), "/tries: expected integer of at most 5");
    EXPECT_EQ(read<play_args>(R"({"volume":3.14})")->volume, 3.14);
}

TEST(Decode, KeepsIntegersWithinTheirType)
{
    EXPECT_EQ(read<std::int8_t>("-128"), std::int8_t(-128));
    EXPECT_EQ(error_of<std::int8_t>("128"), "expected integer between -128 and 127");
    EXPECT_EQ(read<std::uint8_t>("255"), std::uint8_t(255));
    EXPECT_EQ(error_of<std::uint8_t>("256"), "expected integer between 0 and 255");
    EXPECT_EQ(error_of<unsigned>("-1"), "expected integer between 0 and 4294967295");
    EXPECT_EQ(error_of<int>("2147483648"), "expected integer between -2147483648 and 2147483647");
    EXPECT_EQ(
        error_of<std::int64_t>("9223372036854775808"),
        "expected integer between -9223372036854775808 and 9223372036854775807");
    EXPECT_EQ(error_of<std::uint64_t>("-1"), "expected integer between 0 and 18446744073709551615");
}

TEST(Decode, ReadsTheLargestIntegersExactly)
{
    EXPECT_EQ(read<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(read<std::int64_t>("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(read<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(read<std::uint64_t>("18446744073709551614"), std::numeric_limits<std::uint64_t>::max() - 1);
    EXPECT_EQ(read<std::int64_t>("9007199254740993"), 9007199254740993);
}

TEST(Decode, TakesAnIntegralDoubleAsAnInteger)
{
    EXPECT_EQ(read<int>("3.0"), 3);
    EXPECT_EQ(read<int>("-3e2"), -300);
    EXPECT_EQ(read<unsigned>("-0.0"), 0U);
    EXPECT_EQ(read<std::int64_t>("1e18"), 1'000'000'000'000'000'000);
    EXPECT_EQ(read<std::uint64_t>("1e19"), 10'000'000'000'000'000'000U);
    EXPECT_EQ(error_of<int>("3.5"), "expected integer");
    EXPECT_EQ(error_of<std::uint64_t>("1e20"), "expected integer between 0 and 18446744073709551615");
}

TEST(Decode, TakesIntegersAsDoubles)
{
    EXPECT_EQ(read<double>("3"), 3.0);
    EXPECT_EQ(read<double>("18446744073709551615"), 18446744073709551615.0);
    EXPECT_EQ(read<double>("-9223372036854775808"), -9223372036854775808.0);
    EXPECT_EQ(read<float>("0.1"), 0.1F);
}

TEST(Decode, RefusesNumbersThatAreNotFinite)
{
    EXPECT_EQ(belay::decode<double>(json::value(HUGE_VAL)).error().text(), "expected number");
    EXPECT_EQ(belay::decode<double>(json::value(std::nan(""))).error().text(), "expected number");
    EXPECT_EQ(belay::decode<int>(json::value(std::nan(""))).error().text(), "expected integer");
    EXPECT_FALSE(belay::decode<int>(json::value(HUGE_VAL)));
    EXPECT_FALSE(belay::decode<std::uint64_t>(json::value(-HUGE_VAL)));
}

TEST(Decode, RefusesADoubleThatDoesNotFitAFloat)
{
    EXPECT_EQ(error_of<float>("1e39"), "expected number between -3.4028235e+38 and 3.4028235e+38");
    EXPECT_EQ(error_of<float>("-1e39"), "expected number between -3.4028235e+38 and 3.4028235e+38");
    EXPECT_EQ(read<float>("3.4028235e+38"), std::numeric_limits<float>::max());
    EXPECT_EQ(read<float>("-3.4028235e+38"), std::numeric_limits<float>::lowest());
    EXPECT_EQ(read<float>("3.4028234663852886e+38"), std::numeric_limits<float>::max());
}

TEST(Decode, GivesAbsentMembersTheirDefaults)
{
    EXPECT_EQ(*read<play_args>("{}"), play_args{});
    auto const out = read<play_args>(R"({"steps":7,"marks":[9],"seed":1})");
    ASSERT_TRUE(out);
    EXPECT_EQ(out->steps, 7);
    EXPECT_EQ(out->marks, std::vector{9});
    EXPECT_EQ(out->seed, 1);
    EXPECT_EQ(out->duration, 10);
}

struct free_args {
    json::value any = "default";
    json::object extra = {{"a", 1}};
    static constexpr belay::field docs[] = {belay::field("any").defaulted(), belay::field("extra").defaulted()};
};
BOOST_DESCRIBE_STRUCT(free_args, (), (any, extra))

TEST(Decode, TakesNullForWhatMayBeLeftOutAsAbsent)
{
    EXPECT_EQ(
        *read<play_args>(
            R"({"duration":null,"volume":null,"steps":null,"speed":null,"loop":null,"title":null,"loudness":null,)"
            R"("marks":null,"seed":null,"tries":null})"),
        play_args{});
    EXPECT_EQ(error_of<deploy_args>(R"({"service":null,"version":"1"})"), "/service: expected string");
    // A member that takes any value takes null as one of them.
    auto const out = read<free_args>(R"({"any":null,"extra":null})");
    ASSERT_TRUE(out);
    EXPECT_TRUE(out->any.is_null());
    EXPECT_EQ(out->extra, (json::object{{"a", 1}}));
}

TEST(Decode, TakesNullForAnOptionalWithADefaultAsAbsent)
{
    EXPECT_EQ(read<play_args>(R"({"tries":null})")->tries, 3);
}

TEST(Decode, BeginsANestedStructWithItsOwnDefaults)
{
    EXPECT_EQ(read<outer>(R"({"in":{}})")->in.x, 1);
}

TEST(Decode, ReadsMembersOfBases)
{
    auto const out = read<search_args>(R"({"query":"cats","limit":5})");
    ASSERT_TRUE(out);
    EXPECT_EQ(out->limit, 5);
    EXPECT_EQ(out->query, "cats");
    EXPECT_EQ(error_of<search_args>(R"({"query":"cats","limit":101})"), "/limit: expected integer between 1 and 100");
}

TEST(Decode, GivesThePathThroughDeepNesting)
{
    EXPECT_EQ(
        error_of<level_1>(R"({"two":{"three":{"x":{"four":[{"leaf":1},{"leaf":"no"}]}}}})"),
        "/two/three/x/four/1/leaf: expected integer");
    EXPECT_EQ(read<level_1>(R"({"two":{"three":{"x":{"four":[{"leaf":1}]}}}})")->two->three.at("x").four[0].leaf, 1);
}

TEST(Decode, FollowsAStructThatContainsItselfAsDeepAsTheValue)
{
    json::value in = {{"value", 0}, {"children", json::array()}};
    for (int i = 1; i < 200; ++i) {
        json::value next = {{"value", i}, {"children", json::array()}};
        next.at("children").as_array().push_back(std::move(in));
        in = std::move(next);
    }
    auto const out = belay::decode<tree>(in);
    ASSERT_TRUE(out);
    int depth = 1;
    for (auto const* at = &*out; !at->children.empty(); at = &at->children[0])
        ++depth;
    EXPECT_EQ(depth, 200);
}

TEST(Decode, EscapesThePathAsJsonPointer)
{
    EXPECT_EQ(error_of<escaped>(R"({"counts":{"a/b~c":"x"}})"), "/counts/a~1b~0c: expected integer");
    EXPECT_EQ(error_of<escaped>(R"({"counts":{"":"x"}})"), "/counts/: expected integer");
}

TEST(Decode, ShortensLongNamesOfTheCallerAtACharacter)
{
    json::object counts;
    counts["a" + std::string(1000, 'b')] = "x";
    EXPECT_EQ(
        belay::decode<escaped>(json::value{{"counts", counts}}).error().path, "/counts/a" + std::string(63, 'b') + "…");
    std::string umlauts = "a";
    for (int i = 0; i < 100; ++i)
        umlauts += "ü";
    counts.clear();
    counts[umlauts] = "x";
    EXPECT_EQ(
        belay::decode<escaped>(json::value{{"counts", counts}}).error().path, "/counts/" + umlauts.substr(0, 63) + "…");
}

TEST(Decode, NeverShowsTheValue)
{
    std::string const secret(100'000, 's');
    EXPECT_LT(belay::decode<level>(json::value(secret)).error().text().size(), 100U);
    EXPECT_LT(belay::decode<int>(json::value(secret)).error().text().size(), 100U);
}

TEST(Decode, KeepsLastOfEqualKeysAsTheParserDoes)
{
    EXPECT_EQ(read<place>(R"({"city":"a","city":"b"})")->city, "b");
}

TEST(Decode, ReadsAnObjectThatIsNotInsideAValue)
{
    json::object const in = {{"city", "Bern"}};
    EXPECT_EQ(belay::decode<place>(in)->city, "Bern");
    EXPECT_EQ((belay::decode<std::map<std::string, std::string>>(in)->at("city")), "Bern");
    EXPECT_EQ(belay::decode<place>(json::object()).error().text(), "/city: required");
    EXPECT_EQ((belay::decode<std::map<std::string, int>>(in).error().text()), "/city: expected integer");
}

TEST(Decode, SharesNoMemoryWithTheValue)
{
    std::optional<anything> kept;
    {
        json::monotonic_resource arena;
        auto const in = json::parse(
            R"({"any":{"a":["long enough to be allocated somewhere"]},"extra":{"b":[1,2,3]},)"
            R"("perhaps":[4,5],"many":[[6],{"c":"also long enough to be allocated"}]})",
            &arena);
        auto out = belay::decode<anything>(in);
        ASSERT_TRUE(out);
        kept.emplace(std::move(*out));
    }
    json::storage_ptr const standard;
    EXPECT_TRUE(*kept->any.storage() == *standard);
    EXPECT_TRUE(*kept->extra.storage() == *standard);
    EXPECT_TRUE(*kept->perhaps->storage() == *standard);
    EXPECT_EQ(text_of(kept->any), R"({"a":["long enough to be allocated somewhere"]})");
    EXPECT_EQ(text_of(kept->extra), R"({"b":[1,2,3]})");
    EXPECT_EQ(text_of(*kept->perhaps), "[4,5]");
    EXPECT_EQ(text_of(kept->many), R"([[6],{"c":"also long enough to be allocated"}])");
}

TEST(Decode, TakesAnyValueIncludingNull)
{
    EXPECT_TRUE(read<json::value>("null")->is_null());
    EXPECT_EQ(error_of<anything>("{}"), "/any: required");
    auto const out = read<anything>(R"({"any":null,"extra":{},"perhaps":null,"many":[null]})");
    ASSERT_TRUE(out);
    EXPECT_TRUE(out->any.is_null());
    EXPECT_FALSE(out->perhaps);
    EXPECT_EQ(out->many.size(), 1U);
}

TEST(Decode, NeverThrowsWhateverTheMembersAre)
{
    char const* const values[] = {"null",   "true",         "0",          "-1",         "18446744073709551615",
                                  "1e308",  "-1e308",       "0.1",        "\"\"",       "\"x\"",
                                  "[]",     "{}",           "[null]",     "[[]]",       "[{}]",
                                  "[true]", "{\"a\":null}", "{\"a\":[]}", "{\"a\":{}}", "{\"a\":1}"};
    auto const good = belay::encode(everything{}).as_object();
    for (char const* const text : values) {
        EXPECT_NO_THROW(static_cast<void>(error_of<everything>(text)));
        for (auto const& member : good) {
            auto in = good;
            in[member.key()] = json::parse(text);
            EXPECT_NO_THROW({
                auto const out = belay::decode<everything>(in);
                if (!out) {
                    EXPECT_TRUE(out.error().path.starts_with("/" + std::string(member.key())));
                }
            });
        }
    }
}

}
