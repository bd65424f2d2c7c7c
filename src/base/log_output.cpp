#include "base/log_output.hpp"

#include "base/mutex.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace belay::base {

class log_output::state {
public:
    state(int descriptor, std::size_t max_bytes, std::function<std::string(std::uint64_t)> missing)
        : descriptor_(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)), max_bytes_(max_bytes), missing_(std::move(missing))
    {
    }
    ~state()
    {
        if (descriptor_ >= 0)
            ::close(descriptor_);
    }
    state(state const&) = delete;
    state& operator=(state const&) = delete;

    void put(std::string line)
    {
        bool wakes = false;
        {
            base::lock const lock(mutex_);
            // Once full, it stays so until half of it is written: gaps are few and long, and each is told in its place.
            is_full_ = is_full_ || bytes_ + line.size() > max_bytes_;
            if (is_full_)
                drop(1);
            else
                push({std::move(line), 0});
            wakes = std::exchange(is_idle_, false);
        }
        if (wakes)
            work_.notify_one();
    }

    bool flush(duration patience)
    {
        base::lock lock(mutex_);
        auto const end = std::chrono::steady_clock::now() + patience;
        while (!is_idle_)
            if (!lock.wait_until(rest_, end))
                return is_idle_;
        return true;
    }

    /// True once the thread has ended; false if it is held up by the reader.
    bool end(duration patience)
    {
        base::lock lock(mutex_);
        is_ending_ = true;
        work_.notify_one();
        auto const limit = std::chrono::steady_clock::now() + patience;
        while (!has_ended_)
            if (!lock.wait_until(rest_, limit))
                return has_ended_;
        return true;
    }

    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

    /// The thread.
    void run()
    {
        base::lock lock(mutex_);
        for (;;) {
            if (bytes_ <= max_bytes_ / 2) {
                is_full_ = false;
                if (untold_ > 0 && !is_broken_)
                    push({missing_(untold_), std::exchange(untold_, 0)});
            }
            if (!queue_.empty()) {
                write_some();
                continue;
            }
            is_idle_ = true;
            rest_.notify_all();
            if (is_ending_)
                break;
            while (is_idle_ && !is_ending_)
                lock.wait(work_);
        }
        has_ended_ = true;
        rest_.notify_all();
    }

private:
    struct entry {
        std::string text;
        std::uint64_t missing; // how many lines it says are missing; 0 for a line of the log
    };

    void push(entry fresh) BELAY_REQUIRES(mutex_)
    {
        bytes_ += fresh.text.size();
        queue_.push_back(std::move(fresh));
    }

    void drop(std::uint64_t lines) BELAY_REQUIRES(mutex_)
    {
        untold_ += lines;
        dropped_.fetch_add(lines, std::memory_order_relaxed);
    }

    // As many lines as a pipe takes at once and whole, so that those of several processes do not mix.
    void write_some() BELAY_REQUIRES(mutex_)
    {
        std::string text;
        std::uint64_t lines = 0;
        std::uint64_t missing = 0;
        do {
            auto const next = std::move(queue_.front());
            queue_.pop_front();
            text += next.text;
            missing += next.missing;
            lines += next.missing == 0;
        } while (!queue_.empty() && text.size() + queue_.front().text.size() <= PIPE_BUF);
        mutex_.unlock();
        bool const is_written = write_all(text);
        mutex_.lock();
        bytes_ -= text.size();
        is_broken_ = !is_written;
        if (is_broken_) {
            drop(lines);
            untold_ += missing;
        }
    }

    bool write_all(std::string_view text)
    {
        if (is_cut_ && !write_bytes("\n"))
            return false;
        is_cut_ = false;
        return write_bytes(text);
    }

    bool write_bytes(std::string_view text)
    {
        while (!text.empty()) {
            auto const put = ::write(descriptor_, text.data(), text.size());
            if (put > 0) {
                is_cut_ = text[static_cast<std::size_t>(put) - 1] != '\n';
                text.remove_prefix(static_cast<std::size_t>(put));
            } else if (put < 0 && errno == EAGAIN) { // somebody else has made it non-blocking
                pollfd entry{descriptor_, POLLOUT, 0};
                ::poll(&entry, 1, -1);
            } else if (put == 0 || errno != EINTR) {
                return false;
            }
        }
        return true;
    }

    int const descriptor_;
    std::size_t const max_bytes_;
    std::function<std::string(std::uint64_t)> const missing_;
    std::atomic<std::uint64_t> dropped_{0};
    bool is_cut_ = false; // the thread's: what was written last is no whole line

    base::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable rest_;
    std::deque<entry> queue_ BELAY_GUARDED_BY(mutex_);
    std::size_t bytes_ BELAY_GUARDED_BY(mutex_) = 0; // in the queue or being written
    std::uint64_t untold_ BELAY_GUARDED_BY(mutex_) = 0; // dropped since the log last said so
    bool is_full_ BELAY_GUARDED_BY(mutex_) = false;
    bool is_broken_ BELAY_GUARDED_BY(mutex_) = false; // the last write failed
    bool is_idle_ BELAY_GUARDED_BY(mutex_) = false;
    bool is_ending_ BELAY_GUARDED_BY(mutex_) = false;
    bool has_ended_ BELAY_GUARDED_BY(mutex_) = false;
};

log_output::log_output(int descriptor, std::size_t max_bytes, std::function<std::string(std::uint64_t)> missing)
    : state_(std::make_shared<state>(descriptor, max_bytes, std::move(missing)))
{
    // A pipe without a reader raises SIGPIPE in the thread that writes; blocked there, it ends nothing, whatever the
    // rest of the process has made of that signal.
    sigset_t all{};
    sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([held = state_] { held->run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

log_output::~log_output()
{
    // A write that never returns cannot be ended; its thread goes with the process.
    if (state_->end(default_patience))
        thread_.join();
    else
        thread_.detach();
}

void log_output::write(std::string line)
{
    state_->put(std::move(line));
}

bool log_output::flush(duration patience)
{
    return state_->flush(patience);
}

std::uint64_t log_output::dropped() const noexcept
{
    return state_->dropped();
}

}
