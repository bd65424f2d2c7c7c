#include "base/clock.hpp"

#include <ctime>

namespace belay::base {

time_point machine_clock::now() const noexcept
{
    return std::chrono::steady_clock::now();
}

time_point machine_clock::recent() const noexcept
{
    // The same clock as the steady one, as it was at the kernel's last tick.
    timespec tick{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
    return time_point(std::chrono::seconds(tick.tv_sec) + std::chrono::nanoseconds(tick.tv_nsec));
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
