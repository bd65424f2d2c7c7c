// One running request that has a stream: performs the producer machine's actions on the store. Belongs to
// the loop whose POST started it, to its end; every function here is called on that loop unless it says
// otherwise. It does not know the connection that started it: connections come and go.
#pragma once

#include "base/log.hpp"
#include "base/loop.hpp"
#include "engine/producer.hpp"
#include "protocol/endings.hpp"
#include "protocol/trace_context.hpp"
#include "store/ports.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace belay::runtime {

class node;
class live_session;

/// What the service knows about a request before it runs.
struct call_traits {
    bool is_tool_call = true;
    bool is_retry_safe = false;
    std::optional<base::duration> max_duration; ///< absent: call.max_duration
    std::optional<base::duration> orphan_limit; ///< cancelled after being without a reader for this long
    bool waits_for_reader = true;
};

class call : public std::enable_shared_from_this<call> {
public:
    using emitted = std::move_only_function<void(std::error_code)>;
    using held_answer = std::move_only_function<void(std::string)>;

    /// With `answer` the call has no stream: emits go nowhere and the answer goes there (`--answer json`).
    call(
        node& node, std::shared_ptr<live_session> session, base::loop& loop, store::stream_id stream,
        store::fence fence, std::string id, call_traits traits, held_answer answer);
    ~call();

    /// Registers timers and watches. Once, before the handler starts.
    void begin();

    /// Which trace the request belongs to. Before begin().
    void set_trace(std::optional<protocol::trace_context> trace) { trace_ = std::move(trace); }
    [[nodiscard]] std::optional<protocol::trace_context> const& trace() const noexcept { return trace_; }

    /// Appends a message to the call's stream. If it may go on at once, returns the outcome and drops `done`;
    /// otherwise `done` is called when the reader has caught up, on the loop.
    [[nodiscard]] std::optional<std::error_code> emit(std::string message, emitted done);
    /// Newest wins; never waits.
    void progress(std::string message);
    /// The handler's own answer. Refused and counted if the call has ended otherwise.
    void answer(std::string response);
    /// Ends the call for a reason that is not the handler's. The handler is told.
    void end(protocol::end_reason reason);
    /// Closes the connection that follows the call, not the call; the client comes back after `retry`.
    void close_connection(std::chrono::milliseconds retry);

    /// Keeps what serves the call, until the call is done.
    void keep(std::shared_ptr<void> handler) { handler_ = std::move(handler); }
    /// Called once when the call ends by anything but its handler's answer.
    void on_interrupt(std::move_only_function<void()> interrupt);

    [[nodiscard]] bool is_ended() const noexcept { return is_ended_; }
    [[nodiscard]] std::optional<protocol::end_reason> end_reason() const noexcept { return reason_; }
    // From any thread:
    [[nodiscard]] bool has_stream() const noexcept { return has_stream_; }
    [[nodiscard]] base::loop& loop() const noexcept { return loop_; }
    [[nodiscard]] store::stream_key const& stream() const noexcept { return stream_; }
    [[nodiscard]] std::string const& id() const noexcept { return id_; }
    [[nodiscard]] live_session& session() const noexcept { return *session_; }

private:
    void finish(std::string response);
    void perform();
    void perform(engine::append_events& action);
    void arm();
    void done();
    void reader_hint();
    void log(base::log_level level, std::string_view message, std::string_view reason) const;

    node& node_;
    std::shared_ptr<live_session> session_;
    base::loop& loop_;
    store::stream_key stream_;
    store::fence fence_;
    std::string id_;
    call_traits traits_;
    held_answer held_;
    bool const has_stream_;
    std::optional<protocol::trace_context> trace_;
    engine::flow_settings flow_;
    engine::producer machine_;
    engine::producer_actions actions_;
    engine::producer_actions performing_; // swapped with actions_, so that both keep their memory
    bool is_performing_ = false;
    bool is_ended_ = false; // the answer is decided
    std::optional<protocol::end_reason> reason_;
    bool is_done_ = false;
    std::move_only_function<void()> interrupt_;
    std::shared_ptr<void> handler_;
    struct waiting {
        std::uint64_t ticket;
        emitted done;
    };
    std::vector<waiting> waiting_;
    // The outcome of the emit being made, if it came at once.
    std::uint64_t emitting_ = 0;
    std::optional<std::error_code> emitted_now_;
    std::unique_ptr<store::watch_handle> watch_;
    std::shared_ptr<std::atomic<bool>> hint_pending_;
    base::timer deadline_;
    base::timer orphan_;
    base::timer tick_;
};

}
