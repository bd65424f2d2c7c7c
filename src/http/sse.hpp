// Server-sent events, both directions: functions that append events to a buffer, and a reader that takes
// bytes in any pieces. Format: WHATWG HTML, "Server-sent events". Knows nothing of what the data means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace belay::http {

/// An event to be written. Texts need to live only during the call.
struct sse_event_view {
    std::optional<std::string_view> type; ///< absent: no `event` line, which readers take as "message"
    std::optional<std::string_view> id;
    std::optional<std::uint32_t> retry_ms;
    std::string_view data;
};

/// Appends one whole event: `event`, `id`, `retry`, `data`, blank line. Data may hold any bytes; each CR, LF or
/// CRLF in it becomes a line of its own (readers see LF). A type or an id with CR, LF or NUL is left out.
void append_event(std::string& out, sse_event_view const& event);
/// A comment, which readers skip. A line break in the text begins another comment line.
void append_comment(std::string& out, std::string_view text);
/// Sets the reader's reconnection time without an event.
void append_retry(std::string& out, std::uint32_t retry_ms);

struct sse_event {
    std::string type = "message";
    std::string id;                        ///< the last id seen on the stream, with this event or before it
    std::optional<std::uint32_t> retry_ms; ///< set if this event had a `retry` line
    std::string data;

    friend bool operator==(sse_event const&, sse_event const&) = default;
};

struct sse_limits {
    std::size_t line_bytes = 8 << 20;
    std::size_t event_bytes = 8 << 20; ///< data of one event
};

/// Takes the bytes of a stream and gives its events. An event without its blank line is never given.
class sse_reader {
public:
    explicit sse_reader(sse_limits limits = {}) : limits_(limits) {}

    /// False once a limit is passed; nothing more is taken then.
    bool feed(std::string_view bytes);
    /// The next whole event, oldest first.
    [[nodiscard]] std::optional<sse_event> next();

    [[nodiscard]] std::string const& last_id() const noexcept { return last_id_; }
    /// The newest reconnection time the stream asked for.
    [[nodiscard]] std::optional<std::uint32_t> retry_ms() const noexcept { return retry_; }
    [[nodiscard]] std::size_t comment_count() const noexcept { return comments_; }
    [[nodiscard]] bool has_failed() const noexcept { return failed_; }

private:
    void take_line(std::string_view line);
    void dispatch();

    sse_limits limits_;
    std::deque<sse_event> ready_;
    std::string line_; // the beginning of a line whose end has not come
    std::string data_;
    std::string type_;
    std::string next_id_; // of the event that is being read
    std::string last_id_; // of the last whole one
    std::optional<std::uint32_t> event_retry_;
    std::optional<std::uint32_t> retry_;
    std::size_t comments_ = 0;
    bool has_data_ = false;
    bool after_cr_ = false;
    bool first_line_ = true;
    bool failed_ = false;
};

}
