// What every transport does to begin a call: what it asks of the node, what runs once the call is there, and what a
// caller is told of one that could not be begun.
#pragma once

#include "protocol/message.hpp"
#include "protocol/revision.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/node.hpp"
#include "runtime/service.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace belay::transport {

/// Where the message of a call came from.
struct call_origin {
    runtime::caller from = runtime::caller::program;
    std::string_view principal; ///< empty: nobody's, as where there are no sessions
    std::optional<protocol::trace_context> trace{};
    std::size_t bytes = 0; ///< of the message
};

/// Takes out of `start` what the node needs to know.
[[nodiscard]] runtime::call_request
request_for(std::string id, protocol::revision revision, runtime::start_call& start, call_origin origin);

/// Runs the handler, or repeats the call that was made first with the same key.
void run(runtime::node& node, runtime::start_call& start, runtime::begun_call const& begun);

/// Whether it is the fault of the call's idempotency key: its caller is answered, and nothing is refused.
[[nodiscard]] bool is_about_key(std::error_code why) noexcept;

/// The answer to a call with a key in a batch, which is not made.
[[nodiscard]] protocol::rpc_error batched_key_error();

/// The answer to a call that could not be begun.
[[nodiscard]] protocol::rpc_error begin_error(std::error_code why);

}
