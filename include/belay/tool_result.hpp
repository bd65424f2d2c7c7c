// What a tool answers where a text or a struct is not enough.
#pragma once

#include <belay/json.hpp>

#include <optional>
#include <string>

namespace belay::inline v0 {

/// What a tool answers, in full. Without content it is one text block.
struct tool_result {
    std::string text;
    json::array content;
    std::optional<json::value> structured;
    bool is_error = false;
    json::object meta{}; ///< `_meta` of the result
};

}
