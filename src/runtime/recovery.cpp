#include "runtime/recovery.hpp"

#include "protocol/endings.hpp"
#include "runtime/call_notes.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

// Calls are ended in bites.
constexpr std::size_t recover_bite = 1000;

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

void recovery::end_lapsed()
{
    context_.store().lapsed(recover_bite, [this](result<std::vector<store::call_ref>> calls) {
        if (!calls)
            return;
        for (auto const& each : *calls)
            if (!calls_.runs(each.stream)) // else our own lease ran late, and the call is alive
                take_over(each);
    });
}

void recovery::end_forgotten()
{
    look_through_owned(std::nullopt);
}

void recovery::look_through_owned(std::optional<store::stream_key> after)
{
    bool const is_first = !after;
    context_.store().owned(
        context_.owner(), std::move(after), recover_bite, [this, is_first](result<std::vector<store::call_ref>> calls) {
            if (!calls)
                return;
            auto const before = is_first ? std::exchange(suspects_, {}) : suspects_;
            for (auto const& each : *calls) {
                if (calls_.runs(each.stream))
                    continue;
                // Seen twice: its answer was not just on its way to the store.
                if (std::ranges::find(before, each.stream) != before.end())
                    take_over(each);
                else
                    suspects_.push_back(each.stream);
            }
            if (calls->size() == recover_bite)
                context_.later([this, last = calls->back().stream] { look_through_owned(last); });
        });
}

void recovery::take_over(store::call_ref const& lost)
{
    // A look may come while the one before it is still under way.
    if (std::ranges::find(ending_, lost.stream) != ending_.end())
        return;
    ending_.push_back(lost.stream);
    context_.store().claim(
        lost.stream, lost.fence, context_.owner(), [this, stream = lost.stream](result<store::claimed_call> claimed) {
            if (claimed)
                answer(stream, *claimed);
            else
                std::erase(ending_, stream);
        });
}

void recovery::answer(store::stream_key const& stream, store::claimed_call const& claimed)
{
    auto const notes = read_call_notes(claimed.meta.call_notes);
    std::vector<store::event_data> answers;
    // Of a batch, some requests may have their answers already.
    for (auto const number : claimed.unanswered)
        answers.push_back(
            {std::make_shared<std::string const>(protocol::ended_answer(
                 {claimed.meta.requests[number].id, notes.is_tool_call, notes.is_retry_safe},
                 protocol::end_reason::owner_lost)),
             store::event_kind::response, number});
    auto const count = answers.size();
    // If this fails, the call is one that this node owns and does not run.
    context_.store().append(
        stream, claimed.fence, 1, std::move(answers), true, [this, stream, count](result<store::stream_top> top) {
            std::erase(ending_, stream);
            if (!top)
                return;
            context_.metrics().events_appended.Increment(static_cast<double>(count));
            for (std::size_t i = 0; i < count; ++i)
                context_.metrics().call_ended(protocol::to_string(protocol::end_reason::owner_lost));
        });
}

}
