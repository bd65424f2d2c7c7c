// The promises that are checked after every step, and at the end.
#include "world_parts.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

void world::check_always()
{
    require(!store_->let_duplicates_in(), "two calls with one id, where that is refused");
    // I4
    auto const used = memory_->used();
    auto const& limits = settings_.limits;
    require(used.sessions <= limits.sessions, "more sessions than allowed");
    require(used.bytes <= limits.bytes_total + store::limits::reserve(limits.bytes_total), "more bytes than allowed");
    require(used.streams <= used.sessions * (limits.streams_per_session + 1), "more streams than allowed");
    for (auto const& each : connections_)
        require(
            each->wire->most_staged()
                <= 2 * settings_.follower.page.bytes + limits.event_bytes + 200 * settings_.follower.page.events + 1000,
            "a connection buffers more than a page");
}

void world::check_balance()
{
    auto const appended = metrics_.events_appended.Value();
    auto const delivered = static_cast<double>(counts_.first_deliveries);
    auto const pending = static_cast<double>(memory_->census().pending);
    auto const lost = static_cast<double>(counts_.trimmed_undelivered + counts_.ended_undelivered);
    require(
        appended == delivered + pending + lost,
        fmt::format("appended {} != delivered {} + pending {} + lost {}", appended, delivered, pending, lost));
}

void world::check_end()
{
    for (auto const& each : calls_) {
        bool const is_excused = each->is_lost || each->of->is_deleted || each->of->is_gone;
        // I1: exactly one answer to each request, and its caller has it.
        require(is_excused || each->is_answered(), fmt::format("a call waits for ever: stream {:x}", each->stream));
        require(
            each->first == 0
                || std::ranges::any_of(
                    each->of->run_with_key, [&](auto const& run) { return run.second == each->first; }),
            "repeats a call that was never made");
        for (auto const& request : each->requests)
            if (request.runs) {
                require(!request.runs->is_misled, "the answer of another caller");
                require(request.runs->answers <= request.runs->questions, "a question was answered twice");
            }
        // Whatever became of the caller, the log has one answer per request, the last of them as its last event.
        auto const& log = store_->log(each->stream);
        auto const answers
            = static_cast<std::size_t>(std::ranges::count(log, store::event_kind::response, &store::event_data::kind));
        require(answers <= each->requests.size(), "more answers than requests in one log");
        require(
            answers == each->requests.size() || each->of->is_deleted || each->of->is_gone || !each->on->is_ended(),
            "a call ended without an answer in its log");
    }
    check_balance();
    // An abandoned world empties itself.
    for (auto const& each : connections_)
        each->wire->cut();
    scheduler_.run_all();
    for (int i = 0; i < 200 && memory_->used().sessions > 0; ++i) {
        scheduler_.advance(1min);
        scheduler_.run_all();
    }
    require(memory_->used().sessions == 0, "abandoned sessions are kept for ever");
    require(memory_->used().bytes == 0 && memory_->used().streams == 0, "an ended session left something behind");
    check_balance();
}

}
