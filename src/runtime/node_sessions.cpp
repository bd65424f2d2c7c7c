// The node's sessions: finding, opening, changing, ending and reaping them.
#include "runtime/node.hpp"
#include "runtime/periodic.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

// Sessions are reaped in bites, so that a great number of them does not hold a loop for long.
constexpr std::size_t reap_bite_sessions = 1000;

// Above all levels: a client that could not choose one gets no log messages.
constexpr int no_log_level = 8;

}

session_use::~session_use()
{
    if (session_)
        node_->release(*session_, loop_->now());
}

// --- the table of live sessions

node::table_stripe& node::stripe_of(store::session_key const& key) noexcept
{
    return table_[(key.id.high >> 40) % stripe_count];
}

std::shared_ptr<live_session> node::find_live(store::session_key const& key)
{
    auto& stripe = stripe_of(key);
    std::lock_guard const lock(stripe.mutex);
    auto const found = stripe.sessions.find(key);
    return found == stripe.sessions.end() ? nullptr : found->second;
}

std::shared_ptr<live_session>
node::insert_live(std::shared_ptr<store::session_record const> record, base::time_point now)
{
    auto fresh = std::make_shared<live_session>(record->key);
    fresh->record = std::move(record);
    fresh->known_since = now;
    fresh->loaded_at = now;
    fresh->written_activity = now;
    fresh->machine.note_activity(now);
    auto& stripe = stripe_of(fresh->key);
    std::lock_guard const lock(stripe.mutex);
    return stripe.sessions.try_emplace(fresh->key, fresh).first->second;
}

void node::remove_live(store::session_key const& key)
{
    if (settings_.session_max_lifetime > base::duration::zero()) {
        std::lock_guard const lock(by_age_mutex_);
        if (auto const place = age_places_.find(key); place != age_places_.end()) {
            by_age_.erase(place->second);
            age_places_.erase(place);
        }
    }
    auto& stripe = stripe_of(key);
    std::lock_guard const lock(stripe.mutex);
    stripe.sessions.erase(key);
}

result<session_use> node::take(std::shared_ptr<live_session> const& session, base::loop& loop)
{
    std::lock_guard const lock(session->mutex);
    if (session->machine.is_ended())
        return failure(errc::not_found);
    session->machine.inbound_began(loop.now());
    session_use use(*this, loop, session);
    use.record_ = session->record;
    return use;
}

void node::release(live_session& session, base::time_point now)
{
    std::lock_guard const lock(session.mutex);
    session.machine.inbound_ended(now);
    write_presence(session, now);
}

void node::write_presence(live_session& session, base::time_point now)
{
    if (session.machine.is_ended() || !session.is_kept)
        return;
    bool const is_held = session.machine.connection_count() > 0 || session.machine.call_count() > 0;
    if (is_held == session.written_held && now < session.written_activity + activity_write_interval)
        return;
    session.written_held = is_held;
    session.written_activity = now;
    store_.touch(session.key, now, is_held ? store::presence::held : store::presence::idle);
}

std::shared_ptr<live_session> node::passing_session(protocol::revision revision)
{
    auto const unlist = [this](live_session* gone) {
        {
            std::lock_guard const lock(passing_mutex_);
            passing_.erase(gone);
        }
        delete gone;
    };
    std::shared_ptr<live_session> fresh(new live_session({}), unlist);
    auto record = std::make_shared<store::session_record>();
    record->version = protocol::to_string(revision);
    record->log_level = no_log_level;
    fresh->record = std::move(record);
    fresh->is_kept = false;
    std::lock_guard const lock(passing_mutex_);
    passing_.emplace(fresh.get(), fresh);
    return fresh;
}

// --- sessions

void node::use(std::string_view principal, std::string_view id, base::loop& loop, store::completion<session_use> done)
{
    auto const parsed = base::parse_id128(id);
    if (!parsed)
        return done(failure(errc::not_found));
    store::session_key key{std::string(principal), *parsed};
    auto const now = loop.now();
    auto live = find_live(key);
    bool const is_fresh = live && [&] {
        std::lock_guard const lock(live->mutex);
        return live->loaded_at + record_cache_age > now;
    }();
    if (is_fresh)
        return done(take(live, loop));
    store_.load(
        key,
        [this, live, &loop,
         done = std::move(done)](result<std::shared_ptr<store::session_record const>> record) mutable {
            auto const at = loop.now();
            if (!record)
                return done(std::unexpected(record.error()));
            if (live) {
                std::lock_guard const lock(live->mutex);
                if (live->record->revision < (*record)->revision)
                    live->record = *record;
                live->loaded_at = at;
            } else {
                live = insert_live(*record, at);
            }
            done(take(live, loop));
        });
}

void node::open(client_hello hello, base::loop& loop, store::completion<session_use> done)
{
    if (is_draining())
        return done(failure(errc::unavailable));
    store::session_record record;
    record.key.principal = std::move(hello.principal);
    {
        std::lock_guard const lock(random_mutex_);
        record.key.id = base::make_id128(random_);
        record.standalone = random_.next();
    }
    record.version = protocol::to_string(hello.revision);
    record.client_info = std::move(hello.info);
    record.client_capabilities = std::move(hello.capabilities);
    record.offers = hello.offers;
    auto const now = loop.now();
    store_.create(
        std::move(record), now,
        [this, now, &loop,
         done = std::move(done)](result<std::shared_ptr<store::session_record const>> created) mutable {
            if (!created)
                return done(std::unexpected(created.error()));
            metrics_.sessions_opened.Increment();
            auto const live = insert_live(*created, now);
            log_.log_fields(
                base::log_level::info, "session opened", {{"session", live->name}, {"version", (*created)->version}});
            if (settings_.session_max_lifetime > base::duration::zero()) {
                std::lock_guard const lock(by_age_mutex_);
                age_places_[live->key] = by_age_.insert(by_age_.end(), {now, live->key});
            }
            done(take(live, loop));
        });
}

void node::reopen(session_use const& use, client_hello hello, store::completion<void> done)
{
    change(
        use.session(),
        [hello = std::move(hello)](store::session_record& record) {
            record.version = protocol::to_string(hello.revision);
            record.client_info = hello.info;
            record.client_capabilities = hello.capabilities;
            record.offers = hello.offers;
        },
        std::move(done));
}

void node::change(
    std::shared_ptr<live_session> session, std::function<void(store::session_record&)> edit,
    store::completion<void> done)
{
    auto record = *session->current_record();
    edit(record);
    store_.update(
        std::move(record),
        [this, session, edit = std::move(edit),
         done = std::move(done)](result<std::shared_ptr<store::session_record const>> stored) mutable {
            if (stored) {
                std::lock_guard const lock(session->mutex);
                if (session->record->revision < (*stored)->revision)
                    session->record = *stored;
            } else if (stored.error() == errc::conflict) {
                // Someone else was first: edit what is there now.
                store_.load(
                    session->key,
                    [this, session, edit = std::move(edit),
                     done = std::move(done)](result<std::shared_ptr<store::session_record const>> fresh) mutable {
                        if (!fresh)
                            return done(std::unexpected(fresh.error()));
                        {
                            std::lock_guard const lock(session->mutex);
                            session->record = *fresh;
                        }
                        change(session, std::move(edit), std::move(done));
                    });
                return;
            } else {
                return done(std::unexpected(stored.error()));
            }
            done({});
        });
}

void node::subscribe(std::shared_ptr<live_session> const& session, std::string uri, store::completion<void> done)
{
    store_.subscribe(session->key, std::move(uri), settings_.max_subscriptions, std::move(done));
}

void node::unsubscribe(std::shared_ptr<live_session> const& session, std::string_view uri, store::completion<void> done)
{
    store_.unsubscribe(session->key, uri, std::move(done));
}

void node::end(std::shared_ptr<live_session> session, base::loop& loop, store::completion<void> done)
{
    // Whoever comes first, the last connection leaving or the time limit, goes on with the end.
    struct waiting {
        waiting(base::loop& loop, std::move_only_function<void()> proceed)
            : proceed(std::move(proceed)), limit(loop.timers(), [this] { go(); })
        {
        }
        void go()
        {
            limit.cancel();
            if (auto now = std::exchange(proceed, nullptr))
                now();
        }
        std::move_only_function<void()> proceed;
        base::timer limit;
    };
    std::vector<std::shared_ptr<call>> calls;
    std::vector<std::shared_ptr<following>> listeners;
    std::shared_ptr<waiting> wait;
    {
        std::lock_guard const lock(session->mutex);
        if (session->machine.end()) {
            wait = std::make_shared<waiting>(
                loop, [this, session, done = std::move(done)]() mutable { finish_end(session, std::move(done)); });
            calls = session->calls;
            for (auto const& each : session->followers)
                if (each->stream() == session->record->standalone)
                    listeners.push_back(each);
            if (!session->followers.empty() || !session->calls.empty())
                session->on_quiet = [wait, &loop] { loop.post([wait] { wait->go(); }); };
        }
    }
    if (!wait)
        return done(failure(errc::not_found));
    for (auto const& each : calls)
        each->loop().post([each] { each->end(protocol::end_reason::session_ended); });
    for (auto const& each : listeners)
        each->close(engine::close_reason::session_ended, std::nullopt);
    store_.running(session->key, [this](result<std::vector<store::call_ref>> running) {
        if (!running)
            return;
        for (auto const& each : *running)
            if (each.owner != owner_)
                store_.send(
                    each.owner,
                    {each.stream, std::string(protocol::to_string(protocol::end_reason::session_ended)), {}},
                    [](result<void>) {});
    });
    if (wait.use_count() == 1) // nothing to wait for
        wait->go();
    else
        wait->limit.after(end_flush_limit);
}

void node::finish_end(std::shared_ptr<live_session> const& session, store::completion<void> done)
{
    std::vector<std::shared_ptr<following>> left;
    std::move_only_function<void()> unused;
    {
        std::lock_guard const lock(session->mutex);
        unused = std::exchange(session->on_quiet, nullptr);
        left = session->followers;
    }
    for (auto const& each : left)
        each->close(engine::close_reason::cut_off, std::nullopt);
    log_.log_fields(base::log_level::info, "session ended", {{"session", session->name}});
    // Known here until its keys are gone, so that nobody can load it again in between.
    store_.end(session->key, [this, key = session->key, done = std::move(done)](result<void> ended) mutable {
        remove_live(key);
        done(std::move(ended));
    });
}

void node::end_overdue(base::time_point now)
{
    for (;;) {
        store::session_key overdue;
        {
            std::lock_guard const lock(by_age_mutex_);
            if (by_age_.empty() || by_age_.front().first + settings_.session_max_lifetime > now)
                return;
            overdue = by_age_.front().second;
            age_places_.erase(overdue);
            by_age_.pop_front();
        }
        if (auto const live = find_live(overdue); live && periodic_)
            end(live, periodic_->loop, [](result<void>) {});
    }
}

void node::reap(base::time_point now)
{
    end_overdue(now);
    reap_bite(now);
}

void node::reap_bite(base::time_point now)
{
    store_.expired(now, reap_bite_sessions, [this, now](result<std::vector<store::session_key>> keys) {
        if (!keys)
            return;
        std::size_t ended = 0;
        for (auto const& key : *keys)
            ended += reap_one(key, now) ? 1 : 0;
        // The next one later: others have their turn in between.
        if (keys->size() == reap_bite_sessions && ended > 0)
            later([this, now] { reap_bite(now); });
    });
}

bool node::reap_one(store::session_key const& key, base::time_point now)
{
    // The store's clock of activity is coarse; the decision is made here, under the session's lock, so that nothing can
    // attach to a session that is about to go.
    if (auto const live = find_live(key)) {
        std::lock_guard const lock(live->mutex);
        if (!live->machine.end_if_idle(now, settings_.limits.session_idle)) {
            if (!live->machine.is_ended()) {
                live->written_activity = live->machine.last_activity();
                store_.touch(
                    key, live->machine.is_held() ? now : live->machine.last_activity(),
                    live->written_held ? store::presence::held : store::presence::idle);
            }
            return false;
        }
    }
    store_.end(key, [this, key](result<void>) { remove_live(key); });
    metrics_.sessions_expired.Increment();
    log_.log_fields(base::log_level::info, "session expired", {{"session", base::log_name(key.id)}});
    return true;
}

}
