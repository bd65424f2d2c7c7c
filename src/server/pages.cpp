#include "server/pages.hpp"

#include "base/ids.hpp"

namespace belay::inline v0::detail {

namespace {

constexpr std::string_view digits = "0123456789abcdef";
constexpr std::size_t seal_bytes = 8;

std::string seal_of(std::string_view plain)
{
    auto const number = base::fingerprint(plain);
    std::string seal;
    for (std::size_t i = 0; i < seal_bytes; ++i)
        seal += static_cast<char>(number >> (8 * i) & 0xFF);
    return seal;
}

}

// Hexadecimal of "<list> <index> <key>" and its seal: opaque enough, and safe in every place that a cursor may go. The
// seal is no secret; it tells a cursor of ours from one that somebody has changed or made up.
std::string to_cursor(std::string_view list, place const& at)
{
    std::string plain(list);
    plain += ' ';
    base::append_base62(plain, at.index);
    plain += ' ';
    plain += at.after;
    plain += seal_of(plain);
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
    if (plain.size() < seal_bytes)
        return std::nullopt;
    std::string_view rest(plain.data(), plain.size() - seal_bytes);
    if (seal_of(rest) != std::string_view(plain).substr(rest.size()))
        return std::nullopt;
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
