// The node's connections: which of them follows which stream, from where, and what follows when one leaves.
#include "engine/cursor.hpp"
#include "runtime/node.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace belay::runtime {

namespace {

// How many sessions hear of something before the loop has its turn.
constexpr std::size_t tell_bite = 64;

}

// --- attaching and leaving

priming_style node::style_of(protocol::revision revision) const noexcept
{
    if (protocol::takes_empty_priming(revision))
        return priming_style::empty;
    return settings_.priming_legacy == legacy_priming::typed ? priming_style::typed : priming_style::none;
}

std::expected<node::attachment, follow_refusal> node::attach(
    std::shared_ptr<live_session> const& session, base::loop& loop, store::stream_id stream, store::stream_kind kind,
    start_position from, protocol::revision revision, caller who, bool is_new_call)
{
    auto const now = loop.now();
    auto const style = who == caller::pipe ? priming_style::none : style_of(revision);
    engine::attach_request request;
    request.connection = next_connection_.fetch_add(1, std::memory_order_relaxed);
    request.stream = stream;
    request.kind = kind;
    // Clients before 2025-11-25 take the end of a connection for the end of the call, unless they have come back
    // before.
    request.can_return = style == priming_style::empty || from.sequence.value_or(0) > 0;
    request.is_new_call = is_new_call;
    request.policy = settings_.standalone;

    attachment made;
    std::shared_ptr<following> displaced;
    {
        std::lock_guard const lock(session->mutex);
        // A browser names its origin with a POST; with a GET of its own origin it does not.
        session->is_of_page = session->is_of_page || who == caller::browser;
        request.budget = who == caller::pipe ? std::numeric_limits<std::size_t>::max()
            : session->is_of_page            ? settings_.open_with_origin
                                             : settings_.open_without_origin;
        auto const find = [&](engine::connection_id id) -> std::shared_ptr<following> {
            auto const found = std::ranges::find(session->followers, id, &following::id);
            return found == session->followers.end() ? nullptr : *found;
        };
        auto const decision = session->machine.attach(request, now, [&](engine::connection_id id) {
            auto const found = find(id);
            return !found || found->is_peer_gone();
        });
        switch (decision.verdict) {
        case engine::attach_verdict::accepted: break;
        case engine::attach_verdict::conflict: return std::unexpected(follow_refusal::conflict);
        case engine::attach_verdict::over_budget: return std::unexpected(follow_refusal::over_budget);
        case engine::attach_verdict::ended: return std::unexpected(follow_refusal::session_gone);
        }
        if (decision.displaced)
            displaced = find(*decision.displaced);
        if (decision.closed)
            made.over_budget = find(*decision.closed);
        made.fresh = std::make_shared<following>(
            *this, session, loop, request.connection, store::stream_key{session->key, stream}, from, style,
            request.can_return || kind == store::stream_kind::standalone, decision.waits);
        session->followers.push_back(made.fresh);
        write_presence(*session, now);
    }
    open_followings_.fetch_add(1, std::memory_order_relaxed);
    if (displaced) {
        metrics_.takeovers.Increment();
        log_.log_fields(
            base::log_level::info, "stream taken over",
            {{"session", session->name}, {"stream", stream_log_name(stream)}});
        displaced->close(engine::close_reason::taken_over, std::nullopt);
    }
    return made;
}

void node::close_over_budget(attachment const& made)
{
    if (made.over_budget)
        made.over_budget->close(engine::close_reason::over_budget, retry_delay());
}

void node::give_up(live_session& session, attachment const& made)
{
    made.fresh->abandon();
    if (!made.over_budget)
        return;
    std::lock_guard const lock(session.mutex);
    session.machine.stay(made.over_budget->id());
}

void node::detached(live_session& session, following& gone, base::time_point now)
{
    std::shared_ptr<following> next;
    std::shared_ptr<following> keep; // its destructor must not run under the lock
    std::move_only_function<void()> quiet;
    {
        std::lock_guard const lock(session.mutex);
        auto const found = std::ranges::find(session.followers, gone.id(), &following::id);
        if (found == session.followers.end())
            return;
        keep = *found;
        gone.forget_sink();
        session.followers.erase(found);
        session.machine.note_activity(now);
        if (auto const id = session.machine.detach(gone.id())) {
            auto const waiting = std::ranges::find(session.followers, *id, &following::id);
            if (waiting != session.followers.end())
                next = *waiting;
        }
        write_presence(session, now);
        quiet = take_quiet(session);
    }
    open_followings_.fetch_sub(1, std::memory_order_relaxed);
    if (is_draining() && on_departure_)
        on_departure_();
    if (next)
        next->allow();
    if (quiet)
        quiet();
}

std::move_only_function<void()> node::take_quiet(live_session& session)
{
    if (!session.followers.empty() || !session.calls.empty())
        return nullptr;
    return std::exchange(session.on_quiet, nullptr);
}

// --- messages that belong to no call

void node::append_standalone(store::stream_key const& stream, store::bytes message)
{
    auto const* const loop = own_loop_.load();
    if (!loop) // stopped meanwhile
        return;
    store_.append(
        stream, 0, {{std::move(message), store::event_kind::ordinary}}, false, loop->now(),
        [this](result<store::stream_top> top) {
            if (top)
                metrics_.events_appended.Increment();
            else if (top.error() != errc::not_found) // it may have ended meanwhile
                log_.warning("a notification could not be kept: {}", top.error().message());
        });
}

void node::later(std::move_only_function<void()> work)
{
    if (auto* const loop = own_loop_.load())
        loop->post(std::move(work));
}

void node::notify(std::shared_ptr<live_session> const& session, std::string message)
{
    later([this, session, text = std::make_shared<std::string const>(std::move(message))] {
        append_standalone({session->key, session->current_record()->standalone}, text);
    });
}

void node::broadcast(std::string message, std::function<bool(store::session_record const&)> filter)
{
    later([this, filter = std::move(filter), text = std::make_shared<std::string const>(std::move(message))]() mutable {
        tell_all(live_sessions(), 0, std::move(text), std::move(filter));
    });
}

void node::tell_all(
    std::vector<std::shared_ptr<live_session>> sessions, std::size_t from, store::bytes message,
    std::function<bool(store::session_record const&)> filter)
{
    auto const end = std::min(sessions.size(), from + tell_bite);
    for (auto at = from; at < end; ++at) {
        auto const record = sessions[at]->current_record();
        if (record->initialized && filter(*record))
            append_standalone({sessions[at]->key, record->standalone}, message);
    }
    if (end < sessions.size())
        later([this, sessions = std::move(sessions), end, message = std::move(message),
               filter = std::move(filter)]() mutable {
            tell_all(std::move(sessions), end, std::move(message), std::move(filter));
        });
}

void node::notify_subscribers(std::string uri, std::string message)
{
    if (own_loop_.load())
        tell_subscribers(std::move(uri), std::nullopt, std::make_shared<std::string const>(std::move(message)));
}

void node::tell_subscribers(std::string uri, std::optional<store::session_key> after, store::bytes message)
{
    store_.subscribers(
        uri, std::move(after), tell_bite,
        [this, uri, message = std::move(message)](result<std::vector<store::subscriber>> found) mutable {
            if (!found)
                return log_.warning("subscribers could not be found: {}", found.error().message());
            if (found->empty())
                return;
            later([this, uri = std::move(uri), some = std::move(*found), message = std::move(message)]() mutable {
                for (auto const& each : some)
                    append_standalone({each.session, each.standalone}, message);
                if (some.size() == tell_bite)
                    tell_subscribers(std::move(uri), some.back().session, std::move(message));
            });
        });
}

void node::follow(
    session_use const& use, base::loop& loop, follow_request request,
    std::move_only_function<void(std::expected<std::shared_ptr<following>, follow_refusal>)> done)
{
    auto const& session = use.session();
    auto const record = use.record();
    auto const session_revision = protocol::parse_revision(record->version).value_or(protocol::newest_revision);
    std::optional<engine::position> cursor;
    if (request.last_event_id) {
        cursor = engine::parse_event_id(*request.last_event_id);
        if (!cursor)
            return done(std::unexpected(follow_refusal::bad_cursor));
    }
    bool const is_standalone = !cursor || cursor->stream == record->standalone;
    auto const stream = is_standalone ? record->standalone : cursor->stream;
    store::stream_key const key{session->key, stream};
    store_.read_after(
        key, ~std::uint64_t(0), {0, 0},
        [this, session, &loop, stream, key, cursor, is_standalone, session_revision, who = request.from,
         done = std::move(done)](result<store::page> page) mutable {
            if (!page)
                return done(std::unexpected(
                    page.error() == errc::not_found ? follow_refusal::bad_cursor : follow_refusal::unavailable));
            auto const& state = page->state;
            start_position from;
            if (cursor) {
                from.sequence = cursor->sequence;
                from.replay_end = state.top.sequence;
                bool const is_other_life = cursor->epoch != state.top.epoch;
                bool const is_ahead = !is_other_life && cursor->sequence > state.top.sequence;
                if (!is_standalone && (is_other_life || is_ahead))
                    return done(std::unexpected(follow_refusal::bad_cursor));
                if (is_other_life) {
                    from.sequence = 0;
                    from.restarted = true;
                } else if (is_ahead) {
                    from.sequence = state.top.sequence;
                }
                if (!is_standalone && state.finished && cursor->sequence >= state.top.sequence) {
                    store_.note_delivered(key, cursor->sequence); // or the client could not name it
                    return done(std::unexpected(follow_refusal::nothing_left));
                }
            }
            auto const epoch = state.top.epoch;
            auto const attach_as
                = [this, session, &loop, stream, epoch, from, who](
                      store::stream_kind kind,
                      protocol::revision revision) -> std::expected<std::shared_ptr<following>, follow_refusal> {
                auto const attached = attach(session, loop, stream, kind, from, revision, who);
                if (!attached)
                    return std::unexpected(attached.error());
                close_over_budget(*attached);
                attached->fresh->set_epoch(epoch);
                if (log_.enabled(base::log_level::debug))
                    log_.log_fields(
                        base::log_level::debug, "stream resumed",
                        {{"session", session->name}, {"stream", stream_log_name(stream)}});
                return attached->fresh;
            };
            if (is_standalone)
                return done(attach_as(store::stream_kind::standalone, session_revision));
            // A request stream speaks the revision it was opened with, whatever the session says now.
            store_.inspect(
                key, [attach_as, session_revision, done = std::move(done)](result<store::stream_meta> meta) mutable {
                    if (!meta)
                        return done(std::unexpected(follow_refusal::bad_cursor));
                    auto const revision = protocol::parse_revision(meta->tag).value_or(session_revision);
                    done(attach_as(store::stream_kind::request, revision));
                });
        });
}

}
