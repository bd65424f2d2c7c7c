#include "runtime/attachments.hpp"

#include "engine/cursor.hpp"

#include <limits>
#include <utility>

namespace belay::runtime {

namespace {

// Clients of a server that goes away come back when another has taken its place.
constexpr std::chrono::milliseconds drain_retry{5000};

follow_refusal refusal_for(std::error_code why)
{
    if (why == errc::not_found)
        return follow_refusal::session_gone;
    if (why == errc::stream_gone || why == errc::bad_cursor)
        return follow_refusal::bad_cursor;
    if (why == errc::finished)
        return follow_refusal::nothing_left;
    return why == errc::conflict ? follow_refusal::conflict : follow_refusal::unavailable;
}

}

priming_style attachments::style_of(protocol::revision revision, caller from) const noexcept
{
    if (from == caller::pipe)
        return priming_style::none;
    if (protocol::facts_of(revision).takes_empty_priming)
        return priming_style::empty;
    return context_.settings().priming_legacy == legacy_priming::typed ? priming_style::typed : priming_style::none;
}

store::reader_request attachments::request_for(bool can_return, caller from)
{
    auto const& settings = context_.settings();
    constexpr auto unlimited = std::numeric_limits<std::size_t>::max();
    bool const is_pipe = from == caller::pipe;
    return {
        context_.next_reader(), can_return, from == caller::browser, is_pipe ? unlimited : settings.open_without_origin,
        is_pipe ? unlimited : settings.open_with_origin};
}

store::reader_request attachments::reader_for(protocol::revision revision, caller from)
{
    // Clients before 2025-11-25 take the end of a connection for the end of the call, unless they have come back
    // before.
    return request_for(style_of(revision, from) == priming_style::empty, from);
}

void attachments::keep(std::shared_ptr<following> const& fresh, live_session& session)
{
    session.add(fresh);
    context_.departures().connection_came();
}

std::shared_ptr<following> attachments::follow_new(
    std::shared_ptr<live_session> const& session, base::loop& loop, store::reader_request const& reader,
    store::stream_id stream, std::uint64_t epoch, protocol::revision revision, caller from)
{
    auto fresh = std::make_shared<following>(
        context_, session, loop, reader.id, store::stream_key{session->key, stream}, style_of(revision, from),
        reader.can_return);
    fresh->follow_new(epoch);
    keep(fresh, *session);
    return fresh;
}

void attachments::follow(session_use const& use, base::loop& loop, follow_request request, followed done)
{
    auto const& record = use.record();
    coming one{use.session(), loop, record->standalone, request.from, use.revision(), std::nullopt, std::move(done)};
    if (request.last_event_id) {
        one.cursor = engine::parse_event_id(*request.last_event_id);
        if (!one.cursor)
            return one.done(std::unexpected(follow_refusal::bad_cursor));
        one.stream = one.cursor->stream;
    }
    one.is_standalone = one.stream == record->standalone;
    attach(std::move(one));
}

void attachments::attach(coming one)
{
    auto const& cursor = one.cursor;
    // Whoever has a cursor has come back before, or can.
    bool const can_return
        = one.is_standalone || style_of(one.revision, one.from) == priming_style::empty || cursor->sequence > 0;
    store::attach_request request;
    request.reader = request_for(can_return, one.from);
    if (cursor)
        request.from = store::cursor{cursor->epoch, cursor->sequence};
    request.skips_backlog = context_.settings().backlog == backlog_policy::none;
    request.policy = context_.settings().standalone;
    request.broken = one.session->broken_reader(one.stream);
    request.wants_questions = context_.settings().redeliver_requests && cursor && cursor->sequence > 0;
    auto const fresh = std::make_shared<following>(
        context_, one.session, one.loop, request.reader.id, store::stream_key{one.session->key, one.stream},
        style_of(one.revision, one.from), can_return);
    fresh->attach(std::move(request), [this, fresh, one = std::move(one)](result<void> attached) mutable {
        // Another loop has got a later number and was faster. It comes again as the newest, as it is for its client.
        if (!attached && attached.error() == errc::fenced)
            return attach(std::move(one));
        if (!attached)
            return one.done(std::unexpected(refusal_for(attached.error())));
        attached_to(fresh, one);
        one.done(fresh);
    });
}

void attachments::attached_to(std::shared_ptr<following> const& fresh, coming const& one)
{
    // A request's stream speaks the revision it was opened with, whatever the session says now.
    if (auto const dialect = protocol::parse_revision(fresh->attached().dialect))
        fresh->set_priming(style_of(*dialect, one.from));
    keep(fresh, *one.session);
    auto const log = [&](base::log_level level, std::string_view message) {
        if (context_.log().enabled(level))
            context_.log().log_fields(
                level, message, {{"session", one.session->name}, {"stream", stream_log_name(one.stream)}});
    };
    if (fresh->attached().took_over) {
        context_.metrics().takeovers.Increment();
        log(base::log_level::info, "stream taken over");
    }
    log(base::log_level::debug, "stream resumed");
}

void attachments::close_all(engine::close_reason reason)
{
    for (auto const& session : table_.all())
        for (auto const& each : session->followers())
            each->close(reason, context_.retry_delay(drain_retry));
}

}
