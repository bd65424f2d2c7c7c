#include "transport/streamable_http.hpp"

#include "engine/cursor.hpp"
#include "http/sse.hpp"
#include "protocol/names.hpp"
#include "runtime/notifications.hpp"
#include "runtime/repetition.hpp"

#include <boost/json/monotonic_resource.hpp>

#include <algorithm>
#include <utility>

namespace belay::transport {

namespace {

using protocol::rpc_error;
namespace code = protocol::code;

constexpr std::string_view json_type = "application/json";
constexpr std::string_view sse_type = "text/event-stream";
constexpr std::string_view allowed_methods = "GET, POST, DELETE, OPTIONS";
constexpr std::string_view anonymous = "anonymous";
// In seconds: how long a refused newcomer waits before trying again.
constexpr std::string_view retry_soon = "1";
constexpr std::string_view retry_after_storm = "10";

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept
{
    auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trim(std::string_view text) noexcept
{
    auto const first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Whether an Accept field allows the media type. An absent field allows everything.
bool accepts(std::optional<std::string_view> accept, std::string_view type) noexcept
{
    if (!accept)
        return true;
    auto const family = type.substr(0, type.find('/'));
    for (auto rest = *accept; !rest.empty();) {
        auto const comma = std::min(rest.find(','), rest.size());
        auto range = rest.substr(0, comma);
        range = trim(range.substr(0, range.find(';')));
        if (range == "*/*" || equal_ignoring_case(range, type)
            || (range.ends_with("/*") && equal_ignoring_case(range.substr(0, range.size() - 2), family)))
            return true;
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return false;
}

bool is_json(std::optional<std::string_view> content_type) noexcept
{
    return content_type && equal_ignoring_case(trim(content_type->substr(0, content_type->find(';'))), json_type);
}

void refuse(http::exchange& exchange, unsigned status, rpc_error const& error, std::vector<http::field> fields = {})
{
    exchange.respond({status, json_type, std::move(fields)}, protocol::error_response("null", error));
}

void refuse_unknown_session(http::exchange& exchange)
{
    refuse(exchange, 404, {code::session_not_found, "Session not found", {}});
}

/// Why something could not be begun, as HTTP says it.
void refuse_begin(http::exchange& exchange, std::error_code why)
{
    if (why == errc::not_found)
        return refuse_unknown_session(exchange);
    if (why == errc::conflict)
        return refuse(
            exchange, 400, {code::invalid_request, "Invalid Request: a call with this id is still running", {}});
    if (why == errc::too_many_streams)
        return refuse(
            exchange, 429,
            {code::server_error, "Too many calls or connections in this session; finish or resume some first", {}},
            {{"Retry-After", retry_soon}});
    refuse(
        exchange, 503, {code::server_error, "The server cannot take this now: " + why.message(), {}},
        {{"Retry-After", retry_soon}});
}

std::string key_refusal(std::error_code why)
{
    if (why == errc::key_spent)
        return std::string(protocol::spent_key_text());
    return "This idempotency key was used for a call with another name or other arguments. Use a new key.";
}

void refuse_follow(http::exchange& exchange, runtime::follow_refusal why)
{
    using refusal = runtime::follow_refusal;
    switch (why) {
    case refusal::bad_cursor:
        return refuse(
            exchange, 400,
            {code::server_error,
             "Bad Request: Last-Event-ID names no stream that this session keeps; the call it belonged to cannot be "
             "resumed",
             {}});
    case refusal::nothing_left: return exchange.respond({204, {}, {}}, {});
    case refusal::conflict:
        return refuse(
            exchange, 409,
            {code::server_error,
             "Conflict: the standalone stream of this session has a reader, or changes hands too often",
             {}},
            {{"Retry-After", retry_after_storm}});
    case refusal::over_budget: return refuse_begin(exchange, make_error_code(errc::too_many_streams));
    case refusal::session_gone: return refuse_unknown_session(exchange);
    case refusal::unavailable: return refuse_begin(exchange, make_error_code(errc::unavailable));
    }
}

// What the access log says of an exchange beyond HTTP. Names for the log, never ids.
void note_session(http::exchange& exchange, runtime::session_use const& use)
{
    if (exchange.takes_notes())
        exchange.note("session", use.session()->name);
}

void note_stream(http::exchange& exchange, runtime::following const& following)
{
    if (exchange.takes_notes())
        exchange.note("stream", runtime::stream_log_name(following.stream()));
}

std::optional<protocol::trace_context> trace_of(http::exchange& exchange, protocol::message const& message)
{
    auto const& request = exchange.request();
    // Two parents are no parent.
    auto parent = request.header(protocol::header::traceparent);
    if (parent && request.header_count(protocol::header::traceparent) > 1)
        parent.reset();
    auto const state = parent ? request.header(protocol::header::tracestate) : std::nullopt;
    auto trace = protocol::trace_context_of(message.params, parent, state);
    if (trace && exchange.takes_notes())
        exchange.note("trace", trace->trace_id);
    return trace;
}

/// An empty one says as much as none.
std::optional<std::string_view> cursor_of(http::request const& request) noexcept
{
    auto const cursor = request.header(protocol::header::last_event_id);
    return cursor && cursor->empty() ? std::nullopt : cursor;
}

protocol::revision revision_of(runtime::session_use const& use)
{
    return protocol::parse_revision(use.record()->version).value_or(protocol::newest_revision);
}

runtime::caller caller_of(http::request const& request) noexcept
{
    return request.header("Origin") ? runtime::caller::browser : runtime::caller::direct;
}

bool is_event_id_text(std::string_view text) noexcept
{
    return text.size() <= engine::max_event_id_bytes
        && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

/// One HTTP answer that carries a stream: what a following writes to, as SSE.
class sse_sink final : public runtime::event_sink,
                       public http::stream_observer,
                       public std::enable_shared_from_this<sse_sink> {
public:
    sse_sink(std::shared_ptr<http::exchange> exchange, std::shared_ptr<runtime::following> const& following)
        : exchange_(std::move(exchange)), following_(following)
    {
    }

    void begin()
    {
        exchange_->begin_stream(
            {200, sse_type, {{"Cache-Control", "no-cache, no-transform"}, {"X-Accel-Buffering", "no"}}}, *this);
        // The exchange knows the observer by reference; this keeps it alive until one of the ends.
        self_ = shared_from_this();
    }

    void write_priming(std::string_view id, std::chrono::milliseconds retry, runtime::priming_style style) override
    {
        auto const retry_ms = static_cast<std::uint32_t>(retry.count());
        if (style == runtime::priming_style::empty)
            http::append_event(exchange_->out(), {{}, id, retry_ms, ""});
        else
            http::append_event(exchange_->out(), {"belay", id, retry_ms, "{}"});
    }
    void write_event(std::string_view id, std::string_view message) override
    {
        http::append_event(exchange_->out(), {"message", id, {}, message});
    }
    void write_id(std::string_view id, runtime::priming_style style) override
    {
        if (style == runtime::priming_style::empty)
            http::append_event(exchange_->out(), {{}, id, {}, ""});
        else if (style == runtime::priming_style::typed)
            http::append_event(exchange_->out(), {"belay", id, {}, "{}"});
    }
    void write_comment(std::string_view text) override { http::append_comment(exchange_->out(), text); }
    void write_retry(std::chrono::milliseconds retry) override
    {
        http::append_retry(exchange_->out(), static_cast<std::uint32_t>(retry.count()));
    }
    bool flush() override
    {
        written_ += exchange_->out().size();
        return exchange_->flush();
    }
    void end() override
    {
        auto const keep = std::exchange(self_, nullptr);
        exchange_->end_stream();
    }
    void abort() override
    {
        auto const keep = std::exchange(self_, nullptr);
        exchange_->abort();
    }
    std::uint64_t written() const override { return written_; }
    std::uint64_t unacknowledged() const override { return exchange_->unacknowledged(); }
    bool peer_gone() const override { return exchange_->peer_gone(); }

    void on_drained() override
    {
        if (auto const following = following_.lock())
            following->drained();
    }
    void on_closed(http::stream_end) override
    {
        auto const keep = std::exchange(self_, nullptr);
        if (auto const following = following_.lock())
            following->peer_gone();
    }

private:
    std::shared_ptr<http::exchange> exchange_;
    std::weak_ptr<runtime::following> following_;
    std::shared_ptr<sse_sink> self_;
    std::uint64_t written_ = 0;
};

}

/// A request's body as JSON, with the memory it lives in.
struct streamable_http::parsed_body {
    parsed_body() {} // leaves the buffer as it is: two kilobytes of zeros are not free
    std::array<unsigned char, 2048> buffer;
    json::monotonic_resource arena{buffer.data(), buffer.size()};
    json::value value = json::value(json::storage_ptr(&arena));
    protocol::message message;
    std::vector<protocol::message> batch; ///< of a body that is an array
};

streamable_http::streamable_http(runtime::node& node, runtime::service& service, streamable_http_settings settings)
    : node_(node), service_(service), settings_(settings)
{
}

void streamable_http::handle(exchange_ptr exchange)
{
    switch (exchange->request().method()) {
    case http::method::post: return post(std::move(exchange));
    case http::method::get: return get(std::move(exchange));
    case http::method::delete_: return remove(std::move(exchange));
    default:
        return refuse(*exchange, 405, {code::server_error, "Method not allowed.", {}}, {{"Allow", allowed_methods}});
    }
}

template<class F>
void streamable_http::with_session(exchange_ptr exchange, F then)
{
    auto const id = exchange->request().header(protocol::header::session);
    if (!id)
        return refuse(*exchange, 400, {code::server_error, "Bad Request: Mcp-Session-Id header is required", {}});
    auto& loop = exchange->loop();
    node_.use(
        anonymous, *id, loop,
        [exchange = std::move(exchange), then = std::move(then)](result<runtime::session_use> use) mutable {
            if (!use)
                return refuse_begin(*exchange, use.error());
            auto const version = exchange->request().header(protocol::header::version);
            if (version && !protocol::parse_revision(*version))
                return refuse(
                    *exchange, 400,
                    {code::server_error,
                     "Bad Request: Unsupported protocol version (supported versions: "
                         + std::string(protocol::supported_revisions()) + ")",
                     {}});
            note_session(*exchange, *use);
            then(std::move(exchange), std::move(*use));
        });
}

void streamable_http::post(exchange_ptr exchange)
{
    auto const& request = exchange->request();
    auto const accept = request.header("Accept");
    if (!accepts(accept, json_type) || !accepts(accept, sse_type))
        return refuse(
            *exchange, 406,
            {code::server_error, "Not Acceptable: Client must accept both application/json and text/event-stream", {}});
    if (!is_json(request.header("Content-Type")))
        return refuse(
            *exchange, 415, {code::server_error, "Unsupported Media Type: Content-Type must be application/json", {}});
    auto body = std::make_shared<parsed_body>();
    auto value = protocol::parse_json(request.body(), &body->arena);
    if (!value)
        return refuse(*exchange, 400, value.error());
    body->value = std::move(*value);
    if (auto const* const batch = body->value.if_array()) {
        if (batch->empty() || batch->size() > settings_.batch_max)
            return refuse(
                *exchange, 400,
                {code::invalid_request,
                 "Invalid Request: a batch has 1 to " + std::to_string(settings_.batch_max) + " messages",
                 {}});
        for (auto const& each : *batch) {
            auto read = protocol::read_message(each);
            if (!read)
                return refuse(*exchange, 400, read.error());
            if (read->method == protocol::method::initialize)
                return refuse(
                    *exchange, 400,
                    {code::invalid_request, "Invalid Request: initialize must not be part of a batch", {}});
            body->batch.push_back(std::move(*read));
        }
        return with_session(std::move(exchange), [this, body](exchange_ptr of, runtime::session_use use) {
            if (!protocol::takes_batches(revision_of(use)))
                return refuse(
                    *of, 400, {code::invalid_request, "Invalid Request: send one message per POST, not a batch", {}});
            dispatch_batch(std::move(of), std::move(use), body);
        });
    }
    auto message = protocol::read_message(body->value);
    if (!message)
        return refuse(*exchange, 400, message.error());
    body->message = std::move(*message);
    if (body->message.method == protocol::method::initialize && body->message.kind == protocol::message_kind::request)
        return initialize(std::move(exchange), body->message);
    with_session(std::move(exchange), [this, body](exchange_ptr of, runtime::session_use use) {
        dispatch(std::move(of), std::move(use), body->message);
    });
}

namespace {

std::string refuse_key(std::string_view id)
{
    return protocol::error_response(
        id, {code::invalid_params, "A call with an idempotency key cannot be part of a batch", {}});
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

void streamable_http::dispatch_batch(exchange_ptr exchange, runtime::session_use use, std::shared_ptr<parsed_body> body)
{
    std::string ids;
    bool is_instant = settings_.answer != answer_form::sse;
    for (auto const& each : body->batch) {
        if (each.kind == protocol::message_kind::notification)
            runtime::handle_notification(node_, use.session(), each);
        else if (each.kind == protocol::message_kind::response)
            node_.take_answer(use.session(), each);
        else {
            is_instant = is_instant && service_.is_instant(each);
            ids += (ids.empty() ? "" : "\n") + each.id;
        }
    }
    std::erase_if(body->batch, [](auto const& each) { return each.kind != protocol::message_kind::request; });
    if (body->batch.empty())
        return exchange->respond({202, {}, {}}, {});
    if (is_instant || settings_.answer == answer_form::json)
        return hold_batch(std::move(exchange), std::move(use), std::move(body));
    run_batch(std::move(exchange), use, std::move(body), std::move(ids));
}

void streamable_http::hold_batch(exchange_ptr exchange, runtime::session_use use, std::shared_ptr<parsed_body> body)
{
    auto& loop = exchange->loop();
    auto const who = caller_of(exchange->request());
    auto const kept = std::make_shared<runtime::session_use>(std::move(use));
    auto const revision = revision_of(*kept);
    auto const answers = std::make_shared<batch_answers>(
        body->batch.size(), [exchange, kept](std::string all) { exchange->respond({200, json_type, {}}, all); });
    for (std::size_t i = 0; i < body->batch.size(); ++i) {
        auto const& message = body->batch[i];
        auto const trace = trace_of(*exchange, message);
        auto outcome = service_.handle({node_, kept->session(), revision, message, trace ? &*trace : nullptr});
        if (auto* const instant = std::get_if<runtime::instant_answer>(&outcome)) {
            answers->put(i, std::move(instant->response));
        } else if (auto* const deferred = std::get_if<runtime::deferred_answer>(&outcome)) {
            deferred->run([answers, i](std::string response) { answers->put(i, std::move(response)); });
        } else {
            auto& start = std::get<runtime::start_call>(outcome);
            if (start.once) {
                answers->put(i, refuse_key(message.id));
                continue;
            }
            auto const call = node_.begin_held_call(
                *kept, loop, {message.id, revision, start.traits, who, {}, trace},
                [answers, i](std::string response) { answers->put(i, std::move(response)); });
            if (call)
                start.run(*call);
            else
                answers->put(
                    i,
                    protocol::error_response(
                        message.id,
                        {code::server_error, "The server cannot take this now: " + call.error().message(), {}}));
        }
    }
}

void streamable_http::run_batch(
    exchange_ptr exchange, runtime::session_use const& use, std::shared_ptr<parsed_body> body, std::string ids)
{
    auto& loop = exchange->loop();
    auto const revision = revision_of(use);
    auto trace = trace_of(*exchange, body->batch.front());
    runtime::call_request request{std::move(ids), revision, {}, caller_of(exchange->request()), {}, trace};
    node_.begin_call(
        use, loop, std::move(request),
        [this, exchange = std::move(exchange), body, revision, trace,
         session = use.session()](result<runtime::begun_call> begun) mutable {
            if (!begun)
                return refuse_begin(*exchange, begun.error());
            note_stream(*exchange, *begun->following);
            auto const& batch = begun->call;
            auto const sink = std::make_shared<sse_sink>(std::move(exchange), begun->following);
            sink->begin();
            batch->expect_answers(body->batch.size());
            for (auto const& message : body->batch) {
                auto outcome = service_.handle({node_, session, revision, message, trace ? &*trace : nullptr});
                if (auto* const instant = std::get_if<runtime::instant_answer>(&outcome))
                    batch->answer_member(message.id, std::move(instant->response));
                else if (auto* const deferred = std::get_if<runtime::deferred_answer>(&outcome))
                    deferred->run([batch, id = message.id](std::string response) {
                        batch->answer_member(id, std::move(response));
                    });
                else if (auto& start = std::get<runtime::start_call>(outcome); start.once)
                    batch->answer_member(message.id, refuse_key(message.id));
                else
                    start.run(node_.begin_member(batch, message.id, start.traits));
            }
            begun->following->start(sink);
        });
}

void streamable_http::dispatch(exchange_ptr exchange, runtime::session_use use, protocol::message const& message)
{
    auto trace = trace_of(*exchange, message);
    if (message.kind != protocol::message_kind::request) {
        if (message.kind == protocol::message_kind::notification)
            runtime::handle_notification(node_, use.session(), message);
        else
            node_.take_answer(use.session(), message);
        return exchange->respond({202, {}, {}}, {});
    }
    auto const revision = revision_of(use);
    auto outcome = service_.handle({node_, use.session(), revision, message, trace ? &*trace : nullptr});
    if (auto* const instant = std::get_if<runtime::instant_answer>(&outcome))
        return answer_instant(std::move(exchange), use, message.id, std::move(instant->response));
    if (auto* const start = std::get_if<runtime::start_call>(&outcome))
        return run_call(std::move(exchange), use, message.id, revision, std::move(*start), std::move(trace));
    auto& deferred = std::get<runtime::deferred_answer>(outcome);
    auto const kept = std::make_shared<runtime::session_use>(std::move(use));
    deferred.run([this, exchange = std::move(exchange), kept, id = message.id](std::string response) mutable {
        answer_instant(std::move(exchange), *kept, std::move(id), std::move(response));
    });
}

void streamable_http::answer_instant(
    exchange_ptr exchange, runtime::session_use const& use, std::string id, std::string response)
{
    if (settings_.answer != answer_form::sse)
        return exchange->respond({200, json_type, {}}, response);
    auto const revision = revision_of(use);
    runtime::start_call start;
    start.run = [response = std::move(response)](std::shared_ptr<runtime::call> call) mutable {
        call->answer(std::move(response));
    };
    start.traits.is_tool_call = false;
    run_call(std::move(exchange), use, std::move(id), revision, std::move(start));
}

void streamable_http::run_call(
    exchange_ptr exchange, runtime::session_use const& use, std::string id, protocol::revision revision,
    runtime::start_call start, std::optional<protocol::trace_context> trace)
{
    auto& loop = exchange->loop();
    runtime::call_request request{std::move(id),         revision,        start.traits, caller_of(exchange->request()),
                                  std::move(start.once), std::move(trace)};
    if (settings_.answer == answer_form::json) {
        if (request.once)
            return exchange->respond(
                {200, json_type, {}},
                protocol::error_response(
                    request.id,
                    {code::invalid_params, "This server answers with --answer json and keeps no outcome per key", {}}));
        auto const call = node_.begin_held_call(use, loop, std::move(request), [exchange](std::string response) {
            exchange->respond({200, json_type, {}}, response);
        });
        if (!call)
            return refuse_begin(*exchange, call.error());
        return start.run(*call);
    }
    auto request_id = request.id;
    node_.begin_call(
        use, loop, std::move(request),
        [this, exchange = std::move(exchange), start = std::move(start),
         id = std::move(request_id)](result<runtime::begun_call> begun) mutable {
            if (!begun && (begun.error() == errc::key_spent || begun.error() == errc::key_mismatch))
                return exchange->respond(
                    {200, json_type, {}},
                    protocol::error_response(id, {code::invalid_params, key_refusal(begun.error()), {}}));
            if (!begun)
                return refuse_begin(*exchange, begun.error());
            note_stream(*exchange, *begun->following);
            // The tool runs to its first wait before the connection writes, so that the head, the priming event and
            // what it has said by then leave in one write.
            auto const sink = std::make_shared<sse_sink>(std::move(exchange), begun->following);
            sink->begin();
            if (begun->twin)
                runtime::repeat(node_, begun->call, *begun->twin, std::move(start.progress_token));
            else
                start.run(begun->call);
            begun->following->start(sink);
        });
}

void streamable_http::initialize(exchange_ptr exchange, protocol::message const& message)
{
    trace_of(*exchange, message); // for the access log
    auto const* version = message.params ? message.params->if_contains("protocolVersion") : nullptr;
    if (!version || !version->is_string())
        return exchange->respond(
            {200, json_type, {}},
            protocol::error_response(
                message.id, {code::invalid_params, "params.protocolVersion must be a string such as 2025-11-25", {}}));
    runtime::client_hello hello;
    hello.principal = anonymous;
    hello.revision = protocol::negotiate({version->get_string().data(), version->get_string().size()});
    hello.info = protocol::object_text(message.params, "clientInfo");
    hello.capabilities = protocol::object_text(message.params, "capabilities");
    auto const session = exchange->request().header(protocol::header::session);
    if (!session)
        return open_session(std::move(exchange), message.id, std::move(hello));
    auto& loop = exchange->loop();
    node_.use(
        anonymous, *session, loop,
        [this, exchange = std::move(exchange), hello = std::move(hello),
         id = message.id](result<runtime::session_use> use) mutable {
            if (!use) {
                if (use.error() == errc::not_found && settings_.accept_stale_initialize)
                    return open_session(std::move(exchange), std::move(id), std::move(hello));
                return refuse_begin(*exchange, use.error());
            }
            if (settings_.reinitialize == reinitialize_policy::reject)
                return refuse(
                    *exchange, 400, {code::invalid_request, "Invalid Request: Server already initialized", {}});
            auto const revision = hello.revision;
            auto const kept = std::make_shared<runtime::session_use>(std::move(*use));
            node_.reopen(
                *kept, std::move(hello),
                [this, exchange = std::move(exchange), kept, revision,
                 id = std::move(id)](result<void> reopened) mutable {
                    if (!reopened)
                        return refuse_begin(*exchange, reopened.error());
                    answer_initialize(std::move(exchange), *kept, std::move(id), revision);
                });
        });
}

void streamable_http::open_session(exchange_ptr exchange, std::string id, runtime::client_hello hello)
{
    auto& loop = exchange->loop();
    auto const revision = hello.revision;
    node_.open(
        std::move(hello), loop,
        [this, exchange = std::move(exchange), id = std::move(id), revision](result<runtime::session_use> use) mutable {
            if (!use)
                return refuse_begin(*exchange, use.error());
            answer_initialize(std::move(exchange), *use, std::move(id), revision);
        });
}

void streamable_http::answer_initialize(
    exchange_ptr exchange, runtime::session_use const& use, std::string id, protocol::revision revision)
{
    note_session(*exchange, use);
    auto const session = base::to_string(use.session()->key.id);
    auto response = protocol::result_response(id, service_.initialize_result(revision));
    if (settings_.answer != answer_form::sse)
        return exchange->respond({200, json_type, {{protocol::header::session, session}}}, response);
    // The priming event would be the first thing of a stream that ends with it; the answer is one event without id.
    std::string body;
    http::append_event(body, {"message", {}, {}, response});
    exchange->respond(
        {200, sse_type, {{protocol::header::session, session}, {"Cache-Control", "no-cache, no-transform"}}}, body);
}

void streamable_http::get(exchange_ptr exchange)
{
    if (!accepts(exchange->request().header("Accept"), sse_type))
        return refuse(*exchange, 406, {code::server_error, "Not Acceptable: Client must accept text/event-stream", {}});
    auto const cursor = cursor_of(exchange->request());
    if (cursor && !is_event_id_text(*cursor))
        return refuse(
            *exchange, 400,
            {code::server_error,
             "Bad Request: Last-Event-ID must be at most 64 visible ASCII characters, as this server sent it",
             {}});
    with_session(std::move(exchange), [this](exchange_ptr of, runtime::session_use use) {
        auto& loop = of->loop();
        auto const& request = of->request();
        trace_of(*of, {}); // for the access log
        runtime::follow_request follow{cursor_of(request), caller_of(request)};
        node_.follow(
            use, loop, follow,
            [of](std::expected<std::shared_ptr<runtime::following>, runtime::follow_refusal> followed) {
                if (!followed)
                    return refuse_follow(*of, followed.error());
                note_stream(*of, **followed);
                auto const sink = std::make_shared<sse_sink>(of, *followed);
                sink->begin();
                (*followed)->start(sink);
            });
    });
}

void streamable_http::remove(exchange_ptr exchange)
{
    with_session(std::move(exchange), [this](exchange_ptr of, runtime::session_use use) {
        auto& loop = of->loop();
        trace_of(*of, {}); // for the access log
        node_.end(use.session(), loop, [of](result<void> ended) {
            if (!ended)
                return refuse_begin(*of, ended.error());
            of->respond({200, {}, {}}, {});
        });
    });
}

}
