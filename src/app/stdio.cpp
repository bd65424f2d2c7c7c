#include "app/stdio.hpp"

#include "app/say.hpp"
#include "base/io_loop.hpp"
#include "base/log_output.hpp"
#include "base/worker_pool.hpp"
#include "server/core.hpp"
#include "store/memory_store.hpp"
#include "transport/message_pipe.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

namespace belay::app {

namespace {

// Beyond this much unwritten output, calls wait for the reader, and no further line is read.
constexpr std::size_t write_ahead = 256 * 1024;
// Lines that are read and not yet looked at.
constexpr std::size_t read_ahead = 64;

/// Holds the reading back while there is enough to do, so that a client that sends and does not read costs a bounded
/// amount of memory.
class throttle {
public:
    /// Waits for room for one more line. False: it is over.
    [[nodiscard]] bool enter()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_over_ || (lines_ < read_ahead && !is_full_); });
        ++lines_;
        return !is_over_;
    }
    void leave()
    {
        change([&] { --lines_; });
    }
    /// Whether there is too much output.
    void set_full(bool is_full)
    {
        change([&] { is_full_ = is_full; });
    }
    void end()
    {
        change([&] { is_over_ = true; });
    }

private:
    template<class F>
    void change(F const& how)
    {
        {
            std::lock_guard const lock(mutex_);
            how();
        }
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t lines_ = 0;
    bool is_full_ = false;
    bool is_over_ = false;
};

/// Blocking reads on a thread: standard input may be a pipe, a terminal or a file.
class line_reader {
public:
    using line_function = std::function<void(std::string line, bool is_too_long)>;
    line_reader(throttle& throttle, std::size_t limit, line_function on_line, std::function<void()> on_end)
        : throttle_(throttle), limit_(limit), on_line_(std::move(on_line)), on_end_(std::move(on_end)),
          stop_(eventfd(0, EFD_CLOEXEC)), thread_([this] { run(); })
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
            pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {stop_, POLLIN, 0}};
            if (::poll(waits, 2, -1) < 0 && errno != EINTR)
                break;
            if (waits[1].revents)
                return;
            if (!waits[0].revents)
                continue;
            auto const got = ::read(STDIN_FILENO, buffer, sizeof buffer);
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

    throttle& throttle_;
    std::size_t limit_;
    line_function on_line_;
    std::function<void()> on_end_;
    int stop_;
    std::thread thread_;
};

/// Blocking writes on a thread, so that a client that does not read holds up nobody but its own calls.
class line_writer final : public transport::line_output {
public:
    line_writer(int descriptor, throttle& throttle, std::function<void()> on_drained, std::function<void()> on_broken)
        : descriptor_(descriptor), throttle_(throttle), on_drained_(std::move(on_drained)),
          on_broken_(std::move(on_broken)), thread_([this] { run(); })
    {
    }
    ~line_writer() override
    {
        {
            std::lock_guard const lock(mutex_);
            is_ending_ = true;
        }
        wake_.notify_one();
        thread_.join(); // writes what there is
    }

    bool write(std::string_view message) override
    {
        bool has_room = true;
        {
            std::lock_guard const lock(mutex_);
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
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return !next_.empty() || is_ending_; });
                if (next_.empty())
                    return;
                bytes.swap(next_);
                tells = std::exchange(is_waited_for_, false);
                throttle_.set_full(false);
            }
            for (std::string_view rest = bytes; !rest.empty() && !is_broken_;) {
                auto const put = ::write(descriptor_, rest.data(), rest.size());
                if (put > 0) {
                    rest.remove_prefix(static_cast<std::size_t>(put));
                } else if (errno != EINTR) {
                    is_broken_ = true; // nobody reads any more
                    on_broken_();
                }
            }
            if (tells)
                on_drained_();
        }
    }

    int descriptor_;
    throttle& throttle_;
    std::function<void()> on_drained_;
    std::function<void()> on_broken_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::string next_;
    bool is_waited_for_ = false;
    bool is_ending_ = false;
    bool is_broken_ = false; // the thread's own
    std::thread thread_;
};

}

int serve_stdio(server const& server, settings const& settings)
{
    // Standard output is for messages alone: whatever else a tool prints there goes to standard error.
    int const messages = ::dup(STDOUT_FILENO);
    if (messages < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        say_error(server.core()->name(), "standard output cannot be used");
        return 2;
    }
    base::machine_clock clock;
    base::system_random random;
    auto const log_lines = base::stderr_output(settings.log_format, settings.log_queue_bytes);
    auto const level = std::make_shared<std::atomic<base::log_threshold>>(settings.log_level);
    auto const log = base::line_logger(level, settings.log_format, log_lines).with("node", settings.runtime.node_name);
    base::io_loop loop(clock);
    observe::metrics metrics;
    store::memory_store store(settings.runtime.limits, clock, random.next() >> 32);
    runtime::node node(settings.runtime, store, random, metrics, log);
    try {
        server.core()->get_ready(settings.schemas);
    } catch (std::invalid_argument const& error) {
        say_error(server.core()->name(), error.what());
        return 2;
    }
    base::worker_pool workers(settings.worker_threads, settings.worker_queue);
    server.core()->work_on(&workers);

    std::shared_ptr<transport::message_pipe> pipe;
    bool is_ending = false;
    auto const stop = [&] {
        server.core()->stop();
        node.stop();
        loop.stop();
    };
    auto const end_session = [&] { pipe->close([&] { loop.post(stop); }); };
    base::timer grace(loop.timers(), [&] {
        node.calls().interrupt_all();
        loop.post(end_session);
    });
    auto const end = [&](base::duration within) {
        if (std::exchange(is_ending, true))
            return;
        node.departures().drain();
        if (node.departures().calls() == 0 || within == base::duration::zero())
            grace.after(base::duration::zero());
        else
            grace.after(within);
    };
    node.departures().on_departure([&] {
        loop.post([&] {
            if (is_ending && node.departures().calls() == 0)
                grace.after(base::duration::zero());
        });
    });
    {
        throttle pace;
        line_writer out(
            messages, pace, [&] { loop.post([&] { pipe->drained(); }); },
            [&] { loop.post([&] { end(base::duration::zero()); }); });
        pipe = std::make_shared<transport::message_pipe>(
            node, *server.core(), loop, out, transport::message_pipe_settings{"local", settings.transport.batch_max});
        boost::asio::signal_set signals(loop.context(), SIGTERM, SIGINT, SIGHUP);
        signals.async_wait([&](boost::system::error_code const& error, int) {
            if (!error)
                end(base::duration::zero());
        });
        loop.post([&] {
            node.start(loop);
            server.core()->start(node, loop);
        });
        line_reader in(
            pace, settings.http.limits.body_bytes,
            [&](std::string line, bool is_too_long) {
                loop.post([&, line = std::move(line), is_too_long] {
                    if (is_too_long)
                        pipe->refuse_line(settings.http.limits.body_bytes);
                    else
                        pipe->receive(line);
                    pace.leave();
                });
            },
            [&] { loop.post([&] { end(settings.stdio_grace); }); });
        loop.run();
        pipe.reset();
    }
    ::close(messages);
    server.core()->work_on(nullptr);
    if (workers.running() > 0) { // a blocking tool that does not listen; see host
        log_lines->flush();
        std::_Exit(0);
    }
    return 0;
}

}
