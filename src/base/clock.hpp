// Time as an interface. Production reads the machine's steady clock; tests and the simulation own a
// manual one and advance it. Nothing outside this file asks the machine for the time of a decision.
#pragma once

#include <atomic>
#include <chrono>

namespace belay::base {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

class clock {
public:
    virtual ~clock() = default;
    [[nodiscard]] virtual time_point now() const noexcept = 0;
    /// Now, or up to a few milliseconds before, for a fraction of the price: for times that are kept for seconds. Does
    /// not run backwards either.
    [[nodiscard]] virtual time_point recent() const noexcept { return now(); }
};

class machine_clock final : public clock {
public:
    time_point now() const noexcept override;
    time_point recent() const noexcept override;
};

/// Stands still until someone advances it. Safe to read and advance from several threads.
class manual_clock final : public clock {
public:
    time_point now() const noexcept override;
    void advance(duration by) noexcept;

private:
    std::atomic<duration::rep> since_start_{0};
};

}
