#include "base/io_loop.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <stdexcept>

namespace belay::base {

namespace {

/// Timers that run in one go, however many are due: sockets and posted work have their turn in between.
constexpr std::size_t timers_per_turn = 256;

}

io_loop::io_loop(clock const& clock) : loop(clock), wake_(context_)
{
    timers().on_armed([this](time_point when) {
        if (when < armed_)
            arm(when);
    });
}

io_loop::~io_loop()
{
    timers().on_armed(nullptr);
}

void io_loop::post(std::move_only_function<void()> work)
{
    boost::asio::post(context_, std::move(work));
}

void io_loop::arm(time_point when)
{
    armed_ = when;
    // The wheel's clock may be a manual one, so the delay is computed on it, not on the machine's.
    auto const delay = when - now();
    wake_.expires_after(std::max(delay, duration::zero()));
    wake_.async_wait([this](boost::system::error_code const& error) {
        if (error) // re-armed for an earlier time, or stopping
            return;
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
    boost::asio::post(context_, [this] {
        wake_.cancel();
        turn();
    });
}

void io_loop::run()
{
    auto const work = boost::asio::make_work_guard(context_);
    handler_scope::of_this_thread = &handler_;
    context_.run();
    handler_scope::of_this_thread = nullptr;
}

void io_loop::stop()
{
    context_.stop();
}

io_loop& io_loop_of(loop& loop)
{
    if (auto* const found = dynamic_cast<io_loop*>(&loop))
        return *found;
    throw std::logic_error("coroutines need a loop that runs on Asio");
}

}
