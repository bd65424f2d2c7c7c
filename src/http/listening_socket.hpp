// Where a server listens: an address, a unix socket, or the sockets that the service manager has opened for
// it; and the sockets made of that.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::http {

/// Who can reach a socket, which decides what its Host and Origin headers are worth.
enum class reach {
    everyone,    ///< another address: only names that the operator has given are ours
    loopback,    ///< this machine's programs, web pages among them
    file_system, ///< a unix socket: whoever may open the file. Never a browser, but perhaps a proxy for many
};

struct listen_address {
    enum class kind { tcp, unix_socket, inherited };
    kind kind = kind::tcp;
    boost::asio::ip::tcp::endpoint endpoint; ///< of tcp
    std::string path;                        ///< of a unix socket

    /// Nothing for inherited sockets, which tell when they are taken.
    [[nodiscard]] std::optional<http::reach> reach() const;
};

/// `HOST:PORT`, `[::1]:PORT`, `localhost:PORT`, `:PORT` for all addresses, `unix:PATH`, or `systemd` for the sockets
/// of the service manager (LISTEN_FDS). Otherwise a sentence about what is wrong with it.
[[nodiscard]] std::expected<listen_address, std::string> parse_listen(std::string_view text);

class descriptor {
public:
    explicit descriptor(int value) : value_(value) {}
    descriptor(descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    descriptor& operator=(descriptor&& other) = delete;
    ~descriptor();
    [[nodiscard]] int get() const noexcept { return value_; }
    [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

private:
    int value_;
};

/// The file of a unix socket that we made. Removed with this, unless another has taken its place by then.
class socket_file {
public:
    socket_file(std::string path, std::uint64_t device, std::uint64_t inode)
        : path_(std::move(path)), device_(device), inode_(inode)
    {
    }
    socket_file(socket_file&& other) noexcept
        : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_)
    {
    }
    socket_file& operator=(socket_file&& other) = delete;
    ~socket_file();

private:
    std::string path_; // empty: moved from
    std::uint64_t device_;
    std::uint64_t inode_;
};

/// One place to listen at: a listening, non-blocking descriptor for each loop.
struct listening_socket {
    std::vector<descriptor> per_loop;
    int family = 0;
    http::reach reach = reach::everyone;
    boost::asio::ip::tcp::endpoint endpoint; ///< of tcp; else unspecified
    std::string name;                        ///< `127.0.0.1:3000`, `unix:/run/belay.sock`
    std::vector<socket_file> files;          ///< at most one
};

struct listen_options {
    std::size_t loops = 1;
    int backlog = 4096;
    unsigned unix_mode = 0600; ///< permissions of the file of a unix socket
};

/// Listens there; several sockets only for inherited ones. Throws std::runtime_error with a sentence for the
/// operator.
[[nodiscard]] std::vector<listening_socket> open_listening(listen_address const& address, listen_options options);

/// Why an address that everyone reaches is refused without host names.
[[nodiscard]] std::string needs_hosts(std::string_view address);

}
