// The side of a call that its tool sees, and the coroutine the tool runs in. On the call's loop.
#pragma once

#include "protocol/revision.hpp"
#include "runtime/call.hpp"

#include <belay/server.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <functional>
#include <memory>
#include <string>

namespace belay::runtime {
class node;
}

namespace belay::detail {

/// Leaves the tool when its call has ended. Not a std::exception, so that a tool's `catch` does not stop it.
struct unwinding {};

class call_state : public std::enable_shared_from_this<call_state> {
public:
    call_state(runtime::node& node, std::shared_ptr<runtime::call> on, std::string token);

    [[nodiscard]] task<void> emit(std::string message);
    [[nodiscard]] task<void> sleep(std::chrono::nanoseconds time);
    void progress(double value, std::optional<double> total, std::string const& message);
    [[nodiscard]] bool wants_log(log_level level) const;
    [[nodiscard]] bool is_ended() const noexcept { return on_->is_ended(); }
    void throw_if_ended() const;
    void close_connection(std::chrono::milliseconds retry) { on_->close_connection(retry); }

    /// The call has ended from outside: whatever the tool awaits is woken.
    void interrupt();

    [[nodiscard]] runtime::call& on() const noexcept { return *on_; }
    [[nodiscard]] runtime::node& node() const noexcept { return node_; }
    [[nodiscard]] boost::asio::cancellation_signal& signal() noexcept { return signal_; }

private:
    /// Suspends the tool until resume().
    [[nodiscard]] task<void> suspend();
    void resume();

    runtime::node& node_;
    std::shared_ptr<runtime::call> on_;
    std::string token_; // JSON text
    std::move_only_function<void()> suspended_;
    boost::asio::cancellation_signal signal_;
};

/// Starts the tool's coroutine on the call's loop; it runs until it first waits before this returns.
void start_tool(
    runtime::node& node, std::shared_ptr<runtime::call> on, protocol::revision revision, std::string name,
    std::string token, waiting_call run);

}
