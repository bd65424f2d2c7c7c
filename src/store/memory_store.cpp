#include "store/memory_store.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <deque>
#include <list>

namespace belay::store {

namespace {

// What an event costs beside its payload: the stored_event, the shared payload's header, the allocator.
constexpr std::size_t event_overhead = 112;

// Set aside for each unfinished call, so that a short final answer always has room.
constexpr std::size_t answer_reserve = 1024;

std::size_t charge_of(bytes const& payload) noexcept
{
    return payload->size() + event_overhead;
}

}

struct memory_store::watcher {
    std::function<void()> wake;
    interest kind = interest::growth;
    std::atomic<bool> is_active{true};
};

struct memory_store::stream {
    stream_meta meta;
    std::string owner;
    store::fence fence = 0;
    std::uint64_t order = 0; // creation order within the session
    stream_top top;
    bool finished = false;
    std::size_t charge = 0; // of all kept events
    std::size_t reserved = 0; // for the final answer
    std::deque<stored_event> events; // consecutive sequences
    std::vector<stored_event> pinned; // undelivered responses that retention has passed by; older than all events
    std::deque<base::time_point> appended_at; // of `events`, standalone stream only
    reader_mark reader;
    std::uint64_t lost_to = 0; // the highest sequence counted as trimmed undelivered
    std::vector<std::shared_ptr<watcher>> watchers;
    std::multimap<base::time_point, stream_key>::iterator aging;
    bool is_aging = false;

    [[nodiscard]] std::uint64_t first_kept() const noexcept
    {
        if (!pinned.empty())
            return pinned.front().sequence;
        return events.empty() ? top.sequence + 1 : events.front().sequence;
    }
    [[nodiscard]] stream_state state() const noexcept { return {top, first_kept(), finished, reader}; }
    [[nodiscard]] bool is_pinned(stored_event const& event) const noexcept
    {
        return event.kind == event_kind::response && event.sequence > reader.delivered;
    }
    [[nodiscard]] bool is_droppable() const noexcept
    {
        return meta.kind == stream_kind::request && finished && !reader.attached && reader.delivered >= top.sequence;
    }
    void collect(interest kind, wakes& into) const
    {
        for (auto const& each : watchers)
            if (each->kind == kind)
                into.push_back(each);
    }
};

struct memory_store::session {
    std::shared_ptr<session_record const> record;
    boost::unordered_flat_map<stream_id, std::unique_ptr<stream>> streams;
    std::size_t charge = 0;
    std::uint64_t next_order = 0;
    base::time_point last_activity{};
    bool is_idle = false;
    std::list<session_key>::iterator idle_place;
};

struct memory_store::stripe {
    mutable std::mutex mutex;
    boost::unordered_flat_map<session_key, std::unique_ptr<session>, session_key_hash> sessions;
    std::list<session_key> idle; // longest idle first
    std::multimap<base::time_point, stream_key> aging;

    session* find(session_key const& key)
    {
        auto const found = sessions.find(key);
        return found == sessions.end() ? nullptr : found->second.get();
    }
};

memory_store::memory_store(limits limits, std::uint64_t epoch, event_counter* counter)
    : limits_(limits), epoch_(epoch), counter_(counter), stripes_(std::make_unique<std::array<stripe, stripe_count>>())
{
}

memory_store::~memory_store() = default;

memory_store::stripe& memory_store::stripe_of(session_key const& key) const noexcept
{
    // Other bits than the hash table uses first.
    return (*stripes_)[(key.id.high >> 32) % stripe_count];
}

// --- sessions

void memory_store::create(session_record record, base::time_point now, completion<void> done)
{
    if (session_count_.fetch_add(1, std::memory_order_relaxed) >= limits_.sessions) {
        session_count_.fetch_sub(1, std::memory_order_relaxed);
        return done(failure(errc::too_many_sessions));
    }
    auto const key = record.key;
    {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        auto fresh = std::make_unique<session>();
        fresh->record = std::make_shared<session_record const>(std::move(record));
        fresh->last_activity = now;
        fresh->is_idle = true;
        auto const [place, is_new] = in.sessions.try_emplace(key);
        if (!is_new) {
            session_count_.fetch_sub(1, std::memory_order_relaxed);
            return done(failure(errc::conflict));
        }
        fresh->idle_place = in.idle.insert(in.idle.end(), key);
        place->second = std::move(fresh);
    }
    done({});
}

void memory_store::load(session_key const& key, completion<std::shared_ptr<session_record const>> done)
{
    std::shared_ptr<session_record const> record;
    {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        if (auto const* found = in.find(key))
            record = found->record;
    }
    if (!record)
        return done(failure(errc::not_found));
    done(std::move(record));
}

void memory_store::update(session_record record, completion<std::shared_ptr<session_record const>> done)
{
    result<std::shared_ptr<session_record const>> outcome = failure(errc::not_found);
    {
        auto& in = stripe_of(record.key);
        std::lock_guard const lock(in.mutex);
        if (auto* found = in.find(record.key)) {
            if (found->record->revision != record.revision) {
                outcome = failure(errc::conflict);
            } else {
                ++record.revision;
                found->record = std::make_shared<session_record const>(std::move(record));
                outcome = found->record;
            }
        }
    }
    done(std::move(outcome));
}

void memory_store::touch(session_key const& key, base::time_point at, presence presence)
{
    auto& in = stripe_of(key);
    std::lock_guard const lock(in.mutex);
    auto* found = in.find(key);
    if (!found)
        return;
    found->last_activity = std::max(found->last_activity, at);
    if (found->is_idle)
        in.idle.erase(found->idle_place);
    found->is_idle = presence == presence::idle;
    if (!found->is_idle)
        return;
    // Nearly always the newest; an older time (a late hint) walks to its place.
    auto place = in.idle.end();
    while (place != in.idle.begin()) {
        auto const before = std::prev(place);
        if (in.find(*before)->last_activity <= found->last_activity)
            break;
        place = before;
    }
    found->idle_place = in.idle.insert(place, key);
}

void memory_store::expired(base::time_point now, std::size_t limit, completion<std::vector<session_key>> done)
{
    std::vector<session_key> keys;
    for (auto& in : *stripes_) {
        std::lock_guard const lock(in.mutex);
        for (auto const& key : in.idle) {
            if (keys.size() >= limit || in.find(key)->last_activity + limits_.session_idle > now)
                break;
            keys.push_back(key);
        }
    }
    done(std::move(keys));
}

void memory_store::end(session_key const& key, completion<void> done)
{
    wakes to_wake;
    bool existed = false;
    {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        if (auto* found = in.find(key)) {
            existed = true;
            for (auto const& [id, each] : found->streams) {
                each->collect(interest::growth, to_wake);
                each->collect(interest::reader, to_wake);
            }
            while (!found->streams.empty())
                drop_stream(in, *found, found->streams.begin()->first, true);
            if (found->is_idle)
                in.idle.erase(found->idle_place);
            in.sessions.erase(key);
            session_count_.fetch_sub(1, std::memory_order_relaxed);
        }
    }
    for (auto const& each : to_wake)
        if (each->is_active.load(std::memory_order_acquire))
            each->wake();
    if (!existed)
        return done(failure(errc::not_found));
    done({});
}

// --- events

result<memory_store::stream*> memory_store::find_stream(stripe& in, stream_key const& key)
{
    auto* const session = in.find(key.session);
    if (!session)
        return failure(errc::not_found);
    if (auto const found = session->streams.find(key.stream); found != session->streams.end())
        return found->second.get();
    if (session->record->standalone != key.stream)
        return failure(errc::not_found);
    auto fresh = std::make_unique<stream>();
    fresh->meta.kind = stream_kind::standalone;
    fresh->top.epoch = epoch_;
    fresh->order = session->next_order++;
    stream_count_.fetch_add(1, std::memory_order_relaxed);
    return (session->streams[key.stream] = std::move(fresh)).get();
}

void memory_store::forget(session& of, stream& from, stored_event const& event)
{
    auto const charge = charge_of(event.payload);
    from.charge -= charge;
    of.charge -= charge;
    total_bytes_.fetch_sub(charge, std::memory_order_relaxed);
    bool const is_lost = event.sequence > from.reader.sent;
    if (is_lost)
        from.lost_to = event.sequence;
    if (counter_)
        counter_->trimmed(1, is_lost ? 1 : 0);
}

void memory_store::trim_front(session& of, stream& from)
{
    auto& event = from.events.front();
    if (from.is_pinned(event)) {
        from.pinned.push_back(std::move(event));
    } else {
        forget(of, from, event);
    }
    from.events.pop_front();
    if (!from.appended_at.empty())
        from.appended_at.pop_front();
}

void memory_store::drop_stream(stripe& in, session& of, stream_id id, bool is_end)
{
    auto const found = of.streams.find(id);
    auto& gone = *found->second;
    std::size_t undelivered = 0;
    auto const count = gone.pinned.size() + gone.events.size();
    for (auto const& event : gone.pinned)
        undelivered += event.sequence > gone.reader.sent;
    for (auto const& event : gone.events)
        undelivered += event.sequence > gone.reader.sent;
    if (counter_ && count > 0) {
        if (is_end)
            counter_->ended(count, undelivered);
        else
            counter_->trimmed(count, undelivered);
    }
    of.charge -= gone.charge + gone.reserved;
    total_bytes_.fetch_sub(gone.charge + gone.reserved, std::memory_order_relaxed);
    if (gone.is_aging)
        in.aging.erase(gone.aging);
    of.streams.erase(found);
    stream_count_.fetch_sub(1, std::memory_order_relaxed);
}

bool memory_store::drop_one_finished(stripe& in, session& of)
{
    stream_id oldest = 0;
    std::uint64_t order = ~std::uint64_t(0);
    for (auto const& [id, each] : of.streams)
        if (each->is_droppable() && each->order < order) {
            oldest = id;
            order = each->order;
        }
    if (order == ~std::uint64_t(0))
        return false;
    drop_stream(in, of, oldest, false);
    return true;
}

result<void> memory_store::make_room(stripe& in, session& of, stream* appending, std::size_t need, bool is_final)
{
    auto const reserve = [&](std::size_t limit) { return is_final ? limits::reserve(limit) : 0; };
    auto const session_limit = limits_.bytes_per_session + reserve(limits_.bytes_per_session);
    auto const total_limit = limits_.bytes_total + reserve(limits_.bytes_total);
    auto const fits_after_dropping = [&](std::size_t bytes) {
        return of.charge + need <= session_limit + bytes
            && total_bytes_.load(std::memory_order_relaxed) + need <= total_limit + bytes;
    };
    if (fits_after_dropping(0))
        return {};
    // Refused means that nothing has happened: first see whether there is enough to drop.
    std::size_t droppable = 0;
    for (auto const& [id, each] : of.streams)
        if (each->is_droppable())
            droppable += each->charge;
    if (appending)
        for (auto const& event : appending->events) {
            if (fits_after_dropping(droppable) || appending->is_pinned(event))
                break;
            droppable += charge_of(event.payload);
        }
    if (!fits_after_dropping(droppable))
        return failure(errc::no_space);
    while (!fits_after_dropping(0)) {
        if (drop_one_finished(in, of))
            continue;
        if (!appending || appending->events.empty() || appending->is_pinned(appending->events.front()))
            return failure(errc::no_space); // other sessions took the room meanwhile
        trim_front(of, *appending);
    }
    return {};
}

void memory_store::schedule_aging(stripe& in, stream_key const& key, stream& of, base::time_point when)
{
    if (of.is_aging)
        in.aging.erase(of.aging);
    of.aging = in.aging.emplace(when, key);
    of.is_aging = true;
}

result<opened_stream> memory_store::open_locked(
    stripe& in, stream_key const& key, stream_meta& meta, std::string const& owner, base::time_point)
{
    auto* const session = in.find(key.session);
    if (!session)
        return failure(errc::not_found);
    if (session->streams.contains(key.stream))
        return failure(errc::conflict);
    // The standalone stream is the session's own and does not count.
    auto const kept = session->streams.size() - session->streams.count(session->record->standalone);
    if (kept >= limits_.streams_per_session && !drop_one_finished(in, *session))
        return failure(errc::too_many_streams);
    if (auto const room = make_room(in, *session, nullptr, answer_reserve, false); !room)
        return std::unexpected(room.error());
    auto fresh = std::make_unique<stream>();
    fresh->meta = std::move(meta);
    fresh->owner = owner;
    fresh->fence = next_fence_.fetch_add(1, std::memory_order_relaxed);
    fresh->order = session->next_order++;
    fresh->top.epoch = epoch_;
    fresh->reserved = answer_reserve;
    session->charge += answer_reserve;
    total_bytes_.fetch_add(answer_reserve, std::memory_order_relaxed);
    opened_stream const opened{fresh->fence, epoch_};
    session->streams[key.stream] = std::move(fresh);
    stream_count_.fetch_add(1, std::memory_order_relaxed);
    return opened;
}

void memory_store::open(
    stream_key const& key, stream_meta meta, std::string const& owner, base::time_point now,
    completion<opened_stream> done)
{
    auto outcome = [&] {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        return open_locked(in, key, meta, owner, now);
    }();
    done(std::move(outcome));
}

result<stream_top> memory_store::append_locked(
    stripe& in, stream_key const& key, fence fence, std::vector<event_data>& events, bool finish, base::time_point now,
    wakes& to_wake)
{
    auto const found = find_stream(in, key);
    if (!found)
        return std::unexpected(found.error());
    auto& into = **found;
    if (into.finished)
        return failure(errc::finished);
    bool const is_standalone = into.meta.kind == stream_kind::standalone;
    if (!is_standalone && into.fence != fence)
        return failure(errc::fenced);
    std::size_t need = 0;
    for (auto const& event : events) {
        if (event.payload->size() > limits_.event_bytes)
            return failure(errc::too_large);
        need += charge_of(event.payload);
    }
    auto& session = *in.find(key.session);
    if (!finish || need > into.reserved)
        if (auto const room = make_room(in, session, &into, need, finish); !room)
            return std::unexpected(room.error());
    if (finish) {
        session.charge -= into.reserved;
        total_bytes_.fetch_sub(into.reserved, std::memory_order_relaxed);
        into.reserved = 0;
    }
    for (auto& event : events) {
        into.top.offset += event.payload->size();
        into.events.push_back({++into.top.sequence, into.top.offset, std::move(event.payload), event.kind});
        if (is_standalone)
            into.appended_at.push_back(now);
    }
    into.charge += need;
    session.charge += need;
    total_bytes_.fetch_add(need, std::memory_order_relaxed);
    into.finished = finish;
    while (into.events.size() > 1
           && (into.events.size() > limits_.events_per_stream || into.charge > limits_.bytes_per_stream))
        trim_front(session, into);
    if (finish || (is_standalone && !into.is_aging && !events.empty()))
        schedule_aging(in, key, into, now + limits_.event_age);
    into.collect(interest::growth, to_wake);
    return into.top;
}

void memory_store::append(
    stream_key const& key, fence fence, std::vector<event_data> events, bool finish, base::time_point now,
    completion<stream_top> done)
{
    wakes to_wake;
    auto outcome = [&] {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        return append_locked(in, key, fence, events, finish, now, to_wake);
    }();
    for (auto const& each : to_wake)
        if (each->is_active.load(std::memory_order_acquire))
            each->wake();
    done(std::move(outcome));
}

void memory_store::read_after(
    stream_key const& key, std::uint64_t after, read_limit limit, completion<page> done)
{
    result<page> outcome = page();
    {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        if (auto const found = find_stream(in, key)) {
            auto const& from = **found;
            outcome->state = from.state();
            std::size_t bytes = 0;
            auto const take = [&](stored_event const& event) {
                if (!outcome->events.empty()
                    && (outcome->events.size() >= limit.events || bytes + event.payload->size() > limit.bytes))
                    return false;
                bytes += event.payload->size();
                outcome->events.push_back(event);
                return true;
            };
            bool has_room = limit.events > 0;
            for (auto const& event : from.pinned)
                if (has_room && event.sequence > after)
                    has_room = take(event);
            if (has_room && !from.events.empty()) {
                auto const front = from.events.front().sequence;
                auto index = after >= front ? after - front + 1 : 0;
                if (index < from.events.size())
                    outcome->events.reserve(
                        outcome->events.size() + std::min<std::size_t>(from.events.size() - index, limit.events));
                for (; index < from.events.size(); ++index)
                    if (!take(from.events[index]))
                        break;
            }
        } else {
            outcome = std::unexpected(found.error());
        }
    }
    done(std::move(outcome));
}

void memory_store::inspect(stream_key const& key, completion<stream_meta> done)
{
    result<stream_meta> outcome = failure(errc::not_found);
    {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        if (auto const found = find_stream(in, key))
            outcome = (*found)->meta;
    }
    done(std::move(outcome));
}

namespace {

class unwatch final : public watch_handle {
public:
    explicit unwatch(std::function<void()> stop) : stop_(std::move(stop)) {}
    ~unwatch() override { stop_(); }

private:
    std::function<void()> stop_;
};

}

std::unique_ptr<watch_handle>
memory_store::watch(stream_key const& key, interest interest, std::function<void()> wake)
{
    auto entry = std::make_shared<watcher>();
    entry->wake = std::move(wake);
    entry->kind = interest;
    {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        if (auto const found = find_stream(in, key))
            (*found)->watchers.push_back(entry);
    }
    return std::make_unique<unwatch>([this, key, entry] {
        entry->is_active.store(false, std::memory_order_release);
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        if (auto const found = find_stream(in, key))
            std::erase((*found)->watchers, entry);
    });
}

void memory_store::note_reader(stream_key const& key, reader_mark mark)
{
    wakes to_wake;
    {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        auto const found = find_stream(in, key);
        if (!found)
            return;
        auto& of = **found;
        if (counter_ && mark.given > 0) {
            // What was trimmed between being read and being marked has been counted as lost.
            auto const before = std::max(of.reader.sent, of.lost_to);
            auto first = mark.sent > before ? mark.sent - before : 0;
            for (auto const& event : of.pinned)
                first += event.sequence > of.reader.sent && event.sequence <= std::min(mark.sent, of.lost_to);
            first = std::min(first, mark.given);
            counter_->delivered(mark.given, first);
        }
        of.reader = mark;
        of.collect(interest::reader, to_wake);
    }
    for (auto const& each : to_wake)
        if (each->is_active.load(std::memory_order_acquire))
            each->wake();
}

void memory_store::reader(stream_key const& key, completion<reader_mark> done)
{
    result<reader_mark> outcome = failure(errc::not_found);
    {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        if (auto const found = find_stream(in, key))
            outcome = (*found)->reader;
    }
    done(std::move(outcome));
}

void memory_store::sweep(base::time_point now)
{
    for (auto& in : *stripes_) {
        std::lock_guard const lock(in.mutex);
        while (!in.aging.empty() && in.aging.begin()->first <= now) {
            auto const key = in.aging.begin()->second;
            auto& session = *in.find(key.session);
            auto& old = *session.streams.find(key.stream)->second;
            in.aging.erase(old.aging);
            old.is_aging = false;
            if (old.meta.kind == stream_kind::standalone) {
                while (!old.events.empty() && old.appended_at.front() + limits_.event_age <= now)
                    trim_front(session, old);
                if (!old.events.empty())
                    schedule_aging(in, key, old, old.appended_at.front() + limits_.event_age);
                continue;
            }
            if (old.reader.attached) { // still being read: look again later
                schedule_aging(in, key, old, now + limits_.event_age);
                continue;
            }
            while (!old.events.empty())
                trim_front(session, old);
            std::erase_if(old.pinned, [&](stored_event const& event) {
                if (old.is_pinned(event))
                    return false;
                forget(session, old, event);
                return true;
            });
            if (old.pinned.empty())
                drop_stream(in, session, key.stream, false);
            else
                schedule_aging(in, key, old, now + limits_.event_age);
        }
    }
}

// --- calls and their owners

void memory_store::renew(std::string const& owner, base::time_point until)
{
    std::lock_guard const lock(owners_mutex_);
    owners_[owner].lease_until = until;
}

void memory_store::lapsed(base::time_point now, std::size_t limit, completion<std::vector<call_ref>> done)
{
    std::vector<call_ref> calls;
    std::vector<std::string> gone;
    {
        std::lock_guard const lock(owners_mutex_);
        for (auto const& [name, state] : owners_)
            if (state.lease_until <= now)
                gone.push_back(name);
    }
    if (!gone.empty())
        for (auto& in : *stripes_) {
            std::lock_guard const lock(in.mutex);
            for (auto const& [key, session] : in.sessions)
                for (auto const& [id, each] : session->streams)
                    if (calls.size() < limit && each->meta.kind == stream_kind::request && !each->finished
                        && std::ranges::find(gone, each->owner) != gone.end())
                        calls.push_back({{key, id}, each->owner, each->meta.label});
        }
    done(std::move(calls));
}

void memory_store::claim(stream_key const& key, std::string const& owner, completion<fence> done)
{
    result<fence> outcome = failure(errc::not_found);
    {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        if (auto const found = find_stream(in, key); found && (*found)->meta.kind == stream_kind::request) {
            auto& call = **found;
            if (call.finished) {
                outcome = failure(errc::finished);
            } else {
                call.owner = owner;
                call.fence = next_fence_.fetch_add(1, std::memory_order_relaxed);
                outcome = call.fence;
            }
        }
    }
    done(std::move(outcome));
}

void memory_store::find(session_key const& key, std::string_view label, completion<call_ref> done)
{
    result<call_ref> outcome = failure(errc::not_found);
    {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        if (auto* session = in.find(key)) {
            stream_id newest_id = 0;
            stream const* newest = nullptr;
            for (auto const& [id, each] : session->streams)
                if (each->meta.kind == stream_kind::request && each->meta.label == label
                    && (!newest || each->order > newest->order)) {
                    newest = each.get();
                    newest_id = id;
                }
            if (newest && newest->finished)
                outcome = failure(errc::finished);
            else if (newest)
                outcome = call_ref{{key, newest_id}, newest->owner, newest->meta.label};
        }
    }
    done(std::move(outcome));
}

void memory_store::running(session_key const& key, completion<std::vector<call_ref>> done)
{
    std::vector<call_ref> calls;
    {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        if (auto* session = in.find(key))
            for (auto const& [id, each] : session->streams)
                if (each->meta.kind == stream_kind::request && !each->finished)
                    calls.push_back({{key, id}, each->owner, each->meta.label});
    }
    done(std::move(calls));
}

void memory_store::send(std::string const& owner, owner_message message, completion<void> done)
{
    std::shared_ptr<std::function<void(owner_message)>> mailbox;
    {
        std::lock_guard const lock(owners_mutex_);
        if (auto const found = owners_.find(owner); found != owners_.end())
            mailbox = found->second.mailbox;
    }
    if (!mailbox)
        return done(failure(errc::not_found));
    (*mailbox)(std::move(message));
    done({});
}

std::unique_ptr<watch_handle>
memory_store::listen(std::string const& owner, std::function<void(owner_message)> deliver)
{
    {
        std::lock_guard const lock(owners_mutex_);
        owners_[owner].mailbox = std::make_shared<std::function<void(owner_message)>>(std::move(deliver));
    }
    return std::make_unique<unwatch>([this, owner] {
        std::lock_guard const lock(owners_mutex_);
        owners_[owner].mailbox.reset();
    });
}

usage memory_store::used() const
{
    usage sum;
    sum.sessions = session_count_.load(std::memory_order_relaxed);
    sum.streams = stream_count_.load(std::memory_order_relaxed);
    sum.bytes = total_bytes_.load(std::memory_order_relaxed);
    return sum;
}

usage memory_store::census() const
{
    usage sum;
    sum.bytes = total_bytes_.load(std::memory_order_relaxed);
    for (auto const& in : *stripes_) {
        std::lock_guard const lock(in.mutex);
        sum.sessions += in.sessions.size();
        for (auto const& [key, session] : in.sessions) {
            sum.streams += session->streams.size();
            for (auto const& [id, each] : session->streams) {
                sum.events += each->pinned.size() + each->events.size();
                for (auto const& event : each->pinned)
                    sum.pending += event.sequence > each->reader.sent;
                if (!each->events.empty() && each->top.sequence > each->reader.sent)
                    sum.pending += std::min<std::uint64_t>(
                        each->events.size(), each->top.sequence - each->reader.sent);
            }
        }
    }
    return sum;
}

}
