// Where what a call says goes: into a log (stream_output), to one connection (direct_output), or nowhere but for its
// answer (held_output). The requests of a batch share one. Belongs to the call's loop; every function is called there
// unless it says otherwise.
#pragma once

#include "protocol/endings.hpp"
#include "runtime/call_traits.hpp"
#include "runtime/question_ledger.hpp"
#include "store/types.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace belay::runtime {

/// Whoever speaks through an output: a call, or the requests of a batch. On the call's loop.
class output_user {
public:
    virtual ~output_user() = default;
    /// One of its requests is not wanted any more.
    virtual void cancel(std::uint32_t request) = 0;
    /// None of them is.
    virtual void end(protocol::end_reason reason) = 0;
    /// Whether anybody reads what is said.
    virtual void reader_seen(bool is_there) = 0;
    /// The last answer is where it belongs. It has `replaced` what the handler said, if that was too large.
    virtual void finished(std::optional<protocol::end_reason> replaced) = 0;
    /// The output belongs to someone else, or to nobody any more: nobody hears what is said.
    virtual void lost(std::error_code why) = 0;
};

class call_output {
public:
    using emitted = std::move_only_function<void(std::error_code)>;
    using answered = question_ledger::answered;

    virtual ~call_output() = default;

    /// Once, before any handler runs. The user is not kept alive.
    virtual void begin(std::weak_ptr<output_user> user) = 0;

    /// A message. Returns the outcome if there is one at once; otherwise takes `done`, which is called on the loop.
    [[nodiscard]] virtual std::optional<std::error_code> emit(std::string message, emitted& done) = 0;
    /// Of one request. Newest wins; never waits.
    virtual void progress(std::uint32_t request, double value, std::string message) = 0;
    /// The answer to a request; what it has asked is withdrawn. Nothing can follow the answer to the last one.
    virtual void answer(open_request of, std::string response) = 0;

    /// The stream, if what is said is kept in one: whoever reads it can come back, and be asked. From any thread.
    [[nodiscard]] virtual std::optional<store::stream_id> stream() const noexcept { return std::nullopt; }
    /// Asks the client. `done` is called once, on the loop, unless the output is over first. Gives the question's
    /// number. Whoever runs the call again and asks under the same key gets the answer that was given, if there was
    /// one; empty: no key.
    virtual std::uint64_t
    ask(std::uint32_t request, std::string_view method, std::string_view params, std::string_view key, answered done)
        = 0;
    /// The question is not of interest any more; the client is told.
    virtual void withdraw(std::uint64_t question) = 0;
    /// A question that another call has asked, and that hears its answer. `failed` is called if it could not be kept.
    virtual void relay_question(std::string message, std::move_only_function<void()> failed) = 0;
    /// Closes the connection that reads, not the output; its client comes back after `retry`. Nothing happens where
    /// nobody can come back.
    virtual void close_connection(std::chrono::milliseconds) {}
    /// Gives the stream up for others to go on with; nothing that is said from now on is heard. `done` is called on the
    /// loop once nobody takes the stream for ours. Only where there is a stream.
    virtual void release(std::move_only_function<void()> done) { done(); }
};

/// The answer in the place of the one that the handler would have given.
[[nodiscard]] inline std::string ended_answer(open_request const& of, protocol::end_reason reason)
{
    return protocol::ended_answer(
        {of.id, of.traits.is_tool_call, of.traits.is_retry_safe, of.traits.has_started}, reason);
}

}
