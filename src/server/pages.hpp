// Lists in pages. A cursor says by itself where the next page begins, so that any node can go on, also after
// something was added or removed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace belay::inline v0::detail {

struct place {
    std::size_t index = 0; ///< of the next item
    std::string after;     ///< key of the item before it
};

/// `list` names the list, so that a cursor of another one is refused.
[[nodiscard]] std::string to_cursor(std::string_view list, place const& at);
/// Nothing for text that to_cursor() did not make for this list.
[[nodiscard]] std::optional<place> parse_cursor(std::string_view list, std::string_view text);

}
