#include "base/stall_watch.hpp"

#include <algorithm>
#include <utility>

namespace belay::base {

stall_watch::stall_watch(std::vector<loop*> loops, clock const& clock, duration limit, function tell)
    : clock_(clock), limit_(limit), tell_(std::move(tell))
{
    for (auto* const each : loops)
        loops_.push_back({each, nullptr, {}, 0, {}, false});
}

void stall_watch::send(watched& to)
{
    to.sent = std::make_shared<errand>();
    to.sent_at = clock_.now();
    to.started_before = to.loop->handler().read().number;
    to.handler = {};
    to.is_told = false;
    to.loop->post([sent = to.sent, &clock = clock_] {
        sent->done_at.store(clock.now().time_since_epoch().count(), std::memory_order_relaxed);
        sent->is_done.store(true, std::memory_order_release);
    });
}

void stall_watch::look()
{
    for (std::size_t i = 0; i < loops_.size(); ++i) {
        auto& each = loops_[i];
        if (!each.sent) {
            send(each);
            continue;
        }
        bool const is_over = each.sent->is_done.load(std::memory_order_acquire);
        auto const until
            = is_over ? time_point(duration(each.sent->done_at.load(std::memory_order_relaxed))) : clock_.now();
        if (!is_over)
            each.handler = each.loop->handler().read();
        auto const held = until - each.sent_at;
        if (is_over ? each.is_told || held >= limit_ : !each.is_told && held >= limit_) {
            auto const started = each.handler.number - std::min(each.handler.number, each.started_before);
            tell_({i, held, is_over, each.is_told, each.handler, started});
            each.is_told = true;
        }
        if (is_over)
            send(each);
    }
}

}
