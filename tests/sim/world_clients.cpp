// What clients see, held against what was appended.
#include "engine/cursor.hpp"
#include "world_parts.hpp"

namespace belay::sim {

/// Without a cursor: behind what was received, unless what nobody was given is left out.
bool world::may_begin_at(session const& of, std::uint64_t sequence) const
{
    return sequence <= of.seen || settings_.backlog == runtime::backlog_policy::none;
}

/// Whether there was anything.
bool world::read(connection& from, std::size_t most)
{
    if (from.wire->is_cut() || from.wire->has_vanished() || from.wire->is_aborted())
        return false;
    auto const bytes = from.wire->receive(most);
    auto const before = from.reader.last_id();
    require(from.reader.feed(bytes), "a stream that is not SSE");
    while (auto const event = from.reader.next())
        saw(from, *event);
    // A priming event has no data and is not given, but its id is there.
    auto const& id = from.reader.last_id();
    if (id == before || id.empty())
        return !bytes.empty();
    auto const at = engine::parse_event_id(id);
    require(at.has_value(), "an id that cannot be read: " + id);
    if (!from.knows_position) {
        from.knows_position = true;
        from.position = at->sequence;
        require(may_begin_at(*from.of, at->sequence), "a plain GET began after events that were never received");
    }
    skip_blanks(from, at->sequence);
    require(at->sequence == from.position, fmt::format("an id for {} at position {}", at->sequence, from.position));
    (from.which ? from.which->last_id : from.of->last_id) = id;
    return true;
}

void world::skip_blanks(connection& on, std::uint64_t to)
{
    // Answered questions are replayed as their ids alone, which the reader does not give.
    auto const stream = on.which ? on.which->stream : on.of->standalone;
    while (on.position < to && on.of->in->record.is_blank(stream, on.position + 1))
        ++on.position;
}

namespace {

bool is_question(std::string const& text)
{
    return text.contains(R"("method":"ask")");
}

}

void world::heard_question(call& of, std::string const& text)
{
    auto const id = text.substr(text.find(R"("id":")") + 6);
    auto const mark = text.substr(text.find(R"("of":")") + 6);
    of.questions.emplace(id.substr(0, id.find('"')), mark.substr(0, mark.find('"')));
}

/// A question from before the cursor, to which there was no answer: it is asked once more.
bool world::is_open_question(connection& on, std::string const& text)
{
    if (!on.which || !is_question(text))
        return false;
    auto const& log = on.of->in->record.log(on.which->stream);
    auto const end = log.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(on.position, log.size()));
    auto const found = std::find_if(log.begin(), end, [&](auto const& each) {
        return each.kind == store::event_kind::question && *each.payload == text;
    });
    require(found != end, "a question that was never asked is asked again");
    heard_question(*on.which, text);
    return true;
}

void world::saw(connection& on, http::sse_event const& event)
{
    auto const at = engine::parse_event_id(event.id);
    require(at.has_value(), "an event without a readable id: " + event.id);
    auto const stream = on.which ? on.which->stream : on.of->standalone;
    require(at->stream == stream, "an event of another stream"); // I3
    if (event.data.empty() || event.type == "belay") { // priming
        require(event.type == "belay" || on.of->revision == protocol::newest_revision, "empty data for an old client");
        if (!on.knows_position) {
            on.knows_position = true;
            on.position = at->sequence;
            require(may_begin_at(*on.of, at->sequence), "a plain GET began after events that were never received");
        }
        skip_blanks(on, at->sequence);
        require(at->sequence == on.position, "a priming event of another position");
        return;
    }
    if (!on.knows_position) { // an old client without priming
        on.knows_position = true;
        auto const from = event.data.find(R"("from":)");
        on.position = event.data.contains(R"("logger":"resumability")") ? std::stoull(event.data.substr(from + 7)) - 1
                                                                        : at->sequence - 1;
        require(may_begin_at(*on.of, on.position), "a plain GET began after events that were never received");
    }
    note(at->stream);
    note(at->sequence);
    if (settings_.redeliver_requests && at->sequence == on.position && is_open_question(on, event.data))
        return;
    auto const& log = on.of->in->record.log(stream);
    // A repeated call has the gap notices of the first one in its log.
    bool const is_logged = at->sequence <= log.size() && *log[at->sequence - 1].payload == event.data;
    bool const is_gap = !is_logged && event.data.contains(R"("logger":"resumability")");
    // What is blank may be in the gap, or come before it as an id.
    auto const from = is_gap ? std::stoull(event.data.substr(event.data.find(R"("from":)") + 7)) : at->sequence;
    skip_blanks(on, from - 1);
    if (is_gap) {
        require(!has_wide_retention_, "a gap where nothing was trimmed");
        require(!on.which || !on.which->is_steady, "a gap for a client that read all the time: " + event.data);
        require(
            event.data.contains(fmt::format(
                R"("missed":{},"from":{},"to":{})", at->sequence - on.position, on.position + 1, at->sequence)),
            "a gap notice that does not fit: " + event.data);
        require(at->sequence <= log.size(), "a gap beyond the log");
    } else {
        // I2: the next event of the log, byte for byte.
        require(
            at->sequence == on.position + 1,
            fmt::format("event {} of stream {:x} after {}", at->sequence, stream, on.position));
        require(at->sequence <= log.size(), "an event that was never appended");
        require(*log[at->sequence - 1].payload == event.data, "an event that is not the log's");
        if (is_question(event.data))
            heard_question(*on.which, event.data);
        require(
            !event.data.contains(R"("rerun":)") || !on.which || on.of->in->record.was_taken_over(on.which->stream)
                || on.of->in->record.was_taken_over(on.which->root()),
            "a call is said to be run again that nobody took over");
        if (on.which && log[at->sequence - 1].kind == store::event_kind::response)
            saw_response(*on.which, event.data, at->sequence == log.size());
    }
    on.position = at->sequence;
    auto& seen = on.which ? on.which->seen : on.of->seen;
    if (on.which)
        require(at->sequence > seen, "an event was repeated");
    seen = std::max(seen, at->sequence);
    (on.which ? on.which->last_id : on.of->last_id) = event.id;
}

void world::saw_response(call& which, std::string const& text, bool is_last)
{
    auto const found = std::ranges::find_if(which.requests, [&](auto const& each) {
        return text.starts_with(fmt::format(R"({{"jsonrpc":"2.0","id":{},)", each.id));
    });
    require(found != which.requests.end(), "the answer of another call");
    require(++found->responses == 1, "a second answer"); // I1
    require(!which.is_answered() || is_last, "something follows the last answer");
    // Of the call that it repeats nobody may have heard: its process was lost first.
    auto const* const author = which.first ? call_of(which.first) : &which;
    auto const mark = !which.first ? found->mark : author ? author->requests.front().mark : std::string();
    require(
        !author || !text.contains(R"("result":{"of":)") || text.contains(fmt::format(R"("result":{{"of":"{}",)", mark)),
        "the answer of another tool");
    require_ending(which, *found, text);
}

void world::require_ending(call const& which, request const& of, std::string const& text) const
{
    require(!text.contains(R"("code":-32800)") || cancelled_.contains(which.root()), "a cancel hit another call");
    // What a fault may cost, and nothing else (docs/design/002-what-a-fault-may-cost.md).
    auto const ended = [&](std::string_view reason) { return text.contains(fmt::format(R"("reason":"{}")", reason)); };
    auto const& record = which.of->in->record;
    auto const was_lost = [&](store::stream_id stream) {
        auto const* const known = record.call_of(stream);
        return known && known->may_be_lost;
    };
    require(
        !ended("owner_lost") || was_lost(which.stream) || was_lost(which.root()),
        "the owner of a call is said to be lost and never was");
    // By its own answer, or by that of the call that it repeats.
    auto const answers = [&](store::stream_id stream, std::uint32_t number, auto const& condition) {
        auto const* const known = record.call_of(stream);
        if (!known)
            return false;
        auto const answer = known->answers.find(number);
        return answer != known->answers.end() && condition(*known, answer->second);
    };
    auto const number = static_cast<std::uint32_t>(&of - which.requests.data());
    auto const was_interrupted = [&](recorded_call const&, recorded_call::answer const& answer) {
        return interrupted_.contains(answer.owner);
    };
    require(
        !ended("interrupted") || answers(which.stream, number, was_interrupted)
            || answers(which.root(), 0, was_interrupted),
        "a call was interrupted by a process that did not stop");
    auto const has_taken = [&](base::duration limit) {
        return [limit](recorded_call const& call, recorded_call::answer const& answer) {
            return answer.at - call.opened_at >= limit / 100 * 97; // clocks go too fast
        };
    };
    auto const* const first = which.first ? call_of(which.first) : nullptr;
    require(
        !ended("timed_out") || answers(which.stream, number, has_taken(of.limit))
            || (which.first
                && answers(which.first, 0, has_taken(first ? first->requests.front().limit : base::duration::zero()))),
        "a call timed out before its time");
    auto const limit = of.orphan_limit;
    require(
        !ended("orphaned") || (limit && answers(which.stream, number, has_taken(*limit)))
            || (which.first
                && (!first
                    || (first->requests.front().orphan_limit
                        && answers(which.first, 0, has_taken(*first->requests.front().orphan_limit))))),
        "a call was orphaned before its time");
    require(!ended("overloaded"), "a call was refused for want of a turn that nobody has to wait for");
    require(!ended("session_ended") || which.of->is_over(), "the session of a call is said to have ended and lives");
}

void world::drop_finished_connections()
{
    std::erase_if(connections_, [&](auto const& each) {
        bool const is_over = each->wire->is_cut() || each->wire->is_aborted() || each->wire->is_drained_to_end()
            || (each->wire->has_vanished() && each->wire->is_over());
        if (is_over) {
            // It held its session while its process lived.
            auto const held_until = each->of->in->record.held_until(each->owner, each->since);
            each->of->last_active = std::max(each->of->last_active, std::min(each->wire->over_at(), held_until));
            receipts_.push_back(each->wire);
        }
        return is_over;
    });
}

}
