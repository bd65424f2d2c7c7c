// A connection as a cursor: one machine per HTTP exchange that follows a stream. It reads after its
// position, hands what it read to the socket, waits, and reads again. The first delivery, a resumed one
// and one on another node are the same loop. Pure: takes events, returns actions, never waits.
#pragma once

#include "store/types.hpp"

#include <belay/error.hpp>

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace belay::engine {

enum class close_reason {
    finished,     ///< the stream's last event was delivered
    peer_gone,    ///< the peer closed, reset or stalled
    taken_over,   ///< a newer connection follows the stream
    over_budget,  ///< the session has too many connections; the client polls
    asked,        ///< the tool asked for it
    aged,         ///< max_connection_age
    stalled,      ///< the reader held the tool up for longer than flow.stall
    session_ended,
    cut_off, ///< asked to end, and did not within its time
    draining,     ///< the server is going away; the client comes back elsewhere
    failed,       ///< the stream could not be read
    refused,      ///< its call was not made
};

[[nodiscard]] std::string_view to_string(close_reason reason) noexcept;

struct follower_settings {
    base::duration keepalive = std::chrono::seconds(15);
    base::duration max_age = base::duration::zero(); ///< zero: off
    store::read_limit page;
    // A mark is told when the position has moved so far since the last one, or so long after that: each is a command to
    // the store, and wakes the call. A quarter of the flow window, so that a call never waits for one that is held
    // back.
    std::uint64_t mark_events = 125;
    std::uint64_t mark_bytes = 1u << 20;
    base::duration mark_gap = std::chrono::milliseconds(20);
};

// What the driver is to do, in order.
struct send_priming {
    std::uint64_t sequence;
};
struct send_event {
    std::uint64_t sequence;
    store::bytes payload;
};
/// Tells that the events from…to are gone; its id is that of `to`.
struct send_gap {
    std::uint64_t from;
    std::uint64_t to;
    bool restarted;
};
struct send_comment {
    std::string_view text;
};
struct send_retry {
    std::chrono::milliseconds delay;
};
/// Hand what was sent to the socket, then report drained().
struct flush_output {};
struct read_log {
    std::uint64_t after;
};
struct note_mark {
    store::reader_mark mark;
};
/// Report arrived().
struct ask_arrived {};
/// Hand over what is left, end the answer properly. If it is `finished`, note what was sent as delivered once it has
/// arrived; otherwise report detach().
struct end_output {
    close_reason reason;
};
/// Drop the connection, and report detach().
struct abort_output {
    close_reason reason;
};

using follower_action = std::variant<
    send_priming, send_event, send_gap, send_comment, send_retry, flush_output, read_log, note_mark, ask_arrived,
    end_output, abort_output>;
using follower_actions = std::vector<follower_action>;

class follower {
public:
    enum class priming { yes, no };

    /// `restarted`: the cursor came from an earlier life of the stream.
    follower(
        std::uint64_t position, priming priming, bool restarted, follower_settings const& settings,
        base::time_point now);

    /// Tells the reader, in a comment, when it has got everything up to `sequence`. Before open().
    void announce_catching_up(std::uint64_t sequence) noexcept { replay_end_ = sequence; }
    void open(follower_actions& out);
    /// With what was read on the way here.
    void open(store::page const& first, base::time_point now, follower_actions& out);
    void woken(follower_actions& out);
    void page_read(store::page const& page, base::time_point now, follower_actions& out);
    /// `not_found`: the session has gone. `unavailable`: the store cannot say now, and is asked again. Anything else:
    /// there is nothing to follow any more.
    void read_failed(errc why, base::time_point now, follower_actions& out);
    /// What it asked for is not its to have any more.
    void dismissed(close_reason reason, std::optional<std::chrono::milliseconds> retry, follower_actions& out);
    /// All that was flushed is with the kernel; `written` counts the connection's bytes so far.
    void drained(std::uint64_t written, base::time_point now, follower_actions& out);
    /// How far the connection's bytes have come: `unacknowledged` of those written may not have arrived.
    void arrived(std::uint64_t written, std::uint64_t unacknowledged, base::time_point now, follower_actions& out);
    void tick(base::time_point now, follower_actions& out);
    /// End the connection, not the stream, after what is being written. `retry` tells the client when to return.
    void close(close_reason reason, std::optional<std::chrono::milliseconds> retry, follower_actions& out);
    /// The connection is gone. The numbers are those of arrived().
    void detach(std::uint64_t written, std::uint64_t unacknowledged, follower_actions& out);

    /// Whether it has seen the stream, so that it can leave a mark on it.
    [[nodiscard]] bool has_read() const noexcept { return !is_first_page_; }
    [[nodiscard]] bool is_done() const noexcept { return is_done_; }
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    /// When tick() is next of use.
    [[nodiscard]] base::time_point next_tick() const noexcept;
    /// When tick() tells a mark that was held back.
    [[nodiscard]] std::optional<base::time_point> mark_due() const noexcept { return mark_due_; }

private:
    void prime(follower_actions& out);
    [[nodiscard]] bool is_last(store::page const& page) const noexcept;
    void advance(follower_actions& out);
    void note(follower_actions& out, bool attached);
    /// There is something to note: now, or soon together with what comes after it.
    void note_soon(base::time_point now, follower_actions& out);
    void confirm(std::uint64_t written, std::uint64_t unacknowledged);
    void tell_caught_up(follower_actions& out);
    void finish(close_reason reason, follower_actions& out);

    follower_settings const& settings_;
    std::uint64_t position_;
    std::uint64_t offset_ = 0;
    std::uint64_t sent_ = 0; // highest sequence ever given to a reader of this stream
    std::uint64_t delivered_; // what is known to have arrived, on this connection or before
    std::uint64_t noted_; // position of the last note
    std::uint64_t noted_offset_ = 0;
    std::optional<base::time_point> noted_at_;
    std::optional<base::time_point> mark_due_;
    std::optional<std::uint64_t> replay_end_; // the last event that was there before this connection
    priming priming_;
    bool restarted_;
    bool is_first_page_ = true;
    bool is_reading_ = false;
    bool is_writing_ = false;
    bool has_news_ = true; // the log may have more than was read
    bool has_output_ = false; // sent but not flushed
    bool is_done_ = false;
    bool is_finished_ = false; // all of a finished stream has been sent
    std::optional<close_reason> closing_;
    bool reads_once_more_ = false; // before closing
    std::optional<base::time_point> read_again_at_; // the store could not say
    std::optional<std::chrono::milliseconds> retry_;
    base::time_point opened_;
    base::time_point last_output_;
    struct written {
        std::uint64_t bytes;
        std::uint64_t sequence;
    };
    std::vector<written> writes_; // not known to have arrived; newest last
    std::uint64_t given_ = 0; // events since the last note
};

}
