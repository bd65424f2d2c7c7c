// What the store keeps of a call for whoever has to end it in place of its owner. The store does not read it.
#pragma once

#include "runtime/call.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::runtime {

struct call_notes {
    bool is_tool_call = true;
    bool is_retry_safe = false;

    friend bool operator==(call_notes const&, call_notes const&) = default;
};

[[nodiscard]] std::string to_text(call_notes const& notes);
/// Of what cannot be read the careful defaults: a text of another version is no reason not to answer.
[[nodiscard]] call_notes read_call_notes(std::string_view text);

}
