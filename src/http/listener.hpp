// One loop's share of the server: its listening socket, the connections accepted from it, and what they
// share. All functions on the loop, except construction before the loop runs.
#pragma once

#include "http/connection.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include <memory>

namespace belay::http {

class listener final : public std::enable_shared_from_this<listener> {
public:
    /// Takes a listening, non-blocking descriptor.
    listener(
        base::io_loop& loop, server_settings const& settings, http::policy const& policy, http::handler& handler,
        base::logger log, std::atomic<std::size_t>& open_connections, in_flight& in_flight, int descriptor, int family);
    ~listener();

    void start();
    void stop_accepting();
    /// Also closes the connections.
    void stop();

    [[nodiscard]] connection_site const& site() const noexcept { return site_; }

private:
    enum class accepted { one, none, no_descriptor, failed };

    void watch();
    void on_acceptable();
    accepted accept_one();
    void take(int descriptor);
    /// Uses the reserve to tell one waiting peer that it cannot be served.
    accepted turn_away();
    void pause();

    connection_site site_;
    base::logger log_;
    boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol, base::io_loop::executor_type> acceptor_;
    base::timer retry_;
    boost::asio::generic::stream_protocol protocol_;
    int reserve_ = -1; // a descriptor to give up when there is no other
    bool is_out_ = false;
    bool has_stopped_ = false;
};

}
