#include "recorder.hpp"

#include "trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace belay::sim {

recorded_call* recorder::find_call(store::stream_id stream)
{
    auto const found = by_stream_.find(stream);
    return found == by_stream_.end() ? nullptr : found->second;
}

recorded_call const* recorder::call_of(store::stream_id stream) const
{
    auto const found = by_stream_.find(stream);
    return found == by_stream_.end() ? nullptr : found->second;
}

std::uint64_t recorder::answer_to(store::stream_id stream, std::uint32_t number)
{
    auto const& log = logs_[stream];
    auto const answer = std::ranges::find_if(log, [&](store::event_data const& event) {
        return event.kind == store::event_kind::response && event.number == number;
    });
    return answer == log.end() ? 0 : static_cast<std::uint64_t>(answer - log.begin()) + 1;
}

std::optional<base::time_point> recorder::ownerless_since(recorded_call const& call) const
{
    if (call.is_finished)
        return std::nullopt;
    if (call.owner.empty())
        return call.released_at;
    auto const until = lease_of(call.owner);
    return until <= clock_.now() ? std::optional(std::max(until, call.opened_at)) : std::nullopt;
}

base::time_point recorder::lease_of(std::string const& owner) const
{
    auto const found = leases_.find(owner);
    return found == leases_.end() ? base::time_point{} : found->second.until;
}

bool recorder::was_dead_for(std::string const& owner, base::time_point since, base::duration time) const
{
    auto const now = clock_.now();
    auto const found = leases_.find(owner);
    if (found == leases_.end() || now >= found->second.until + time)
        return true;
    // It is back, and what it had was lost before.
    return found->second.revived_at >= since && now >= found->second.lapsed_at + time;
}

base::time_point recorder::held_until(std::string const& owner, base::time_point since) const
{
    auto const found = leases_.find(owner);
    if (found == leases_.end())
        return since;
    auto const& lease = found->second;
    return std::min(clock_.now(), lease.revived_at >= since ? std::max(since, lease.lapsed_at) : lease.until);
}

base::time_point recorder::loaded_at(store::session_key const& key) const
{
    auto const found = loaded_.find(key.id);
    return found == loaded_.end() ? base::time_point{} : found->second;
}

bool recorder::is_kept(store::stream_key const& key)
{
    bool is_kept = false;
    inner_.reader(key, [&](result<store::reader_mark> const& mark) { is_kept = mark.has_value(); });
    return is_kept;
}

bool recorder::keeps(store::session_key const& key)
{
    // Listing is no activity.
    bool is_kept = false;
    inner_.list({}, ~std::size_t(0), [&](result<store::session_list> const& found) {
        is_kept
            = found && std::ranges::any_of(found->sessions, [&](auto const& each) { return each.record->key == key; });
    });
    return is_kept;
}

// --- sessions

void recorder::create(store::session_record record, store::completion<store::record_ptr> done)
{
    loaded_[record.key.id] = clock_.now();
    inner_.create(std::move(record), std::move(done));
}

void recorder::load(store::session_key const& key, store::completion<store::record_ptr> done)
{
    inner_.load(key, [this, key, done = std::move(done)](result<store::record_ptr> record) mutable {
        if (record)
            loaded_[key.id] = clock_.now();
        done(std::move(record));
    });
}

void recorder::expire(std::size_t limit, store::completion<store::expired_sessions> done)
{
    inner_.expire(limit, [this, done = std::move(done)](result<store::expired_sessions> found) mutable {
        if (found)
            for (auto const& each : found->overdue)
                on_overdue_(each);
        if (found)
            for (auto const& each : found->removed) {
                trace("expired {}", base::to_string(each.id));
                expired_.insert(each.id);
                on_expired_(each);
            }
        done(std::move(found));
    });
}

// --- streams

void recorder::open(
    store::stream_key const& key, store::stream_meta meta, std::string const& owner,
    std::optional<store::reader_request> reader, store::completion<store::opened_stream> done)
{
    auto kept = meta;
    std::vector<std::string> ids;
    for (auto const& each : meta.requests)
        ids.push_back(each.id);
    bool const is_duplicate = meta.has_unique_ids && is_any_in_use(key, ids);
    auto const connection = reader ? reader->id.connection : 0;
    inner_.open(
        key, std::move(meta), owner, std::move(reader),
        [this, key, owner, connection, is_duplicate, kept = std::move(kept),
         done = std::move(done)](result<store::opened_stream> outcome) mutable {
            trace(
                "open {:x} reader {} of {}: {}", key.stream, connection, owner,
                outcome ? "ok" : outcome.error().message());
            if (outcome)
                opened(key, kept, owner, is_duplicate, *outcome);
            done(std::move(outcome));
        });
}

void recorder::opened(
    store::stream_key const& key, store::stream_meta const& meta, std::string const& owner, bool is_duplicate,
    store::opened_stream const& opened)
{
    if (auto const* const known = find_call(key.stream)) {
        expect(known->opened_by == owner, "a stream was opened by two owners");
        expect(known->root == opened.repeats.value_or(key.stream), "opening a stream again gave another outcome");
        expect(known->fence == opened.fence || known->owner != owner, "opening a stream again gave another fence");
        bool is_finished = known->is_finished;
        inner_.read_after(key, 0, {0, 0}, std::nullopt, [&](result<store::page> const& page) {
            is_finished = page && page->state.finished;
        });
        expect(is_finished == known->is_finished, "a stream that was finished and dropped was opened again");
        return;
    }
    expect(!is_duplicate, "two calls with one id, where that is refused");
    recorded_call fresh;
    fresh.key = key;
    for (auto const& each : meta.requests)
        fresh.ids.push_back(each.id);
    fresh.once = meta.once ? meta.once->text : "";
    fresh.root = opened.repeats.value_or(key.stream);
    fresh.opened_by = owner;
    fresh.owner = owner;
    fresh.fence = opened.fence;
    fresh.opened_at = clock_.now();
    if (!fresh.once.empty() && !opened.repeats)
        for (auto const& each : calls_)
            expect(
                each.key.session != key.session || each.once != fresh.once || each.root != each.key.stream,
                "a call with a key was made twice");
    calls_.push_back(std::move(fresh));
    by_stream_[key.stream] = &calls_.back();
}

bool recorder::note_append(
    store::stream_id stream, std::string const& author, std::uint64_t batch,
    std::vector<store::event_data> const& events, result<store::stream_top> const& top)
{
    auto& known = authored_[{stream, author}];
    bool const is_first = known.arrived.insert(batch).second;
    if (!top) {
        ++refused_[stream];
        return true;
    }
    auto& log = logs_[stream];
    if (batch <= known.last) {
        expect(!is_first, "an append was taken for a repetition of another");
        expect(top->sequence <= log.size(), "an append that was repeated was kept twice");
        return false;
    }
    known.last = batch;
    for (auto const& each : events) {
        log.push_back(each);
        note_said(stream, each, log.size());
    }
    appended_ += events.size();
    expect(
        top->sequence == log.size(),
        fmt::format("an append of {} events to a log of {} gave the top {}", events.size(), log.size(), top->sequence));
    return true;
}

void recorder::note_said(store::stream_id stream, store::event_data const& event, std::uint64_t sequence)
{
    if (auto* const call = find_call(stream); call && event.kind == store::event_kind::response)
        expect(
            call->answers.try_emplace(event.number, recorded_call::answer{call->owner, clock_.now()}).second,
            "a request has two answers in its log"); // I1
    if (event.progress) {
        auto const [before, is_first] = progress_.try_emplace(stream, *event.progress);
        expect(is_first || *event.progress > before->second, "the progress of a call went back");
        before->second = *event.progress;
    }
    if (event.kind == store::event_kind::question && event.key) {
        expect(!answered_keys_.contains({stream, *event.key}), "somebody is asked again what was answered");
        asked_.insert_or_assign({stream, event.number}, asked{sequence, *event.key});
    }
}

void recorder::append(
    store::stream_key const& key, store::fence fence, std::uint64_t batch, std::uint64_t after,
    std::vector<store::event_data> events, bool finish, store::completion<store::stream_top> done)
{
    auto copy = events;
    inner_.append(
        key, fence, batch, after, std::move(events), finish,
        [this, key, fence, batch, finish, copy = std::move(copy),
         done = std::move(done)](result<store::stream_top> top) mutable {
            trace(
                "{} ms: append {:x} fence {} batch {} events {} finish {}: {}",
                clock_.now().time_since_epoch() / std::chrono::milliseconds(1), key.stream, fence, batch, copy.size(),
                finish, top ? std::to_string(top->sequence) : top.error().message());
            auto* const call = find_call(key.stream);
            if (call && !top)
                expect(
                    top.error() != errc::fenced || call->fence != fence || call->owner.empty(),
                    "a call was refused that nobody took over");
            if (note_append(key.stream, std::to_string(fence), batch, copy, top) && top) {
                expect(call != nullptr, "an append to a stream that was never opened");
                if (call) {
                    expect(call->fence == fence, "an append with an old fence was kept");
                    expect(!call->is_finished, "an append to a finished stream was kept");
                    call->is_finished = call->is_finished || finish;
                }
            }
            done(std::move(top));
        });
}

void recorder::append_standalone(
    store::stream_key const& key, std::string const& owner, std::uint64_t batch, std::vector<store::event_data> events,
    store::completion<store::stream_top> done)
{
    auto copy = events;
    inner_.append_standalone(
        key, owner, batch, std::move(events),
        [this, key, owner, batch, copy = std::move(copy),
         done = std::move(done)](result<store::stream_top> top) mutable {
            note_append(key.stream, owner, batch, copy, top);
            done(std::move(top));
        });
}

void recorder::blank(
    store::stream_key const& key, store::fence fence, std::uint64_t sequence, store::completion<void> done)
{
    inner_.blank(key, fence, sequence, [this, key, sequence, done = std::move(done)](result<void> outcome) mutable {
        trace("blank {:x} {}: {}", key.stream, sequence, outcome ? "ok" : outcome.error().message());
        if (outcome)
            blanked_.insert({key.stream, sequence});
        done(std::move(outcome));
    });
}

// --- readers and letters, for whoever traces them

void recorder::attach(
    store::stream_key const& key, store::attach_request request, store::completion<store::attached_stream> done)
{
    auto const who = request.reader.id;
    inner_.attach(
        key, std::move(request), [this, key, who, done = std::move(done)](result<store::attached_stream> got) mutable {
            trace(
                "{} ms: attach {:x} reader {} of {}: {}",
                clock_.now().time_since_epoch() / std::chrono::milliseconds(1), key.stream, who.connection, who.owner,
                !got             ? got.error().message()
                    : got->waits ? std::string("waits")
                                 : fmt::format(
                                       "ok, {} of {} after {}, first kept {}", got->first.events.size(),
                                       got->first.state.top.sequence, got->start, got->first.state.first_kept));
            done(std::move(got));
        });
}

void recorder::detach(
    store::stream_key const& key, store::reader_id const& reader, std::optional<store::reader_mark> mark)
{
    trace("detach {:x} reader {} of {}", key.stream, reader.connection, reader.owner);
    inner_.detach(key, reader, mark);
}

void recorder::read_after(
    store::stream_key const& key, std::uint64_t after, store::read_limit limit, std::optional<store::reader_id> reader,
    store::completion<store::page> done)
{
    inner_.read_after(
        key, after, limit, reader, [key, after, reader, done = std::move(done)](result<store::page> page) mutable {
            trace(
                "read {:x} after {} by {}: {}", key.stream, after, reader ? reader->connection : 0,
                !page                 ? page.error().message()
                    : page->dismissed ? "dismissed"
                                      : fmt::format("{} of {}", page->events.size(), page->state.top.sequence));
            done(std::move(page));
        });
}

void recorder::post(store::stream_key const& key, store::letter letter, store::completion<void> done)
{
    trace("post {:x} kind {} number {}", key.stream, static_cast<int>(letter.what), letter.number);
    auto const answered = letter.what == store::letter::kind::answer ? std::optional(letter.number) : std::nullopt;
    inner_.post(key, std::move(letter), [this, key, answered, done = std::move(done)](result<void> posted) mutable {
        if (posted && answered) {
            answers_come_.emplace(key.stream, *answered);
            auto const question = asked_.find({key.stream, *answered});
            if (question != asked_.end() && !is_blank(key.stream, question->second.sequence))
                answered_keys_.emplace(key.stream, question->second.key);
        }
        done(std::move(posted));
    });
}

// --- calls

void recorder::renew(std::string const& owner, base::duration lease, store::completion<void> done)
{
    auto const now = clock_.now();
    inner_.renew(owner, lease, [this, owner, lease, now, done = std::move(done)](result<void> renewed) mutable {
        if (renewed) {
            auto const [at, is_new] = leases_.try_emplace(owner);
            if (is_new || at->second.until <= now) {
                at->second.lapsed_at = at->second.until;
                at->second.revived_at = now;
            }
            at->second.until = std::max(at->second.until, now + lease);
        }
        done(std::move(renewed));
    });
}

void recorder::lapsed(std::size_t limit, store::completion<std::vector<store::call_ref>> done)
{
    inner_.lapsed(limit, [this, done = std::move(done)](result<std::vector<store::call_ref>> found) mutable {
        if (found)
            for (auto const& each : *found) {
                auto const* const call = find_call(each.stream.stream);
                expect(call && !call->is_finished, "a call is said to have lost its owner and has an answer");
                expect(!call || call->owner.empty() || is_lapsed(call->owner), "a living owner is said to be lost");
            }
        done(std::move(found));
    });
}

void recorder::claim(
    store::stream_key const& key, store::fence seen, std::string const& owner,
    store::completion<store::claimed_call> done)
{
    inner_.claim(
        key, seen, owner, [this, key, seen, owner, done = std::move(done)](result<store::claimed_call> got) mutable {
            trace("claim {:x} by {}: {}", key.stream, owner, got ? "ok" : got.error().message());
            auto* const call = find_call(key.stream);
            if (got && !call)
                expect(false, "a call was claimed that was never opened");
            else if (got && !(call->owner == owner && call->fence == got->fence)) { // or it is claimed again by the
                                                                                // same
                expect(call->fence == seen, "a call was claimed by two");
                expect(!call->is_finished, "a call was claimed that has its answer");
                expect(got->fence > call->fence, "a fence went back");
                auto const before = leases_.find(call->owner);
                // By its own owner: it was told of a failure when it made the call, and runs nothing.
                expect(call->owner != owner || !runs_(owner, key), "a process takes its own call away");
                call->may_be_lost = call->may_be_lost || call->owner.empty() || call->owner == owner
                    || is_lapsed(call->owner)
                    || (before != leases_.end() && before->second.revived_at >= call->opened_at);
                call->owner = owner;
                call->fence = got->fence;
            }
            done(std::move(got));
        });
}

void recorder::release(store::stream_key const& key, store::fence fence, bool has_run, store::completion<void> done)
{
    inner_.release(key, fence, has_run, [this, key, fence, done = std::move(done)](result<void> released) mutable {
        trace("release {:x} fence {}: {}", key.stream, fence, released ? "ok" : released.error().message());
        if (auto* const call = find_call(key.stream);
            released && call && call->fence == fence && !call->owner.empty()) {
            call->owner.clear();
            call->released_at = clock_.now();
        }
        done(std::move(released));
    });
}

void recorder::find(store::session_key const& key, std::string_view request_id, store::completion<store::call_ref> done)
{
    auto const* const meant = meant_by(key, request_id);
    inner_.find(
        key, request_id,
        [this, meant, id = std::string(request_id), done = std::move(done)](result<store::call_ref> found) mutable {
            expect(
                (found ? found->stream.stream : 0) == (meant ? meant->key.stream : 0),
                "a cancel found another call than the one that is meant");
            if (meant)
                on_found_(id, *meant);
            done(std::move(found));
        });
}

/// The newest call of the session with that id which has no answer to it; none if a newer one has an answer that
/// has not arrived.
recorded_call const* recorder::meant_by(store::session_key const& session, std::string_view id)
{
    for (auto const& each : std::views::reverse(calls_)) {
        if (each.key.session != session || std::ranges::find(each.ids, id) == each.ids.end())
            continue;
        std::optional<std::uint64_t> delivered;
        inner_.reader(each.key, [&](result<store::reader_mark> const& mark) {
            if (mark)
                delivered = mark->delivered;
        });
        if (!delivered) // not kept any more
            continue;
        for (std::uint32_t number = 0; number < each.ids.size(); ++number) {
            if (each.ids[number] != id)
                continue;
            auto const answer = answer_to(each.key.stream, number);
            if (answer == 0)
                return &each;
            if (answer > *delivered)
                return nullptr;
        }
    }
    return nullptr;
}

bool recorder::is_any_in_use(store::stream_key const& key, std::vector<std::string> const& ids)
{
    return std::ranges::any_of(calls_, [&](recorded_call const& each) {
        if (each.key.session != key.session || each.key == key || !is_kept(each.key))
            return false;
        for (std::uint32_t number = 0; number < each.ids.size(); ++number)
            if (std::ranges::find(ids, each.ids[number]) != ids.end() && answer_to(each.key.stream, number) == 0)
                return true;
        return false;
    });
}

}
