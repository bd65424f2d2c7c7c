// Sessions, calls and their owners. Events are in memory_events.cpp.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

// What a session costs beside the texts of its record: the record, what the store and the node keep of it.
constexpr std::size_t session_overhead = 2048;

// What a subscription costs beside its URI, which is kept twice.
constexpr std::size_t subscription_overhead = 256;

std::size_t charge_of(session_record const& record) noexcept
{
    return session_overhead + record.key.principal.size() + record.version.size() + record.client_info.size()
        + record.client_capabilities.size();
}

std::size_t charge_of_subscription(std::string_view uri) noexcept
{
    return subscription_overhead + 2 * uri.size();
}

}

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

void memory_store::create(
    session_record record, base::time_point now, completion<std::shared_ptr<session_record const>> done)
{
    if (session_count_.fetch_add(1, std::memory_order_relaxed) >= limits_.sessions) {
        session_count_.fetch_sub(1, std::memory_order_relaxed);
        return done(failure(errc::too_many_sessions));
    }
    auto const key = record.key;
    auto fresh = std::make_unique<session>();
    fresh->user_bytes = user_bytes_of(key.principal);
    fresh->record_charge = charge_of(record);
    fresh->record = std::make_shared<session_record const>(std::move(record));
    fresh->last_activity = now;
    fresh->is_idle = true;
    result<std::shared_ptr<session_record const>> outcome = fresh->record;
    {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        if (in.find(key)) {
            outcome = failure(errc::conflict);
        } else if (auto const room = make_room(in, *fresh, nullptr, fresh->record_charge, false); !room) {
            outcome = std::unexpected(room.error());
        } else {
            add_bytes(*fresh, fresh->record_charge);
            fresh->idle_place = in.idle.insert(in.idle.end(), key);
            in.sessions.emplace(key, std::move(fresh));
        }
    }
    if (!outcome)
        session_count_.fetch_sub(1, std::memory_order_relaxed);
    done(std::move(outcome));
}

std::shared_ptr<std::atomic<std::size_t>> memory_store::user_bytes_of(std::string const& principal)
{
    std::lock_guard const lock(users_mutex_);
    auto& entry = users_[principal];
    auto bytes = entry.lock();
    if (!bytes) {
        bytes = std::shared_ptr<std::atomic<std::size_t>>(
            new std::atomic<std::size_t>(0), [this, principal](std::atomic<std::size_t>* gone) {
                delete gone;
                std::lock_guard const inner(users_mutex_);
                if (auto const found = users_.find(principal); found != users_.end() && found->second.expired())
                    users_.erase(found);
            });
        entry = bytes;
    }
    return bytes;
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
            } else if (auto const room = recharge(in, *found, charge_of(record)); !room) {
                outcome = std::unexpected(room.error());
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
            while (!found->once.empty())
                forget_key(*found, std::string(found->once.begin()->first));
            while (!found->subscriptions.empty())
                forget_subscription(*found, std::string(*found->subscriptions.begin()));
            release_bytes(*found, found->record_charge);
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

result<void> memory_store::recharge(stripe& in, session& of, std::size_t charge)
{
    if (charge > of.record_charge) {
        if (auto const room = make_room(in, of, nullptr, charge - of.record_charge, false); !room)
            return room;
        add_bytes(of, charge - of.record_charge);
    } else {
        release_bytes(of, of.record_charge - charge);
    }
    of.record_charge = charge;
    return {};
}

// --- subscriptions

void memory_store::subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done)
{
    auto outcome = [&]() -> result<void> {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        auto* const of = in.find(key);
        if (!of)
            return failure(errc::not_found);
        if (of->subscriptions.contains(uri))
            return {};
        if (of->subscriptions.size() >= limit)
            return failure(errc::too_many_subscriptions);
        auto const charge = charge_of_subscription(uri);
        if (auto const room = make_room(in, *of, nullptr, charge, false); !room)
            return room;
        add_bytes(*of, charge);
        of->subscriptions.insert(uri);
        std::lock_guard const inner(subscribers_mutex_);
        subscribers_[std::move(uri)].emplace(key, of->record->standalone);
        return {};
    }();
    done(std::move(outcome));
}

void memory_store::forget_subscription(session& of, std::string const& uri)
{
    if (of.subscriptions.erase(uri) == 0)
        return;
    release_bytes(of, charge_of_subscription(uri));
    std::lock_guard const lock(subscribers_mutex_);
    auto const found = subscribers_.find(uri);
    found->second.erase(of.record->key);
    if (found->second.empty())
        subscribers_.erase(found);
}

void memory_store::unsubscribe(session_key const& key, std::string_view uri, completion<void> done)
{
    result<void> outcome = failure(errc::not_found);
    {
        auto& in = stripe_of(key);
        std::lock_guard const lock(in.mutex);
        if (auto* const of = in.find(key)) {
            forget_subscription(*of, std::string(uri));
            outcome = {};
        }
    }
    done(std::move(outcome));
}

void memory_store::subscribers(
    std::string_view uri, std::optional<session_key> after, std::size_t limit, completion<std::vector<subscriber>> done)
{
    std::vector<subscriber> all;
    {
        std::lock_guard const lock(subscribers_mutex_);
        if (auto const found = subscribers_.find(uri); found != subscribers_.end())
            for (auto each = after ? found->second.upper_bound(*after) : found->second.begin();
                 each != found->second.end() && all.size() < limit; ++each)
                all.push_back({each->first, each->second});
    }
    done(std::move(all));
}

std::vector<std::string> memory_store::subscribed_uris() const
{
    std::vector<std::string> uris;
    std::lock_guard const lock(subscribers_mutex_);
    uris.reserve(subscribers_.size());
    for (auto const& [uri, sessions] : subscribers_)
        uris.push_back(uri);
    return uris;
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

void memory_store::claim(stream_key const& key, std::string const& owner, completion<claimed_call> done)
{
    result<claimed_call> outcome = failure(errc::not_found);
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
                claimed_call claimed{call.fence, {}};
                for (std::uint32_t line = 0; line < call.requests.size(); ++line)
                    if (call.requests[line].answered_at == 0)
                        claimed.unanswered.push_back(line);
                outcome = std::move(claimed);
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
            stream_id running_id = 0;
            stream const* running = nullptr;
            std::optional<std::uint64_t> crossed; // the newest with an answer that is under way
            for (auto const& [id, each] : session->streams)
                each->for_each_place(label, [&](std::size_t place) {
                    auto const answered_at = each->requests[place].answered_at;
                    if (answered_at == 0 && (!running || each->order > running->order)) {
                        running = each.get();
                        running_id = id;
                    } else if (answered_at > each->reader.delivered) {
                        crossed = std::max(crossed.value_or(0), each->order);
                    }
                });
            if (crossed && (!running || *crossed > running->order))
                outcome = failure(errc::finished);
            else if (running)
                outcome = call_ref{{key, running_id}, running->owner, running->meta.label};
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

std::unique_ptr<watch_handle> memory_store::listen(std::string const& owner, std::function<void(owner_message)> deliver)
{
    auto const mailbox = std::make_shared<std::function<void(owner_message)>>(std::move(deliver));
    {
        std::lock_guard const lock(owners_mutex_);
        owners_[owner].mailbox = mailbox;
    }
    return std::make_unique<unwatch>([this, owner, mailbox] {
        std::lock_guard const lock(owners_mutex_);
        auto& current = owners_[owner].mailbox;
        if (current == mailbox) // not that of a later listener
            current.reset();
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
                    sum.pending += std::min<std::uint64_t>(each->events.size(), each->top.sequence - each->reader.sent);
            }
        }
    }
    return sum;
}

}
