#include "base/io_loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace belay::base {

namespace {

using namespace std::chrono_literals;

// A loop on a thread of its own, with a clock that the test owns.
class IoLoop : public testing::Test {
protected:
    manual_clock clock_;
    io_loop loop_{clock_};
    std::thread thread_{[this] { loop_.run(); }};

    ~IoLoop() override { stop(); }

    void stop()
    {
        loop_.stop();
        if (thread_.joinable())
            thread_.join();
    }
    /// Runs it on the loop and waits until it has.
    template<class F>
    void on_loop(F work)
    {
        std::promise<void> done;
        loop_.post([&] {
            work();
            done.set_value();
        });
        done.get_future().wait();
    }
    void advance(duration by)
    {
        clock_.advance(by);
        loop_.poke();
        on_loop([] {}); // behind the poke
    }
};

TEST_F(IoLoop, RunsPostedWorkOnItsThread)
{
    std::thread::id ran;
    on_loop([&] { ran = std::this_thread::get_id(); });
    EXPECT_EQ(ran, thread_.get_id());
}

TEST_F(IoLoop, RunsTheWorkOfAThreadInItsOrder)
{
    constexpr int thread_count = 4;
    constexpr int posts = 500;
    std::vector<int> order[thread_count];
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i)
        threads.emplace_back([&, i] {
            for (int n = 0; n < posts; ++n)
                loop_.post([&order, i, n] { order[i].push_back(n); });
        });
    for (auto& each : threads)
        each.join();
    on_loop([] {});
    for (auto const& own : order) {
        ASSERT_EQ(own.size(), static_cast<std::size_t>(posts));
        EXPECT_TRUE(std::ranges::is_sorted(own));
    }
}

TEST_F(IoLoop, TimersHaveTheirTurnBetweenWorkThatPostsItself)
{
    std::promise<void> done;
    std::unique_ptr<timer> due;
    std::function<void()> again = [&] {
        if (due)
            loop_.post([&] { again(); });
        else
            done.set_value();
    };
    loop_.post([&] {
        due = std::make_unique<timer>(loop_.timers(), [&] { due.reset(); });
        due->after(0s);
        again();
    });
    done.get_future().wait();
}

TEST_F(IoLoop, WorkHasItsTurnBetweenTimersThatAreDueTogether)
{
    constexpr std::size_t count = 10'000;
    std::vector<std::unique_ptr<timer>> timers;
    std::size_t ran = 0;
    std::size_t last = 0;
    std::size_t largest = 0;
    std::promise<void> done;
    std::function<void()> look = [&] {
        largest = std::max(largest, ran - std::exchange(last, ran));
        if (ran < count)
            loop_.post([&] { look(); });
        else
            done.set_value();
    };
    on_loop([&] {
        for (std::size_t i = 0; i < count; ++i) {
            timers.push_back(std::make_unique<timer>(loop_.timers(), [&] { ++ran; }));
            timers.back()->after(1s);
        }
    });
    loop_.post([&] { look(); });
    clock_.advance(1s);
    loop_.poke();
    done.get_future().wait();
    on_loop([&] { timers.clear(); });
    EXPECT_GT(largest, 0u);
    EXPECT_LE(largest, 256u);
}

TEST_F(IoLoop, TakesWorkThatCanOnlyBeMoved)
{
    int got = 0;
    std::promise<void> done;
    loop_.post([&, owned = std::make_unique<int>(5)] {
        got = *owned;
        done.set_value();
    });
    done.get_future().wait();
    EXPECT_EQ(got, 5);
}

TEST_F(IoLoop, RunsATimerWhenItsClockIsAdvanced)
{
    std::unique_ptr<timer> one;
    std::atomic<int> fired{0};
    on_loop([&] {
        one = std::make_unique<timer>(loop_.timers(), [&] { ++fired; });
        one->after(1h);
    });
    advance(1h - 1ms);
    EXPECT_EQ(fired, 0);
    advance(1ms);
    EXPECT_EQ(fired, 1);
    on_loop([&] { one.reset(); });
}

TEST_F(IoLoop, RunsAPeriodicTimerThroughManyPokes)
{
    std::unique_ptr<timer> one;
    int fired = 0;
    on_loop([&] {
        one = std::make_unique<timer>(loop_.timers(), [&] {
            ++fired;
            one->after(10min);
        });
        one->after(10min);
    });
    for (int i = 0; i < 50; ++i)
        advance(10min);
    on_loop([&] { one.reset(); });
    EXPECT_EQ(fired, 50);
}

TEST_F(IoLoop, TakesPokesOfSeveralThreads)
{
    std::unique_ptr<timer> one;
    std::promise<void> fired;
    on_loop([&] {
        one = std::make_unique<timer>(loop_.timers(), [&] { fired.set_value(); });
        one->after(1s);
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 250; ++n) {
                clock_.advance(1ms);
                loop_.poke();
            }
        });
    for (auto& each : threads)
        each.join();
    fired.get_future().wait();
    on_loop([&] { one.reset(); });
}

TEST_F(IoLoop, StopsFromAnotherThread)
{
    stop();
    EXPECT_FALSE(thread_.joinable());
}

TEST(IoLoopClock, RunsTimersByTheMachinesClock)
{
    machine_clock clock;
    io_loop loop(clock);
    int fired = 0;
    timer late(loop.timers(), [&] {
        fired = fired * 10 + 2;
        loop.stop();
    });
    timer early(loop.timers(), [&] { fired = fired * 10 + 1; });
    late.after(20ms);
    early.after(5ms); // armed later, due earlier
    auto const start = clock.now();
    loop.run();
    EXPECT_EQ(fired, 12);
    EXPECT_GE(clock.now() - start, 20ms);
}

TEST(IoLoopOf, GivesTheLoopThatItIs)
{
    manual_clock clock;
    io_loop own(clock);
    loop& as_loop = own;
    EXPECT_EQ(&io_loop_of(as_loop), &own);
}

TEST(IoLoopOf, ThrowsForALoopOfAnotherKind)
{
    class other_loop final : public loop {
    public:
        using loop::loop;
        void post(std::move_only_function<void()>) override {}
    };
    manual_clock clock;
    other_loop other(clock);
    EXPECT_THROW((void)io_loop_of(other), std::logic_error);
}

}

}
