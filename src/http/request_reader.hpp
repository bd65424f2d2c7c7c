// Reads HTTP/1.1 requests from bytes, in whatever pieces they come. No sockets, no clock.
//
// The outcome depends on the bytes only, never on how they were cut: the head is collected whole, byte
// rules are applied in order, and it is then parsed in one go (head_parser.hpp). Everything that two parties could
// read differently (request smuggling, RFC 9112 section 11.2) is refused.
#pragma once

#include "http/exchange.hpp"
#include "http/head_fields.hpp"

#include <cstdint>
#include <memory>

namespace belay::http {

/// Each limit is the largest size that is accepted.
struct reader_limits {
    std::size_t header_bytes = std::size_t(16) * 1024; ///< request line and fields; more: 431
    std::size_t header_count = 100;       ///< fields; more: 431
    std::size_t target_bytes = std::size_t(8) * 1024;  ///< request target; more: 414
    std::size_t body_bytes = 4 << 20;     ///< body after decoding; more: 413
};

/// Why a request is refused before it reaches a handler. The text is one sentence and lives for ever.
struct refusal {
    unsigned status = 0;
    std::string_view text;
};

class head_parser;

class request_reader final : public request {
public:
    enum class state {
        head,     ///< the head is incomplete; nothing of it can be asked
        body,     ///< the head can be asked; the body is incomplete
        complete, ///< a whole request
        failed,   ///< see why(); nothing can follow on this connection
    };

    explicit request_reader(reader_limits const& limits);
    request_reader(request_reader const&) = delete;
    request_reader& operator=(request_reader const&) = delete;
    ~request_reader() override;

    /// Takes bytes up to the end of one request and says how many it took: all of them unless the state is now
    /// `complete` or `failed`. Takes nothing in those states.
    std::size_t feed(std::string_view bytes);

    [[nodiscard]] state where() const noexcept { return state_; }
    /// Whether any byte of a request has come (blank lines before it do not count).
    [[nodiscard]] bool has_begun() const noexcept { return !head_.empty(); }
    [[nodiscard]] refusal why() const noexcept { return refusal_; }

    /// Valid from state `body` on.
    [[nodiscard]] bool is_http11() const noexcept { return http11_; }
    [[nodiscard]] bool keeps_alive() const noexcept { return keep_alive_; }
    [[nodiscard]] bool expects_continue() const noexcept { return expects_continue_; }
    /// Bytes of head and body taken for this request.
    [[nodiscard]] std::size_t bytes() const noexcept { return head_.size() + body_.size(); }

    /// Ready for the next request. Keeps small buffers.
    void reset() noexcept;

    http::method method() const noexcept override { return method_; }
    std::string_view method_text() const noexcept override { return text(method_text_); }
    std::string_view path() const noexcept override { return text(path_); }
    std::string_view query() const noexcept override { return text(query_); }
    std::optional<std::string_view> header(std::string_view name) const noexcept override;
    std::size_t header_count(std::string_view name) const noexcept override;
    std::string_view body() const noexcept override { return body_; }

private:
    using piece = head_piece;
    enum class chunk_step : std::uint8_t {
        size_first,
        size_more,
        extension,
        size_lf,
        data,
        data_cr,
        data_lf,
        trailer_start,
        trailer_name,
        trailer,
        trailer_lf,
        last_lf,
    };

    [[nodiscard]] std::string_view text(piece p) const noexcept { return {head_.data() + p.at, p.size}; }
    [[nodiscard]] piece piece_of(std::string_view part) const noexcept { return http::piece_of(head_, part); }
    std::size_t take_whole_head(std::string_view bytes);
    std::size_t feed_head(std::string_view bytes);
    std::size_t feed_sized(std::string_view bytes);
    std::size_t feed_chunked(std::string_view bytes);
    void take_head(std::string_view parsed, head_parser const& parser);
    void join_list_fields();
    refusal parse_target(std::string_view target);
    void fail(refusal why) noexcept;

    reader_limits const limits_;
    std::string head_;
    std::string body_;
    head_fields fields_;
    piece method_text_;
    piece target_;
    piece path_;
    piece query_;
    refusal refusal_;
    std::uint64_t remaining_ = 0;    // of the sized body, or of the chunk
    std::size_t chunk_overhead_ = 0; // extension and trailer bytes of this body
    std::uint32_t line_start_ = 0;   // in head_
    std::uint32_t target_start_ = 0; // in head_; 0 before the first blank
    std::uint32_t size_digits_ = 0;  // of this chunk's size
    state state_ = state::head;
    http::method method_ = method::other;
    chunk_step chunk_step_ = chunk_step::size_first;
    bool skipped_cr_ = false; // of a blank line before the request
    bool target_done_ = false;
    bool chunked_ = false;
    bool http11_ = true;
    bool keep_alive_ = false;
    bool expects_continue_ = false;
};

}
