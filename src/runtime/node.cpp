#include "runtime/node.hpp"

#include "engine/cursor.hpp"
#include "runtime/periodic.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

namespace belay::runtime {

namespace {

// Clients of a server that goes away come back when another has taken its place.
constexpr std::chrono::milliseconds drain_retry{5000};

// Mail that carries the number of a question and the client's answer to it.
constexpr std::string_view mail_answer = "answer";

// Calls of a lost node are ended in bites.
constexpr std::size_t recover_bite = 1000;

}

node::node(
    runtime::settings settings, store::backend& store, base::random_source& random, observe::metrics& metrics,
    base::logger log)
    : settings_(std::move(settings)), store_(store), random_(random), metrics_(metrics), log_(std::move(log)),
      owner_(settings_.node_name + '/' + base::to_string(base::make_id128(random)))
{
    // Half the retention: a reader within the window cannot be overtaken by trimming.
    settings_.flow.window_events = std::max<std::uint64_t>(1, settings_.limits.events_per_stream / 2);
    settings_.flow.window_bytes = std::max<std::uint64_t>(1, settings_.limits.bytes_per_stream / 2);
    mail_ = store_.listen(owner_, [this](store::owner_message message) { deliver(std::move(message)); });
}

node::~node()
{
    // Sessions and what runs in them hold each other while they live.
    mail_.reset();
    for (auto& stripe : table_)
        for (auto const& [key, session] : stripe.sessions) {
            auto const followers = std::exchange(session->followers, {});
            auto const calls = std::exchange(session->calls, {});
        }
    std::vector<std::shared_ptr<live_session>> passing;
    for (auto const& [at, session] : passing_)
        if (auto alive = session.lock())
            passing.push_back(std::move(alive));
    for (auto const& session : passing)
        auto const calls = std::exchange(session->calls, {});
}

void node::start(base::loop& loop)
{
    own_loop_.store(&loop);
    periodic_ = std::make_unique<periodic>(*this, loop);
}

void node::stop()
{
    own_loop_.store(nullptr);
    periodic_.reset();
}

std::chrono::milliseconds node::retry_delay(std::chrono::milliseconds base)
{
    std::lock_guard const lock(random_mutex_);
    return base + std::chrono::milliseconds(random_.below(static_cast<std::uint64_t>(base.count()) / 4 + 1));
}

std::uint64_t node::next_nonce()
{
    return nonce_.fetch_add(1, std::memory_order_relaxed);
}

// --- calls

void node::begin_call(
    session_use const& use, base::loop& loop, call_request request, store::completion<begun_call> done)
{
    auto const& session = use.session();
    if (!count_call())
        return done(failure(errc::unavailable));
    auto const stream = [&] {
        std::lock_guard const lock(random_mutex_);
        return random_.next();
    }();
    // The connection first: a caller over its budget is told before anything exists.
    auto attached
        = attach(session, loop, stream, store::stream_kind::request, {0, false}, request.revision, request.from, true);
    if (!attached) {
        uncount_call();
        return done(
            failure(attached.error() == follow_refusal::session_gone ? errc::not_found : errc::too_many_streams));
    }
    {
        std::lock_guard const lock(session->mutex);
        session->early_mail[stream];
    }
    auto beginning = std::make_shared<beginning_call>(
        session, loop, store::stream_key{session->key, stream}, std::move(*attached), std::move(request),
        std::move(done));
    open_stream(std::move(beginning));
}

void node::open_stream(std::shared_ptr<beginning_call> beginning)
{
    auto const& request = beginning->request;
    store::stream_meta meta{
        store::stream_kind::request, std::string(protocol::to_string(request.revision)), request.id, request.once};
    for (auto const line : std::views::split(request.id, '\n'))
        meta.answer_bytes.push_back(protocol::longest_ended_answer({line.begin(), line.end()}));
    meta.held_bytes = request.bytes;
    meta.has_unique_ids = settings_.duplicate_ids == duplicate_policy::reject;
    auto const& key = beginning->stream;
    auto const now = beginning->loop.now();
    store_.open(
        key, std::move(meta), owner_, now,
        [this, beginning = std::move(beginning)](result<store::opened_stream> opened) mutable {
            if (opened)
                return make_call(*beginning, *opened);
            bool const is_full = opened.error() == errc::too_many_streams || opened.error() == errc::no_space;
            if (is_full && !std::exchange(beginning->has_asked, true)) {
                // What has arrived by now makes room, and may not be known yet.
                auto& session = *beginning->session;
                auto& loop = beginning->loop;
                return ask_receipts(session, loop, [this, beginning = std::move(beginning)]() mutable {
                    open_stream(std::move(beginning));
                });
            }
            (void)take_early_mail(*beginning);
            give_up(*beginning->session, beginning->made);
            uncount_call();
            beginning->done(std::unexpected(opened.error()));
        });
}

void node::make_call(beginning_call& beginning, store::opened_stream const& opened)
{
    auto const& session = beginning.session;
    auto& loop = beginning.loop;
    auto& request = beginning.request;
    auto const& reader = beginning.made.fresh;
    reader->set_epoch(opened.epoch);
    auto running = std::make_shared<call>(
        *this, session, loop, beginning.stream.stream, opened.fence, std::move(request.id), request.traits, nullptr);
    // The reader is known before the handler runs, so that flow control holds from its first event.
    reader->announce();
    if (!add_call(*session, running, loop.now())) { // ended meanwhile; its keys are about to go
        (void)take_early_mail(beginning);
        give_up(*session, beginning.made);
        uncount_call();
        return beginning.done(failure(errc::not_found));
    }
    close_over_budget(beginning.made);
    running->set_trace(std::move(request.trace));
    running->begin();
    beginning.done(begun_call{std::move(running), reader, opened.twin});
    // Now that a batch has its members too.
    for (auto& each : take_early_mail(beginning))
        deliver(std::move(each));
}

std::vector<store::owner_message> node::take_early_mail(beginning_call const& beginning)
{
    std::lock_guard const lock(beginning.session->mutex);
    auto taken = beginning.session->early_mail.extract(beginning.stream.stream);
    return taken ? std::move(taken.mapped()) : std::vector<store::owner_message>();
}

void node::ask_receipts(live_session& session, base::loop& loop, std::move_only_function<void()> then)
{
    std::vector<std::shared_ptr<base::receipt>> here;
    std::map<base::loop*, std::vector<std::shared_ptr<base::receipt>>> elsewhere;
    {
        std::lock_guard const lock(session.mutex);
        for (auto const& each : session.receipts)
            if (auto open = each.receipt.lock())
                (each.loop == &loop ? here : elsewhere[each.loop]).push_back(std::move(open));
    }
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

bool node::count_call()
{
    running_calls_.fetch_add(1);
    if (!is_draining())
        return true;
    uncount_call();
    return false;
}

void node::uncount_call()
{
    running_calls_.fetch_sub(1);
    if (is_draining() && on_departure_)
        on_departure_();
}

bool node::add_call(live_session& session, std::shared_ptr<call> const& fresh, base::time_point now)
{
    {
        std::lock_guard const lock(session.mutex);
        if (session.machine.is_ended())
            return false;
        session.calls.push_back(fresh);
        session.machine.call_began();
        write_presence(session, now);
    }
    metrics_.calls_started.Increment();
    // Added behind the back of interrupt_calls(): whoever took the session's lock second sees the other.
    if (is_interrupting_.load())
        fresh->loop().post([fresh] { fresh->end(protocol::end_reason::interrupted); });
    return true;
}

void node::call_done(live_session& session, call& gone, base::time_point now)
{
    std::shared_ptr<call> keep;
    std::move_only_function<void()> quiet;
    {
        std::lock_guard const lock(session.mutex);
        auto const found = std::ranges::find_if(session.calls, [&](auto const& each) { return each.get() == &gone; });
        if (found == session.calls.end())
            return;
        keep = *found;
        session.calls.erase(found);
        session.machine.call_ended();
        session.machine.note_activity(now);
        write_presence(session, now);
        quiet = take_quiet(session);
    }
    uncount_call();
    if (quiet)
        quiet();
}

std::shared_ptr<call>
node::begin_member(std::shared_ptr<call> const& batch, std::uint32_t line, std::string id, call_traits traits)
{
    // Counted without asking whether the node drains: its batch was begun before.
    running_calls_.fetch_add(1);
    auto member = std::make_shared<call>(batch, line, std::move(id), traits);
    member->set_trace(batch->trace());
    {
        auto& session = batch->session();
        std::lock_guard const lock(session.mutex);
        session.calls.push_back(member);
        session.machine.call_began();
    }
    metrics_.calls_started.Increment();
    member->begin();
    return member;
}

result<std::shared_ptr<call>> node::begin_held_call(
    std::shared_ptr<live_session> session, base::loop& loop, call_request request, call::held_answer answer)
{
    if (!count_call())
        return failure(errc::unavailable);
    if (!session)
        session = passing_session(request.revision);
    auto running
        = std::make_shared<call>(*this, session, loop, 0, 0, std::move(request.id), request.traits, std::move(answer));
    if (!add_call(*session, running, loop.now())) {
        uncount_call();
        return failure(errc::not_found);
    }
    running->set_trace(std::move(request.trace));
    running->begin();
    return running;
}

result<begun_direct_call> node::begin_direct_call(base::loop& loop, call_request request)
{
    if (!count_call())
        return failure(errc::unavailable);
    auto const session = passing_session(request.revision);
    auto output = std::make_shared<direct_output>(*this, loop);
    auto running = std::make_shared<call>(*this, session, loop, output, std::move(request.id), request.traits);
    (void)add_call(*session, running, loop.now()); // it cannot have ended
    running->set_trace(std::move(request.trace));
    running->begin();
    return begun_direct_call{std::move(running), std::move(output)};
}

void node::direct_opened()
{
    open_followings_.fetch_add(1, std::memory_order_relaxed);
}

void node::direct_closed()
{
    open_followings_.fetch_sub(1, std::memory_order_relaxed);
    if (is_draining() && on_departure_)
        on_departure_();
}

void node::cancel(
    std::shared_ptr<live_session> const& session, std::string_view id, base::loop& loop,
    std::move_only_function<void()> done)
{
    // Whose answer has arrived decides which call is meant.
    ask_receipts(*session, loop, [this, session, id = std::string(id), done = std::move(done)]() mutable {
        store_.find(
            session->key, id, [this, session, id, done = std::move(done)](result<store::call_ref> found) mutable {
                if (found)
                    send_cancel(*found, id);
                else if (found.error() == errc::not_found)
                    cancel_held(*session, id);
                done();
            });
    });
}

void node::with_owner(store::stream_key const& stream, std::function<void(store::call_ref const&)> then)
{
    store_.running(stream.session, [stream, then = std::move(then)](result<std::vector<store::call_ref>> running) {
        if (!running)
            return;
        for (auto const& each : *running)
            if (each.stream == stream)
                then(each);
    });
}

void node::cancel_stream(store::stream_key const& stream)
{
    with_owner(stream, [this](store::call_ref const& owner) { send_cancel(owner, owner.label); });
}

void node::take_answer(std::shared_ptr<live_session> const& session, protocol::message const& answer)
{
    // Our ids are strings of our own making; within the session, the stream says where the question came from.
    std::string_view const id = answer.id;
    if (id.size() < 2 || id.front() != '"')
        return;
    auto const question = engine::parse_question_id(id.substr(1, id.size() - 2));
    if (!question)
        return;
    std::string body;
    base::append_base62(body, question->number);
    body += '\n';
    body += protocol::outcome_text(answer);
    with_owner({session->key, question->stream}, [this, body = std::move(body)](store::call_ref const& owner) {
        store_.send(owner.owner, {owner.stream, std::string(mail_answer), body}, [](result<void>) {});
    });
}

void node::send_cancel(store::call_ref const& to, std::string_view id)
{
    store_.send(
        to.owner, {to.stream, std::string(protocol::to_string(protocol::end_reason::cancelled)), std::string(id)},
        [this](result<void> sent) {
            if (!sent)
                log_.warning("a cancel found no owner: {}", sent.error().message());
        });
}

void node::cancel_held(live_session& session, std::string_view id)
{
    // A call without a stream is known to nobody but its own node.
    std::shared_ptr<call> newest;
    {
        std::lock_guard const lock(session.mutex);
        for (auto const& each : session.calls)
            if (!each->has_stream() && each->id() == id)
                newest = each;
    }
    if (newest)
        newest->loop().post([newest] { newest->end(protocol::end_reason::cancelled); });
}

void node::deliver(store::owner_message message)
{
    auto const live = find_live(message.stream.session);
    if (!live)
        return;
    bool const is_cancel = message.kind == protocol::to_string(protocol::end_reason::cancelled);
    std::shared_ptr<call> target;
    {
        std::lock_guard const lock(live->mutex);
        for (auto const& each : live->calls)
            if (each->has_stream() && each->stream().stream == message.stream.stream
                && (is_cancel ? each->id() == message.body : !each->is_member()))
                target = each;
        if (auto const early = live->early_mail.find(message.stream.stream); early != live->early_mail.end()) {
            early->second.push_back(std::move(message));
            return;
        }
    }
    if (!target)
        return;
    if (message.kind == mail_answer) {
        auto const line = message.body.find('\n');
        auto const number = base::parse_base62(std::string_view(message.body).substr(0, line));
        if (number)
            target->loop().post([target, number = *number, text = message.body.substr(line + 1)]() mutable {
                target->take_answer(number, std::move(text));
            });
        return;
    }
    // Other mail to an owner says why its call ends.
    auto const reason = message.kind == protocol::to_string(protocol::end_reason::cancelled)
        ? protocol::end_reason::cancelled
        : protocol::end_reason::session_ended;
    target->loop().post([target, reason] { target->end(reason); });
}

void node::recover_lapsed(base::time_point now)
{
    store_.lapsed(now, recover_bite, [this, now](result<std::vector<store::call_ref>> calls) {
        if (!calls)
            return;
        for (auto const& each : *calls) {
            if (each.owner == owner_) // our own lease ran late; the calls are alive
                continue;
            store_.claim(each.stream, owner_, [this, each, now](result<store::claimed_call> claimed) {
                if (claimed)
                    answer_lost(each, *claimed, now);
            });
        }
    });
}

void node::answer_lost(store::call_ref const& lost, store::claimed_call const& claimed, base::time_point now)
{
    std::vector<store::event_data> answers;
    std::uint32_t line = 0;
    for (auto const id : std::views::split(lost.label, '\n')) {
        // Of a batch, some requests may have their answers already.
        if (std::ranges::find(claimed.unanswered, line) != claimed.unanswered.end())
            answers.push_back(
                {std::make_shared<std::string const>(protocol::ended_answer(
                     {std::string_view(id.begin(), id.end()), true, false}, protocol::end_reason::owner_lost)),
                 store::event_kind::response, line});
        ++line;
    }
    auto const count = answers.size();
    store_.append(
        lost.stream, claimed.fence, std::move(answers), true, now, [this, count](result<store::stream_top> top) {
            if (!top)
                return;
            metrics_.events_appended.Increment(static_cast<double>(count));
            for (std::size_t i = 0; i < count; ++i)
                metrics_.call_ended(protocol::to_string(protocol::end_reason::owner_lost));
        });
}

template<class F>
void node::for_each_session(F const& visit)
{
    auto sessions = live_sessions(); // a copy, so that one lock is held at a time
    {
        std::lock_guard const lock(passing_mutex_);
        for (auto const& [at, session] : passing_)
            if (auto alive = session.lock())
                sessions.push_back(std::move(alive));
    }
    for (auto const& session : sessions) {
        std::lock_guard const lock(session->mutex);
        visit(*session);
    }
}

void node::interrupt_calls()
{
    is_interrupting_.store(true);
    for_each_session([](live_session& session) {
        for (auto const& each : session.calls)
            each->loop().post([each] { each->end(protocol::end_reason::interrupted); });
    });
}

void node::close_followers(engine::close_reason reason)
{
    for_each_session([&](live_session& session) {
        for (auto const& each : session.followers)
            each->close(reason, retry_delay(drain_retry));
    });
}

std::string node::metrics_text(std::size_t http_connections)
{
    auto const used = store_.used();
    metrics_.sessions.Set(static_cast<double>(used.sessions));
    metrics_.streams.Set(static_cast<double>(used.streams));
    metrics_.store_bytes.Set(static_cast<double>(used.bytes));
    metrics_.connections.Set(static_cast<double>(http_connections));
    metrics_.calls_running.Set(static_cast<double>(running_calls()));
    return metrics_.text();
}

}
