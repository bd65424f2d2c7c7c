#include "samples.hpp"

#include <boost/json/monotonic_resource.hpp>

#include <gtest/gtest.h>

#include <cmath>

using namespace samples;

namespace {

everything full()
{
    everything all;
    all.flag = true;
    all.i8 = -128;
    all.u8 = 255;
    all.i16 = -32768;
    all.u16 = 65535;
    all.i32 = std::numeric_limits<int>::min();
    all.u32 = std::numeric_limits<unsigned>::max();
    all.i64 = std::numeric_limits<std::int64_t>::min();
    all.u64 = std::numeric_limits<std::uint64_t>::max();
    all.big = 9007199254740993;
    all.f32 = 0.1F;
    all.f64 = 1e-300;
    all.text = "a \"quoted\"\nline, Zürich, \xF0\x9F\x98\x80";
    all.how = level::high;
    all.maybe = "yes";
    all.list = {"", "b"};
    all.bits = {true, false, true};
    all.counts = {{"", 1}, {"b", -2}};
    all.grid = {{}, {1}, {2, 3}};
    all.gaps = {1, std::nullopt, 3};
    all.places = {{"home", {{"Bern", "CH"}, {"Ulm", std::nullopt}}}};
    all.any = json::parse(R"([1,null,{"a":0.5}])");
    all.extra = {{"k", "v"}};
    return all;
}

TEST(Encode, WritesMembersInTheOrderOfDeclaration)
{
    EXPECT_EQ(text_of(deploy_args{"web", "1.2", 3}), R"({"service":"web","version":"1.2","copies":3})");
}

TEST(Encode, LeavesOutAbsentOptionalMembers)
{
    EXPECT_EQ(text_of(deploy_args{"web", "1.2", std::nullopt}), R"({"service":"web","version":"1.2"})");
}

TEST(Encode, WritesNullForAbsentOptionalsElsewhere)
{
    EXPECT_EQ(text_of(std::vector<std::optional<int>>{1, std::nullopt}), "[1,null]");
    EXPECT_EQ(text_of(std::map<std::string, std::optional<int>>{{"a", std::nullopt}}), R"({"a":null})");
    EXPECT_EQ(text_of(std::optional<place>()), "null");
}

TEST(Encode, WritesMembersOfBasesFirst)
{
    search_args args;
    args.query = "cats";
    EXPECT_EQ(text_of(args), R"({"limit":20,"query":"cats"})");
}

TEST(Encode, WritesAnEmptyStructAsAnEmptyObject)
{
    EXPECT_EQ(text_of(nothing{}), "{}");
}

TEST(Encode, WritesNumbersPlainly)
{
    EXPECT_EQ(text_of(std::vector{10.0, 0.5, 3.14, 100000.0, 1e21}), "[10,0.5,3.14,100000,1e+21]");
    EXPECT_EQ(text_of(std::vector{0.1F, 16777216.0F, -2.5F, 1e-30F}), "[0.1,16777216,-2.5,1e-30]");
    EXPECT_EQ(text_of(std::int8_t(-7)), "-7");
    EXPECT_EQ(text_of(std::uint8_t(65)), "65");
}

TEST(Encode, WritesNullForNumbersThatAreNotFinite)
{
    EXPECT_TRUE(belay::encode(std::nan("")).is_null());
    EXPECT_TRUE(belay::encode(-HUGE_VAL).is_null());
    EXPECT_TRUE(belay::encode(HUGE_VALF).is_null());
}

TEST(Encode, UsesTheUnsignedKindOnlyIfItMust)
{
    EXPECT_TRUE(belay::encode(std::uint64_t(5)).is_int64());
    EXPECT_TRUE(belay::encode(std::numeric_limits<std::uint64_t>::max()).is_uint64());
}

TEST(Encode, WritesEnumsAsNames)
{
    EXPECT_EQ(text_of(level::low), "\"low\"");
    EXPECT_EQ(text_of(green), "\"green\"");
}

TEST(Encode, RefusesAnEnumValueWithoutAName)
{
    EXPECT_THROW(static_cast<void>(belay::encode(static_cast<level>(9))), std::logic_error);
}

TEST(Encode, PutsEverythingIntoTheGivenStorage)
{
    json::monotonic_resource arena;
    json::storage_ptr const storage(&arena);
    auto const out = belay::encode(full(), storage);
    EXPECT_EQ(out.storage().get(), storage.get());
    EXPECT_EQ(out.at("list").storage().get(), storage.get());
    EXPECT_EQ(out.at("places").at("home").at(0).at("city").storage().get(), storage.get());
    EXPECT_EQ(out.at("any").storage().get(), storage.get());
    EXPECT_EQ(out.at("extra").storage().get(), storage.get());
}

TEST(Encode, MakesWhatDecodeReads)
{
    auto const out = belay::decode<everything>(belay::encode(full()));
    ASSERT_TRUE(out) << out.error().text();
    EXPECT_EQ(*out, full());
}

TEST(Encode, MakesWhatDecodeReadsThroughText)
{
    auto const out = read<everything>(text_of(full()));
    ASSERT_TRUE(out) << out.error().text();
    EXPECT_EQ(*out, full());
    EXPECT_EQ(text_of(*out), text_of(full()));
}

TEST(Encode, MakesWhatDecodeReadsForEmptyAndNestedStructs)
{
    trip const journey{{"Bern", "CH"}, {{"Ulm", std::nullopt}}, {{"ann", {"Rom", "IT"}}}, place{"Oslo", "NO"}};
    EXPECT_EQ(*read<trip>(text_of(journey)), journey);
    EXPECT_EQ(*read<trip>(text_of(trip{})), trip{});
    EXPECT_EQ(*read<play_args>(text_of(play_args{})), play_args{});
}

TEST(Encode, KeepsEveryFloat)
{
    for (float const value :
         {0.1F, 1.0F / 3, std::numeric_limits<float>::min(), std::numeric_limits<float>::max(),
          std::numeric_limits<float>::denorm_min(), -0.0F, 123456.789F})
        EXPECT_EQ(read<float>(text_of(value)), value);
}

}
