// One running request: its handler, its time limits, and the one answer that it ends in. Belongs to the loop whose POST
// started it, to its end; every function here is called on that loop unless it says otherwise. Where its words go is
// its output's business (call_output.hpp).
#pragma once

#include "base/log.hpp"
#include "base/loop.hpp"
#include "protocol/endings.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/call_output.hpp"
#include "runtime/live_session.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace belay::runtime {

class batch;
class call;
class node_context;

/// Hears that a call, or a batch of them, is over. On its loop.
class call_keeper {
public:
    virtual ~call_keeper() = default;
    virtual void call_done(call& gone) = 0;
    virtual void batch_done(batch& gone) = 0;
};

class call final : public output_user, public std::enable_shared_from_this<call> {
public:
    using emitted = call_output::emitted;
    using answered = call_output::answered;

    /// With the call alone on its output.
    call(
        node_context& context, call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop,
        std::shared_ptr<call_output> output, std::string id, call_traits const& traits,
        std::optional<protocol::trace_context> trace);
    /// A member of a batch: which of its requests, by number.
    call(
        node_context& context, call_keeper& keeper, std::shared_ptr<batch> of, std::uint32_t number, std::string id,
        call_traits const& traits);
    ~call() override;

    /// Once, before the handler starts.
    void begin();
    /// In its place for a run that follows another, on an output that goes on.
    void begin_again();

    /// The node's, with what the call is on every line. From any thread.
    [[nodiscard]] base::logger logger() const;
    /// Which trace the request belongs to. From any thread.
    [[nodiscard]] std::optional<protocol::trace_context> const& trace() const noexcept { return trace_; }

    /// Says a message. If the handler may go on at once, returns the outcome and drops `done`; otherwise `done` is
    /// called on the loop, when the reader has caught up or others have had their turn.
    [[nodiscard]] std::optional<std::error_code> emit(std::string message, emitted done);
    /// A question that another call has asked, for this call's reader too. Never waits. `failed` is called if it could
    /// not be kept.
    void relay_question(std::string message, std::move_only_function<void()> failed);
    /// How far it is. Newest wins; never waits. What is not beyond what a former run of it has said is left out.
    void progress(double value, std::string message);
    /// Counts something that the handler has done without waiting. True: it has had its turn, and should let others run
    /// before it goes on. emit() sees to that itself.
    [[nodiscard]] bool is_turn_over(std::size_t bytes = 0) noexcept;
    /// The handler's own answer. Refused and counted if the call has ended otherwise.
    void answer(std::string response);
    /// Ends the call for a reason that is not the handler's. The handler is told.
    void end(protocol::end_reason reason) override;
    /// The process stops. A call that others may go on with is given up to them, once its handler is gone; asked again,
    /// it waits for that no longer. Any other call ends with `interrupted`.
    void interrupt();
    /// Asks the client: a request on the call's stream. `done` is called once, on the loop, unless the call ends
    /// first. Returns the question's number. `key`: see call_output.
    std::uint64_t ask(std::string_view method, std::string_view params, std::string_view key, answered done);
    /// The question is not of interest any more; the client is told.
    void withdraw(std::uint64_t question);
    /// Whether questions can be asked and answered. From any thread.
    [[nodiscard]] bool can_ask() const noexcept { return has_stream(); }
    /// Closes the connection that follows the call, not the call; the client comes back after `retry`.
    void close_connection(std::chrono::milliseconds retry);

    /// Keeps what serves the call, until the call is done.
    void keep(std::shared_ptr<void> handler) { handler_ = std::move(handler); }
    /// Called once when the call ends by anything but its handler's answer.
    void on_interrupt(std::move_only_function<void()> interrupt) { interrupt_ = std::move(interrupt); }
    /// For a handler that waits for its turn: asked when the call ends without it; true if it was kept from starting.
    void on_give_up(std::move_only_function<bool()> give_up) { give_up_ = std::move(give_up); }
    /// Nothing of the handler is left: no frame, and no function on a worker. After its answer, if it has one.
    void handler_left();

    /// How this run came to be, and whether another may follow. Once, before begin().
    struct run_terms {
        bool may_be_handed_over = false;
        std::optional<double> progress{}; ///< how far a former run was
        std::optional<base::duration> time{}; ///< what is left of its time; absent: all of it
        store::identity caller{};
    };
    void set_terms(run_terms terms) { terms_ = std::move(terms); }
    /// Who made it. From any thread.
    [[nodiscard]] store::identity const& caller() const noexcept { return terms_.caller; }

    // From its output, or its batch.
    void cancel(std::uint32_t request) override;
    void reader_seen(bool is_there) override;
    void finished(std::optional<protocol::end_reason> replaced) override;
    void lost(std::error_code why) override;

    [[nodiscard]] bool is_ended() const noexcept { return is_ended_; }
    [[nodiscard]] std::optional<protocol::end_reason> end_reason() const noexcept { return reason_; }
    // From any thread:
    /// Whether what it says is kept, and its caller can come back for it.
    [[nodiscard]] bool has_stream() const noexcept { return output_->stream().has_value(); }
    /// Of a call that has one.
    [[nodiscard]] store::stream_key stream() const { return {session_->key, output_->stream().value()}; }
    [[nodiscard]] call_output const& output() const noexcept { return *output_; }
    [[nodiscard]] base::loop& loop() const noexcept { return loop_; }
    [[nodiscard]] std::string const& id() const noexcept { return of_.id; }
    [[nodiscard]] std::uint32_t number() const noexcept { return of_.number; }
    [[nodiscard]] live_session& session() const noexcept { return *session_; }
    [[nodiscard]] std::shared_ptr<live_session> const& shared_session() const noexcept { return session_; }

private:
    [[nodiscard]] bool is_decided() const noexcept { return is_ended_ && leaving_ != leaving::waits; }
    void finish(std::string response);
    void release();
    void done();
    void log(base::log_level level, std::string_view message, std::string_view reason) const;

    node_context& context_;
    call_keeper& keeper_;
    std::shared_ptr<live_session> session_;
    base::loop& loop_;
    std::shared_ptr<call_output> output_;
    std::shared_ptr<batch> batch_; // null: alone
    open_request of_;
    std::optional<protocol::trace_context> trace_;
    run_terms terms_;
    bool is_ended_ = false; // nothing that the handler says counts, but for an answer while it leaves
    enum class leaving {
        no,
        waits,
        released
    } leaving_
        = leaving::no; // for others to go on with; waits: for its handler
    std::optional<protocol::end_reason> reason_;
    bool is_done_ = false;
    std::move_only_function<void()> interrupt_;
    std::move_only_function<bool()> give_up_;
    std::shared_ptr<void> handler_;
    std::size_t turn_events_ = 0;
    std::size_t turn_bytes_ = 0;
    base::timer deadline_;
    base::timer orphan_;
};

}
