#include "http/server.hpp"

#include "http/listener.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace belay::http {

namespace {

using boost::asio::ip::tcp;

class descriptor {
public:
    explicit descriptor(int value) : value_(value) {}
    descriptor(descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor()
    {
        if (value_ >= 0)
            ::close(value_);
    }
    [[nodiscard]] int get() const noexcept { return value_; }
    [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

private:
    int value_;
};

std::string name_of(tcp::endpoint const& endpoint)
{
    auto const address = endpoint.address().to_string();
    if (endpoint.address().is_v6())
        return fmt::format("[{}]:{}", address, endpoint.port());
    return fmt::format("{}:{}", address, endpoint.port());
}

[[noreturn]] void fail(std::string_view what, tcp::endpoint const& endpoint)
{
    int const error = errno;
    if (error == EADDRINUSE)
        throw std::runtime_error(
            fmt::format("{} is in use by another process; stop that one or choose another port", name_of(endpoint)));
    if (error == EACCES)
        throw std::runtime_error(
            fmt::format("no permission to listen on {}; choose a port of 1024 or more", name_of(endpoint)));
    if (error == EADDRNOTAVAIL)
        throw std::runtime_error(fmt::format("{} is not an address of this machine", name_of(endpoint)));
    throw std::runtime_error(fmt::format("cannot {} {}: {}", what, name_of(endpoint), std::strerror(error)));
}

enum class sharing { off, on };

descriptor bind_to(tcp::endpoint const& endpoint, sharing sharing)
{
    descriptor bound(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (bound.get() < 0)
        fail("open a socket for", endpoint);
    auto const set = [&](int level, int name, int value) {
        if (::setsockopt(bound.get(), level, name, &value, sizeof value) != 0)
            fail("set up", endpoint);
    };
    set(SOL_SOCKET, SO_REUSEADDR, 1);
    if (sharing == sharing::on)
        set(SOL_SOCKET, SO_REUSEPORT, 1);
    if (endpoint.address().is_v6())
        set(IPPROTO_IPV6, IPV6_V6ONLY, endpoint.address().is_unspecified() ? 0 : 1);
    if (::bind(bound.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0)
        fail("listen on", endpoint);
    return bound;
}

tcp::endpoint endpoint_of(descriptor const& bound)
{
    tcp::endpoint endpoint;
    auto size = static_cast<socklen_t>(endpoint.capacity());
    if (::getsockname(bound.get(), endpoint.data(), &size) != 0)
        fail("read the address of", endpoint);
    endpoint.resize(size);
    return endpoint;
}

bool has_ipv6()
{
    descriptor const probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    return probe.get() >= 0 && ::bind(probe.get(), reinterpret_cast<sockaddr const*>(&any), sizeof any) == 0;
}

}

std::expected<tcp::endpoint, std::string> parse_listen(std::string_view text)
{
    constexpr std::string_view hint = "write HOST:PORT, [IPV6]:PORT, localhost:PORT, or :PORT for all addresses";
    auto const refuse = [&](std::string_view why) {
        return std::unexpected(fmt::format("\"{}\" {}; {}", printable(text), why, hint));
    };
    auto const colon = text.rfind(':');
    if (colon == std::string_view::npos)
        return refuse("has no port");
    auto const port_text = text.substr(colon + 1);
    unsigned port = 0;
    auto const [end, error] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
    if (port_text.empty() || error != std::errc() || end != port_text.data() + port_text.size() || port > 65535)
        return refuse("has no port between 0 and 65535");
    auto const number = static_cast<unsigned short>(port);

    auto host = text.substr(0, colon);
    if (host.empty() || host == "*")
        return has_ipv6() ? tcp::endpoint(tcp::v6(), number) : tcp::endpoint(tcp::v4(), number);
    if (equals_ignoring_case(host, "localhost"))
        return tcp::endpoint(boost::asio::ip::address_v4::loopback(), number);
    boost::system::error_code bad;
    if (host.starts_with('[') && host.ends_with(']')) {
        auto const address = boost::asio::ip::make_address_v6(std::string(host.substr(1, host.size() - 2)), bad);
        if (bad)
            return refuse("has no IPv6 address in its brackets");
        return tcp::endpoint(address, number);
    }
    auto const address = boost::asio::ip::make_address_v4(std::string(host), bad);
    if (bad)
        return refuse("does not name an address (names other than localhost are not looked up)");
    return tcp::endpoint(address, number);
}

struct server::parts {
    parts(server_settings with, std::vector<base::io_loop*> on)
        : settings(std::move(with)), policy(settings.policy), loops(std::move(on))
    {
    }

    server_settings const settings;
    http::policy const policy;
    std::vector<base::io_loop*> const loops;
    std::atomic<std::size_t> open_connections{0};
    std::atomic<std::size_t> loops_to_stop{0};
    std::move_only_function<void()> stopped;
    tcp::endpoint endpoint;
    std::vector<std::shared_ptr<listener>> listeners;
};

server::server(std::vector<base::io_loop*> loops, server_settings settings, handler& handler, base::logger log)
    : parts_(std::make_shared<parts>(std::move(settings), std::move(loops)))
{
    if (parts_->loops.empty())
        throw std::logic_error("an HTTP server needs a loop");
    auto const wanted = parse_listen(parts_->settings.listen);
    if (!wanted)
        throw std::runtime_error("bad listen address: " + wanted.error());

    // With SO_REUSEPORT a second server of the same user would quietly share our port; bound without it once,
    // the port proves free.
    if (wanted->port() != 0)
        bind_to(*wanted, sharing::off);
    std::vector<descriptor> sockets;
    sockets.push_back(bind_to(*wanted, sharing::on));
    parts_->endpoint = endpoint_of(sockets.front());
    while (sockets.size() < parts_->loops.size())
        sockets.push_back(bind_to(parts_->endpoint, sharing::on));
    for (auto const& socket : sockets)
        if (::listen(socket.get(), parts_->settings.backlog) != 0)
            fail("listen on", parts_->endpoint);

    for (std::size_t i = 0; i < sockets.size(); ++i) {
        auto& loop = *parts_->loops[i];
        auto const& added = parts_->listeners.emplace_back(std::make_shared<listener>(
            loop, parts_->settings, parts_->policy, handler, log, parts_->open_connections, sockets[i].get(),
            parts_->endpoint.address().is_v6()));
        static_cast<void>(sockets[i].release()); // the listener's now
        loop.post([held = std::weak_ptr(added)] {
            if (auto const present = held.lock())
                present->start();
        });
    }
}

server::~server() = default;

tcp::endpoint server::local_endpoint() const noexcept
{
    return parts_->endpoint;
}

bool server::is_loopback() const noexcept
{
    return parts_->endpoint.address().is_loopback();
}

server_statistics server::statistics() const noexcept
{
    server_statistics sum;
    sum.open_connections = parts_->open_connections.load(std::memory_order_relaxed);
    for (auto const& each : parts_->listeners) {
        auto const& site = each->site();
        sum.accepted += site.accepted.load(std::memory_order_relaxed);
        sum.refused_full += site.refused_full.load(std::memory_order_relaxed);
        sum.refused_descriptors += site.refused_descriptors.load(std::memory_order_relaxed);
        sum.refused_requests += site.refused_requests.load(std::memory_order_relaxed);
        sum.requests += site.requests.load(std::memory_order_relaxed);
        sum.sends += site.sends.load(std::memory_order_relaxed);
    }
    return sum;
}

void server::stop_accepting()
{
    for (std::size_t i = 0; i < parts_->loops.size(); ++i)
        parts_->loops[i]->post([held = parts_, i] { held->listeners[i]->stop_accepting(); });
}

void server::stop(std::move_only_function<void()> stopped)
{
    parts_->stopped = std::move(stopped);
    parts_->loops_to_stop = parts_->loops.size();
    for (std::size_t i = 0; i < parts_->loops.size(); ++i)
        parts_->loops[i]->post([held = parts_, i] {
            held->listeners[i]->stop();
            if (--held->loops_to_stop == 0 && held->stopped)
                held->stopped();
        });
}

std::size_t raise_descriptor_limit() noexcept
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        auto raised = limit;
        raised.rlim_cur = raised.rlim_max;
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return static_cast<std::size_t>(limit.rlim_cur);
}

}
