// What can happen in a world.
#include "engine/cursor.hpp"
#include "protocol/message.hpp"
#include "runtime/repetition.hpp"
#include "world_parts.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

void world::open_session()
{
    auto& loop = scheduler_.any_loop();
    runtime::client_hello hello;
    hello.principal = chance(3) ? "bob" : "anonymous";
    hello.revision = chance(3) ? protocol::revision::r2025_06_18 : protocol::newest_revision;
    auto const principal = hello.principal;
    auto const revision = hello.revision;
    scheduler_.on(loop, [&] {
        node_->open(std::move(hello), loop, [this, principal, revision](result<runtime::session_use> use) {
            if (!use) {
                require(
                    use.error() == errc::too_many_sessions || use.error() == errc::no_space
                        || (node_->is_draining() && use.error() == errc::unavailable),
                    "open: " + use.error().message());
                return;
            }
            auto fresh = std::make_unique<session>();
            fresh->id = base::to_string(use->session()->key.id);
            fresh->principal = principal;
            fresh->revision = revision;
            fresh->standalone = use->record()->standalone;
            fresh->last_active = scheduler_.now();
            sessions_.push_back(std::move(fresh));
        });
    });
}

void world::use(session& of, sim_loop& loop, std::move_only_function<void(runtime::session_use)> then)
{
    bool const was_deleted = of.is_deleted;
    ++of.requests;
    scheduler_.on(loop, [&] {
        node_->use(
            of.principal, of.id, loop,
            [this, &of, was_deleted, then = std::move(then)](result<runtime::session_use> use) mutable {
                --of.requests;
                if (use) {
                    require(!was_deleted, "a deleted session was served");
                    require(!of.is_gone, "a session that was gone came back");
                    of.last_active = scheduler_.now();
                    return then(std::move(*use));
                }
                require(use.error() == errc::not_found, "use: " + use.error().message());
                if (of.is_deleted || of.is_gone)
                    return;
                // I1: a session that is in use does not expire.
                require(
                    scheduler_.now() >= of.last_active + settings_.limits.session_idle,
                    fmt::format(
                        "a session expired before its time, {} ms after it was last active",
                        (scheduler_.now() - of.last_active) / 1ms));
                for (auto const& each : connections_)
                    require(
                        each->of != &of || each->wire->is_over() || each->wire->is_cut(),
                        "a session with an open connection expired");
                for (auto const& each : calls_)
                    require(each->of != &of || each->on->is_ended(), "a session with a running call expired");
                of.is_gone = true;
            });
    });
}

void world::end_session()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone || !chance(3))
        return;
    auto& loop = scheduler_.any_loop();
    use(*of, loop, [this, of, &loop](runtime::session_use taken) {
        of->is_deleted = true;
        node_->end(taken.session(), loop, [](result<void>) {});
    });
}

/// I4: refused before anything ran.
void world::require_refusal(session const& of, std::error_code why) const
{
    require(
        why == errc::too_many_streams || why == errc::no_space || (why == errc::not_found && of.is_deleted)
            || (why == errc::duplicate_id && settings_.duplicate_ids == runtime::duplicate_policy::reject)
            || (why == errc::unavailable && node_->is_draining()),
        "begin_call: " + why.message());
}

/// What a tool is going to do.
struct world::plan {
    std::vector<tool::step> steps;
    std::size_t answer_bytes = 0;
};

world::plan world::make_plan(bool is_steady)
{
    plan made;
    auto const count = random_.below(chance(4) ? 200 : 12);
    for (std::uint64_t i = 0; i < count; ++i) {
        using kind = tool::step::kind;
        auto const pick = random_.below(10);
        if (pick < 6)
            made.steps.push_back({kind::emit, random_.below(!is_steady && chance(20) ? 4000 : 300), {}});
        else if (pick < 8 && !is_steady) // progress waits for no reader
            made.steps.push_back({kind::progress, 0, {}});
        else if (chance(20))
            made.steps.push_back({kind::ask, 0, {}});
        else if (pick < 9 || !chance(5))
            made.steps.push_back({kind::wait, 0, 1ms * random_.below(chance(8) ? 20'000 : 600)});
        else
            made.steps.push_back({kind::close_connection, 0, {}});
    }
    made.answer_bytes = random_.below(!is_steady && chance(20) ? 4000 : 200);
    return made;
}

/// Fresh pages begin at 0 again. Some clients have ids that take many times their length on the wire.
std::string world::any_id(std::uint64_t number)
{
    if (!chance(8))
        return fmt::format("{}", number);
    std::string text = fmt::format("\"{}", number);
    for (auto left = random_.below(256); left > 0; --left)
        text += "\\u0001";
    return text + '"';
}

/// The client's end of a call that has begun.
void world::began(session& of, sim_loop& loop, result<runtime::begun_call> const& begun, std::unique_ptr<call> fresh)
{
    require(!is_drained_, "a call began after the drain had counted none");
    fresh->of = &of;
    fresh->on = begun->call;
    fresh->stream = begun->call->stream().stream;
    auto line = std::make_unique<connection>();
    line->wire = std::make_shared<wire>(loop, begun->following, 100 + random_.below(chance(2) ? 500 : 100'000));
    line->of = &of;
    line->which = fresh.get();
    line->knows_position = true;
    calls_.push_back(std::move(fresh));
    connections_.push_back(std::move(line));
}

void world::begin_call()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone)
        return;
    auto& loop = scheduler_.any_loop();
    bool const is_steady = is_steady_ && chance(2);
    runtime::call_request request;
    request.id = any_id(random_.below(3));
    request.revision = of->revision;
    request.from = chance(2) ? runtime::caller::browser : runtime::caller::direct;
    request.traits.waits_for_reader = is_steady || !chance(6);
    if (chance(8))
        request.traits.max_duration = 3s;
    if (!is_steady && chance(3))
        request.once = store::once_key{fmt::format("k{}", random_.below(4)), chance(8) ? 2u : 1u};
    use(*of, loop,
        [this, of, &loop, request, is_steady, plan = make_plan(is_steady)](runtime::session_use taken) mutable {
            auto const id = request.id;
            auto const key = request.once ? request.once->text : std::string();
            ++of->calls_with_key[key];
            node_->begin_call(
                taken, loop, std::move(request),
                [this, of, &loop, id, key, is_steady, plan = std::move(plan)](result<runtime::begun_call> begun) {
                    bool const may_repeat = of->calls_with_key[key] > 1;
                    if (!begun && (begun.error() == errc::key_spent || begun.error() == errc::key_mismatch))
                        return require(may_repeat, "a fresh key was refused");
                    if (!begun)
                        return require_refusal(*of, begun.error());
                    auto const mark = fmt::format("c{}", calls_.size());
                    auto const runs = std::make_shared<tool>(begun->call, plan.steps, plan.answer_bytes, mark);
                    auto fresh = std::make_unique<call>();
                    fresh->is_steady = is_steady;
                    fresh->requests.push_back({id, mark, runs});
                    if (begun->twin) {
                        require(may_repeat, "a call was not made");
                        fresh->first = *begun->twin;
                    } else {
                        require(
                            key.empty() || of->run_with_key.emplace(key, begun->call->stream().stream).second,
                            "a call with a key was made twice");
                        runs->stop_when_interrupted();
                    }
                    began(*of, loop, begun, std::move(fresh));
                    auto const sink = connections_.back()->wire;
                    if (begun->twin)
                        runtime::repeat(*node_, begun->call, *begun->twin, {});
                    else
                        runs->go();
                    begun->following->start(sink);
                });
        });
}

/// Several requests on one stream, as the transport does it.
void world::begin_batch()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone)
        return;
    struct member {
        std::string id;
        runtime::call_traits traits;
        plan does;
        bool is_instant;
    };
    auto& loop = scheduler_.any_loop();
    std::vector<member> members;
    for (auto i = random_.below(2); i < 5; i += 1 + random_.below(3)) {
        runtime::call_traits traits;
        if (chance(8))
            traits.max_duration = 3s;
        members.push_back({any_id(i), traits, make_plan(false), chance(4)});
    }
    runtime::call_request request;
    for (auto const& each : members)
        request.id += (request.id.empty() ? "" : "\n") + each.id;
    request.revision = of->revision;
    request.from = chance(2) ? runtime::caller::browser : runtime::caller::direct;
    use(*of, loop, [this, of, &loop, request, members = std::move(members)](runtime::session_use taken) mutable {
        node_->begin_call(
            taken, loop, std::move(request),
            [this, of, &loop, members = std::move(members)](result<runtime::begun_call> begun) {
                if (!begun)
                    return require_refusal(*of, begun.error());
                auto fresh = std::make_unique<call>();
                auto const name = fmt::format("b{}", calls_.size());
                for (auto const& each : members)
                    fresh->requests.push_back({each.id, fmt::format("{}-{}", name, fresh->requests.size()), nullptr});
                auto& requests = fresh->requests;
                began(*of, loop, begun, std::move(fresh));
                auto const sink = connections_.back()->wire;
                auto const& batch = begun->call;
                batch->expect_answers(members.size());
                for (std::size_t i = 0; i < members.size(); ++i) {
                    auto const& each = members[i];
                    auto const line = static_cast<std::uint32_t>(i);
                    if (each.is_instant) {
                        batch->answer_member(line, each.id, tool::response(each.id, requests[i].mark, 0));
                        continue;
                    }
                    requests[i].runs = std::make_shared<tool>(
                        node_->begin_member(batch, line, each.id, each.traits), each.does.steps, each.does.answer_bytes,
                        requests[i].mark);
                    requests[i].runs->stop_when_interrupted();
                    requests[i].runs->go();
                }
                begun->following->start(sink);
            });
    });
}

void world::subscribe()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone)
        return;
    auto const uri = fmt::format("test://{}", random_.below(3));
    bool const wanted = !chance(3);
    use(*of, scheduler_.any_loop(), [this, of, uri, wanted](runtime::session_use taken) {
        auto done = [this, of, uri, wanted](result<void> changed) {
            if (!changed)
                return require(
                    changed.error() == errc::no_space || (changed.error() == errc::not_found && of->is_deleted),
                    "subscribe: " + changed.error().message());
            if (wanted)
                of->subscriptions.insert(uri);
            else
                of->subscriptions.erase(uri);
        };
        if (wanted)
            node_->subscribe(taken.session(), uri, std::move(done));
        else
            node_->unsubscribe(taken.session(), uri, std::move(done));
    });
    scheduler_.run_all(); // or what two of them leave behind would be anybody's guess
}

void world::update_resource()
{
    scheduler_.run_all();
    auto const uri = fmt::format("test://{}", random_.below(3));
    auto const text = fmt::format(R"({{"updated":"{}","n":{}}})", uri, ++updates_);
    std::map<session*, std::size_t> refused;
    for (auto const& each : sessions_)
        refused[each.get()] = store_->refused(each->standalone);
    scheduler_.on(scheduler_.any_loop(), [&] { node_->notify_subscribers(uri, text); });
    scheduler_.run_all();
    for (auto const& each : sessions_) {
        auto const& log = store_->log(each->standalone);
        bool const was_told = std::ranges::any_of(log, [&](auto const& event) { return *event.payload == text; });
        require(!was_told || each->subscriptions.contains(uri), "an update for a session that is not subscribed"); // I3
        bool is_kept = false; // it may have expired without a word
        memory_->load(
            {each->principal, *base::parse_id128(each->id)}, [&](auto const& record) { is_kept = record.has_value(); });
        bool const has_room = store_->refused(each->standalone) == refused[each.get()];
        require(was_told || !each->subscriptions.contains(uri) || !is_kept || !has_room, "a subscriber was not told");
    }
}

void world::cancel_call()
{
    auto* const which = any_call();
    if (!which || which->of->is_deleted || which->of->is_gone)
        return;
    auto& loop = scheduler_.any_loop();
    auto* const of = which->of;
    auto const id = which->requests[random_.below(which->requests.size())].id;
    use(*of, loop, [this, id, &loop](runtime::session_use taken) { node_->cancel(taken.session(), id, loop, [] {}); });
    if (!chance(3))
        return;
    looked_up_.clear();
    scheduler_.run_all();
    for (auto const& [stream, named] : looked_up_)
        if (auto const* const hit = call_of(stream); hit && !hit->of->is_deleted && !hit->of->is_gone)
            for (auto const& each : hit->requests)
                require(each.id != named || !each.runs || each.runs->on->is_ended(), "a cancelled call runs on");
}

/// A call was looked up by its id, to be cancelled.
void world::looked_up(
    std::string const& id, recording_store::opened_call const* meant, std::optional<store::stream_id> found)
{
    require(
        found == (meant ? std::optional(meant->key.stream) : std::nullopt),
        fmt::format("a cancel of {} found another call than the one that is meant", id));
    if (!meant)
        return;
    cancelled_.insert(meant->root);
    looked_up_.emplace_back(meant->key.stream, id);
}

void world::follow(session& of, sim_loop& loop, call* which, std::optional<std::string> cursor)
{
    auto const capacity = 100 + random_.below(chance(2) ? 500 : 100'000);
    bool const has_origin = chance(2);
    auto const from = cursor ? engine::parse_event_id(*cursor)->sequence : 0;
    if (which)
        which->is_resuming = true;
    // A client that comes back has left its old connection; the server may or may not have heard.
    for (auto const& each : connections_)
        if (each->of == &of && each->which == which) {
            if (chance(2))
                each->wire->cut();
            else
                each->wire->vanish();
        }
    use(of, loop, [this, &of, &loop, which, cursor, capacity, has_origin, from](runtime::session_use taken) {
        runtime::follow_request request{cursor, has_origin ? runtime::caller::browser : runtime::caller::direct};
        node_->follow(
            taken, loop, request,
            [this, &of, &loop, which, cursor, capacity,
             from](std::expected<std::shared_ptr<runtime::following>, runtime::follow_refusal> followed) {
                using refusal = runtime::follow_refusal;
                if (which)
                    which->is_resuming = false;
                if (followed) {
                    auto line = std::make_unique<connection>();
                    line->wire = std::make_shared<wire>(loop, *followed, capacity);
                    line->of = &of;
                    line->which = which;
                    line->position = from;
                    line->knows_position = cursor.has_value();
                    auto const sink = line->wire;
                    connections_.push_back(std::move(line));
                    (*followed)->start(sink);
                    return;
                }
                switch (followed.error()) {
                case refusal::nothing_left:
                    require(which && which->is_answered(), "204 for a call whose answer was not received");
                    return;
                case refusal::bad_cursor:
                    // Kept until delivered, or the session's end.
                    require(
                        (which && which->is_answered()) || of.is_deleted || of.is_gone,
                        "400 for a call whose answer was not received");
                    if (which)
                        which->is_lost = true;
                    return;
                case refusal::conflict: require(!which, "409 for a call's stream"); return;
                case refusal::over_budget: return;
                case refusal::session_gone: require(of.is_deleted || of.is_gone, "404 for a live session"); return;
                case refusal::unavailable: require(false, "503 from a store that is there"); return;
                }
            });
    });
    if (which && (of.is_deleted || of.is_gone))
        which->is_resuming = false;
}

void world::resume(call& which, sim_loop& loop)
{
    if (which.is_resuming || which.is_lost || which.of->is_deleted || which.of->is_gone)
        return;
    if (which.last_id.empty()) {
        // No id ever reached the client: the one case in which it cannot come back (Q-12).
        which.is_lost = true;
        return;
    }
    follow(*which.of, loop, &which, which.last_id);
}

void world::resume_call()
{
    auto* const which = any_call();
    if (which && !which->is_steady)
        resume(*which, scheduler_.any_loop());
}

void world::listen()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone)
        return;
    std::optional<std::string> cursor;
    if (!of->last_id.empty() && chance(2))
        cursor = of->last_id;
    follow(*of, scheduler_.any_loop(), nullptr, cursor);
}

void world::announce()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone)
        return;
    auto const id = base::parse_id128(of->id);
    auto text = fmt::format(R"({{"announcement":{},"of":"{}"}})", ++of->announced, of->id);
    auto& loop = scheduler_.any_loop();
    scheduler_.on(loop, [&] {
        store_->append(
            {{of->principal, *id}, of->standalone}, 0, {{std::make_shared<std::string const>(std::move(text)), {}}},
            false, scheduler_.now(), [this](result<store::stream_top> top) {
                if (top)
                    metrics_.events_appended.Increment();
            });
    });
}

void world::reinitialize()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone)
        return;
    use(*of, scheduler_.any_loop(), [this, of](runtime::session_use taken) {
        runtime::client_hello hello;
        hello.principal = of->principal;
        hello.revision = of->revision;
        hello.info = R"({"name":"again"})";
        node_->reopen(taken, hello, [](result<void>) {});
    });
}

void world::present_foreign_id()
{
    // I3: another's session id, and another's event id, are unknown.
    auto* const one = any_session();
    auto* const other = any_session();
    if (!one || !other || one == other || one->is_deleted || one->is_gone)
        return;
    auto& loop = scheduler_.any_loop();
    auto const stranger = one->principal == "bob" ? "anonymous" : "bob";
    scheduler_.on(loop, [&] {
        node_->use(stranger, one->id, loop, [this](result<runtime::session_use> taken) {
            require(!taken && taken.error() == errc::not_found, "a foreign session was found");
        });
    });
    auto const foreign = other->last_id;
    if (foreign.empty())
        return;
    use(*one, loop, [this, foreign, one, &loop](runtime::session_use taken) {
        node_->follow(
            taken, loop, {foreign, runtime::caller::direct},
            [this, one](std::expected<std::shared_ptr<runtime::following>, runtime::follow_refusal> followed) {
                require(
                    !followed
                        && (followed.error() == runtime::follow_refusal::bad_cursor || one->is_deleted || one->is_gone),
                    "a foreign event id was followed");
            });
    });
}

void world::cut()
{
    if (auto* const line = any_connection(); line && !line->is_steady()) {
        read(*line, random_.below(line->wire->arrived() + 1)); // any byte, also inside an event
        line->wire->cut();
    }
}

void world::vanish()
{
    if (auto* const line = any_connection(); line && !line->is_steady())
        line->wire->vanish();
}

void world::read_some()
{
    if (auto* const line = any_connection())
        read(*line, chance(3) ? 1 + random_.below(40) : 1 + random_.below(20'000));
}

void world::pass_time()
{
    auto const pick = random_.below(40);
    if (pick == 0) {
        scheduler_.run_all(); // no store is minutes late
        advance(1s * random_.below(900));
    } else if (pick < 6)
        advance(1s * random_.below(8));
    else
        advance(1ms * random_.below(300));
    for (auto const& each : connections_)
        scheduler_.on(scheduler_.loop(0), [&] { each->wire->tick(); });
    look_for_arrivals();
}

void world::look_for_arrivals()
{
    std::erase_if(receipts_, [&](auto const& each) {
        return each->ask_arrived() || scheduler_.now() > each->over_at() + 45s; // the kernel has given up
    });
}

void world::answer(call& which, std::string const& question, std::string const& mark)
{
    auto& loop = scheduler_.any_loop();
    auto text = fmt::format(R"({{"jsonrpc":"2.0","id":"{}","result":{{"to":"{}"}}}})", question, mark);
    use(*which.of, loop, [this, text = std::move(text)](runtime::session_use taken) {
        auto const value = protocol::parse_json(text, {});
        auto const message = protocol::read_message(*value);
        node_->take_answer(taken.session(), *message);
        if (chance(4)) // a second one is ignored
            node_->take_answer(taken.session(), *message);
    });
}

void world::answer_some()
{
    auto* const which = any_call();
    if (!which || which->questions.empty() || which->of->is_deleted || which->of->is_gone)
        return;
    auto const asked = which->questions.extract(which->questions.begin());
    answer(*which, asked.key(), asked.mapped());
}

// The end of a process with the memory store, as the program does it: refuse what is new, let calls finish for a
// while, interrupt the rest, and close the connections when no call runs.
void world::drain()
{
    if (chance(2)) // nothing else runs, and a call is being made
        settle();
    begin_call();
    begin_call();
    scheduler_.on(scheduler_.loop(0), [&] {
        node_->drain();
        drain_step();
    });
    for (auto steps = random_.below(20); steps > 0; --steps)
        step();
    if (chance(2)) {
        scheduler_.on(scheduler_.loop(0), [&] { node_->interrupt_calls(); });
        is_interrupted_ = true;
        scheduler_.run_all();
        require(node_->running_calls() == 0, "an interrupted call runs on");
    }
}

void world::drain_step()
{
    if (is_drained_ || !node_->is_draining() || node_->running_calls() > 0)
        return;
    is_drained_ = true;
    for (auto const& each : calls_)
        require(each->on->is_ended(), "a call was left out of the drain");
    node_->close_followers(engine::close_reason::draining);
}

}
