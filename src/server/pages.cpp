#include "server/pages.hpp"

#include "base/ids.hpp"

namespace belay::detail {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

}

// Hexadecimal of "<list> <index> <key>": opaque enough, and safe in every place that a cursor may go.
std::string to_cursor(std::string_view list, place const& at)
{
    std::string plain(list);
    plain += ' ';
    base::append_base62(plain, at.index);
    plain += ' ';
    plain += at.after;
    std::string out;
    for (char const c : plain) {
        out += digits[static_cast<unsigned char>(c) >> 4];
        out += digits[static_cast<unsigned char>(c) & 15];
    }
    return out;
}

std::optional<place> parse_cursor(std::string_view list, std::string_view text)
{
    if (text.size() % 2 != 0 || text.size() > 16 * 1024)
        return std::nullopt;
    std::string plain;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        auto const high = digits.find(text[i]);
        auto const low = digits.find(text[i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos)
            return std::nullopt;
        plain += static_cast<char>(high * 16 + low);
    }
    std::string_view rest = plain;
    if (!rest.starts_with(list) || rest.size() <= list.size() || rest[list.size()] != ' ')
        return std::nullopt;
    rest.remove_prefix(list.size() + 1);
    auto const space = rest.find(' ');
    if (space == std::string_view::npos)
        return std::nullopt;
    auto const index = base::parse_base62(rest.substr(0, space));
    if (!index)
        return std::nullopt;
    return place{static_cast<std::size_t>(*index), std::string(rest.substr(space + 1))};
}

}
