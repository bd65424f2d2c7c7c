#include "json/schema_check.hpp"

#include "json/schema_program.hpp"
#include "json/serialize.hpp"
#include "json/values.hpp"
#include "json/wording.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace belay::inline v0::detail {

namespace {

// Texts of the schema that errors quote: as long as a line.
constexpr std::size_t max_quoted_bytes = 256;
// A schema applied to a value takes about as long as this many bits of a pattern.
constexpr std::size_t pattern_steps_in_one = 8;

unsigned types_of(json::value const& in) noexcept
{
    switch (in.kind()) {
    case json::kind::null: return type_bit::null;
    case json::kind::bool_: return type_bit::boolean;
    case json::kind::string: return type_bit::string;
    case json::kind::array: return type_bit::array;
    case json::kind::object: return type_bit::object;
    default: break;
    }
    auto const number = *number_of(in);
    return std::isfinite(number) && number == std::trunc(number) ? type_bit::number | type_bit::integer
                                                                 : type_bit::number;
}

std::size_t code_point_count(std::string_view utf8)
{
    return static_cast<std::size_t>(
        std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_within(std::size_t count, schema_node::counts const& limits) noexcept
{
    return count >= limits.low && count <= limits.high;
}

// --- wording

std::string type_names(unsigned types)
{
    static constexpr std::pair<unsigned, std::string_view> names[]
        = {{type_bit::boolean, "boolean"}, {type_bit::integer, "integer"}, {type_bit::number, "number"},
           {type_bit::string, "string"},   {type_bit::array, "array"},     {type_bit::object, "object"},
           {type_bit::null, "null"}};
    if (types & type_bit::number)
        types &= ~type_bit::integer;
    std::string out;
    for (auto const& [bit, name] : names) {
        if (!(types & bit))
            continue;
        if (!out.empty())
            out += " or ";
        out += name;
    }
    return out;
}

/// "expected integer between 1 and 50", "expected number above 0 and of at most 1"
std::string expected_in_range(schema_node const& node, std::string_view type)
{
    if (!node.above && !node.below)
        return expected_number(type, node.minimum, node.maximum);
    std::string out = "expected " + std::string(type);
    char const* between = " ";
    auto const add = [&](char const* words, field::bound const& bound) {
        if (!bound)
            return;
        out += between;
        out += words + number_text(*bound);
        between = " and ";
    };
    add("of at least ", node.minimum);
    add("above ", node.above);
    add("of at most ", node.maximum);
    add("below ", node.below);
    return out;
}

/// "expected string of at least 3 characters"
std::string expected_count(std::string_view type, schema_node::counts const& limits, std::string_view unit)
{
    bool const has_high = limits.high != std::numeric_limits<std::size_t>::max();
    std::string out = "expected " + std::string(type) + " of ";
    if (has_high && limits.low == limits.high)
        out += std::to_string(limits.low);
    else if (has_high && limits.low > 0)
        out += std::to_string(limits.low) + " to " + std::to_string(limits.high);
    else if (has_high)
        out += "at most " + std::to_string(limits.high);
    else
        out += "at least " + std::to_string(limits.low);
    out += " " + std::string(unit);
    bool const is_one = has_high ? limits.high == 1 : limits.low == 1;
    return is_one ? out : out + "s";
}

std::string quoted(json::value const& value)
{
    auto text = json_text::to_json(value);
    return text.size() > max_quoted_bytes ? "what the schema says" : text;
}

std::string expected_one_of(json::array const& values)
{
    std::string out = "expected one of ";
    for (auto const& each : values) {
        if (&each != &values.front())
            out += ", ";
        if (out.size() > max_quoted_bytes)
            return out + "…";
        out += quoted(each);
    }
    return out;
}

// --- checking

/// Which members or items of one value have been looked at, for unevaluatedProperties and unevaluatedItems.
using marks = std::vector<char>;

void merge(marks* into, marks const& from)
{
    if (into)
        std::ranges::transform(*into, from, into->begin(), [](char a, char b) { return char(a | b); });
}

std::size_t size_of(json::value const& value) noexcept
{
    if (auto const* const object = value.if_object())
        return object->size();
    auto const* const array = value.if_array();
    return array ? array->size() : 0;
}

/// One check. Functions that fail set the error, as seen from the value they were given.
class checking {
public:
    explicit checking(schema_limits const& limits) : steps_left_(limits.max_steps), depth_left_(limits.max_depth) {}

    /// `seen`, if given, learns what was looked at. After a failure it means nothing.
    [[nodiscard]] bool apply(schema_node const& node, json::value const& value, marks* seen)
    {
        if (!spend(1))
            return false;
        if (node.verdict)
            return *node.verdict || fail("not allowed here");
        if (depth_left_ == 0)
            return give_up("nested too deeply to be checked");
        --depth_left_;
        bool const is_good = apply_keywords(node, value, seen);
        ++depth_left_;
        return is_good;
    }

    [[nodiscard]] decode_error take_error() { return std::move(error_); }

private:
    bool fail(std::string what)
    {
        error_.path.clear();
        error_.what = std::move(what);
        return false;
    }
    bool give_up(std::string what)
    {
        has_given_up_ = true;
        return fail(std::move(what));
    }
    /// The path is of no use if it is not known whether there is an error.
    bool within(auto const& place) { return has_given_up_ ? false : inside(place, error_); }

    [[nodiscard]] bool spend(std::size_t steps)
    {
        if (steps > steps_left_)
            return give_up("too much to be checked");
        steps_left_ -= steps;
        return true;
    }

    [[nodiscard]] bool apply_keywords(schema_node const& node, json::value const& value, marks* seen)
    {
        if (!check_value(node, value))
            return false;
        bool const has_rest
            = (node.unevaluated_members && value.is_object()) || (node.unevaluated_items && value.is_array());
        marks own;
        auto* const noted = has_rest ? &own : seen;
        if (has_rest)
            own.resize(size_of(value));
        if (auto const* const text = value.if_string(); text && !check_text(node, view(*text)))
            return false;
        if (auto const* const object = value.if_object(); object && !check_members(node, *object, noted))
            return false;
        if (auto const* const array = value.if_array(); array && !check_items(node, *array, noted))
            return false;
        if (!check_combinations(node, value, noted))
            return false;
        if (!has_rest)
            return true;
        if (!check_rest(node, value, own))
            return false;
        merge(seen, own);
        return true;
    }

    [[nodiscard]] bool check_value(schema_node const& node, json::value const& value)
    {
        auto const types = types_of(value);
        if (node.types && !(node.types & types)) {
            bool const is_numeric = node.types == type_bit::integer || node.types == type_bit::number;
            auto const names = type_names(node.types);
            return fail(is_numeric ? expected_in_range(node, names) : "expected " + names);
        }
        if (node.only && !is_same(*node.only, value))
            return has_given_up_ ? false : fail("expected " + quoted(*node.only));
        if (node.one_of && std::ranges::none_of(*node.one_of, [&](auto const& each) { return is_same(each, value); }))
            return has_given_up_ ? false : fail(expected_one_of(*node.one_of));
        if (!(types & type_bit::number))
            return true;
        auto const number = *number_of(value);
        if ((node.minimum && number < *node.minimum) || (node.maximum && number > *node.maximum)
            || (node.above && number <= *node.above) || (node.below && number >= *node.below))
            return fail(expected_in_range(node, node.types == type_bit::integer ? "integer" : "number"));
        if (node.multiple) {
            auto const digits = decimal_of(value);
            if (!digits || !is_multiple(*digits, *node.multiple))
                return fail("expected a multiple of " + json_text::to_json(*node.multiple_given));
        }
        return true;
    }

    [[nodiscard]] bool check_text(schema_node const& node, std::string_view text)
    {
        if (!is_within(code_point_count(text), node.length))
            return fail(expected_count("string", node.length, "character"));
        if (!node.text)
            return true;
        bool const is_found = matches(*node.text, text);
        if (!is_found && !has_given_up_)
            fail(
                node.text_given.size() > max_quoted_bytes
                    ? "expected string that matches the pattern in the schema"
                    : "expected string that matches " + std::string(node.text_given));
        return is_found;
    }

    [[nodiscard]] bool matches(pattern const& expression, std::string_view text)
    {
        return spend((text.size() + 1) * expression.size() / pattern_steps_in_one + 1) && expression.is_in(text);
    }

    [[nodiscard]] bool check_members(schema_node const& node, json::object const& object, marks* seen)
    {
        for (auto const name : node.required)
            if (!object.contains(name))
                return missing(name, error_);
        if (!is_within(object.size(), node.size))
            return fail(expected_count("object", node.size, "member"));
        for (auto const& [name, others] : node.dependent_required) {
            if (!object.contains(name))
                continue;
            for (auto const other : others)
                if (!object.contains(other))
                    return fail("required together with " + std::string(name)) || within(other);
        }
        std::size_t index = 0;
        for (auto const& each : object) {
            auto const name = view(each.key());
            bool is_known = false;
            if (!check_member(node, name, each.value(), is_known))
                return within(name);
            if (is_known && seen)
                (*seen)[index] = true;
            ++index;
        }
        return true;
    }

    [[nodiscard]] bool
    check_member(schema_node const& node, std::string_view name, json::value const& value, bool& is_known)
    {
        if (node.names) {
            json::value const as_value = json::string_view(name);
            if (!apply(*node.names, as_value, nullptr))
                return has_given_up_ ? false : fail("as a member's name: " + error_.what);
        }
        auto const listed = node.properties.find(name);
        if (listed != node.properties.end()) {
            is_known = true;
            if (!apply(*listed->second, value, nullptr))
                return false;
        }
        for (auto const& [expression, schema] : node.pattern_properties) {
            bool const is_of_it = matches(expression, name);
            if (has_given_up_)
                return false;
            is_known = is_known || is_of_it;
            if (is_of_it && !apply(*schema, value, nullptr))
                return false;
        }
        if (is_known || !node.additional)
            return true;
        is_known = true;
        return apply_rest(*node.additional, value, "unknown member");
    }

    [[nodiscard]] bool check_items(schema_node const& node, json::array const& array, marks* seen)
    {
        if (!is_within(array.size(), node.items_count))
            return fail(expected_count("array", node.items_count, "item"));
        for (std::size_t i = 0; i < array.size(); ++i) {
            bool const is_listed = i < node.prefix.size();
            auto const* const schema = is_listed ? node.prefix[i] : node.items;
            if (!schema)
                break;
            if (!(is_listed ? apply(*schema, array[i], nullptr) : apply_rest(*schema, array[i], "one item too many")))
                return within(i);
            if (seen)
                (*seen)[i] = true;
        }
        if (node.contains && !check_contains(node, array, seen))
            return false;
        return !node.is_unique || check_unique(array);
    }

    [[nodiscard]] bool check_contains(schema_node const& node, json::array const& array, marks* seen)
    {
        std::size_t found = 0;
        for (std::size_t i = 0; i < array.size(); ++i) {
            bool const is_one = apply(*node.contains, array[i], nullptr);
            if (has_given_up_)
                return false;
            found += is_one ? 1 : 0;
            if (is_one && seen)
                (*seen)[i] = true;
        }
        if (is_within(found, node.contains_count))
            return true;
        return fail(
            expected_count("array", node.contains_count, "item") + " like those under contains, not "
            + std::to_string(found));
    }

    [[nodiscard]] bool check_unique(json::array const& array)
    {
        std::unordered_multimap<std::size_t, std::size_t> earlier;
        for (std::size_t i = 0; i < array.size(); ++i) {
            auto const key = hash_of(array[i]);
            for (auto [at, end] = earlier.equal_range(key); at != end; ++at) {
                if (is_same(array[at->second], array[i]))
                    return fail("the same as item " + std::to_string(at->second)) || within(i);
                if (has_given_up_)
                    return false;
            }
            earlier.emplace(key, i);
        }
        return true;
    }

    // --- schemas of the same value

    [[nodiscard]] bool check_combinations(schema_node const& node, json::value const& value, marks* seen)
    {
        for (auto const* const each : node.references)
            if (!apply(*each, value, seen))
                return false;
        for (auto const* const each : node.all)
            if (!apply(*each, value, seen))
                return false;
        for (auto const& [name, schema] : node.dependent)
            if (value.is_object() && value.get_object().contains(name) && !apply(*schema, value, seen))
                return false;
        if (!node.any.empty() && !check_alternatives(node.any, value, seen, false))
            return false;
        if (!node.exactly_one.empty() && !check_alternatives(node.exactly_one, value, seen, true))
            return false;
        if (node.no) {
            bool const is_excluded = apply(*node.no, value, nullptr);
            if (has_given_up_)
                return false;
            if (is_excluded)
                return fail("excluded by not");
        }
        if (!node.condition)
            return true;
        bool const holds = apply_aside(*node.condition, value, seen);
        if (has_given_up_)
            return false;
        auto const* const next = holds ? node.then : node.otherwise;
        return !next || apply(*next, value, seen);
    }

    /// What a schema that does not hold has looked at does not count.
    [[nodiscard]] bool apply_aside(schema_node const& node, json::value const& value, marks* seen)
    {
        if (!seen)
            return apply(node, value, nullptr);
        marks own(seen->size());
        if (!apply(node, value, &own))
            return false;
        merge(seen, own);
        return true;
    }

    [[nodiscard]] bool check_alternatives(
        std::vector<schema_node::child> const& choices, json::value const& value, marks* seen, bool is_exclusive)
    {
        std::vector<decode_error> errors;
        std::size_t found = 0;
        for (auto const* const each : choices) {
            if (apply_aside(*each, value, seen)) {
                ++found;
                // All are needed only if they must not hold, or have something to say of what they looked at.
                if (!is_exclusive && !seen)
                    return true;
                if (is_exclusive && found > 1)
                    return fail("fits more than one of the alternatives in oneOf");
            } else if (has_given_up_) {
                return false;
            } else if (found == 0) {
                errors.push_back(std::move(error_));
            }
        }
        return found > 0 || fail_alternatives(std::move(errors));
    }

    /// The error of the alternative that came farthest, if there is such a one. Else what all of them expect.
    bool fail_alternatives(std::vector<decode_error> errors)
    {
        auto const depth = [](decode_error const& error) { return std::ranges::count(error.path, '/'); };
        auto const farthest = std::ranges::max_element(errors, {}, depth);
        auto const is_as_far = [&](decode_error const& each) { return depth(each) == depth(*farthest); };
        if (std::ranges::count_if(errors, is_as_far) == 1) {
            error_ = std::move(*farthest);
            return false;
        }
        constexpr std::string_view expected = "expected ";
        constexpr std::size_t most_named = 4;
        std::vector<std::string> named;
        for (auto const& each : errors) {
            if (each.path != errors.front().path || !each.what.starts_with(expected))
                return fail_unnamed(errors.size());
            if (std::ranges::find(named, each.what) == named.end())
                named.push_back(each.what);
        }
        if (named.size() > most_named)
            return fail_unnamed(errors.size());
        error_.path = errors.front().path;
        error_.what = named.front();
        for (std::size_t i = 1; i < named.size(); ++i)
            error_.what += " or " + named[i].substr(expected.size());
        return false;
    }
    bool fail_unnamed(std::size_t count) { return fail("fits none of the " + std::to_string(count) + " alternatives"); }

    [[nodiscard]] bool check_rest(schema_node const& node, json::value const& value, marks& seen)
    {
        std::size_t index = 0;
        if (auto const* const object = value.if_object()) {
            for (auto const& each : *object)
                if (!seen[index++] && !apply_rest(*node.unevaluated_members, each.value(), "unknown member"))
                    return within(view(each.key()));
        } else {
            for (auto const& each : value.get_array())
                if (!seen[index++] && !apply_rest(*node.unevaluated_items, each, "one item too many"))
                    return within(index - 1);
        }
        std::ranges::fill(seen, char(true));
        return true;
    }

    /// A schema for what others have left. That is most often false, which has better words here.
    [[nodiscard]] bool apply_rest(schema_node const& node, json::value const& value, char const* refusal)
    {
        if (node.verdict && !*node.verdict)
            return fail(refusal);
        return apply(node, value, nullptr);
    }

    // --- equality

    [[nodiscard]] bool is_same(json::value const& a, json::value const& b)
    {
        if (!spend(1))
            return false;
        auto const number = number_of(a);
        if (number)
            return number == number_of(b);
        if (a.kind() != b.kind())
            return false;
        if (auto const* const array = a.if_array())
            return std::ranges::equal(
                *array, b.get_array(), [this](auto const& x, auto const& y) { return is_same(x, y); });
        if (auto const* const object = a.if_object()) {
            auto const& other = b.get_object();
            return object->size() == other.size() && std::ranges::all_of(*object, [&](auto const& each) {
                       auto const* const found = other.if_contains(each.key());
                       return found && is_same(each.value(), *found);
                   });
        }
        return a == b;
    }

    /// The same for values that are the same.
    static std::size_t hash_of(json::value const& value)
    {
        auto const mix = [](std::size_t seed, std::size_t part) {
            return (seed ^ part) * std::size_t(1099511628211u) + (seed >> 29);
        };
        if (auto const number = number_of(value))
            return std::hash<double>()(static_cast<double>(*number));
        if (auto const* const text = value.if_string())
            return std::hash<std::string_view>()(view(*text));
        auto out = static_cast<std::size_t>(value.kind()) + 1;
        if (auto const* const array = value.if_array())
            for (auto const& each : *array)
                out = mix(out, hash_of(each));
        else if (auto const* const object = value.if_object())
            for (auto const& each : *object) // in whatever order
                out += mix(std::hash<std::string_view>()(view(each.key())), hash_of(each.value()));
        else if (auto const* const truth = value.if_bool())
            out = mix(out, *truth);
        return out;
    }

    decode_error error_;
    std::size_t steps_left_;
    std::size_t depth_left_;
    bool has_given_up_ = false;
};

}

schema_check::schema_check(json::object const& schema, schema_limits const& limits)
    : schema_check(schema, std::make_shared<schema_limits const>(limits))
{
}

schema_check::schema_check(json::object const& schema, std::shared_ptr<schema_limits const> limits)
    : program_(compile_schema(schema, *limits)), limits_(std::move(limits))
{
}

std::expected<void, decode_error> schema_check::check(json::value const& value) const
{
    checking run(*limits_);
    if (!run.apply(*program_->root, value, nullptr))
        return std::unexpected(run.take_error());
    return {};
}

}
