// Described structs as JSON: their schema, reading them, writing them.
//
//     struct deploy_args {
//         std::string service;
//         int copies = 1;
//
//         static constexpr belay::field docs[] = {
//             belay::field("service").describe("name in the service catalogue"),
//             belay::field("copies").describe("how many to run").range(1, 50).defaulted(),
//         };
//     };
//     BOOST_DESCRIBE_STRUCT(deploy_args, (), (service, copies))
//
// Members may be bool, integers, float and double, std::string, described enums (as their names),
// std::optional, std::vector, std::map with std::string keys, described structs, json::value (anything) and
// json::object. Public members of public bases come first. `docs` is optional, and so is each entry in it;
// an entry that names no member does not compile. Functions here are safe from any thread.
#pragma once

#include <belay/json.hpp>

#include <boost/describe/bases.hpp>
#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace belay::inline v0 {

/// What cannot be seen in a member's type: a note in the `docs` of its struct. Each call returns a changed
/// copy. Keeps views of the texts, which are meant to be literals.
class field {
public:
    /// A bound is a long double, because that holds every 64-bit integer and every double exactly.
    using bound = std::optional<long double>;

    constexpr explicit field(std::string_view name) noexcept : name_(name) {}

    /// The description in the schema.
    [[nodiscard]] constexpr field describe(std::string_view text) const noexcept
    {
        field changed = *this;
        changed.description_ = text;
        return changed;
    }
    /// Both ends are allowed values. In the schema, and checked when reading. Only for numbers.
    template<class Low, class High>
    [[nodiscard]] constexpr field range(Low low, High high) const
    {
        return minimum(low).maximum(high);
    }
    template<class Number>
    [[nodiscard]] constexpr field minimum(Number low) const
    {
        static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
        field changed = *this;
        changed.minimum_ = static_cast<long double>(low);
        changed.check();
        return changed;
    }
    template<class Number>
    [[nodiscard]] constexpr field maximum(Number high) const
    {
        static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
        field changed = *this;
        changed.maximum_ = static_cast<long double>(high);
        changed.check();
        return changed;
    }
    /// May be left out, or be null, and then has the value it has in a default-constructed struct; the schema shows it.
    [[nodiscard]] constexpr field defaulted() const noexcept
    {
        field changed = *this;
        changed.defaulted_ = true;
        return changed;
    }

    [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }
    [[nodiscard]] constexpr std::string_view description() const noexcept { return description_; }
    [[nodiscard]] constexpr bound minimum() const noexcept { return minimum_; }
    [[nodiscard]] constexpr bound maximum() const noexcept { return maximum_; }
    [[nodiscard]] constexpr bool has_range() const noexcept { return minimum_ || maximum_; }
    [[nodiscard]] constexpr bool is_defaulted() const noexcept { return defaulted_; }

private:
    constexpr void check() const
    {
        if (minimum_ && maximum_ && *maximum_ < *minimum_)
            throw std::logic_error("a range that ends before it begins");
    }

    std::string_view name_;
    std::string_view description_;
    bound minimum_;
    bound maximum_;
    bool defaulted_ = false;
};

/// Why a JSON value is not a T. The text names places and types; of the value itself it shows at most member
/// names, shortened.
struct decode_error {
    std::string path; ///< JSON Pointer from the value that was read; empty for that value itself.
    std::string what; ///< "required", "expected integer between 1 and 50", …

    /// "/copies: expected integer between 1 and 50"; without a path only the second part.
    [[nodiscard]] std::string text() const;

    friend bool operator==(decode_error const&, decode_error const&) = default;
};

/// The JSON Schema of what `decode<T>` accepts and `encode` makes; an object schema for described structs.
/// Three things are not in it: that null for a member that may be left out means that it is absent; that unknown
/// members are ignored, where the struct has none of its own and its schema is closed; and the limits of
/// integer types, except that unsigned ones begin at 0. Throws std::logic_error if a default is outside its
/// range or is an enum value without a name. A struct that contains itself does not compile.
template<class T>
[[nodiscard]] json::object schema_of();

/// Reads a T. Unknown members are ignored; 3.0 is an integer and 3.5 is not. Stops at the first error.
/// T needs a default constructor. The result shares no memory with `in`, whatever resource that uses. Throws
/// nothing but std::bad_alloc.
template<class T>
[[nodiscard]] std::expected<T, decode_error> decode(json::value const& in);

/// The same, for a described struct or a map, from an object that is not inside a json::value.
template<class T>
[[nodiscard]] std::expected<T, decode_error> decode(json::object const& in);

/// Writes a T. Members that are absent optionals are left out; elsewhere an absent optional is null, and so
/// is a number that is not finite. Throws std::logic_error for an enum value without a name.
template<class T>
[[nodiscard]] json::value encode(T const& in, json::storage_ptr storage = {});

// The rest of this header is not an interface.

namespace detail {

static_assert(std::numeric_limits<long double>::digits >= 64, "belay::field::bound must hold 64-bit integers exactly");

template<class T, class... Others>
inline constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

template<class T>
concept integer = std::integral<T> && !is_one_of<T, bool, char, wchar_t, char8_t, char16_t, char32_t>;
template<class T>
concept real = is_one_of<T, float, double>;
template<class T>
concept named_enum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;
template<class T>
concept structure = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
/// Has notes. A member that happens to be called docs is not that.
template<class T>
concept documented = requires {
    { T::docs[0] } -> std::same_as<field const&>;
};

template<class T>
inline constexpr bool is_optional = false;
template<class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template<class T>
inline constexpr bool is_vector = false;
template<class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template<class T>
inline constexpr bool is_map = false;
template<class T, class C, class A>
inline constexpr bool is_map<std::map<std::string, T, C, A>> = true;
template<class T>
inline constexpr bool is_unknown = false;
/// What an object in JSON can be made from.
template<class T>
concept object_like = structure<T> || is_map<T> || std::is_same_v<T, json::object>;

template<class T>
constexpr void no_json()
{
    static_assert(
        is_unknown<T>,
        "belay has no JSON for this type: a struct needs BOOST_DESCRIBE_STRUCT, an enum BOOST_DESCRIBE_ENUM; for the "
        "others see the top of belay/schema.hpp");
}

template<class T>
struct without_optional {
    using type = T;
};
template<class T>
struct without_optional<std::optional<T>> {
    using type = T;
};

template<class T>
using members_of = boost::describe::describe_members<T, boost::describe::mod_public | boost::describe::mod_inherited>;
template<class T, class D>
using member_type = std::remove_cvref_t<decltype(std::declval<T&>().*D::pointer)>;

/// Carries a type as an argument.
template<class T>
struct tag {
    using type = T;
};

/// Calls `visit(tag<D>)` for each type of a list until one call returns false; whether none did.
template<template<class...> class List, class... D, class Visit>
constexpr bool each(tag<List<D...>>, Visit&& visit)
{
    return (visit(tag<D>()) && ...);
}

template<class T>
constexpr bool has_member(std::string_view name)
{
    return !detail::each(tag<members_of<T>>(), [&]<class D>(tag<D>) { return name != D::name; });
}

template<class T>
constexpr bool docs_name_members()
{
    if constexpr (documented<T>)
        for (field const& note : T::docs)
            if (!has_member<T>(note.name()))
                return false;
    return true;
}

/// The note about a member: in the struct's own docs, else in those of its bases.
template<class T>
constexpr field const* find_note(std::string_view name)
{
    if constexpr (documented<T>)
        for (field const& note : T::docs)
            if (note.name() == name)
                return &note;
    field const* found = nullptr;
    detail::each(tag<boost::describe::describe_bases<T, boost::describe::mod_public>>(), [&]<class B>(tag<B>) {
        found = find_note<typename B::type>(name);
        return !found;
    });
    return found;
}

template<class T, class D>
inline constexpr field const* note_of = find_note<T>(D::name);

template<class T, class D>
inline constexpr bool is_defaulted = note_of<T, D> != nullptr && note_of<T, D>->is_defaulted();

template<class T>
constexpr bool ranges_are_of_numbers()
{
    return detail::each(tag<members_of<T>>(), []<class D>(tag<D>) {
        using plain = typename without_optional<member_type<T, D>>::type;
        constexpr field const* note = note_of<T, D>;
        if constexpr (note != nullptr)
            return !note->has_range() || integer<plain> || real<plain>;
        return true;
    });
}

template<class T>
constexpr void check_docs()
{
    static_assert(
        !requires { requires std::same_as<std::remove_cvref_t<decltype(T::docs)>, field>; },
        "`docs` is an array: static constexpr belay::field docs[] = {…}");
    static_assert(docs_name_members<T>(), "an entry of `docs` names no public described member");
    static_assert(ranges_are_of_numbers<T>(), "an entry of `docs` gives a range to a member that is not a number");
}

template<class List>
struct enumerators;
template<template<class...> class List, class... D>
struct enumerators<List<D...>> {
    static constexpr std::array<std::string_view, sizeof...(D)> names = {D::name...};
    static constexpr std::array values = {D::value...};
};
template<class E>
using enumerators_of = enumerators<boost::describe::describe_enumerators<E>>;

// src/json/codec.cpp

[[nodiscard]] bool read_bool(json::value const& in, bool& out, decode_error& error);
[[nodiscard]] bool read_string(json::value const& in, std::string& out, decode_error& error);
[[nodiscard]] bool read_signed(
    json::value const& in, std::int64_t low, std::int64_t high, field const* note, std::int64_t& out,
    decode_error& error);
[[nodiscard]] bool
read_unsigned(json::value const& in, std::uint64_t high, field const* note, std::uint64_t& out, decode_error& error);
[[nodiscard]] bool read_double(json::value const& in, field const* note, double& out, decode_error& error);
[[nodiscard]] bool read_float(json::value const& in, field const* note, float& out, decode_error& error);
/// The index of the name, or nothing.
[[nodiscard]] std::optional<std::size_t>
read_name(json::value const& in, std::span<std::string_view const> names, decode_error& error);
[[nodiscard]] json::array const* read_array(json::value const& in, decode_error& error);
[[nodiscard]] json::object const* read_object(json::value const& in, decode_error& error);

/// Sets the error and returns false, for use in a return statement.
[[nodiscard]] bool missing(std::string_view member, decode_error& error);
/// Says that the error was found inside this member or element. Returns false.
[[nodiscard]] bool inside(std::string_view member, decode_error& error);
[[nodiscard]] bool inside(std::size_t index, decode_error& error);

[[nodiscard]] json::value real_value(double in, json::storage_ptr const& storage);
[[nodiscard]] json::value real_value(float in, json::storage_ptr const& storage);
[[noreturn]] void throw_unnamed_value();

/// Begins a schema: its type, unless that is empty, and the description.
void put_type(json::object& schema, std::string_view type, field const* note);
void put_range(json::object& schema, field::bound low, field::bound high);
void put_names(json::object& schema, std::span<std::string_view const> names);
/// Throws std::logic_error if the value is outside the range of the note. Nothing for null.
void put_default(json::object& schema, json::value value, field const& note);

// Schema

template<class T, class... Outer>
void write_schema(json::object& out, field const* note);

template<class T, class D, class... Outer>
void write_property(json::object& properties, json::array& required)
{
    using member = member_type<T, D>;
    constexpr field const* note = note_of<T, D>;
    json::object schema;
    detail::write_schema<typename without_optional<member>::type, T, Outer...>(schema, note);
    if constexpr (is_defaulted<T, D>)
        detail::put_default(schema, belay::encode(T{}.*D::pointer), *note);
    else if constexpr (!is_optional<member>)
        required.emplace_back(D::name);
    properties.emplace(D::name, std::move(schema));
}

template<class T, class... Outer>
void write_schema(json::object& out, field const* note)
{
    if constexpr (std::is_same_v<T, bool>) {
        detail::put_type(out, "boolean", note);
    } else if constexpr (integer<T>) {
        detail::put_type(out, "integer", note);
        auto low = note ? note->minimum() : std::nullopt;
        if (std::is_unsigned_v<T> && !low)
            low = 0;
        detail::put_range(out, low, note ? note->maximum() : std::nullopt);
    } else if constexpr (real<T>) {
        detail::put_type(out, "number", note);
        if (note)
            detail::put_range(out, note->minimum(), note->maximum());
    } else if constexpr (std::is_same_v<T, std::string>) {
        detail::put_type(out, "string", note);
    } else if constexpr (std::is_same_v<T, json::value>) {
        detail::put_type(out, {}, note);
    } else if constexpr (std::is_same_v<T, json::object>) {
        detail::put_type(out, "object", note);
    } else if constexpr (named_enum<T>) {
        detail::put_type(out, "string", note);
        detail::put_names(out, enumerators_of<T>::names);
    } else if constexpr (is_optional<T>) {
        // Only inside vectors, maps and optionals; an optional member is described by its absence.
        detail::put_type(out, {}, note);
        json::object present;
        detail::write_schema<typename T::value_type, Outer...>(present, nullptr);
        out.emplace("anyOf", json::array{std::move(present), json::object{{"type", "null"}}});
    } else if constexpr (is_vector<T>) {
        detail::put_type(out, "array", note);
        json::object items;
        detail::write_schema<typename T::value_type, Outer...>(items, nullptr);
        out.emplace("items", std::move(items));
    } else if constexpr (is_map<T>) {
        detail::put_type(out, "object", note);
        json::object items;
        detail::write_schema<typename T::mapped_type, Outer...>(items, nullptr);
        out.emplace("additionalProperties", std::move(items));
    } else if constexpr (structure<T>) {
        static_assert(!is_one_of<T, Outer...>, "a struct that contains itself has no schema: it would never end");
        // Without the condition the compiler would follow the circle before it reports it.
        if constexpr (!is_one_of<T, Outer...>) {
            check_docs<T>();
            detail::put_type(out, "object", note);
            json::object properties;
            json::array required;
            detail::each(tag<members_of<T>>(), [&]<class D>(tag<D>) {
                detail::write_property<T, D, Outer...>(properties, required);
                return true;
            });
            // Clients in strict modes refuse an object without members that is not closed.
            bool const is_empty = properties.empty();
            out.emplace("properties", std::move(properties));
            if (is_empty)
                out.emplace("additionalProperties", false);
            if (!required.empty())
                out.emplace("required", std::move(required));
        }
    } else {
        detail::no_json<T>();
    }
}

// Reading

template<class T>
[[nodiscard]] bool read(json::value const& in, T& out, field const* note, decode_error& error);

template<class T, class D>
[[nodiscard]] bool read_member(json::object const& in, T& out, decode_error& error)
{
    using member = member_type<T, D>;
    json::value const* const found = in.if_contains(D::name);
    constexpr bool may_be_absent = is_optional<member> || is_defaulted<T, D>;
    // A json::value takes null as a value like any other.
    constexpr bool null_is_absence = may_be_absent && !std::is_same_v<member, json::value>;
    if (!found || (null_is_absence && found->is_null())) {
        if constexpr (may_be_absent)
            return true;
        else
            return detail::missing(D::name, error);
    }
    if constexpr (is_optional<member>) {
        auto& present = (out.*D::pointer).emplace();
        return detail::read(*found, present, note_of<T, D>, error) || detail::inside(D::name, error);
    } else {
        // A nested struct begins with its own defaults, which its schema shows, and not with the outer one's.
        if constexpr (structure<member>)
            out.*D::pointer = member{};
        return detail::read<member>(*found, out.*D::pointer, note_of<T, D>, error) || detail::inside(D::name, error);
    }
}

template<class T>
[[nodiscard]] bool read_members(json::object const& in, T& out, decode_error& error)
{
    if constexpr (structure<T>) {
        check_docs<T>();
        return detail::each(
            tag<members_of<T>>(), [&]<class D>(tag<D>) { return detail::read_member<T, D>(in, out, error); });
    } else {
        static_assert(is_map<T>, "only described structs and maps are read from an object");
        out.clear();
        for (auto const& [key, value] : in) {
            std::string_view const name(key.data(), key.size());
            typename T::mapped_type item{};
            if (!detail::read(value, item, nullptr, error))
                return detail::inside(name, error);
            out.insert_or_assign(std::string(name), std::move(item));
        }
        return true;
    }
}

template<class T>
bool read(json::value const& in, T& out, field const* note, decode_error& error)
{
    if constexpr (std::is_same_v<T, bool>) {
        return detail::read_bool(in, out, error);
    } else if constexpr (integer<T>) {
        using limits = std::numeric_limits<T>;
        std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t> wide = 0;
        bool is_read = false;
        if constexpr (std::is_signed_v<T>)
            is_read = detail::read_signed(in, limits::min(), limits::max(), note, wide, error);
        else
            is_read = detail::read_unsigned(in, limits::max(), note, wide, error);
        out = static_cast<T>(wide);
        return is_read;
    } else if constexpr (std::is_same_v<T, double>) {
        return detail::read_double(in, note, out, error);
    } else if constexpr (std::is_same_v<T, float>) {
        return detail::read_float(in, note, out, error);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return detail::read_string(in, out, error);
    } else if constexpr (std::is_same_v<T, json::value>) {
        out = in; // by assignment: a constructed copy would share the memory resource of `in`
        return true;
    } else if constexpr (std::is_same_v<T, json::object>) {
        auto const* const object = detail::read_object(in, error);
        if (object)
            out = *object;
        return object;
    } else if constexpr (named_enum<T>) {
        auto const index = detail::read_name(in, enumerators_of<T>::names, error);
        if (index)
            out = enumerators_of<T>::values[*index];
        return index.has_value();
    } else if constexpr (is_optional<T>) {
        out.reset();
        return in.is_null() || detail::read(in, out.emplace(), note, error);
    } else if constexpr (is_vector<T>) {
        auto const* const array = detail::read_array(in, error);
        if (!array)
            return false;
        out.clear();
        out.reserve(array->size());
        for (json::value const& value : *array) {
            typename T::value_type item{};
            if (!detail::read(value, item, nullptr, error))
                return detail::inside(out.size(), error);
            out.push_back(std::move(item));
        }
        return true;
    } else if constexpr (is_map<T> || structure<T>) {
        auto const* const object = detail::read_object(in, error);
        return object && detail::read_members(*object, out, error);
    } else {
        detail::no_json<T>();
    }
}

// Writing

template<class T>
[[nodiscard]] json::value write(T const& in, json::storage_ptr const& storage)
{
    if constexpr (std::is_same_v<T, bool>) {
        return json::value(in, storage);
    } else if constexpr (integer<T>) {
        // As the parser would: unsigned only if it must be.
        if (std::in_range<std::int64_t>(in))
            return json::value(static_cast<std::int64_t>(in), storage);
        return json::value(static_cast<std::uint64_t>(in), storage);
    } else if constexpr (real<T>) {
        return detail::real_value(in, storage);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return json::value(json::string_view(in.data(), in.size()), storage);
    } else if constexpr (is_one_of<T, json::value, json::object>) {
        return json::value(in, storage);
    } else if constexpr (named_enum<T>) {
        for (std::size_t i = 0; i < enumerators_of<T>::names.size(); ++i)
            if (enumerators_of<T>::values[i] == in)
                return json::value(json::string_view(enumerators_of<T>::names[i]), storage);
        detail::throw_unnamed_value();
    } else if constexpr (is_optional<T>) {
        return in ? detail::write<typename T::value_type>(*in, storage) : json::value(nullptr, storage);
    } else if constexpr (is_vector<T>) {
        json::array array(storage);
        array.reserve(in.size());
        for (std::size_t i = 0; i < in.size(); ++i)
            array.push_back(detail::write<typename T::value_type>(in[i], storage));
        return json::value(std::move(array));
    } else if constexpr (is_map<T>) {
        json::object object(storage);
        object.reserve(in.size());
        for (auto const& [key, item] : in)
            object.insert_or_assign(key, detail::write(item, storage));
        return json::value(std::move(object));
    } else if constexpr (structure<T>) {
        json::object object(storage);
        detail::each(tag<members_of<T>>(), [&]<class D>(tag<D>) {
            using member = member_type<T, D>;
            member const& value = in.*D::pointer;
            if constexpr (is_optional<member>) {
                if (value)
                    object.emplace(D::name, detail::write(*value, storage));
            } else {
                object.emplace(D::name, detail::write(value, storage));
            }
            return true;
        });
        return json::value(std::move(object));
    } else {
        detail::no_json<T>();
    }
}

/// Where a number is not finite, which JSON cannot say; empty: nowhere.
template<class T>
[[nodiscard]] std::string not_finite(T const& in)
{
    if constexpr (real<T>) {
        return std::isfinite(in) ? "" : "a number";
    } else if constexpr (is_optional<T>) {
        return in ? detail::not_finite(*in) : std::string();
    } else if constexpr (is_vector<T>) {
        for (auto const& each : in)
            if (auto found = detail::not_finite(each); !found.empty())
                return found;
    } else if constexpr (is_map<T>) {
        for (auto const& [key, item] : in)
            if (auto found = detail::not_finite(item); !found.empty())
                return found;
    } else if constexpr (structure<T>) {
        std::string found;
        detail::each(tag<members_of<T>>(), [&]<class D>(tag<D>) {
            found = detail::not_finite(in.*D::pointer);
            if (!found.empty())
                found = D::name;
            return found.empty();
        });
        return found;
    }
    return {};
}

/// encode() for what was promised with a schema. Throws std::domain_error for a number that is not finite.
template<class T>
[[nodiscard]] json::value encode_finite(T const& in)
{
    if (auto const found = detail::not_finite(in); !found.empty())
        throw std::domain_error(found + " in its structured content is not finite");
    return detail::write(in, json::storage_ptr());
}

}

template<class T>
json::object schema_of()
{
    json::object schema;
    detail::write_schema<T>(schema, nullptr);
    return schema;
}

template<class T>
std::expected<T, decode_error> decode(json::value const& in)
{
    std::expected<T, decode_error> out;
    decode_error error;
    if (!detail::read(in, *out, nullptr, error))
        out = std::unexpected(std::move(error));
    return out;
}

template<class T>
std::expected<T, decode_error> decode(json::object const& in)
{
    std::expected<T, decode_error> out;
    decode_error error;
    if (!detail::read_members(in, *out, error))
        out = std::unexpected(std::move(error));
    return out;
}

template<class T>
json::value encode(T const& in, json::storage_ptr storage)
{
    return detail::write(in, storage);
}

}
