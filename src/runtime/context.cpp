#include "runtime/context.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

node_context::node_context(
    runtime::settings settings, store::backend& store, base::random_source& random, observe::metrics& metrics,
    base::logger log)
    : settings_(std::move(settings)), store_(store), random_(random), metrics_(metrics), log_(std::move(log)),
      owner_(settings_.node_name + '/' + base::to_string(base::make_id128(random)))
{
    // Half the retention: a reader within the window cannot be overtaken by trimming.
    settings_.flow.window_events = settings_.limits.window_events();
    settings_.flow.window_bytes = settings_.limits.window_bytes();
    settings_.follower.mark_events = std::max<std::uint64_t>(1, settings_.flow.window_events / 4);
    settings_.follower.mark_bytes = std::max<std::uint64_t>(1, settings_.flow.window_bytes / 4);
}

std::uint64_t node_context::random()
{
    base::lock const lock(random_mutex_);
    return random_.next();
}

base::id128 node_context::random_id()
{
    base::lock const lock(random_mutex_);
    return base::make_id128(random_);
}

std::chrono::milliseconds node_context::retry_delay(std::chrono::milliseconds base)
{
    base::lock const lock(random_mutex_);
    return base + std::chrono::milliseconds(random_.below(static_cast<std::uint64_t>(base.count()) / 4 + 1));
}

store::reader_id node_context::next_reader()
{
    return {owner_, next_connection_.fetch_add(1, std::memory_order_relaxed)};
}

void node_context::later(std::move_only_function<void()> work)
{
    if (auto* const loop = own_loop())
        loop->post(std::move(work));
}

}
