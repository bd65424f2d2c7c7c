#include "http/listening_socket.hpp"

#include "http/field_text.hpp"
#include "http/policy.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace belay::http {

namespace {

using boost::asio::ip::tcp;

constexpr std::string_view unix_prefix = "unix:";
// The first descriptor that a service manager passes on; see sd_listen_fds(3).
constexpr int first_inherited = 3;

std::string name_of(tcp::endpoint const& endpoint)
{
    auto const address = endpoint.address().to_string();
    if (endpoint.address().is_v6())
        return fmt::format("[{}]:{}", address, endpoint.port());
    return fmt::format("{}:{}", address, endpoint.port());
}

[[noreturn]] void fail(std::string_view what, std::string const& name)
{
    int const error = errno;
    throw std::runtime_error(fmt::format("cannot {} {}: {}", what, name, std::strerror(error)));
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
    fail(what, name_of(endpoint));
}

// --- TCP

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

void describe(listening_socket& socket, tcp::endpoint const& endpoint)
{
    socket.endpoint = endpoint;
    socket.family = endpoint.protocol().family();
    socket.reach = endpoint.address().is_loopback() ? reach::loopback : reach::everyone;
    socket.name = name_of(endpoint);
}

listening_socket open_tcp(tcp::endpoint const& wanted, listen_options const& options)
{
    // With SO_REUSEPORT a second server of the same user would quietly share our port; bound without it once,
    // the port proves free.
    if (wanted.port() != 0)
        bind_to(wanted, sharing::off);
    listening_socket made;
    made.per_loop.push_back(bind_to(wanted, sharing::on));
    describe(made, endpoint_of(made.per_loop.front()));
    while (made.per_loop.size() < options.loops)
        made.per_loop.push_back(bind_to(made.endpoint, sharing::on));
    for (auto const& each : made.per_loop)
        if (::listen(each.get(), options.backlog) != 0)
            fail("listen on", made.endpoint);
    return made;
}

// --- unix sockets

// The loops wait on copies of one descriptor: a waiting peer wakes all, and one of them gets it.
void copy_for_loops(listening_socket& socket, std::size_t loops)
{
    while (socket.per_loop.size() < loops) {
        descriptor copy(::fcntl(socket.per_loop.front().get(), F_DUPFD_CLOEXEC, 0));
        if (copy.get() < 0)
            fail("copy the socket of", socket.name);
        socket.per_loop.push_back(std::move(copy));
    }
}

sockaddr_un address_of(std::string const& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    return address;
}

descriptor unix_stream()
{
    return descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Removes the file of a server that is gone. Throws if it is anything else.
void remove_stale(std::string const& path)
{
    struct stat found{};
    if (::lstat(path.c_str(), &found) != 0)
        return;
    if (!S_ISSOCK(found.st_mode))
        throw std::runtime_error(fmt::format("{} exists and is not a socket; remove it or choose another path", path));
    auto const probe = unix_stream();
    auto const address = address_of(path);
    bool const answers = ::connect(probe.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0;
    // Only a refusal says that nobody is there; a full queue or a lack of permission does not.
    if (answers || errno != ECONNREFUSED)
        throw std::runtime_error(
            fmt::format("{} is in use by another process; stop that one or choose another path", path));
    if (::unlink(path.c_str()) != 0)
        fail("remove the left-over socket", path);
}

listening_socket open_unix(std::string const& path, listen_options const& options)
{
    listening_socket made;
    made.family = AF_UNIX;
    made.reach = reach::file_system;
    made.name = std::string(unix_prefix) + path;
    auto bound = unix_stream();
    if (bound.get() < 0)
        fail("open a socket for", made.name);
    auto const address = address_of(path);
    auto const bind
        = [&] { return ::bind(bound.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0; };
    if (!bind()) {
        if (errno != EADDRINUSE)
            fail("listen on", made.name);
        remove_stale(path);
        if (!bind())
            fail("listen on", made.name);
    }
    struct stat file{};
    if (::lstat(path.c_str(), &file) == 0)
        made.files.emplace_back(path, file.st_dev, file.st_ino);
    // Before listening: until then nobody can connect, whatever the mode was.
    if (::chmod(path.c_str(), options.unix_mode) != 0)
        fail("set the mode of", made.name);
    if (::listen(bound.get(), options.backlog) != 0)
        fail("listen on", made.name);
    made.per_loop.push_back(std::move(bound));
    copy_for_loops(made, options.loops);
    return made;
}

// --- inherited sockets

int number_in(char const* variable)
{
    auto const* const text = std::getenv(variable);
    int value = 0;
    if (!text)
        return 0;
    auto const* const end = text + std::strlen(text);
    auto const parsed = std::from_chars(text, end, value);
    return parsed.ec == std::errc() && parsed.ptr == end ? value : 0;
}

listening_socket describe_inherited(int number)
{
    auto const name = fmt::format("descriptor {} of the service manager", number);
    listening_socket made;
    made.per_loop.emplace_back(number);
    auto const flags = ::fcntl(number, F_GETFL);
    if (flags < 0 || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0 || ::fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0)
        fail("use", name);
    int is_listening = 0;
    int type = 0;
    socklen_t size = sizeof(int);
    if (::getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0
        || ::getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        throw std::runtime_error(
            fmt::format("{} is not a listening stream socket; use ListenStream= in the socket unit", name));
    sockaddr_storage where{};
    size = sizeof where;
    if (::getsockname(number, reinterpret_cast<sockaddr*>(&where), &size) != 0)
        fail("read the address of", name);
    if (where.ss_family == AF_UNIX) {
        auto const& address = reinterpret_cast<sockaddr_un const&>(where);
        made.family = AF_UNIX;
        made.reach = reach::file_system;
        made.name = fmt::format("{}{}", unix_prefix, address.sun_path[0] != 0 ? address.sun_path : "(without a name)");
    } else if (where.ss_family == AF_INET || where.ss_family == AF_INET6) {
        describe(made, endpoint_of(made.per_loop.front()));
    } else {
        throw std::runtime_error(fmt::format("{} is neither TCP nor a unix socket", name));
    }
    return made;
}

std::vector<listening_socket> take_inherited(listen_options const& options)
{
    int const count = number_in("LISTEN_FDS");
    if (count <= 0 || number_in("LISTEN_PID") != ::getpid())
        throw std::runtime_error(
            "the service manager has passed no sockets; start with a socket unit, or name an address with --listen");
    std::vector<listening_socket> taken;
    for (int i = 0; i < count; ++i) {
        auto& added = taken.emplace_back(describe_inherited(first_inherited + i));
        copy_for_loops(added, options.loops);
    }
    // They are ours now; a program that we start must not think that they are its own.
    for (auto const* const variable : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"})
        ::unsetenv(variable);
    return taken;
}

}

std::optional<reach> listen_address::reach() const
{
    switch (kind) {
    case kind::tcp: return endpoint.address().is_loopback() ? reach::loopback : reach::everyone;
    case kind::unix_socket: return reach::file_system;
    case kind::inherited: break;
    }
    return std::nullopt;
}

std::expected<listen_address, std::string> parse_listen(std::string_view text)
{
    constexpr std::string_view hint
        = "write HOST:PORT, [IPV6]:PORT, localhost:PORT, :PORT for all addresses, unix:PATH, or systemd";
    auto const refuse = [&](std::string_view why) {
        return std::unexpected(fmt::format("\"{}\" {}; {}", printable(text), why, hint));
    };
    auto const at = [](tcp::endpoint endpoint) { return listen_address{listen_address::kind::tcp, endpoint, {}}; };
    if (text == "systemd")
        return listen_address{listen_address::kind::inherited, {}, {}};
    if (text.starts_with(unix_prefix)) {
        auto const path = text.substr(unix_prefix.size());
        // With room for the zero at the end.
        if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path) || path.find('\0') != std::string_view::npos)
            return refuse(fmt::format("has no path of 1 to {} bytes", sizeof(sockaddr_un::sun_path) - 1));
        return listen_address{listen_address::kind::unix_socket, {}, std::string(path)};
    }
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
        return at(has_ipv6() ? tcp::endpoint(tcp::v6(), number) : tcp::endpoint(tcp::v4(), number));
    if (equals_ignoring_case(host, "localhost"))
        return at(tcp::endpoint(boost::asio::ip::address_v4::loopback(), number));
    boost::system::error_code bad;
    if (host.starts_with('[') && host.ends_with(']')) {
        auto const address = boost::asio::ip::make_address_v6(std::string(host.substr(1, host.size() - 2)), bad);
        if (bad)
            return refuse("has no IPv6 address in its brackets");
        return at(tcp::endpoint(address, number));
    }
    auto const address = boost::asio::ip::make_address_v4(std::string(host), bad);
    if (bad)
        return refuse("does not name an address (names other than localhost are not looked up)");
    return at(tcp::endpoint(address, number));
}

descriptor::~descriptor()
{
    if (value_ >= 0)
        ::close(value_);
}

socket_file::~socket_file()
{
    struct stat found{};
    bool const is_ours
        = !path_.empty() && ::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
    if (is_ours)
        ::unlink(path_.c_str());
}

std::vector<listening_socket> open_listening(listen_address const& address, listen_options options)
{
    std::vector<listening_socket> opened;
    switch (address.kind) {
    case listen_address::kind::tcp: opened.push_back(open_tcp(address.endpoint, options)); break;
    case listen_address::kind::unix_socket: opened.push_back(open_unix(address.path, options)); break;
    case listen_address::kind::inherited: return take_inherited(options);
    }
    return opened;
}

std::string needs_hosts(std::string_view address)
{
    return fmt::format(
        "{} can be reached from other machines: name the hosts it answers to with --allow-host NAME (or * for all)",
        address);
}

}
