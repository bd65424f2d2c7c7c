// How errors speak of numbers, the same for structs and for schemas.
#pragma once

#include <belay/schema.hpp>

#include <string>
#include <string_view>

namespace belay::inline v0::detail {

[[nodiscard]] std::string number_text(long double number);

/// "expected integer between 1 and 50"
[[nodiscard]] std::string expected_number(std::string_view type, field::bound low, field::bound high);

}
