// The memory store's events: appending, taking out, reading.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

// --- appending

result<stream_top>
memory_store::append_events(visit& at, stream& into, std::uint64_t after, std::vector<event_data>& events, bool finish)
{
    auto& session = into.of;
    auto const answered_by = [&](event_data const& event) -> request* {
        bool const is_one = event.kind == event_kind::response && event.number < into.requests.size();
        return is_one ? &into.requests[event.number] : nullptr;
    };
    std::size_t need = 0;
    std::size_t reserved = 0; // the part of `need` that was set aside
    std::size_t keys = 0;     // of questions
    bool is_too_large = false;
    for (auto& each : into.requests)
        each.is_counted = each.answered_at != 0;
    for (auto const& event : events) {
        auto const charge = charge_of(event.payload);
        auto* const answers = answered_by(event);
        bool const is_reserved = answers && !std::exchange(answers->is_counted, true);
        if (event.payload->size() > limits_.event_bytes && !(is_reserved && charge <= answers->reserve))
            is_too_large = true;
        need += charge;
        if (event.kind == event_kind::question && event.key)
            keys += event.key->size();
        if (is_reserved)
            reserved += answers->reserve;
    }
    if (is_too_large)
        return failure(errc::too_large);
    bool const is_final = reserved > 0 || finish;
    if (finish)
        reserved = into.reserved;
    if (need + keys > reserved)
        if (auto const room
            = make_room(at, session, {.bytes = need + keys - reserved, .is_final = is_final, .appending = &into});
            !room)
            return std::unexpected(room.error());
    release_bytes(session, reserved);
    into.reserved -= reserved;
    into.top.sequence = std::max(into.top.sequence, after);
    for (auto& event : events) {
        into.top.offset += event.payload->size();
        into.events.push_back({++into.top.sequence, into.top.offset, std::move(event.payload), event.kind});
        if (auto* const answers = answered_by(event)) {
            answers->answered_at = into.top.sequence;
            take_letters_of(into, letter::kind::cancel, event.number);
        }
        if (event.kind == event_kind::question) {
            into.questions.push_back({event.number, into.top.sequence, std::move(event.key)});
            into.last_question = std::max(into.last_question, event.number);
        }
        if (event.progress)
            into.progress = std::max(into.progress.value_or(*event.progress), *event.progress);
        if (into.appended_at)
            into.appended_at->push_back(at.now);
    }
    into.charge += need;
    into.mail_charge += keys;
    add_bytes(session, need + keys);
    if (std::exchange(into.has_blank, false))
        trim_unpinned(into);
    while (into.events.size() > 1
           && (into.events.size() > limits_.events_per_stream || into.charge > limits_.bytes_per_stream))
        trim_front(into);
    if (finish) {
        for (auto& each : into.requests)
            if (each.answered_at == 0)
                each.answered_at = into.top.sequence;
        into.finished = true;
        end_call(at, into);
        update_droppable(into);
    }
    if (finish || (into.is_standalone() && !into.is_aging && !into.events.empty()))
        schedule_aging(at, into, at.now + limits_.event_age);
    at.wake(into.watchers, growth_bit);
    return into.top;
}

void memory_store::end_call(visit& at, stream& of)
{
    take_questions(of, [](auto const&) { return true; });
    take_all_letters(of);
    if (!of.runs_with)
        return;
    of.call_link.unlink();
    leave_if_empty(at, of.of, *std::exchange(of.runs_with, nullptr), at.now);
}

void memory_store::append(
    stream_key const& key, fence fence, std::uint64_t batch, std::uint64_t after, std::vector<event_data> events,
    bool finish, completion<stream_top> done)
{
    auto outcome = [&]() -> result<stream_top> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        auto& into = **found;
        if (into.is_standalone() || into.fence != fence)
            return failure(errc::fenced);
        if (batch <= into.last_batch)
            return into.last_outcome;
        if (into.finished)
            return failure(errc::finished);
        if (into.owner.empty())
            return failure(errc::fenced);
        auto appended = append_events(at, into, after, events, finish);
        if (appended) {
            into.last_batch = batch;
            into.last_outcome = *appended;
        }
        return appended;
    }();
    done(std::move(outcome));
}

void memory_store::append_standalone(
    stream_key const& key, std::string const& owner, std::uint64_t batch, std::vector<event_data> events,
    completion<stream_top> done)
{
    auto outcome = [&]() -> result<stream_top> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        auto& into = **found;
        if (!into.is_standalone())
            return failure(errc::stream_gone);
        auto writer = std::ranges::find_if(into.writers, [&](auto const& each) { return each.owner->name == owner; });
        if (writer != into.writers.end() && batch <= writer->last_batch)
            return writer->top;
        auto const appended = append_events(at, into, 0, events, false);
        if (!appended)
            return appended;
        if (writer == into.writers.end()) {
            // One that stood still may come back and repeat its last append: the dead are forgotten when they are many.
            if (into.writers.size() >= remembered_owners)
                std::erase_if(into.writers, [&](auto const& each) {
                    return !each.owner->is_alive(at.now) && each.at + late_command_limit < at.now;
                });
            into.writers.push_back({lease_of(owner), 0, {}, at.now});
            writer = std::prev(into.writers.end());
        }
        writer->last_batch = batch;
        writer->top = *appended;
        writer->at = at.now;
        return appended;
    }();
    done(std::move(outcome));
}

void memory_store::blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done)
{
    auto outcome = [&]() -> result<void> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        auto& of = **found;
        if (of.fence != fence)
            return failure(errc::fenced);
        take_questions(of, [&](auto const& question) {
            if (question.sequence != sequence)
                return false;
            if (!question.key)
                take_letters_of(of, letter::kind::answer, question.number);
            return true;
        });
        if (auto* const event = const_cast<stored_event*>(of.find_event(sequence))) {
            static auto const nothing = std::make_shared<std::string const>();
            auto const freed = event->payload->size();
            of.charge -= freed;
            release_bytes(of.of, freed);
            event->payload = nothing;
            event->kind = event_kind::ordinary;
            of.has_blank = true;
        }
        return {};
    }();
    done(std::move(outcome));
}

// --- reading

page memory_store::read_page(stream const& from, std::uint64_t after, read_limit limit)
{
    page read;
    read.state = from.state();
    if (limit.events == 0)
        return read;
    std::size_t bytes = 0;
    auto const take = [&](stored_event const& event) {
        if (!read.events.empty() && (read.events.size() >= limit.events || bytes + event.payload->size() > limit.bytes))
            return false;
        bytes += event.payload->size();
        read.events.push_back(event);
        return true;
    };
    for (auto const& event : from.pinned)
        if (event.sequence > after && !take(event))
            return read;
    if (from.events.empty())
        return read;
    auto index = from.count_up_to(after);
    if (index < from.events.size())
        read.events.reserve(read.events.size() + std::min<std::size_t>(from.events.size() - index, limit.events));
    for (; index < from.events.size(); ++index)
        if (!take(from.events[index]))
            break;
    return read;
}

void memory_store::read_after(
    stream_key const& key, std::uint64_t after, read_limit limit, std::optional<reader_id> reader,
    completion<page> done)
{
    auto outcome = [&]() -> result<page> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        auto& from = **found;
        auto read = read_page(from, after, limit);
        if (reader) {
            auto const* const known = from.of.readers.find(key.stream, *reader);
            read.dismissed = known ? known->leaving : dismissed_reader{};
        }
        return read;
    }();
    done(std::move(outcome));
}

}
