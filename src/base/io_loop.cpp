#include "base/io_loop.hpp"

#include "base/current_loop.hpp"
#include "base/mutex.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <deque>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace belay::base {

namespace {

/// Timers that run in one go, however many are due: sockets and posted work have their turn in between.
constexpr std::size_t timers_per_turn = 256;

}

/// What of a context is this loop's: the work that was posted to it, which can be run or dropped apart from the rest.
class io_loop::guest {
public:
    using work = std::move_only_function<void()>;

    void push(work fresh)
    {
        base::lock const lock(mutex_);
        if (is_open_)
            posted_.push_back(std::move(fresh));
        // else: dropped after the lock is given back, with the parameter
    }
    /// False if there was none.
    bool run_one()
    {
        std::lock_guard const running(running_);
        work next;
        {
            base::lock const lock(mutex_);
            if (posted_.empty())
                return false;
            next = std::move(posted_.front());
            posted_.pop_front();
        }
        has_run_ = true;
        next();
        return true;
    }
    /// Runs this instead, unless it is over.
    void run(auto const& now)
    {
        std::lock_guard const running(running_);
        if (is_open())
            now();
    }
    void close()
    {
        std::deque<work> dropped;
        base::lock const lock(mutex_);
        is_open_ = false;
        dropped.swap(posted_);
    }
    bool close_unless_run()
    {
        std::lock_guard const running(running_);
        if (!has_run_)
            close();
        return !has_run_;
    }

private:
    [[nodiscard]] bool is_open()
    {
        base::lock const lock(mutex_);
        return is_open_;
    }

    // Held while work runs. It may run more: whoever destroys a host inside a function on the loop does.
    std::recursive_mutex running_;
    bool has_run_ = false; // with running_
    base::mutex mutex_;
    std::deque<work> posted_ BELAY_GUARDED_BY(mutex_);
    bool is_open_ BELAY_GUARDED_BY(mutex_) = true;
};

io_loop::io_loop(clock const& clock)
    : loop(clock), own_(std::make_unique<boost::asio::io_context>(1)), context_(*own_), wake_(context_)
{
    listen_to_timers();
}

io_loop::io_loop(clock const& clock, boost::asio::io_context& given)
    : loop(clock), context_(given), guest_(std::make_shared<guest>()), wake_(context_)
{
    listen_to_timers();
}

void io_loop::listen_to_timers()
{
    timers().on_armed([this](time_point when) {
        if (when < armed_)
            arm(when);
    });
}

io_loop::~io_loop()
{
    timers().on_armed(nullptr);
    if (guest_)
        guest_->close();
}

void io_loop::post(std::move_only_function<void()> work)
{
    if (!guest_)
        return boost::asio::post(context_, std::move(work));
    guest_->push(std::move(work));
    boost::asio::post(context_, [guest = guest_] { guest->run_one(); });
}

void io_loop::arm(time_point when)
{
    armed_ = when;
    // The wheel's clock may be a manual one, so the delay is computed on it, not on the machine's.
    auto const delay = when - now();
    wake_.expires_after(std::max(delay, duration::zero()));
    wake_.async_wait([this, guest = guest_](boost::system::error_code const& error) {
        if (error) // re-armed for an earlier time, or stopping
            return;
        if (guest)
            guest->run([this] { turn(); });
        else
            turn();
    });
}

void io_loop::turn()
{
    armed_ = time_point::max();
    timers().advance(timers_per_turn);
    if (auto const next = timers().next_deadline(); next && *next < armed_)
        arm(*next);
}

void io_loop::poke()
{
    post([this] {
        wake_.cancel();
        turn();
    });
}

void io_loop::run()
{
    auto const work = boost::asio::make_work_guard(context_);
    handler_scope::of_this_thread = &handler_;
    current_loop = this;
    context_.run();
    current_loop = nullptr;
    handler_scope::of_this_thread = nullptr;
}

void io_loop::stop()
{
    if (!guest_)
        return context_.stop();
    wake_.cancel();
    guest_->close();
}

void io_loop::run_posted()
{
    while (guest_->run_one())
        ;
}

bool io_loop::stop_unless_run()
{
    return guest_->close_unless_run();
}

bool io_loop::is_on_this_thread() const noexcept
{
    return context_.get_executor().running_in_this_thread();
}

io_loop& io_loop_of(loop& loop)
{
    if (auto* const found = dynamic_cast<io_loop*>(&loop))
        return *found;
    throw std::logic_error("coroutines need a loop that runs on Asio");
}

}
