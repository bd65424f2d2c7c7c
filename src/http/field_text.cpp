#include "http/field_text.hpp"

#include <algorithm>
#include <charconv>

namespace belay::http {

namespace {

char lower(char c) noexcept
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

}

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept
{
    return a.size() == b.size()
        && std::equal(a.begin(), a.end(), b.begin(), [](char left, char right) { return lower(left) == lower(right); });
}

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
