// Serves a server inside a program that has its own main, its own settings and its own log. A host touches nothing that
// belongs to the process: no signals, no arguments, no environment, no files but the sockets that it is told to make,
// no output. Several hosts may live in one process, each with a server of its own.
//
//     belay::host host(server, {.listen = {"127.0.0.1:0"}});
//     host.start();
//     … host.url() …
//     host.stop();
//     host.wait();
//
// docs/embedding.md has more.
#pragma once

#include <belay/log_field.hpp>
#include <belay/log_level.hpp>
#include <belay/server.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace belay::app {
class host_body;
}

// Whatever users name is in belay::v0: objects of different versions that are linked together are told apart.
namespace belay::inline v0 {

namespace detail {
struct access;
}

/// What docs/settings.md lists. What is not said has the default of that page, and means what it says there.
struct host_settings {
    std::vector<std::string> listen{}; ///< `127.0.0.1:3000` without it; port 0 takes a free one; not `systemd`
    std::vector<std::string> allow_host{};
    std::vector<std::string> allow_origin{};
    std::optional<std::string> endpoint{};
    std::optional<bool> console{};
    std::optional<unsigned> threads{}; ///< not with an io_context of yours
    std::optional<std::chrono::milliseconds> session_idle{};
    std::optional<std::chrono::milliseconds> drain{};
    std::optional<belay::log_level> log_level{}; ///< the least that the log function gets: debug, info, warning, error
    /// All others: key and value as belay.toml has them, without quotes. A key of a list may come again.
    std::vector<std::pair<std::string, std::string>> others{};

    /// Adds to `others`. Throws std::invalid_argument, with the sentence that a flag would get, for a key that there is
    /// not or a value that is not right.
    host_settings& set(std::string key, std::string value);
};

/// A message of the server's own log. Everything in it lives only during the call.
struct log_entry {
    belay::log_level level;
    std::string_view message;
    std::span<log_field const> fields;

    /// The message, and ` name=value` for each field.
    [[nodiscard]] std::string text() const;
};

/// What these functions throw is lost.
struct host_log {
    /// Called on any thread, by several at once, and must not wait: it may be a loop that calls. Null: no log.
    std::function<void(log_entry const&)> write{};
    /// How many messages it has dropped, for /metrics. Null: nobody counts.
    std::function<std::uint64_t()> dropped{};
};

class host {
public:
    /// On threads of its own: as many loops as the setting `threads` says, from start() on, and workers for blocking
    /// tools once there is one to run. Throws std::invalid_argument for settings that are not right.
    explicit host(server const& server, host_settings settings = {}, host_log log = {});
    /// On a context of yours, which must outlive it and may be run by one thread at a time. Tools, their destructors
    /// and everything else of the server but blocking tools run inside that thread's run() or poll(). As long as it
    /// serves, the context has work.
    host(server const& server, boost::asio::io_context& on, host_settings settings = {}, host_log log = {});
    /// Stops without waiting for calls if it has not stopped yet, and waits for blocking tools, which are told. Not on
    /// a thread of the host's own, and not inside a function of the server or of the log: those call stop().
    ///
    /// With a context of yours, one of these holds: this is inside of run() or poll(); the context has not been run
    /// since start(); it is stopped, and the thread that ran it has returned from run(); or another thread runs it, and
    /// goes on with it until this returns.
    ~host();
    host(host const&) = delete;
    host& operator=(host const&) = delete;

    /// Listens and serves. It can be reached when this returns; with a context of yours, as soon as that runs. Throws
    /// std::runtime_error with a sentence for the operator if an address or a thread cannot be had,
    /// std::invalid_argument for a server that is not ready, and std::logic_error if it was started before or something
    /// else serves the server. Nothing was served then, and it can be tried again.
    void start();
    /// No new calls from now on; those that run may finish within the setting `drain`, the rest is interrupted. Returns
    /// at once. From any thread, tools included, once start() has returned; no effect before or when repeated.
    void stop();
    /// The same without waiting for calls. Also after stop().
    void stop_now();
    /// Waits until it has stopped; returns at once if it was never started. The server may then be served by another
    /// host, unless is_held_up(). With a context of yours, another thread runs it. Throws std::logic_error on a thread
    /// that it needs to stop (one of its own, or inside of run() or poll()), and where the context is stopped.
    void wait();
    /// Whether a blocking tool still runs, after wait(). Destroying the host waits for it.
    [[nodiscard]] bool is_held_up() const;

    // --- between start() and the end; std::logic_error before

    /// The port of the first address that has one; 0 if there are only unix sockets.
    [[nodiscard]] std::uint16_t port() const;
    /// `http://127.0.0.1:3000`; `http://localhost` if there are only unix sockets.
    [[nodiscard]] std::string url() const;
    /// All that it listens on, as in `127.0.0.1:3000` and `unix:/run/belay.sock`.
    [[nodiscard]] std::vector<std::string> addresses() const;

private:
    friend struct detail::access;
    explicit host(std::shared_ptr<app::host_body> body);

    std::shared_ptr<app::host_body> body_;
};

}
