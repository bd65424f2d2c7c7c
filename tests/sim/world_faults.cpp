// What can happen to processes and to the store. docs/design/002-what-a-fault-may-cost.md says what it may cost.
#include "trace.hpp"
#include "world_reruns.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

void world::start_process()
{
    bool const is_near = weather_ == weather::calm;
    links_.push_back(std::make_shared<link>(
        scheduler_, store().record, is_near ? link::pace::at_once : link::pace::late, network_faults_,
        wanted_processes_ == 1 && !has_faults() ? store::durability::process : store::durability::shared));
    // A clock that is right where nothing else goes wrong either.
    process::skew skew;
    if (has_faults() || wanted_processes_ > 1)
        skew = {1s * random_.below(10'000), static_cast<std::int64_t>(skewed_clock::unit - 20 + random_.below(41))};
    auto const loops = 1 + random_.below(3);
    processes_.push_back(std::make_unique<process>(
        scheduler_, links_.back(), settings_, metrics_, ++next_seed_, loops, skew,
        wanted_processes_ > 1 && chance(4) ? *other_work_ : *work_));
    auto* const fresh = processes_.back().get();
    fresh->node().departures().on_departure(
        [this, fresh] { fresh->loop(0).post([this, fresh] { drain_step(*fresh); }); });
}

void world::fault()
{
    switch (random_.below(8)) {
    case 0:
        if (!processes_.empty())
            kill(*processes_[random_.below(processes_.size())]);
        break;
    case 1:
    case 2:
        if (processes_.size() < wanted_processes_)
            start_process();
        else
            replace_process();
        break;
    case 3: pause_process(); break;
    case 4: cut_link(); break;
    case 5: stop_store(); break;
    case 6:
        if (chance(6))
            lose_data();
        break;
    default: // as much time as a lease, or a little more
        advance(settings_.lease / 3 * (1 + random_.below(5)) + 1ms * random_.below(500));
        break;
    }
}

/// Nothing of it reaches the store or its clients any more, except what is under way.
void world::kill(process& which)
{
    trace("kill {}", which.way().owner());
    has_killed_ = true;
    for (auto const& each : connections_)
        if (each->at == &which) {
            each->at = nullptr;
            each->wire->lose_server();
            auto const held_until = each->of->in->record.held_until(each->owner, each->since);
            each->of->last_active = std::max(each->of->last_active, std::min(each->wire->over_at(), held_until));
        }
    for (auto const& each : receipts_)
        if (which.has(each->loop()))
            each->lose_server();
    for (auto const& each : calls_)
        if (each->at == &which) {
            each->at = nullptr;
            for (auto& request : each->requests)
                if (auto const runs = std::exchange(request.runs, nullptr))
                    runs->let_go();
        }
    for (auto const& each : held_)
        if (each->at == &which) {
            each->at = nullptr;
            each->runs->let_go();
        }
    for (auto* const runs : {&reruns_, &former_})
        for (auto& each : *runs)
            if (each.at == &which) {
                each.at = nullptr;
                std::exchange(each.runs, nullptr)->let_go();
            }
    std::vector<std::move_only_function<void()>> broken;
    for (auto at = exchanges_.begin(); at != exchanges_.end();)
        if (at->second.with == &which) {
            broken.push_back(std::move(at->second.broken));
            at = exchanges_.erase(at);
        } else {
            ++at;
        }
    std::erase_if(processes_, [&](auto const& each) { return each.get() == &which; });
    for (auto& each : broken)
        each();
}

/// A new incarnation, sometimes before the old one has gone.
void world::replace_process()
{
    auto& old = *processes_[random_.below(processes_.size())];
    if (chance(2) && !old.is_paused()) {
        if (!old.node().departures().is_draining())
            drain(old);
        else
            end_drain(old);
        return;
    }
    kill(old);
    start_process();
}

/// Or lets one go on that was paused.
void world::pause_process()
{
    if (processes_.empty())
        return;
    auto& which = *processes_[random_.below(processes_.size())];
    trace("pause or resume {}", which.way().owner());
    if (which.is_paused())
        which.resume();
    else
        which.pause(chance(2));
}

/// Or mends one.
void world::cut_link()
{
    if (processes_.empty())
        return;
    auto& way = processes_[random_.below(processes_.size())]->way();
    trace("cut or mend {}", way.owner());
    if (way.is_cut())
        way.mend();
    else
        way.cut();
}

/// Or starts it again, with its data.
void world::stop_store()
{
    bool const was_there = std::ranges::any_of(processes_, [](auto const& each) { return !each->way().is_cut(); });
    for (auto const& each : processes_)
        if (was_there)
            each->way().cut();
        else
            each->way().mend();
}

/// The store begins anew. Nothing is owed to anybody.
void world::lose_data()
{
    trace("the store loses its data");
    for (auto const& each : links_)
        each->cut();
    make_store();
    for (auto const& each : links_) {
        each->move_to(store().record);
        if (chance(2))
            each->mend();
    }
    for (auto const& each : sessions_)
        each->is_gone = true;
}

/// Everybody is there again, and everything arrives in time.
void world::end_faults()
{
    trace("faults end at {} ms", scheduler_.now().time_since_epoch() / 1ms);
    has_healed_ = true;
    network_faults_ = {};
    for (auto const& each : links_) {
        each->set_faults({});
        each->mend();
    }
    for (auto const& each : processes_)
        if (each->is_paused())
            each->resume();
    while (processes_.size() < wanted_processes_)
        start_process();
    scheduler_.run_all();
}

// --- the end of a process, as the program does it: refuse what is new, let calls finish for a while, interrupt the
// rest, and close the connections when no call runs

void world::drain(process& which)
{
    begin_call();
    begin_call();
    ask({&which, &which.loop(0)}, [this, &which] {
        trace("drain {}", which.way().owner());
        which.node().departures().drain();
        drain_step(which);
    });
}

void world::end_drain(process& which)
{
    if (std::ranges::find(processes_, &which, &std::unique_ptr<process>::get) == processes_.end())
        return;
    if (chance(2)) {
        interrupted_.insert(which.way().owner());
        which.is_interrupted = true;
        ask({&which, &which.loop(0)}, [&which] { which.node().calls().interrupt_all(); });
        if (!has_faults()) {
            scheduler_.run_all();
            // Who waits for its handler does so no longer.
            ask({&which, &which.loop(0)}, [&which] { which.node().calls().interrupt_all(); });
            scheduler_.run_all();
            require(which.node().departures().calls() == 0, "an interrupted call runs on");
        }
    }
    if (wanted_processes_ > 1 && which.is_drained) {
        kill(which);
        start_process();
    }
}

void world::drain_step(process& which)
{
    if (which.is_drained || !which.node().departures().is_draining() || which.node().departures().calls() > 0)
        return;
    which.is_drained = true;
    auto& record = store().record;
    for (auto const& each : calls_) {
        if (each->at != &which)
            continue;
        auto const* const known = record.call_of(each->stream);
        require(
            !known || known->is_finished || known->owner != which.way().owner() || !record.keeps(known->key.session),
            "a call was left out of the drain");
    }
    which.node().attachments().close_all(engine::close_reason::draining);
}

}
