#include "runtime/node.hpp"

#include "engine/cursor.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

constexpr std::string_view cancel_mail = "cancel";
constexpr std::string_view end_mail = "session_ended";

// Sessions are reaped in bites, so that a great number of them does not hold a loop for long.
constexpr std::size_t reap_bite = 1000;

}

struct node::periodic {
    periodic(node& node, base::loop& loop)
        : loop(loop), reaper(loop.timers(), [this, &node] {
              node.reap(this->loop.now());
              reaper.after(node.settings_.reaper_interval);
          }),
          sweep(loop.timers(), [this, &node] {
              node.store_.sweep(this->loop.now());
              sweep.after(node.settings_.sweep_interval);
          }),
          lease(loop.timers(), [this, &node] {
              auto const now = this->loop.now();
              node.store_.renew(node.owner_, now + node.settings_.lease);
              node.recover_lapsed(now);
              lease.after(node.settings_.lease / 3);
          })
    {
        node.store_.renew(node.owner_, loop.now() + node.settings_.lease);
        reaper.after(node.settings_.reaper_interval);
        sweep.after(node.settings_.sweep_interval);
        lease.after(node.settings_.lease / 3);
    }

    base::loop& loop;
    base::timer reaper;
    base::timer sweep;
    base::timer lease;
};

session_use::~session_use()
{
    if (session_)
        node_->release(*session_, loop_->now());
}

node::node(
    runtime::settings settings, store::backend& store, base::random_source& random, observe::metrics& metrics,
    base::logger log)
    : settings_(std::move(settings)), store_(store), random_(random), metrics_(metrics), log_(std::move(log)),
      owner_(settings_.node_name + '/' + base::to_string(base::make_id128(random)))
{
    // Half the retention: a reader within the window cannot be overtaken by trimming.
    settings_.flow.window_events = std::max<std::uint64_t>(1, settings_.limits.events_per_stream / 2);
    settings_.flow.window_bytes = std::max<std::uint64_t>(1, settings_.limits.bytes_per_stream / 2);
    mail_ = store_.listen(owner_, [this](store::owner_message message) { deliver(std::move(message)); });
}

node::~node()
{
    // Sessions and what runs in them hold each other while they live.
    mail_.reset();
    for (auto& stripe : table_)
        for (auto const& [key, session] : stripe.sessions) {
            auto const followers = std::exchange(session->followers, {});
            auto const calls = std::exchange(session->calls, {});
        }
}

void node::start(base::loop& loop)
{
    periodic_ = std::make_unique<periodic>(*this, loop);
}

void node::stop()
{
    periodic_.reset();
}

std::chrono::milliseconds node::retry_delay()
{
    auto const jitter = [&] {
        std::lock_guard const lock(random_mutex_);
        return random_.below(static_cast<std::uint64_t>(settings_.retry.count()) / 4 + 1);
    }();
    return settings_.retry + std::chrono::milliseconds(jitter);
}

std::uint64_t node::next_nonce()
{
    return nonce_.fetch_add(1, std::memory_order_relaxed);
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
    fresh->loaded_at = now;
    fresh->opened_at = now;
    fresh->written_activity = now;
    fresh->machine.note_activity(now);
    auto& stripe = stripe_of(fresh->key);
    std::lock_guard const lock(stripe.mutex);
    return stripe.sessions.try_emplace(fresh->key, fresh).first->second;
}

void node::remove_live(store::session_key const& key)
{
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
    if (session.machine.is_ended())
        return;
    bool const is_held = session.machine.connection_count() > 0 || session.machine.call_count() > 0;
    if (is_held == session.written_held && now < session.written_activity + activity_write_interval)
        return;
    session.written_held = is_held;
    session.written_activity = now;
    store_.touch(session.key, now, is_held ? store::presence::held : store::presence::idle);
}

// --- sessions

void node::use(
    std::string_view principal, std::string_view id, base::loop& loop, store::completion<session_use> done)
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
        key, [this, live, &loop, done = std::move(done)](
                 result<std::shared_ptr<store::session_record const>> record) mutable {
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
    auto const now = loop.now();
    auto const shared = std::make_shared<store::session_record const>(record);
    store_.create(
        std::move(record), now, [this, shared, now, &loop, done = std::move(done)](result<void> created) mutable {
            if (!created)
                return done(std::unexpected(created.error()));
            metrics_.sessions_opened.Increment();
            log_.info("session {} opened, version {}", base::log_name(shared->key.id), shared->version);
            auto const live = insert_live(shared, now);
            if (settings_.session_max_lifetime > base::duration::zero()) {
                std::lock_guard const lock(by_age_mutex_);
                by_age_.emplace_back(now, live);
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
        std::move(record), [this, session, edit = std::move(edit), done = std::move(done)](
                               result<std::shared_ptr<store::session_record const>> stored) mutable {
            if (stored) {
                std::lock_guard const lock(session->mutex);
                if (session->record->revision < (*stored)->revision)
                    session->record = *stored;
            } else if (stored.error() == errc::conflict) {
                // Someone else was first: edit what is there now.
                store_.load(
                    session->key, [this, session, edit = std::move(edit), done = std::move(done)](
                                      result<std::shared_ptr<store::session_record const>> fresh) mutable {
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
                store_.send(each.owner, {each.stream, std::string(end_mail), {}}, [](result<void>) {});
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
        each->close(engine::close_reason::session_ended, std::nullopt);
    remove_live(session->key);
    log_.info("session {} ended", base::log_name(session->key.id));
    store_.end(session->key, std::move(done));
}

void node::end_overdue(base::time_point now)
{
    for (;;) {
        std::shared_ptr<live_session> overdue;
        {
            std::lock_guard const lock(by_age_mutex_);
            if (by_age_.empty() || by_age_.front().first + settings_.session_max_lifetime > now)
                return;
            overdue = by_age_.front().second.lock();
            by_age_.pop_front();
        }
        if (overdue && periodic_)
            end(overdue, periodic_->loop, [](result<void>) {});
    }
}

void node::reap(base::time_point now)
{
    end_overdue(now);
    for (;;) {
        std::size_t found = 0;
        std::size_t ended = 0;
        store_.expired(now, reap_bite, [&](result<std::vector<store::session_key>> keys) {
            if (!keys)
                return;
            found = keys->size();
            for (auto const& key : *keys) {
                // The store's clock of activity is coarse; the decision is made here, under the session's lock, so that
                // nothing can attach to a session that is about to go.
                if (auto const live = find_live(key)) {
                    std::lock_guard const lock(live->mutex);
                    if (!live->machine.end_if_idle(now, settings_.limits.session_idle)) {
                        if (!live->machine.is_ended()) {
                            live->written_activity = live->machine.last_activity();
                            store_.touch(
                                key, live->machine.is_held() ? now : live->machine.last_activity(),
                                live->written_held ? store::presence::held : store::presence::idle);
                        }
                        continue;
                    }
                }
                remove_live(key);
                store_.end(key, [](result<void>) {});
                metrics_.sessions_expired.Increment();
                log_.info("session {} expired", base::log_name(key.id));
                ++ended;
            }
        });
        if (found < reap_bite || ended == 0)
            return;
    }
}

// --- attaching and leaving

priming_style node::style_of(protocol::revision revision) const noexcept
{
    if (protocol::takes_empty_priming(revision))
        return priming_style::empty;
    return settings_.priming_legacy == legacy_priming::typed ? priming_style::typed : priming_style::none;
}

std::expected<std::shared_ptr<following>, follow_refusal> node::attach(
    std::shared_ptr<live_session> const& session, base::loop& loop, store::stream_id stream, store::stream_kind kind,
    start_position from, protocol::revision revision, bool has_origin)
{
    auto const now = loop.now();
    auto const style = style_of(revision);
    engine::attach_request request;
    request.connection = next_connection_.fetch_add(1, std::memory_order_relaxed);
    request.stream = stream;
    request.kind = kind;
    request.can_return = style != priming_style::none || from.sequence.value_or(0) > 0;
    request.budget = has_origin ? settings_.open_with_origin : settings_.open_without_origin;
    request.policy = settings_.standalone;

    std::shared_ptr<following> fresh;
    std::shared_ptr<following> displaced;
    std::shared_ptr<following> closed;
    {
        std::lock_guard const lock(session->mutex);
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
            closed = find(*decision.closed);
        fresh = std::make_shared<following>(
            *this, session, loop, request.connection, store::stream_key{session->key, stream}, from, style,
            decision.waits);
        session->followers.push_back(fresh);
        write_presence(*session, now);
    }
    open_followings_.fetch_add(1, std::memory_order_relaxed);
    if (displaced) {
        metrics_.takeovers.Increment();
        displaced->close(engine::close_reason::taken_over, std::nullopt);
    }
    if (closed)
        closed->close(engine::close_reason::over_budget, retry_delay());
    return fresh;
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

void node::call_done(live_session& session, call& gone, base::time_point now)
{
    std::shared_ptr<call> keep;
    std::move_only_function<void()> quiet;
    {
        std::lock_guard const lock(session.mutex);
        auto const found
            = std::ranges::find_if(session.calls, [&](auto const& each) { return each.get() == &gone; });
        if (found == session.calls.end())
            return;
        keep = *found;
        session.calls.erase(found);
        session.machine.call_ended();
        session.machine.note_activity(now);
        write_presence(session, now);
        quiet = take_quiet(session);
    }
    running_calls_.fetch_sub(1, std::memory_order_relaxed);
    if (is_draining() && on_departure_)
        on_departure_();
    if (quiet)
        quiet();
}

std::move_only_function<void()> node::take_quiet(live_session& session)
{
    if (!session.followers.empty() || !session.calls.empty())
        return nullptr;
    return std::exchange(session.on_quiet, nullptr);
}

// --- calls

void node::begin_call(
    session_use const& use, base::loop& loop, call_request request, store::completion<begun_call> done)
{
    if (is_draining())
        return done(failure(errc::unavailable));
    auto const& session = use.session();
    bool const is_duplicate = settings_.duplicate_ids == duplicate_policy::reject && [&] {
        std::lock_guard const lock(session->mutex);
        return std::ranges::find_if(session->calls, [&](auto const& each) { return each->id() == request.id; }) != session->calls.end();
    }();
    if (is_duplicate)
        return done(failure(errc::conflict));
    auto const stream = [&] {
        std::lock_guard const lock(random_mutex_);
        return random_.next();
    }();
    // The connection first: a caller over its budget is told before anything exists.
    auto attached = attach(
        session, loop, stream, store::stream_kind::request, {0, false}, request.revision, request.has_origin);
    if (!attached)
        return done(failure(
            attached.error() == follow_refusal::session_gone ? errc::not_found : errc::too_many_streams));
    store::stream_meta meta{
        store::stream_kind::request, std::string(protocol::to_string(request.revision)), request.id};
    store::stream_key const key{session->key, stream};
    store_.open(
        key, std::move(meta), owner_, loop.now(),
        [this, session, &loop, key, reader = *attached, request = std::move(request), done = std::move(done)](
            result<store::opened_stream> opened) mutable {
            if (!opened) {
                reader->abandon();
                return done(std::unexpected(opened.error()));
            }
            reader->set_epoch(opened->epoch);
            auto running = std::make_shared<call>(
                *this, session, loop, key.stream, opened->fence, std::move(request.id), request.traits, nullptr);
            // The reader is known before the handler runs, so that flow control holds from its first event.
            reader->announce();
            if (!add_call(*session, running, loop.now())) { // ended meanwhile; its keys are about to go
                reader->abandon();
                return done(failure(errc::not_found));
            }
            running->begin();
            done(begun_call{std::move(running), std::move(reader)});
        });
}

bool node::add_call(live_session& session, std::shared_ptr<call> const& fresh, base::time_point now)
{
    {
        std::lock_guard const lock(session.mutex);
        if (session.machine.is_ended())
            return false;
        session.calls.push_back(fresh);
        session.machine.call_began();
        write_presence(session, now);
    }
    running_calls_.fetch_add(1, std::memory_order_relaxed);
    metrics_.calls_started.Increment();
    return true;
}

std::shared_ptr<call> node::begin_held_call(
    session_use const& use, base::loop& loop, call_request request, call::held_answer answer)
{
    auto const& session = use.session();
    auto running = std::make_shared<call>(
        *this, session, loop, 0, 0, std::move(request.id), request.traits, std::move(answer));
    if (!add_call(*session, running, loop.now()))
        return nullptr;
    running->begin();
    return running;
}

void node::cancel(std::shared_ptr<live_session> const& session, std::string_view id)
{
    store_.find(session->key, id, [this](result<store::call_ref> found) {
        if (!found)
            return;
        store_.send(
            found->owner, {found->stream, std::string(cancel_mail), {}}, [this](result<void> sent) {
                if (!sent)
                    log_.warning("a cancel found no owner: {}", sent.error().message());
            });
    });
}

void node::deliver(store::owner_message message)
{
    auto const live = find_live(message.stream.session);
    if (!live)
        return;
    std::shared_ptr<call> target;
    {
        std::lock_guard const lock(live->mutex);
        for (auto const& each : live->calls)
            if (each->has_stream() && each->stream().stream == message.stream.stream)
                target = each;
    }
    if (!target)
        return;
    auto const reason
        = message.kind == cancel_mail ? protocol::end_reason::cancelled : protocol::end_reason::session_ended;
    target->loop().post([target, reason] { target->end(reason); });
}

void node::recover_lapsed(base::time_point now)
{
    store_.lapsed(now, reap_bite, [this, now](result<std::vector<store::call_ref>> calls) {
        if (!calls)
            return;
        for (auto const& each : *calls) {
            if (each.owner == owner_) // our own lease ran late; the calls are alive
                continue;
            store_.claim(each.stream, owner_, [this, each, now](result<store::fence> fence) {
                if (!fence)
                    return;
                auto answer = std::make_shared<std::string const>(
                    protocol::ended_answer({each.label, true, false}, protocol::end_reason::owner_lost));
                store_.append(
                    each.stream, *fence, {{std::move(answer), store::event_kind::response}}, true, now,
                    [this](result<store::stream_top> top) {
                        if (top)
                            metrics_.call_ended(protocol::to_string(protocol::end_reason::owner_lost));
                    });
            });
        }
    });
}

void node::interrupt_calls()
{
    for (auto& stripe : table_) {
        std::vector<std::shared_ptr<live_session>> sessions;
        {
            std::lock_guard const lock(stripe.mutex);
            for (auto const& [key, session] : stripe.sessions)
                sessions.push_back(session);
        }
        for (auto const& session : sessions) {
            std::lock_guard const lock(session->mutex);
            for (auto const& each : session->calls)
                each->loop().post([each] { each->end(protocol::end_reason::interrupted); });
        }
    }
}

void node::close_followers(engine::close_reason reason)
{
    for (auto& stripe : table_) {
        std::vector<std::shared_ptr<live_session>> sessions;
        {
            std::lock_guard const lock(stripe.mutex);
            for (auto const& [key, session] : stripe.sessions)
                sessions.push_back(session);
        }
        for (auto const& session : sessions) {
            std::lock_guard const lock(session->mutex);
            for (auto const& each : session->followers)
                each->close(reason, std::chrono::seconds(5));
        }
    }
}

// --- following

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
        [this, session, &loop, stream, key, cursor, is_standalone, session_revision,
         has_origin = request.has_origin, done = std::move(done)](result<store::page> page) mutable {
            if (!page)
                return done(std::unexpected(
                    page.error() == errc::not_found ? follow_refusal::bad_cursor : follow_refusal::unavailable));
            auto const& state = page->state;
            start_position from;
            if (cursor) {
                from.sequence = cursor->sequence;
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
                if (!is_standalone && state.finished && cursor->sequence >= state.top.sequence)
                    return done(std::unexpected(follow_refusal::nothing_left));
            }
            auto const epoch = state.top.epoch;
            auto const attach_as = [this, session, &loop, stream, epoch, from, has_origin](
                                       store::stream_kind kind, protocol::revision revision) {
                auto attached = attach(session, loop, stream, kind, from, revision, has_origin);
                if (attached)
                    (*attached)->set_epoch(epoch);
                return attached;
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

std::string node::metrics_text(std::size_t http_connections)
{
    auto const used = store_.used();
    metrics_.sessions.Set(static_cast<double>(used.sessions));
    metrics_.streams.Set(static_cast<double>(used.streams));
    metrics_.store_bytes.Set(static_cast<double>(used.bytes));
    metrics_.connections.Set(static_cast<double>(http_connections));
    metrics_.calls_running.Set(static_cast<double>(running_calls()));
    return metrics_.text();
}

}
