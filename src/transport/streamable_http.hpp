// MCP's Streamable HTTP, session era: POST, GET and DELETE on one path.
//
//   POST ── request ──▶ service ─┬─ instant ──▶ JSON answer
//                                └─ call ─────▶ stream in the store, tool starts, connection follows
//   GET  ── Last-Event-ID ──▶ the stream it names ──▶ connection follows from there
//        └─ without ────────▶ the session's standalone stream
//
// A connection only ever follows a stream (runtime/following.hpp); what it writes, it read from the log.
// Closing it detaches it and ends nothing. The stateless era gets a handler of its own beside this one; which
// era a request belongs to is decided per request, before anything here looks at its session.
#pragma once

#include "http/exchange.hpp"
#include "protocol/message.hpp"
#include "runtime/node.hpp"
#include "runtime/service.hpp"
#include "transport/http_answers.hpp"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace belay::transport {

enum class reinitialize_policy { reattach, reject };

struct streamable_http_settings {
    answer_form answer = answer_form::automatic;
    reinitialize_policy reinitialize = reinitialize_policy::reattach;
    bool accept_stale_initialize = false;
    std::size_t batch_max = 50; ///< messages per batch
};

class streamable_http final : public http::handler {
public:
    streamable_http(runtime::node& node, runtime::service& service, streamable_http_settings settings);

    void handle(std::shared_ptr<http::exchange> exchange) override;

private:
    void post(exchange_ptr exchange);
    void get(exchange_ptr exchange);
    void remove(exchange_ptr exchange);

    void initialize(exchange_ptr exchange, protocol::message const& message);
    void open_session(exchange_ptr exchange, std::string id, runtime::client_hello hello);
    void answer_initialize(
        exchange_ptr exchange, runtime::session_use const& use, std::string id, protocol::revision revision);
    void dispatch_batch(exchange_ptr exchange, runtime::session_use use, std::shared_ptr<posted> body);
    void run_batch(
        exchange_ptr exchange, runtime::session_use const& use, std::shared_ptr<posted> body,
        std::vector<protocol::message> after);
    /// A notification, or an answer to a question of ours. Done once what it asks for is kept.
    void take(
        std::shared_ptr<runtime::live_session> const& session, protocol::message const& message, base::loop& loop,
        store::completion<void> done);
    /// Done when all are kept, or with what went wrong.
    void take_all(
        std::shared_ptr<runtime::live_session> const& session, std::vector<protocol::message> notices, base::loop& loop,
        store::completion<void> done);
    void dispatch(exchange_ptr exchange, runtime::session_use use, std::shared_ptr<posted const> body);
    void run_instant(
        exchange_ptr exchange, runtime::session_use const& use, std::shared_ptr<posted const> body,
        runtime::route route, std::optional<protocol::trace_context> trace);
    void run_call(
        exchange_ptr exchange, runtime::session_use const& use, std::string id, protocol::revision revision,
        runtime::start_call start, std::optional<protocol::trace_context> trace = std::nullopt);

    /// Checks the session and version headers that every request but `initialize` has. Answers by itself if they are
    /// not good.
    template<class F>
    void with_session(exchange_ptr exchange, F then);

    runtime::node& node_;
    runtime::service& service_;
    streamable_http_settings settings_;
};

}
