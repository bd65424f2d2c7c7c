#include "json/serialize.hpp"

#include "json/values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

namespace belay::json_text {

namespace {

/// Whether none of 8 bytes needs care: all are ASCII from 0x20 on, and neither quote nor backslash.
bool is_plain(char const* bytes) noexcept
{
    constexpr std::uint64_t ones = 0x0101010101010101;
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    auto const has_zero = [](std::uint64_t x) { return (x - ones) & ~x; };
    std::uint64_t const found
        = word | ((word - ones * 0x20) & ~word) | has_zero(word ^ (ones * '"')) | has_zero(word ^ (ones * '\\'));
    return (found & (ones * 0x80)) == 0;
}

bool is_plain(unsigned char c) noexcept
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/// How many characters at the front need no care.
std::size_t plain_length(std::string_view text) noexcept
{
    std::size_t at = 0;
    while (at + 8 <= text.size() && is_plain(text.data() + at))
        at += 8;
    // The rest in one step, if there is enough before it to fill a word.
    if (text.size() >= 8 && text.size() - at < 8 && is_plain(text.data() + text.size() - 8))
        return text.size();
    while (at < text.size() && is_plain(static_cast<unsigned char>(text[at])))
        ++at;
    return at;
}

/// The length of the UTF-8 sequence at the front, which begins with a byte of 0x80 or more; 0 if it is not
/// UTF-8. The bounds of the second byte shut out overlong forms, surrogates and values above U+10FFFF.
std::size_t sequence_length(std::string_view text) noexcept
{
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned char const lead = byte(0);
    std::size_t length = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0)
            low = 0xA0;
        else if (lead == 0xED)
            high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0)
            low = 0x90;
        else if (lead == 0xF4)
            high = 0x8F;
    }
    if (length == 0 || text.size() < length || byte(1) < low || byte(1) > high)
        return 0;
    for (std::size_t i = 2; i < length; ++i)
        if ((byte(i) & 0xC0) != 0x80)
            return 0;
    return length;
}

void append_escape(std::string& out, unsigned char c)
{
    static constexpr char hex[] = "0123456789abcdef";
    switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default:
        out += "\\u00";
        out += hex[c >> 4];
        out += hex[c & 15];
    }
}

template<class Integer>
void append_integer(std::string& out, Integer number)
{
    char text[20]; // the digits of 2^64, or those of -2^63 with the sign
    auto const [end, code] = std::to_chars(text, text + sizeof text, number);
    static_cast<void>(code);
    out.append(text, end);
}

using detail::view;

constexpr double two_to_53 = 9007199254740992; // from here on every double is a whole number

}

void append_json_string(std::string& out, std::string_view utf8)
{
    std::size_t at = plain_length(utf8);
    if (at == utf8.size()) {
        // By far the most common: keys, names, short texts.
        std::size_t const before = out.size();
        std::size_t const after = before + at + 2;
        // The second argument is not used: libstdc++ 12 passes the capacity instead of the size.
        out.resize_and_overwrite(after, [&](char* text, std::size_t) {
            text[before] = '"';
            utf8.copy(text + before + 1, at);
            text[after - 1] = '"';
            return after;
        });
        return;
    }
    out += '"';
    std::size_t begin = 0; // of what is copied as it is
    while (at < utf8.size()) {
        auto const c = static_cast<unsigned char>(utf8[at]);
        std::size_t const length = c >= 0x80 ? sequence_length(utf8.substr(at)) : 0;
        if (length == 0) {
            out.append(utf8, begin, at - begin);
            if (c >= 0x80)
                out += "\xEF\xBF\xBD";
            else
                append_escape(out, c);
            begin = at + 1;
        }
        at += std::max<std::size_t>(length, 1);
        at += plain_length(utf8.substr(at));
    }
    out.append(utf8, begin);
    out += '"';
}

void append_json_number(std::string& out, double number)
{
    if (!std::isfinite(number)) {
        out += "null";
        return;
    }
    if (number == 0) {
        out += std::signbit(number) ? "-0.0" : "0";
        return;
    }
    double const size = std::fabs(number);
    bool const is_fixed = size >= 1e-6 && size < 1e21; // as Number.prototype.toString
    if (is_fixed && size >= two_to_53)
        return append_whole_number(out, number);
    char text[32]; // fixed: sign, "0.", 5 zeros and 17 digits; scientific: 24
    auto const [end, code] = std::to_chars(
        text, text + sizeof text, number, is_fixed ? std::chars_format::fixed : std::chars_format::scientific);
    static_cast<void>(code);
    std::string_view written(text, static_cast<std::size_t>(end - text));
    // to_chars writes at least two digits of exponent, browsers do not.
    auto const exponent = written.find('e');
    if (exponent != written.npos && written[exponent + 2] == '0') {
        out += written.substr(0, exponent + 2);
        written.remove_prefix(exponent + 3);
    }
    out += written;
}

void append_whole_number(std::string& out, double number)
{
    char text[32]; // sign, point, 17 digits, exponent
    auto const [end, code] = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
    static_cast<void>(code);
    auto* const mark = std::find(text, end, 'e');
    int exponent = 0;
    std::from_chars(mark + 2, end, exponent); // after "e+"
    auto const before = out.size();
    std::remove_copy(text, mark, std::back_inserter(out), '.');
    auto const sign = std::signbit(number) ? 1u : 0u;
    out.resize(before + sign + static_cast<std::size_t>(exponent) + 1, '0');
}

void append_json_number(std::string& out, std::int64_t number)
{
    append_integer(out, number);
}

void append_json_number(std::string& out, std::uint64_t number)
{
    append_integer(out, number);
}

void append_json(std::string& out, json::object const& object)
{
    char before = '{';
    for (auto const& member : object) {
        out += before;
        append_json_string(out, view(member.key()));
        out += ':';
        append_json(out, member.value());
        before = ',';
    }
    out += object.empty() ? "{}" : "}";
}

void append_json(std::string& out, json::array const& array)
{
    char before = '[';
    for (auto const& value : array) {
        out += before;
        append_json(out, value);
        before = ',';
    }
    out += array.empty() ? "[]" : "]";
}

void append_json(std::string& out, json::value const& value)
{
    switch (value.kind()) {
    case json::kind::null: out += "null"; return;
    case json::kind::bool_: out += value.get_bool() ? "true" : "false"; return;
    case json::kind::int64: append_json_number(out, value.get_int64()); return;
    case json::kind::uint64: append_json_number(out, value.get_uint64()); return;
    case json::kind::double_: append_json_number(out, value.get_double()); return;
    case json::kind::string: append_json_string(out, view(value.get_string())); return;
    case json::kind::array: append_json(out, value.get_array()); return;
    case json::kind::object: append_json(out, value.get_object()); return;
    }
}

std::string to_json(json::value const& value)
{
    std::string out;
    append_json(out, value);
    return out;
}

std::string to_json(json::object const& object)
{
    std::string out;
    append_json(out, object);
    return out;
}

}
