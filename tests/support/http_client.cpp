#include "support/http_client.hpp"

#include <boost/json/parse.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace belay::test {

namespace {

// Nothing in a test takes this long unless something is broken.
constexpr timeval socket_patience{20, 0};

bool equals_ignoring_case(std::string_view a, std::string_view b)
{
    auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trim(std::string_view text)
{
    auto const first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}

std::optional<std::string> http_response::header(std::string_view name) const
{
    for (auto const& [key, value] : headers)
        if (equals_ignoring_case(key, name))
            return value;
    return std::nullopt;
}

json::value http_response::json() const
{
    boost::system::error_code error;
    auto value = json::parse(body, error);
    return error ? json::value() : value;
}

std::int64_t http_response::error_code() const
{
    auto const value = json();
    if (auto const* object = value.if_object())
        if (auto const* error = object->if_contains("error"); error && error->is_object())
            if (auto const* code = error->get_object().if_contains("code"); code && code->is_int64())
                return code->get_int64();
    return 0;
}

http_client::http_client(std::uint16_t port) : http_client(port, options{})
{
}

http_client::http_client(std::uint16_t port, options const& options)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
{
    if (fd_ < 0)
        throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &socket_patience, sizeof socket_patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &socket_patience, sizeof socket_patience);
    int const on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (options.receive_buffer > 0)
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer, sizeof options.receive_buffer);
    if (!options.source.empty()) {
        sockaddr_in from{};
        from.sin_family = AF_INET;
        ::inet_pton(AF_INET, options.source.c_str(), &from.sin_addr);
        ::setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        ::bind(fd_, reinterpret_cast<sockaddr const*>(&from), sizeof from);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr const*>(&to), sizeof to) != 0) {
        ::close(std::exchange(fd_, -1)); // a server that is stopping; the first read says so
        ending_ = ending::closed;
    }
}

http_client::http_client(http_client&& other) noexcept
{
    *this = std::move(other);
}

http_client& http_client::operator=(http_client&& other) noexcept
{
    if (this == &other)
        return *this;
    if (fd_ >= 0)
        ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    raw_ = std::move(other.raw_);
    head_ = std::move(other.head_);
    has_head_ = other.has_head_;
    method_ = std::move(other.method_);
    framing_ = other.framing_;
    chunk_ = other.chunk_;
    remaining_ = other.remaining_;
    is_stream_ = other.is_stream_;
    body_ = std::move(other.body_);
    events_ = std::move(other.events_);
    ending_ = std::exchange(other.ending_, ending::cut);
    allowed_ = other.allowed_;
    bytes_read_ = other.bytes_read_;
    return *this;
}

http_client::~http_client()
{
    if (fd_ >= 0)
        ::close(fd_);
}

bool http_client::send(std::string_view bytes)
{
    while (!bytes.empty()) {
        auto const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

bool http_client::send_request(
    std::string_view method, std::string_view target, header_list const& headers, std::string_view body)
{
    method_ = method;
    std::string text;
    text.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
    bool has_host = false;
    for (auto const& [name, value] : headers) {
        text.append(name).append(": ").append(value).append("\r\n");
        has_host |= equals_ignoring_case(name, "Host");
    }
    if (!has_host)
        text += "Host: localhost\r\n";
    if (!body.empty() || method == "POST")
        text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
    text.append("\r\n").append(body);
    return send(text);
}

bool http_client::fill(bool waits)
{
    if (fd_ < 0 || ending_ == ending::cut)
        return false;
    if (allowed_ && *allowed_ == 0) {
        close();
        return false;
    }
    char buffer[65536];
    auto const wanted = std::min(sizeof buffer, allowed_.value_or(sizeof buffer));
    auto const n = ::recv(fd_, buffer, wanted, waits ? 0 : MSG_DONTWAIT);
    if (n > 0) {
        bytes_read_ += static_cast<std::size_t>(n);
        if (allowed_)
            *allowed_ -= static_cast<std::size_t>(n);
        raw_.append(buffer, static_cast<std::size_t>(n));
        return true;
    }
    if (n == 0)
        ending_ = has_head_ && framing_ == framing::until_close ? ending::complete : ending::closed;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
        ending_ = waits ? ending::timed_out : ending::open;
    else
        ending_ = ending::broken;
    return false;
}

bool http_client::read_head()
{
    has_head_ = false;
    head_ = {};
    body_.clear();
    events_ = http::sse_reader();
    if (ending_ == ending::complete)
        ending_ = ending::open;
    std::size_t end = 0;
    while ((end = raw_.find("\r\n\r\n")) == std::string::npos)
        if (!fill(true))
            return false;
    std::string_view text(raw_.data(), end + 2);
    auto const line_end = text.find("\r\n");
    auto const first = text.substr(0, line_end);
    if (!first.starts_with("HTTP/1.1 ") || first.size() < 12)
        return false;
    std::from_chars(first.data() + 9, first.data() + 12, head_.status);
    text.remove_prefix(line_end + 2);
    while (!text.empty()) {
        auto const stop = text.find("\r\n");
        auto const line = text.substr(0, stop);
        auto const colon = line.find(':');
        if (colon != std::string_view::npos)
            head_.headers.emplace_back(line.substr(0, colon), trim(line.substr(colon + 1)));
        text.remove_prefix(stop + 2);
    }
    raw_.erase(0, end + 4);
    has_head_ = true;
    start_body();
    decode();
    return true;
}

void http_client::start_body()
{
    chunk_ = chunk::size;
    remaining_ = 0;
    is_stream_ = head_.header("Content-Type").value_or("").starts_with("text/event-stream");
    auto const length = head_.header("Content-Length");
    if (head_.status == 204 || head_.status == 304 || head_.status / 100 == 1 || method_ == "HEAD")
        framing_ = framing::none;
    else if (equals_ignoring_case(head_.header("Transfer-Encoding").value_or(""), "chunked"))
        framing_ = framing::chunked;
    else if (length) {
        framing_ = framing::sized;
        std::from_chars(length->data(), length->data() + length->size(), remaining_);
    } else
        framing_ = framing::until_close;
    if (framing_ == framing::none || (framing_ == framing::sized && remaining_ == 0))
        finish_response();
}

void http_client::finish_response()
{
    ending_ = ending::complete;
}

void http_client::decode()
{
    auto const take = [&](std::size_t count) {
        auto const part = std::string_view(raw_).substr(0, count);
        if (is_stream_)
            events_.feed(part);
        body_.append(part);
        raw_.erase(0, count);
    };
    while (has_head_ && ending_ != ending::complete && !raw_.empty()) {
        if (framing_ == framing::until_close) {
            take(raw_.size());
        } else if (framing_ == framing::sized) {
            auto const count = std::min(remaining_, raw_.size());
            take(count);
            remaining_ -= count;
            if (remaining_ == 0)
                finish_response();
        } else if (chunk_ == chunk::data) {
            auto const count = std::min(remaining_, raw_.size());
            take(count);
            remaining_ -= count;
            if (remaining_ == 0)
                chunk_ = chunk::data_end;
        } else {
            auto const end = raw_.find("\r\n");
            if (end == std::string::npos)
                return;
            auto const line = raw_.substr(0, end);
            raw_.erase(0, end + 2);
            if (chunk_ == chunk::size) {
                std::from_chars(line.data(), line.data() + line.size(), remaining_, 16);
                chunk_ = remaining_ == 0 ? chunk::trailer : chunk::data;
            } else if (chunk_ == chunk::data_end) {
                chunk_ = chunk::size;
            } else if (line.empty()) {
                finish_response();
            }
        }
    }
}

http_response http_client::read_response()
{
    do {
        if (!read_head())
            return {};
    } while (head_.status == 100);
    return read_rest();
}

http_response http_client::read_rest()
{
    while (ending_ == ending::open && fill(true))
        decode();
    auto whole = head_;
    whole.body = body_;
    return whole;
}

http_response
http_client::ask(std::string_view method, std::string_view target, header_list const& headers, std::string_view body)
{
    send_request(method, target, headers, body);
    return read_response();
}

std::optional<http::sse_event> http_client::next_event()
{
    for (;;) {
        if (auto event = events_.next())
            return event;
        if (ending_ != ending::open || !fill(true))
            return std::nullopt;
        decode();
    }
}

std::optional<http::sse_event> http_client::poll_event()
{
    for (;;) {
        if (auto event = events_.next())
            return event;
        if (ending_ != ending::open || !fill(false))
            return std::nullopt;
        decode();
    }
}

std::size_t http_client::comment_count()
{
    poll_ending();
    return events_.comment_count();
}

http_client::ending http_client::poll_ending()
{
    while (ending_ == ending::open && fill(false))
        decode();
    return ending_;
}

bool http_client::wait_ended()
{
    while (ending_ == ending::open && fill(true))
        decode();
    return ending_ != ending::timed_out;
}

void http_client::close()
{
    if (fd_ >= 0)
        ::close(std::exchange(fd_, -1));
    if (ending_ == ending::open)
        ending_ = ending::cut;
}

void http_client::reset()
{
    linger const at_once{1, 0};
    if (fd_ >= 0)
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
}

bool http_client::vanish()
{
    // A socket in repair mode is closed without a segment being sent; needs CAP_NET_ADMIN.
    int const on = 1;
    if (fd_ < 0 || ::setsockopt(fd_, IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0)
        return false;
    close();
    return true;
}

void http_client::end_output()
{
    ::shutdown(fd_, SHUT_WR);
}

}
