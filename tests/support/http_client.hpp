// A raw HTTP/1.1 client with server-sent events, for tests: one blocking socket, one response at a time. What
// it reads is what went over the wire; it can stop at any byte, break the connection in several ways, or
// send bytes that are no request. Not thread-safe.
#pragma once

#include "http/sse.hpp"

#include <belay/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::test {

using header_list = std::vector<std::pair<std::string, std::string>>;

struct http_response {
    unsigned status = 0; ///< 0: no response came
    header_list headers;
    std::string body;

    /// Of the first field with this name, in any case.
    [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
    /// The body as JSON; null if it is none.
    [[nodiscard]] json::value json() const;
    /// `error.code` of the body; 0 without one.
    [[nodiscard]] std::int64_t error_code() const;
};

class http_client {
public:
    /// How the response's bytes ended.
    enum class ending {
        open,      ///< there may be more
        complete,  ///< as HTTP says a response ends
        closed,    ///< the server closed the connection within the response, or before it
        broken,    ///< reset
        cut,       ///< by this side
        timed_out, ///< nothing came for as long as a test waits
    };

    struct options {
        int receive_buffer = 0; ///< SO_RCVBUF; 0: the system's choice
        std::string source;     ///< address to connect from; empty: any
    };

    explicit http_client(std::uint16_t port);
    http_client(std::uint16_t port, options const& options);
    http_client(http_client&& other) noexcept;
    http_client& operator=(http_client&& other) noexcept;
    ~http_client();

    [[nodiscard]] bool is_connected() const noexcept { return fd_ >= 0; }

    /// False if the server no longer takes bytes.
    bool send(std::string_view bytes);
    /// Adds Host, and Content-Length for a body.
    bool send_request(
        std::string_view method, std::string_view target, header_list const& headers, std::string_view body = {});

    /// Reads the head of the next response. False if none came.
    bool read_head();
    /// The head that was read, and nothing of its body.
    [[nodiscard]] http_response const& head() const noexcept { return head_; }
    /// The next response, head and body.
    http_response read_response();
    /// The response whose head was read.
    http_response read_rest();
    http_response
    ask(std::string_view method, std::string_view target, header_list const& headers, std::string_view body = {});

    /// The next event of a response that is a stream; nothing when it has ended.
    std::optional<http::sse_event> next_event();
    /// The same without waiting for bytes.
    std::optional<http::sse_event> poll_event();
    /// Comments read so far. Takes in what has come, without waiting.
    std::size_t comment_count();
    /// The newest `retry` of the stream.
    [[nodiscard]] std::optional<std::uint32_t> retry_ms() const { return events_.retry_ms(); }
    /// Takes in what has come, without waiting.
    ending poll_ending();
    [[nodiscard]] ending how_it_ended() const noexcept { return ending_; }
    /// Waits until the response or the connection has ended. True if it did.
    bool wait_ended();

    /// The connection breaks after this many further bytes of the server's: FIN, as when a page goes away.
    void cut_after(std::size_t bytes) { allowed_ = bytes; }
    /// All bytes read from the server.
    [[nodiscard]] std::size_t bytes_read() const noexcept { return bytes_read_; }

    /// Ends the connection with FIN.
    void close();
    /// Ends the connection with RST.
    void reset();
    /// Ends the connection without telling the peer. False where the system does not allow it.
    [[nodiscard]] bool vanish();
    /// Sends FIN, goes on reading.
    void end_output();

private:
    enum class framing { none, sized, chunked, until_close };
    enum class chunk { size, data, data_end, trailer };

    bool fill(bool waits);
    void decode();
    void finish_response();
    void start_body();

    int fd_ = -1;
    std::string raw_;
    http_response head_;
    bool has_head_ = false;
    std::string method_;
    framing framing_ = framing::none;
    chunk chunk_ = chunk::size;
    std::size_t remaining_ = 0;
    bool is_stream_ = false;
    std::string body_;
    http::sse_reader events_;
    ending ending_ = ending::open;
    std::optional<std::size_t> allowed_;
    std::size_t bytes_read_ = 0;
};

}
