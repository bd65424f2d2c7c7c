// One timer wheel per loop: every timeout of the loop's objects, in constant time, behind one timer of
// the operating system. Six levels of 64 slots with one millisecond ticks reach two years.
// Not thread-safe: a wheel and its timers belong to one loop.
#pragma once

#include "base/clock.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

namespace belay::base {

class timer_wheel;

/// A deadline that can be moved or cancelled. Cancels itself when destroyed. Its function runs on the
/// wheel's loop, may rearm it, and may destroy it.
class timer {
public:
    timer(timer_wheel& wheel, std::move_only_function<void()> expired);
    timer(timer const&) = delete;
    timer& operator=(timer const&) = delete;
    ~timer();

    /// Arms the timer, or moves it. A time that has passed fires at the next advance.
    void at(time_point when);
    void after(duration delay);
    void cancel() noexcept;
    [[nodiscard]] bool is_armed() const noexcept { return slot_ != nullptr; }

private:
    friend class timer_wheel;

    timer_wheel& wheel_;
    std::move_only_function<void()> expired_;
    std::uint64_t tick_ = 0;
    timer* previous_ = nullptr; // of the first in its list: the last
    timer* next_ = nullptr;     // of the last: null
    timer** slot_ = nullptr;
    bool* is_gone_ = nullptr; // while its function runs: where to tell that it was destroyed
};

class timer_wheel {
public:
    explicit timer_wheel(clock const& clock);
    timer_wheel(timer_wheel const&) = delete;
    timer_wheel& operator=(timer_wheel const&) = delete;
    ~timer_wheel();

    [[nodiscard]] time_point now() const noexcept { return clock_.now(); }
    [[nodiscard]] time_point recent() const noexcept { return clock_.recent(); }

    /// Runs every timer that is due at the clock's time, in the order of their ticks, and those of one tick in the
    /// order in which they were armed. Of more than `most`, the rest run at the next advance. Returns how many ran.
    std::size_t advance(std::size_t most = ~std::size_t(0));

    /// When advance() is next needed. Never later than the earliest timer; may be earlier.
    [[nodiscard]] std::optional<time_point> next_deadline() const noexcept;

    /// Called with the time of every timer that is armed, so that the owner wakes by then. Only the owner knows when it
    /// will: the wheel's own next deadline may have passed since it was asked.
    void on_armed(std::move_only_function<void(time_point)> armed) { armed_ = std::move(armed); }

private:
    friend class timer;

    static constexpr int level_count = 6;
    static constexpr int slot_bits = 6;
    static constexpr int slot_count = 1 << slot_bits;

    [[nodiscard]] std::uint64_t tick_of(time_point when) const noexcept;
    [[nodiscard]] std::optional<std::uint64_t> next_tick() const noexcept;
    void insert(timer& entry) noexcept;
    void remove(timer& entry) noexcept;

    clock const& clock_;
    time_point start_;
    std::uint64_t elapsed_ = 0;
    std::array<std::uint64_t, level_count> occupied_{};
    std::array<std::array<timer*, slot_count>, level_count> slots_{};
    timer* due_ = nullptr; // armed for a tick that has passed
    timer* running_ = nullptr; // those of them whose turn it is
    std::move_only_function<void(time_point)> armed_;
};

}
