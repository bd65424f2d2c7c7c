// MCP over HTTP without sessions: every POST stands alone. No session id is given or asked for, nothing is kept, and
// nothing can be resumed: a call ends with its connection. The messages are those of the session era.
#pragma once

#include "transport/http_answers.hpp"

namespace belay::transport {

struct stateless_http_settings {
    answer_form answer = answer_form::automatic;
    std::size_t batch_max = 50; ///< messages per batch
};

inline constexpr std::string_view stateless_methods = "POST, OPTIONS";

class stateless_http final : public http::handler {
public:
    stateless_http(runtime::node& node, runtime::service& service, stateless_http_settings settings);

    void handle(exchange_ptr exchange) override;

private:
    void initialize(exchange_ptr exchange, answer_form form, protocol::message const& message);
    void
    dispatch(exchange_ptr exchange, answer_form form, protocol::revision revision, protocol::message const& message);
    void run_call(exchange_ptr exchange, answer_form form, runtime::call_request request, runtime::start_call start);
    void dispatch_batch(exchange_ptr exchange, answer_form form, protocol::revision revision, posted& body);
    /// Null: it was refused, and is answered.
    [[nodiscard]] std::shared_ptr<runtime::direct_output>
    attach_output(exchange_ptr exchange, runtime::call_request const& request);

    runtime::node& node_;
    runtime::service& service_;
    stateless_http_settings settings_;
};

}
