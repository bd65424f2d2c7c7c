#include "samples.hpp"

#include <gtest/gtest.h>

using namespace samples;

namespace {

struct bad_default {
    int copies = 0;
    static constexpr belay::field docs[] = {belay::field("copies").range(1, 50).defaulted()};
};
BOOST_DESCRIBE_STRUCT(bad_default, (), (copies))

struct unnamed_default {
    plain_enum colour{};
    static constexpr belay::field docs[] = {belay::field("colour").defaulted()};
};
BOOST_DESCRIBE_STRUCT(unnamed_default, (), (colour))

struct misspelt {
    int copies = 0;
    static constexpr belay::field docs[] = {belay::field("copy").describe("how many")};
};
BOOST_DESCRIBE_STRUCT(misspelt, (), (copies))

struct ranged_text {
    std::string name;
    static constexpr belay::field docs[] = {belay::field("name").range(1, 2)};
};
BOOST_DESCRIBE_STRUCT(ranged_text, (), (name))

struct hiding : paged {
    std::string limit;
};
BOOST_DESCRIBE_STRUCT(hiding, (paged), (limit))

class guarded {
public:
    int open = 0;

private:
    int shut_ = 0;
    BOOST_DESCRIBE_CLASS(guarded, (), (open), (), (shut_))
};

TEST(Schema, OfAnEmptyStructIsClosed)
{
    EXPECT_EQ(schema_text<nothing>(), R"({"type":"object","properties":{},"additionalProperties":false})");
}

TEST(Schema, ShowsTypesNotesAndWhatIsRequiredInTheOrderOfDeclaration)
{
    EXPECT_EQ(
        schema_text<deploy_args>(),
        R"({"type":"object","properties":{)"
        R"("service":{"type":"string","description":"name in the service catalogue"},)"
        R"("version":{"type":"string"},)"
        R"("copies":{"type":"integer","description":"how many to run","minimum":1,"maximum":50}},)"
        R"("required":["service","version"]})");
}

TEST(Schema, ShowsDefaultsFromTheDefaultConstructedStructAsPlainNumbers)
{
    EXPECT_EQ(
        schema_text<play_args>(),
        R"({"type":"object","properties":{)"
        R"("duration":{"type":"number","description":"seconds","minimum":0.5,"maximum":3600,"default":10},)"
        R"("volume":{"type":"number","minimum":0,"maximum":3.14,"default":0.5},)"
        R"("steps":{"type":"integer","default":5},)"
        R"("speed":{"type":"number","minimum":0,"default":0.1},)"
        R"("loop":{"type":"boolean","default":true},)"
        R"("title":{"type":"string","default":"none"},)"
        R"("loudness":{"type":"string","description":"how loud","enum":["low","middle","high"],"default":"middle"},)"
        R"("marks":{"type":"array","items":{"type":"integer"},"default":[1,2]},)"
        R"("seed":{"type":"integer"},)"
        R"("tries":{"type":"integer","maximum":5,"default":3}}})");
}

TEST(Schema, KeepsIntegralBoundsAndDefaultsAsIntegersForAnySerialiser)
{
    auto const schema = belay::schema_of<play_args>();
    auto const& duration = schema.at("properties").at("duration").as_object();
    EXPECT_TRUE(duration.at("maximum").is_int64());
    EXPECT_TRUE(duration.at("default").is_int64());
    EXPECT_TRUE(duration.at("minimum").is_double());
}

TEST(Schema, CoversEveryType)
{
    EXPECT_EQ(
        schema_text<everything>(),
        R"({"type":"object","properties":{)"
        R"("flag":{"type":"boolean"},)"
        R"("i8":{"type":"integer"},)"
        R"("u8":{"type":"integer","minimum":0},)"
        R"("i16":{"type":"integer"},)"
        R"("u16":{"type":"integer","minimum":0},)"
        R"("i32":{"type":"integer"},)"
        R"("u32":{"type":"integer","minimum":0},)"
        R"("i64":{"type":"integer"},)"
        R"("u64":{"type":"integer","minimum":0},)"
        R"("big":{"type":"integer"},)"
        R"("f32":{"type":"number"},)"
        R"("f64":{"type":"number"},)"
        R"("text":{"type":"string"},)"
        R"("how":{"type":"string","enum":["low","middle","high"]},)"
        R"("maybe":{"type":"string"},)"
        R"("list":{"type":"array","items":{"type":"string"}},)"
        R"("bits":{"type":"array","items":{"type":"boolean"}},)"
        R"("counts":{"type":"object","additionalProperties":{"type":"integer"}},)"
        R"("grid":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},)"
        R"("gaps":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}},)"
        R"("places":{"type":"object","additionalProperties":{"type":"array","items":{"type":"object","properties":)"
        R"({"city":{"type":"string"},"country":{"type":"string"}},"required":["city"]}}},)"
        R"("any":{},)"
        R"("extra":{"type":"object"}},)"
        R"("required":["flag","i8","u8","i16","u16","i32","u32","i64","u64","big","f32","f64","text","how","list",)"
        R"("bits","counts","grid","gaps","places","any","extra"]})");
}

TEST(Schema, InlinesNestedStructs)
{
    EXPECT_EQ(
        schema_text<level_1>(),
        R"({"type":"object","properties":{"two":{"type":"object","properties":{"three":{"type":"object",)"
        R"("additionalProperties":{"type":"object","properties":{"four":{"type":"array","items":{"type":"object",)"
        R"("properties":{"leaf":{"type":"integer"}},"required":["leaf"]}}},"required":["four"]}}},)"
        R"("required":["three"]}}})");
}

TEST(Schema, OfOneStructTwiceIsNotACircle)
{
    auto const schema = belay::schema_of<trip>();
    auto const& properties = schema.at("properties").as_object();
    EXPECT_EQ(properties.at("where"), properties.at("stops").at("items"));
    EXPECT_EQ(properties.at("where"), properties.at("home"));
}

TEST(Schema, IncludesBaseClassesFirstWithTheirNotes)
{
    EXPECT_EQ(
        schema_text<search_args>(),
        R"({"type":"object","properties":{)"
        R"("limit":{"type":"integer","description":"page size","minimum":1,"maximum":100,"default":20},)"
        R"("cursor":{"type":"string","description":"from the page before"},)"
        R"("query":{"type":"string","description":"what to look for"}},"required":["query"]})");
}

TEST(Schema, UsesTheNotesOfABaseIfTheStructHasNone)
{
    EXPECT_EQ(
        schema_text<plain_search_args>(),
        R"({"type":"object","properties":{)"
        R"("limit":{"type":"integer","description":"page size","minimum":1,"maximum":100,"default":20},)"
        R"("cursor":{"type":"string","description":"where to go on"},)"
        R"("query":{"type":"string"}},"required":["query"]})");
}

TEST(Schema, LeavesOutMembersThatAreNotPublic)
{
    EXPECT_EQ(
        schema_text<guarded>(), R"({"type":"object","properties":{"open":{"type":"integer"}},"required":["open"]})");
}

TEST(Schema, TakesAMemberCalledDocsForAMember)
{
    EXPECT_EQ(
        schema_text<library>(),
        R"({"type":"object","properties":{"docs":{"type":"array","items":{"type":"string"}}},"required":["docs"]})");
}

TEST(Schema, ShowsOneSidedAndVeryLargeBounds)
{
    auto const schema = belay::schema_of<bounded>();
    EXPECT_EQ(
        belay::json_text::to_json(schema.at("properties")),
        R"({"at_least":{"type":"integer","minimum":-3},)"
        R"("at_most":{"type":"number","maximum":2.5},)"
        R"("few":{"type":"integer","minimum":0,"maximum":10},)"
        R"("huge":{"type":"integer","minimum":1,"maximum":18446744073709551615},)"
        R"("tiny":{"type":"integer","minimum":-1000}})");
}

TEST(Schema, WorksForTypesThatAreNotStructs)
{
    EXPECT_EQ(schema_text<std::string>(), R"({"type":"string"})");
    EXPECT_EQ(schema_text<level>(), R"({"type":"string","enum":["low","middle","high"]})");
    EXPECT_EQ(schema_text<plain_enum>(), R"({"type":"string","enum":["red","green"]})");
    EXPECT_EQ(schema_text<json::value>(), "{}");
    EXPECT_EQ(schema_text<json::object>(), R"({"type":"object"})");
    EXPECT_EQ(
        (schema_text<std::map<std::string, double>>()),
        R"({"type":"object","additionalProperties":{"type":"number"}})");
    EXPECT_EQ(schema_text<std::optional<bool>>(), R"({"anyOf":[{"type":"boolean"},{"type":"null"}]})");
}

TEST(Schema, RefusesADefaultOutsideItsRange)
{
    try {
        static_cast<void>(belay::schema_of<bad_default>());
        FAIL() << "no exception";
    } catch (std::logic_error const& error) {
        EXPECT_STREQ(error.what(), "the default of copies is outside its range");
    }
}

TEST(Schema, RefusesADefaultWithoutAName)
{
    EXPECT_THROW(static_cast<void>(belay::schema_of<unnamed_default>()), std::logic_error);
}

TEST(Schema, KnowsAtCompileTimeThatANoteNamesNoMember)
{
    static_assert(!belay::detail::docs_name_members<misspelt>());
    static_assert(belay::detail::docs_name_members<search_args>());
    static_assert(belay::detail::docs_name_members<nothing>());
}

TEST(Schema, KnowsAtCompileTimeThatARangeIsNotOfANumber)
{
    static_assert(!belay::detail::ranges_are_of_numbers<ranged_text>());
    static_assert(!belay::detail::ranges_are_of_numbers<hiding>());
    static_assert(belay::detail::ranges_are_of_numbers<play_args>());
}

TEST(Field, RefusesARangeThatEndsBeforeItBegins)
{
    EXPECT_THROW(static_cast<void>(belay::field("a").range(2, 1)), std::logic_error);
    EXPECT_THROW(static_cast<void>(belay::field("a").maximum(1).minimum(1.5)), std::logic_error);
    EXPECT_NO_THROW(static_cast<void>(belay::field("a").range(1, 1)));
}

TEST(Field, LeavesTheOneItWasMadeFromUnchanged)
{
    constexpr belay::field first("a");
    constexpr belay::field second = first.describe("text").defaulted();
    EXPECT_EQ(first.description(), "");
    EXPECT_FALSE(first.is_defaulted());
    EXPECT_EQ(second.description(), "text");
    EXPECT_TRUE(second.is_defaulted());
    EXPECT_FALSE(second.has_range());
}

}
