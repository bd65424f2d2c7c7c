// The memory store's events: appending, reading, retention.
#include "store/memory_state.hpp"

#include <algorithm>
#include <ranges>

namespace belay::store {

namespace {

// What an event costs beside its payload: the stored_event, the shared payload's header, the allocator.
constexpr std::size_t event_overhead = 112;

// What a remembered key costs beside its text.
constexpr std::size_t key_overhead = 96;

// What a stream costs beside its texts: the stream, its place in the tables, its owner's name.
constexpr std::size_t stream_overhead = 640;

std::size_t charge_of(stream_meta const& meta) noexcept
{
    return stream_overhead + meta.label.size() + meta.tag.size();
}

/// What is set aside for the answer to a line of the label.
std::size_t reserve_of(stream_meta const& meta, std::size_t line) noexcept
{
    return event_overhead + (line < meta.answer_bytes.size() ? meta.answer_bytes[line] : default_answer_bytes);
}

std::size_t line_count(stream_meta const& meta) noexcept
{
    return 1 + static_cast<std::size_t>(std::ranges::count(meta.label, '\n'));
}

std::size_t charge_of(bytes const& payload) noexcept
{
    return payload->size() + event_overhead;
}

}

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

void memory_store::forget(session& of, stream& from, stored_event const& event)
{
    auto const charge = charge_of(event.payload);
    from.charge -= charge;
    release_bytes(of, charge);
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
    release_bytes(of, gone.own_charge + gone.charge + gone.reserved);
    if (gone.meta.once)
        spend_key(of, gone.meta.once->text, id);
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
    auto const user_limit = limits_.bytes_per_principal + reserve(limits_.bytes_per_principal);
    auto const total_limit = limits_.bytes_total + reserve(limits_.bytes_total);
    auto const fits_after_dropping = [&](std::size_t bytes) {
        return of.charge + need <= session_limit + bytes
            && of.user_bytes->load(std::memory_order_relaxed) + need <= user_limit + bytes
            && total_bytes_.load(std::memory_order_relaxed) + need <= total_limit + bytes;
    };
    if (fits_after_dropping(0))
        return {};
    // Refused means that nothing has happened: first see whether there is enough to drop.
    std::size_t droppable = 0;
    for (auto const& [id, each] : of.streams)
        if (each->is_droppable())
            droppable += each->own_charge + each->charge + each->reserved;
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

result<std::optional<stream_id>> memory_store::look_up_key(session& of, once_key const& key) const
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

void memory_store::remember_key(session& of, once_key const& key, stream_id stream, std::uint64_t order)
{
    of.once[key.text] = {key.fingerprint, stream, order, false};
    add_bytes(of, key.text.size() + key_overhead);
}

void memory_store::spend_key(session& of, std::string const& key, stream_id stream)
{
    auto const found = of.once.find(key);
    if (found == of.once.end() || found->second.stream != stream)
        return;
    found->second.is_spent = true;
    // Only keys without a stream are counted: the others are as many as the streams.
    std::string const* oldest = nullptr;
    std::uint64_t order = 0;
    std::size_t spent = 0;
    for (auto const& [text, entry] : of.once)
        if (entry.is_spent) {
            ++spent;
            if (!oldest || entry.order < order) {
                oldest = &text;
                order = entry.order;
            }
        }
    if (spent > limits_.keys_per_session)
        forget_key(of, std::string(*oldest));
}

void memory_store::forget_key(session& of, std::string const& key)
{
    release_bytes(of, key.size() + key_overhead);
    of.once.erase(key);
}

bool memory_store::is_any_in_use(session const& of, std::string_view label)
{
    boost::unordered_flat_set<std::string_view> own;
    for (auto const line : std::views::split(label, '\n')) {
        std::string_view const id(line.begin(), line.end());
        if (!own.insert(id).second)
            return true;
        for (auto const& [stream, each] : of.streams)
            if (each->has_unanswered(id))
                return true;
    }
    return false;
}

result<opened_stream> memory_store::open_locked(
    stripe& in, stream_key const& key, stream_meta& meta, std::string const& owner, base::time_point)
{
    auto* const session = in.find(key.session);
    if (!session)
        return failure(errc::not_found);
    if (session->streams.contains(key.stream))
        return failure(errc::conflict);
    if (meta.has_unique_ids && is_any_in_use(*session, meta.label))
        return failure(errc::duplicate_id);
    std::optional<stream_id> twin;
    auto fresh = std::make_unique<stream>();
    fresh->own_charge = charge_of(meta);
    for (std::size_t line = 0; line < line_count(meta); ++line) {
        fresh->requests.push_back({reserve_of(meta, line)});
        fresh->reserved += fresh->requests.back().reserve;
    }
    fresh->reserved += meta.held_bytes;
    auto need = fresh->own_charge + fresh->reserved;
    if (meta.once) {
        auto const first = look_up_key(*session, *meta.once);
        if (!first)
            return std::unexpected(first.error());
        twin = *first;
        need += meta.once->text.size() + key_overhead;
    }
    // The standalone stream is the session's own and does not count.
    auto const kept = session->streams.size() - session->streams.count(session->record->standalone);
    if (kept >= limits_.streams_per_session && !drop_one_finished(in, *session))
        return failure(errc::too_many_streams);
    if (auto const room = make_room(in, *session, nullptr, need, false); !room)
        return std::unexpected(room.error());
    if (twin && !session->streams.contains(*twin)) // went to make room for this one
        return failure(errc::key_spent);
    fresh->meta = std::move(meta);
    fresh->owner = owner;
    fresh->fence = next_fence_.fetch_add(1, std::memory_order_relaxed);
    fresh->order = session->next_order++;
    fresh->top.epoch = epoch_;
    add_bytes(*session, fresh->own_charge + fresh->reserved);
    if (fresh->meta.once && !twin)
        remember_key(*session, *fresh->meta.once, key.stream, fresh->order);
    opened_stream const opened{fresh->fence, epoch_, twin};
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
    std::size_t reserved = 0; // the part of `need` that was set aside
    for (auto const& event : events) {
        auto const charge = charge_of(event.payload);
        auto const* const answers = event.kind == event_kind::response && event.line < into.requests.size()
            ? &into.requests[event.line]
            : nullptr;
        bool const is_reserved = answers && answers->answered_at == 0;
        if (event.payload->size() > limits_.event_bytes && !(is_reserved && charge <= answers->reserve))
            return failure(errc::too_large);
        need += charge;
        if (is_reserved)
            reserved += answers->reserve;
    }
    bool const is_final = reserved > 0 || finish;
    if (finish)
        reserved = into.reserved;
    auto& session = *in.find(key.session);
    if (need > reserved)
        if (auto const room = make_room(in, session, &into, need - reserved, is_final); !room)
            return std::unexpected(room.error());
    release_bytes(session, reserved);
    into.reserved -= reserved;
    for (auto& event : events) {
        into.top.offset += event.payload->size();
        into.events.push_back({++into.top.sequence, into.top.offset, std::move(event.payload), event.kind});
        if (event.kind == event_kind::response && event.line < into.requests.size())
            into.requests[event.line].answered_at = into.top.sequence;
        if (is_standalone)
            into.appended_at.push_back(now);
    }
    if (finish)
        for (auto& each : into.requests)
            if (each.answered_at == 0)
                each.answered_at = into.top.sequence;
    into.charge += need;
    add_bytes(session, need);
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

void memory_store::blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done)
{
    result<void> outcome;
    {
        auto& in = stripe_of(key.session);
        std::lock_guard const lock(in.mutex);
        auto const found = find_stream(in, key);
        if (!found) {
            outcome = std::unexpected(found.error());
        } else if ((*found)->fence != fence) {
            outcome = failure(errc::fenced);
        } else {
            auto& of = **found;
            stored_event* event = nullptr;
            if (auto const kept = std::ranges::find(of.pinned, sequence, &stored_event::sequence);
                kept != of.pinned.end())
                event = &*kept;
            else if (!of.events.empty() && sequence >= of.events.front().sequence && sequence <= of.top.sequence)
                event = &of.events[sequence - of.events.front().sequence];
            if (event) {
                static auto const nothing = std::make_shared<std::string const>();
                auto const freed = event->payload->size();
                of.charge -= freed;
                release_bytes(*in.find(key.session), freed);
                event->payload = nothing;
                event->kind = event_kind::ordinary;
            }
        }
    }
    done(std::move(outcome));
}

void memory_store::read_after(stream_key const& key, std::uint64_t after, read_limit limit, completion<page> done)
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

std::unique_ptr<watch_handle> memory_store::watch(stream_key const& key, interest interest, std::function<void()> wake)
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
        mark.sent = std::max(mark.sent, of.reader.sent);
        mark.delivered = std::max(mark.delivered, of.reader.delivered);
        of.reader = mark;
        of.collect(interest::reader, to_wake);
    }
    for (auto const& each : to_wake)
        if (each->is_active.load(std::memory_order_acquire))
            each->wake();
}

void memory_store::note_delivered(stream_key const& key, std::uint64_t sequence)
{
    auto& in = stripe_of(key.session);
    std::lock_guard const lock(in.mutex);
    if (auto const found = find_stream(in, key))
        (*found)->reader.delivered = std::max((*found)->reader.delivered, std::min(sequence, (*found)->top.sequence));
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

}
