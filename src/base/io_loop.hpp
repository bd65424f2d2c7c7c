// The loop of a real thread: an io_context, and one steady_timer that drives the wheel.
#pragma once

#include "base/loop.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace belay::base {

class io_loop final : public loop {
public:
    using executor_type = boost::asio::io_context::executor_type;

    explicit io_loop(clock const& clock);
    ~io_loop() override;

    void post(std::move_only_function<void()> work) override;

    [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }
    [[nodiscard]] executor_type executor() noexcept { return context_.get_executor(); }

    /// Runs until stop(). On the thread that is to be the loop.
    void run();
    /// From any thread.
    void stop();
    /// Looks at the clock again: the owner of a manual clock calls it after advancing. From any thread.
    void poke();

private:
    void turn();
    void arm(time_point when);

    boost::asio::io_context context_{1};
    boost::asio::basic_waitable_timer<
        std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, executor_type>
        wake_;
    time_point armed_ = time_point::max();
};

/// The loop as the io_loop it is, for code that awaits. Throws std::logic_error for a loop of another kind.
[[nodiscard]] io_loop& io_loop_of(loop& loop);

}
