// The calls of this node: how they begin, how they are found from outside, and how they all end at once. Functions may
// be called on any loop; completions come on the loop that called.
#pragma once

#include "base/mutex.hpp"
#include "protocol/message.hpp"
#include "protocol/revision.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/attachments.hpp"
#include "runtime/batch.hpp"
#include "runtime/call.hpp"
#include "runtime/context.hpp"
#include "runtime/direct_output.hpp"
#include "runtime/held_output.hpp"
#include "runtime/live_session.hpp"
#include "runtime/session_table.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::runtime {

class stream_output;

/// So often a call is run, by whoever, before it ends with `owner_lost` or `interrupted`.
constexpr std::uint32_t most_attempts = 2;

struct call_request {
    std::vector<std::string> ids; ///< JSON text; a batch has several
    protocol::revision revision = protocol::newest_revision;
    call_traits traits;
    caller from = caller::program;
    std::optional<store::once_key> once{};
    std::optional<protocol::trace_context> trace{};
    std::size_t bytes = 0; ///< of the message that asks for it; its arguments live as long as the call runs
    store::identity who{};
    std::optional<rerun_request> again{};
    std::vector<request_kind> kinds{}; ///< of a batch, in the order of its ids
};

struct begun_call {
    std::shared_ptr<runtime::call> call;
    std::shared_ptr<runtime::following> following;
    std::optional<store::stream_id> repeats; ///< the first call with the same key: repeat that one, run nothing
};

struct begun_batch {
    std::shared_ptr<runtime::batch> batch;
    std::shared_ptr<runtime::following> following;
};

class call_directory final : public call_keeper {
public:
    call_directory(node_context& context, session_table& table, attachments& attachments);

    /// Makes the call and its stream, and attaches the caller's connection, before anything runs.
    void begin(session_use const& use, base::loop& loop, call_request request, store::completion<begun_call> done);
    /// The same for a message with several requests.
    void
    begin_batch(session_use const& use, base::loop& loop, call_request request, store::completion<begun_batch> done);
    /// Runs a call again that this node has claimed: on its stream, with what is left of its time. The client is told
    /// why. The call is there at once, and `run` begins when it can.
    void run_again(
        session_use const& use, base::loop& loop, store::stream_key const& stream, store::claimed_call const& claimed,
        call_request request, std::optional<base::duration> time, protocol::end_reason why,
        std::move_only_function<void(std::shared_ptr<call>)> run);
    /// One request of a batch.
    [[nodiscard]] std::shared_ptr<call>
    begin_member(std::shared_ptr<batch> const& of, std::uint32_t number, std::string id, call_traits const& traits);
    /// A call without a stream, whose answer goes to `answer`. `session` may be null: it belongs to none.
    result<std::shared_ptr<call>> begin_held(
        std::shared_ptr<live_session> session, base::loop& loop, call_request request,
        held_output::answer_function answer);
    /// The connection of a call, or of a batch, that belongs to no session: begin_on() it once it has its sink.
    /// `errc::unavailable` while the node drains.
    result<std::shared_ptr<direct_output>> make_direct_output(base::loop& loop, call_request const& request);
    [[nodiscard]] std::shared_ptr<call>
    begin_on(std::shared_ptr<direct_output> const& output, base::loop& loop, call_request request);
    [[nodiscard]] std::shared_ptr<batch>
    begin_batch_on(std::shared_ptr<direct_output> const& output, base::loop& loop, call_request request);

    /// Cancels the newest running call of the session with that request, wherever it runs. No effect if there is none,
    /// or if a newer one has an answer that has not arrived: the cancel crossed it. Done once it is sure to be heard.
    void cancel(
        std::shared_ptr<live_session> const& session, std::string_view id, base::loop& loop,
        store::completion<void> done);
    /// Cancels the call that owns the stream, wherever it runs.
    void cancel_stream(store::stream_key const& stream);
    /// A client's answer to a request of ours. Unknown, foreign and second answers have no effect. Done once it is sure
    /// to be heard.
    void take_answer(live_session const& session, protocol::message const& answer, store::completion<void> done);

    /// From now on what is known of the session's record follows what the store has, for whoever keeps the session
    /// beyond a request.
    void watch_record(std::shared_ptr<live_session> const& session);

    /// The process stops: see call::interrupt(). From any thread.
    void interrupt_all();
    /// Whether the call with that stream runs here, or is about to.
    [[nodiscard]] bool runs(store::stream_key const& stream);

private:
    struct beginning;

    /// A stream that is there, for whoever is going to speak on it.
    struct begun_stream {
        std::shared_ptr<stream_output> output;
        std::shared_ptr<runtime::following> following;
        std::optional<store::stream_id> repeats;
    };

    void call_done(call& gone) override;
    void batch_done(batch& gone) override;
    void open(
        session_use const& use, base::loop& loop, call_request request,
        std::move_only_function<void(result<begun_stream>, call_request&)> done);
    void open(std::shared_ptr<beginning> of);
    void open_again(std::shared_ptr<beginning> const& of);
    [[nodiscard]] begun_stream make_stream(beginning& of, store::opened_stream const& opened);
    /// Lets the store know of all answers of the session that have arrived by now. `then` is called on the loop, at
    /// once if only that one had to be asked.
    static void ask_receipts(live_session& session, base::loop& loop, std::move_only_function<void()> then);
    /// Lets a call begin that alone has its output.
    std::shared_ptr<call> start(
        std::shared_ptr<live_session> session, base::loop& loop, std::shared_ptr<call_output> output,
        call_request request);
    [[nodiscard]] std::shared_ptr<call> make(
        std::shared_ptr<live_session> session, base::loop& loop, std::shared_ptr<call_output> output,
        call_request& request, call::run_terms terms);
    std::shared_ptr<batch> start_batch(
        std::shared_ptr<live_session> session, base::loop& loop, std::shared_ptr<call_output> output,
        call_request request);
    void add(live_session& session, std::shared_ptr<call> const& fresh);
    /// False if there is none here.
    bool cancel_held(store::session_key const& session, std::string_view id);
    void hear(std::string const& bulletin);

    node_context& context_;
    session_table& table_;
    attachments& attachments_;
    std::atomic<unsigned> interruptions_{0}; // of all: the second one waits for no handler
    std::unique_ptr<store::watch_handle> bulletins_;

    base::mutex beginning_mutex_;
    std::vector<std::shared_ptr<beginning>>
        beginning_ BELAY_GUARDED_BY(beginning_mutex_); // asked for, and not known to be there
};

}
