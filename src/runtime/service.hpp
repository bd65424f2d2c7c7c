// The port between a conversation and what it is about: a server implements it. One call per message; the
// answer's form is decided by the registration, not by the transport.
#pragma once

#include "protocol/message.hpp"
#include "protocol/revision.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/call.hpp"

#include <functional>
#include <memory>
#include <string>
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
};

using outcome = std::variant<instant_answer, deferred_answer, start_call>;

/// Whether a client gets a session, and one whose calls can be come back to. Without a session it cannot subscribe,
/// choose a log level or be told of changes.
enum class session_mode { resumable, kept, none };

class service {
public:
    virtual ~service() = default;
    /// What an InitializeResult says that there is, as bits of the service's own: kept with the session, so that it is
    /// not told of changes to what it does not know.
    [[nodiscard]] virtual std::uint32_t offers() const = 0;
    /// The JSON text of an InitializeResult.
    [[nodiscard]] virtual std::string
    initialize_result(protocol::revision revision, session_mode mode, std::uint32_t offers) const
        = 0;
    [[nodiscard]] virtual outcome handle(incoming const& request) = 0;
    /// Whether handle() would answer without a call.
    [[nodiscard]] virtual bool is_instant(protocol::message const& request) const = 0;
};

}
