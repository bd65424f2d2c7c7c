#include "runtime/recovery.hpp"

#include "protocol/endings.hpp"
#include "protocol/message.hpp"
#include "runtime/stream_output.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

// Calls are ended in bites.
constexpr std::size_t recover_bite = 1000;

// For so long a node that cannot run a call lets others take it.
constexpr base::duration leave_time = std::chrono::seconds(1);

}

recovery::recovery(node_context& context, sessions& sessions, call_directory& calls)
    : context_(context), sessions_(sessions), calls_(calls)
{
}

void recovery::run_with(node& node, service& service)
{
    node_ = &node;
    service_ = &service;
    bulletins_ = context_.store().listen([this](std::string const& text) {
        if (text == released_word)
            context_.later([this] {
                auto const* const loop = context_.own_loop();
                if (!loop) // stopped meanwhile
                    return;
                auto const now = loop->now();
                while_alive(now, [this, now] { look_for_lapsed(now); });
            });
    });
}

void recovery::renew(std::move_only_function<void()> then)
{
    context_.store().renew(
        context_.owner(), context_.settings().lease, [then = std::move(then)](result<void> renewed) mutable {
            if (renewed)
                then();
        });
}

void recovery::while_alive(base::time_point now, std::move_only_function<void()> work)
{
    if (renewed_at_ && now < *renewed_at_ + context_.settings().lease / 3)
        return work();
    // If it fails, the next look tries it again; until then there are others who look.
    renew([this, now, work = std::move(work)]() mutable {
        renewed_at_ = now;
        work();
    });
}

void recovery::look_for_lapsed(base::time_point now)
{
    for (auto const& each : std::exchange(unsure_, {}))
        claim(each);
    context_.store().lapsed(recover_bite, [this, now](result<std::vector<store::call_ref>> calls) {
        if (!calls)
            return;
        for (auto& each : left_to_others_)
            each.is_there = false;
        for (auto const& each : *calls)
            if (!calls_.runs(each.stream)) // else our own lease ran late, and the call is alive
                consider(each, now);
        std::erase_if(left_to_others_, [](left const& each) { return !each.is_there; });
    });
}

void recovery::consider(store::call_ref const& lost, base::time_point now)
{
    if (lost.work == 0)
        return take_over(lost);
    if (context_.departures().is_draining()) // whoever stays, or comes, runs it
        return;
    if (service_ && service_->can_run(lost.work))
        run_again(lost);
    else if (was_left_to_others(lost, now))
        take_over(lost);
}

bool recovery::was_left_to_others(store::call_ref const& lost, base::time_point now)
{
    auto const found = std::ranges::find(left_to_others_, lost.stream, &left::stream);
    if (found == left_to_others_.end()) {
        left_to_others_.push_back({lost.stream, now});
        return false;
    }
    found->is_there = true;
    return now >= found->since + leave_time;
}

void recovery::end_forgotten()
{
    look_through_owned(std::nullopt, std::make_shared<streams const>(std::exchange(suspects_, {})));
}

void recovery::look_through_owned(std::optional<store::stream_key> after, std::shared_ptr<streams const> before)
{
    context_.store().owned(
        context_.owner(), std::move(after), recover_bite,
        [this, before = std::move(before)](result<std::vector<store::call_ref>> calls) mutable {
            if (!calls) { // what was seen stays seen until the next look
                suspects_.insert(suspects_.end(), before->begin(), before->end());
                return;
            }
            for (auto const& each : *calls) {
                if (calls_.runs(each.stream))
                    continue;
                // Seen twice: its answer was not just on its way to the store.
                if (std::ranges::find(*before, each.stream) != before->end())
                    take_over(each);
                else
                    suspects_.push_back(each.stream);
            }
            if (calls->size() == recover_bite)
                context_.later([this, last = calls->back().stream, before = std::move(before)]() mutable {
                    look_through_owned(std::move(last), std::move(before));
                });
        });
}

void recovery::run_again(store::call_ref const& lost)
{
    if (std::ranges::find(ending_, lost.stream) != ending_.end())
        return;
    ending_.push_back(lost.stream);
    auto const& session = lost.stream.session;
    sessions_.use(session.principal, base::to_string(session.id), [this, lost](result<session_use> use) {
        if (!use && use.error() != errc::not_found) {
            std::erase(ending_, lost.stream); // the next look tries it again
            return;
        }
        claim(std::make_shared<taking>(
            lost, use ? std::make_shared<session_use>(std::move(*use)) : std::shared_ptr<session_use>()));
    });
}

void recovery::take_over(store::call_ref const& lost)
{
    // A look may come while the one before it is still under way.
    if (std::ranges::find(ending_, lost.stream) != ending_.end())
        return;
    ending_.push_back(lost.stream);
    claim(std::make_shared<taking>(lost, nullptr));
}

void recovery::claim(std::shared_ptr<taking> const& what)
{
    auto const& lost = what->from;
    context_.store().claim(
        lost.stream, lost.fence, context_.owner(), [this, what](result<store::claimed_call> claimed) {
            auto const& stream = what->from.stream;
            if (!claimed && claimed.error() == errc::unavailable)
                unsure_.push_back(what); // the next look asks again, and is told what came of this
            else if (!claimed || (what->use && start(*what, *claimed)))
                std::erase(ending_, stream);
            else
                answer(stream, *claimed);
        });
}

bool recovery::start(taking const& what, store::claimed_call const& claimed)
{
    auto* const loop = context_.own_loop();
    auto const notes = read_call_notes(claimed.meta.call_notes);
    auto const revision = protocol::parse_revision(claimed.meta.dialect);
    if (!loop || claimed.attempt > most_attempts || claimed.repeats || notes.request.empty() || !revision)
        return false;
    auto const value = protocol::parse_json(notes.request, {});
    auto const message = value ? protocol::read_message(*value) : std::unexpected(value.error());
    if (!message || !service_->can_run(claimed.meta.work))
        return false;
    auto const& session = what.use->session();
    auto outcome = service_->find(*message).run({*node_, session, *revision, *message, nullptr});
    if (std::holds_alternative<deferred_answer>(outcome)) // not what was to be run again
        return false;
    if (!context_.departures().admit_call()) {
        // Claimed, and not run by this node any more: others may have it.
        context_.store().release(what.from.stream, claimed.fence, false, [](result<void>) {});
        return true;
    }
    call_request request;
    request.ids = {message->id};
    request.revision = *revision;
    request.who = claimed.meta.caller;
    std::optional<base::duration> left;
    if (notes.time > base::duration::zero())
        left = std::max(notes.time - claimed.age, base::duration(1)); // none: it ends when the loop turns
    std::move_only_function<void(std::shared_ptr<call>)> run;
    perform(
        std::move(outcome),
        [&run](std::string response) {
            run = [response = std::move(response)](std::shared_ptr<call> const& on) { on->answer(response); };
        },
        [&](start_call found, auto const&) {
            request.traits = found.traits;
            run = std::move(found.run);
        });
    calls_.run_again(
        *what.use, *loop, what.from.stream, claimed, std::move(request), left,
        what.from.owner.empty() ? protocol::end_reason::interrupted : protocol::end_reason::owner_lost, std::move(run));
    return true;
}

void recovery::answer(store::stream_key const& stream, store::claimed_call const& claimed)
{
    auto const notes = read_call_notes(claimed.meta.call_notes);
    std::vector<store::event_data> answers;
    // Of a batch, some requests may have their answers already.
    for (auto const number : claimed.unanswered) {
        auto const kind = notes.kind_of(number);
        auto text = protocol::ended_answer(
            {claimed.meta.requests[number].id, kind.is_tool_call, kind.is_retry_safe},
            protocol::end_reason::owner_lost);
        answers.push_back({std::make_shared<std::string const>(std::move(text)), store::event_kind::response, number});
    }
    auto const count = answers.size();
    // If this fails, the call is one that this node owns and does not run.
    context_.store().append(
        stream, claimed.fence, 1, claimed.top.sequence, std::move(answers), true,
        [this, stream, count](result<store::stream_top> top) {
            std::erase(ending_, stream);
            if (!top)
                return;
            context_.metrics().events_appended.Increment(static_cast<double>(count));
            for (std::size_t i = 0; i < count; ++i)
                context_.metrics().call_ended(protocol::to_string(protocol::end_reason::owner_lost));
        });
}

}
