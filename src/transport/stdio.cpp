#include "transport/stdio.hpp"

#include "base/mutex.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace belay::transport {

namespace {

// Beyond this much unwritten output, calls wait for the reader, and no further line is read.
constexpr std::size_t write_ahead = 256 * 1024;
// Lines that are read and not yet looked at.
constexpr std::size_t read_ahead = 64;
// At the end, so long without taking anything a client may let us wait.
constexpr int last_wait_ms = 2000;

}

/// Holds the reading back while there is enough to do, so that a client that sends and does not read costs a bounded
/// amount of memory.
class stdio::throttle {
public:
    /// Waits for room for one more line. False: it is over.
    [[nodiscard]] bool enter()
    {
        base::lock lock(mutex_);
        while (!is_over_ && (lines_ >= read_ahead || is_full_))
            lock.wait(changed_);
        ++lines_;
        return !is_over_;
    }
    void leave()
    {
        base::lock const lock(mutex_);
        --lines_;
        changed_.notify_all();
    }
    /// Whether there is too much output.
    void set_full(bool is_full)
    {
        base::lock const lock(mutex_);
        is_full_ = is_full;
        changed_.notify_all();
    }
    void end()
    {
        base::lock const lock(mutex_);
        is_over_ = true;
        changed_.notify_all();
    }

private:
    base::mutex mutex_;
    std::condition_variable changed_;
    std::size_t lines_ BELAY_GUARDED_BY(mutex_) = 0;
    bool is_full_ BELAY_GUARDED_BY(mutex_) = false;
    bool is_over_ BELAY_GUARDED_BY(mutex_) = false;
};

class stdio::line_reader {
public:
    using line_function = std::function<void(std::string line, bool is_too_long)>;
    line_reader(
        int descriptor, throttle& throttle, std::size_t limit, line_function on_line, std::function<void()> on_end)
        : descriptor_(descriptor), throttle_(throttle), limit_(limit), on_line_(std::move(on_line)),
          on_end_(std::move(on_end)), stop_(eventfd(0, EFD_CLOEXEC)), thread_([this] { run(); })
    {
    }
    ~line_reader()
    {
        throttle_.end();
        std::uint64_t const one = 1;
        (void)!::write(stop_, &one, sizeof one);
        thread_.join();
        ::close(stop_);
    }

private:
    void run()
    {
        std::string line;
        bool is_too_long = false;
        char buffer[64 * 1024];
        for (;;) {
            pollfd waits[] = {{descriptor_, POLLIN, 0}, {stop_, POLLIN, 0}};
            if (::poll(waits, 2, -1) < 0 && errno != EINTR)
                break;
            if (waits[1].revents)
                return;
            if (!waits[0].revents)
                continue;
            auto const got = ::read(descriptor_, buffer, sizeof buffer);
            if (got < 0 && (errno == EINTR || errno == EAGAIN))
                continue;
            if (got <= 0)
                break;
            for (std::string_view rest(buffer, static_cast<std::size_t>(got)); !rest.empty();) {
                auto const end = rest.find('\n');
                auto const piece = rest.substr(0, end);
                if (line.size() + piece.size() > limit_)
                    is_too_long = true;
                if (is_too_long)
                    line.clear();
                else
                    line += piece;
                if (end == std::string_view::npos)
                    break;
                if (!throttle_.enter())
                    return;
                on_line_(std::exchange(line, {}), std::exchange(is_too_long, false));
                rest.remove_prefix(end + 1);
            }
        }
        if (!line.empty() && throttle_.enter())
            on_line_(std::move(line), false);
        on_end_();
    }

    int descriptor_;
    throttle& throttle_;
    std::size_t limit_;
    line_function on_line_;
    std::function<void()> on_end_;
    int stop_;
    std::thread thread_;
};

/// Writes on a thread, so that a client that does not read holds up nobody but its own calls, and the end only for a
/// moment.
class stdio::line_writer final : public line_output {
public:
    line_writer(int descriptor, throttle& throttle, std::function<void()> on_drained, std::function<void()> on_broken)
        : descriptor_(descriptor), throttle_(throttle), on_drained_(std::move(on_drained)),
          on_broken_(std::move(on_broken)), ending_(eventfd(0, EFD_CLOEXEC)), thread_([this] { run(); })
    {
    }
    ~line_writer() override
    {
        {
            base::lock const lock(mutex_);
            is_ending_ = true;
        }
        wake_.notify_one();
        std::uint64_t const one = 1;
        (void)!::write(ending_, &one, sizeof one);
        thread_.join(); // writes what there is, if it is taken
        ::close(ending_);
    }

    bool write(std::string_view message) override
    {
        bool has_room = true;
        {
            base::lock const lock(mutex_);
            next_ += message;
            next_ += '\n';
            has_room = next_.size() <= write_ahead;
            is_waited_for_ = is_waited_for_ || !has_room;
            throttle_.set_full(!has_room);
        }
        wake_.notify_one();
        return has_room;
    }

private:
    void run()
    {
        for (;;) {
            std::string bytes;
            bool tells = false;
            {
                base::lock lock(mutex_);
                while (next_.empty() && !is_ending_)
                    lock.wait(wake_);
                if (next_.empty())
                    return;
                bytes.swap(next_);
                tells = std::exchange(is_waited_for_, false);
                throttle_.set_full(false);
            }
            write_out(bytes);
            if (tells)
                on_drained_();
        }
    }

    void write_out(std::string_view rest)
    {
        while (!rest.empty() && !is_broken_) {
            if (!wait_for_reader()) {
                is_broken_ = true;
                return;
            }
            // What is written when there is room, and is no more than this, does not wait.
            auto const put = ::write(descriptor_, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
            if (put > 0) {
                rest.remove_prefix(static_cast<std::size_t>(put));
            } else if (errno != EINTR && errno != EAGAIN) {
                is_broken_ = true; // nobody reads any more
                on_broken_();
            }
        }
    }

    /// False: it is the end, and nobody reads.
    bool wait_for_reader()
    {
        for (;;) {
            pollfd waits[] = {{descriptor_, POLLOUT, 0}, {ending_, POLLIN, 0}};
            auto const got = is_last_ ? ::poll(waits, 1, last_wait_ms) : ::poll(waits, 2, -1);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0 || waits[0].revents)
                return got != 0;
            is_last_ = true;
        }
    }

    int descriptor_;
    throttle& throttle_;
    std::function<void()> on_drained_;
    std::function<void()> on_broken_;
    base::mutex mutex_;
    std::condition_variable wake_;
    std::string next_ BELAY_GUARDED_BY(mutex_);
    bool is_waited_for_ BELAY_GUARDED_BY(mutex_) = false;
    bool is_ending_ BELAY_GUARDED_BY(mutex_) = false;
    int ending_;
    bool is_broken_ = false; // the thread's own, as is the next
    bool is_last_ = false;
    std::thread thread_;
};

stdio::stdio(
    runtime::node& node, runtime::service& service, base::loop& loop, int input, int output, stdio_settings settings,
    ends ends)
    : loop_(loop), input_(input), line_bytes_(settings.line_bytes), ends_(std::move(ends)),
      pace_(std::make_unique<throttle>()), writer_(std::make_unique<line_writer>(
                                               output, *pace_, [this] { loop_.post([this] { pipe_->drained(); }); },
                                               [this] { loop_.post([this] { ends_.output_broken(); }); })),
      pipe_(std::make_shared<message_pipe>(node, service, loop, *writer_, std::move(settings.pipe)))
{
}

stdio::~stdio() = default;

void stdio::start()
{
    reader_ = std::make_unique<line_reader>(
        input_, *pace_, line_bytes_,
        [this](std::string line, bool is_too_long) {
            loop_.post([this, line = std::move(line), is_too_long] {
                if (is_too_long)
                    pipe_->refuse_line(line_bytes_);
                else
                    pipe_->receive(line);
                pace_->leave();
            });
        },
        [this] { loop_.post([this] { ends_.input_ended(); }); });
}

void stdio::close(std::move_only_function<void()> done)
{
    pipe_->close(std::move(done));
}

void stdio::let_go()
{
    pipe_->let_go();
}

}
