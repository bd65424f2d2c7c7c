// The HTTP server: one listening socket per loop on each address (on the same port by SO_REUSEPORT), connections
// that stay on the loop that accepted them. TLS is a reverse proxy's business.
#pragma once

#include "base/io_loop.hpp"
#include "base/log.hpp"
#include "http/exchange.hpp"
#include "http/listening_socket.hpp"
#include "http/policy.hpp"
#include "http/request_reader.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace belay::http {

/// What a handler has noted about an exchange.
struct access_note {
    std::string_view name;
    std::string value;
};

/// What one exchange was, for logs and metrics.
struct access_record {
    http::method method = method::other;
    std::string_view path; ///< at most 256 bytes of it; valid during the call
    unsigned status = 0;   ///< 0: nothing was answered
    base::duration duration{};
    std::size_t bytes_in = 0;
    std::size_t bytes_out = 0; ///< handed to the kernel or waiting for it, framing included
    bool is_stream = false;
    std::span<access_note const> notes;
};

struct server_settings {
    /// Each as parse_listen() takes it. Port 0: any free one.
    std::vector<std::string> listen{"127.0.0.1:3000"};
    unsigned unix_mode = 0600; ///< permissions of the file of a unix socket
    reader_limits limits;
    /// Its loopback rules hold for sockets on loopback; a unix socket has the rule for Host, others have neither.
    policy_settings policy;

    std::chrono::milliseconds first_byte_timeout{10'000}; ///< a new connection that sends nothing: closed
    std::chrono::milliseconds header_timeout{10'000};     ///< from the first byte of a request: 408
    std::chrono::milliseconds body_timeout{30'000};       ///< from the end of its head: 408
    std::chrono::milliseconds idle_timeout{75'000};       ///< between requests: closed. nginx's default
    std::chrono::milliseconds write_timeout{30'000};      ///< unsent bytes and no progress: dropped
    std::chrono::milliseconds linger_timeout{2'000};      ///< for the peer to close after our last answer
    std::chrono::milliseconds user_timeout{45'000};       ///< TCP_USER_TIMEOUT: sent bytes without acknowledgement

    std::size_t max_bytes_in = 128 << 20;  ///< bodies read or not answered, of all connections; 503 for more
    std::size_t max_bytes_out = 128 << 20; ///< answers not read, of all; beyond it the slowest readers are closed
    std::size_t max_connections = 0; ///< beyond it 503; 0: as many as there are descriptors
    int backlog = 4096;
    std::size_t send_buffer_bytes = 0; ///< SO_SNDBUF; 0: the system's choice

    /// Called on the connection's loop at the end of each exchange, and for requests refused before routing.
    std::function<void(access_record const&)> on_exchange_end;
    std::atomic<bool> const* takes_notes = nullptr; ///< whether exchanges keep what handlers note about them; null: no
};

/// A snapshot; the numbers are not of one instant.
struct server_statistics {
    std::size_t open_connections = 0;
    std::uint64_t accepted = 0;
    std::uint64_t refused_full = 0; ///< over max_connections
    std::uint64_t refused_descriptors = 0; ///< no file descriptor left
    std::uint64_t refused_requests = 0; ///< answered 4xx or 5xx before routing, timeouts included
    std::size_t bytes_in = 0; ///< of bodies in flight, as far as they are counted
    std::size_t bytes_out = 0; ///< of unread answers, the same
    std::uint64_t refused_bodies = 0; ///< over max_bytes_in
    std::uint64_t closed_readers = 0; ///< over max_bytes_out
    std::uint64_t requests = 0; ///< handed to the handler
    std::uint64_t sends = 0; ///< send calls on sockets
};

class server {
public:
    /// Listens: peers may connect, and wait until start(). The handler and the loops must outlive the server. Throws
    /// std::runtime_error with a sentence for the operator if an address is bad or taken.
    server(std::vector<base::io_loop*> loops, server_settings settings, handler& handler, base::logger log);
    /// After stop() has completed, or when the loops no longer run.
    ~server();
    server(server const&) = delete;
    server& operator=(server const&) = delete;

    /// Accepts from now on, on the loops. Once, from any thread.
    void start();

    /// The first address with a port; unspecified if there is none.
    [[nodiscard]] boost::asio::ip::tcp::endpoint local_endpoint() const noexcept;
    /// Where it listens, as in `127.0.0.1:3000` and `unix:/run/belay.sock`.
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] server_statistics statistics() const noexcept;

    /// Closes the listening sockets; open connections go on. From any thread.
    void stop_accepting();
    /// Also closes all connections; streams are told `stopping`, unanswered requests get nothing. Once, from any
    /// thread. `stopped` is called on one of the loops when the last has done so.
    void stop(std::move_only_function<void()> stopped = {});

private:
    struct parts;
    std::shared_ptr<parts> parts_;
};

/// Raises the soft limit of file descriptors to the hard one. Returns the limit that now holds.
std::size_t raise_descriptor_limit() noexcept;

}
