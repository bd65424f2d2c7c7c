#include "runtime/call_directory.hpp"

#include "engine/cursor.hpp"
#include "protocol/endings.hpp"
#include "runtime/bulletins.hpp"
#include "runtime/call_notes.hpp"
#include "runtime/stream_output.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace belay::runtime {

namespace {

// So long after the store could not say whether a stream is there it is asked again, and so often: callers do not wait
// for ever.
constexpr base::duration open_again_time = std::chrono::milliseconds(500);
constexpr unsigned open_tries = 4;

engine::flow_settings flow_for(settings const& settings, call_traits const& traits)
{
    auto flow = settings.flow;
    flow.waits = flow.waits && traits.waits_for_reader;
    return flow;
}

}

// A call on its way into the store.
struct call_directory::beginning {
    std::shared_ptr<live_session> session;
    base::loop& loop;
    store::stream_key stream;
    store::reader_request reader;
    call_request request;
    std::move_only_function<void(result<begun_stream>, call_request&)> done;
    bool has_asked = false; // whether answers have arrived of which nobody knew
    unsigned tries = 0;
    std::optional<base::timer> again{}; // the store could not say
};

call_directory::call_directory(node_context& context, session_table& table, attachments& attachments)
    : context_(context), table_(table), attachments_(attachments),
      bulletins_(context.store().listen([this](std::string const& text) { hear(text); }))
{
}

void call_directory::begin(
    session_use const& use, base::loop& loop, call_request request, store::completion<begun_call> done)
{
    open(
        use, loop, std::move(request),
        [this, session = use.session(), &loop,
         done = std::move(done)](result<begun_stream> begun, call_request& request) mutable {
            if (!begun)
                return done(std::unexpected(begun.error()));
            auto const& output = begun->output;
            if (begun->repeats) // whoever goes on with the first one runs it
                request.again.reset();
            if (request.again)
                output->keep_answers();
            auto running = start(std::move(session), loop, output, std::move(request));
            done(begun_call{std::move(running), std::move(begun->following), begun->repeats});
            output->listen();
        });
}

void call_directory::begin_batch(
    session_use const& use, base::loop& loop, call_request request, store::completion<begun_batch> done)
{
    open(
        use, loop, std::move(request),
        [this, session = use.session(), &loop,
         done = std::move(done)](result<begun_stream> begun, call_request& request) mutable {
            if (!begun)
                return done(std::unexpected(begun.error()));
            auto const& output = begun->output;
            auto running = start_batch(std::move(session), loop, output, std::move(request));
            done(begun_batch{std::move(running), std::move(begun->following)});
            output->listen(); // now that there are calls to hear it
        });
}

void call_directory::open(
    session_use const& use, base::loop& loop, call_request request,
    std::move_only_function<void(result<begun_stream>, call_request&)> done)
{
    if (request.who.size() > context_.settings().max_identity_bytes)
        return done(failure(errc::too_large), request);
    if (!context_.departures().admit_call())
        return done(failure(errc::unavailable), request);
    bool const is_kept = context_.has_successors() && request.ids.size() == 1 && request.again
        && request.again->message.size() <= context_.settings().max_rerun_bytes;
    if (!is_kept)
        request.again.reset();
    auto const& session = use.session();
    store::stream_key stream{session->key, context_.random()};
    auto reader = attachments_.reader_for(request.revision, request.from);
    auto const fresh = std::make_shared<beginning>(
        session, loop, std::move(stream), std::move(reader), std::move(request), std::move(done));
    {
        base::lock const lock(beginning_mutex_);
        beginning_.push_back(fresh);
    }
    open(fresh);
}

void call_directory::open_again(std::shared_ptr<beginning> const& of)
{
    if (!of->again)
        of->again.emplace(of->loop.timers(), [this, weak = std::weak_ptr(of)] {
            if (auto const self = weak.lock())
                open(self);
        });
    of->again->after(open_again_time);
}

void call_directory::open(std::shared_ptr<beginning> of)
{
    auto const& request = of->request;
    store::stream_meta meta;
    meta.dialect = protocol::to_string(request.revision);
    for (auto const& id : request.ids)
        meta.requests.push_back({id, protocol::longest_ended_answer(id)});
    meta.once = request.once;
    call_notes notes;
    notes.requests = request.kinds;
    if (request.ids.size() == 1) { // the requests of a batch have times of their own
        notes.requests = {request.traits};
        notes.time = request.traits.max_duration.value_or(context_.settings().call_max);
    }
    if (request.again) {
        notes.request = request.again->message;
        meta.work = request.again->work;
    }
    meta.call_notes = to_text(notes);
    meta.caller = request.who;
    meta.held_bytes = request.bytes;
    meta.has_unique_ids = context_.settings().duplicate_ids == duplicate_policy::reject;
    auto const& key = of->stream;
    auto const reader = of->reader;
    context_.store().open(
        key, std::move(meta), context_.owner(), reader,
        [this, of = std::move(of)](result<store::opened_stream> opened) mutable {
            bool const is_full
                = !opened && (opened.error() == errc::too_many_streams || opened.error() == errc::no_space);
            if (is_full && !std::exchange(of->has_asked, true)) {
                // What has arrived by now makes room, and may not be known yet.
                auto& session = *of->session;
                auto& loop = of->loop;
                return ask_receipts(session, loop, [this, of = std::move(of)]() mutable { open(std::move(of)); });
            }
            if (!opened && opened.error() == errc::unavailable && ++of->tries < open_tries)
                return open_again(of);
            if (opened) {
                auto begun = make_stream(*of, *opened);
                of->done(std::move(begun), of->request);
            }
            {
                // From here on it runs, or is nobody's: recovery ends a stream that is there after all.
                base::lock const lock(beginning_mutex_);
                std::erase(beginning_, of);
            }
            if (opened)
                return;
            context_.departures().call_left();
            // It was there all the time, and somebody else has claimed it: as little is known of it here as before.
            bool const is_lost = opened.error() == errc::conflict;
            of->done(std::unexpected(is_lost ? make_error_code(errc::unavailable) : opened.error()), of->request);
        });
}

call_directory::begun_stream call_directory::make_stream(beginning& of, store::opened_stream const& opened)
{
    auto const& request = of.request;
    auto reader = attachments_.follow_new(
        of.session, of.loop, of.reader, of.stream.stream, opened.epoch, request.revision, request.from);
    auto output = std::make_shared<stream_output>(
        context_, of.loop, of.stream, opened.fence, flow_for(context_.settings(), request.traits), request.ids.size());
    watch_record(of.session);
    return {std::move(output), std::move(reader), opened.repeats};
}

std::shared_ptr<call> call_directory::make(
    std::shared_ptr<live_session> session, base::loop& loop, std::shared_ptr<call_output> output, call_request& request,
    call::run_terms terms)
{
    auto made = std::make_shared<call>(
        context_, *this, session, loop, std::move(output), std::move(request.ids.front()), request.traits,
        std::move(request.trace));
    terms.caller = std::move(request.who);
    made->set_terms(std::move(terms));
    add(*session, made);
    return made;
}

std::shared_ptr<call> call_directory::start(
    std::shared_ptr<live_session> session, base::loop& loop, std::shared_ptr<call_output> output, call_request request)
{
    call::run_terms terms;
    terms.may_be_handed_over = request.again.has_value();
    auto running = make(std::move(session), loop, std::move(output), request, std::move(terms));
    running->begin();
    return running;
}

void call_directory::run_again(
    session_use const& use, base::loop& loop, store::stream_key const& stream, store::claimed_call const& claimed,
    call_request request, std::optional<base::duration> time, protocol::end_reason why,
    std::move_only_function<void(std::shared_ptr<call>)> run)
{
    auto const output = std::make_shared<stream_output>(
        context_, loop, stream, claimed.fence, flow_for(context_.settings(), request.traits), request.ids.size());
    output->keep_answers();
    watch_record(use.session());
    call::run_terms terms;
    terms.may_be_handed_over = claimed.attempt < most_attempts;
    terms.progress = claimed.progress;
    terms.time = time;
    auto const running = make(use.session(), loop, output, request, std::move(terms));
    context_.metrics().calls_run_again.Increment();
    running->begin_again();
    output->go_on(
        running, claimed, protocol::rerun_notice(claimed.attempt, why),
        [weak = std::weak_ptr(running), run = std::move(run)]() mutable {
            if (auto const on = weak.lock(); on && !on->is_ended())
                run(on);
        });
}

std::shared_ptr<batch> call_directory::start_batch(
    std::shared_ptr<live_session> session, base::loop& loop, std::shared_ptr<call_output> output, call_request request)
{
    auto running
        = std::make_shared<batch>(*this, session, loop, output, std::move(request.trace), std::move(request.who));
    context_.departures().batch_came();
    session->add(running);
    output->begin(running);
    return running;
}

void call_directory::watch_record(std::shared_ptr<live_session> const& session)
{
    session->watch_record(context_.store(), [this, weak = std::weak_ptr(session)] {
        context_.later([this, weak] {
            auto const live = weak.lock();
            if (!live)
                return;
            context_.store().load(live->key, [weak](result<store::record_ptr> record) {
                if (auto const still = weak.lock(); still && record)
                    still->see(*record);
            });
        });
    });
}

void call_directory::ask_receipts(live_session& session, base::loop& loop, std::move_only_function<void()> then)
{
    std::vector<std::shared_ptr<base::receipt>> here;
    std::map<base::loop*, std::vector<std::shared_ptr<base::receipt>>> elsewhere;
    for (auto const& each : session.receipts())
        if (auto open = each.receipt.lock())
            (each.loop == &loop ? here : elsewhere[each.loop]).push_back(std::move(open));
    for (auto const& each : here)
        each->ask();
    if (elsewhere.empty())
        return then();
    // The last of the other loops sends the caller on.
    auto const rest = std::make_shared<std::move_only_function<void()>>(std::move(then));
    auto const open = std::make_shared<std::atomic<std::size_t>>(elsewhere.size());
    for (auto& [where, receipts] : elsewhere)
        where->post([asked = std::move(receipts), open, rest, &loop] {
            for (auto const& each : asked)
                each->ask();
            if (open->fetch_sub(1) == 1)
                loop.post([rest] { (*rest)(); });
        });
}

void call_directory::add(live_session& session, std::shared_ptr<call> const& fresh)
{
    session.add(fresh);
    if (!fresh->has_stream())
        session.add_use();
    context_.metrics().calls_started.Increment();
    // Added behind the back of interrupt_all(): whoever took the session's lock second sees the other.
    for (auto left = interruptions_.load(); left > 0; --left)
        fresh->loop().post([fresh] { fresh->interrupt(); });
}

void call_directory::call_done(call& gone)
{
    if (!gone.session().remove(gone))
        return;
    if (!gone.has_stream())
        gone.session().remove_use();
    context_.departures().call_left();
}

void call_directory::batch_done(batch& gone)
{
    if (gone.session().remove(gone))
        context_.departures().batch_left();
}

std::shared_ptr<call> call_directory::begin_member(
    std::shared_ptr<batch> const& of, std::uint32_t number, std::string id, call_traits const& traits)
{
    // Counted without asking whether the node drains: its batch was begun before.
    context_.departures().add_call();
    auto member = std::make_shared<call>(context_, *this, of, number, std::move(id), traits);
    call::run_terms terms;
    terms.caller = of->caller();
    member->set_terms(std::move(terms));
    add(of->session(), member);
    member->begin();
    return member;
}

result<std::shared_ptr<call>> call_directory::begin_held(
    std::shared_ptr<live_session> session, base::loop& loop, call_request request, held_output::answer_function answer)
{
    if (!context_.departures().admit_call())
        return failure(errc::unavailable);
    if (!session)
        session = table_.stand_in(request.revision);
    return start(std::move(session), loop, std::make_shared<held_output>(loop, std::move(answer)), std::move(request));
}

result<std::shared_ptr<direct_output>> call_directory::make_direct_output(base::loop& loop, call_request const& request)
{
    if (!context_.departures().admit_call())
        return failure(errc::unavailable);
    return std::make_shared<direct_output>(
        context_, loop, flow_for(context_.settings(), request.traits), request.ids.size());
}

std::shared_ptr<call>
call_directory::begin_on(std::shared_ptr<direct_output> const& output, base::loop& loop, call_request request)
{
    auto session = table_.stand_in(request.revision);
    return start(std::move(session), loop, output, std::move(request));
}

std::shared_ptr<batch>
call_directory::begin_batch_on(std::shared_ptr<direct_output> const& output, base::loop& loop, call_request request)
{
    auto session = table_.stand_in(request.revision);
    return start_batch(std::move(session), loop, output, std::move(request));
}

void call_directory::cancel(
    std::shared_ptr<live_session> const& session, std::string_view id, base::loop& loop, store::completion<void> done)
{
    // Whose answer has arrived decides which call is meant.
    ask_receipts(*session, loop, [this, session, id = std::string(id), done = std::move(done)]() mutable {
        context_.store().find(
            session->key, id, [this, session, id, done = std::move(done)](result<store::call_ref> found) mutable {
                if (found)
                    return context_.store().post(
                        found->stream, {store::letter::kind::cancel, found->request}, std::move(done));
                if (found.error() == errc::unavailable)
                    return done(std::unexpected(found.error()));
                // A call without a stream is known to nobody but its own node.
                if (found.error() == errc::not_found && !cancel_held(session->key, id))
                    context_.store().publish(cancel_bulletin(session->key, id));
                done({});
            });
    });
}

void call_directory::hear(std::string const& text)
{
    auto const heard = read_bulletin(text);
    if (!heard)
        return;
    if (heard->cancelled)
        cancel_held(heard->session, *heard->cancelled);
    else if (auto const session = table_.find(heard->session))
        session->end_held_calls();
}

bool call_directory::cancel_held(store::session_key const& key, std::string_view id)
{
    auto const session = table_.find(key);
    if (!session)
        return false;
    std::shared_ptr<call> newest;
    for (auto const& each : session->calls())
        if (!each->has_stream() && each->id() == id)
            newest = each;
    if (newest)
        newest->loop().post([newest] { newest->end(protocol::end_reason::cancelled); });
    return newest != nullptr;
}

void call_directory::cancel_stream(store::stream_key const& stream)
{
    context_.store().post(stream, {store::letter::kind::cancel, 0}, [this](result<void> posted) {
        if (!posted)
            context_.log().warning("a cancel could not be kept: {}", posted.error().message());
    });
}

void call_directory::take_answer(
    live_session const& session, protocol::message const& answer, store::completion<void> done)
{
    // Our ids are strings of our own making; within the session, the stream says where the question came from.
    std::string_view const id = answer.id;
    if (id.size() < 2 || id.front() != '"')
        return done({});
    auto const question = engine::parse_question_id(id.substr(1, id.size() - 2));
    if (!question || question->number > std::numeric_limits<std::uint32_t>::max())
        return done({});
    context_.store().post(
        {session.key, question->stream},
        {store::letter::kind::answer, static_cast<std::uint32_t>(question->number), protocol::outcome_text(answer)},
        std::move(done));
}

void call_directory::interrupt_all()
{
    interruptions_.fetch_add(1);
    for (auto const& session : table_.all())
        for (auto const& each : session->calls())
            each->loop().post([each] { each->interrupt(); });
}

bool call_directory::runs(store::stream_key const& stream)
{
    {
        base::lock const lock(beginning_mutex_);
        if (std::ranges::any_of(beginning_, [&](auto const& each) { return each->stream == stream; }))
            return true;
    }
    auto const session = table_.find(stream.session);
    return session && session->runs(stream.stream);
}

}
