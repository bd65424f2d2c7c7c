// What an HTTP handler sees: a request, and the way to answer it. Nothing here knows MCP.
//
// All functions are called on the connection's loop unless they say otherwise. An exchange is answered
// once: by respond(), or by begin_stream() … end_stream(). A handler may answer later; until then the
// connection reads no further request.
#pragma once

#include "base/loop.hpp"
#include "base/receipt.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::http {

enum class method { get, head, post, put, delete_, options, other };

/// As it is written in a request; "OTHER" for those without a name here.
[[nodiscard]] std::string_view to_string(method method) noexcept;

struct field {
    std::string_view name;
    std::string_view value;
};

/// A whole request. Valid as long as its exchange is unanswered, and during begin_stream().
class request {
public:
    virtual ~request() = default;
    [[nodiscard]] virtual http::method method() const noexcept = 0;
    [[nodiscard]] virtual std::string_view method_text() const noexcept = 0;
    /// Without the query.
    [[nodiscard]] virtual std::string_view path() const noexcept = 0;
    [[nodiscard]] virtual std::string_view query() const noexcept = 0;
    /// The value of the field of that name, any case, without surrounding blanks. Of several lines with that name it is
    /// the first, unless the field is a list: then they are joined by ", " (RFC 9110 section 5.3).
    [[nodiscard]] virtual std::optional<std::string_view> header(std::string_view name) const noexcept = 0;
    /// In how many lines it came.
    [[nodiscard]] virtual std::size_t header_count(std::string_view name) const noexcept = 0;
    [[nodiscard]] virtual std::string_view body() const noexcept = 0;
};

/// Status and fields of an answer. The connection adds Date-less framing fields (Content-Length,
/// Transfer-Encoding, Connection) and what the server's policy adds (CORS).
struct response_head {
    unsigned status = 200;
    std::string_view content_type; // empty: no Content-Type
    std::vector<field> fields; // the texts need to live only during the call
};

enum class stream_end {
    finished, ///< the head was the whole answer: the request was a HEAD
    peer_gone, ///< the peer closed or reset, or a write failed or stalled past its timeout
    stopping, ///< the server is stopping
};

/// Told about an answer that takes time. Called on the loop, never from inside a function of the exchange.
class stream_observer {
public:
    virtual ~stream_observer() = default;
    /// All that was flushed has been handed to the kernel.
    virtual void on_drained() = 0;
    /// It is over; nothing can be written any more. The last call on the observer. Does not follow respond(),
    /// end_stream() or abort().
    virtual void on_closed(stream_end why) = 0;
};

/// Calls after the answer's end, or after the connection's, do nothing. Letting go of an unanswered exchange
/// answers 500; letting go of an open stream aborts it. The last holder may be on any thread.
class exchange {
public:
    virtual ~exchange() = default;

    [[nodiscard]] virtual http::request const& request() const noexcept = 0;
    [[nodiscard]] virtual base::loop& loop() noexcept = 0;

    /// Answers with a whole response, in one write where the socket takes it. Does nothing if the peer is gone.
    virtual void respond(response_head const& head, std::string_view body) = 0;

    /// For an answer that is to be whole and takes its time: on_closed() is called if the connection ends first. The
    /// observer must live until that or respond().
    virtual void observe(stream_observer& observer) = 0;

    /// Begins a streamed answer. Nothing is written until the first flush(), which sends the head along. The
    /// observer must live until on_closed(), end_stream() or abort().
    virtual void begin_stream(response_head const& head, stream_observer& observer) = 0;
    /// Body bytes to send with the next flush(). Append to it.
    [[nodiscard]] virtual std::string& out() noexcept = 0;
    /// Hands what is in out() to the socket, as one write where it takes it. Returns true if the kernel took all
    /// of it at once; otherwise on_drained() follows, or on_closed(). Must not be called while one is awaited.
    virtual bool flush() = 0;
    /// Sends what is in out(), ends the answer properly, and keeps the connection for the next request. `arrived` is
    /// called once, on the loop, when the peer has acknowledged all of it; never if the connection ends before. Null if
    /// it has ended already.
    virtual std::shared_ptr<base::receipt> end_stream(std::move_only_function<void()> arrived) = 0;
    void end_stream() { (void)end_stream(nullptr); }
    /// Drops the connection at once; what the kernel has not sent may be lost.
    virtual void abort() = 0;

    /// Body bytes written to out() so far whose receipt the peer has not acknowledged, as far as the kernel
    /// knows. An upper bound: includes framing bytes.
    [[nodiscard]] virtual std::size_t unacknowledged() const noexcept = 0;
    /// Whether the peer has closed, reset or broken the connection, even if nobody has read that yet. From any
    /// thread, as long as the stream has not ended.
    [[nodiscard]] virtual bool peer_gone() const noexcept = 0;

    /// Whether note() has a reader: whoever makes a value for it asks first.
    [[nodiscard]] virtual bool takes_notes() const noexcept { return false; }
    /// Something about this exchange for its line in the access log. Before the end of the answer. The name is a
    /// literal; a name noted again replaces the value.
    virtual void note(std::string_view /*name*/, std::string /*value*/) {}
};

/// Takes requests. Called on the connection's loop; may keep the exchange and answer later.
class handler {
public:
    virtual ~handler() = default;
    virtual void handle(std::shared_ptr<exchange> exchange) = 0;
};

}
