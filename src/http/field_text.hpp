// Texts in the fields of HTTP and of server-sent events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belay::http {

/// ASCII only, as field names are. Here, because every look for a field ends in it.
[[nodiscard]] inline bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept
{
    auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    if (a.size() != b.size())
        return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}
/// Without blanks and tabs around it.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
/// A line break in a field would let its author write further fields or a body.
[[nodiscard]] bool is_one_line(std::string_view text) noexcept;
void append_number(std::string& out, std::size_t value);

}
