#include "base/worker_pool.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace belay::base {

worker_pool::worker_pool(unsigned threads, std::size_t queue) : max_threads_(std::max(1u, threads)), max_queue_(queue)
{
}

worker_pool::~worker_pool()
{
    stop();
    for (auto& each : threads_) // nobody adds one after stop()
        each.join();
}

std::optional<worker_pool::ticket> worker_pool::try_post(work fresh)
{
    base::lock const lock(mutex_);
    // What is in the queue and has a thread to run it does not wait.
    if (is_stopped_ || queue_.size() + running_ >= max_threads_ + max_queue_)
        return std::nullopt;
    if (threads_.size() < max_threads_ && queue_.size() + running_ >= threads_.size()) {
        try {
            threads_.emplace_back([this] { run(); });
        } catch (std::system_error const&) {
            // The system gives no more threads; those there are take longer.
            if (threads_.empty())
                return std::nullopt;
        }
    }
    auto const name = static_cast<ticket>(++last_ticket_);
    queue_.push_back({name, std::move(fresh)});
    more_.notify_one();
    return name;
}

bool worker_pool::withdraw(ticket which)
{
    work dropped; // its destructor may do anything, so it runs without the lock
    base::lock const lock(mutex_);
    auto const found = std::ranges::find(queue_, which, &entry::name);
    if (found == queue_.end())
        return false;
    dropped = std::move(found->work);
    queue_.erase(found);
    return true;
}

void worker_pool::stop()
{
    std::deque<entry> dropped;
    base::lock const lock(mutex_);
    is_stopped_ = true;
    dropped.swap(queue_);
    more_.notify_all();
}

void worker_pool::on_idle(std::move_only_function<void()> idle)
{
    {
        base::lock const lock(mutex_);
        if (running_ > 0) {
            idle_ = std::move(idle);
            return;
        }
    }
    idle();
}

void worker_pool::wait_until_idle()
{
    base::lock lock(mutex_);
    while (running_ > 0)
        lock.wait(rested_);
}

std::size_t worker_pool::running() const
{
    base::lock const lock(mutex_);
    return running_;
}

std::size_t worker_pool::queued() const
{
    base::lock const lock(mutex_);
    return queue_.size();
}

std::size_t worker_pool::started() const
{
    base::lock const lock(mutex_);
    return threads_.size();
}

void worker_pool::run()
{
    base::lock lock(mutex_);
    while (true) {
        while (!is_stopped_ && queue_.empty())
            lock.wait(more_);
        if (is_stopped_)
            return;
        auto next = std::move(queue_.front().work);
        queue_.pop_front();
        ++running_;
        lock.unlock();
        next();
        next = nullptr;
        lock.relock();
        --running_;
        if (running_ == 0)
            rested_.notify_all();
        if (running_ == 0 && is_stopped_ && idle_) {
            auto idle = std::exchange(idle_, nullptr);
            lock.unlock();
            idle();
            lock.relock();
        }
    }
}

}
