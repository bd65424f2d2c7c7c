// The whole program in this process, on a loopback port, with a clock that the test owns; and the words a
// test needs to talk to it as a client does. Nothing here waits for time to pass: what happens on the
// server is awaited by asking it again.
#pragma once

#include "app/http_host.hpp"
#include "store/memory_store.hpp"
#include "support/forwarding_store.hpp"
#include "support/http_client.hpp"

#include <belay/server.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace belay::test {

using namespace std::chrono_literals;

struct client_session {
    std::string id;
    std::string version;
};

// --- messages as text

/// A request; `id` and `params` are JSON text.
std::string rpc(std::string_view id, std::string_view method, std::string_view params = {});
std::string notification(std::string_view method, std::string_view params = {});
std::string
tool_call(std::string_view id, std::string_view tool, std::string_view arguments = "{}", std::string_view meta = {});
std::string
hello(std::string_view version = "2025-11-25", std::string_view id = "0", std::string_view capabilities = "{}");

// --- what came back

/// The member at a path such as "result/content/0/text"; null if it is not there.
json::value at(json::value const& in, std::string_view path);
std::string text_at(json::value const& in, std::string_view path);
json::value message_of(http::sse_event const& event);
/// The `data` of a log message; empty for anything else.
std::string log_text(http::sse_event const& event);
bool is_priming(http::sse_event const& event);
/// Has a result or an error.
bool is_response(http::sse_event const& event);
/// `missed` of a gap notice; nothing for anything else.
std::optional<std::int64_t> missed_of(http::sse_event const& event);
/// The part of an event id that names its stream, and its sequence in base62 (tests only compare them).
std::string stream_of(std::string_view event_id);
std::uint64_t sequence_of(std::string_view event_id);

/// Events as a client keeps them: without priming events, the newest id beside them.
struct seen {
    std::vector<http::sse_event> events;
    std::string cursor;
    std::vector<http::sse_event> primings;

    void add(http::sse_event const& event);
    [[nodiscard]] std::vector<std::string> logs() const;
    [[nodiscard]] bool has_response() const;
    /// The final message as JSON; null without one.
    [[nodiscard]] json::value response() const;
};

/// The `data` texts that utility-notifications sends.
std::vector<std::string> utility_texts(std::string const& prefix, double seconds, int interval_ms);
std::string utility_arguments(std::string const& prefix, double seconds, int interval_ms);

class Server : public testing::Test {
protected:
    Server();
    ~Server() override;
    void TearDown() override;

    /// Starts with the settings and tools as they are now.
    void start();
    /// Ends running calls first.
    void stop();
    /// Destroys the host as it is.
    void drop()
    {
        probe_.reset();
        host_.reset();
    }
    [[nodiscard]] app::http_host& host() { return *host_; }
    /// What keeps the server's data, behind whatever a test has put before it.
    [[nodiscard]] store::memory_store& store() { return *memory_; }
    [[nodiscard]] std::uint16_t port() { return port_; }
    [[nodiscard]] http_client connect() { return http_client(port()); }

    // --- time

    /// Lets the server do what it has to do at this time. Exact with one loop.
    void settle();
    void advance(base::duration by);
    /// In steps, settling after each.
    void advance_in_steps(base::duration by, base::duration step);
    /// Waits, without moving the clock, until it holds.
    [[nodiscard]] bool eventually(std::function<bool()> const& holds);
    /// Moves the clock by steps until it holds.
    [[nodiscard]] bool advance_until(std::function<bool()> const& holds, base::duration step = 100ms);
    /// The stream's next event, with the clock moving as long as none comes. Nothing at its end.
    std::optional<http::sse_event> next(http_client& stream, base::duration step = 100ms);
    /// Reads into `into` until it holds, or the stream ends.
    void read_until(
        http_client& stream, seen& into, std::function<bool(seen const&)> const& holds, base::duration step = 100ms);
    /// Everything to the stream's end, with the clock moving. Fails the test if it does not end properly.
    seen read_to_end(http_client& stream, base::duration step = 100ms);

    // --- requests

    client_session open_session(
        std::string_view version = "2025-11-25", header_list headers = {}, std::string_view capabilities = "{}");
    [[nodiscard]] header_list headers_of(client_session const& session, header_list more = {}) const;
    /// One POST on a connection of its own, answered in full.
    http_response post(client_session const& session, std::string_view body, header_list more = {});
    http_response post_plain(std::string_view body, header_list headers = {});
    http_response
    ask(std::string_view method, std::string_view target, header_list headers = {}, std::string_view body = {});
    /// One POST, of whose answer nothing is read.
    http_client send_post(client_session const& session, std::string_view body, header_list more = {});
    void send_post(http_client& on, client_session const& session, std::string_view body, header_list more = {}) const;
    /// One POST, of whose answer the head is read.
    http_client open_post(client_session const& session, std::string_view body, header_list more = {});
    /// One GET, of whose answer the head is read.
    http_client get(client_session const& session, std::string_view cursor = {}, header_list more = {});
    http_response remove(client_session const& session);
    /// Whether the session lists its tools.
    [[nodiscard]] bool is_alive(client_session const& session);
    /// tools/call echo, the whole way. Empty if it did not work.
    std::string echo(client_session const& session, std::string const& text);

    /// Puts a message on the standalone stream, as a server-initiated notification would be.
    void append_standalone(client_session const& session, std::string_view text);
    /// How far the standalone stream is known to have been delivered.
    std::uint64_t delivered_standalone(client_session const& session);

    // --- what the server says of itself

    [[nodiscard]] double appended() { return host().metrics().events_appended.Value(); }
    [[nodiscard]] double delivered() { return host().metrics().events_delivered.Value(); }
    [[nodiscard]] double replayed() { return host().metrics().events_replayed.Value(); }
    /// The value of a metric in the text of /metrics; -1 if it is not there.
    double metric(std::string_view name_and_labels);
    /// appended = delivered + pending + trimmed undelivered + ended undelivered
    [[nodiscard]] bool is_balanced();

    base::manual_clock clock_;
    app::settings settings_;
    belay::server server_{"acceptance", "1.0"};
    base::logger log_; ///< of the server; silent unless a test sets one before start()
    /// Off for tests that put events into the store behind the server's back.
    bool checks_balance_ = true;
    std::uint64_t appended_directly_ = 0;
    /// Puts something before the store that the next server has.
    std::function<std::unique_ptr<store::backend>(store::backend&)> before_store_
        = [](store::backend& memory) { return std::make_unique<forwarding_store>(memory); };

private:
    [[nodiscard]] store::stream_key standalone_of(client_session const& session);

    /// One round trip through the loop.
    void probe();

    std::unique_ptr<store::memory_store> memory_; // outlives the host
    std::unique_ptr<app::http_host> host_;
    base::system_random random_;
    std::optional<http_client> probe_;
    std::uint16_t port_ = 0;
};

}
