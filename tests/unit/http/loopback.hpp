// A server on loopback with its loops on threads and a clock that the test owns, and a client that is a
// plain blocking socket: what is tested is what goes over the wire.
#pragma once

#include "base/io_loop.hpp"
#include "http/router.hpp"
#include "http/server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace belay::http {

inline constexpr std::string_view plain_get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

class client {
public:
    explicit client(boost::asio::ip::tcp::endpoint const& to, int receive_buffer = 0) : client(unconnected{})
    {
        if (receive_buffer > 0)
            ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        connect(to);
    }

    struct unconnected {};
    explicit client(unconnected) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        timeval const patience{20, 0}; // only a broken server makes it wait
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        int const on = 1;
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    struct unix_socket {};
    explicit client(unix_socket) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        timeval const patience{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    client(client&& other) noexcept : fd_(std::exchange(other.fd_, -1)), kept_(std::move(other.kept_)) {}
    client& operator=(client&&) = delete;
    ~client() { close(); }

    void connect(boost::asio::ip::tcp::endpoint const& to)
    {
        ASSERT_EQ(::connect(fd_, to.data(), static_cast<socklen_t>(to.size())), 0) << std::strerror(errno);
    }
    void connect_to(sockaddr const* to, socklen_t size)
    {
        ASSERT_EQ(::connect(fd_, to, size), 0) << std::strerror(errno);
    }
    void close()
    {
        if (fd_ >= 0)
            ::close(std::exchange(fd_, -1));
    }
    void reset()
    {
        linger const at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close();
    }
    void end_output() { ::shutdown(fd_, SHUT_WR); }

    void send(std::string_view bytes)
    {
        while (!bytes.empty()) {
            auto const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0)
                return; // the server may be right to have closed
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
    }

    /// Up to and including `end`; what came before the connection ended if that is not to be.
    std::string read_until(std::string_view end)
    {
        for (;;) {
            if (auto const at = kept_.find(end); at != std::string::npos)
                return take(at + end.size());
            if (!more())
                return take(kept_.size());
        }
    }
    std::string read_bytes(std::size_t count)
    {
        while (kept_.size() < count && more()) {
        }
        return take(std::min(count, kept_.size()));
    }
    /// Everything until the server closes. `*was_reset` tells how.
    std::string read_all(bool* was_reset = nullptr)
    {
        while (more()) {
        }
        if (was_reset)
            *was_reset = error_ == ECONNRESET;
        EXPECT_NE(error_, EAGAIN) << "the server did not close";
        return take(kept_.size());
    }
    /// One response with Content-Length.
    std::string read_response()
    {
        auto text = read_until("\r\n\r\n");
        constexpr std::string_view length = "Content-Length: ";
        if (auto const at = text.find(length); at != std::string::npos)
            text += read_bytes(std::stoul(text.substr(at + length.size())));
        return text;
    }
    std::string ask(std::string_view request)
    {
        send(request);
        return read_response();
    }
    bool is_at_end() { return kept_.empty() && !more() && error_ == 0; }

private:
    bool more()
    {
        char buffer[65536];
        auto const n = ::recv(fd_, buffer, sizeof buffer, 0);
        error_ = n < 0 ? errno : 0;
        if (n > 0)
            kept_.append(buffer, static_cast<std::size_t>(n));
        return n > 0;
    }
    std::string take(std::size_t count)
    {
        auto taken = kept_.substr(0, count);
        kept_.erase(0, count);
        return taken;
    }

    int fd_ = -1;
    int error_ = 0;
    std::string kept_;
};

/// Remembers what it is told, for the test's thread.
class recorder final : public stream_observer {
public:
    void on_drained() override
    {
        std::lock_guard const lock(mutex_);
        ++drained_;
        changed_.notify_all();
    }
    void on_closed(stream_end why) override
    {
        std::lock_guard const lock(mutex_);
        closed_ = why;
        changed_.notify_all();
    }
    std::optional<stream_end> wait_closed()
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return closed_.has_value(); });
        return closed_;
    }
    bool wait_drained(int times = 1)
    {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return drained_ >= times; });
    }
    std::optional<stream_end> closed()
    {
        std::lock_guard const lock(mutex_);
        return closed_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int drained_ = 0;
    std::optional<stream_end> closed_;
};

class Loopback : public testing::Test, public handler {
protected:
    using exchange_ptr = std::shared_ptr<exchange>;

    Loopback() { settings_.listen = {"127.0.0.1:0"}; }

    ~Loopback() override { stop(); }

    void start(std::size_t loop_count = 1)
    {
        std::vector<base::io_loop*> pointers;
        for (std::size_t i = 0; i < loop_count; ++i)
            pointers.push_back(loops_.emplace_back(std::make_unique<base::io_loop>(clock_)).get());
        server_ = std::make_unique<server>(
            pointers, settings_, *this,
            base::logger(base::log_level::info, [this](base::log_level, std::string_view text) {
                std::lock_guard const lock(mutex_);
                log_.emplace_back(text);
            }));
        server_->start();
        for (auto* const loop : pointers)
            threads_.emplace_back([loop] { loop->run(); });
    }

    void stop()
    {
        if (!server_)
            return;
        std::promise<void> stopped;
        server_->stop([&] { stopped.set_value(); });
        stopped.get_future().wait();
        barrier(); // posted on_closed calls and exchange ends
        {
            std::lock_guard const lock(mutex_);
            held_.clear();
        }
        for (auto& loop : loops_)
            loop->stop();
        for (auto& thread : threads_)
            thread.join();
        threads_.clear();
        server_.reset();
        loops_.clear();
    }

    void handle(exchange_ptr e) override
    {
        if (on_request_)
            on_request_(std::move(e));
        else
            respond_text(*e, 200, std::string(e->request().path()) + " " + std::string(e->request().body()));
    }

    /// Makes the handler keep exchanges for take_held() instead of answering.
    void hold_requests()
    {
        on_request_ = [this](exchange_ptr e) {
            std::lock_guard const lock(mutex_);
            held_.push_back(std::move(e));
            changed_.notify_all();
        };
    }
    exchange_ptr take_held()
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !held_.empty(); });
        if (held_.empty()) {
            ADD_FAILURE() << "no request came";
            return nullptr;
        }
        auto first = std::move(held_.front());
        held_.erase(held_.begin());
        return first;
    }

    client connect() { return client(server_->local_endpoint()); }

    /// Runs the function on the loop and waits for it.
    template<class Function>
    void on_loop(Function function, std::size_t which = 0)
    {
        std::promise<void> done;
        loops_[which]->post([&] {
            function();
            done.set_value();
        });
        done.get_future().wait();
    }
    /// What the loops were doing is done.
    void barrier()
    {
        for (std::size_t i = 0; i < loops_.size(); ++i)
            on_loop([] {}, i);
    }
    /// Lets the loops run until it holds.
    template<class Predicate>
    [[nodiscard]] bool eventually(Predicate predicate)
    {
        auto const give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!predicate()) {
            if (std::chrono::steady_clock::now() > give_up)
                return false;
            std::this_thread::yield();
            barrier();
        }
        return true;
    }
    void advance(base::duration by)
    {
        barrier();
        clock_.advance(by);
        for (auto& loop : loops_)
            loop->poke();
        barrier();
    }
    server_statistics statistics()
    {
        barrier(); // an answer may be read before its sender has counted
        return server_->statistics();
    }

    base::manual_clock clock_;
    server_settings settings_;
    std::function<void(exchange_ptr)> on_request_;
    std::vector<std::unique_ptr<base::io_loop>> loops_;
    std::vector<std::thread> threads_;
    std::unique_ptr<server> server_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<exchange_ptr> held_;
    std::vector<std::string> log_;
};

inline unsigned status_of(std::string_view response)
{
    return response.starts_with("HTTP/1.1 ") ? static_cast<unsigned>(std::stoul(std::string(response.substr(9, 3))))
                                             : 0;
}

inline std::string body_of(std::string_view response)
{
    auto const at = response.find("\r\n\r\n");
    return at == std::string_view::npos ? "" : std::string(response.substr(at + 4));
}

inline bool has(std::string_view text, std::string_view part)
{
    return text.find(part) != std::string_view::npos;
}

}
