#include "http/field_text.hpp"

#include <algorithm>
#include <charconv>

namespace belay::http {

std::string_view trimmed(std::string_view text) noexcept
{
    auto const first = std::min(text.find_first_not_of(" \t"), text.size());
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_one_line(std::string_view text) noexcept
{
    return std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

void append_number(std::string& out, std::size_t value)
{
    char digits[20];
    auto const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out.append(digits, end);
}

}
