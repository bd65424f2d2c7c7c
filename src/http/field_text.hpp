// Texts in the fields of HTTP and of server-sent events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace belay::http {

/// Eight bytes with the capital letters of ASCII made small.
[[nodiscard]] constexpr std::uint64_t fold_case(std::uint64_t bytes) noexcept
{
    constexpr std::uint64_t each = 0x0101010101010101;
    auto const low = bytes & (each * 0x7f);
    auto const from_a = low + each * (0x80 - 'A');
    auto const beyond_z = low + each * (0x7f - 'Z');
    auto const is_capital = (from_a ^ beyond_z) & ~bytes & (each * 0x80);
    return bytes | is_capital >> 2;
}

/// ASCII only, as field names are. Here, because every look for a field ends in it.
[[nodiscard]] inline bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept
{
    if (a.size() != b.size())
        return false;
    if (a.size() < 8) {
        for (std::size_t i = 0; i < a.size(); ++i)
            if (a[i] != b[i]
                && fold_case(static_cast<unsigned char>(a[i])) != fold_case(static_cast<unsigned char>(b[i])))
                return false;
        return true;
    }
    auto const differ = [&](std::size_t at) {
        std::uint64_t ours = 0;
        std::uint64_t theirs = 0;
        std::memcpy(&ours, a.data() + at, 8);
        std::memcpy(&theirs, b.data() + at, 8);
        return ours != theirs && fold_case(ours) != fold_case(theirs);
    };
    for (std::size_t at = 0; at + 8 < a.size(); at += 8)
        if (differ(at))
            return false;
    return !differ(a.size() - 8); // some of these again, perhaps
}
/// Tells most names of fields apart without a look at the whole of them: the same for names that are equal but for
/// case.
[[nodiscard]] constexpr std::uint32_t field_key(std::string_view name) noexcept
{
    if (name.empty())
        return 0;
    auto const folded = [&](std::size_t at) { return static_cast<std::uint32_t>(name[at] | 0x20) & 0xff; };
    return static_cast<std::uint32_t>(name.size() & 0xff) | folded(0) << 8 | folded(name.size() / 2) << 16
        | folded(name.size() - 1) << 24;
}

/// One byte that can be seen: no blank, no control character.
[[nodiscard]] constexpr bool is_visible(char c) noexcept
{
    return c > 0x20 && c < 0x7f;
}
[[nodiscard]] constexpr bool is_digit(char c) noexcept
{
    return c >= '0' && c <= '9';
}
/// Visible, and nothing that separates the parts of a URL or would have to be quoted in one.
[[nodiscard]] bool is_host(std::string_view text) noexcept;
/// Without blanks and tabs around it.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
/// A line break in a field would let its author write further fields or a body.
[[nodiscard]] bool is_one_line(std::string_view text) noexcept;
void append_number(std::string& out, std::size_t value);

}
