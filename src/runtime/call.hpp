// One running request: performs the producer machine's actions on the store. Belongs to the loop whose POST
// started it, to its end; every function here is called on that loop unless it says otherwise. It does not
// know the connection that started it: connections come and go. Only a call without a session knows its connection,
// and speaks to it directly (direct_output.hpp).
//
// A batch is a call of its own that has the stream; its members are calls that speak through it.
#pragma once

#include "base/log.hpp"
#include "base/loop.hpp"
#include "engine/producer.hpp"
#include "protocol/endings.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/question_ledger.hpp"
#include "store/ports.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::runtime {

class call;
class direct_output;
class live_session;
class node_context;

/// What the service knows about a request before it runs.
struct call_traits {
    bool is_tool_call = true;
    bool is_retry_safe = false;
    std::optional<base::duration> max_duration; ///< absent: call.max_duration
    std::optional<base::duration> orphan_limit; ///< cancelled after being without a reader for this long
    bool waits_for_reader = true;
    bool has_started = true; ///< false once the call has ended before its handler was started
};

/// Hears that a call is over. On the call's loop.
class call_keeper {
public:
    virtual ~call_keeper() = default;
    virtual void call_done(call& gone) = 0;
};

class call : public std::enable_shared_from_this<call> {
public:
    using emitted = std::move_only_function<void(std::error_code)>;
    using held_answer = std::move_only_function<void(std::string)>;
    using answered = question_ledger::answered;

    /// With `answer` the call has no stream: emits go nowhere and the answer goes there (`--answer json`).
    call(
        node_context& context, call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop,
        store::stream_id stream, store::fence fence, std::string id, call_traits traits, held_answer answer);
    /// Without a store: its messages and its answer go to that connection.
    call(
        node_context& context, call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop,
        std::shared_ptr<direct_output> output, std::string id, call_traits traits);
    /// A member of a batch: which of its requests, by number.
    call(std::shared_ptr<call> batch, std::uint32_t number, std::string id, call_traits traits);
    ~call();

    /// Registers timers and watches. Once, before the handler starts.
    void begin();
    /// Takes what was sent to the call: it may have come before anybody watched. After begin(), once a batch has its
    /// members.
    void read_mail();
    /// Makes this the call of a batch, with that many requests to answer. Each has its own time limit.
    void expect_answers(std::size_t count);
    /// Answers one request of the batch that has no call of its own.
    void answer_member(std::uint32_t number, std::string id, std::string response);

    /// The node's, with what the call is on every line. From any thread.
    [[nodiscard]] base::logger logger() const;
    /// Which trace the request belongs to. Before begin().
    void set_trace(std::optional<protocol::trace_context> trace) { trace_ = std::move(trace); }
    [[nodiscard]] std::optional<protocol::trace_context> const& trace() const noexcept { return trace_; }

    /// Appends a message to the call's stream. If it may go on at once, returns the outcome and drops `done`;
    /// otherwise `done` is called on the loop, when the reader has caught up or others have had their turn.
    [[nodiscard]] std::optional<std::error_code> emit(std::string message, emitted done);
    /// A question that another call has asked, for this call's reader too. Never waits. `failed` is called if it could
    /// not be kept.
    void relay_question(std::string message, std::move_only_function<void()> failed);
    /// Newest wins; never waits.
    void progress(std::string message);
    /// Counts something that the handler has done without waiting. True: it has had its turn, and should let others run
    /// before it goes on. emit() sees to that itself.
    [[nodiscard]] bool is_turn_over(std::size_t bytes = 0) noexcept;
    /// The handler's own answer. Refused and counted if the call has ended otherwise.
    void answer(std::string response);
    /// Ends the call for a reason that is not the handler's. The handler is told.
    void end(protocol::end_reason reason);
    /// Asks the client: a request on the call's stream. `done` is called once, on the loop, unless the call ends
    /// first. Returns the question's number.
    std::uint64_t ask(std::string_view method, std::string_view params, answered done);
    /// The question is not of interest any more; the client is told.
    void withdraw(std::uint64_t question);
    /// Whether questions can be asked and answered. From any thread.
    [[nodiscard]] bool can_ask() const noexcept { return has_stream_ && !(batch_ ? batch_->direct_ : direct_); }
    /// From its direct output.
    void reader_moved();
    /// Closes the connection that follows the call, not the call; the client comes back after `retry`.
    void close_connection(std::chrono::milliseconds retry);

    /// Keeps what serves the call, until the call is done.
    void keep(std::shared_ptr<void> handler) { handler_ = std::move(handler); }
    /// Called once when the call ends by anything but its handler's answer.
    void on_interrupt(std::move_only_function<void()> interrupt);
    /// For a handler that waits for its turn: asked when the call ends without it; true if it was kept from starting.
    void on_give_up(std::move_only_function<bool()> give_up) { give_up_ = std::move(give_up); }

    [[nodiscard]] bool is_ended() const noexcept { return is_ended_; }
    [[nodiscard]] std::optional<protocol::end_reason> end_reason() const noexcept { return reason_; }
    // From any thread:
    [[nodiscard]] bool has_stream() const noexcept { return has_stream_; }
    [[nodiscard]] bool is_member() const noexcept { return batch_ != nullptr; }
    [[nodiscard]] base::loop& loop() const noexcept { return loop_; }
    [[nodiscard]] store::stream_key const& stream() const noexcept { return stream_; }
    [[nodiscard]] std::string const& id() const noexcept { return id_; }
    [[nodiscard]] live_session& session() const noexcept { return *session_; }
    [[nodiscard]] std::shared_ptr<live_session> const& shared_session() const noexcept { return session_; }

private:
    /// What is needed to end a request in another way than its answer said.
    struct answering {
        std::uint32_t number; // which request of the stream
        std::string id;
        call_traits traits;
        bool is_shortened = false;
    };

    [[nodiscard]] std::optional<std::error_code> emit_now(std::string message, emitted& done);
    void finish(std::string response);
    void append_answer(answering of, std::string response, bool is_last);
    /// A question of one of the stream's requests.
    std::uint64_t ask_for(std::uint32_t request, std::string_view method, std::string_view params, answered done);
    /// The questions that one of the stream's requests has left open.
    void withdraw_all(std::uint32_t request);
    /// Progress that a slow reader of a direct output has kept waiting.
    void tell_late_progress();
    void tell_withdrawn(std::uint64_t question);
    /// A client's answer, as JSON text. A second one, or one to an unknown question, is ignored.
    void take_answer(std::uint64_t question, std::string response);
    [[nodiscard]] std::string ended_answer(answering const& of, protocol::end_reason reason) const;
    void perform();
    void perform(engine::append_events& action);
    void perform(engine::resume_emit const& action);
    void perform(engine::drop_reader const& action);
    void perform(engine::asked const& action);
    void perform(engine::answered const& action);
    void perform(engine::answer_refused const& action);
    void arm();
    void done();
    void hint(store::event_store::interest what);
    void read_reader();
    void open_letter(store::letter letter);
    void append();
    /// A question is not asked again of whoever reads the stream later.
    void blank(std::uint64_t sequence);
    /// The store could not say: what was asked is asked again.
    void ask_again();
    /// The call belongs to someone else, or to nobody any more: whatever it says, nobody hears it.
    void lose(std::error_code why);
    void log(base::log_level level, std::string_view message, std::string_view reason) const;

    node_context& context_;
    call_keeper& keeper_;
    std::shared_ptr<live_session> session_;
    base::loop& loop_;
    store::stream_key stream_;
    store::fence fence_;
    std::uint32_t number_ = 0; // in its batch
    std::string id_;
    call_traits traits_;
    held_answer held_;
    std::shared_ptr<direct_output> direct_;
    std::string late_progress_;
    std::shared_ptr<call> batch_;
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
    std::move_only_function<bool()> give_up_;
    std::shared_ptr<void> handler_;
    struct waiting {
        std::uint64_t ticket;
        emitted done;
    };
    std::vector<waiting> waiting_;
    question_ledger questions_;
    struct relay {
        std::uint64_t ticket;
        std::move_only_function<void()> failed;
    };
    std::vector<relay> relays_; // not in the log yet
    std::deque<answering> answering_; // in the order of the machine's answers
    std::size_t open_answers_ = 0; // of a batch
    std::vector<call*> members_; // of a batch: those that run
    // The outcome of the emit being made, if it came at once.
    std::uint64_t emitting_ = 0;
    std::optional<std::error_code> emitted_now_;
    std::size_t turn_events_ = 0;
    std::size_t turn_bytes_ = 0;
    std::unique_ptr<store::watch_handle> watch_;
    std::shared_ptr<std::atomic<std::uint8_t>> pending_; // hints that are on their way to the loop
    // The append under way, kept because it may have to be repeated.
    struct appending {
        std::vector<store::event_data> events;
        bool finish = false;
        base::time_point began{};
    };
    appending appending_;
    std::uint64_t batch_number_ = 0; // of the appends
    std::uint64_t last_letter_ = 0;
    bool is_reading_mail_ = false;
    bool has_more_mail_ = false;
    // What the store could not say.
    bool appends_again_ = false;
    bool reads_mail_again_ = false;
    bool reads_reader_again_ = false;
    std::vector<std::uint64_t> blanks_again_;
    base::timer deadline_;
    base::timer orphan_;
    base::timer tick_;
    base::timer again_;
};

}
