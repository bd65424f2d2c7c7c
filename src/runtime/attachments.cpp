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
    auto const& session = use.session();
    auto const& record = use.record();
    auto const revision = use.revision();
    std::optional<engine::position> cursor;
    if (request.last_event_id) {
        cursor = engine::parse_event_id(*request.last_event_id);
        if (!cursor)
            return done(std::unexpected(follow_refusal::bad_cursor));
    }
    bool const is_standalone = !cursor || cursor->stream == record->standalone;
    auto const stream = is_standalone ? record->standalone : cursor->stream;
    // Whoever has a cursor has come back before, or can.
    bool const can_return
        = is_standalone || style_of(revision, request.from) == priming_style::empty || cursor->sequence > 0;
    store::attach_request attach;
    attach.reader = request_for(can_return, request.from);
    if (cursor)
        attach.from = store::cursor{cursor->epoch, cursor->sequence};
    attach.skips_backlog = context_.settings().backlog == backlog_policy::none;
    attach.policy = context_.settings().standalone;
    attach.broken = session->broken_reader(stream);
    attach.wants_questions = context_.settings().redeliver_requests && cursor && cursor->sequence > 0;
    auto const fresh = std::make_shared<following>(
        context_, session, loop, attach.reader.id, store::stream_key{session->key, stream},
        style_of(revision, request.from), can_return);
    fresh->attach(
        std::move(attach),
        [this, fresh, session, stream, from = request.from, done = std::move(done)](result<void> attached) mutable {
            if (!attached)
                return done(std::unexpected(refusal_for(attached.error())));
            // A request's stream speaks the revision it was opened with, whatever the session says now.
            if (auto const dialect = protocol::parse_revision(fresh->attached().dialect))
                fresh->set_priming(style_of(*dialect, from));
            keep(fresh, *session);
            if (fresh->attached().took_over) {
                context_.metrics().takeovers.Increment();
                context_.log().log_fields(
                    base::log_level::info, "stream taken over",
                    {{"session", session->name}, {"stream", stream_log_name(stream)}});
            }
            if (context_.log().enabled(base::log_level::debug))
                context_.log().log_fields(
                    base::log_level::debug, "stream resumed",
                    {{"session", session->name}, {"stream", stream_log_name(stream)}});
            done(fresh);
        });
}

void attachments::close_all(engine::close_reason reason)
{
    for (auto const& session : table_.all())
        for (auto const& each : session->followers())
            each->close(reason, context_.retry_delay(drain_retry));
}

}
