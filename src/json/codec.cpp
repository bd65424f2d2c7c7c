// The parts of belay/schema.hpp that do not depend on the type: numbers, names, error text.
#include "json/serialize.hpp"
#include "json/values.hpp"
#include "json/wording.hpp"

#include <belay/schema.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace belay::inline v0 {

std::string decode_error::text() const
{
    return path.empty() ? what : path + ": " + what;
}

namespace detail {

namespace {

// Member names come from the caller: long enough for any sensible name, short enough for a log line.
constexpr std::size_t max_segment_bytes = 64;

constexpr long double two_to_63 = 9223372036854775808.0L;
constexpr long double two_to_64 = 18446744073709551616.0L;

bool fail(decode_error& error, std::string_view what)
{
    error.path.clear();
    error.what = what;
    return false;
}

/// As a JSON integer if it is one.
json::value plain_number(long double number)
{
    if (number == std::trunc(number)) {
        if (number >= -two_to_63 && number < two_to_63)
            return static_cast<std::int64_t>(number);
        if (number >= 0 && number < two_to_64)
            return static_cast<std::uint64_t>(number);
    }
    return static_cast<double>(number);
}

bool is_within(long double number, field::bound low, field::bound high) noexcept
{
    return !(low && number < *low) && !(high && number > *high);
}

bool fail_number(decode_error& error, std::string_view type, field::bound low, field::bound high)
{
    return fail(error, expected_number(type, low, high));
}

/// An integer within the range of its type and of its note. The text shows the type's own bound only if that
/// is the one that was missed: "between -2147483648 and 2147483647" helps nobody who sent a string.
std::optional<long double>
read_integer(json::value const& in, long double low, long double high, field const* note, decode_error& error)
{
    field::bound least = note ? note->minimum() : std::nullopt;
    field::bound most = note ? note->maximum() : std::nullopt;
    auto const number = number_of(in);
    bool const is_integral = number && *number == std::trunc(*number);
    if (is_integral && is_within(*number, low, high) && is_within(*number, least, most))
        return number;
    if (is_integral && !is_within(*number, low, high)) {
        least = std::max(least.value_or(low), low);
        most = std::min(most.value_or(high), high);
    }
    static_cast<void>(fail_number(error, "integer", least, most));
    return std::nullopt;
}

std::optional<long double> read_real(json::value const& in, long double limit, field const* note, decode_error& error)
{
    field::bound const least = note ? note->minimum() : std::nullopt;
    field::bound const most = note ? note->maximum() : std::nullopt;
    auto const number = number_of(in);
    // A double in a json::value that was not parsed may be infinite or not a number.
    bool const is_finite = number && std::isfinite(*number);
    if (is_finite && is_within(*number, -limit, limit) && is_within(*number, least, most))
        return number;
    if (is_finite && !is_within(*number, -limit, limit))
        static_cast<void>(fail_number(error, "number", least.value_or(-limit), most.value_or(limit)));
    else
        static_cast<void>(fail_number(error, "number", least, most));
    return std::nullopt;
}

/// Escaped as JSON Pointer asks, and shortened, at the border of a character, if it is long.
std::string segment(std::string_view member)
{
    std::size_t end = member.size();
    if (end > max_segment_bytes) {
        end = max_segment_bytes;
        while (end > 0 && (static_cast<unsigned char>(member[end]) & 0xC0) == 0x80)
            --end;
    }
    auto out = pointer_step(member.substr(0, end));
    if (end < member.size())
        out += "…";
    return out;
}

}

std::string number_text(long double number)
{
    return json_text::to_json(plain_number(number));
}

std::string expected_number(std::string_view type, field::bound low, field::bound high)
{
    std::string what = "expected ";
    what += type;
    if (low && high)
        what += " between " + number_text(*low) + " and " + number_text(*high);
    else if (low)
        what += " of at least " + number_text(*low);
    else if (high)
        what += " of at most " + number_text(*high);
    return what;
}

bool read_bool(json::value const& in, bool& out, decode_error& error)
{
    auto const* const found = in.if_bool();
    if (!found)
        return fail(error, "expected boolean");
    out = *found;
    return true;
}

bool read_string(json::value const& in, std::string& out, decode_error& error)
{
    auto const* const found = in.if_string();
    if (!found)
        return fail(error, "expected string");
    out.assign(found->data(), found->size());
    return true;
}

bool read_signed(
    json::value const& in, std::int64_t low, std::int64_t high, field const* note, std::int64_t& out,
    decode_error& error)
{
    auto const number = read_integer(in, low, high, note, error);
    if (number)
        out = static_cast<std::int64_t>(*number);
    return number.has_value();
}

bool read_unsigned(
    json::value const& in, std::uint64_t high, field const* note, std::uint64_t& out, decode_error& error)
{
    auto const number = read_integer(in, 0, high, note, error);
    if (number)
        out = static_cast<std::uint64_t>(*number);
    return number.has_value();
}

bool read_double(json::value const& in, field const* note, double& out, decode_error& error)
{
    auto const number = read_real(in, std::numeric_limits<double>::max(), note, error);
    if (number)
        out = static_cast<double>(*number);
    return number.has_value();
}

bool read_float(json::value const& in, field const* note, float& out, decode_error& error)
{
    // Others write the largest float in its few digits, 3.4028235e+38, which as a double is a little more.
    constexpr long double most = std::numeric_limits<float>::max();
    constexpr double rounds_to_most = 3.4028235e+38;
    auto const number = read_real(in, rounds_to_most, note, error);
    if (number)
        out = static_cast<float>(std::clamp(*number, -most, most));
    return number.has_value();
}

std::optional<std::size_t>
read_name(json::value const& in, std::span<std::string_view const> names, decode_error& error)
{
    if (auto const* const found = in.if_string())
        for (std::size_t i = 0; i < names.size(); ++i)
            if (view(*found) == names[i])
                return i;
    std::string what = "expected one of";
    char const* before = " ";
    for (auto const name : names) {
        what += before;
        json_text::append_json_string(what, name);
        before = ", ";
    }
    static_cast<void>(fail(error, what));
    return std::nullopt;
}

json::array const* read_array(json::value const& in, decode_error& error)
{
    auto const* const found = in.if_array();
    if (!found)
        static_cast<void>(fail(error, "expected array"));
    return found;
}

json::object const* read_object(json::value const& in, decode_error& error)
{
    auto const* const found = in.if_object();
    if (!found)
        static_cast<void>(fail(error, "expected object"));
    return found;
}

bool missing(std::string_view member, decode_error& error)
{
    static_cast<void>(fail(error, "required"));
    return inside(member, error);
}

bool inside(std::string_view member, decode_error& error)
{
    error.path.insert(0, segment(member));
    return false;
}

bool inside(std::size_t index, decode_error& error)
{
    return inside(std::to_string(index), error);
}

json::value real_value(double in, json::storage_ptr const& storage)
{
    return std::isfinite(in) ? json::value(in, storage) : json::value(nullptr, storage);
}

json::value real_value(float in, json::storage_ptr const& storage)
{
    // 0.1f is written as 0.1 and not as 0.10000000149011612.
    double wide = in;
    if (std::isfinite(in)) {
        char text[32];
        auto const [end, code] = std::to_chars(text, text + sizeof text, in);
        static_cast<void>(code);
        double shortest = 0;
        std::from_chars(text, end, shortest);
        if (std::fabs(shortest) <= std::numeric_limits<float>::max() && static_cast<float>(shortest) == in)
            wide = shortest;
    }
    return real_value(wide, storage);
}

void throw_unnamed_value()
{
    throw std::logic_error("an enum value without a name has no JSON");
}

void put_type(json::object& schema, std::string_view type, field const* note)
{
    if (!type.empty())
        schema.emplace("type", json::string_view(type));
    if (note && !note->description().empty())
        schema.emplace("description", json::string_view(note->description()));
}

void put_range(json::object& schema, field::bound low, field::bound high)
{
    if (low)
        schema.emplace("minimum", plain_number(*low));
    if (high)
        schema.emplace("maximum", plain_number(*high));
}

void put_names(json::object& schema, std::span<std::string_view const> names)
{
    json::array& list = schema.emplace("enum", json::array()).first->value().get_array();
    for (auto const name : names)
        list.emplace_back(json::string_view(name));
}

void put_default(json::object& schema, json::value value, field const& note)
{
    if (value.is_null())
        return;
    if (auto const number = number_of(value)) {
        if (!is_within(*number, note.minimum(), note.maximum()))
            throw std::logic_error("the default of " + std::string(note.name()) + " is outside its range");
        value = plain_number(*number);
    }
    schema.emplace("default", std::move(value));
}

}

}
