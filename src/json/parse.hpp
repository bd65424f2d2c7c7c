// JSON text as values, without changing a number: the one reader of what comes from outside. Boost.JSON's own
// parser (1.81) reads one double in eight as its neighbour. Safe from any thread.
#pragma once

#include <belay/json.hpp>

#include <cstddef>
#include <expected>
#include <string_view>

namespace belay::json_text {

enum class parse_error {
    malformed,
    too_deep,
    inexact_number, ///< well-formed, but no value here holds this number
};

/// More than any message needs, and little enough for the stack of whoever walks the value.
inline constexpr std::size_t default_depth = 64;

/// Integers of 64 bits are exact, signed where they fit; -0, a fraction or an exponent makes the nearest double. A
/// number that would come out as another one is an error: an integer beyond 64 bits, unless it is what
/// append_json_number() writes for a double (browsers write theirs so, too); what is beyond the largest double; and
/// what is not zero and would be read as zero. Of two members with the same name the last one counts.
[[nodiscard]] std::expected<json::value, parse_error>
parse(std::string_view text, json::storage_ptr storage = {}, std::size_t max_depth = default_depth);

}
