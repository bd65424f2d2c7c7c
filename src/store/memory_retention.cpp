// What the memory store keeps, within which limits, and what goes when there is no room or it is old.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

void memory_store::add_bytes(session& to, std::size_t bytes) noexcept
{
    to.charge += bytes;
    to.user_bytes->fetch_add(bytes, std::memory_order_relaxed);
    total_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void memory_store::release_bytes(session& from, std::size_t bytes) noexcept
{
    from.charge -= bytes;
    from.user_bytes->fetch_sub(bytes, std::memory_order_relaxed);
    total_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

// --- room

bool memory_store::fits(session const& of, demand const& need, std::size_t after_dropping) const noexcept
{
    auto const is_within = [&](std::size_t used, std::size_t limit) {
        auto const reserve = need.is_final ? limits::reserve(limit) : 0;
        return used + need.bytes <= limit + reserve + after_dropping;
    };
    return is_within(of.charge, limits_.bytes_per_session)
        && is_within(of.user_bytes->load(std::memory_order_relaxed), limits_.bytes_per_principal)
        && is_within(total_bytes_.load(std::memory_order_relaxed), limits_.bytes_total);
}

bool memory_store::could_make_room(session const& of, demand const& need) const
{
    if (fits(of, need, 0))
        return true;
    std::size_t droppable = 0;
    for (auto const& each : of.droppable)
        if (&each != need.spare)
            droppable += each.all_charges();
    if (need.appending)
        for (auto const& event : need.appending->events) {
            if (fits(of, need, droppable))
                break;
            if (!need.appending->is_pinned(event))
                droppable += charge_of(event.payload);
        }
    return fits(of, need, droppable);
}

result<void> memory_store::make_room(visit& at, session& of, demand const& need)
{
    if (fits(of, need, 0))
        return {};
    // Refused means that nothing has happened: first see whether there is enough to drop.
    if (!could_make_room(of, need))
        return failure(errc::no_space);
    while (!fits(of, need, 0)) {
        if (auto* const old = oldest_droppable(of, need.spare)) {
            drop_stream(at, *old, false);
            continue;
        }
        auto* const from = need.appending;
        if (!from || from->events.empty())
            return failure(errc::no_space); // other sessions took the room meanwhile
        trim_front(*from);
    }
    return {};
}

// --- dropping

memory_store::stream* memory_store::oldest_droppable(session& of, stream const* spare) noexcept
{
    for (auto& each : of.droppable)
        if (&each != spare)
            return &each;
    return nullptr;
}

void memory_store::update_droppable(stream& of)
{
    bool const is_listed = of.droppable_link.is_linked();
    if (of.is_droppable() == is_listed)
        return;
    if (is_listed)
        of.droppable_link.unlink();
    else
        of.of.droppable.insert(of);
}

void memory_store::drop_stream(visit& at, stream& gone, bool is_end)
{
    auto& of = gone.of;
    auto const count = gone.pinned.size() + gone.events.size();
    auto const undelivered = gone.count_kept(gone.reader.sent, gone.top.sequence);
    if (counter_ && count > 0) {
        if (is_end)
            counter_->ended(count, undelivered);
        else
            counter_->trimmed(count, undelivered);
    }
    at.wake(gone.watchers, all_bits);
    end_call(at, gone);
    release_bytes(of, gone.all_charges());
    if (gone.meta.once)
        spend_key(of, gone.meta.once->text, gone.id);
    if (gone.is_aging)
        at.in.aging.erase(gone.aging);
    auto const id = gone.id;
    if (!is_end) {
        if (of.dropped.size() >= remembered_streams)
            of.dropped.pop_front();
        of.dropped.push_back(id);
    }
    of.streams.erase(id);
    stream_count_.fetch_sub(1, std::memory_order_relaxed);
}

void memory_store::forget(stream& from, stored_event const& event)
{
    auto const charge = charge_of(event.payload);
    from.charge -= charge;
    release_bytes(from.of, charge);
    // The questions of a call are open until they are blank; those of nobody only while they are kept.
    if (from.is_standalone() && event.kind == event_kind::question)
        take_questions(from, [&](auto const& each) { return each.sequence == event.sequence; });
    if (counter_)
        counter_->trimmed(1, event.sequence > from.reader.sent ? 1 : 0);
}

void memory_store::trim_front(stream& from)
{
    auto& event = from.events.front();
    if (from.is_pinned(event))
        from.pinned.push_back(std::move(event));
    else
        forget(from, event);
    from.events.pop_front();
    if (from.appended_at)
        from.appended_at->pop_front();
}

void memory_store::trim_unpinned(stream& from)
{
    std::erase_if(from.pinned, [&](stored_event const& event) {
        if (from.is_pinned(event))
            return false;
        forget(from, event);
        return true;
    });
}

// --- age

void memory_store::schedule_aging(visit& at, stream& of, base::time_point when)
{
    if (of.is_aging)
        at.in.aging.erase(of.aging);
    of.aging = at.in.aging.emplace(when, &of);
    of.is_aging = true;
}

void memory_store::sweep()
{
    for (auto& in : *stripes_) {
        visit at(*this, in);
        while (!in.aging.empty() && in.aging.begin()->first <= at.now)
            age(at, *in.aging.begin()->second);
    }
    forget_old_records(clock_.now());
}

void memory_store::age(visit& at, stream& old)
{
    at.in.aging.erase(old.aging);
    old.is_aging = false;
    if (old.is_standalone()) {
        while (!old.events.empty() && old.appended_at->front() + limits_.event_age <= at.now)
            trim_front(old);
        if (!old.events.empty())
            schedule_aging(at, old, old.appended_at->front() + limits_.event_age);
        return;
    }
    if (old.reader_count > 0) // still being read: look again later
        return schedule_aging(at, old, at.now + limits_.event_age);
    while (!old.events.empty())
        trim_front(old);
    trim_unpinned(old);
    if (old.pinned.empty())
        drop_stream(at, old, false);
    else
        schedule_aging(at, old, at.now + limits_.event_age);
}

}
