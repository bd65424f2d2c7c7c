#include "json/schema_program.hpp"
#include "json/values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <unordered_set>

namespace belay::inline v0::detail {

namespace {

constexpr std::string_view dialect = "https://json-schema.org/draft/2020-12/schema";

// --- URI references (RFC 3986), as far as `$id` needs them

struct uri_parts {
    std::string_view scheme; ///< with its colon
    std::string_view authority; ///< with its slashes
    std::string_view path;
};

uri_parts split_uri(std::string_view uri)
{
    uri_parts out;
    auto const colon = uri.find_first_of(":/?#");
    if (colon != std::string_view::npos && colon > 0 && uri[colon] == ':') {
        out.scheme = uri.substr(0, colon + 1);
        uri.remove_prefix(colon + 1);
    }
    if (uri.starts_with("//")) {
        out.authority = uri.substr(0, uri.find_first_of("/?#", 2));
        uri.remove_prefix(out.authority.size());
    }
    out.path = uri;
    return out;
}

/// "a/./b/../c" as "a/c".
std::string without_dots(std::string_view path)
{
    std::string out;
    while (!path.empty()) {
        auto const slash = path.find('/', 1);
        auto const segment = path.substr(0, slash);
        path.remove_prefix(segment.size());
        if (segment == "/." || segment == "/..") {
            if (segment == "/..")
                out.erase(out.rfind('/') == std::string::npos ? 0 : out.rfind('/'));
            if (path.empty())
                out += '/';
        } else {
            out += segment;
        }
    }
    return out;
}

/// Without a fragment on either.
std::string resolve(std::string_view base, std::string_view reference)
{
    if (reference.empty())
        return std::string(base);
    auto const to = split_uri(reference);
    auto const from = split_uri(base);
    if (!to.scheme.empty())
        return std::string(reference);
    std::string out(from.scheme);
    if (!to.authority.empty())
        return out + std::string(reference);
    out += from.authority;
    if (to.path.starts_with('/'))
        return out + without_dots(to.path);
    if (to.path.starts_with('?'))
        return out + std::string(from.path.substr(0, from.path.find('?'))) + std::string(to.path);
    auto const last = from.path.rfind('/');
    std::string merged(last == std::string_view::npos ? std::string_view() : from.path.substr(0, last + 1));
    if (merged.empty() && !from.authority.empty())
        merged = "/";
    return out + without_dots(merged + std::string(to.path));
}

std::string percent_decoded(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned char byte = 0;
        auto const* const digits = text.data() + i + 1;
        if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
            out += static_cast<char>(byte);
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

// --- which keywords hold schemas

constexpr std::string_view holds_one[]
    = {"additionalProperties",
       "propertyNames",
       "unevaluatedProperties",
       "items",
       "contains",
       "unevaluatedItems",
       "not",
       "if",
       "then",
       "else",
       "contentSchema"};
constexpr std::string_view holds_many[] = {"allOf", "anyOf", "oneOf", "prefixItems"};
constexpr std::string_view holds_named[]
    = {"$defs", "definitions", "properties", "patternProperties", "dependentSchemas"};

class schema_compiler {
public:
    explicit schema_compiler(schema_program& out) : out_(out) {}

    void run()
    {
        index(out_.document, "", "", 0);
        out_.root = node_of(out_.document, "", "");
        // Compiling one finds others: what it holds, and what it refers to.
        while (!pending_.empty()) {
            auto const next = std::move(pending_.front());
            pending_.pop_front();
            compile(*next.into, *next.schema, next.at, next.base);
        }
        for (auto const& node : out_.nodes)
            refuse_circles(node);
    }

private:
    struct work {
        schema_node* into;
        json::value const* schema;
        std::string at;
        std::string base;
    };
    struct place {
        json::value const* schema;
        std::string at;
        std::string base;
    };

    [[noreturn]] static void fail(std::string const& at, std::string const& why)
    {
        throw std::invalid_argument((at.empty() ? std::string("the schema") : at) + ": " + why);
    }

    // --- first: what has a name

    void index(json::value const& schema, std::string const& at, std::string base, std::size_t depth)
    {
        if (depth > out_.limits.max_schema_depth)
            fail(at, "schemas are nested too deeply; give inner ones a name in $defs and use $ref");
        auto const* const object = schema.if_object();
        if (!object)
            return;
        if (auto const* const given = object->if_contains("$schema"))
            require_dialect(*given, at + "/$schema");
        if (auto const* const id = object->if_contains("$id")) {
            auto text = text_of(*id, at + "/$id");
            if (text.ends_with('#'))
                text.remove_suffix(1);
            if (text.contains('#'))
                fail(at + "/$id", "an $id has no fragment; use $anchor for a name within the schema");
            base = resolve(base, text);
            resources_.try_emplace(base, place{&schema, at, base});
        } else if (at.empty()) {
            resources_.try_emplace(base, place{&schema, at, base});
        }
        for (auto const* const keyword : {"$anchor", "$dynamicAnchor"})
            if (auto const* const anchor = object->if_contains(keyword)) {
                auto const name = text_of(*anchor, at + pointer_step(keyword));
                anchors_.try_emplace(base + "#" + std::string(name), place{&schema, at, base});
            }
        bases_.emplace(&schema, base);
        for (auto const keyword : holds_one)
            if (auto const* const one = object->if_contains(keyword))
                index(*one, at + pointer_step(keyword), base, depth + 1);
        for (auto const keyword : holds_many)
            if (auto const* const many = object->if_contains(keyword); many && many->is_array())
                for (std::size_t i = 0; i < many->get_array().size(); ++i)
                    index(many->get_array()[i], at + pointer_step(keyword) + "/" + std::to_string(i), base, depth + 1);
        for (auto const keyword : holds_named)
            if (auto const* const many = object->if_contains(keyword); many && many->is_object())
                for (auto const& each : many->get_object())
                    index(each.value(), at + pointer_step(keyword) + pointer_step(view(each.key())), base, depth + 1);
    }

    static void require_dialect(json::value const& given, std::string const& at)
    {
        auto text = text_of(given, at);
        if (text.ends_with('#'))
            text.remove_suffix(1);
        if (text != dialect)
            fail(at, "only draft 2020-12 can be checked; use " + std::string(dialect) + " or leave $schema out");
    }

    // --- references

    schema_node const* refer(json::value const& reference, std::string const& at, std::string const& base)
    {
        auto const text = text_of(reference, at);
        auto const hash = text.find('#');
        auto const uri = resolve(base, text.substr(0, hash));
        auto const fragment = percent_decoded(hash == std::string_view::npos ? "" : text.substr(hash + 1));
        if (!fragment.empty() && !fragment.starts_with('/')) {
            auto const found = anchors_.find(uri + "#" + fragment);
            if (found != anchors_.end())
                return node_of(*found->second.schema, found->second.at, found->second.base);
        } else if (auto const found = resources_.find(uri); found != resources_.end()) {
            auto const to = walk(found->second, fragment);
            if (to.schema)
                return node_of(*to.schema, to.at, to.base);
        }
        fail(
            at,
            "\"" + std::string(text)
                + "\" is not in this schema, and references are never fetched; put it under $defs and refer to it as "
                  "#/$defs/name");
    }

    /// Follows a JSON Pointer. Without a schema if it leads nowhere.
    place walk(place from, std::string_view pointer) const
    {
        while (!pointer.empty()) {
            pointer.remove_prefix(1);
            auto const given = pointer.substr(0, pointer.find('/'));
            pointer.remove_prefix(given.size());
            std::string segment;
            for (std::size_t i = 0; i < given.size(); ++i) {
                bool const is_escape = given[i] == '~' && i + 1 < given.size();
                segment += !is_escape ? given[i] : given[++i] == '1' ? '/' : '~';
            }
            json::value const* next = nullptr;
            if (auto const* const object = from.schema->if_object()) {
                next = object->if_contains(segment);
            } else if (auto const* const array = from.schema->if_array()) {
                std::size_t index = 0;
                auto const* const end = segment.data() + segment.size();
                auto const [read_to, error] = std::from_chars(segment.data(), end, index);
                if (error == std::errc() && read_to == end && index < array->size())
                    next = &(*array)[index];
            }
            if (!next)
                return {};
            from.schema = next;
            from.at += pointer_step(segment);
            if (auto const known = bases_.find(next); known != bases_.end())
                from.base = known->second;
        }
        return from;
    }

    schema_node const* node_of(json::value const& schema, std::string at, std::string const& base)
    {
        auto const [found, is_new] = nodes_.try_emplace(&schema, nullptr);
        if (!is_new)
            return found->second;
        if (out_.nodes.size() >= out_.limits.max_schemas)
            fail(at, "the schema has too many parts");
        auto& made = out_.nodes.emplace_back();
        found->second = &made;
        places_.emplace(&made, at);
        auto const known = bases_.find(&schema);
        pending_.push_back({&made, &schema, std::move(at), known == bases_.end() ? base : known->second});
        return &made;
    }

    // --- reading keywords

    static std::string_view text_of(json::value const& in, std::string const& at)
    {
        auto const* const text = in.if_string();
        if (!text)
            fail(at, "must be a string");
        return view(*text);
    }
    static json::array const& array_of(json::value const& in, std::string const& at)
    {
        auto const* const array = in.if_array();
        if (!array)
            fail(at, "must be an array");
        return *array;
    }
    static json::object const& object_of(json::value const& in, std::string const& at)
    {
        auto const* const object = in.if_object();
        if (!object)
            fail(at, "must be an object");
        return *object;
    }
    static long double number_of(json::value const& in, std::string const& at)
    {
        auto const number = detail::number_of(in);
        if (!number)
            fail(at, "must be a number");
        return *number;
    }
    static std::size_t count_of(json::value const& in, std::string const& at)
    {
        auto const number = number_of(in, at);
        if (!(number >= 0) || number != std::trunc(number))
            fail(at, "must be an integer of at least 0");
        return number < 1e18L ? static_cast<std::size_t>(number) : std::numeric_limits<std::size_t>::max();
    }
    static std::vector<std::string_view> texts_of(json::value const& in, std::string const& at)
    {
        std::vector<std::string_view> out;
        for (auto const& each : array_of(in, at))
            out.push_back(text_of(each, at + "/" + std::to_string(out.size())));
        return out;
    }
    static unsigned type_named(json::value const& in, std::string const& at)
    {
        static constexpr std::pair<std::string_view, unsigned> names[]
            = {{"null", type_bit::null},     {"boolean", type_bit::boolean}, {"integer", type_bit::integer},
               {"number", type_bit::number}, {"string", type_bit::string},   {"array", type_bit::array},
               {"object", type_bit::object}};
        auto const given = text_of(in, at);
        for (auto const& [name, bit] : names)
            if (given == name)
                return bit;
        fail(at, "must be null, boolean, integer, number, string, array or object");
    }
    static unsigned types_of(json::value const& in, std::string const& at)
    {
        if (!in.is_array())
            return type_named(in, at);
        unsigned out = 0;
        for (std::size_t i = 0; i < in.get_array().size(); ++i)
            out |= type_named(in.get_array()[i], at + "/" + std::to_string(i));
        if (out == 0)
            fail(at, "must not be empty");
        return out;
    }
    pattern pattern_of(std::string_view expression, std::string const& at) const
    {
        try {
            return pattern(expression, {out_.limits.max_pattern_size, out_.limits.max_schema_depth});
        } catch (std::invalid_argument const& error) {
            fail(at, error.what());
        }
    }

    void compile(schema_node& into, json::value const& schema, std::string const& at, std::string const& base)
    {
        if (auto const* const verdict = schema.if_bool()) {
            into.verdict = *verdict;
            return;
        }
        auto const* const object = schema.if_object();
        if (!object)
            fail(at, "a schema must be an object, true or false");
        for (auto const& each : *object)
            compile_keyword(into, view(each.key()), each.value(), at + pointer_step(view(each.key())), base);
        if (!into.condition) // then they say nothing
            into.then = into.otherwise = nullptr;
    }

    /// A keyword with its value, on the way into its schema.
    struct reading {
        schema_compiler& by;
        schema_node& into;
        json::value const& in;
        std::string const& at;
        std::string const& base;

        [[nodiscard]] schema_node::child one() const { return by.node_of(in, at, base); }
        void many(std::vector<schema_node::child>& to) const
        {
            auto const& array = array_of(in, at);
            if (array.empty())
                fail(at, "must not be empty");
            for (auto const& each : array)
                to.push_back(by.node_of(each, at + "/" + std::to_string(to.size()), base));
        }
        template<class F>
        void each_member(F const& take) const
        {
            for (auto const& each : object_of(in, at))
                take(view(each.key()), each.value(), at + pointer_step(view(each.key())));
        }
        [[nodiscard]] long double number() const { return number_of(in, at); }
        [[nodiscard]] std::size_t count() const { return count_of(in, at); }
        void refer() const { into.references.push_back(by.refer(in, at, base)); }
    };
    using keyword_table = std::unordered_map<std::string_view, void (*)(reading const&)>;

    void compile_keyword(
        schema_node& into, std::string_view keyword, json::value const& in, std::string const& at,
        std::string const& base)
    {
        static keyword_table const keywords = {
            {"$ref", [](reading const& r) { r.refer(); }},
            {"$dynamicRef", [](reading const& r) { r.refer(); }},
            // Those that nothing refers to are read as well, so that a mistake in them is found.
            {"$defs",
             [](reading const& r) {
                 r.each_member([&](auto, json::value const& value, std::string where) {
                     static_cast<void>(r.by.node_of(value, std::move(where), r.base));
                 });
             }},
            {"type", [](reading const& r) { r.into.types = types_of(r.in, r.at); }},
            {"enum", [](reading const& r) { r.into.one_of = &array_of(r.in, r.at); }},
            {"const", [](reading const& r) { r.into.only = &r.in; }},
            {"minimum", [](reading const& r) { r.into.minimum = r.number(); }},
            {"maximum", [](reading const& r) { r.into.maximum = r.number(); }},
            {"exclusiveMinimum", [](reading const& r) { r.into.above = r.number(); }},
            {"exclusiveMaximum", [](reading const& r) { r.into.below = r.number(); }},
            {"multipleOf",
             [](reading const& r) {
                 if (!(r.number() > 0))
                     fail(r.at, "must be above 0");
                 r.into.multiple = decimal_of(r.in);
                 r.into.multiple_given = &r.in;
             }},
            {"minLength", [](reading const& r) { r.into.length.low = r.count(); }},
            {"maxLength", [](reading const& r) { r.into.length.high = r.count(); }},
            {"pattern",
             [](reading const& r) {
                 r.into.text_given = text_of(r.in, r.at);
                 r.into.text = r.by.pattern_of(r.into.text_given, r.at);
             }},
            {"minProperties", [](reading const& r) { r.into.size.low = r.count(); }},
            {"maxProperties", [](reading const& r) { r.into.size.high = r.count(); }},
            {"required", [](reading const& r) { r.into.required = texts_of(r.in, r.at); }},
            {"dependentRequired",
             [](reading const& r) {
                 r.each_member([&](std::string_view name, json::value const& value, std::string const& where) {
                     r.into.dependent_required.emplace_back(name, texts_of(value, where));
                 });
             }},
            {"dependentSchemas",
             [](reading const& r) {
                 r.each_member([&](std::string_view name, json::value const& value, std::string where) {
                     r.into.dependent.emplace_back(name, r.by.node_of(value, std::move(where), r.base));
                 });
             }},
            {"properties",
             [](reading const& r) {
                 r.each_member([&](std::string_view name, json::value const& value, std::string where) {
                     r.into.properties.emplace(name, r.by.node_of(value, std::move(where), r.base));
                 });
             }},
            {"patternProperties",
             [](reading const& r) {
                 r.each_member([&](std::string_view name, json::value const& value, std::string const& where) {
                     r.into.pattern_properties.emplace_back(
                         r.by.pattern_of(name, where), r.by.node_of(value, where, r.base));
                 });
             }},
            {"additionalProperties", [](reading const& r) { r.into.additional = r.one(); }},
            {"propertyNames", [](reading const& r) { r.into.names = r.one(); }},
            {"unevaluatedProperties", [](reading const& r) { r.into.unevaluated_members = r.one(); }},
            {"minItems", [](reading const& r) { r.into.items_count.low = r.count(); }},
            {"maxItems", [](reading const& r) { r.into.items_count.high = r.count(); }},
            {"uniqueItems",
             [](reading const& r) {
                 if (!r.in.is_bool())
                     fail(r.at, "must be true or false");
                 r.into.is_unique = r.in.get_bool();
             }},
            {"prefixItems", [](reading const& r) { r.many(r.into.prefix); }},
            {"items",
             [](reading const& r) {
                 if (r.in.is_array())
                     fail(r.at, "must be a schema; a list of schemas is called prefixItems in draft 2020-12");
                 r.into.items = r.one();
             }},
            {"contains", [](reading const& r) { r.into.contains = r.one(); }},
            {"minContains", [](reading const& r) { r.into.contains_count.low = r.count(); }},
            {"maxContains", [](reading const& r) { r.into.contains_count.high = r.count(); }},
            {"unevaluatedItems", [](reading const& r) { r.into.unevaluated_items = r.one(); }},
            {"allOf", [](reading const& r) { r.many(r.into.all); }},
            {"anyOf", [](reading const& r) { r.many(r.into.any); }},
            {"oneOf", [](reading const& r) { r.many(r.into.exactly_one); }},
            {"not", [](reading const& r) { r.into.no = r.one(); }},
            {"if", [](reading const& r) { r.into.condition = r.one(); }},
            {"then", [](reading const& r) { r.into.then = r.one(); }},
            {"else", [](reading const& r) { r.into.otherwise = r.one(); }},
        };
        auto const found = keywords.find(keyword);
        if (found != keywords.end())
            found->second({*this, into, in, at, base});
    }

    // --- circles

    /// Calls `visit` for the schemas that apply to the same value.
    template<class F>
    static void each_in_place(schema_node const& of, F const& visit)
    {
        for (auto const* const list : {&of.references, &of.all, &of.any, &of.exactly_one})
            for (auto const* const each : *list)
                visit(*each);
        for (auto const& each : of.dependent)
            visit(*each.second);
        for (auto const* const each : {of.no, of.condition, of.then, of.otherwise})
            if (each)
                visit(*each);
    }

    /// A schema that leads back to itself without going into the value would never end.
    void refuse_circles(schema_node const& from)
    {
        if (is_clear_.contains(&from))
            return;
        struct step {
            schema_node const* node;
            bool is_left;
        };
        std::vector<step> stack = {{&from, false}};
        std::unordered_set<schema_node const*> on_path;
        while (!stack.empty()) {
            auto const [node, is_left] = stack.back();
            stack.pop_back();
            if (is_left) {
                on_path.erase(node);
                is_clear_.insert(node);
                continue;
            }
            if (is_clear_.contains(node))
                continue;
            if (!on_path.insert(node).second)
                fail(places_.at(node), "this schema refers to itself without going into the value; it would never end");
            stack.push_back({node, true});
            each_in_place(*node, [&](schema_node const& next) {
                if (!is_clear_.contains(&next))
                    stack.push_back({&next, false});
            });
        }
    }

    schema_program& out_;
    std::map<std::string, place, std::less<>> resources_;
    std::map<std::string, place, std::less<>> anchors_;
    std::unordered_map<json::value const*, std::string> bases_;
    std::unordered_map<json::value const*, schema_node const*> nodes_;
    std::unordered_map<schema_node const*, std::string> places_;
    std::deque<work> pending_;
    std::unordered_set<schema_node const*> is_clear_;
};

}

std::optional<decimal> decimal_of(json::value const& number)
{
    char text[40];
    std::to_chars_result written{text, std::errc()};
    if (auto const* const whole = number.if_int64())
        written = std::to_chars(text, text + sizeof text, *whole);
    else if (auto const* const large = number.if_uint64())
        written = std::to_chars(text, text + sizeof text, *large);
    else if (auto const* const real = number.if_double(); real && std::isfinite(*real))
        written = std::to_chars(text, text + sizeof text, *real, std::chars_format::scientific);
    else
        return std::nullopt;
    decimal out;
    bool is_fraction = false;
    for (char const* at = text; at < written.ptr; ++at) {
        if (*at == 'e') {
            int exponent = 0;
            std::from_chars(at[1] == '+' ? at + 2 : at + 1, written.ptr, exponent);
            out.exponent += exponent;
            break;
        }
        if (*at == '.')
            is_fraction = true;
        if (*at < '0' || *at > '9')
            continue;
        out.digits = out.digits * 10 + static_cast<std::uint64_t>(*at - '0');
        out.exponent -= is_fraction ? 1 : 0;
    }
    while (out.digits != 0 && out.digits % 10 == 0) {
        out.digits /= 10;
        ++out.exponent;
    }
    return out;
}

bool is_multiple(decimal const& number, decimal const& of) noexcept
{
    if (number.digits == 0)
        return true;
    // The digits of `number` are no multiple of 10, so it is none of anything that ends in more zeros.
    if (of.digits == 0 || number.exponent < of.exponent)
        return false;
    auto const m = of.digits;
    auto const plus = [m](std::uint64_t a, std::uint64_t b) { return a >= m - b ? a - (m - b) : a + b; };
    auto rest = number.digits % m;
    for (int i = number.exponent - of.exponent; i > 0 && rest != 0; --i) {
        auto const twice = plus(rest, rest);
        auto const four = plus(twice, twice);
        rest = plus(plus(four, four), twice);
    }
    return rest == 0;
}

std::shared_ptr<schema_program const> compile_schema(json::object const& schema, schema_limits const& limits)
{
    auto out = std::make_shared<schema_program>();
    out->document = json::object(schema, json::storage_ptr());
    out->limits = limits;
    schema_compiler(*out).run();
    return out;
}

}
