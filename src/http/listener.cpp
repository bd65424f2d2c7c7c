#include "http/listener.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace belay::http {

namespace {

using namespace std::chrono_literals;

// Accepted in a row before other work of the loop has its turn.
constexpr int accept_batch = 32;
// How long accepting rests when it fails; short against a client's patience, long against a busy loop.
constexpr auto retry_delay = 100ms;
// Connections that are being told 503 at a time, beyond max_connections. Others beyond it are cut.
constexpr std::size_t refusal_room = 256;

constexpr refusal server_full{503, "The server has as many connections as it may; try again in a moment."};

}

listener::listener(
    base::io_loop& loop, server_settings const& settings, http::policy const& policy, http::handler& handler,
    base::logger log, std::atomic<std::size_t>& open_connections, http::in_flight& in_flight, int descriptor,
    int family)
    : site_(loop, settings, policy, handler, open_connections, in_flight), log_(std::move(log)),
      acceptor_(loop.context()), retry_(loop.timers(), [this] { watch(); }), protocol_(family, 0)
{
    acceptor_.assign(protocol_, descriptor);
    reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

listener::~listener()
{
    stop();
    if (reserve_ >= 0)
        ::close(reserve_);
}

void listener::start()
{
    watch();
}

void listener::stop_accepting()
{
    has_stopped_ = true;
    retry_.cancel();
    boost::system::error_code ignored;
    acceptor_.close(ignored);
}

void listener::stop()
{
    stop_accepting();
    // An observer that is told may close others, so the list is read anew each time.
    while (auto* const open = site_.first)
        open->stop();
}

void listener::watch()
{
    if (has_stopped_)
        return;
    acceptor_.async_wait(acceptor_.wait_read, [self = weak_from_this()](boost::system::error_code const& error) {
        auto const held = self.lock();
        if (held && !error && !held->has_stopped_)
            held->on_acceptable();
    });
}

void listener::on_acceptable()
{
    for (int i = 0; i < accept_batch; ++i) {
        auto outcome = accept_one();
        if (outcome == accepted::one)
            is_out_ = false;
        if (outcome == accepted::no_descriptor) {
            if (!std::exchange(is_out_, true))
                log_.warning(
                    "no file descriptor left ({}); turning connections away until some close", std::strerror(errno));
            outcome = turn_away();
        }
        switch (outcome) {
        case accepted::one: break;
        case accepted::none: return watch();
        case accepted::no_descriptor: return pause();
        case accepted::failed: log_.warning("cannot accept a connection: {}", std::strerror(errno)); return pause();
        }
    }
    watch();
}

listener::accepted listener::accept_one()
{
    int const descriptor = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
        take(descriptor);
        return accepted::one;
    }
    switch (errno) {
    case EAGAIN: return accepted::none;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: return accepted::no_descriptor;
    // The peer was gone before we came, or its network trouble shows up here: see accept(2).
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return accepted::one;
    default: return accepted::failed;
    }
}

void listener::take(int descriptor)
{
    auto const& settings = site_.settings;
    auto const set
        = [&](int level, int name, int value) { ::setsockopt(descriptor, level, name, &value, sizeof value); };
    bool const is_tcp = protocol_.family() != AF_UNIX;
    if (is_tcp)
        set(IPPROTO_TCP, TCP_NODELAY, 1);
    if (is_tcp && settings.user_timeout.count() > 0)
        set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(settings.user_timeout.count()));
    if (settings.send_buffer_bytes > 0)
        set(SOL_SOCKET, SO_SNDBUF, static_cast<int>(settings.send_buffer_bytes));

    auto const open = site_.open_connections.load(std::memory_order_relaxed);
    bool const is_full = settings.max_connections != 0 && open >= settings.max_connections;
    count(is_full ? site_.refused_full : site_.accepted);
    if (is_full && open >= settings.max_connections + refusal_room) {
        ::close(descriptor);
        return;
    }
    connection::socket socket(site_.loop.executor());
    boost::system::error_code error;
    socket.assign(protocol_, descriptor, error);
    if (error) { // the reactor's set is full
        ::close(descriptor);
        return;
    }
    socket.native_non_blocking(true, error);
    auto const fresh = std::make_shared<connection>(site_, std::move(socket));
    if (is_full)
        fresh->start_refused(server_full);
    else
        fresh->start();
}

listener::accepted listener::turn_away()
{
    if (reserve_ < 0)
        return accepted::no_descriptor;
    ::close(reserve_);
    reserve_ = -1;
    int const descriptor = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    // The kernel looks for a descriptor before it looks for a peer, so perhaps nobody is waiting.
    auto outcome = descriptor < 0 && errno == EAGAIN ? accepted::none : accepted::no_descriptor;
    if (descriptor >= 0) {
        constexpr std::string_view answer
            = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n"
              "Content-Length: 63\r\nConnection: close\r\n\r\n"
              "The server has no free file descriptor; try again in a moment.\n";
        ::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        // What has come is read, or the close would send a reset before the answer.
        ::recv(descriptor, site_.scratch.get(), 4096, MSG_DONTWAIT);
        ::shutdown(descriptor, SHUT_WR);
        ::close(descriptor);
        count(site_.refused_descriptors);
        outcome = accepted::one;
    }
    reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return outcome;
}

void listener::pause()
{
    if (reserve_ < 0)
        reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    retry_.after(retry_delay);
}

}
