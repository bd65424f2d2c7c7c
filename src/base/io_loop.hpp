// The loop of a real thread: an io_context, and one steady_timer that drives the wheel. It has a context of its own, or
// is a guest on somebody else's, which one thread at a time runs.
#pragma once

#include "base/loop.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace belay::base {

class io_loop final : public loop {
public:
    using executor_type = boost::asio::io_context::executor_type;

    explicit io_loop(clock const& clock);
    /// A guest on that context, which must outlive it.
    io_loop(clock const& clock, boost::asio::io_context& given);
    ~io_loop() override;

    void post(std::move_only_function<void()> work) override;

    [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }
    [[nodiscard]] executor_type executor() noexcept { return context_.get_executor(); }

    /// Runs until stop(). On the thread that is to be the loop. Not for a guest.
    void run();
    /// From any thread; of a guest: on the loop. The context of a guest goes on; what was posted and has not run is
    /// dropped, and so is what is posted from now on.
    void stop();

    // --- for a guest

    /// Runs what was posted here and now, and nothing else of the context. Where no other thread runs it.
    void run_posted();
    /// If nothing that was posted has run yet: stop(), and nothing ever will. False otherwise. From any thread.
    [[nodiscard]] bool stop_unless_run();
    /// Whether this is called inside of run() or poll() of the context.
    [[nodiscard]] bool is_on_this_thread() const noexcept;
    /// What coroutines on this loop use, and hold with keeper(): a frame may stay in the context of a guest for longer
    /// than the guest.
    void set_keeper(std::weak_ptr<void> keeper) { keeper_ = std::move(keeper); }
    [[nodiscard]] std::shared_ptr<void> keeper() const { return keeper_.lock(); }
    /// Looks at the clock again: the owner of a manual clock calls it after advancing. From any thread.
    void poke();

private:
    class guest;

    void listen_to_timers();
    void turn();
    void arm(time_point when);

    std::unique_ptr<boost::asio::io_context> own_; // null: a guest
    boost::asio::io_context& context_;
    std::shared_ptr<guest> guest_; // null: on its own context
    std::weak_ptr<void> keeper_;
    boost::asio::basic_waitable_timer<
        std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, executor_type>
        wake_;
    time_point armed_ = time_point::max();
};

/// The loop as the io_loop it is, for code that awaits. Throws std::logic_error for a loop of another kind.
[[nodiscard]] io_loop& io_loop_of(loop& loop);

}
