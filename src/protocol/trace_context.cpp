#include "protocol/trace_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace belay::protocol {

namespace {

// version "-" trace-id "-" parent-id "-" flags
constexpr std::size_t trace_at = 3;
constexpr std::size_t trace_digits = 32;
constexpr std::size_t parent_at = 36;
constexpr std::size_t parent_digits = 16;
constexpr std::size_t flags_at = 53;
constexpr std::size_t version_0_bytes = 55;

constexpr std::size_t most_members = 32;

bool is_hex(std::string_view text) noexcept
{
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_zero(std::string_view text) noexcept
{
    return text.find_first_not_of('0') == std::string_view::npos;
}

bool is_lower(char c) noexcept
{
    return c >= 'a' && c <= 'z';
}

bool is_digit(char c) noexcept
{
    return c >= '0' && c <= '9';
}

bool is_key_part(std::string_view text, std::size_t longest, bool may_begin_with_digit) noexcept
{
    if (text.empty() || text.size() > longest || !(is_lower(text[0]) || (may_begin_with_digit && is_digit(text[0]))))
        return false;
    return std::ranges::all_of(
        text, [](char c) { return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '*' || c == '/'; });
}

bool is_key(std::string_view key) noexcept
{
    auto const at = key.find('@');
    if (at == std::string_view::npos)
        return is_key_part(key, 256, false);
    return is_key_part(key.substr(0, at), 241, true) && is_key_part(key.substr(at + 1), 14, false);
}

bool is_value(std::string_view value) noexcept
{
    return !value.empty() && value.size() <= 256 && value.back() != ' '
        && std::ranges::all_of(value, [](char c) { return c >= 0x20 && c <= 0x7e && c != ',' && c != '='; });
}

bool is_tracestate(std::string_view text)
{
    std::vector<std::string_view> keys;
    for (std::size_t at = 0; at <= text.size();) {
        auto const comma = std::min(text.find(',', at), text.size());
        auto member = text.substr(at, comma - at);
        at = comma + 1;
        auto const first = member.find_first_not_of(" \t");
        if (first == std::string_view::npos) // an empty member is allowed
            continue;
        member = member.substr(first, member.find_last_not_of(" \t") - first + 1);
        auto const equals = member.find('=');
        if (equals == std::string_view::npos)
            return false;
        auto const key = member.substr(0, equals);
        if (!is_key(key) || !is_value(member.substr(equals + 1)) || keys.size() == most_members
            || std::ranges::find(keys, key) != keys.end())
            return false;
        keys.push_back(key);
    }
    return !keys.empty();
}

std::optional<std::string_view> text_in(json::object const& object, std::string_view name)
{
    auto const* const value = object.if_contains(name);
    if (!value || !value->is_string())
        return std::nullopt;
    return std::string_view(value->get_string().data(), value->get_string().size());
}

}

std::string trace_context::traceparent() const
{
    return fmt::format("00-{}-{}-{:02x}", trace_id, parent_id, flags);
}

std::optional<trace_context> parse_trace_context(std::string_view traceparent, std::string_view tracestate)
{
    if (traceparent.size() < version_0_bytes)
        return std::nullopt;
    auto const version = traceparent.substr(0, 2);
    auto const trace = traceparent.substr(trace_at, trace_digits);
    auto const parent = traceparent.substr(parent_at, parent_digits);
    auto const flags = traceparent.substr(flags_at, 2);
    bool const has_marks = traceparent[2] == '-' && traceparent[trace_at + trace_digits] == '-'
        && traceparent[parent_at + parent_digits] == '-';
    if (!has_marks || !is_hex(version) || version == "ff" || !is_hex(trace) || is_zero(trace) || !is_hex(parent)
        || is_zero(parent) || !is_hex(flags))
        return std::nullopt;
    // A later version may say more behind another dash; version 00 may not.
    if (traceparent.size() > version_0_bytes && (version == "00" || traceparent[version_0_bytes] != '-'))
        return std::nullopt;
    trace_context context{std::string(trace), std::string(parent), 0, {}};
    std::from_chars(flags.data(), flags.data() + flags.size(), context.flags, 16);
    if (is_tracestate(tracestate))
        context.tracestate = tracestate;
    return context;
}

std::optional<trace_context> trace_context_of(
    json::object const* meta, std::optional<std::string_view> traceparent, std::optional<std::string_view> tracestate)
{
    if (meta)
        if (auto const parent = text_in(*meta, "traceparent"))
            if (auto found = parse_trace_context(*parent, text_in(*meta, "tracestate").value_or("")))
                return found;
    return traceparent ? parse_trace_context(*traceparent, tracestate.value_or("")) : std::nullopt;
}

}
