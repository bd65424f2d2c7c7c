// The call that a blocking function serves: how it talks to its caller from a thread of its own. The caller may
// go away and come back, and the function does not notice.
//
// Every function here may be called from any thread, as long as the tool's function has not returned, and never
// waits for anything.
#pragma once

#include <belay/call.hpp>
#include <belay/json.hpp>

#include <optional>
#include <string>

namespace belay::inline v0 {

namespace detail {
class blocking_state;
}

class blocking_call {
public:
    blocking_call(blocking_call const&) = delete;
    blocking_call& operator=(blocking_call const&) = delete;

    /// Sends a log message to the caller, unless its level is below what the session asked for. Messages keep their
    /// order and come before the answer. A function that logs faster than the server can take it loses the oldest
    /// messages beyond half of what a stream keeps, and the caller is told how many.
    void log(log_level level, std::string const& logger, json::value const& data);
    void log(log_level level, std::string const& logger, std::string const& text);
    void log(log_level level, std::string const& logger, char const* text);

    /// At this value now; only ever increasing. Free when the caller did not ask for progress. Reports closer than
    /// 20 ms are merged, the newest wins.
    void progress(double value, std::optional<double> total = std::nullopt, std::string const& message = {});

    // --- who calls

    [[nodiscard]] belay::session session() const;
    [[nodiscard]] std::string principal() const { return session().principal(); }
    /// The W3C trace that the request belongs to; empty fields if there is none.
    [[nodiscard]] belay::trace trace() const;
    /// The request's `_meta`.
    [[nodiscard]] json::object const& meta() const;

    /// Whether the call has ended without the function: cancelled, timed out, or the server is stopping. Nobody will
    /// see the result then, so a function that takes long looks here and returns early.
    [[nodiscard]] bool is_cancelled() const noexcept;

private:
    friend struct detail::access;
    explicit blocking_call(detail::blocking_state& state) : state_(state) {}

    detail::blocking_state& state_;
};

}
