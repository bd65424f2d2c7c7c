// How a world is made, goes on and ends.
#include "world_parts.hpp"

#include <cstdlib>

namespace belay::sim {

using namespace std::chrono_literals;

namespace {

bool is_always_late()
{
    return std::getenv("BELAY_LATE") != nullptr;
}

}

world::world(std::uint64_t seed) : random_(seed), node_random_(~seed), scheduler_(random_, 1 + random_.below(3))
{
    auto& limits = settings_.limits;
    has_wide_retention_ = chance(3);
    is_steady_ = !has_wide_retention_ && chance(3);
    bool const has_room = has_wide_retention_ || is_steady_;
    limits.events_per_stream = has_wide_retention_ ? 100'000 : (is_steady_ ? 8 : 4) + random_.below(40);
    limits.bytes_per_stream = has_wide_retention_ ? 64u << 20 : (is_steady_ ? 20'000 : 2000) + random_.below(30'000);
    limits.streams_per_session = 2 + random_.below(8);
    // Where room is short, stores are full of what cannot go most of the time.
    bool const is_cramped = !has_room && chance(3);
    limits.bytes_per_session = has_room ? 64u << 20 : (is_cramped ? 5'000 : 12'000) + random_.below(60'000);
    limits.bytes_total = has_room ? 64u << 20
        : is_cramped              ? 8'000 + random_.below(20'000)
                                  : 40'000 + random_.below(200'000);
    // Sometimes less than the shortest answer.
    limits.event_bytes = is_cramped && chance(3) ? 120 : 3'000;
    limits.sessions = 2 + random_.below(6);
    limits.event_age = has_wide_retention_ ? base::duration(100h)
        : chance(2)                        ? base::duration(10min)
                                           : base::duration(1min);
    settings_.follower.page = {1 + random_.below(20), 200 + random_.below(4000)};
    settings_.follower.max_age = chance(4) ? base::duration(5s + 1s * random_.below(60)) : base::duration::zero();
    // Who shares too few connections with others is not there all the time.
    settings_.open_without_origin = is_steady_ ? 64 : 2 + random_.below(5);
    settings_.open_with_origin = is_steady_ ? 64 : 1 + random_.below(4);
    settings_.flow.waits = is_steady_ || !chance(5);
    settings_.priming_legacy = chance(4) ? runtime::legacy_priming::off : runtime::legacy_priming::typed;
    settings_.duplicate_ids = chance(4) ? runtime::duplicate_policy::reject : runtime::duplicate_policy::isolate;
    settings_.call_max = chance(4) ? base::duration(20s) : base::duration(1h);
    memory_ = std::make_unique<store::memory_store>(limits, random_.next() >> 32, &counts_);
    store_ = std::make_unique<recording_store>(
        *memory_, scheduler_,
        chance(3) && !is_always_late() ? recording_store::pace::at_once : recording_store::pace::late);
    store_->on_found(
        [this](auto const&, auto const& id, auto const* meant, auto found) { looked_up(id, meant, found); });
    node_ = std::make_unique<runtime::node>(settings_, *store_, node_random_, metrics_, base::logger());
    node_->on_departure([this] { scheduler_.loop(0).post([this] { drain_step(); }); });
    node_->start(scheduler_.loop(0));
}

world::~world()
{
    // Tools hold calls and calls hold the node's sessions: work under way goes first.
    connections_.clear();
    for (auto const& each : calls_)
        for (auto const& request : each->requests)
            if (request.runs)
                request.runs->is_stopped = true;
    for (bool is_done = false; !is_done;)
        try {
            scheduler_.run_all();
            is_done = true;
        } catch (...) { // a broken promise is being reported already
        }
    node_->stop();
}

void world::require(bool holds, std::string const& what) const
{
    if (!holds)
        throw broken_promise(what);
}

world::session* world::any_session()
{
    return sessions_.empty() ? nullptr : sessions_[random_.below(sessions_.size())].get();
}

world::call* world::any_call()
{
    return calls_.empty() ? nullptr : calls_[random_.below(calls_.size())].get();
}

world::call* world::call_of(store::stream_id stream) const
{
    auto const found = std::ranges::find(calls_, stream, [](auto const& each) { return each->stream; });
    return found == calls_.end() ? nullptr : found->get();
}

world::connection* world::any_connection()
{
    return connections_.empty() ? nullptr : connections_[random_.below(connections_.size())].get();
}

bool world::is_open(call const& which) const
{
    // Of one that vanished only the server does not know.
    return std::ranges::any_of(
        connections_, [&](auto const& each) { return each->which == &which && !each->wire->has_vanished(); });
}

// --- the run

void world::step()
{
    switch (random_.below(27)) {
    case 0: open_session(); break;
    case 1:
    case 2:
    case 3: begin_call(); break;
    case 4: cancel_call(); break;
    case 5:
    case 6: resume_call(); break;
    case 7: listen(); break;
    case 8: announce(); break;
    case 9: cut(); break;
    case 10: vanish(); break;
    case 11: end_session(); break;
    case 12: reinitialize(); break;
    case 13: present_foreign_id(); break;
    case 14:
    case 15:
    case 16:
    case 17: pass_time(); break;
    case 18: answer_some(); break;
    case 19: begin_batch(); break;
    case 20: subscribe(); break;
    case 21: update_resource(); break;
    default: read_some(); break;
    }
    // Some of the work that this has caused; the rest meets the next operation half done.
    for (auto runs = random_.below(30); runs > 0 && scheduler_.run_one(); --runs) {
    }
    drop_finished_connections();
    check_always();
}

/// Clients that read all the time have read what there is, and are back if their connection was ended.
void world::keep_reading()
{
    std::set<call*> returned;
    for (bool is_moving = true; is_moving;) {
        scheduler_.run_all();
        is_moving = false;
        for (std::size_t i = 0; i < connections_.size(); ++i)
            if (connections_[i]->is_steady())
                is_moving = read(*connections_[i], ~std::size_t(0)) || is_moving;
        drop_finished_connections();
        for (auto const& each : calls_)
            if (each->is_steady && !each->is_answered() && !is_open(*each) && returned.insert(each.get()).second) {
                resume(*each, scheduler_.any_loop());
                is_moving = true;
            }
    }
}

void world::advance(base::duration by)
{
    // Well below the time after which a reader counts as stalled.
    constexpr base::duration pace = 2s;
    auto const is_read = [](auto const& each) {
        return each->is_steady && !each->is_answered() && !each->is_lost && !each->of->is_deleted && !each->of->is_gone;
    };
    while (by > base::duration::zero() && std::ranges::any_of(calls_, is_read)) {
        keep_reading();
        auto const slice = std::min(by, pace);
        scheduler_.advance(slice);
        by -= slice;
    }
    if (by > base::duration::zero())
        scheduler_.advance(by);
}

void world::run()
{
    open_session();
    auto const steps = 60 + random_.below(240);
    for (std::uint64_t i = 0; i < steps; ++i)
        step();
    if (chance(3))
        drain();
    settle();
    check_end();
}

void world::settle()
{
    // Everybody reads, tools come to their end, and callers come back until they have their answer.
    for (int round = 0; round < 1500; ++round) {
        scheduler_.run_all();
        for (std::size_t i = 0; i < connections_.size(); ++i)
            read(*connections_[i], ~std::size_t(0));
        scheduler_.run_all();
        drop_finished_connections();
        bool is_waiting = false;
        for (auto const& each : calls_) {
            if (each->is_answered() || each->is_lost || each->of->is_deleted || each->of->is_gone)
                continue;
            is_waiting = true;
            for (auto const& [question, mark] : std::exchange(each->questions, {}))
                answer(*each, question, mark);
            if (!is_open(*each))
                resume(*each, scheduler_.any_loop());
        }
        check_always();
        if (!is_waiting && connections_.empty())
            break;
        advance(500ms); // those who read all the time do so now too
        for (auto const& each : connections_)
            each->wire->tick();
        look_for_arrivals();
        if (!is_waiting)
            for (auto const& each : connections_)
                if (!each->which)
                    each->wire->cut();
    }
    scheduler_.run_all();
}

}
