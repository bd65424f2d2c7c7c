// What has to leave before the process may stop: running calls and open connections. Counted from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

namespace belay::runtime {

class departures {
public:
    /// A call is counted before it is made: either it sees the drain, or the drain sees it. False: draining.
    [[nodiscard]] bool admit_call()
    {
        add_call();
        if (!is_draining())
            return true;
        call_left();
        return false;
    }
    /// Part of a call that was admitted.
    void add_call() noexcept { calls_.fetch_add(1); }
    void call_left()
    {
        calls_.fetch_sub(1);
        tell();
    }
    // A batch is counted as a call beside those that it has, until its last answer is kept.
    void batch_came() noexcept { batches_.fetch_add(1); }
    void batch_left()
    {
        batches_.fetch_sub(1);
        call_left();
    }
    void connection_came() noexcept { connections_.fetch_add(1, std::memory_order_relaxed); }
    void connection_left()
    {
        connections_.fetch_sub(1, std::memory_order_relaxed);
        tell();
    }

    void drain() noexcept { is_draining_.store(true); }
    [[nodiscard]] bool is_draining() const noexcept { return is_draining_.load(); }
    /// Called whenever something has left while draining; on any thread. Set before drain().
    void on_departure(std::function<void()> departed) { departed_ = std::move(departed); }
    /// What has to leave: calls and batches.
    [[nodiscard]] std::size_t calls() const noexcept { return calls_.load(); }
    /// Calls alone. Those that come and go meanwhile may be counted or not.
    [[nodiscard]] std::size_t running_calls() const noexcept
    {
        auto const batches = batches_.load();
        return std::max(calls_.load(), batches) - batches;
    }
    [[nodiscard]] std::size_t connections() const noexcept { return connections_.load(); }

private:
    void tell()
    {
        if (is_draining() && departed_)
            departed_();
    }

    std::atomic<std::size_t> calls_{0};
    std::atomic<std::size_t> batches_{0};
    std::atomic<std::size_t> connections_{0};
    std::atomic<bool> is_draining_{false};
    std::function<void()> departed_;
};

}
