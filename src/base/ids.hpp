// Random numbers and the names made of them. Session ids are secrets (128 bits from the system's
// generator); stream ids are 64 bits. Both are written in base62.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace belay::base {

class random_source {
public:
    virtual ~random_source() = default;
    virtual std::uint64_t next() = 0;
    /// Uniform in [0, bound); 0 for a bound of 0.
    std::uint64_t below(std::uint64_t bound);
};

/// The system's generator, buffered per thread. Safe from any thread; fit for secrets.
class system_random final : public random_source {
public:
    std::uint64_t next() override;
};

/// The same numbers for the same seed. For tests and the simulation.
class seeded_random final : public random_source {
public:
    explicit seeded_random(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t next() override { return engine_(); }

private:
    std::mt19937_64 engine_;
};

struct id128 {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend auto operator<=>(id128 const&, id128 const&) = default;
};

[[nodiscard]] id128 make_id128(random_source& random);

/// Base62 without leading zeros; "0" for zero.
void append_base62(std::string& out, std::uint64_t value);
/// Nothing if the text is empty, has another character, a leading zero, or does not fit.
[[nodiscard]] std::optional<std::uint64_t> parse_base62(std::string_view text) noexcept;

/// FNV-1a of a text: the same on every node and in every version. Finds accidents, and keeps nobody out.
[[nodiscard]] std::uint64_t fingerprint(std::string_view text) noexcept;

/// 22 characters.
[[nodiscard]] std::string to_string(id128 id);
[[nodiscard]] std::optional<id128> parse_id128(std::string_view text) noexcept;

/// The number that log_name() writes, of 48 bits: names are in the order of their numbers.
[[nodiscard]] std::uint64_t log_number(id128 id) noexcept;
/// A short name for logs from which the id cannot be recovered.
[[nodiscard]] std::string log_name(id128 id);

}
