// Threads for work that holds its thread for long: a fixed number of them, started when there is first something
// to do, and a bounded queue before them. Every function may be called from any thread.
#pragma once

#include "base/mutex.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace belay::base {

class worker_pool {
public:
    /// Must not throw. Destroyed on the thread that ran it, or on the one that took it back.
    using work = std::move_only_function<void()>;
    enum class ticket : std::uint64_t {};

    /// At least one thread. `queue` counts what waits, not what runs.
    worker_pool(unsigned threads, std::size_t queue);
    worker_pool(worker_pool const&) = delete;
    worker_pool& operator=(worker_pool const&) = delete;
    /// stop(), then waits for what is running.
    ~worker_pool();

    /// Nothing, and the work is dropped, if the queue is full or the pool has stopped. Never waits.
    [[nodiscard]] std::optional<ticket> try_post(work fresh);
    /// Takes work back out of the queue. True if it will never run; false if it has begun, or is over.
    bool withdraw(ticket which);
    /// Nothing is begun any more; what waits in the queue is dropped before this returns.
    void stop();
    /// Calls the function once nothing is running, after stop(): at once, or on a worker's thread.
    void on_idle(std::move_only_function<void()> idle);
    /// Waits until nothing is running, after stop(). Not on a worker's thread.
    void wait_until_idle();

    [[nodiscard]] std::size_t running() const;
    [[nodiscard]] std::size_t queued() const;
    /// How many threads were started.
    [[nodiscard]] std::size_t started() const;

private:
    struct entry {
        ticket name;
        worker_pool::work work;
    };

    void run();

    unsigned const max_threads_;
    std::size_t const max_queue_;
    mutable base::mutex mutex_;
    std::condition_variable more_;
    std::condition_variable rested_; // nothing is running
    std::deque<entry> queue_ BELAY_GUARDED_BY(mutex_);
    std::vector<std::thread> threads_ BELAY_GUARDED_BY(mutex_);
    std::size_t running_ BELAY_GUARDED_BY(mutex_) = 0;
    std::uint64_t last_ticket_ BELAY_GUARDED_BY(mutex_) = 0;
    bool is_stopped_ BELAY_GUARDED_BY(mutex_) = false;
    std::move_only_function<void()> idle_ BELAY_GUARDED_BY(mutex_);
};

}
