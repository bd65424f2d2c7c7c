// How a connection hands a request over and what answers it: the exchange's other side.
#include "http/buffers.hpp"
#include "http/connection.hpp"
#include "http/field_text.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <utility>

namespace belay::http {

namespace {

// A stream's buffer that grew beyond this is given back at the flush: 10,000 idle streams hold little.
constexpr std::size_t kept_out_bytes = std::size_t(4) * 1024;
constexpr std::size_t kept_head_bytes = std::size_t(64) * 1024;
// With so many answers on one connection of which it is not known, it is asked soon: nearly all have.
constexpr std::size_t kept_receipts = 32;

constexpr refusal unanswered{500, "The server dropped this request without an answer."};

std::string_view reason_of(unsigned status) noexcept
{
    switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
    }
}

bool has_no_body(unsigned status) noexcept
{
    return status < 200 || status == 204 || status == 304;
}

void append_field(std::string& out, std::string_view name, std::string_view value)
{
    out.append(name).append(": ").append(value).append("\r\n");
}

class no_request final : public request {
public:
    http::method method() const noexcept override { return method::other; }
    std::string_view method_text() const noexcept override { return {}; }
    std::string_view path() const noexcept override { return {}; }
    std::string_view query() const noexcept override { return {}; }
    std::optional<std::string_view> header(std::string_view) const noexcept override { return {}; }
    std::size_t header_count(std::string_view) const noexcept override { return 0; }
    std::string_view body() const noexcept override { return {}; }
};

}

// A handler's hold on one request. It knows the connection and its own number; once the connection has gone
// on to another request, or has closed, a late call does nothing.
class connection::live_exchange final : public exchange {
public:
    live_exchange(std::shared_ptr<connection> owner, std::uint64_t serial)
        : connection_(std::move(owner)), serial_(serial)
    {
    }

    ~live_exchange() override
    {
        if (has_ended_ || connection_->is_closed_.load(std::memory_order_acquire))
            return;
        // The last holder may be on any thread.
        auto& loop = connection_->loop_;
        loop.post([held = std::move(connection_), serial = serial_] {
            if (held->serial_ == serial)
                held->abandon();
        });
    }

    http::request const& request() const noexcept override
    {
        static no_request const none;
        if (is_current() && connection_->reader_)
            return *connection_->reader_;
        return none;
    }

    base::loop& loop() noexcept override { return connection_->loop_; }

    void respond(response_head const& head, std::string_view body) override
    {
        if (!end())
            return;
        connection_->observer_ = nullptr; // also where it was about to be told of the connection's end
        if (connection_->phase_ == phase::answering)
            connection_->respond(head, body);
    }

    void observe(stream_observer& observer) override
    {
        if (is_current())
            connection_->observe(observer);
    }

    void begin_stream(response_head const& head, stream_observer& observer) override
    {
        if (is_current())
            connection_->begin_stream(head, observer);
    }

    std::string& out() noexcept override { return is_current() ? connection_->out_ : late_out_; }
    bool flush() override { return is_current() && connection_->flush(); }

    std::shared_ptr<base::receipt> end_stream(std::move_only_function<void()> arrived) override
    {
        return end() ? connection_->end_stream(std::move(arrived)) : nullptr;
    }

    void abort() override
    {
        if (end())
            connection_->abort();
    }

    std::size_t unacknowledged() const noexcept override { return is_current() ? connection_->unacknowledged() : 0; }
    bool peer_gone() const noexcept override { return connection_->peer_gone(); }

    bool takes_notes() const noexcept override
    {
        auto const* const wanted = connection_->site_.settings.takes_notes;
        return wanted && wanted->load(std::memory_order_relaxed) && is_current();
    }
    void note(std::string_view name, std::string value) override
    {
        if (takes_notes())
            connection_->note(name, std::move(value));
    }

private:
    bool is_current() const noexcept { return !has_ended_ && connection_->serial_ == serial_; }
    bool end() noexcept
    {
        bool const was_current = is_current();
        has_ended_ = true;
        return was_current;
    }

    std::shared_ptr<connection> connection_;
    std::uint64_t serial_;
    bool has_ended_ = false;
    std::string late_out_; // takes what is written after the end
};

class connection::answer_receipt final : public base::receipt {
public:
    answer_receipt(std::weak_ptr<connection> on, std::uint64_t end, std::move_only_function<void()> arrived)
        : on_(std::move(on)), end_(end), arrived_(std::move(arrived))
    {
    }
    void ask() override
    {
        if (auto const on = on_.lock())
            on->tell_arrived();
    }
    [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
    void tell() { std::exchange(arrived_, nullptr)(); }

private:
    std::weak_ptr<connection> on_;
    std::uint64_t end_; // of the answer, in the bytes of the connection
    std::move_only_function<void()> arrived_;
};

void connection::dispatch()
{
    phase_ = phase::answering;
    no_deadline();
    ++serial_;
    keep_alive_ = reader_->keeps_alive();
    is_http11_ = reader_->is_http11();
    is_head_request_ = reader_->method() == method::head;
    is_get_request_ = reader_->method() == method::get;
    begin_record();
    auto const verdict = site_.policy.judge(*reader_, site_.last_host);
    answers_page_ = verdict == policy::verdict::allowed_page;
    if (verdict == policy::verdict::bad_host || verdict == policy::verdict::bad_origin) {
        count(site_.refused_requests);
        auto text = site_.policy.explain(verdict, *reader_);
        text += '\n';
        return respond({403, "text/plain; charset=utf-8", {}}, text);
    }
    if (answers_page_ && policy::is_preflight(*reader_))
        return respond({204, {}, {}}, {}, site_.policy.preflight_lines());
    count(site_.requests);
    site_.handler.handle(std::make_shared<live_exchange>(shared_from_this(), serial_));
}

// Answers a request that never becomes an exchange, and closes.
void connection::refuse(refusal why)
{
    count(site_.refused_requests);
    ++serial_;
    phase_ = phase::answering;
    keep_alive_ = false;
    is_http11_ = true;
    answers_page_ = reader_ && site_.policy.judge(*reader_) == policy::verdict::allowed_page;
    is_head_request_ = reader_ && reader_->method() == method::head;
    begin_record();
    std::string text(why.text);
    text += '\n';
    response_head head{why.status, "text/plain; charset=utf-8", {}};
    if (why.status == 503)
        head.fields.push_back({"Retry-After", "1"});
    respond(head, text);
}

void connection::append_head(
    std::string& out, response_head const& head, framing how, std::size_t body_bytes, std::string_view more_lines)
{
    out.append("HTTP/1.1 ");
    append_number(out, head.status);
    out.push_back(' ');
    out.append(reason_of(head.status)).append("\r\n");
    if (!head.content_type.empty() && is_one_line(head.content_type))
        append_field(out, "Content-Type", head.content_type);
    for (auto const& [name, value] : head.fields) {
        if (equals_ignoring_case(name, "Connection")) {
            keep_alive_ = keep_alive_ && !equals_ignoring_case(value, "close");
            continue;
        }
        // Framing is the connection's; a second opinion on the wire would be a smuggling hole.
        bool const is_framing
            = equals_ignoring_case(name, "Content-Length") || equals_ignoring_case(name, "Transfer-Encoding");
        if (!is_framing && is_one_line(name) && is_one_line(value))
            append_field(out, name, value);
    }
    if (answers_page_ && reader_)
        site_.policy.append_cors(out, *reader_);
    out.append(more_lines);
    if (how == framing::until_close)
        keep_alive_ = false;
    if (how == framing::chunked) {
        out.append("Transfer-Encoding: chunked\r\n");
    } else if (how == framing::sized && !has_no_body(head.status)) {
        out.append("Content-Length: ");
        append_number(out, body_bytes);
        out.append("\r\n");
    }
    if (!keep_alive_)
        out.append("Connection: close\r\n");
    else if (!is_http11_)
        out.append("Connection: keep-alive\r\n");
    out.append("\r\n");
}

void connection::respond(response_head const& head, std::string_view body, std::string_view more_lines)
{
    observer_ = nullptr; // of an exchange that was let go of
    auto& text = site_.head;
    text.clear();
    append_head(text, head, framing::sized, body.size(), more_lines);
    bool const with_body = !is_head_request_ && !has_no_body(head.status) && !body.empty();
    std::array<iovec, 3> parts{iovec{}, part_of(text), part_of(with_body ? body : std::string_view())};
    auto const outcome = transmit(std::span(parts).first(with_body ? 3 : 2));
    if (record_)
        record_->status = head.status;
    if (text.capacity() > kept_head_bytes)
        release(text);
    finish_answer(outcome);
}

void connection::observe(stream_observer& observer)
{
    observer_ = &observer;
    if (phase_ == phase::closed)
        tell_closed_later();
}

void connection::begin_stream(response_head const& head, stream_observer& observer)
{
    assert(phase_ == phase::answering || phase_ == phase::closed);
    observer_ = &observer;
    if (phase_ == phase::closed)
        return tell_closed_later();
    phase_ = phase::streaming;
    stream_framing_ = is_http11_ ? framing::chunked : framing::until_close;
    // Goes out with the first flush. Made elsewhere, so that it is kept in one piece of the right size.
    site_.head.clear();
    append_head(site_.head, head, stream_framing_, 0);
    unsent_.append(site_.head);
    out_.clear();
    if (record_) {
        record_->status = head.status;
        record_->is_stream = true;
    }
    give_reader_back();
    if (is_head_request_) {
        // The head is the whole answer.
        loop_.post([self = shared_from_this(), serial = serial_] {
            if (self->serial_ != serial || self->phase_ != phase::streaming)
                return;
            auto* const told = std::exchange(self->observer_, nullptr);
            ++self->serial_; // the exchange is over, though its holder did not end it
            self->end_stream(nullptr);
            if (told)
                told->on_closed(stream_end::finished);
        });
    }
}

connection::sent connection::send_stream(bool is_last)
{
    std::array<iovec, 4> parts{};
    std::size_t used = 1;
    char size_line[20];
    bool const is_chunked = stream_framing_ == framing::chunked;
    if (!is_head_request_ && !out_.empty()) {
        if (is_chunked) {
            auto* end = std::to_chars(size_line, size_line + 16, out_.size(), 16).ptr;
            *end++ = '\r';
            *end++ = '\n';
            parts[used++] = part_of({size_line, static_cast<std::size_t>(end - size_line)});
        }
        parts[used++] = part_of(out_);
        if (is_chunked)
            parts[used++] = part_of(is_last ? "\r\n0\r\n\r\n" : "\r\n");
    } else if (!is_head_request_ && is_chunked && is_last) {
        parts[used++] = part_of("0\r\n\r\n");
    }
    auto const outcome = transmit(std::span(parts).first(used));
    if (out_.capacity() > kept_out_bytes)
        release(out_);
    else
        out_.clear();
    return outcome;
}

bool connection::flush()
{
    if (phase_ != phase::streaming) {
        out_.clear();
        return false;
    }
    assert(!drain_awaited_);
    switch (send_stream(false)) {
    case sent::all: return true;
    case sent::part:
        drain_awaited_ = true;
        await_writable();
        return false;
    case sent::failed: lose_later(); return false;
    }
    return false;
}

std::shared_ptr<base::receipt> connection::end_stream(std::move_only_function<void()> arrived)
{
    observer_ = nullptr;
    drain_awaited_ = false;
    if (phase_ != phase::streaming)
        return nullptr;
    auto const outcome = send_stream(true);
    std::shared_ptr<answer_receipt> receipt;
    if (arrived && outcome != sent::failed) {
        if (receipts_.empty())
            site_.await_arrival(weak_from_this());
        receipt = std::make_shared<answer_receipt>(
            weak_from_this(), handed_over_ + unsent_.size() - unsent_at_, std::move(arrived));
        receipts_.push_back(receipt);
    }
    finish_answer(outcome);
    if (receipts_.size() == kept_receipts)
        loop_.post([self = shared_from_this()] { self->tell_arrived(); });
    return receipt;
}

bool connection::tell_arrived()
{
    if (receipts_.empty())
        return true;
    auto const acknowledged = handed_over_ - std::min<std::uint64_t>(handed_over_, in_kernel());
    auto const rest = std::ranges::find_if(receipts_, [&](auto const& each) { return each->end() > acknowledged; });
    std::vector<std::shared_ptr<answer_receipt>> told(receipts_.begin(), rest);
    receipts_.erase(receipts_.begin(), rest);
    for (auto const& each : told)
        each->tell();
    return receipts_.empty();
}

void connection::abort()
{
    observer_ = nullptr;
    close();
}

// The handler let go of the exchange without ending it.
void connection::abandon()
{
    if (phase_ == phase::answering)
        refuse(unanswered);
    else if (phase_ == phase::streaming)
        abort();
}

std::size_t connection::unacknowledged() const noexcept
{
    if (phase_ == phase::closed)
        return unacknowledged_at_close_;
    return unsent_.size() - unsent_at_ + out_.size() + in_kernel();
}

std::size_t connection::in_kernel() const noexcept
{
    int bytes = 0;
    // Where the kernel does not say, nothing is known to have arrived.
    return ::ioctl(fd_, SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : handed_over_;
}

bool connection::peer_gone() const noexcept
{
    pollfd entry{fd_, POLLRDHUP, 0};
    bool const has_news = ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLERR | POLLHUP | POLLNVAL)) != 0;
    // Looked at afterwards: if the descriptor was closed and given to another meanwhile, this is set.
    return has_news || is_closed_.load(std::memory_order_acquire);
}

}
