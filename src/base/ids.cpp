#include "base/ids.hpp"

#include <array>
#include <cstring>
#include <sys/random.h>
#include <system_error>
#include <utility>

namespace belay::base {

namespace {

constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr int half_digits = 11; // 62^11 > 2^64

// A table, because nobody can foresee the digits of an id: a branch would be taken wrongly half of the time.
constexpr auto digit_values = [] {
    std::array<std::int8_t, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < digits.size(); ++i)
        values[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
    return values;
}();

int digit_value(char c) noexcept
{
    return digit_values[static_cast<unsigned char>(c)];
}

std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept
{
    std::uint64_t value = 0;
    auto const fitting = text.substr(0, half_digits - 1); // 62^10 is less than 2^60
    for (char const c : fitting) {
        int const digit = digit_value(c);
        if (digit < 0)
            return std::nullopt;
        value = value * 62 + static_cast<std::uint64_t>(digit);
    }
    for (char const c : text.substr(fitting.size())) {
        int const digit = digit_value(c);
        if (digit < 0 || __builtin_mul_overflow(value, std::uint64_t(62), &value)
            || __builtin_add_overflow(value, static_cast<std::uint64_t>(digit), &value))
            return std::nullopt;
    }
    return value;
}

}

std::uint64_t random_source::below(std::uint64_t bound)
{
    if (bound == 0)
        return 0;
    // Rejection keeps it uniform.
    std::uint64_t const limit = ~std::uint64_t(0) - (~std::uint64_t(0) % bound);
    std::uint64_t value = next();
    while (value >= limit)
        value = next();
    return value % bound;
}

std::uint64_t system_random::next()
{
    thread_local std::array<std::uint64_t, 32> buffer;
    thread_local std::size_t left = 0;
    if (left == 0) {
        std::size_t have = 0;
        while (have < sizeof buffer) {
            auto const got = ::getrandom(reinterpret_cast<char*>(buffer.data()) + have, sizeof buffer - have, 0);
            if (got < 0) {
                if (errno == EINTR)
                    continue;
                throw std::system_error(errno, std::generic_category(), "getrandom");
            }
            have += static_cast<std::size_t>(got);
        }
        left = buffer.size();
    }
    return std::exchange(buffer[--left], 0);
}

id128 make_id128(random_source& random)
{
    auto const high = random.next();
    return {high, random.next()};
}

void append_base62(std::string& out, std::uint64_t value)
{
    char text[half_digits];
    int at = half_digits;
    do {
        text[--at] = digits[value % 62];
        value /= 62;
    } while (value != 0);
    out.append(text + at, static_cast<std::size_t>(half_digits - at));
}

std::optional<std::uint64_t> parse_base62(std::string_view text) noexcept
{
    if (text.empty() || text.size() > half_digits || (text.size() > 1 && text[0] == '0'))
        return std::nullopt;
    return parse_digits(text);
}

std::uint64_t fingerprint(std::string_view text) noexcept
{
    std::uint64_t found = 14695981039346656037u;
    for (char const c : text)
        found = (found ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return found;
}

std::string to_string(id128 id)
{
    std::string text(2 * half_digits, '0');
    auto const put = [&](std::uint64_t value, int end) {
        for (int at = end; value != 0; value /= 62)
            text[static_cast<std::size_t>(--at)] = digits[value % 62];
    };
    put(id.high, half_digits);
    put(id.low, 2 * half_digits);
    return text;
}

std::optional<id128> parse_id128(std::string_view text) noexcept
{
    if (text.size() != 2 * half_digits)
        return std::nullopt;
    auto const high = parse_digits(text.substr(0, half_digits));
    auto const low = parse_digits(text.substr(half_digits));
    if (!high || !low)
        return std::nullopt;
    return id128{*high, *low};
}

std::uint64_t log_number(id128 id) noexcept
{
    // A one-way mix (the finaliser of a 64-bit hash) cut to 48 bits: 2^80 ids share each name, and among a hundred
    // thousand sessions two hardly ever do.
    std::uint64_t mixed = id.high ^ (id.low * 0x9E3779B97F4A7C15ULL);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    mixed ^= mixed >> 31;
    return mixed >> 16;
}

std::string log_name(id128 id)
{
    auto const number = log_number(id);
    static constexpr char hex[] = "0123456789abcdef";
    std::string text(12, '0');
    for (int i = 0; i < 12; ++i)
        text[static_cast<std::size_t>(i)] = hex[(number >> (44 - 4 * i)) & 15];
    return text;
}

}
