// The port between a conversation and what it is about: a server implements it. A message is looked up once, which
// gives its route; the route is run once, which gives its outcome. The answer's form is decided by the registration,
// not by the transport.
#pragma once

#include "protocol/message.hpp"
#include "protocol/revision.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/call.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace belay::runtime {

class live_session;
class node;

struct incoming {
    runtime::node& node;
    std::shared_ptr<live_session> const& session; ///< null: the request stands alone
    protocol::revision revision;
    protocol::message const& message; ///< valid during the call only
    protocol::trace_context const* trace = nullptr; ///< of the message or its request; valid during the call only
};

/// Answered already, as a whole JSON-RPC response.
struct instant_answer {
    std::string response;
};
/// Answered soon, without a stream.
struct deferred_answer {
    std::move_only_function<void(std::move_only_function<void(std::string)>)> run;
};
/// A call: `run` starts the handler, which answers through the call.
struct start_call {
    call_traits traits;
    std::move_only_function<void(std::shared_ptr<call>)> run;
    std::optional<store::once_key> once{}; ///< a second call with this key repeats the first instead of running
    std::string progress_token;          ///< JSON text; empty: none. For repeating.
    std::optional<rerun_request> again{}; ///< absent: it is run once
};

using outcome = std::variant<instant_answer, deferred_answer, start_call>;

/// Runs what a request came to. `answer` takes a response as text; `begin` takes a start_call, and `answer` with it.
/// One of the two is called, once, at once or later.
template<class Answer, class Begin>
void perform(outcome outcome, Answer answer, Begin&& begin)
{
    if (auto* const instant = std::get_if<instant_answer>(&outcome))
        answer(std::move(instant->response));
    else if (auto* const deferred = std::get_if<deferred_answer>(&outcome))
        deferred->run(std::move(answer));
    else
        begin(std::get<start_call>(std::move(outcome)), std::move(answer));
}

/// What a request is for. Holds on to what was found, whatever is registered or removed meanwhile.
struct route {
    bool is_instant = true; ///< without a key, its outcome is never a start_call
    bool has_key = false;   ///< to be made once: its outcome is kept, which takes a call
    std::move_only_function<outcome(incoming const&)> run; ///< once, with the message that it was found for
    request_kind kind{.is_tool_call = false};              ///< for whoever has to end it
};

/// Whether a client gets a session, and one whose calls can be come back to. Without a session it cannot subscribe,
/// choose a log level or be told of changes.
enum class session_mode { resumable, kept, none };

class service {
public:
    virtual ~service() = default;
    /// What an InitializeResult says that there is, as bits of the service's own: kept with the session, so that it is
    /// not told of changes to what it does not know.
    [[nodiscard]] virtual std::uint32_t features() const = 0;
    /// The JSON text of an InitializeResult.
    [[nodiscard]] virtual std::string
    initialize_result(protocol::revision revision, session_mode mode, std::uint32_t features) const
        = 0;
    /// Runs nothing yet. There is a route for every request, also for one that will be refused.
    [[nodiscard]] virtual route find(protocol::message const& request) = 0;
    /// Whether it has what a rerun_request names.
    [[nodiscard]] virtual bool can_run(std::uint64_t work) const = 0;
};

}
