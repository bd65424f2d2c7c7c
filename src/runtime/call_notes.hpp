// What the store keeps of a call for whoever has to end it, or run it again, in place of its owner. The store does not
// read it.
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
    base::duration time{};     ///< what it may take from its beginning on, however often it is run; zero: any time
    std::string request{};     ///< the message that asks for it; empty: it is not to be run again

    friend bool operator==(call_notes const&, call_notes const&) = default;
};

[[nodiscard]] std::string to_text(call_notes const& notes);
/// Of what cannot be read the careful defaults: a text of another version is no reason not to answer.
[[nodiscard]] call_notes read_call_notes(std::string_view text);

}
