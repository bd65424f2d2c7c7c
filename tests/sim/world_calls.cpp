// What clients do with calls: begin them, cancel them, answer their questions.
#include "engine/cursor.hpp"
#include "protocol/message.hpp"
#include "runtime/repetition.hpp"
#include "world_reruns.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

/// I4: refused before anything ran.
void world::require_refusal(session const& of, place at, std::error_code why) const
{
    require(
        why == errc::too_many_streams || why == errc::no_space
            || (why == errc::not_found && (of.is_over() || of.in->record.has_expired(of.key())))
            || (why == errc::duplicate_id && settings_.duplicate_ids == runtime::duplicate_policy::reject)
            || (why == errc::unavailable && may_be_unavailable(at)),
        "begin_call: " + why.message());
}

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
    made.ends_slowly = chance(6);
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
void world::began(session& of, place at, std::shared_ptr<runtime::following> const& reader, std::unique_ptr<call> fresh)
{
    require(!at.at->is_drained, "a call began after the drain had counted none");
    fresh->of = &of;
    fresh->at = at.at;
    fresh->stream = reader->stream();
    auto line = std::make_unique<connection>();
    line->wire
        = std::make_shared<wire>(scheduler_.clock(), *at.loop, reader, 100 + random_.below(chance(2) ? 500 : 100'000));
    line->at = at.at;
    line->owner = at.at->way().owner();
    line->since = scheduler_.now();
    line->of = &of;
    line->which = fresh.get();
    line->knows_position = true;
    calls_.push_back(std::move(fresh));
    connections_.push_back(std::move(line));
}

void world::begin_call()
{
    auto* const of = any_session();
    if (!of || of->is_over())
        return;
    auto const at = any_place();
    bool const is_steady = is_steady_ && chance(2);
    runtime::call_request request;
    request.ids = {any_id(random_.below(3))};
    request.revision = of->revision;
    request.from = chance(2) ? runtime::caller::browser : runtime::caller::program;
    request.traits.waits_for_reader = is_steady || !chance(6);
    if (chance(8))
        request.traits.max_duration = 3s;
    if (!is_steady && chance(3))
        request.once = store::once_key{fmt::format("k{}", random_.below(4)), chance(8) ? 2u : 1u};
    bool const runs_again = !is_steady && chance(2);
    auto const limit = request.traits.max_duration.value_or(settings_.call_max);
    if (!is_steady && chance(8))
        request.traits.orphan_limit = 2s;
    auto const orphan_limit = request.traits.orphan_limit;
    if (at)
        request.who.principal = at.at->way().owner(); // so that it can be told whose it was
    use(*of, at,
        [this, of, at, request, is_steady, runs_again, limit, orphan_limit,
         plan = make_plan(is_steady)](runtime::session_use taken) mutable {
            auto const id = request.ids.front();
            auto const mark = fmt::format("c{}", ++marks_);
            if (runs_again)
                request.again = work_->request_for(id, mark, plan);
            auto const key = request.once ? request.once->text : std::string();
            ++of->calls_with_key[key];
            at.at->node().calls().begin(
                taken, *at.loop, std::move(request),
                [this, of, at, id, key, mark, is_steady, runs_again, limit, orphan_limit,
                 plan = std::move(plan)](result<runtime::begun_call> begun) {
                    bool const may_repeat = of->calls_with_key[key] > 1;
                    if (!begun && (begun.error() == errc::key_spent || begun.error() == errc::key_mismatch))
                        return require(may_repeat, "a fresh key was refused");
                    if (!begun)
                        return require_refusal(*of, at, begun.error());
                    auto const runs
                        = std::make_shared<tool>(begun->call, plan.steps, plan.answer_bytes, mark, plan.ends_slowly);
                    runs->keys = runs_again;
                    auto fresh = std::make_unique<call>();
                    fresh->is_steady = is_steady;
                    fresh->requests.push_back({id, mark, runs, limit, orphan_limit});
                    if (begun->repeats) {
                        require(may_repeat, "a call was not made");
                        fresh->first = *begun->repeats;
                    } else {
                        runs->stop_when_interrupted();
                    }
                    began(*of, at, begun->following, std::move(fresh));
                    auto const sink = connections_.back()->wire;
                    if (begun->repeats)
                        runtime::repeat(at.at->node(), begun->call, *begun->repeats, {});
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
    if (!of || of->is_over())
        return;
    struct member {
        std::string id;
        runtime::call_traits traits;
        plan does;
        bool is_instant;
    };
    auto const at = any_place();
    std::vector<member> members;
    for (auto i = random_.below(2); i < 5; i += 1 + random_.below(3)) {
        runtime::call_traits traits;
        if (chance(8))
            traits.max_duration = 3s;
        members.push_back({any_id(i), traits, make_plan(false), chance(4)});
    }
    runtime::call_request request;
    for (auto const& each : members)
        request.ids.push_back(each.id);
    request.revision = of->revision;
    request.from = chance(2) ? runtime::caller::browser : runtime::caller::program;
    use(*of, at, [this, of, at, request, members = std::move(members)](runtime::session_use taken) mutable {
        at.at->node().calls().begin_batch(
            taken, *at.loop, std::move(request),
            [this, of, at, members = std::move(members)](result<runtime::begun_batch> begun) {
                if (!begun)
                    return require_refusal(*of, at, begun.error());
                auto fresh = std::make_unique<call>();
                auto const name = fmt::format("b{}", calls_.size());
                for (auto const& each : members)
                    fresh->requests.push_back(
                        {each.id,
                         fmt::format("{}-{}", name, fresh->requests.size()),
                         nullptr,
                         each.traits.max_duration.value_or(settings_.call_max),
                         {}});
                auto& requests = fresh->requests;
                began(*of, at, begun->following, std::move(fresh));
                auto const sink = connections_.back()->wire;
                auto const& batch = begun->batch;
                for (std::size_t i = 0; i < members.size(); ++i) {
                    auto const& each = members[i];
                    auto const line = static_cast<std::uint32_t>(i);
                    if (each.is_instant) {
                        batch->answer(line, each.id, tool::response(each.id, requests[i].mark, 0));
                        continue;
                    }
                    requests[i].runs = std::make_shared<tool>(
                        at.at->node().calls().begin_member(batch, line, each.id, each.traits), each.does.steps,
                        each.does.answer_bytes, requests[i].mark, each.does.ends_slowly);
                    requests[i].runs->stop_when_interrupted();
                    requests[i].runs->go();
                }
                begun->following->start(sink);
            });
    });
}

/// A request whose answer its connection waits for, as JSON.
void world::hold_call()
{
    auto* const of = any_session();
    if (!of || of->is_over())
        return;
    if (!held_.empty() && chance(4)) {
        auto& which = *held_[random_.below(held_.size())];
        auto const at = any_place();
        if (which.of->is_over())
            return;
        which.is_cancelled = true;
        use(*which.of, at, [&which, at](runtime::session_use taken) {
            at.at->node().calls().cancel(taken.session(), which.id, *at.loop, [](auto const&...) {});
        });
        return;
    }
    auto const at = any_place();
    runtime::call_request request;
    request.ids = {fmt::format("\"held-{}\"", ++marks_)};
    request.revision = of->revision;
    if (chance(8))
        request.traits.max_duration = 3s;
    use(*of, at, [this, of, at, request, does = make_plan(false)](runtime::session_use taken) mutable {
        auto fresh = std::make_unique<held_call>();
        auto* const held = fresh.get();
        held->of = of;
        held->at = at.at;
        held->id = request.ids.front();
        held->mark = fmt::format("h{}", ++marks_);
        auto begun = at.at->node().calls().begin_held(
            taken.session(), *at.loop, std::move(request), [this, held](std::string const& text) {
                require(++held->responses == 1, "a second answer to a call that is held"); // I1
                require(
                    !text.contains(R"("result":{"of":)") || text.contains(fmt::format(R"("of":"{}")", held->mark)),
                    "the answer of another tool");
                require(!text.contains(R"("code":-32800)") || held->is_cancelled, "a cancel hit a call that is held");
                require(
                    !text.contains(R"("reason":"session_ended")") || held->of->is_over(),
                    "the session of a call that is held is said to have ended and lives");
            });
        if (!begun)
            return require(
                begun.error() == errc::unavailable && may_be_unavailable(at), "hold_call: " + begun.error().message());
        held->runs = std::make_shared<tool>(*begun, does.steps, does.answer_bytes, held->mark, does.ends_slowly);
        held->runs->stop_when_interrupted();
        held_.push_back(std::move(fresh));
        held->runs->go();
    });
}

void world::cancel_call()
{
    auto* const which = any_call();
    auto const at = any_place();
    if (!which || which->of->is_over() || !at)
        return;
    auto const id = which->requests[random_.below(which->requests.size())].id;
    use(*which->of, at, [id, at](runtime::session_use taken) {
        at.at->node().calls().cancel(taken.session(), id, *at.loop, [](auto const&...) {});
    });
    if (!chance(3))
        return;
    looked_up_.clear();
    scheduler_.run_all();
    if (has_faults()) // then it may take its time
        return;
    auto& record = store().record;
    for (auto const& [stream, named] : looked_up_)
        if (auto const* const hit = call_of(stream); hit && !hit->of->is_over())
            for (std::uint32_t number = 0; number < hit->requests.size(); ++number)
                require(
                    hit->requests[number].id != named || record.answer_to(stream, number) != 0,
                    "a cancelled call runs on");
}

void world::answer(call& which, std::string const& question, std::string const& mark)
{
    auto const at = any_place();
    auto text = fmt::format(R"({{"jsonrpc":"2.0","id":"{}","result":{{"to":"{}"}}}})", question, mark);
    // Who does not know whether an answer has come gives it again.
    auto const again = [&which, question, mark] { which.questions.emplace(question, mark); };
    use(
        *which.of, at,
        [this, at, again, question, text = std::move(text), &which](runtime::session_use taken) {
            auto const value = protocol::parse_json(text, {});
            auto const message = protocol::read_message(*value);
            auto const waits = begin_exchange(*at.at, again);
            at.at->node().calls().take_answer(
                *taken.session(), *message, [this, at, again, waits, question, &which](result<void> taken_in) {
                    end_exchange(waits);
                    if (taken_in) {
                        auto const named = engine::parse_question_id(question);
                        return require(
                            which.of->in->record.has_come(named->stream, static_cast<std::uint32_t>(named->number)),
                            "202 for an answer that the store does not have");
                    }
                    auto const why = taken_in.error();
                    require(
                        why == errc::no_space
                            || (why == errc::not_found
                                && (which.of->is_over() || which.of->in->record.has_expired(which.of->key())))
                            || (why == errc::unavailable && may_be_unavailable(at)),
                        "answer: " + why.message());
                    again();
                });
            if (chance(4)) // a second one is ignored
                at.at->node().calls().take_answer(*taken.session(), *message, [](result<void>) {});
        },
        again);
}

void world::answer_some()
{
    auto* const which = any_call();
    if (!which || which->questions.empty() || which->of->is_over())
        return;
    auto const asked = which->questions.extract(which->questions.begin());
    answer(*which, asked.key(), asked.mapped());
}

}
