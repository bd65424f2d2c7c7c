// A loop: the one thread an object lives on, as seen by the rooms that do no I/O themselves. The
// program's loops run on Asio (io_loop.hpp); the simulation has its own.
#pragma once

#include "base/last_handler.hpp"
#include "base/timer_wheel.hpp"

#include <functional>

namespace belay::base {

class loop {
public:
    explicit loop(clock const& clock) : wheel_(clock) {}
    loop(loop const&) = delete;
    loop& operator=(loop const&) = delete;
    virtual ~loop() = default;

    /// Runs the function on the loop, later. From any thread.
    virtual void post(std::move_only_function<void()> work) = 0;

    /// The loop's timers. On the loop only.
    [[nodiscard]] timer_wheel& timers() noexcept { return wheel_; }
    [[nodiscard]] time_point now() const noexcept { return wheel_.now(); }
    [[nodiscard]] time_point recent() const noexcept { return wheel_.recent(); }

    /// What it has started last, for whoever watches it.
    [[nodiscard]] last_handler const& handler() const noexcept { return handler_; }

protected:
    last_handler handler_;

private:
    timer_wheel wheel_;
};

}
