// The memory store's owners: their leases, and what they have to do with sessions.
#include "store/memory_state.hpp"

#include <algorithm>
#include <chrono>

namespace belay::store {

std::shared_ptr<memory_store::lease> memory_store::lease_of(std::string const& owner)
{
    base::lock const lock(owners_mutex_);
    auto& entry = owners_[owner];
    if (!entry)
        entry = std::make_shared<lease>(owner);
    return entry;
}

memory_store::presence& memory_store::presence_of(visit& at, session& of, std::string const& owner)
{
    if (auto* const found = of.find_presence(owner))
        return *found;
    auto share = at.in.owners.find(owner);
    if (share == at.in.owners.end()) {
        share = at.in.owners.try_emplace(owner).first;
        share->second.lease = lease_of(owner);
        share->second.is_void = !share->second.lease->is_alive(at.now);
    }
    auto fresh = std::make_unique<presence>();
    fresh->of = &share->second;
    fresh->in = &of;
    share->second.presences.push_back(*fresh);
    return *of.presences.emplace_back(std::move(fresh));
}

void memory_store::leave_if_empty(visit& at, session& of, presence& who, base::time_point since)
{
    if (who.readers > 0 || !who.calls.empty())
        return;
    auto const found = std::ranges::find(of.presences, &who, &std::unique_ptr<presence>::get);
    of.presences.erase(found);
    settle(at, of, since);
}

// --- leases

void memory_store::renew(std::string const& owner, base::duration lease, completion<void> done)
{
    auto const of = lease_of(owner);
    auto const now = clock_.now();
    bool const was_alive = of->is_alive(now);
    auto const until = lease > base::time_point::max() - now ? base::time_point::max() : now + lease;
    of->until.store(until.time_since_epoch().count(), std::memory_order_release);
    // One that is late, or begins: its calls hold their sessions again.
    if (!was_alive)
        for (auto& in : *stripes_) {
            visit at(*this, in);
            auto const share = in.owners.find(owner);
            if (share == in.owners.end() || !share->second.lease->is_alive(at.now))
                continue;
            share->second.is_void = false;
            for (auto& each : share->second.presences)
                settle(at, *each.in, at.now);
        }
    done({});
}

void memory_store::void_dead(visit& at)
{
    for (auto each = at.in.owners.begin(); each != at.in.owners.end();) {
        auto& share = each->second;
        if (share.lease->is_alive(at.now)) {
            ++each;
            continue;
        }
        bool const was_void = std::exchange(share.is_void, true);
        if (share.readers > 0)
            void_readers(at, share);
        if (!was_void)
            for (auto& left : share.presences)
                settle(at, *left.in, share.lease->end());
        each = share.presences.empty() ? at.in.owners.erase(each) : std::next(each);
    }
}

void memory_store::void_readers(visit& at, owner_share& of)
{
    for (auto each = of.presences.begin(); each != of.presences.end();) {
        auto& who = *each++; // it may go with its last reader
        if (who.readers == 0)
            continue;
        auto& session = *who.in;
        for (auto const& gone : session.readers.remove_all_of(of.lease->name))
            reader_removed(at, session, gone);
    }
}

void memory_store::lapsed(std::size_t limit, completion<std::vector<call_ref>> done)
{
    std::vector<call_ref> calls;
    for (auto& in : *stripes_) {
        visit at(*this, in);
        void_dead(at);
        for (auto const& [name, share] : in.owners) {
            if (!share.is_void)
                continue;
            for (auto const& who : share.presences)
                for (auto const& call : who.calls) {
                    if (calls.size() >= limit)
                        break;
                    calls.push_back(call.call());
                }
        }
    }
    {
        // Whoever is dead and has left nothing behind is forgotten.
        auto const now = clock_.now();
        base::lock const lock(owners_mutex_);
        std::erase_if(
            owners_, [&](auto const& each) { return each.second.use_count() == 1 && !each.second->is_alive(now); });
    }
    done(std::move(calls));
}

void memory_store::owned(
    std::string const& owner, std::optional<stream_key> after, std::size_t limit,
    completion<std::vector<call_ref>> done)
{
    std::vector<call_ref> calls;
    // By stripe, session and stream.
    for (auto index = after ? stripe_index(after->session) : 0; index < stripe_count && calls.size() < limit; ++index) {
        visit at(*this, (*stripes_)[index]);
        auto const share = at.in.owners.find(owner);
        if (share == at.in.owners.end())
            continue;
        std::vector<stream const*> here;
        for (auto const& who : share->second.presences)
            for (auto const& call : who.calls)
                here.push_back(&call);
        auto const is_before = [](session_key const& a, stream_id a_stream, session_key const& b, stream_id b_stream) {
            return by_id()(a, b) || (!by_id()(b, a) && a_stream < b_stream);
        };
        if (after && index == stripe_index(after->session))
            std::erase_if(here, [&](stream const* each) {
                return !is_before(after->session, after->stream, each->of.record->key, each->id);
            });
        std::ranges::sort(here, [&](stream const* a, stream const* b) {
            return is_before(a->of.record->key, a->id, b->of.record->key, b->id);
        });
        for (auto const* each : here)
            if (calls.size() < limit)
                calls.push_back(each->call());
    }
    done(std::move(calls));
}

fence memory_store::next_fence(base::time_point now) noexcept
{
    auto const time = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
    auto last = last_fence_.load(std::memory_order_relaxed);
    fence next = 0;
    do
        next = std::max(last + 1, static_cast<fence>(std::max<std::int64_t>(time, 0)));
    while (!last_fence_.compare_exchange_weak(last, next, std::memory_order_relaxed));
    return next;
}

}
