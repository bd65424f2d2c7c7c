// JSON as compact text, appended to a string that may already hold the rest of a message. Doubles are
// written the way browsers write them: 10, 0.5, 1e+21, and not Boost.JSON's 1E1, 5E-1. The text has no line
// breaks, so it fits on one line of stdio or SSE. Safe from any thread.
#pragma once

#include <belay/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace belay::json_text {

/// With the quotes. Bytes that are not UTF-8 become U+FFFD, one for each.
void append_json_string(std::string& out, std::string_view utf8);

/// The fewest digits that read back as the same double; null if it is not finite. An integral value below
/// 1e21 has no fraction, so parsers that tell the two apart read it as an integer; only -0.0 keeps its ".0".
void append_json_number(std::string& out, double number);
/// The same digits, always without an exponent: filled up with zeros. For finite numbers from 2^53 on, and negative
/// ones.
void append_whole_number(std::string& out, double number);
void append_json_number(std::string& out, std::int64_t number);
void append_json_number(std::string& out, std::uint64_t number);

/// Recursive: the depth of the value is bounded by the stack, as in Boost.JSON itself.
void append_json(std::string& out, json::value const& value);
void append_json(std::string& out, json::object const& object);
void append_json(std::string& out, json::array const& array);

[[nodiscard]] std::string to_json(json::value const& value);
[[nodiscard]] std::string to_json(json::object const& object);

}
