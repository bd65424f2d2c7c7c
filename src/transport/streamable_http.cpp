#include "transport/streamable_http.hpp"

#include "engine/cursor.hpp"
#include "protocol/names.hpp"
#include "runtime/notifications.hpp"
#include "transport/beginning.hpp"

#include <algorithm>
#include <utility>

namespace belay::transport {

namespace {

namespace code = protocol::code;

constexpr std::string_view allowed_methods = "GET, POST, DELETE, OPTIONS";
constexpr std::string_view anonymous = "anonymous";
// In seconds.
constexpr std::string_view retry_after_storm = "10";

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

/// An empty one says as much as none.
std::optional<std::string_view> cursor_of(http::request const& request) noexcept
{
    auto const cursor = request.header(protocol::header::last_event_id);
    return cursor && cursor->empty() ? std::nullopt : cursor;
}

/// Gives a whole answer; its session is in use until then.
struct json_answer {
    exchange_ptr exchange;
    runtime::session_use use;

    void operator()(std::string_view response) const { exchange->respond({200, json_type, {}}, response); }
};

/// 202 says that it is kept.
void acknowledge(http::exchange& exchange, result<void> const& kept)
{
    if (!kept)
        return refuse_begin(exchange, kept.error());
    exchange.respond({202, {}, {}}, {});
}

/// Several things that are to be kept: done when all are, or with what went wrong.
class kept_all {
public:
    kept_all(std::size_t count, store::completion<void> done) : open_(count), done_(std::move(done))
    {
        if (open_ == 0)
            done_({});
    }
    void one(result<void> const& outcome)
    {
        if (!outcome)
            whole_ = outcome;
        if (--open_ == 0)
            done_(whole_);
    }

private:
    std::size_t open_;
    result<void> whole_{};
    store::completion<void> done_;
};

/// What is not a request in a batch.
struct batch_notices {
    std::vector<protocol::message> first;
    std::vector<protocol::message> after; ///< cancels of the batch's own requests
};

batch_notices notices_of(posted const& body)
{
    auto const is_own = [&](std::string_view id) {
        return std::ranges::any_of(body.batch, [&](protocol::message const& each) {
            return each.kind == protocol::message_kind::request && each.id == id;
        });
    };
    batch_notices notices;
    for (auto const& each : body.batch)
        if (each.kind != protocol::message_kind::request)
            (is_own(runtime::cancelled_request(each)) ? notices.after : notices.first).push_back(each);
    return notices;
}

bool is_event_id_text(std::string_view text) noexcept
{
    return text.size() <= engine::max_event_id_bytes
        && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

}

streamable_http::streamable_http(runtime::node& node, runtime::service& service, streamable_http_settings settings)
    : node_(node), service_(service), settings_(settings)
{
}

void streamable_http::handle(exchange_ptr exchange)
{
    if (!check_single_headers(*exchange))
        return;
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
        return refuse(
            *exchange, 400,
            {code::server_error, "Bad Request: Mcp-Session-Id header is required; initialize first", {}});
    node_.sessions().use(
        anonymous, *id,
        [exchange = std::move(exchange), then = std::move(then)](result<runtime::session_use> use) mutable {
            if (!use)
                return refuse_begin(*exchange, use.error());
            if (!read_version(*exchange))
                return;
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
    auto body = read_post(*exchange, settings_.batch_max);
    if (!body)
        return;
    if (body->is_batch())
        return with_session(std::move(exchange), [this, body](exchange_ptr of, runtime::session_use use) {
            if (check_batch(*of, use.revision()))
                dispatch_batch(std::move(of), std::move(use), body);
        });
    if (body->message.method == protocol::method::initialize && body->message.kind == protocol::message_kind::request)
        return initialize(std::move(exchange), body->message);
    with_session(std::move(exchange), [this, body](exchange_ptr of, runtime::session_use use) mutable {
        dispatch(std::move(of), std::move(use), std::move(body));
    });
}

void streamable_http::dispatch_batch(exchange_ptr exchange, runtime::session_use use, std::shared_ptr<posted> body)
{
    auto notices = notices_of(*body);
    bool const is_instant = route_batch(service_, *body);
    auto& loop = exchange->loop();
    auto const session = use.session();
    // First, because nothing can be said of them once an answer has begun.
    take_all(
        session, std::move(notices.first), loop,
        [this, exchange = std::move(exchange), use = std::move(use), body, is_instant,
         after = std::move(notices.after)](result<void> kept) mutable {
            if (!kept || body->batch.empty())
                return acknowledge(*exchange, kept);
            bool const is_held
                = settings_.answer == answer_form::json || (is_instant && settings_.answer != answer_form::sse);
            if (!is_held)
                return run_batch(std::move(exchange), use, std::move(body), std::move(after));
            auto& on = exchange->loop();
            auto const of = use.session();
            batch_context const context{node_, of, use.revision()};
            hold_batch(context, exchange, *body, [](auto const&) {}, json_answer{exchange, std::move(use)});
            take_all(of, std::move(after), on, [](result<void>) {});
        });
}

void streamable_http::take_all(
    std::shared_ptr<runtime::live_session> const& session, std::vector<protocol::message> notices, base::loop& loop,
    store::completion<void> done)
{
    auto const kept = std::make_shared<kept_all>(notices.size(), std::move(done));
    for (auto const& each : notices)
        take(session, each, loop, [kept](result<void> outcome) { kept->one(outcome); });
}

void streamable_http::take(
    std::shared_ptr<runtime::live_session> const& session, protocol::message const& message, base::loop& loop,
    store::completion<void> done)
{
    if (message.kind == protocol::message_kind::notification)
        runtime::handle_notification(node_, session, message, loop, std::move(done));
    else
        node_.calls().take_answer(*session, message, std::move(done));
}

void streamable_http::run_batch(
    exchange_ptr exchange, runtime::session_use const& use, std::shared_ptr<posted> body,
    std::vector<protocol::message> after)
{
    auto& loop = exchange->loop();
    auto const revision = use.revision();
    auto trace = trace_of(*exchange, body->batch.front());
    runtime::call_request request{
        ids_of(body->batch),
        revision,
        {},
        caller_of(exchange->request()),
        {},
        trace,
        exchange->request().body().size(),
        {std::string(anonymous), {}, {}}};
    for (auto const& each : body->routes)
        request.kinds.push_back(each.kind);
    node_.calls().begin_batch(
        use, loop, std::move(request),
        [this, exchange = std::move(exchange), body, revision, trace, session = use.session(),
         after = std::move(after)](result<runtime::begun_batch> begun) mutable {
            if (!begun)
                return refuse_begin(*exchange, begun.error());
            auto& on = exchange->loop();
            note_stream(*exchange, *begun->following);
            auto const sink = std::make_shared<sse_sink>(std::move(exchange), begun->following);
            sink->begin();
            transport::run_batch({node_, session, revision}, begun->batch, *body, trace ? &*trace : nullptr);
            take_all(session, std::move(after), on, [](result<void>) {});
            begun->following->start(sink);
        });
}

void streamable_http::dispatch(exchange_ptr exchange, runtime::session_use use, std::shared_ptr<posted const> body)
{
    auto const& message = body->message;
    auto trace = trace_of(*exchange, message);
    if (message.kind != protocol::message_kind::request) {
        auto& loop = exchange->loop();
        auto const session = use.session();
        auto const kept = std::make_shared<runtime::session_use>(std::move(use));
        return take(session, message, loop, [exchange = std::move(exchange), kept](result<void> outcome) {
            acknowledge(*exchange, outcome);
        });
    }
    auto const revision = use.revision();
    auto route = service_.find(message);
    if (settings_.answer == answer_form::sse && route.is_instant && !route.has_key)
        return run_instant(std::move(exchange), use, std::move(body), std::move(route), std::move(trace));
    auto outcome = route.run({node_, use.session(), revision, message, trace ? &*trace : nullptr});
    runtime::perform(
        std::move(outcome), json_answer{std::move(exchange), std::move(use)},
        [&](runtime::start_call start, json_answer to) {
            run_call(std::move(to.exchange), to.use, message.id, revision, std::move(start), std::move(trace));
        });
}

void streamable_http::run_instant(
    exchange_ptr exchange, runtime::session_use const& use, std::shared_ptr<posted const> body, runtime::route route,
    std::optional<protocol::trace_context> trace)
{
    auto const revision = use.revision();
    runtime::start_call start;
    start.traits.is_tool_call = false;
    // Run when the stream is there: what is refused has not run.
    start.run = [this, body, revision, route = std::move(route),
                 trace](std::shared_ptr<runtime::call> const& call) mutable {
        auto outcome = route.run({node_, call->shared_session(), revision, body->message, trace ? &*trace : nullptr});
        runtime::perform(
            std::move(outcome), [call](std::string response) { call->answer(std::move(response)); },
            [&](runtime::start_call inner, auto const&) { inner.run(call); });
    };
    run_call(std::move(exchange), use, body->message.id, revision, std::move(start), std::move(trace));
}

void streamable_http::run_call(
    exchange_ptr exchange, runtime::session_use const& use, std::string id, protocol::revision revision,
    runtime::start_call start, std::optional<protocol::trace_context> trace)
{
    auto& loop = exchange->loop();
    auto const& message = exchange->request();
    auto request = request_for(
        std::move(id), revision, start, {caller_of(message), anonymous, std::move(trace), message.body().size()});
    if (settings_.answer == answer_form::json) {
        if (request.once)
            return exchange->respond(
                {200, json_type, {}},
                protocol::error_response(
                    request.ids.front(),
                    {code::invalid_params, "This server answers with --answer json and keeps no outcome per key", {}}));
        auto const call
            = node_.calls().begin_held(use.session(), loop, std::move(request), [exchange](std::string response) {
                  exchange->respond({200, json_type, {}}, response);
              });
        if (!call)
            return refuse_begin(*exchange, call.error());
        return start.run(*call);
    }
    auto request_id = request.ids.front();
    node_.calls().begin(
        use, loop, std::move(request),
        [this, exchange = std::move(exchange), start = std::move(start),
         id = std::move(request_id)](result<runtime::begun_call> begun) mutable {
            if (!begun && is_about_key(begun.error()))
                return exchange->respond(
                    {200, json_type, {}}, protocol::error_response(id, begin_error(begun.error())));
            if (!begun)
                return refuse_begin(*exchange, begun.error());
            note_stream(*exchange, *begun->following);
            // The tool runs to its first wait before the connection writes, so that the head, the priming event and
            // what it has said by then leave in one write.
            auto const sink = std::make_shared<sse_sink>(std::move(exchange), begun->following);
            sink->begin();
            transport::run(node_, start, *begun);
            begun->following->start(sink);
        });
}

void streamable_http::initialize(exchange_ptr exchange, protocol::message const& message)
{
    trace_of(*exchange, message); // for the access log
    auto const revision = protocol::negotiate(message);
    if (!revision)
        return exchange->respond({200, json_type, {}}, protocol::error_response(message.id, revision.error()));
    auto hello = runtime::read_hello(message, *revision, std::string(anonymous), service_.features(), node_.settings());
    if (!hello)
        return refuse(*exchange, 400, hello.error());
    auto const session = exchange->request().header(protocol::header::session);
    if (!session)
        return open_session(std::move(exchange), message.id, std::move(*hello));
    node_.sessions().use(
        anonymous, *session,
        [this, exchange = std::move(exchange), hello = std::move(*hello),
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
            node_.sessions().reopen(
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
    auto const revision = hello.revision;
    node_.sessions().open(
        std::move(hello),
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
    auto const mode
        = settings_.answer == answer_form::json ? runtime::session_mode::kept : runtime::session_mode::resumable;
    auto response = protocol::result_response(
        id, service_.initialize_result(revision, mode, use.session()->current_record()->told_features));
    if (settings_.answer != answer_form::sse)
        return exchange->respond({200, json_type, {{protocol::header::session, session}}}, response);
    // The priming event would be the first thing of a stream that ends with it; the answer is one event without id.
    respond_event(*exchange, response, {{protocol::header::session, session}});
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
        node_.attachments().follow(
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
        node_.sessions().end(use.session()->key, loop, [of](result<void> ended) {
            if (!ended)
                return refuse_begin(*of, ended.error());
            of->respond({200, {}, {}}, {});
        });
    });
}

}
