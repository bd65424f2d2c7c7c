// Texts in the fields of HTTP and of server-sent events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belay::http {

/// ASCII only, as field names are.
[[nodiscard]] bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept;
/// Without blanks and tabs around it.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
/// A line break in a field would let its author write further fields or a body.
[[nodiscard]] bool is_one_line(std::string_view text) noexcept;
void append_number(std::string& out, std::size_t value);

}
