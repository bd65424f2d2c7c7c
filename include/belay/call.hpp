// The call a tool is serving: how it talks to its caller while it runs. Nothing here says HTTP, session or
// node; the caller may go away and come back, and the tool does not notice.
//
// A call and its tool live on one loop (one thread); none of this may be used from another thread. When the
// call is cancelled or ends otherwise, the next await on it leaves the tool by unwinding; destructors run.
#pragma once

#include <belay/json.hpp>
#include <belay/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace belay {

enum class log_level { debug, info, notice, warning, error, critical, alert, emergency };

namespace detail {
class call_state;
}

/// Counts steps towards a total. Free when the caller did not ask for progress.
class progress_meter {
public:
    /// One step further.
    [[nodiscard]] task<void> step(std::string message = {});
    /// At this value now; only ever increasing. Reports closer than 20 ms are merged, the newest wins.
    [[nodiscard]] task<void> report(double value, std::string message = {});

private:
    friend class call;
    progress_meter(std::shared_ptr<detail::call_state> state, std::optional<double> total);

    std::shared_ptr<detail::call_state> state_;
    std::optional<double> total_;
    double value_ = 0;
};

class call {
public:
    explicit call(std::shared_ptr<detail::call_state> state);

    /// Sends a log message to the caller, unless its level is below what the session asked for. Never dropped: waits
    /// while the caller is too far behind. Throws std::system_error if the message cannot be kept.
    [[nodiscard]] task<void> log(log_level level, std::string logger, json::value data);
    [[nodiscard]] task<void> log(log_level level, std::string logger, std::string text);
    [[nodiscard]] task<void> log(log_level level, std::string logger, char const* text);

    [[nodiscard]] progress_meter progress(double total);
    [[nodiscard]] progress_meter progress();

    /// Waits on the server's clock.
    [[nodiscard]] task<void> sleep(std::chrono::nanoseconds time);

    /// Whether the call has ended without the tool: cancelled, timed out, or the server is stopping.
    [[nodiscard]] bool is_cancelled() const noexcept;

    /// Ends the caller's connection, not the call: the caller comes back after `retry` and misses nothing.
    void close_connection(std::chrono::milliseconds retry);

private:
    std::shared_ptr<detail::call_state> state_;
};

}
