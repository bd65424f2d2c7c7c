// The memory store's streams: how they are found, opened and watched.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

std::size_t charge_of(stream_meta const& meta) noexcept
{
    std::size_t charge = stream_overhead + meta.dialect.size() + meta.call_notes.size() + meta.caller.size();
    for (auto const& each : meta.requests)
        charge += request_overhead + each.id.size();
    return charge;
}

}

// --- one stream

stream_key memory_store::stream::key() const
{
    return {of.record->key, id};
}

stream_state memory_store::stream::state() const noexcept
{
    return {top, first_kept(), finished, of.is_closed, reader};
}

std::size_t memory_store::stream::count_up_to(std::uint64_t sequence) const noexcept
{
    if (events.empty() || sequence < events.front().sequence)
        return 0;
    // As many as there are without a jump; with one they are fewer.
    auto const most
        = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(sequence - events.front().sequence + 1, events.size()));
    if (events[static_cast<std::size_t>(most) - 1].sequence <= sequence)
        return static_cast<std::size_t>(most);
    auto const end
        = std::ranges::upper_bound(events.begin(), events.begin() + most, sequence, {}, &stored_event::sequence);
    return static_cast<std::size_t>(end - events.begin());
}

stored_event const* memory_store::stream::find_event(std::uint64_t sequence) const noexcept
{
    if (auto const count = count_up_to(sequence); count > 0)
        return events[count - 1].sequence == sequence ? &events[count - 1] : nullptr;
    auto const found = std::ranges::lower_bound(pinned, sequence, {}, &stored_event::sequence);
    return found != pinned.end() && found->sequence == sequence ? &*found : nullptr;
}

std::uint64_t memory_store::stream::count_kept(std::uint64_t after, std::uint64_t to) const noexcept
{
    to = std::min(to, top.sequence);
    if (to <= after)
        return 0;
    auto const count = std::ranges::count_if(
        pinned, [&](stored_event const& event) { return event.sequence > after && event.sequence <= to; });
    return static_cast<std::uint64_t>(count) + count_up_to(to) - count_up_to(after);
}

result<memory_store::stream*> memory_store::find_stream(visit& at, stream_key const& key)
{
    auto* const session = at.in.find(key.session);
    if (!session)
        return failure(errc::not_found);
    if (auto const found = session->streams.find(key.stream); found != session->streams.end())
        return found->second.get();
    if (session->record->standalone != key.stream)
        return failure(errc::stream_gone);
    auto fresh = std::make_unique<stream>(*session, key.stream);
    fresh->meta.kind = stream_kind::standalone;
    fresh->appended_at.emplace();
    fresh->top.epoch = epoch_;
    fresh->order = session->next_order++;
    stream_count_.fetch_add(1, std::memory_order_relaxed);
    return (session->streams[key.stream] = std::move(fresh)).get();
}

// --- keys of calls that are made once

result<std::optional<stream_id>> memory_store::look_up_key(session const& of, once_key const& key)
{
    auto const found = of.once.find(key.text);
    if (found == of.once.end())
        return std::nullopt;
    if (found->second.fingerprint != key.fingerprint)
        return failure(errc::key_mismatch);
    if (found->second.is_spent)
        return failure(errc::key_spent);
    return found->second.stream;
}

void memory_store::remember_key(session& of, once_key const& key, stream const& of_call)
{
    of.once.insert_or_assign(key.text, session::once_entry{key.fingerprint, of_call.id, of_call.order, false});
    add_bytes(of, key.text.size() + key_overhead);
}

void memory_store::spend_key(session& of, std::string const& key, stream_id stream)
{
    auto const found = of.once.find(key);
    if (found == of.once.end() || found->second.stream != stream)
        return;
    found->second.is_spent = true;
    of.spent.emplace(found->second.order, found);
    // Only keys without a stream are counted: the others are as many as the streams.
    if (of.spent.size() <= limits_.keys_per_session)
        return;
    auto const oldest = of.spent.begin()->second;
    release_bytes(of, oldest->first.size() + key_overhead);
    of.spent.erase(of.spent.begin());
    of.once.erase(oldest);
}

// --- opening

bool memory_store::is_any_in_use(session const& of, std::vector<expected_request> const& requests)
{
    boost::unordered_flat_set<std::string_view> own;
    for (auto const& each : requests) {
        if (!own.insert(each.id).second)
            return true;
        auto const [first, last] = of.requests.equal_range(std::string_view(each.id));
        if (std::any_of(first, last, [](request const& other) { return other.answered_at == 0; }))
            return true;
    }
    return false;
}

result<opened_stream> memory_store::open_here(
    visit& at, stream_key const& key, stream_meta& meta, std::string const& owner,
    std::optional<reader_request> const& reader)
{
    auto* const session = at.in.find(key.session);
    if (!session)
        return failure(errc::not_found);
    if (auto const found = session->streams.find(key.stream); found != session->streams.end()) {
        auto const& there = *found->second;
        if (there.is_standalone() || there.attempt > 1 || there.owner != owner)
            return failure(errc::conflict);
        return opened_stream{there.fence, there.top.epoch, there.repeats};
    }
    if (session->is_closed)
        return failure(errc::not_found);
    if (session->record->standalone == key.stream)
        return failure(errc::conflict);
    if (std::ranges::find(session->dropped, key.stream) != session->dropped.end())
        return failure(errc::finished);
    if (meta.has_unique_ids && is_any_in_use(*session, meta.requests))
        return failure(errc::duplicate_id);

    auto made = std::make_unique<stream>(*session, key.stream);
    auto& fresh = *made;
    fresh.own_charge = charge_of(meta);
    fresh.reserved = meta.held_bytes;
    for (auto const& each : meta.requests)
        fresh.reserved += event_overhead + each.answer_bytes;
    demand need{.bytes = fresh.own_charge + fresh.reserved};
    if (meta.once) {
        auto const first = look_up_key(*session, *meta.once);
        if (!first)
            return std::unexpected(first.error());
        fresh.repeats = *first;
        if (fresh.repeats)
            need.spare = session->streams.find(*fresh.repeats)->second.get();
        else
            need.bytes += meta.once->text.size() + key_overhead;
    }
    // From here on nothing may change until nothing can be refused.
    if (reader && !session->readers.can_take(*reader, session->who_lives(at.now)))
        return failure(errc::too_many_streams);
    // The standalone stream is the session's own and does not count.
    auto const kept = session->streams.size() - session->streams.count(session->record->standalone);
    bool const is_full = kept >= limits_.streams_per_session;
    if (is_full && !oldest_droppable(*session, need.spare))
        return failure(errc::too_many_streams);
    if (!could_make_room(*session, need))
        return failure(errc::no_space);
    if (is_full)
        drop_stream(at, *oldest_droppable(*session, need.spare), false);
    if (auto const room = make_room(at, *session, need); !room)
        return std::unexpected(room.error());

    fresh.meta = std::move(meta);
    fresh.meta.kind = stream_kind::request;
    fresh.owner = owner;
    fresh.fence = next_fence(at.now);
    fresh.order = session->next_order++;
    fresh.opened_at = at.now;
    fresh.top.epoch = epoch_;
    fresh.requests.reserve(fresh.meta.requests.size());
    for (auto const& each : fresh.meta.requests) {
        auto const place = static_cast<std::uint32_t>(fresh.requests.size());
        fresh.requests.push_back({&fresh, place, each.id, event_overhead + each.answer_bytes});
        session->requests.insert(fresh.requests.back());
    }
    add_bytes(*session, fresh.own_charge + fresh.reserved);
    if (fresh.meta.once && !fresh.repeats)
        remember_key(*session, *fresh.meta.once, fresh);
    session->streams[key.stream] = std::move(made);
    stream_count_.fetch_add(1, std::memory_order_relaxed);
    fresh.runs_with = &presence_of(at, *session, owner);
    fresh.runs_with->calls.push_back(fresh);
    if (reader) {
        reader_table::request const ask{.stream = key.stream, .kind = stream_kind::request, .reader = *reader};
        auto const decided = session->readers.attach(ask, at.now, session->who_lives(at.now));
        reader_came(at, fresh, reader->id);
        note_known(at, fresh, reader->id);
        session->readers.find(key.stream, reader->id)->start = 0;
        fresh.reader.attached = true;
        for (auto const& each : decided.removed)
            reader_removed(at, *session, each);
        for (auto const& each : decided.dismissed)
            at.wake(session->streams.find(each.stream)->second->watchers, dismissal_bit);
    }
    settle(at, *session, at.now);
    return opened_stream{fresh.fence, epoch_, fresh.repeats};
}

void memory_store::open(
    stream_key const& key, stream_meta meta, std::string const& owner, std::optional<reader_request> reader,
    completion<opened_stream> done)
{
    auto outcome = [&] {
        visit at(*this, key.session);
        return open_here(at, key, meta, owner, reader);
    }();
    done(std::move(outcome));
}

// --- watching

std::unique_ptr<watch_handle>
memory_store::watch(stream_key const& key, interest interests, std::function<void(interest)> wake)
{
    auto entry = std::make_shared<watcher>();
    entry->wake = std::move(wake);
    entry->interests = bits(interests);
    {
        visit at(*this, key.session);
        if (auto const found = find_stream(at, key))
            (*found)->watchers.push_back(entry);
    }
    return std::make_unique<unwatch>([this, key, entry] {
        entry->is_active.store(false, std::memory_order_release);
        visit at(*this, key.session);
        auto* const session = at.in.find(key.session);
        if (!session)
            return;
        if (auto const found = session->streams.find(key.stream); found != session->streams.end())
            std::erase(found->second->watchers, entry);
    });
}

}
