#include "base/clock.hpp"

namespace belay::base {

time_point machine_clock::now() const noexcept
{
    return std::chrono::steady_clock::now();
}

time_point manual_clock::now() const noexcept
{
    // An hour past zero, so that "long ago" is still a valid time.
    return time_point(std::chrono::hours(1) + duration(since_start_.load(std::memory_order_acquire)));
}

void manual_clock::advance(duration by) noexcept
{
    since_start_.fetch_add(by.count(), std::memory_order_acq_rel);
}

}
