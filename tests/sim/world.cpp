#include "world.hpp"

#include "engine/cursor.hpp"
#include "protocol/endings.hpp"
#include "protocol/message.hpp"
#include "runtime/repetition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace belay::sim {

using namespace std::chrono_literals;

struct world::session {
    std::string id;
    std::string principal;
    protocol::revision revision = protocol::newest_revision;
    store::stream_id standalone = 0;
    bool is_deleted = false;
    bool is_gone = false; // the server said 404, and was right
    base::time_point last_active{};
    std::size_t requests = 0; // under way
    std::size_t announced = 0;
    std::map<std::string, std::size_t> calls_with_key; // asked for
    std::map<std::string, store::stream_id> run_with_key;
    // Of the standalone stream:
    std::uint64_t seen = 0;
    std::string last_id;
};

struct world::call {
    session* of = nullptr;
    std::string id;
    store::stream_id stream = 0;
    std::uint64_t seen = 0; // sequence of the last event received
    std::string last_id;
    std::size_t responses = 0;
    bool is_lost = false;         // refused with 400 or 404, rightly
    std::vector<std::shared_ptr<wire>> wires;
    /// The server wrote the response to some wire, perhaps after the client had left it.
    [[nodiscard]] bool was_answered() const
    {
        return std::ranges::any_of(wires, [](auto const& each) { return each->has_response(); });
    }
    bool is_resuming = false;
    std::shared_ptr<tool> runs;
    std::set<std::string> questions; // seen and not answered
    std::string mark;           // what its tool writes into its messages
    store::stream_id first = 0; // the call that it repeats
};

struct world::connection {
    std::shared_ptr<sim::wire> wire;
    session* of = nullptr;
    world::call* which = nullptr; // null: the standalone stream
    http::sse_reader reader;
    std::uint64_t position = 0;
    bool knows_position = false; // a plain GET learns it from the priming event
};

// A tool is a list of things to do on its call, as a coroutine would do them.
struct world::tool : std::enable_shared_from_this<tool> {
    struct step {
        enum class kind { emit, progress, wait, close_connection, ask } what;
        std::size_t bytes = 0;
        base::duration time{};
    };
    tool(std::shared_ptr<runtime::call> on, std::vector<step> steps, std::size_t answer_bytes, std::string mark)
        : on(std::move(on)), steps(std::move(steps)), answer_bytes(answer_bytes), mark(std::move(mark)),
          timer(this->on->loop().timers(), [this] { go(); })
    {
    }

    void go()
    {
        auto const self = shared_from_this();
        while (!is_stopped && at < steps.size()) {
            auto const& next = steps[at++];
            switch (next.what) {
            case step::kind::emit: {
                auto text = fmt::format(R"({{"of":"{}","n":{},"pad":")", mark, at);
                text.append(next.bytes, 'x');
                text += "\"}";
                auto const outcome = on->emit(std::move(text), [self](std::error_code error) {
                    self->is_stopped = self->is_stopped || error == errc::finished;
                    self->go();
                });
                if (!outcome)
                    return;
                is_stopped = is_stopped || *outcome == errc::finished;
                break;
            }
            case step::kind::progress: on->progress(fmt::format(R"({{"of":"{}","progress":{}}})", mark, at)); break;
            case step::kind::wait: timer.after(next.time); return;
            case step::kind::close_connection: on->close_connection(100ms); break;
            case step::kind::ask:
                on->ask("ask", fmt::format(R"({{"of":"{}"}})", mark), [self](result<std::string> answer) {
                    // The answer of this caller, once.
                    if (answer && *answer != fmt::format(R"({{"result":{{"to":"{}"}}}})", self->mark))
                        self->is_misled = true;
                    ++self->answers;
                    self->go();
                });
                ++questions;
                return;
            }
        }
        if (is_stopped || std::exchange(has_answered, true))
            return;
        auto text = fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{{"of":"{}","pad":")", on->id(), mark);
        text.append(answer_bytes, 'y');
        text += "\"}}";
        on->answer(std::move(text));
    }

    std::shared_ptr<runtime::call> on;
    std::vector<step> steps;
    std::size_t answer_bytes;
    std::string mark;
    std::size_t at = 0;
    bool is_stopped = false;
    bool has_answered = false;
    bool is_misled = false;
    std::size_t questions = 0;
    std::size_t answers = 0;
    base::timer timer;
};

world::world(std::uint64_t seed) : random_(seed), node_random_(~seed), scheduler_(random_, 1 + random_.below(3))
{
    auto& limits = settings_.limits;
    has_wide_retention_ = chance(3);
    limits.events_per_stream = has_wide_retention_ ? 100'000 : 4 + random_.below(40);
    limits.bytes_per_stream = has_wide_retention_ ? 64u << 20 : 2000 + random_.below(30'000);
    limits.streams_per_session = 2 + random_.below(8);
    limits.bytes_per_session = has_wide_retention_ ? 64u << 20 : 8'000 + random_.below(60'000);
    limits.bytes_total = has_wide_retention_ ? 64u << 20 : 30'000 + random_.below(200'000);
    limits.event_bytes = 3'000;
    limits.sessions = 2 + random_.below(6);
    limits.event_age = has_wide_retention_ ? base::duration(100h)
        : chance(2)                        ? base::duration(10min)
                                           : base::duration(1min);
    settings_.follower.page = {1 + random_.below(20), 200 + random_.below(4000)};
    settings_.follower.max_age = chance(4) ? base::duration(5s + 1s * random_.below(60)) : base::duration::zero();
    settings_.open_without_origin = 2 + random_.below(5);
    settings_.open_with_origin = 1 + random_.below(4);
    settings_.flow.waits = !chance(5);
    settings_.priming_legacy = chance(4) ? runtime::legacy_priming::off : runtime::legacy_priming::typed;
    settings_.call_max = chance(4) ? base::duration(20s) : base::duration(1h);
    memory_ = std::make_unique<store::memory_store>(limits, random_.next() >> 32, &counts_);
    store_ = std::make_unique<recording_store>(
        *memory_, scheduler_, chance(2) ? recording_store::pace::late : recording_store::pace::at_once);
    node_ = std::make_unique<runtime::node>(settings_, *store_, node_random_, metrics_, base::logger());
    node_->on_departure([this] { scheduler_.loop(0).post([this] { drain_step(); }); });
    node_->start(scheduler_.loop(0));
}

world::~world()
{
    // Tools hold calls and calls hold the node's sessions: work under way goes first.
    connections_.clear();
    for (auto const& each : calls_)
        if (each->runs)
            each->runs->is_stopped = true;
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

// --- operations

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
                    use.error() == errc::too_many_sessions
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
                    require(each->of != &of || each->runs->on->is_ended(), "a session with a running call expired");
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

void world::begin_call()
{
    auto* const of = any_session();
    if (!of || of->is_deleted || of->is_gone)
        return;
    auto& loop = scheduler_.any_loop();
    runtime::call_request request;
    request.id = fmt::format("{}", random_.below(3)); // fresh pages begin at 0 again
    request.revision = of->revision;
    request.from = chance(2) ? runtime::caller::browser : runtime::caller::direct;
    request.traits.waits_for_reader = !chance(6);
    if (chance(8))
        request.traits.max_duration = 3s;
    if (chance(3))
        request.once = store::once_key{fmt::format("k{}", random_.below(4)), chance(8) ? 2u : 1u};
    std::vector<tool::step> steps;
    auto const count = random_.below(chance(4) ? 200 : 12);
    for (std::uint64_t i = 0; i < count; ++i) {
        using kind = tool::step::kind;
        auto const pick = random_.below(10);
        if (pick < 6)
            steps.push_back({kind::emit, random_.below(chance(20) ? 4000 : 300), {}});
        else if (pick < 8)
            steps.push_back({kind::progress, 0, {}});
        else if (chance(20))
            steps.push_back({kind::ask, 0, {}});
        else if (pick < 9 || !chance(5))
            steps.push_back({kind::wait, 0, 1ms * random_.below(chance(8) ? 20'000 : 600)});
        else
            steps.push_back({kind::close_connection, 0, {}});
    }
    auto const answer_bytes = random_.below(chance(20) ? 4000 : 200);
    auto const capacity = 100 + random_.below(chance(2) ? 500 : 100'000);
    use(*of, loop, [this, of, &loop, request, steps, answer_bytes, capacity](runtime::session_use taken) mutable {
        auto const id = request.id;
        auto const key = request.once ? request.once->text : std::string();
        ++of->calls_with_key[key];
        node_->begin_call(
            taken, loop, std::move(request),
            [this, of, &loop, id, key, steps = std::move(steps), answer_bytes,
             capacity](result<runtime::begun_call> begun) {
                bool const may_repeat = of->calls_with_key[key] > 1;
                if (!begun && (begun.error() == errc::key_spent || begun.error() == errc::key_mismatch))
                    return require(may_repeat, "a fresh key was refused");
                if (!begun) {
                    // I4: refused before anything ran.
                    require(
                        begun.error() == errc::too_many_streams || begun.error() == errc::no_space
                            || (begun.error() == errc::not_found && of->is_deleted)
                            || (begun.error() == errc::unavailable && node_->is_draining()),
                        "begin_call: " + begun.error().message());
                    return;
                }
                require(!is_drained_, "a call began after the drain had counted none");
                auto fresh = std::make_unique<call>();
                fresh->of = of;
                fresh->id = id;
                fresh->stream = begun->call->stream().stream;
                auto line = std::make_unique<connection>();
                line->wire = std::make_shared<wire>(loop, begun->following, capacity);
                line->of = of;
                line->which = fresh.get();
                fresh->wires.push_back(line->wire);
                line->knows_position = true;
                fresh->mark = fmt::format("c{}", calls_.size());
                fresh->runs = std::make_shared<tool>(begun->call, steps, answer_bytes, fresh->mark);
                if (begun->twin) {
                    require(may_repeat, "a call was not made");
                    fresh->first = *begun->twin;
                } else {
                    require(
                        key.empty() || of->run_with_key.emplace(key, fresh->stream).second,
                        "a call with a key was made twice");
                    begun->call->on_interrupt([weak = std::weak_ptr(fresh->runs)] {
                        if (auto const running = weak.lock())
                            running->is_stopped = true;
                    });
                }
                auto const runs = fresh->runs;
                calls_.push_back(std::move(fresh));
                connections_.push_back(std::move(line));
                auto const sink = connections_.back()->wire;
                if (begun->twin)
                    runtime::repeat(*node_, begun->call, *begun->twin, {});
                else
                    runs->go();
                begun->following->start(sink);
            });
    });
}

void world::cancel_call()
{
    auto* const which = any_call();
    if (!which || which->of->is_deleted || which->of->is_gone)
        return;
    auto& loop = scheduler_.any_loop();
    use(*which->of, loop, [this, which](runtime::session_use taken) { node_->cancel(taken.session(), which->id); });
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
                    if (which)
                        which->wires.push_back(line->wire);
                    line->position = from;
                    line->knows_position = cursor.has_value();
                    auto const sink = line->wire;
                    connections_.push_back(std::move(line));
                    (*followed)->start(sink);
                    return;
                }
                switch (followed.error()) {
                case refusal::nothing_left:
                    require(which && which->responses == 1, "204 for a call whose answer was not received");
                    return;
                case refusal::bad_cursor:
                    // Kept until delivered, or the session's end.
                    require(
                        (which && (which->was_answered() || which->responses == 1)) || of.is_deleted || of.is_gone,
                        "400 for a call whose answer was never written");
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
    if (which)
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
    if (auto* const line = any_connection()) {
        read(*line, random_.below(line->wire->arrived() + 1)); // any byte, also inside an event
        line->wire->cut();
    }
}

void world::vanish()
{
    if (auto* const line = any_connection())
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
        scheduler_.advance(1s * random_.below(900));
    } else if (pick < 6)
        scheduler_.advance(1s * random_.below(8));
    else
        scheduler_.advance(1ms * random_.below(300));
    for (auto const& each : connections_)
        scheduler_.on(scheduler_.loop(0), [&] { each->wire->tick(); });
}

void world::answer(call& which, std::string const& question)
{
    auto& loop = scheduler_.any_loop();
    auto const author = std::ranges::find_if(
        calls_, [&](auto const& each) { return each->stream == (which.first ? which.first : which.stream); });
    if (author == calls_.end())
        return;
    auto text = fmt::format(R"({{"jsonrpc":"2.0","id":"{}","result":{{"to":"{}"}}}})", question, (*author)->mark);
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
    answer(*which, *which->questions.begin());
    which->questions.erase(which->questions.begin());
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
        require(each->runs->on->is_ended(), "a call was left out of the drain");
    node_->close_followers(engine::close_reason::draining);
}

// --- what clients see

void world::read(connection& from, std::size_t most)
{
    if (from.wire->is_cut() || from.wire->has_vanished() || from.wire->is_aborted())
        return;
    auto const bytes = from.wire->receive(most);
    auto const before = from.reader.last_id();
    require(from.reader.feed(bytes), "a stream that is not SSE");
    while (auto const event = from.reader.next())
        saw(from, *event);
    // A priming event has no data and is not given, but its id is there.
    auto const& id = from.reader.last_id();
    if (id == before || id.empty())
        return;
    auto const at = engine::parse_event_id(id);
    require(at.has_value(), "an id that cannot be read: " + id);
    if (!from.knows_position) {
        from.knows_position = true;
        from.position = at->sequence;
        require(at->sequence <= from.of->seen, "a plain GET began after events that were never received");
    }
    skip_blanks(from, at->sequence);
    require(at->sequence == from.position, fmt::format("an id for {} at position {}", at->sequence, from.position));
    (from.which ? from.which->last_id : from.of->last_id) = id;
}

void world::skip_blanks(connection& on, std::uint64_t to)
{
    // Answered questions are replayed as their ids alone, which the reader does not give.
    auto const stream = on.which ? on.which->stream : on.of->standalone;
    while (on.position < to && store_->is_blank(stream, on.position + 1))
        ++on.position;
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
            require(at->sequence <= on.of->seen, "a plain GET began after events that were never received");
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
        require(on.position <= on.of->seen, "a plain GET began after events that were never received");
    }
    note(at->stream);
    note(at->sequence);
    auto const& log = store_->log(stream);
    // A repeated call has the gap notices of the first one in its log.
    bool const is_logged = at->sequence <= log.size() && *log[at->sequence - 1].payload == event.data;
    bool const is_gap = !is_logged && event.data.contains(R"("logger":"resumability")");
    // What is blank may be in the gap, or come before it as an id.
    auto const from = is_gap ? std::stoull(event.data.substr(event.data.find(R"("from":)") + 7)) : at->sequence;
    skip_blanks(on, from - 1);
    if (is_gap) {
        require(!has_wide_retention_, "a gap where nothing was trimmed");
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
        if (auto const question = event.data.find(R"("method":"ask")"); question != std::string::npos) {
            auto const id = event.data.substr(event.data.find(R"("id":")") + 6);
            on.which->questions.insert(id.substr(0, id.find('"')));
        }
        if (on.which && log[at->sequence - 1].kind == store::event_kind::response) {
            require(at->sequence == log.size(), "something follows the answer");
            require(
                event.data.starts_with(fmt::format(R"({{"jsonrpc":"2.0","id":{},)", on.which->id)),
                "the answer of another call");
            require(++on.which->responses == 1, "a second answer"); // I1
            auto const author = std::ranges::find_if(calls_, [&](auto const& each) {
                return each->stream == (on.which->first ? on.which->first : on.which->stream);
            });
            require(
                !event.data.contains(R"("result":{"of":)")
                    || event.data.contains(fmt::format(R"("result":{{"of":"{}",)", (*author)->mark)),
                "the answer of another tool");
        }
    }
    on.position = at->sequence;
    auto& seen = on.which ? on.which->seen : on.of->seen;
    if (on.which)
        require(at->sequence > seen, "an event was repeated");
    seen = std::max(seen, at->sequence);
    (on.which ? on.which->last_id : on.of->last_id) = event.id;
}

void world::drop_finished_connections()
{
    std::erase_if(connections_, [&](auto const& each) {
        bool const is_over = each->wire->is_cut() || each->wire->is_aborted() || each->wire->is_drained_to_end()
            || (each->wire->has_vanished() && each->wire->is_over());
        if (is_over)
            each->of->last_active = std::max(each->of->last_active, each->wire->over_at());
        return is_over;
    });
}

// --- the run

void world::step()
{
    switch (random_.below(24)) {
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
    default: read_some(); break;
    }
    // Some of the work that this has caused; the rest meets the next operation half done.
    for (auto runs = random_.below(30); runs > 0 && scheduler_.run_one(); --runs) {
    }
    drop_finished_connections();
    check_always();
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
            if (each->responses > 0 || each->is_lost || each->of->is_deleted || each->of->is_gone)
                continue;
            is_waiting = true;
            for (auto const& question : std::exchange(each->questions, {}))
                answer(*each, question);
            if (!is_open(*each))
                resume(*each, scheduler_.any_loop());
        }
        check_always();
        if (!is_waiting && connections_.empty())
            break;
        scheduler_.advance(500ms);
        for (auto const& each : connections_)
            each->wire->tick();
        if (!is_waiting)
            for (auto const& each : connections_)
                if (!each->which)
                    each->wire->cut();
    }
    scheduler_.run_all();
}

void world::check_always()
{
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
        // I1: exactly one answer, and its caller has it.
        require(is_excused || each->responses == 1, fmt::format("a call waits for ever: stream {:x}", each->stream));
        require(
            each->first == 0
                || std::ranges::any_of(
                    each->of->run_with_key, [&](auto const& run) { return run.second == each->first; }),
            "repeats a call that was never made");
        require(!each->runs->is_misled, "the answer of another caller");
        require(each->runs->answers <= each->runs->questions, "a question was answered twice");
        // Whatever became of the caller, the log has one answer, as its last event.
        auto const& log = store_->log(each->stream);
        auto const answers = std::ranges::count(log, store::event_kind::response, &store::event_data::kind);
        require(answers <= 1, "two answers in one log");
        require(
            answers == 1 || each->of->is_deleted || each->of->is_gone || !each->runs->on->is_ended(),
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
