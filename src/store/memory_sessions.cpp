// The memory store's sessions: their records, what holds them, when they go.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

std::size_t charge_of(session_record const& record) noexcept
{
    return session_overhead + record.key.principal.size() + record.version.size() + record.client_info.size()
        + record.client_capabilities.size();
}

}

memory_store::memory_store(limits limits, base::clock const& clock, std::uint64_t epoch, event_counter* counter)
    : limits_(limits), clock_(clock), epoch_(epoch), counter_(counter),
      stripes_(std::make_unique<std::array<stripe, stripe_count>>())
{
}

memory_store::~memory_store() = default;

std::size_t memory_store::stripe_index(session_key const& key) noexcept
{
    return static_cast<std::size_t>(base::log_number(key.id) >> (48 - stripe_bits));
}

memory_store::stripe& memory_store::stripe_of(session_key const& key) const noexcept
{
    return (*stripes_)[stripe_index(key)];
}

// --- an operation

memory_store::visit::visit(memory_store const& store, stripe& in) : in(in), lock_(in.mutex), now(store.clock_.recent())
{
}

memory_store::visit::visit(memory_store const& store, session_key const& key) : visit(store, store.stripe_of(key))
{
}

memory_store::visit::~visit()
{
    lock_.unlock();
    for (auto const& [each, what] : to_wake_)
        if (each->is_active.load(std::memory_order_acquire))
            each->wake(what);
}

void memory_store::visit::wake(std::vector<std::shared_ptr<watcher>> const& watchers, std::uint8_t interests)
{
    for (auto const& each : watchers)
        for (unsigned left = each->interests & interests; left != 0; left &= left - 1)
            to_wake_.emplace_back(each, static_cast<interest>(left & ~(left - 1)));
}

// --- what holds a session

memory_store::presence* memory_store::session::find_presence(std::string_view owner) const noexcept
{
    for (auto const& each : presences)
        if (each->of->lease->name == owner)
            return each.get();
    return nullptr;
}

bool memory_store::session::is_held() const noexcept
{
    return std::ranges::any_of(presences, [](auto const& each) { return !each->of->is_void; });
}

bool memory_store::session::has_living(base::time_point now) const noexcept
{
    return std::ranges::any_of(presences, [&](auto const& each) { return each->of->lease->is_alive(now); });
}

reader_table::alive_function memory_store::session::who_lives(base::time_point now) const
{
    return [this, now](std::string const& owner) {
        auto const* const found = find_presence(owner);
        return found && found->of->lease->is_alive(now);
    };
}

void memory_store::settle(visit& at, session& of, base::time_point since)
{
    if (of.is_closed) {
        if (!of.has_living(at.now))
            at.wake(of.watchers, growth_bit);
        return;
    }
    bool const is_idle = of.idle_link.is_linked();
    if (of.is_held()) {
        of.idle_link.unlink();
    } else if (!is_idle) {
        of.last_activity = std::max(of.last_activity, since);
        of.idle_since = of.last_activity;
        at.in.idle.insert(at.in.idle.end(), of);
    }
}

// --- records

void memory_store::create(session_record record, completion<record_ptr> done)
{
    auto const key = record.key;
    auto const user_bytes = user_bytes_of(key.principal);
    auto outcome = [&]() -> result<record_ptr> {
        visit at(*this, key);
        if (auto const* const there = at.in.find(key)) {
            if (!there->is_closed && *there->record == record)
                return there->record;
            return failure(errc::conflict);
        }
        if (session_count_.fetch_add(1, std::memory_order_relaxed) >= limits_.sessions) {
            session_count_.fetch_sub(1, std::memory_order_relaxed);
            return failure(errc::too_many_sessions);
        }
        auto fresh = std::make_unique<session>();
        fresh->user_bytes = user_bytes;
        fresh->record_charge = charge_of(record);
        if (auto const room = make_room(at, *fresh, {.bytes = fresh->record_charge}); !room) {
            session_count_.fetch_sub(1, std::memory_order_relaxed);
            return std::unexpected(room.error());
        }
        add_bytes(*fresh, fresh->record_charge);
        fresh->record = std::make_shared<session_record const>(std::move(record));
        fresh->created_at = at.now;
        auto& made = *(at.in.sessions[key] = std::move(fresh));
        made.name = base::log_name(key.id);
        at.in.by_name.insert(made);
        at.in.by_age.push_back(made);
        settle(at, made, at.now);
        return made.record;
    }();
    done(std::move(outcome));
}

std::shared_ptr<std::atomic<std::size_t>> memory_store::user_bytes_of(std::string const& principal)
{
    base::lock const lock(users_mutex_);
    auto& entry = users_[principal];
    auto bytes = entry.lock();
    if (!bytes) {
        bytes = std::shared_ptr<std::atomic<std::size_t>>(
            new std::atomic<std::size_t>(0), [this, principal](std::atomic<std::size_t>* gone) {
                delete gone;
                base::lock const inner(users_mutex_);
                if (auto const found = users_.find(principal); found != users_.end() && found->second.expired())
                    users_.erase(found);
            });
        entry = bytes;
    }
    return bytes;
}

void memory_store::load(session_key const& key, completion<record_ptr> done)
{
    record_ptr record;
    {
        visit at(*this, key);
        if (auto* const found = at.in.find(key); found && !found->is_closed) {
            found->last_activity = std::max(found->last_activity, at.now);
            record = found->record;
        }
    }
    if (!record)
        return done(failure(errc::not_found));
    done(std::move(record));
}

void memory_store::update(session_record record, completion<record_ptr> done)
{
    auto outcome = [&]() -> result<record_ptr> {
        visit at(*this, record.key);
        auto* const found = at.in.find(record.key);
        if (!found || found->is_closed)
            return failure(errc::not_found);
        auto const seen = record.revision++;
        if (*found->record == record)
            return found->record; // a repetition
        if (found->record->revision != seen)
            return failure(errc::conflict);
        if (auto const room = recharge(at, *found, charge_of(record)); !room)
            return std::unexpected(room.error());
        found->record = std::make_shared<session_record const>(std::move(record));
        at.wake(found->watchers, growth_bit);
        return found->record;
    }();
    done(std::move(outcome));
}

result<void> memory_store::recharge(visit& at, session& of, std::size_t charge)
{
    if (charge > of.record_charge) {
        if (auto const room = make_room(at, of, {.bytes = charge - of.record_charge}); !room)
            return room;
        add_bytes(of, charge - of.record_charge);
    } else {
        release_bytes(of, of.record_charge - charge);
    }
    of.record_charge = charge;
    return {};
}

void memory_store::touch(std::span<session_key const> in_use)
{
    for (auto const& key : in_use) {
        visit at(*this, key);
        if (auto* const found = at.in.find(key))
            found->last_activity = std::max(found->last_activity, at.now);
    }
}

// --- ends

void memory_store::expire(std::size_t limit, completion<expired_sessions> done)
{
    expired_sessions found;
    auto const remove = [&](visit& at, session& gone) {
        found.removed.push_back(gone.record->key);
        remove_session(at, gone);
    };
    for (auto& in : *stripes_) {
        visit at(*this, in);
        void_dead(at);
        while (found.removed.size() < limit && !in.closed.empty()
               && in.closed.front().closed_at + closed_session_limit <= at.now)
            remove(at, in.closed.front());
        while (found.removed.size() < limit && !in.idle.empty()) {
            auto& oldest = *in.idle.begin();
            if (oldest.idle_since + limits_.session_idle > at.now)
                break;
            if (oldest.last_activity > oldest.idle_since) { // it was used meanwhile: to its place
                oldest.idle_link.unlink();
                oldest.idle_since = oldest.last_activity;
                in.idle.insert(in.idle.end(), oldest);
                continue;
            }
            remove(at, oldest);
        }
        if (limits_.session_lifetime > base::duration::zero())
            for (auto const& each : in.by_age) {
                if (found.overdue.size() >= limit || each.created_at + limits_.session_lifetime > at.now)
                    break;
                found.overdue.push_back(each.record->key);
            }
    }
    done(std::move(found));
}

void memory_store::close(session_key const& key, completion<std::vector<call_ref>> done)
{
    auto outcome = [&]() -> result<std::vector<call_ref>> {
        visit at(*this, key);
        auto* const found = at.in.find(key);
        if (!found)
            return failure(errc::not_found);
        bool const is_first = !std::exchange(found->is_closed, true);
        std::vector<call_ref> told;
        for (auto const& who : found->presences)
            for (auto& call : who->calls) {
                told.push_back(call.call());
                if (!is_first)
                    continue;
                // Its charge is part of the stream's: a full store can end its calls too.
                call.mail.push_back({letter::kind::session_ended, 0, {}, ++call.last_letter});
                at.wake(call.watchers, mail_bit);
            }
        if (is_first) {
            found->closed_at = at.now;
            found->name_link.unlink();
            found->idle_link.unlink();
            found->age_link.unlink();
            at.in.closed.push_back(*found);
            while (!found->subscriptions.empty())
                forget_subscription(*found, std::string(*found->subscriptions.begin()));
            for (auto const& [id, each] : found->streams)
                at.wake(each->watchers, growth_bit);
            at.wake(found->watchers, growth_bit);
        }
        return told;
    }();
    done(std::move(outcome));
}

void memory_store::is_quiet(session_key const& key, completion<bool> done)
{
    bool is_quiet = true;
    {
        visit at(*this, key);
        if (auto const* const found = at.in.find(key))
            is_quiet = !found->has_living(at.now);
    }
    done(is_quiet);
}

void memory_store::remove(session_key const& key, completion<void> done)
{
    {
        visit at(*this, key);
        if (auto* const found = at.in.find(key))
            remove_session(at, *found);
    }
    done({});
}

void memory_store::remove_session(visit& at, session& gone)
{
    at.wake(gone.watchers, growth_bit);
    while (!gone.streams.empty())
        drop_stream(at, *gone.streams.begin()->second, true);
    while (!gone.once.empty()) {
        release_bytes(gone, gone.once.begin()->first.size() + key_overhead);
        gone.once.erase(gone.once.begin());
    }
    while (!gone.subscriptions.empty())
        forget_subscription(gone, std::string(*gone.subscriptions.begin()));
    for (auto const& who : gone.presences)
        who->of->readers -= who->readers;
    release_bytes(gone, gone.record_charge);
    session_count_.fetch_sub(1, std::memory_order_relaxed);
    auto const key = gone.record->key;
    at.in.sessions.erase(key);
}

std::unique_ptr<watch_handle> memory_store::watch_session(session_key const& key, std::function<void()> wake)
{
    auto entry = std::make_shared<watcher>();
    entry->wake = [wake = std::move(wake)](interest) { wake(); };
    entry->interests = growth_bit;
    {
        visit at(*this, key);
        if (auto* const found = at.in.find(key))
            found->watchers.push_back(entry);
    }
    return std::make_unique<unwatch>([this, key, entry] {
        entry->is_active.store(false, std::memory_order_release);
        visit at(*this, key);
        if (auto* const found = at.in.find(key))
            std::erase(found->watchers, entry);
    });
}

}
