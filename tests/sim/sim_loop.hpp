// Loops without threads: posted work waits until the scheduler picks it. Several of them, picked at random,
// give every order that real threads could, from one seed. What is under way between a process and the store is
// picked in the same way.
#pragma once

#include "base/ids.hpp"
#include "base/loop.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace belay::sim {

/// A promise was broken; the text says which and where.
class broken_promise : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Something that has pieces of work, to be done one by one.
class worker {
public:
    virtual ~worker() = default;
    [[nodiscard]] virtual bool is_ready() const = 0;
    virtual void run_one() = 0;
};

class sim_loop final : public base::loop, public worker {
public:
    explicit sim_loop(base::clock const& clock) : loop(clock) {}

    void post(std::move_only_function<void()> work) override { work_.push_back(std::move(work)); }

    [[nodiscard]] bool is_ready() const override { return !work_.empty() && !is_paused_; }
    void run_one() override
    {
        auto work = std::move(work_.front());
        work_.pop_front();
        work();
    }
    /// Its process stands still: nothing is run, and no timer fires.
    void pause(bool is_paused) noexcept { is_paused_ = is_paused; }
    [[nodiscard]] bool is_paused() const noexcept { return is_paused_; }
    /// Its process was killed.
    void drop_work()
    {
        while (!work_.empty()) { // what is destroyed may post
            auto const dropped = std::exchange(work_, {});
        }
    }

private:
    std::deque<std::move_only_function<void()>> work_;
    bool is_paused_ = false;
};

class scheduler {
public:
    explicit scheduler(base::random_source& random) : random_(random) {}

    /// The true time, which is the store's. Clocks of processes go as they like.
    [[nodiscard]] base::clock const& clock() const noexcept { return clock_; }
    [[nodiscard]] base::time_point now() const noexcept { return clock_.now(); }
    [[nodiscard]] base::random_source& random() noexcept { return random_; }
    /// The loop whose work is running, or none: where a store's completion belongs.
    [[nodiscard]] sim_loop* current() noexcept { return current_; }

    void add(sim_loop& loop)
    {
        loops_.push_back(&loop);
        workers_.push_back(&loop);
    }
    void remove(sim_loop& loop)
    {
        std::erase(loops_, &loop);
        std::erase(workers_, &loop);
    }
    void add(worker& network) { workers_.push_back(&network); }
    void remove(worker& network) { std::erase(workers_, &network); }

    /// Runs on that loop at once, as if it had been posted and picked.
    template<class F>
    auto on(sim_loop& loop, F&& work)
    {
        auto* const before = std::exchange(current_, &loop);
        struct restore {
            sim_loop*& current;
            sim_loop* before;
            ~restore() { current = before; }
        } const guard{current_, before};
        return std::forward<F>(work)();
    }

    /// One piece of work, of anybody who has some. False if there is none.
    bool run_one()
    {
        ready_.clear();
        for (auto* const each : workers_)
            if (each->is_ready())
                ready_.push_back(each);
        if (ready_.empty())
            return false;
        auto* const picked = ready_[random_.below(ready_.size())];
        if (auto* const loop = dynamic_cast<sim_loop*>(picked))
            on(*loop, [&] { loop->run_one(); });
        else
            picked->run_one();
        return true;
    }
    /// Until nothing is left to do at this time.
    void run_all()
    {
        for (std::size_t runs = 0; run_one(); ++runs)
            if (runs > endless)
                throw broken_promise("work that makes itself again and again");
    }
    void advance(base::duration by)
    {
        clock_.advance(by);
        for (std::size_t i = 0; i < loops_.size(); ++i)
            if (auto& each = *loops_[i]; !each.is_paused())
                on(each, [&] { each.timers().advance(); });
    }

private:
    static constexpr std::size_t endless = 200'000;

    base::manual_clock clock_;
    base::random_source& random_;
    std::vector<sim_loop*> loops_;
    std::vector<worker*> workers_;
    std::vector<worker*> ready_;
    sim_loop* current_ = nullptr;
};

}
