#include "base/stall_watch.hpp"

#include "base/io_loop.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

namespace belay::base {

namespace {

using namespace std::chrono_literals;

// Two loops on threads, a clock that the test owns, and a watch that looks when the test says so.
class StallWatch : public testing::Test {
protected:
    ~StallWatch() override
    {
        for (auto* const loop : {&first_, &second_})
            loop->stop();
        for (auto& thread : threads_)
            thread.join();
    }

    /// Holds the second loop until the returned promise is kept.
    std::promise<void> hold(std::move_only_function<void(std::future<void>)> how)
    {
        std::promise<void> go_on;
        std::promise<void> is_held;
        second_.post([&, how = std::move(how), wait = go_on.get_future()]() mutable {
            is_held.set_value();
            how(std::move(wait));
        });
        is_held.get_future().wait();
        return go_on;
    }
    /// What the loop has been given is done.
    static void finish(io_loop& loop)
    {
        std::promise<void> done;
        loop.post([&] { done.set_value(); });
        done.get_future().wait();
    }
    void barrier()
    {
        finish(first_);
        finish(second_);
    }
    /// The first loop, which nobody holds, does its part before the clock moves.
    void look()
    {
        watch_.look();
        finish(first_);
    }

    manual_clock clock_;
    io_loop first_{clock_};
    io_loop second_{clock_};
    std::vector<stall> told_;
    stall_watch watch_{{&first_, &second_}, clock_, 1s, [this](stall const& each) { told_.push_back(each); }};
    std::vector<std::thread> threads_ = make_threads();

private:
    std::vector<std::thread> make_threads()
    {
        std::vector<std::thread> threads;
        for (auto* const loop : {&first_, &second_})
            threads.emplace_back([loop] { loop->run(); });
        return threads;
    }
};

TEST_F(StallWatch, NamesTheHandlerThatHoldsALoopOnceAndSaysWhenItIsOver)
{
    std::promise<void> is_inside;
    auto go_on = hold([&](std::future<void> wait) {
        handler_scope const running("tools/call", "nap");
        is_inside.set_value();
        wait.wait();
    });
    is_inside.get_future().wait();
    look();
    clock_.advance(999ms);
    look();
    EXPECT_TRUE(told_.empty());
    clock_.advance(1ms);
    look();
    look();
    ASSERT_EQ(told_.size(), 1u);
    EXPECT_EQ(told_[0].loop, 1u);
    EXPECT_EQ(told_[0].held, 1s);
    EXPECT_FALSE(told_[0].is_over);
    EXPECT_EQ(told_[0].handler.name, "tools/call nap");
    EXPECT_TRUE(told_[0].handler.is_running);
    clock_.advance(4s);
    go_on.set_value();
    barrier();
    look();
    ASSERT_EQ(told_.size(), 2u);
    EXPECT_TRUE(told_[1].is_over);
    EXPECT_TRUE(told_[1].is_told);
    EXPECT_EQ(told_[1].held, 5s);
    EXPECT_EQ(told_[1].handler.name, "tools/call nap");
    barrier();
    look();
    EXPECT_EQ(told_.size(), 2u);
}

TEST_F(StallWatch, SaysThatAHandlerHasReturned)
{
    std::promise<void> is_beyond;
    auto go_on = hold([&](std::future<void> wait) {
        {
            handler_scope const running("tools/call", "quick");
        }
        is_beyond.set_value();
        wait.wait();
    });
    is_beyond.get_future().wait();
    look();
    clock_.advance(2s);
    look();
    ASSERT_EQ(told_.size(), 1u);
    EXPECT_EQ(told_[0].handler.name, "tools/call quick");
    EXPECT_FALSE(told_[0].handler.is_running);
    EXPECT_EQ(told_[0].started, 0u) << "before the loop was asked";
    go_on.set_value();
}

TEST_F(StallWatch, TellsOfAStallThatWasOverBeforeItLooked)
{
    auto go_on = hold([](std::future<void> wait) { wait.wait(); });
    look();
    clock_.advance(3s);
    go_on.set_value();
    barrier();
    look();
    ASSERT_EQ(told_.size(), 1u);
    EXPECT_TRUE(told_[0].is_over);
    EXPECT_FALSE(told_[0].is_told);
    EXPECT_EQ(told_[0].held, 3s);
}

TEST_F(StallWatch, SaysNothingOfLoopsThatTurn)
{
    for (int i = 0; i < 10; ++i) {
        look();
        barrier();
        clock_.advance(10s); // they have done what they were given
    }
    EXPECT_TRUE(told_.empty());
}

TEST(LastHandler, CutsALongName)
{
    last_handler of;
    EXPECT_EQ(of.read().name, "");
    of.begin("tools/call", std::string(200, 'x'));
    auto const state = of.read();
    EXPECT_EQ(state.name, "tools/call " + std::string(53, 'x'));
    EXPECT_EQ(state.number, 1u);
    of.end();
    EXPECT_FALSE(of.read().is_running);
    of.begin("ping", {});
    EXPECT_EQ(of.read().name, "ping");
}

TEST(LastHandler, IsReadWholeWhileItChanges)
{
    last_handler of;
    std::atomic<bool> is_over{false};
    std::thread reader([&] {
        while (!is_over) {
            auto const name = of.read().name;
            EXPECT_EQ(name, std::string(name.size(), name.empty() ? ' ' : name[0]));
        }
    });
    for (int i = 0; i < 20'000; ++i)
        of.begin(std::string(static_cast<std::size_t>(20 + i % 40), static_cast<char>('a' + i % 26)), {});
    is_over = true;
    reader.join();
}

TEST(HandlerScope, DoesNothingOutsideOfALoop)
{
    handler_scope const running("nobody's");
    EXPECT_EQ(handler_scope::of_this_thread, nullptr);
}

}

}
