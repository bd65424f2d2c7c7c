// The promises that are checked after every step, and at the end.
#include "trace.hpp"
#include "world_parts.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

void world::check_always()
{
    require(store().record.broken().empty(), store().record.broken());
    // I4
    auto const used = store().memory.used();
    auto const& limits = settings_.limits;
    require(used.sessions <= limits.sessions, "more sessions than allowed");
    require(used.bytes <= limits.bytes_total + store::limits::reserve(limits.bytes_total), "more bytes than allowed");
    require(used.streams <= used.sessions * (limits.streams_per_session + 1), "more streams than allowed");
    for (auto const& each : connections_)
        require(
            each->wire->most_staged()
                <= 2 * settings_.follower.page.bytes + limits.event_bytes + 200 * settings_.follower.page.events + 1000,
            "a connection buffers more than a page");
    check_leases();
    check_lost_calls();
    std::erase_if(links_, [](auto const& each) { return each->is_spent(); });
}

/// A process that nothing has happened to is alive in the store's eyes.
void world::check_leases()
{
    for (auto const& each : processes_) {
        auto const lease = store().record.lease_of(each->way().owner());
        require(
            lease > scheduler_.now() || each->was_troubled_since(lease - settings_.lease),
            "a process has let its lease run out");
    }
}

/// I5: a call whose owner is lost has its answer, or another owner, soon after there is somebody to see to it.
void world::check_lost_calls()
{
    // Looks are taken every second; what is slow is so on each of the way's commands and replies.
    auto const limit = network_faults_.slow == 0 ? base::duration(10s) : base::duration(50s);
    auto const now = scheduler_.now();
    std::optional<base::time_point> well_since;
    for (auto const& each : processes_)
        if (auto const since = each->well_since(); since && !each->node().departures().is_draining())
            well_since = std::min(*since, well_since.value_or(*since));
    if (!well_since || now - *well_since <= limit)
        return;
    auto& record = store().record;
    for (auto const& each : record.calls()) {
        auto const since = record.ownerless_since(each);
        require(
            !since || now - std::max(*since, *well_since) <= limit || !record.is_kept(each.key),
            fmt::format("nobody sees to a call that has lost its owner: stream {:x}", each.key.stream));
    }
}

void world::check_balance()
{
    auto& life = store();
    auto const appended = life.record.appended();
    auto const delivered = life.counted.first_deliveries;
    auto const pending = life.memory.census().pending;
    auto const lost = life.counted.trimmed_undelivered + life.counted.ended_undelivered;
    require(
        appended == delivered + pending + lost,
        fmt::format("appended {} != delivered {} + pending {} + lost {}", appended, delivered, pending, lost));
    std::uint64_t ever = 0;
    for (auto const& each : lives_)
        ever += each->record.appended();
    auto const counted = metrics_.events_appended.Value();
    auto const truth = static_cast<double>(ever);
    // Whoever is killed, or finds that it was taken for dead, does not count what it does not hear of.
    require(
        has_faults() || has_jumped_ || has_killed_ ? counted <= truth : counted == truth,
        fmt::format("{} events were appended, and {} counted", truth, counted));
}

void world::check_end()
{
    for (auto const& each : calls_)
        check_call(*each);
    for (auto const& each : former_)
        require(
            !each.runs || each.runs->is_stopped || each.runs->has_answered, "two run one call, and one is never told");
    check_recorded();
    check_readers();
    check_held();
    check_codes();
    check_balance();
    check_empty();
    check_balance();
}

void world::check_call(call const& which)
{
    bool const is_excused = which.is_lost || which.of->is_over();
    if (!is_excused && !which.is_answered())
        for (auto const& each : connections_)
            if (each->which == &which)
                trace(
                    "at position {} with {} bytes to read, over: {}, cut: {}, vanished: {}", each->position,
                    each->wire->arrived(), each->wire->is_over(), each->wire->is_cut(), each->wire->has_vanished());
    // I1: exactly one answer to each request, and its caller has it.
    require(is_excused || which.is_answered(), fmt::format("a call waits for ever: stream {:x}", which.stream));
    auto& record = which.of->in->record;
    if (which.first != 0) {
        auto const* const first = record.call_of(which.first);
        auto const* const own = record.call_of(which.stream);
        require(first && own && first->once == own->once, "repeats a call that was never made");
    }
    bool has_tool_left = false;
    auto const* const known = record.call_of(which.stream);
    for (auto const& request : which.requests)
        if (request.runs) {
            require(
                which.first != 0 || request.runs->is_stopped || request.runs->has_answered
                    || (!known->is_finished && known->owner == which.at->way().owner()),
                "a tool runs on whose call belongs to someone else");
            require(!request.runs->is_misled, "the answer of another caller");
            require(request.runs->answers <= request.runs->questions, "a question was answered twice");
            has_tool_left = has_tool_left || !request.runs->is_stopped;
        }
    // Whatever became of the caller, the log has one answer per request, the last of them as its last event.
    auto const& log = record.log(which.stream);
    auto const answers
        = static_cast<std::size_t>(std::ranges::count(log, store::event_kind::response, &store::event_data::kind));
    require(answers <= which.requests.size(), "more answers than requests in one log");
    bool const has_answered = std::ranges::all_of(
        which.requests, [](auto const& request) { return !request.runs || request.runs->has_answered; });
    bool const is_repetition = which.first != 0;
    require(
        answers == which.requests.size() || which.of->is_over() || record.has_expired(which.of->key()) || !has_answered
            || is_repetition || has_tool_left,
        "a call ended without an answer in its log");
}

/// I5: a call that nobody runs has its answer.
void world::check_recorded()
{
    auto& record = store().record;
    for (auto const& each : record.calls()) {
        if (each.is_finished || !record.keeps(each.key.session))
            continue;
        bool const is_run = std::ranges::any_of(processes_, [&](auto const& process) {
            return process->way().owner() == each.owner && process->node().calls().runs(each.key);
        });
        require(
            is_run,
            call_of(each.key.stream) ? "the call of a lost process has no answer"
                                     : "nobody runs a call that was opened");
    }
}

/// Nobody is waited for who has left.
void world::check_readers()
{
    store().memory.list({}, ~std::size_t(0), [&](result<store::session_list> const& found) {
        for (auto const& each : found->sessions)
            require(
                each.readers == 0
                    || std::ranges::any_of(
                        connections_, [&](auto const& line) { return line->of->key() == each.record->key; }),
                "a reader is kept that nobody has");
    });
}

void world::check_held()
{
    for (auto const& each : held_)
        require(!each->at || each->responses == 1, "a call that is held has no answer");
}

void world::check_codes()
{
    for (auto const& each : codes_)
        if (!each->winners.empty() && each->in == &store() && !has_jumped_)
            store().memory.get_record(
                each->name, [&](auto const& found) { require(!found, "what was taken is there again"); });
}

/// An abandoned world empties itself.
void world::check_empty()
{
    for (auto const& each : connections_)
        each->wire->cut();
    scheduler_.run_all();
    auto const& memory = store().memory;
    for (int i = 0; i < 200 && (memory.used().sessions > 0 || memory.used().bytes > 0); ++i) {
        advance(1min);
        scheduler_.run_all();
    }
    require(memory.used().sessions == 0, "abandoned sessions are kept for ever");
    require(memory.used().bytes == 0 && memory.used().streams == 0, "an ended session left something behind");
}

}
