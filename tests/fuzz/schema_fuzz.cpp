// JSON Schemas and values: any schema is taken or refused with a sentence, and any value held against it gets an
// answer within the limits. Input: a schema, the end of the line, a value; or a value alone, which is held against
// schemas of ours whose answers are known to agree with each other.
#include "json/schema_check.hpp"

#include <boost/json/parse.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

namespace json = belay::json;
using belay::detail::schema_check;
using belay::detail::schema_limits;

constexpr schema_limits limits{
    .max_schema_depth = 16, .max_schemas = 200, .max_depth = 40, .max_steps = 20'000, .max_pattern_size = 200};

void require(bool holds)
{
    if (!holds)
        std::abort();
}

std::optional<json::value> parsed(std::string_view text)
{
    json::error_code error;
    json::parse_options options;
    options.max_depth = 64;
    auto value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
    if (error)
        return std::nullopt;
    return value;
}

enum class verdict { good, bad, undecided };

verdict check(schema_check const& schema, json::value const& value)
{
    auto const outcome = schema.check(value);
    require(outcome == schema_check(schema).check(value));
    if (outcome)
        return verdict::good;
    auto const& error = outcome.error();
    require(!error.what.empty() && (error.path.empty() || error.path.front() == '/'));
    bool const is_given_up = error.what == "too much to be checked" || error.what == "nested too deeply to be checked";
    return is_given_up ? verdict::undecided : verdict::bad;
}

verdict check(json::object const& schema, json::value const& value)
{
    return check(schema_check(schema, limits), value);
}

void require_agreement(verdict a, verdict b)
{
    require(a == b || a == verdict::undecided || b == verdict::undecided);
}

verdict opposite(verdict of)
{
    if (of == verdict::undecided)
        return of;
    return of == verdict::good ? verdict::bad : verdict::good;
}

// Without references, so that they may be put into others.
constexpr char const* ours[] = {
    R"({"type":["integer","string"],"minimum":-3,"exclusiveMaximum":1e3,"multipleOf":0.5,"pattern":"^(a|b*)+\\d?$"})",
    R"({"properties":{"a":{"type":"string","maxLength":3}},"patternProperties":{"^.b":{"type":"number"}},
        "additionalProperties":{"items":{"type":"null"}},"propertyNames":{"minLength":1}})",
    R"({"prefixItems":[{"type":"integer"}],"contains":{"type":"string"},"maxContains":2,"uniqueItems":true})",
    R"({"anyOf":[{"required":["a"],"properties":{"a":true}},{"minProperties":2,"properties":{"b":true}},
        {"type":"array","prefixItems":[true]}],"unevaluatedProperties":false,"unevaluatedItems":{"type":"string"}})",
    R"({"if":{"type":"object"},"then":{"maxProperties":2,"dependentRequired":{"a":["b"]}},
        "else":{"oneOf":[{"type":"array"},{"minLength":2},{"enum":[1,"a",null,[2.0]]}]}})",
};

void check_ours(json::value const& value)
{
    for (auto const* const text : ours) {
        auto const schema = json::parse(text).as_object();
        auto const answer = check(schema, value);
        require_agreement(check(json::object{{"not", schema}}, value), opposite(answer));
        require_agreement(check(json::object{{"allOf", json::array{schema, true}}}, value), answer);
        require_agreement(check(json::object{{"anyOf", json::array{false, schema}}}, value), answer);
        require_agreement(
            check(json::object{{"oneOf", json::array{schema, json::object{{"not", schema}}}}}, value), verdict::good);
        require_agreement(check(json::object{{"if", schema}, {"then", true}, {"else", false}}, value), answer);
        require_agreement(check(json::object{{"items", schema}}, json::array{value}), answer);
    }
    require_agreement(check(json::object{{"const", value}}, value), verdict::good);
    require_agreement(check(json::object{{"enum", json::array{"x", value}}}, value), verdict::good);
    require_agreement(check(json::object{{"uniqueItems", true}}, json::array{value, value}), verdict::bad);
    static schema_check const tree(
        json::parse(R"({"items":{"$ref":"#"},"additionalProperties":{"$ref":"#"},"type":["array","object","null"]})")
            .as_object(),
        limits);
    static_cast<void>(check(tree, value));
}

}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    auto const line = bytes.find('\n');
    auto const schema = line == std::string_view::npos ? std::nullopt : parsed(bytes.substr(0, line));
    auto const value = parsed(schema ? bytes.substr(line + 1) : bytes);
    if (!value)
        return 0;
    if (!schema) {
        check_ours(*value);
        return 0;
    }
    if (!schema->is_object())
        return 0;
    try {
        static_cast<void>(check(schema->get_object(), *value));
    } catch (std::invalid_argument const& error) {
        require(std::string_view(error.what()).contains(": "));
    }
    return 0;
}
