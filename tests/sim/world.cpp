// How a world is made, goes on and ends.
#include "trace.hpp"
#include "world_reruns.hpp"

#include <cstdlib>

namespace belay::sim {

using namespace std::chrono_literals;

namespace {

bool is_always_late()
{
    return std::getenv("BELAY_LATE") != nullptr;
}

}

world::world(std::uint64_t seed) : random_(seed), scheduler_(random_), next_seed_(~seed)
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
    settings_.backlog = chance(6) ? runtime::backlog_policy::none : runtime::backlog_policy::undelivered;
    settings_.standalone = chance(6) ? store::standalone_policy::conflict : store::standalone_policy::takeover;
    settings_.redeliver_requests = chance(4);
    limits.session_lifetime = !is_steady_ && chance(8) ? base::duration(1min + 1s * random_.below(1000)) : 0s;
    settings_.call_max = chance(4) ? base::duration(20s) : base::duration(1h);

    wanted_processes_ = chance(2) ? 1 : 2 + random_.below(3);
    // Who reads all the time cannot do so through a fault.
    weather_ = !is_steady_ && chance(2)                            ? weather::stormy
        : wanted_processes_ == 1 && chance(3) && !is_always_late() ? weather::calm
                                                                   : weather::late;
    if (has_faults()) {
        auto const one_in = [&](std::uint64_t few) { return chance(3) ? 0 : few + random_.below(10 * few); };
        network_faults_ = {one_in(15), one_in(8), one_in(15), one_in(5)};
    }
    work_ = std::make_unique<work>(*this, nullptr, true);
    other_work_ = std::make_unique<work>(*this, work_.get(), false);
    make_store();
    for (std::size_t i = 0; i < wanted_processes_; ++i)
        start_process();
}

world::~world()
{
    connections_.clear();
    receipts_.clear();
    exchanges_.clear();
    held_.clear();
    while (!processes_.empty())
        kill(*processes_.back());
}

void world::make_store()
{
    lives_.push_back(std::make_unique<store_life>(settings_.limits, scheduler_.clock(), random_.next() >> 32));
    store().record.on_found([this](std::string const& id, recorded_call const& meant) {
        cancelled_.insert(meant.root);
        looked_up_.emplace_back(meant.key.stream, id);
    });
    store().record.on_overdue([this](store::session_key const& key) {
        for (auto const& each : sessions_)
            if (each->in == &store() && each->key() == key)
                overdue(*each);
    });
    store().record.ask_who_runs([this](std::string const& owner, store::stream_key const& key) {
        return std::ranges::any_of(processes_, [&](auto const& each) {
            return each->way().owner() == owner && each->node().calls().runs(key);
        });
    });
    store().record.on_expired([this](store::session_key const& key) {
        for (auto const& each : sessions_)
            if (each->in == &store() && each->key() == key)
                expired(*each);
    });
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

/// Most requests go to processes that run; who has stopped is found out by few.
world::place world::any_place()
{
    if (processes_.empty())
        return {};
    auto* at = processes_[random_.below(processes_.size())].get();
    if (at->is_paused() && !chance(4))
        at = processes_[random_.below(processes_.size())].get();
    return {at, &at->any_loop(), at->way().failures()};
}

bool world::is_open(call const& which) const
{
    // Of one that vanished only the server does not know.
    return std::ranges::any_of(
        connections_, [&](auto const& each) { return each->which == &which && !each->wire->has_vanished(); });
}

std::uint64_t world::begin_exchange(process& with, std::move_only_function<void()> broken)
{
    exchanges_.emplace(++last_exchange_, exchange{&with, std::move(broken)});
    return last_exchange_;
}

void world::ask(place at, std::move_only_function<void()> work)
{
    if (at.at->is_paused())
        at.loop->post(std::move(work));
    else
        scheduler_.on(*at.loop, [&] { work(); });
}

bool world::may_be_unavailable(place at) const
{
    return at.at->node().departures().is_draining() || at.at->way().is_cut() || at.at->way().failures() > at.failures;
}

// --- the run

void world::step()
{
    switch (random_.below(30)) {
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
    case 22: hold_call(); break;
    case 23: broadcast(); break;
    case 24: use_record(); break;
    default: read_some(); break;
    }
    if (has_faults() && !has_healed_ && chance(20))
        fault();
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
                resume(*each);
                is_moving = true;
            }
    }
}

void world::advance(base::duration by)
{
    if (by >= 1s) // no store is that late, and no loop that busy
        scheduler_.run_all();
    // Well below the time after which a reader counts as stalled.
    constexpr base::duration pace = 2s;
    auto const is_read = [](auto const& each) {
        return each->is_steady && !each->is_answered() && !each->is_lost && !each->of->is_over();
    };
    while (by > base::duration::zero() && std::ranges::any_of(calls_, is_read)) {
        keep_reading();
        auto const slice = std::min(by, pace);
        scheduler_.advance(slice);
        by -= slice;
    }
    if (by <= base::duration::zero())
        return;
    if (by >= settings_.lease) {
        trace("time jumps by {} s", by / 1s);
        has_jumped_ = true;
    }
    // Nobody does anything meanwhile, as if all had stood still.
    scheduler_.advance(by);
    if (by >= settings_.lease / 3)
        for (auto const& each : processes_)
            each->trouble();
}

void world::run()
{
    open_session();
    auto const steps = 60 + random_.below(240);
    for (std::uint64_t i = 0; i < steps; ++i)
        step();
    if (chance(3) && !processes_.empty()) {
        end_faults();
        if (chance(2)) // nothing else runs, and a call is being made
            settle();
        auto& leaving = *processes_[random_.below(processes_.size())];
        drain(leaving);
        for (auto more = random_.below(20); more > 0; --more)
            step();
        end_drain(leaving);
    }
    settle();
    check_end();
}

void world::settle()
{
    end_faults();
    // Who waits for its handler before it gives a call up does so no longer.
    for (auto const& each : processes_)
        if (each->is_interrupted)
            ask({each.get(), &each->loop(0)}, [&each] { each->node().calls().interrupt_all(); });
    // Somebody has to be there for what others have given up.
    if (std::ranges::all_of(processes_, [](auto const& each) { return each->node().departures().is_draining(); }))
        start_process();
    auto const healed_at = scheduler_.now();
    auto const all_known_by = healed_at + 3 * settings_.lease + 10s;
    // Everybody reads, tools come to their end, and callers come back until they have their answer.
    for (int round = 0; round < 1500; ++round) {
        scheduler_.run_all();
        for (std::size_t i = 0; i < connections_.size(); ++i)
            read(*connections_[i], ~std::size_t(0));
        scheduler_.run_all();
        drop_finished_connections();
        bool is_waiting = false;
        for (auto const& each : sessions_)
            if (each->is_deleting && !each->is_deleted && !each->is_gone)
                remove(*each);
        for (auto const& each : calls_) {
            if (each->is_answered() || each->is_lost || each->of->is_over())
                continue;
            is_waiting = true;
            for (auto const& [question, mark] : std::exchange(each->questions, {}))
                answer(*each, question, mark);
            if (!is_open(*each))
                resume(*each);
        }
        check_always();
        // What a fault has left behind has been found by then.
        bool const is_due = !(has_faults() || has_killed_ || !interrupted_.empty()) || scheduler_.now() >= all_known_by;
        // A call that is held has nobody who would come back for it.
        bool const is_held
            = std::ranges::any_of(held_, [](auto const& each) { return each->at && each->responses == 0; });
        is_waiting = is_waiting || is_held;
        if (!is_waiting && connections_.empty() && is_due)
            break;
        // Those who read all the time do so now too.
        advance(is_waiting ? 500ms : 2s);
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
