// One connection to one Redis, from its address to its end: resolved, connected, TLS, greeted, and then bytes out and
// replies in. It does not come again; a link makes the next one. On one loop; destroyed or closed, it calls nobody.
#pragma once

#include "base/io_loop.hpp"
#include "store/redis_reply.hpp"
#include "store/redis_url.hpp"

#include <boost/asio/ssl/context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace belay::store {

/// What TLS needs beside the address.
struct redis_tls {
    std::string ca_file{}; ///< empty: what the system trusts
    std::string certificate_file{}; ///< of the client; empty: none
    std::string key_file{};
    std::string server_name{}; ///< empty: the host
};

/// Throws std::runtime_error with a sentence if a file cannot be used.
[[nodiscard]] std::shared_ptr<boost::asio::ssl::context> make_redis_tls(redis_tls const& tls);

/// Between two attempts to connect: from one to the other, twice as long each time.
constexpr base::duration shortest_redis_delay = std::chrono::milliseconds(50);
constexpr base::duration longest_redis_delay = std::chrono::seconds(1);

/// A command in the protocol's form.
[[nodiscard]] std::string redis_bytes(std::span<std::string const> words);

class redis_connection : public std::enable_shared_from_this<redis_connection> {
public:
    struct settings {
        redis_address address;
        std::shared_ptr<boost::asio::ssl::context> tls{}; ///< null: none
        std::string server_name{};
        /// Commands whose replies must be no errors before anything else is sent.
        std::vector<std::vector<std::string>> greeting{};
        base::duration timeout = std::chrono::seconds(2); ///< until it is ready
    };
    class events {
    public:
        virtual ~events() = default;
        /// The replies to the greeting. False: it is not what was looked for, and ends.
        virtual bool on_ready(std::vector<redis_reply> const& greeted) = 0;
        virtual void on_reply(redis_reply reply) = 0;
        /// Once. `why` is a sentence without secrets.
        virtual void on_lost(std::string const& why) = 0;
    };

    redis_connection(base::io_loop& loop, settings settings, events& told);
    ~redis_connection();

    void start();
    /// What is written in one turn of the loop goes out together. Once it is ready.
    void write(std::string bytes);
    /// Nobody is called after this.
    void close();
    [[nodiscard]] bool is_ready() const noexcept;
    [[nodiscard]] redis_address const& address() const noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}
