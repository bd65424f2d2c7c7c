#include "base/worker_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace belay::base {

namespace {

// Work that is running until it is let go.
struct held {
    std::latch begun{1};
    std::latch go{1};

    worker_pool::work work()
    {
        return [this] {
            begun.count_down();
            go.wait();
        };
    }
};

TEST(WorkerPool, StartsNoThreadBeforeThereIsWork)
{
    worker_pool pool(4, 4);
    EXPECT_EQ(pool.started(), 0u);
}

TEST(WorkerPool, RunsWorkOnAnotherThread)
{
    worker_pool pool(1, 1);
    std::promise<std::thread::id> ran;
    ASSERT_TRUE(pool.try_post([&] { ran.set_value(std::this_thread::get_id()); }));
    EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
}

TEST(WorkerPool, StartsNoMoreThreadsThanItMay)
{
    std::vector<std::unique_ptr<held>> works; // outlive the pool's threads
    worker_pool pool(3, 10);
    for (int i = 0; i < 6; ++i) {
        works.push_back(std::make_unique<held>());
        ASSERT_TRUE(pool.try_post(works.back()->work()));
    }
    for (int i = 0; i < 3; ++i)
        works[i]->begun.wait();
    EXPECT_EQ(pool.started(), 3u);
    EXPECT_EQ(pool.running(), 3u);
    EXPECT_EQ(pool.queued(), 3u);
    for (auto const& each : works)
        each->go.count_down();
}

TEST(WorkerPool, UsesAThreadThatIsFree)
{
    worker_pool pool(4, 0);
    for (int i = 0; i < 10; ++i) {
        std::promise<void> ran;
        ASSERT_TRUE(pool.try_post([&] { ran.set_value(); }));
        ran.get_future().wait();
        while (pool.running() > 0)
            std::this_thread::yield();
    }
    EXPECT_EQ(pool.started(), 1u);
}

TEST(WorkerPool, RunsWorkInItsOrder)
{
    std::vector<int> order;
    {
        held first;
        std::promise<void> last;
        worker_pool pool(1, 10);
        ASSERT_TRUE(pool.try_post(first.work()));
        for (int i = 0; i < 5; ++i)
            ASSERT_TRUE(pool.try_post([&order, i] { order.push_back(i); }));
        ASSERT_TRUE(pool.try_post([&] { last.set_value(); }));
        first.go.count_down();
        last.get_future().wait();
    }
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST(WorkerPool, RefusesWhatTheQueueDoesNotHold)
{
    held first;
    worker_pool pool(1, 2);
    ASSERT_TRUE(pool.try_post(first.work()));
    EXPECT_TRUE(pool.try_post([] {}));
    EXPECT_TRUE(pool.try_post([] {}));
    EXPECT_FALSE(pool.try_post([] {}));
    first.go.count_down();
}

TEST(WorkerPool, WithoutAQueueTakesWhatItCanRun)
{
    held first;
    held second;
    worker_pool pool(2, 0);
    EXPECT_TRUE(pool.try_post(first.work()));
    EXPECT_TRUE(pool.try_post(second.work()));
    EXPECT_FALSE(pool.try_post([] {}));
    first.go.count_down();
    second.go.count_down();
}

TEST(WorkerPool, TakesBackWhatHasNotBegun)
{
    held first;
    auto const token = std::make_shared<int>();
    std::atomic<bool> has_run = false;
    {
        worker_pool pool(1, 1);
        auto const running = pool.try_post(first.work());
        auto const waiting = pool.try_post([&has_run, token] { has_run = true; });
        ASSERT_TRUE(running && waiting);
        first.begun.wait();
        EXPECT_TRUE(pool.withdraw(*waiting));
        EXPECT_EQ(token.use_count(), 1) << "it was dropped at once";
        EXPECT_FALSE(pool.withdraw(*waiting)) << "once";
        EXPECT_FALSE(pool.withdraw(*running)) << "it has begun";
        EXPECT_TRUE(pool.try_post([] {})) << "its place is free";
        first.go.count_down();
    }
    EXPECT_FALSE(has_run);
}

TEST(WorkerPool, AtItsEndWaitsForWhatRunsAndDropsTheRest)
{
    std::atomic<bool> has_ended = false;
    std::atomic<bool> has_run = false;
    auto const token = std::make_shared<int>();
    {
        held first;
        worker_pool pool(1, 1);
        ASSERT_TRUE(pool.try_post([&] {
            first.work()();
            has_ended = true;
        }));
        first.begun.wait();
        ASSERT_TRUE(pool.try_post([&has_run, token] { has_run = true; }));
        pool.stop();
        EXPECT_EQ(token.use_count(), 1);
        EXPECT_FALSE(pool.try_post([] {})) << "it has stopped";
        first.go.count_down();
        // Destroyed in this order: the pool, which joins, then what its thread looks at.
    }
    EXPECT_TRUE(has_ended);
    EXPECT_FALSE(has_run);
}

TEST(WorkerPool, TellsWhenNothingRunsAnyMore)
{
    held first;
    worker_pool pool(1, 1);
    ASSERT_TRUE(pool.try_post(first.work()));
    first.begun.wait();
    pool.stop();
    std::promise<void> idle;
    auto told = idle.get_future();
    pool.on_idle([&] { idle.set_value(); });
    EXPECT_EQ(told.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    first.go.count_down();
    told.wait();
    EXPECT_EQ(pool.running(), 0u);
}

TEST(WorkerPool, TellsAtOnceIfNothingRan)
{
    worker_pool pool(1, 1);
    bool is_idle = false;
    pool.stop();
    pool.on_idle([&] { is_idle = true; });
    EXPECT_TRUE(is_idle);
}

TEST(WorkerPool, TakesWorkFromManyThreads)
{
    std::atomic<int> ran = 0;
    {
        std::latch all(400);
        worker_pool pool(3, 400);
        std::vector<std::jthread> posters;
        for (int i = 0; i < 4; ++i)
            posters.emplace_back([&] {
                for (int n = 0; n < 100; ++n)
                    ASSERT_TRUE(pool.try_post([&] {
                        ++ran;
                        all.count_down();
                    }));
            });
        all.wait();
        posters.clear();
    }
    EXPECT_EQ(ran, 400);
}

}

}
