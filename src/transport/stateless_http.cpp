#include "transport/stateless_http.hpp"

#include "protocol/names.hpp"
#include "transport/beginning.hpp"

#include <algorithm>
#include <utility>

namespace belay::transport {

namespace code = protocol::code;

namespace {

/// How to answer; nothing if the client accepts no form that there is.
std::optional<answer_form> form_for(http::request const& request, answer_form wanted)
{
    auto const accept = request.header("Accept");
    bool const takes_json = accepts(accept, json_type);
    bool const takes_sse = accepts(accept, sse_type);
    if (takes_json && takes_sse)
        return wanted;
    if (takes_json && wanted != answer_form::sse)
        return answer_form::json;
    if (takes_sse && wanted != answer_form::json)
        return answer_form::sse;
    return std::nullopt;
}

void answer(http::exchange& exchange, answer_form form, std::string_view response)
{
    if (form == answer_form::sse)
        respond_event(exchange, response);
    else
        exchange.respond({200, json_type, {}}, response);
}

/// A whole answer that calls still have to give. If the caller leaves before, they are cancelled.
class held_response final : public http::stream_observer, public std::enable_shared_from_this<held_response> {
public:
    explicit held_response(exchange_ptr exchange) : exchange_(std::move(exchange)) {}

    void begin()
    {
        if (is_given_)
            return;
        self_ = shared_from_this();
        exchange_->observe(*this);
    }
    void add(std::shared_ptr<runtime::call> const& call) { calls_.push_back(call); }
    void give(std::string_view response)
    {
        auto const keep = std::exchange(self_, nullptr);
        is_given_ = true;
        exchange_->respond({200, json_type, {}}, response);
    }

    void on_drained() override {}
    void on_closed(http::stream_end) override
    {
        auto const keep = std::exchange(self_, nullptr);
        for (auto const& each : std::exchange(calls_, {}))
            if (auto const call = each.lock())
                call->end(protocol::end_reason::cancelled);
    }

private:
    exchange_ptr exchange_;
    std::vector<std::weak_ptr<runtime::call>> calls_;
    std::shared_ptr<held_response> self_; // while it is observing
    bool is_given_ = false;
};

std::shared_ptr<runtime::live_session> const no_session;

}

stateless_http::stateless_http(runtime::node& node, runtime::service& service, stateless_http_settings settings)
    : node_(node), service_(service), settings_(settings)
{
}

void stateless_http::handle(exchange_ptr exchange)
{
    auto const& request = exchange->request();
    if (request.method() != http::method::post)
        return refuse(
            *exchange, 405, {code::server_error, "Method not allowed: without sessions there is nothing but POST.", {}},
            {{"Allow", stateless_methods}});
    if (!check_single_headers(*exchange))
        return;
    auto const form = form_for(request, settings_.answer);
    if (!form)
        return refuse(
            *exchange, 406,
            {code::server_error,
             "Not Acceptable: Client must accept application/json, text/event-stream, or both",
             {}});
    auto const body = read_post(*exchange, settings_.batch_max);
    if (!body)
        return;
    if (body->message.method == protocol::method::initialize)
        return initialize(std::move(exchange), *form, body->message);
    auto const revision = read_version(*exchange);
    if (!revision)
        return;
    if (!body->is_batch())
        return dispatch(std::move(exchange), *form, *revision, body->message);
    if (check_batch(*exchange, *revision))
        dispatch_batch(std::move(exchange), *form, *revision, *body);
}

void stateless_http::initialize(exchange_ptr exchange, answer_form form, protocol::message const& message)
{
    trace_of(*exchange, message); // for the access log
    if (message.kind != protocol::message_kind::request)
        return exchange->respond({202, {}, {}}, {});
    auto const revision = protocol::negotiate(message);
    answer(
        *exchange, form,
        revision
            ? protocol::result_response(
                  message.id, service_.initialize_result(*revision, runtime::session_mode::none, service_.features()))
            : protocol::error_response(message.id, revision.error()));
}

void stateless_http::dispatch(
    exchange_ptr exchange, answer_form form, protocol::revision revision, protocol::message const& message)
{
    auto trace = trace_of(*exchange, message);
    // Notifications and answers are about something that was before, of which nothing is known here.
    if (message.kind != protocol::message_kind::request)
        return exchange->respond({202, {}, {}}, {});
    auto outcome = service_.find(message).run({node_, no_session, revision, message, trace ? &*trace : nullptr});
    auto const reply = [exchange, form](std::string const& response) { answer(*exchange, form, response); };
    runtime::perform(std::move(outcome), reply, [&](runtime::start_call start, auto const&) {
        if (start.once)
            return reply(protocol::error_response(
                message.id, {code::invalid_params, "This endpoint keeps no sessions, and no outcome per key", {}}));
        auto request = request_for(message.id, revision, start, {caller_of(exchange->request()), {}, std::move(trace)});
        run_call(exchange, form, std::move(request), std::move(start));
    });
}

void stateless_http::run_call(
    exchange_ptr exchange, answer_form form, runtime::call_request request, runtime::start_call start)
{
    auto& loop = exchange->loop();
    if (form == answer_form::json) {
        auto const held = std::make_shared<held_response>(exchange);
        auto const call = node_.calls().begin_held(
            no_session, loop, std::move(request), [held](std::string response) { held->give(response); });
        if (!call)
            return refuse_begin(*exchange, call.error());
        held->add(*call);
        start.run(*call);
        return held->begin();
    }
    auto const output = attach_output(std::move(exchange), request);
    if (!output)
        return;
    // As with a stream: the tool runs to its first wait before anything is written.
    start.run(node_.calls().begin_on(output, loop, std::move(request)));
    output->start();
}

void stateless_http::dispatch_batch(exchange_ptr exchange, answer_form form, protocol::revision revision, posted& body)
{
    bool const is_instant = route_batch(service_, body);
    if (body.batch.empty())
        return exchange->respond({202, {}, {}}, {});
    auto& loop = exchange->loop();
    batch_context const context{node_, no_session, revision};
    if (form == answer_form::json || (is_instant && form != answer_form::sse)) {
        auto const held = std::make_shared<held_response>(exchange);
        hold_batch(
            context, exchange, body, [&](std::shared_ptr<runtime::call> const& call) { held->add(call); },
            [held](std::string all) { held->give(all); });
        return held->begin();
    }
    auto trace = trace_of(*exchange, body.batch.front());
    runtime::call_request request{ids_of(body.batch), revision, {}, caller_of(exchange->request()), {}, trace};
    auto const output = attach_output(std::move(exchange), request);
    if (!output)
        return;
    auto const batch = node_.calls().begin_batch_on(output, loop, std::move(request));
    run_batch(context, batch, body, trace ? &*trace : nullptr);
    output->start();
}

std::shared_ptr<runtime::direct_output>
stateless_http::attach_output(exchange_ptr exchange, runtime::call_request const& request)
{
    auto const output = node_.calls().make_direct_output(exchange->loop(), request);
    if (!output) {
        refuse_begin(*exchange, output.error());
        return nullptr;
    }
    auto const sink = std::make_shared<sse_sink>(std::move(exchange), *output);
    sink->begin();
    (*output)->attach(sink);
    return *output;
}

}
