// The memory store's readers: who follows a stream, how far it is, and who has to leave.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

/// Payload bytes of the stream up to that sequence, as far as what is kept can tell.
template<class Stream>
std::uint64_t offset_at(Stream const& of, std::uint64_t sequence)
{
    if (sequence == 0)
        return 0;
    if (sequence >= of.top.sequence)
        return of.top.offset;
    if (auto const* const event = of.find_event(sequence))
        return event->end_offset;
    auto const next = std::ranges::upper_bound(of.pinned, sequence, {}, &stored_event::sequence);
    auto const place = of.count_up_to(sequence);
    auto const* const event = next != of.pinned.end() ? &*next : place < of.events.size() ? &of.events[place] : nullptr;
    return event ? event->end_offset - event->payload->size() : of.top.offset;
}

}

// --- coming and going

void memory_store::reader_came(visit& at, stream& to, reader_id const& reader)
{
    auto& who = presence_of(at, to.of, reader.owner);
    ++who.readers;
    ++who.of->readers;
    ++to.reader_count;
    update_droppable(to);
    settle(at, to.of, at.now);
}

void memory_store::reader_left(visit& at, session& of, reader_id const& reader, stream_id stream)
{
    if (auto const found = of.streams.find(stream); found != of.streams.end()) {
        auto& left = *found->second;
        --left.reader_count;
        if (left.reader_count == 0)
            left.reader.attached = false;
        update_droppable(left);
        at.wake(left.watchers, reader_bit);
    }
    if (auto* const who = of.find_presence(reader.owner)) {
        --who->readers;
        --who->of->readers;
        leave_if_empty(at, of, *who, at.now);
    }
}

void memory_store::reader_removed(visit& at, session& of, reader_table::place const& gone)
{
    if (auto const found = of.streams.find(gone.stream); found != of.streams.end())
        at.wake(found->second->watchers, dismissal_bit);
    reader_left(at, of, gone.reader, gone.stream);
}

bool memory_store::is_known(stream const& of, reader_id const& reader) noexcept
{
    return std::ranges::any_of(of.last_readers, [&](auto const& each) {
        return each.first->name == reader.owner && each.second >= reader.connection;
    });
}

void memory_store::note_known(visit& at, stream& of, reader_id const& reader)
{
    for (auto& [owner, newest] : of.last_readers)
        if (owner->name == reader.owner) {
            newest = std::max(newest, reader.connection);
            return;
        }
    // One that stood still may come back, and what it had sent before that may come late.
    if (of.last_readers.size() >= remembered_owners)
        std::erase_if(of.last_readers, [&](auto const& each) { return !each.first->is_alive(at.now); });
    of.last_readers.emplace_back(lease_of(reader.owner), reader.connection);
}

void memory_store::mend_end(visit& at, stream& of, std::uint64_t seen)
{
    if (of.is_standalone())
        of.top.epoch = next_fence(at.now); // a number that it has not had
    else
        of.top.sequence = std::max(of.top.sequence, seen);
    at.wake(of.watchers, growth_bit);
}

result<attached_stream> memory_store::attach_here(visit& at, stream_key const& key, attach_request const& request)
{
    auto* const session = at.in.find(key.session);
    if (!session || session->is_closed)
        return failure(errc::not_found);
    auto const found = find_stream(at, key);
    if (!found)
        return std::unexpected(found.error());
    auto& of = **found;
    if (!session->readers.find(key.stream, request.reader.id) && is_known(of, request.reader.id))
        return failure(errc::fenced);
    attached_stream attached;
    attached.kind = of.meta.kind;
    attached.dialect = of.meta.dialect;
    attached.start = request.skips_backlog ? of.top.sequence : of.reader.delivered;
    bool is_ahead = false;
    if (auto const& from = request.from) {
        bool const is_other_epoch = from->epoch != of.top.epoch;
        is_ahead = !is_other_epoch && from->sequence > of.top.sequence;
        bool const is_too_far = is_ahead && (of.finished || from->sequence - of.top.sequence > limits_.window_events());
        if (!of.is_standalone() && (is_other_epoch || is_too_far))
            return failure(errc::bad_cursor);
        if (!of.is_standalone() && of.finished && from->sequence >= of.top.sequence) {
            advance_mark(of, from->sequence, from->sequence, 0); // or the client could not name it
            return failure(errc::finished);
        }
        attached.is_other_epoch = is_other_epoch || (is_ahead && of.is_standalone());
        attached.start = attached.is_other_epoch ? 0 : from->sequence;
    }

    auto const& reader = request.reader;
    reader_table::request const ask{key.stream, of.meta.kind, reader, request.policy, request.broken, request.insists};
    auto const decided = session->readers.attach(ask, at.now, session->who_lives(at.now));
    if (decided.verdict == reader_table::verdict::accepted && decided.is_new)
        reader_came(at, of, reader.id);
    for (auto const& each : decided.removed)
        reader_removed(at, *session, each);
    if (decided.verdict == reader_table::verdict::conflict)
        return failure(errc::conflict);
    note_known(at, of, reader.id);
    for (auto const& each : decided.dismissed)
        at.wake(session->streams.find(each.stream)->second->watchers, dismissal_bit);

    auto& entry = *session->readers.find(key.stream, reader.id);
    attached.took_over = entry.took_over;
    if (decided.waits) {
        attached.waits = true;
        return attached;
    }
    if (entry.leaving && !entry.start) { // has waited, and need not any more
        attached.first.state = of.state();
        attached.first.dismissed = entry.leaving;
        return attached;
    }
    if (entry.start) {
        attached.start = *entry.start;
        attached.is_other_epoch = entry.is_other_epoch;
    } else {
        if (is_ahead)
            mend_end(at, of, attached.start);
        entry.start = attached.start;
        entry.is_other_epoch = attached.is_other_epoch;
        if (request.from && !attached.is_other_epoch)
            advance_mark(of, attached.start, attached.start, 0);
        of.reader.attached = true;
        of.reader.position = attached.start;
        of.reader.offset = offset_at(of, attached.start);
        at.wake(of.watchers, reader_bit);
    }
    attached.first = read_page(of, attached.start, request.limit);
    attached.first.dismissed = entry.leaving;
    if (request.wants_questions)
        for (auto const& question : of.questions) {
            bool const is_answered = std::ranges::any_of(of.mail, [&](letter const& each) {
                return each.what == letter::kind::answer && each.number == question.number;
            });
            auto const* const event = of.find_event(question.sequence);
            if (question.sequence <= attached.start && event && !is_answered)
                attached.questions.push_back(event->payload);
        }
    return attached;
}

void memory_store::attach(stream_key const& key, attach_request request, completion<attached_stream> done)
{
    auto outcome = [&] {
        visit at(*this, key.session);
        return attach_here(at, key, request);
    }();
    done(std::move(outcome));
}

void memory_store::detach(stream_key const& key, reader_id const& reader, std::optional<reader_mark> mark)
{
    visit at(*this, key.session);
    auto const found = find_stream(at, key);
    if (!found)
        return;
    auto& of = **found;
    auto& readers = of.of.readers;
    note_known(at, of, reader);
    if (mark)
        advance_mark(of, mark->sent, mark->delivered, mark->given);
    if (auto const* const newest = readers.newest(key.stream);
        mark && newest && newest->id == reader && newest->start) {
        of.reader.position = mark->position;
        of.reader.offset = mark->offset;
    }
    if (readers.detach(key.stream, reader))
        reader_left(at, of.of, reader, key.stream);
}

void memory_store::dismiss(stream_key const& key, dismissed_reader how)
{
    visit at(*this, key.session);
    if (auto const found = find_stream(at, key); found && (*found)->of.readers.dismiss(key.stream, how))
        at.wake((*found)->watchers, dismissal_bit);
}

// --- marks

void memory_store::advance_mark(stream& of, std::uint64_t sent, std::uint64_t delivered, std::uint64_t given)
{
    delivered = std::min(delivered, of.top.sequence);
    sent = std::min(std::max(sent, delivered), of.top.sequence);
    // By what is kept: what was trimmed before it was marked has been counted as lost, and what a reader was given
    // whose mark never came has been given all the same.
    auto const first = of.count_kept(of.reader.sent, sent);
    if (counter_ && (given > 0 || first > 0))
        counter_->delivered(std::max(given, first), first);
    of.reader.sent = std::max(of.reader.sent, sent);
    if (delivered > of.reader.delivered) {
        of.reader.delivered = delivered;
        trim_unpinned(of);
    }
    update_droppable(of);
}

void memory_store::note_reader(stream_key const& key, reader_id const& reader, reader_mark mark)
{
    visit at(*this, key.session);
    auto const found = find_stream(at, key);
    if (!found)
        return;
    auto& of = **found;
    advance_mark(of, mark.sent, mark.delivered, mark.given);
    if (auto const* const newest = of.of.readers.newest(key.stream); newest && newest->id == reader && newest->start) {
        of.reader.attached = mark.attached;
        of.reader.position = mark.position;
        of.reader.offset = mark.offset;
        of.reader.given = mark.given;
    }
    at.wake(of.watchers, reader_bit);
}

void memory_store::note_delivered(stream_key const& key, std::uint64_t sequence)
{
    visit at(*this, key.session);
    if (auto const found = find_stream(at, key))
        advance_mark(**found, sequence, sequence, 0);
}

void memory_store::reader(stream_key const& key, completion<reader_mark> done)
{
    auto outcome = [&]() -> result<reader_mark> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        return (*found)->reader;
    }();
    done(std::move(outcome));
}

}
