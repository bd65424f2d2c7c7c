#include "json/schema_check.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace belay::inline v0::detail {

namespace {

schema_check compiled(std::string_view schema, schema_limits const& limits = {})
{
    return schema_check(json::parse(json::string_view(schema)).as_object(), limits);
}

/// The text of the error, or "good".
std::string outcome(std::string_view schema, std::string_view value, schema_limits const& limits = {})
{
    auto const checked = compiled(schema, limits).check(json::parse(json::string_view(value)));
    return checked ? "good" : checked.error().text();
}

std::string refusal_of(std::string_view schema, schema_limits const& limits = {})
{
    try {
        static_cast<void>(compiled(schema, limits));
    } catch (std::invalid_argument const& error) {
        return error.what();
    }
    return "taken";
}

struct row {
    std::string_view schema;
    std::string_view value;
    std::string_view says;
};

void expect(std::vector<row> const& rows)
{
    for (auto const& each : rows)
        EXPECT_EQ(outcome(each.schema, each.value), each.says) << each.schema << " " << each.value;
}

TEST(SchemaCheck, TakesEverythingWithoutKeywords)
{
    for (auto const* const value : {"null", "true", "1", "1.5", "\"a\"", "[1]", "{\"a\":1}"})
        EXPECT_EQ(outcome("{}", value), "good");
}

TEST(SchemaCheck, KnowsTypes)
{
    expect({
        {R"({"type":"null"})", "null", "good"},
        {R"({"type":"null"})", "0", "expected null"},
        {R"({"type":"boolean"})", "true", "good"},
        {R"({"type":"boolean"})", "0", "expected boolean"},
        {R"({"type":"string"})", "\"\"", "good"},
        {R"({"type":"string"})", "1", "expected string"},
        {R"({"type":"array"})", "[]", "good"},
        {R"({"type":"array"})", "{}", "expected array"},
        {R"({"type":"object"})", "{}", "good"},
        {R"({"type":"object"})", "[]", "expected object"},
        {R"({"type":"number"})", "1", "good"},
        {R"({"type":"number"})", "1.5", "good"},
        {R"({"type":"number"})", "\"1\"", "expected number"},
        {R"({"type":"integer"})", "3.0", "good"},
        {R"({"type":"integer"})", "18446744073709551615", "good"},
        {R"({"type":"integer"})", "1e300", "good"},
        {R"({"type":"integer"})", "3.5", "expected integer"},
        {R"({"type":["string","null"]})", "null", "good"},
        {R"({"type":["null","string"]})", "1", "expected string or null"},
        {R"({"type":["integer","number"]})", "\"\"", "expected number"},
    });
}

TEST(SchemaCheck, KnowsRanges)
{
    expect({
        {R"({"type":"integer","minimum":1,"maximum":50})", "50", "good"},
        {R"({"type":"integer","minimum":1,"maximum":50})", "51", "expected integer between 1 and 50"},
        {R"({"type":"integer","minimum":1,"maximum":50})", "\"1\"", "expected integer between 1 and 50"},
        {R"({"minimum":1.5})", "1", "expected number of at least 1.5"},
        {R"({"minimum":1.5})", "\"a\"", "good"},
        {R"({"maximum":3})", "3.5", "expected number of at most 3"},
        {R"({"exclusiveMinimum":0})", "0", "expected number above 0"},
        {R"({"exclusiveMinimum":0})", "0.1", "good"},
        {R"({"exclusiveMinimum":0,"maximum":1})", "2", "expected number above 0 and of at most 1"},
        {R"({"type":"integer","exclusiveMaximum":3})", "3", "expected integer below 3"},
        {R"({"minimum":9007199254740993})", "9007199254740992", "expected number of at least 9007199254740993"},
    });
}

TEST(SchemaCheck, KnowsMultiplesExactly)
{
    expect({
        {R"({"multipleOf":2})", "10", "good"},
        {R"({"multipleOf":2})", "7", "expected a multiple of 2"},
        {R"({"multipleOf":2})", "0", "good"},
        {R"({"multipleOf":2})", "-4", "good"},
        {R"({"multipleOf":0.0001})", "0.0075", "good"},
        {R"({"multipleOf":0.0001})", "0.00751", "expected a multiple of 0.0001"},
        {R"({"multipleOf":0.1})", "1.1", "good"},
        {R"({"multipleOf":0.01})", "4.35", "good"},
        {R"({"multipleOf":1e-8})", "12391239123", "good"},
        {R"({"multipleOf":0.5})", "1e308", "good"},
        {R"({"multipleOf":0.123456789})", "1e308", "expected a multiple of 0.123456789"},
        {R"({"multipleOf":3})", "18446744073709551615", "good"},
        {R"({"multipleOf":18446744073709551615})", "9223372036854775807",
         "expected a multiple of 18446744073709551615"},
        {R"({"multipleOf":100})", "50", "expected a multiple of 100"},
    });
}

TEST(SchemaCheck, KnowsTexts)
{
    expect({
        {R"({"minLength":2})", "\"a\"", "expected string of at least 2 characters"},
        {R"({"maxLength":1})", "\"ab\"", "expected string of at most 1 character"},
        {R"({"minLength":2,"maxLength":3})", "\"abcd\"", "expected string of 2 to 3 characters"},
        {R"({"minLength":2,"maxLength":2})", "\"a\"", "expected string of 2 characters"},
        {R"({"maxLength":2})", "\"\\ud83d\\udc32\\ud83d\\udc32\"", "good"},
        {R"({"minLength":2})", "\"\\ud83d\\udc32\"", "expected string of at least 2 characters"},
        {R"({"minLength":2.0})", "1", "good"},
        {R"({"pattern":"^a+$"})", "\"aa\"", "good"},
        {R"({"pattern":"^a+$"})", "\"ab\"", "expected string that matches ^a+$"},
        {R"({"format":"email"})", "\"no\"", "good"},
    });
}

TEST(SchemaCheck, KnowsConstants)
{
    expect({
        {R"({"enum":["a",1,null]})", "1.0", "good"},
        {R"({"enum":["a",1,null]})", "2", "expected one of \"a\", 1, null"},
        {R"({"enum":[[1,{"a":2}]]})", R"([1.0,{"a":2.0}])", "good"},
        {R"({"enum":[false]})", "0", "expected one of false"},
        {R"({"const":{"a":1,"b":2}})", R"({"b":2,"a":1})", "good"},
        {R"({"const":{"a":1}})", R"({"a":1,"b":2})", "expected {\"a\":1}"},
        {R"({"const":null})", "0", "expected null"},
        {R"({"const":9007199254740993})", "9007199254740992", "expected 9007199254740993"},
    });
}

TEST(SchemaCheck, ShortensALongListOfConstants)
{
    json::array names;
    for (int i = 0; i < 1000; ++i)
        names.emplace_back("name number " + std::to_string(i));
    auto const checked = schema_check(json::object{{"enum", names}}).check("x");
    ASSERT_FALSE(checked);
    EXPECT_LT(checked.error().what.size(), 400u);
    EXPECT_TRUE(checked.error().what.ends_with(", …")) << checked.error().what;
}

TEST(SchemaCheck, NamesThePlace)
{
    constexpr auto schema = R"({"type":"object","required":["where"],"properties":{
        "where":{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}},
        "stops":{"type":"array","items":{"$ref":"#/properties/where"}},
        "a/b~c":{"type":"null"}}})";
    expect({
        {schema, R"({"where":{"city":"Bern"}})", "good"},
        {schema, "{}", "/where: required"},
        {schema, R"({"where":{"city":7}})", "/where/city: expected string"},
        {schema, R"({"where":{"city":"a"},"stops":[{"city":"b"},{}]})", "/stops/1/city: required"},
        {schema, R"({"where":{"city":"a"},"a/b~c":1})", "/a~1b~0c: expected null"},
        {schema, "[]", "expected object"},
    });
}

TEST(SchemaCheck, KnowsMembers)
{
    expect({
        {R"({"additionalProperties":false,"properties":{"a":true}})", R"({"a":1})", "good"},
        {R"({"additionalProperties":false,"properties":{"a":true}})", R"({"a":1,"b":2})", "/b: unknown member"},
        {R"({"additionalProperties":{"type":"string"},"properties":{"a":true}})", R"({"a":1,"b":2})",
         "/b: expected string"},
        {R"({"patternProperties":{"^n_":{"type":"number"}},"additionalProperties":false})", R"({"n_a":1})", "good"},
        {R"({"patternProperties":{"^n_":{"type":"number"}},"additionalProperties":false})", R"({"n_a":"1"})",
         "/n_a: expected number"},
        {R"({"patternProperties":{"^n_":{"type":"number"}},"additionalProperties":false})", R"({"a":1})",
         "/a: unknown member"},
        {R"({"properties":{"a":{"minimum":2}},"patternProperties":{"a":{"maximum":3}}})", R"({"a":4})",
         "/a: expected number of at most 3"},
        {R"({"properties":{"a":false}})", R"({"a":4})", "/a: not allowed here"},
        {R"({"propertyNames":{"maxLength":2}})", R"({"abc":1})",
         "/abc: as a member's name: expected string of at most 2 characters"},
        {R"({"minProperties":1})", "{}", "expected object of at least 1 member"},
        {R"({"maxProperties":1})", R"({"a":1,"b":2})", "expected object of at most 1 member"},
        {R"({"dependentRequired":{"a":["b"]}})", R"({"a":1})", "/b: required together with a"},
        {R"({"dependentRequired":{"a":["b"]}})", R"({"c":1})", "good"},
        {R"({"dependentSchemas":{"a":{"required":["c"]}}})", R"({"a":1})", "/c: required"},
        {R"({"dependentSchemas":{"a":{"required":["c"]}}})", R"({"b":1})", "good"},
        {R"({"required":["a"]})", "[]", "good"},
    });
}

TEST(SchemaCheck, KnowsItems)
{
    expect({
        {R"({"items":{"type":"integer"}})", "[1,2]", "good"},
        {R"({"items":{"type":"integer"}})", "[1,\"2\"]", "/1: expected integer"},
        {R"({"prefixItems":[{"type":"integer"},{"type":"string"}]})", "[1,\"a\",null]", "good"},
        {R"({"prefixItems":[{"type":"integer"},{"type":"string"}]})", "[1,2]", "/1: expected string"},
        {R"({"prefixItems":[true],"items":false})", "[1,2]", "/1: one item too many"},
        {R"({"prefixItems":[true],"items":{"type":"null"}})", "[1,2]", "/1: expected null"},
        {R"({"minItems":1})", "[]", "expected array of at least 1 item"},
        {R"({"maxItems":2})", "[1,2,3]", "expected array of at most 2 items"},
        {R"({"uniqueItems":true})", "[1,2,{\"a\":1,\"b\":[2]},{\"b\":[2.0],\"a\":1.0}]", "/3: the same as item 2"},
        {R"({"uniqueItems":true})", "[1,true,\"1\",[1],{\"a\":1},null,0,false,[],{}]", "good"},
        {R"({"uniqueItems":false})", "[1,1]", "good"},
        {R"({"contains":{"type":"string"}})", "[1,\"a\"]", "good"},
        {R"({"contains":{"type":"string"}})", "[1]",
         "expected array of at least 1 item like those under contains, not 0"},
        {R"({"contains":{"type":"string"},"minContains":2})", "[\"a\"]",
         "expected array of at least 2 items like those under contains, not 1"},
        {R"({"contains":{"type":"string"},"maxContains":1})", "[\"a\",\"b\"]",
         "expected array of 1 item like those under contains, not 2"},
        {R"({"contains":{"type":"string"},"minContains":0})", "[]", "good"},
        {R"({"minContains":3})", "[]", "good"},
    });
}

TEST(SchemaCheck, Combines)
{
    expect({
        {R"({"allOf":[{"minimum":1},{"maximum":3}]})", "2", "good"},
        {R"({"allOf":[{"minimum":1},{"maximum":3}]})", "4", "expected number of at most 3"},
        {R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "null", "good"},
        {R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "1", "expected string or null"},
        {R"({"anyOf":[{"type":"null"},{"properties":{"a":{"type":"string"}},"type":"object"}]})", R"({"a":1})",
         "/a: expected string"},
        {R"({"anyOf":[{"required":["a"]},{"required":["b"]}]})", "{}", "fits none of the 2 alternatives"},
        {R"({"oneOf":[{"minimum":2},{"maximum":3}]})", "1", "good"},
        {R"({"oneOf":[{"minimum":2},{"maximum":3}]})", "2", "fits more than one of the alternatives in oneOf"},
        {R"({"oneOf":[{"const":"a"},{"const":"b"}]})", "\"c\"", "expected \"a\" or \"b\""},
        {R"({"not":{"type":"string"}})", "1", "good"},
        {R"({"not":{"type":"string"}})", "\"a\"", "excluded by not"},
        {R"({"if":{"const":1},"then":{"type":"string"},"else":{"type":"number"}})", "1", "expected string"},
        {R"({"if":{"const":1},"then":{"type":"string"},"else":{"type":"number"}})", "\"a\"", "expected number"},
        {R"({"if":{"const":1},"else":false})", "1", "good"},
        {R"({"then":false,"else":false})", "1", "good"},
    });
}

TEST(SchemaCheck, FollowsReferencesWithinTheSchema)
{
    expect({
        {R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}})", "\"a\"", "expected integer"},
        {R"({"$ref":"#/$defs/n","maximum":3,"$defs":{"n":{"type":"integer"}}})", "4", "expected number of at most 3"},
        {R"({"$ref":"#/definitions/n","definitions":{"n":{"type":"integer"}}})", "\"a\"", "expected integer"},
        {R"({"$ref":"#n","$defs":{"x":{"$anchor":"n","type":"integer"}}})", "\"a\"", "expected integer"},
        {R"({"$dynamicRef":"#n","$defs":{"x":{"$dynamicAnchor":"n","type":"integer"}}})", "\"a\"", "expected integer"},
        {R"({"$ref":"#/$defs/a~1b%25c","$defs":{"a/b%c":{"type":"integer"}}})", "\"a\"", "expected integer"},
        {R"({"$id":"https://x.test/s","$ref":"https://x.test/s#/$defs/n","$defs":{"n":{"type":"integer"}}})", "\"a\"",
         "expected integer"},
        {R"({"$id":"https://x.test/d/s","$ref":"../n","$defs":{"n":{"$id":"/n","type":"integer"}}})", "\"a\"",
         "expected integer"},
        {R"({"$ref":"n#/$defs/m","$defs":{"x":{"$id":"n","$defs":{"m":{"type":"integer"}}}}})", "\"a\"",
         "expected integer"},
        {R"({"$ref":"#/prefixItems/1","prefixItems":[true,{"type":["array","null"]}]})", "1", "expected array or null"},
    });
}

TEST(SchemaCheck, FollowsASchemaIntoItself)
{
    constexpr auto tree = R"({"type":"object","properties":{"name":{"type":"string"},
        "children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]})";
    EXPECT_EQ(outcome(tree, R"({"name":"a","children":[{"name":"b","children":[]}]})"), "good");
    EXPECT_EQ(
        outcome(tree, R"({"name":"a","children":[{"name":"b","children":[{}]}]})"),
        "/children/0/children/0/name: required");
}

TEST(SchemaCheck, KnowsWhatIsLeftOver)
{
    constexpr auto members
        = R"({"allOf":[{"properties":{"a":true}}],"anyOf":[{"required":["b"],"properties":{"b":true}},
        {"required":["c"],"properties":{"c":true}},true],"unevaluatedProperties":false})";
    constexpr auto items = R"({"prefixItems":[true],"contains":{"type":"string"},"minContains":0,
        "unevaluatedItems":{"type":"null"}})";
    expect({
        {members, R"({"a":1,"b":2,"c":3})", "good"},
        {members, R"({"a":1,"d":2})", "/d: unknown member"},
        {R"({"anyOf":[{"properties":{"a":{"type":"string"}}},true],"unevaluatedProperties":false})", R"({"a":1})",
         "/a: unknown member"},
        {R"({"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":true}},
             "unevaluatedProperties":false})",
         R"({"a":1,"b":2})", "good"},
        {R"({"if":{"properties":{"a":{"const":1}},"required":["a"]},"else":{"properties":{"b":true}},
             "unevaluatedProperties":false})",
         R"({"a":2,"b":2})", "/a: unknown member"},
        {R"({"$ref":"#/$defs/x","unevaluatedProperties":false,"$defs":{"x":{"properties":{"a":true}}}})", R"({"a":2})",
         "good"},
        {R"({"not":{"not":{"properties":{"a":true}}},"unevaluatedProperties":false})", R"({"a":2})",
         "/a: unknown member"},
        {R"({"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false})", R"({"a":2})", "good"},
        {items, R"([1,"a",null,"b"])", "good"},
        {items, R"([1,"a",2])", "/2: expected null"},
        {R"({"prefixItems":[true],"unevaluatedItems":false})", "[1,2]", "/1: one item too many"},
    });
}

TEST(SchemaCheck, RefusesWhatItCannotUse)
{
    for (auto const& [schema, says] : {
             std::pair{R"({"$ref":"#/$defs/x"})", "/$ref: \"#/$defs/x\" is not in this schema"},
             {R"({"properties":{"a":{"$ref":"https://x.test/other"}}})",
              "/properties/a/$ref: \"https://x.test/other\""},
             {R"({"$ref":"file:///etc/passwd"})", "never fetched"},
             {R"({"$ref":"#gone"})", "put it under $defs"},
             {R"({"$ref":1})", "/$ref: must be a string"},
             {R"({"$schema":"http://json-schema.org/draft-07/schema#"})", "/$schema: only draft 2020-12"},
             {R"({"properties":{"a":{"pattern":"("}}})", "/properties/a/pattern: this regular expression"},
             {R"({"patternProperties":{"(":true}})", "/patternProperties/(: this regular expression"},
             {R"({"type":"int"})", "/type: must be null, boolean"},
             {R"({"type":["string","text"]})", "/type/1: must be"},
             {R"({"type":[]})", "/type: must not be empty"},
             {R"({"properties":[]})", "/properties: must be an object"},
             {R"({"properties":{"a":1}})", "/properties/a: a schema must be an object, true or false"},
             {R"({"items":[{}]})", "/items: must be a schema; a list of schemas is called prefixItems"},
             {R"({"allOf":[]})", "/allOf: must not be empty"},
             {R"({"allOf":{}})", "/allOf: must be an array"},
             {R"({"required":["a",1]})", "/required/1: must be a string"},
             {R"({"minLength":-1})", "/minLength: must be an integer of at least 0"},
             {R"({"minLength":1.5})", "/minLength: must be an integer"},
             {R"({"minimum":"1"})", "/minimum: must be a number"},
             {R"({"multipleOf":0})", "/multipleOf: must be above 0"},
             {R"({"uniqueItems":1})", "/uniqueItems: must be true or false"},
             {R"({"enum":1})", "/enum: must be an array"},
             {R"({"$id":"a#b"})", "/$id: an $id has no fragment"},
             {R"({"$defs":{"a":{"type":"int"}}})", "/$defs/a/type"},
         })
        EXPECT_NE(refusal_of(schema).find(says), std::string::npos) << schema << ": " << refusal_of(schema);
}

TEST(SchemaCheck, TakesItsOwnDialect)
{
    EXPECT_EQ(refusal_of(R"({"$schema":"https://json-schema.org/draft/2020-12/schema"})"), "taken");
    EXPECT_EQ(refusal_of(R"({"$schema":"https://json-schema.org/draft/2020-12/schema#"})"), "taken");
    EXPECT_EQ(refusal_of(R"({"unknown":{"type":"int"},"contentEncoding":"base64"})"), "taken");
}

TEST(SchemaCheck, RefusesACircleThatGoesNowhere)
{
    for (auto const* const schema :
         {R"({"$ref":"#"})",
          R"({"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}})",
          R"({"not":{"$ref":"#"}})", R"({"properties":{"a":{"if":{"$ref":"#/properties/a"}}}})"})
        EXPECT_NE(refusal_of(schema).find("would never end"), std::string::npos)
            << schema << ": " << refusal_of(schema);
    EXPECT_EQ(refusal_of(R"({"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":true}})"), "taken");
}

TEST(SchemaCheck, HasLimitsForSchemas)
{
    std::string deep = "{}";
    for (int i = 0; i < 30; ++i)
        deep = R"({"not":)" + deep + "}";
    EXPECT_EQ(refusal_of(deep, {.max_schema_depth = 30}), "taken");
    EXPECT_NE(refusal_of(deep, {.max_schema_depth = 29}).find("nested too deeply"), std::string::npos);
    EXPECT_NE(refusal_of(deep, {.max_schemas = 30}).find("too many parts"), std::string::npos);
    EXPECT_NE(refusal_of(R"({"pattern":"a{50}"})", {.max_pattern_size = 40}).find("too large"), std::string::npos);
}

TEST(SchemaCheck, HasLimitsForValues)
{
    constexpr auto nested = R"({"items":{"$ref":"#"}})";
    EXPECT_EQ(outcome(nested, "[[[[1]]]]", {.max_depth = 9}), "good");
    EXPECT_EQ(outcome(nested, "[[[[1]]]]", {.max_depth = 8}), "nested too deeply to be checked");
    EXPECT_EQ(outcome(R"({"items":{"type":"integer"}})", "[1,2,3]", {.max_steps = 4}), "good");
    EXPECT_EQ(outcome(R"({"items":{"type":"integer"}})", "[1,2,3]", {.max_steps = 3}), "too much to be checked");
    EXPECT_EQ(outcome(R"({"pattern":"^a*$"})", "\"aaaaaaaaaaaaaaaa\"", {.max_steps = 5}), "too much to be checked");
}

// What gives up has no answer, and `not` must not make one of it.
TEST(SchemaCheck, DoesNotTurnGivingUpAround)
{
    schema_limits const few{.max_steps = 3};
    for (auto const* const schema :
         {R"({"not":{"items":{"type":"integer"}}})", R"({"anyOf":[{"items":{"type":"integer"}},true]})",
          R"({"oneOf":[true,{"items":{"type":"string"}}]})", R"({"if":{"items":{"type":"integer"}}})",
          R"({"contains":{"items":true},"minContains":0})", R"({"enum":[[1,2,3,5],[1,2,3,4]]})"})
        EXPECT_EQ(outcome(schema, "[1,2,3,4]", few), "too much to be checked") << schema;
}

TEST(SchemaCheck, BoundsASchemaThatDoublesItself)
{
    std::string schema = R"({"$ref":"#/$defs/0","$defs":{)";
    for (int i = 0; i < 40; ++i) {
        auto const next = R"({"$ref":"#/$defs/)" + std::to_string(i + 1) + "\"}";
        schema += "\"" + std::to_string(i) + R"(":{"allOf":[)" + next + "," + next + "]},";
    }
    schema += R"("40":{}}})";
    EXPECT_EQ(outcome(schema, "1", {.max_steps = 10'000}), "too much to be checked");
}

TEST(SchemaCheck, OutlivesTheSchemaItWasMadeFrom)
{
    auto const check = [] {
        json::object const schema{{"enum", json::array{"a rather long text that is not in the object itself", "b"}}};
        return schema_check(schema);
    }();
    EXPECT_TRUE(check.check("b"));
    EXPECT_FALSE(check.check("c"));
}

}

}
