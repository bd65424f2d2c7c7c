#include "store/redis_queue.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace belay::store {

namespace {

constexpr std::string_view asking = "*1\r\n$6\r\nASKING\r\n";
constexpr int most_redirections = 16;

}

bool redis_queue::push(redis_command& command)
{
    if (bytes_ > 0 && bytes_ + command.bytes.size() > most_bytes_)
        return false;
    bytes_ += command.bytes.size();
    waiting_.push_back(std::move(command));
    return true;
}

void redis_queue::take_unsent(std::string& out, base::time_point now)
{
    if (!held_.empty())
        return;
    for (auto& each : waiting_) {
        if (each.asks) {
            out += asking;
            in_flight_.push_back({{}, now, true});
        }
        out += each.bytes;
        in_flight_.push_back({std::move(each), now, false});
    }
    waiting_.clear();
}

redis_queue::answer redis_queue::on_reply(redisReply const& reply)
{
    answer found;
    if (in_flight_.empty())
        return found;
    auto first = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (first.is_asking) {
        found.what = answer::kind::swallow;
        return found;
    }
    found.verdict = judge(reply);
    found.command = std::move(first.command);
    switch (found.verdict) {
    case redis_verdict::answer:
    case redis_verdict::full:
    case redis_verdict::refused:
        found.what = answer::kind::complete;
        forget(found.command);
        break;
    case redis_verdict::moved:
    case redis_verdict::ask:
        // "MOVED slot host:port"; one that goes round and round waits.
        if (++found.command.redirections > most_redirections)
            found.verdict = redis_verdict::wait;
        else if (std::string_view const text(reply.str, static_cast<std::size_t>(reply.len));
                 text.rfind(' ') != std::string_view::npos)
            found.command.belongs_to = text.substr(text.rfind(' ') + 1);
        [[fallthrough]];
    case redis_verdict::no_script:
    case redis_verdict::wait:
    case redis_verdict::other_master:
        found.what = answer::kind::hold;
        found.command.held_for = found.verdict;
        held_.push_back(std::exchange(found.command, {}));
        break;
    }
    return found;
}

void redis_queue::on_lost()
{
    // What is held was sent before what is still on its way.
    for (auto& each : in_flight_)
        if (!each.is_asking)
            held_.push_back(std::move(each.command));
    in_flight_.clear();
    release();
}

void redis_queue::release()
{
    waiting_.insert(waiting_.begin(), std::make_move_iterator(held_.begin()), std::make_move_iterator(held_.end()));
    held_.clear();
}

std::deque<redis_command> redis_queue::take_late(base::time_point now)
{
    std::deque<redis_command> late;
    auto const take_from = [&](std::deque<redis_command>& from) {
        std::deque<redis_command> left;
        for (auto& each : from) {
            if (each.give_up > now) {
                left.push_back(std::move(each));
                continue;
            }
            forget(each);
            late.push_back(std::move(each));
        }
        from = std::move(left);
    };
    take_from(held_);
    take_from(waiting_);
    return late;
}

std::deque<redis_command> redis_queue::take_all()
{
    on_lost();
    bytes_ = 0;
    return std::exchange(waiting_, {});
}

bool redis_queue::holds_for(redis_verdict why) const noexcept
{
    return std::ranges::any_of(held_, [why](redis_command const& each) { return each.held_for == why; });
}

std::optional<base::time_point> redis_queue::oldest_sent() const noexcept
{
    if (in_flight_.empty())
        return std::nullopt;
    return in_flight_.front().at;
}

}
