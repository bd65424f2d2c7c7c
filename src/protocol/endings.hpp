// How a call ends when it does not end by its own result, and what its caller is told. One list of
// reasons for the wire, logs and metrics.
#pragma once

#include <string>
#include <string_view>

namespace belay::protocol {

enum class end_reason {
    cancelled,
    orphaned, ///< nobody was connected to it for as long as its tool allows
    timed_out,
    interrupted,
    owner_lost,
    session_ended,
    result_too_large,
    overloaded
};

[[nodiscard]] std::string_view to_string(end_reason reason) noexcept;

/// What the ended request was. A tool that may be run again safely says so.
struct ended_request {
    std::string_view id; ///< JSON text
    bool is_tool_call = true;
    bool is_retry_safe = false;
    bool has_started = true; ///< false: it ended while it waited for its turn, so nothing was done
};

/// The final message of the call's stream. A tool call gets a result with `isError` and a sentence that a model can
/// act on (stock clients do not see JSON-RPC errors on a resumed call); cancelled calls, ended sessions and other
/// methods get a JSON-RPC error.
[[nodiscard]] std::string ended_answer(ended_request const& request, end_reason reason);

/// No ended_answer() to a request with that id is longer, whatever it was and however it ends.
[[nodiscard]] std::size_t longest_ended_answer(std::string_view id);

/// What a caller is told whose idempotency key was used for a call of which nothing is kept.
[[nodiscard]] std::string_view spent_key_text() noexcept;

/// The warning that stands where events are missing. `restarted`: the log began anew, so the number is unknown
/// unless from…to says it.
[[nodiscard]] std::string gap_notice(std::uint64_t from, std::uint64_t to, bool restarted);

/// The warning that a call is run again, and why: what follows is of that run, which is the `attempt`th.
[[nodiscard]] std::string rerun_notice(std::uint32_t attempt, end_reason why);

}
