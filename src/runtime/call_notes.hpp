// What the store keeps of a call for whoever has to end it, or run it again, in place of its owner. The store does not
// read it.
#pragma once

#include "base/clock.hpp"
#include "runtime/call_traits.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belay::runtime {

struct call_notes {
    std::vector<request_kind> requests{}; ///< in their order; a batch has several
    base::duration time{};   ///< what it may take from its beginning on, however often it is run; zero: any time
    std::string request{};   ///< the message that asks for it; empty: it is not to be run again

    /// Of a request that nothing is said of the careful defaults.
    [[nodiscard]] request_kind kind_of(std::uint32_t number) const noexcept
    {
        return number < requests.size() ? requests[number] : request_kind();
    }

    friend bool operator==(call_notes const&, call_notes const&) = default;
};

[[nodiscard]] std::string to_text(call_notes const& notes);
/// Of what cannot be read the careful defaults: a text of another version is no reason not to answer.
[[nodiscard]] call_notes read_call_notes(std::string_view text);

}
