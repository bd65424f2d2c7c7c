// Loops without threads: posted work waits until the scheduler picks it. Several of them, picked at random,
// give every order that real threads could, from one seed.
#pragma once

#include "base/ids.hpp"
#include "base/loop.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace belay::sim {

class sim_loop final : public base::loop {
public:
    explicit sim_loop(base::clock const& clock) : loop(clock) {}

    void post(std::move_only_function<void()> work) override { work_.push_back(std::move(work)); }

    [[nodiscard]] bool is_idle() const noexcept { return work_.empty(); }
    void run_one()
    {
        auto work = std::move(work_.front());
        work_.pop_front();
        work();
    }

private:
    std::deque<std::move_only_function<void()>> work_;
};

class scheduler {
public:
    scheduler(base::random_source& random, std::size_t loop_count) : random_(random)
    {
        for (std::size_t i = 0; i < loop_count; ++i)
            loops_.push_back(std::make_unique<sim_loop>(clock_));
    }

    [[nodiscard]] base::time_point now() const noexcept { return clock_.now(); }
    [[nodiscard]] sim_loop& loop(std::size_t index) noexcept { return *loops_[index]; }
    [[nodiscard]] base::random_source& random() noexcept { return random_; }
    [[nodiscard]] sim_loop& any_loop() { return *loops_[random_.below(loops_.size())]; }
    /// The loop whose work is running, or the first: where a store's completion belongs.
    [[nodiscard]] sim_loop& current() noexcept { return current_ ? *current_ : *loops_.front(); }

    /// Runs on that loop at once, as if it had been posted and picked.
    template<class F>
    auto on(sim_loop& loop, F const& work)
    {
        auto* const before = std::exchange(current_, &loop);
        struct restore {
            sim_loop*& current;
            sim_loop* before;
            ~restore() { current = before; }
        } const guard{current_, before};
        return work();
    }

    /// One piece of work of a random loop. False if there is none.
    bool run_one()
    {
        std::vector<sim_loop*> busy;
        for (auto const& each : loops_)
            if (!each->is_idle())
                busy.push_back(each.get());
        if (busy.empty())
            return false;
        auto& picked = *busy[random_.below(busy.size())];
        on(picked, [&] { picked.run_one(); });
        return true;
    }
    void run_all()
    {
        while (run_one()) {
        }
    }
    void advance(base::duration by)
    {
        clock_.advance(by);
        for (auto const& each : loops_)
            on(*each, [&] { each->timers().advance(); });
    }

private:
    base::manual_clock clock_;
    base::random_source& random_;
    std::vector<std::unique_ptr<sim_loop>> loops_;
    sim_loop* current_ = nullptr;
};

}
