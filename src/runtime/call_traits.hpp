// What the service knows about a request before it runs.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace belay::runtime {

/// What decides what a request is told that is ended in another way than its handler says.
struct request_kind {
    bool is_tool_call = true;
    bool is_retry_safe = false;
    friend bool operator==(request_kind const&, request_kind const&) = default;
};

struct call_traits : request_kind {
    std::optional<base::duration> max_duration; ///< absent: call.max_duration
    std::optional<base::duration> orphan_limit; ///< cancelled after being without a reader for this long
    bool waits_for_reader = true;
    bool has_started = true; ///< false once the call has ended before its handler was started
};

/// A request that may be run again, elsewhere, when its run was lost.
struct rerun_request {
    std::uint64_t work = 0; ///< names what it runs: whoever has just that may run it; never 0
    std::string message;    ///< the request as JSON text
};

/// A request that waits for its answer, and what is needed to end it in another way than its handler says.
struct open_request {
    std::uint32_t number = 0; ///< which request of its message; a batch has several
    std::string id;           ///< JSON text
    call_traits traits;
};

}
