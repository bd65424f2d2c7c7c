// One connection, on one loop for life: reads requests, hands them to the handler one at a time, writes the
// answers. Driven by receives, by readiness to send and by one lazy timer; no coroutine.
//
//   idle ──bytes──▶ head ──▶ body ──whole request──▶ answering ──begin_stream──▶ streaming
//    ▲                │        │                         │ respond                  │ end_stream
//    │                └────────┴──refusal──▶ finishing ◀─┴──────────────────────────┘
//    └──────────keep-alive──────────────────────┤
//                                               └──close──▶ lingering ──▶ closed
//
// The owner of an open connection is itself (self_); close() lets go. Exchanges, pending waits and posted
// functions hold it too, so it may outlive its socket, but then it touches nothing but its own members.
#pragma once

#include "base/io_loop.hpp"
#include "base/log.hpp"
#include "http/exchange.hpp"
#include "http/in_flight.hpp"
#include "http/policy.hpp"
#include "http/request_reader.hpp"
#include "http/server.hpp"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace belay::http {

class connection;

/// What the connections of one loop share. Used on the loop only, except the counters.
struct connection_site {
    connection_site(
        base::io_loop& on, server_settings const& with, http::policy const& by, http::handler& to,
        std::atomic<std::size_t>& count, http::in_flight& in_flight);

    static constexpr std::size_t scratch_bytes = std::size_t(64) * 1024;
    /// What a connection waits for a request with: most fit.
    static constexpr std::size_t input_bytes = std::size_t(2) * 1024;
    /// An answer up to this size is put together before it is sent: for the kernel one piece is cheaper than several.
    static constexpr std::size_t gathered_bytes = std::size_t(4) * 1024;

    base::io_loop& loop;
    server_settings const& settings;
    http::policy const& policy;
    http::handler& handler;

    // One read buffer and one head under construction for all connections: neither is in use when the loop
    // turns to another.
    std::unique_ptr<char[]> scratch;
    std::string head;
    std::string gathered; // an answer that is being sent
    std::optional<std::string> last_host; // that the policy has allowed
    std::vector<std::unique_ptr<request_reader>> spare_readers;
    std::vector<std::unique_ptr<char[]>> spare_inputs;
    connection* first = nullptr; // the open ones
    std::vector<std::weak_ptr<connection>> awaiting; // whose ended answers are not known to have arrived
    base::timer ask_arrived;
    http::in_flight& in_flight; // of the whole server
    http::in_flight::unread_list& unread;

    std::atomic<std::size_t>& open_connections; // of the whole server
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused_full{0};
    std::atomic<std::uint64_t> refused_descriptors{0};
    std::atomic<std::uint64_t> refused_requests{0};
    std::atomic<std::uint64_t> refused_bodies{0};
    std::atomic<std::uint64_t> closed_readers{0};
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> sends{0};

    [[nodiscard]] std::unique_ptr<request_reader> take_reader();
    void give_back(std::unique_ptr<request_reader> reader) noexcept;
    [[nodiscard]] std::unique_ptr<char[]> take_input();
    void give_back(std::unique_ptr<char[]> input) noexcept;
    /// Asks the kernel for it from now on, once a second for all that wait.
    void await_arrival(std::weak_ptr<connection> on);
};

/// Adds one to a counter that only its loop writes: no locked instruction.
inline void count(std::atomic<std::uint64_t>& counter) noexcept
{
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

class connection final : public std::enable_shared_from_this<connection> {
public:
    using socket
        = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, base::io_loop::executor_type>;

    /// The socket is connected and non-blocking.
    connection(connection_site& site, socket connected);
    ~connection();

    /// Waits for requests.
    void start();
    /// Sends one refusal, without reading a request, and closes.
    void start_refused(refusal why);
    /// Closes at once. A stream's observer is told `stopping`.
    void stop();
    /// Tells of the ended answers that have arrived. False if there are others.
    bool tell_arrived();
    /// Closes at once, because others need the room that its unread answer takes. From the loop's root.
    void close_unread();

    [[nodiscard]] connection* next() const noexcept { return next_; }

private:
    class live_exchange;
    class answer_receipt;
    enum class phase : std::uint8_t { idle, head, body, answering, streaming, finishing, lingering, closed };
    enum class sent { all, part, failed };

    [[nodiscard]] bool is_answering() const noexcept
    {
        return phase_ >= phase::answering && phase_ <= phase::finishing;
    }

    // Reading.
    void watch();
    void on_received(boost::system::error_code const& error, std::string_view bytes, bool is_full);
    [[nodiscard]] std::string_view receive_rest(std::string_view first);
    void on_end_of_input();
    void consume(std::string_view bytes);
    void consume_pending();
    void dispatch();
    void refuse(refusal why);
    /// Whether there is room for the body, as far as it is known. Once its head is read, and as it grows.
    [[nodiscard]] bool has_room_for_body() const;
    void count_body();
    void give_reader_back();

    // Answering. Called by the exchange, which has checked that it is the current one.
    void respond(response_head const& head, std::string_view body, std::string_view more_lines = {});
    void observe(stream_observer& observer);
    void begin_stream(response_head const& head, stream_observer& observer);
    bool flush();
    std::shared_ptr<base::receipt> end_stream(std::move_only_function<void()> arrived);
    void abort();
    void abandon();
    [[nodiscard]] std::size_t in_kernel() const noexcept;
    [[nodiscard]] std::size_t unacknowledged() const noexcept;
    [[nodiscard]] bool peer_gone() const noexcept;

    enum class framing { sized, chunked, until_close };
    void append_head(
        std::string& out, response_head const& head, framing how, std::size_t body_bytes,
        std::string_view more_lines = {});
    [[nodiscard]] sent send_stream(bool is_last);
    /// Sends what is unsent and then the parts; keeps what the kernel does not take. parts[0] is for its own use.
    [[nodiscard]] sent transmit(std::span<iovec> parts);
    [[nodiscard]] ssize_t send_once(std::span<iovec> parts, std::size_t total);
    void await_writable();
    void on_writable(boost::system::error_code const& error);
    void count_unsent(bool has_progress);
    void list_unread();
    void unlist_unread() noexcept;
    void finish_answer(sent sent);
    void answer_sent();
    void finish_connection();
    void note(std::string_view name, std::string value);
    void begin_record();
    void report();

    // Ending.
    void close(bool with_reset = false);
    /// From the loop's root: closes and tells the observer.
    void lose(stream_end why, bool with_reset = false);
    /// From inside an exchange function: closes now, tells the observer later.
    void lose_later();
    void tell_closed_later();

    void set_deadline(base::time_point when);
    void deadline_after(base::duration delay) { set_deadline(site_.loop.recent() + delay); }
    void no_deadline() noexcept { deadline_ = base::time_point::max(); }
    void on_timer();

    connection_site& site_;
    base::io_loop& loop_;
    std::optional<socket> socket_;
    std::shared_ptr<connection> self_;
    connection* previous_ = nullptr;
    connection* next_ = nullptr;

    std::unique_ptr<request_reader> reader_; // from the first byte of a request to its answer
    std::unique_ptr<char[]> input_; // what the next bytes are received into; not touched while they are awaited
    char first_input_ = 0; // or this
    std::string pending_; // bytes behind the request that is being answered
    std::string unsent_; // bytes the kernel did not take, or a stream's head before its first flush
    std::size_t unsent_at_ = 0;
    std::string out_;
    stream_observer* observer_ = nullptr;

    // What is counted of this connection; while the second is not 0, it stands in the list of its site.
    std::size_t counted_in_ = 0;
    std::size_t counted_out_ = 0;
    base::time_point progress_at_{};
    connection* slower_ = nullptr;
    connection* faster_ = nullptr;

    base::timer timer_;
    // The timer may be armed earlier than the deadline, never later; so a request moves the deadline without
    // touching the wheel.
    base::time_point deadline_ = base::time_point::max();
    base::time_point armed_ = base::time_point::max();

    std::uint64_t serial_ = 0; // of the exchange; tells a stale one
    int const fd_; // of socket_, also after that is closed
    std::size_t unacknowledged_at_close_ = 0;
    std::uint64_t handed_over_ = 0; // bytes that the kernel took
    std::vector<std::shared_ptr<answer_receipt>> receipts_; // of ended answers, in their order

    struct record {
        http::method method = method::other;
        unsigned status = 0;
        bool is_stream = false;
        std::string path;
        base::time_point begun;
        std::size_t bytes_in = 0;
        std::size_t bytes_out = 0;
        std::vector<access_note> notes;
    };
    std::unique_ptr<record> record_; // only while an exchange is open and somebody wants to know

    std::atomic<bool> is_closed_{false}; // phase_ == closed, for other threads
    phase phase_ = phase::idle;
    framing stream_framing_ = framing::chunked;
    bool keep_alive_ = true;
    bool is_http11_ = true;
    bool is_head_request_ = false;
    bool is_get_request_ = false;
    bool answers_page_ = false; // CORS fields are due
    bool in_consume_ = false;
    bool read_armed_ = false;
    bool write_armed_ = false;
    bool drain_awaited_ = false;
    bool has_ended_input_ = false;
};

}
