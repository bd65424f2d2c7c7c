#include "http/field_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace belay::http {

namespace {

constexpr auto host_bytes = [] {
    std::array<bool, 256> is_good{};
    for (unsigned c = 0; c < 256; ++c)
        is_good[c] = is_visible(static_cast<char>(c))
            && std::string_view("/\\@?#\"<>`{}|^").find(static_cast<char>(c)) == std::string_view::npos;
    return is_good;
}();

}

bool is_host(std::string_view text) noexcept
{
    return std::ranges::all_of(text, [](char c) { return host_bytes[static_cast<unsigned char>(c)]; });
}

std::string_view trimmed(std::string_view text) noexcept
{
    auto const is_blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back()))
        text.remove_suffix(1);
    return text;
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
