// How belay reports failure. A failure that a correct program meets in normal life is a value:
// result<T> with an errc. Exceptions are for start-up, broken invariants, and user tool code.
#pragma once

#include <expected>
#include <string>
#include <system_error>

namespace belay::inline v0 {

/// Why an operation did not happen. Also the label of metrics and the word in logs.
enum class errc {
    bad_request = 1,  ///< The caller sent something that cannot be understood.
    not_found,        ///< No such session, stream or call, for this principal.
    finished,         ///< The stream has its final answer; nothing can follow it.
    fenced,           ///< The call's lease belongs to someone else now.
    conflict,         ///< A record changed since it was read.
    too_large,        ///< One event or body is over its limit.
    too_many_streams, ///< The session keeps as many streams as it may and none can go.
    too_many_sessions,///< The server keeps as many sessions as it may.
    no_space,         ///< The byte limit of the session or the store is reached.
    other_epoch,      ///< The cursor belongs to an earlier life of the stream.
    unavailable,      ///< The store or the server cannot serve this now; try again later.
    timed_out,        ///< It took longer than its limit.
    closed,           ///< The other side, or the server, is going away.
    cancelled,        ///< The caller asked for it to stop.
    key_spent,        ///< A call with this key was made, and its outcome is no longer kept.
    key_mismatch,     ///< The key belongs to a call with other arguments.
    duplicate_id,     ///< A call with this id is still running.
    too_many_subscriptions, ///< The session has as many subscriptions as it may.
    stream_gone,      ///< The session lives, but does not keep such a stream.
    bad_cursor,       ///< The cursor names a place that its stream does not have.
};

[[nodiscard]] std::error_category const& error_category() noexcept;
[[nodiscard]] std::error_code make_error_code(errc code) noexcept;

template<class T>
using result = std::expected<T, std::error_code>;

/// Shorthand for returning an error as a result.
[[nodiscard]] inline std::unexpected<std::error_code> failure(errc code) noexcept
{
    return std::unexpected(make_error_code(code));
}

}

template<>
struct std::is_error_code_enum<belay::errc> : std::true_type {};
