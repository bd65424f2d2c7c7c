#include "transport/http_answers.hpp"

#include "http/field_text.hpp"
#include "http/sse.hpp"
#include "protocol/names.hpp"
#include "transport/beginning.hpp"

#include <algorithm>
#include <utility>

namespace belay::transport {

namespace code = protocol::code;

namespace {

// In seconds: how long a refused newcomer waits before trying again.
constexpr std::string_view retry_soon = "1";
constexpr std::string_view content_type = "Content-Type";

bool is_json(std::optional<std::string_view> type) noexcept
{
    return type && http::equals_ignoring_case(http::trimmed(type->substr(0, type->find(';'))), json_type);
}

/// Collects the answers of a batch, in the order of its requests.
class batch_answers {
public:
    batch_answers(std::size_t count, std::move_only_function<void(std::string)> done)
        : answers_(count), open_(count), done_(std::move(done))
    {
    }
    void put(std::size_t place, std::string answer)
    {
        answers_[place] = std::move(answer);
        if (--open_ > 0)
            return;
        std::string body = "[";
        for (auto const& each : answers_) {
            if (body.size() > 1)
                body += ',';
            body += each;
        }
        body += ']';
        std::exchange(done_, nullptr)(std::move(body));
    }

private:
    std::vector<std::string> answers_;
    std::size_t open_;
    std::move_only_function<void(std::string)> done_;
};

}

bool accepts(std::optional<std::string_view> accept, std::string_view type) noexcept
{
    if (!accept)
        return true;
    auto const family = type.substr(0, type.find('/'));
    for (auto rest = *accept; !rest.empty();) {
        auto const comma = std::min(rest.find(','), rest.size());
        auto range = rest.substr(0, comma);
        range = http::trimmed(range.substr(0, range.find(';')));
        if (range == "*/*" || http::equals_ignoring_case(range, type)
            || (range.ends_with("/*") && http::equals_ignoring_case(range.substr(0, range.size() - 2), family)))
            return true;
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return false;
}

// --- refusing

void refuse(
    http::exchange& exchange, unsigned status, protocol::rpc_error const& error, std::vector<http::field> fields)
{
    exchange.respond({status, json_type, std::move(fields)}, protocol::error_response("null", error));
}

void refuse_unknown_session(http::exchange& exchange)
{
    refuse(exchange, 404, {code::session_not_found, "Session not found", {}});
}

void refuse_begin(http::exchange& exchange, std::error_code why)
{
    if (why == errc::not_found)
        return refuse_unknown_session(exchange);
    if (why == errc::duplicate_id)
        return refuse(
            exchange, 400, {code::invalid_request, "Invalid Request: a call with this id is still running", {}});
    if (why == errc::too_many_streams)
        return refuse(
            exchange, 429,
            {code::server_error, "Too many calls or connections in this session; finish or resume some first", {}},
            {{"Retry-After", retry_soon}});
    refuse(exchange, 503, begin_error(why), {{"Retry-After", retry_soon}});
}

bool check_single_headers(http::exchange& exchange)
{
    for (auto const name :
         {protocol::header::session, protocol::header::last_event_id, protocol::header::version, content_type})
        if (exchange.request().header_count(name) > 1) {
            refuse(exchange, 400, {code::server_error, "Bad Request: " + std::string(name) + " must be sent once", {}});
            return false;
        }
    return true;
}

std::optional<protocol::revision> read_version(http::exchange& exchange)
{
    auto const version = exchange.request().header(protocol::header::version);
    auto const revision = version ? protocol::parse_revision(*version) : protocol::assumed_revision;
    if (revision)
        return revision;
    refuse(
        exchange, 400,
        {code::server_error,
         "Bad Request: Unsupported protocol version (supported versions: "
             + std::string(protocol::supported_revisions()) + ")",
         {}});
    return std::nullopt;
}

// --- reading

std::shared_ptr<posted> read_post(http::exchange& exchange, std::size_t batch_max)
{
    auto const& request = exchange.request();
    auto const refused = [&](unsigned status, protocol::rpc_error const& error) -> std::shared_ptr<posted> {
        refuse(exchange, status, error);
        return nullptr;
    };
    if (!is_json(request.header(content_type)))
        return refused(415, {code::server_error, "Unsupported Media Type: Content-Type must be application/json", {}});
    auto body = std::make_shared<posted>();
    auto value = protocol::parse_json(request.body(), &body->arena);
    if (!value)
        return refused(400, value.error());
    body->value = std::move(*value);
    auto const* const batch = body->value.if_array();
    if (!batch) {
        auto message = protocol::read_message(body->value);
        if (!message)
            return refused(400, message.error());
        body->message = std::move(*message);
        return body;
    }
    if (batch->empty() || batch->size() > batch_max)
        return refused(
            400,
            {code::invalid_request,
             "Invalid Request: a batch has 1 to " + std::to_string(batch_max) + " messages",
             {}});
    for (auto const& each : *batch) {
        auto read = protocol::read_message(each);
        if (!read)
            return refused(400, read.error());
        if (read->method == protocol::method::initialize)
            return refused(400, {code::invalid_request, "Invalid Request: initialize must not be part of a batch", {}});
        body->batch.push_back(std::move(*read));
    }
    return body;
}

bool check_batch(http::exchange& exchange, protocol::revision revision)
{
    if (protocol::facts_of(revision).may_batch)
        return true;
    refuse(exchange, 400, {code::invalid_request, "Invalid Request: send one message per POST, not a batch", {}});
    return false;
}

std::optional<protocol::trace_context> trace_of(http::exchange& exchange, protocol::message const& message)
{
    auto const& request = exchange.request();
    // Two parents are no parent.
    auto parent = request.header(protocol::header::traceparent);
    if (parent && request.header_count(protocol::header::traceparent) > 1)
        parent.reset();
    auto const state = parent ? request.header(protocol::header::tracestate) : std::nullopt;
    auto trace = protocol::trace_context_of(message.meta, parent, state);
    if (trace && exchange.takes_notes())
        exchange.note("trace", trace->trace_id);
    return trace;
}

runtime::caller caller_of(http::request const& request) noexcept
{
    return request.header("Origin") ? runtime::caller::browser : runtime::caller::program;
}

// --- answering

void respond_event(http::exchange& exchange, std::string_view response, std::vector<http::field> fields)
{
    std::string body;
    http::append_event(body, {"message", {}, {}, response});
    fields.push_back({"Cache-Control", "no-cache, no-transform"});
    exchange.respond({200, sse_type, std::move(fields)}, body);
}

sse_sink::sse_sink(exchange_ptr exchange, std::weak_ptr<runtime::sink_writer> writer)
    : exchange_(std::move(exchange)), writer_(std::move(writer))
{
}

void sse_sink::begin()
{
    exchange_->begin_stream(
        {200, sse_type, {{"Cache-Control", "no-cache, no-transform"}, {"X-Accel-Buffering", "no"}}}, *this);
    // The exchange knows the observer by reference; this keeps it alive until one of the ends.
    self_ = shared_from_this();
}

void sse_sink::write_priming(std::string_view id, std::chrono::milliseconds retry, runtime::priming_style style)
{
    auto const retry_ms = static_cast<std::uint32_t>(retry.count());
    if (style == runtime::priming_style::empty)
        http::append_event(exchange_->out(), {{}, id, retry_ms, ""});
    else
        http::append_event(exchange_->out(), {"belay", id, retry_ms, "{}"});
}

void sse_sink::write_event(std::string_view id, std::string_view message)
{
    std::optional<std::string_view> const named = id.empty() ? std::nullopt : std::optional(id);
    http::append_event(exchange_->out(), {"message", named, {}, message});
}

void sse_sink::write_id(std::string_view id, runtime::priming_style style)
{
    if (style == runtime::priming_style::empty)
        http::append_event(exchange_->out(), {{}, id, {}, ""});
    else if (style == runtime::priming_style::typed)
        http::append_event(exchange_->out(), {"belay", id, {}, "{}"});
}

void sse_sink::write_comment(std::string_view text)
{
    http::append_comment(exchange_->out(), text);
}

void sse_sink::write_retry(std::chrono::milliseconds retry)
{
    http::append_retry(exchange_->out(), static_cast<std::uint32_t>(retry.count()));
}

bool sse_sink::flush()
{
    written_ += exchange_->out().size();
    return exchange_->flush();
}

std::shared_ptr<base::receipt> sse_sink::end(std::move_only_function<void()> arrived)
{
    auto const keep = std::exchange(self_, nullptr);
    return exchange_->end_stream(std::move(arrived));
}

void sse_sink::abort()
{
    auto const keep = std::exchange(self_, nullptr);
    exchange_->abort();
}

void sse_sink::on_drained()
{
    if (auto const writer = writer_.lock())
        writer->drained();
}

void sse_sink::on_closed(http::stream_end)
{
    auto const keep = std::exchange(self_, nullptr);
    if (auto const writer = writer_.lock())
        writer->peer_gone();
}

std::vector<std::string> ids_of(std::vector<protocol::message> const& batch)
{
    std::vector<std::string> ids;
    for (auto const& each : batch)
        ids.push_back(each.id);
    return ids;
}

bool route_batch(runtime::service& service, posted& body)
{
    std::erase_if(body.batch, [](auto const& each) { return each.kind != protocol::message_kind::request; });
    for (auto const& each : body.batch)
        body.routes.push_back(service.find(each));
    return std::ranges::all_of(body.routes, &runtime::route::is_instant);
}

namespace {

std::string_view principal_in(std::shared_ptr<runtime::live_session> const& session)
{
    return session ? std::string_view(session->key.principal) : std::string_view();
}

}

void hold_batch(
    batch_context const& context, exchange_ptr const& exchange, posted& body,
    std::function<void(std::shared_ptr<runtime::call> const&)> const& begun,
    std::move_only_function<void(std::string)> done)
{
    auto& loop = exchange->loop();
    auto const who = caller_of(exchange->request());
    auto const answers = std::make_shared<batch_answers>(body.batch.size(), std::move(done));
    for (std::size_t i = 0; i < body.batch.size(); ++i) {
        auto const& message = body.batch[i];
        auto const trace = trace_of(*exchange, message);
        auto outcome
            = body.routes[i].run({context.node, context.session, context.revision, message, trace ? &*trace : nullptr});
        auto const answer = [answers, i](std::string response) { answers->put(i, std::move(response)); };
        runtime::perform(std::move(outcome), answer, [&](runtime::start_call start, auto const&) {
            if (start.once)
                return answer(protocol::error_response(message.id, batched_key_error()));
            auto const call = context.node.calls().begin_held(
                context.session, loop,
                request_for(message.id, context.revision, start, {who, principal_in(context.session), trace}), answer);
            if (!call)
                return answer(protocol::error_response(message.id, begin_error(call.error())));
            begun(*call);
            start.run(*call);
        });
    }
}

void run_batch(
    batch_context const& context, std::shared_ptr<runtime::batch> const& batch, posted& body,
    protocol::trace_context const* trace)
{
    for (std::uint32_t line = 0; line < body.batch.size(); ++line) {
        auto const& message = body.batch[line];
        auto outcome = body.routes[line].run({context.node, context.session, context.revision, message, trace});
        auto const answer
            = [batch, line, id = message.id](std::string response) { batch->answer(line, id, std::move(response)); };
        runtime::perform(std::move(outcome), answer, [&](runtime::start_call start, auto const&) {
            if (start.once)
                return answer(protocol::error_response(message.id, batched_key_error()));
            start.run(context.node.calls().begin_member(batch, line, message.id, start.traits));
        });
    }
}

}
