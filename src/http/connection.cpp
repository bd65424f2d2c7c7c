#include "http/connection.hpp"

#include "http/field_text.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace belay::http {

namespace {

constexpr std::size_t scratch_bytes = std::size_t(64) * 1024;
// Read at once while a head is awaited, and kept at most behind an unfinished answer: one read buffer.
constexpr std::size_t pending_bytes = std::size_t(16) * 1024;
// A stream's buffer that grew beyond this is given back at the flush: 10,000 idle streams hold little.
constexpr std::size_t kept_out_bytes = std::size_t(4) * 1024;
constexpr std::size_t kept_head_bytes = std::size_t(64) * 1024;
// How long after an answer the kernel is asked whether it has arrived.
constexpr base::duration arrival_time = std::chrono::seconds(1);

constexpr std::size_t spare_reader_count = 64;
constexpr std::size_t recorded_path_bytes = 256;

constexpr refusal slow_head{408, "The request head took too long to arrive."};
constexpr refusal slow_body{408, "The request body took too long to arrive."};
constexpr refusal no_room{503, "The server is reading as many request bodies as it may; try again in a moment."};
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

iovec part_of(std::string_view text) noexcept
{
    return {const_cast<char*>(text.data()), text.size()};
}

void release(std::string& buffer) noexcept
{
    std::string().swap(buffer);
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

std::string_view to_string(method method) noexcept
{
    switch (method) {
    case method::get: return "GET";
    case method::head: return "HEAD";
    case method::post: return "POST";
    case method::put: return "PUT";
    case method::delete_: return "DELETE";
    case method::options: return "OPTIONS";
    case method::other: return "OTHER";
    }
    return "?";
}

connection_site::connection_site(
    base::io_loop& on, server_settings const& with, http::policy const& by, http::handler& to,
    std::atomic<std::size_t>& count, http::in_flight& in_flight)
    : loop(on), settings(with), policy(by), handler(to), scratch(std::make_unique_for_overwrite<char[]>(scratch_bytes)),
      ask_arrived(
          on.timers(),
          [this] {
              std::erase_if(awaiting, [](std::weak_ptr<connection> const& each) {
                  auto const open = each.lock();
                  return !open || open->tell_arrived();
              });
              if (!awaiting.empty())
                  ask_arrived.after(arrival_time);
          }),
      in_flight(in_flight), unread(in_flight.add(on)), open_connections(count)
{
    spare_readers.reserve(spare_reader_count);
}

void connection_site::await_arrival(std::weak_ptr<connection> on)
{
    awaiting.push_back(std::move(on));
    if (!ask_arrived.is_armed())
        ask_arrived.after(arrival_time);
}

std::unique_ptr<request_reader> connection_site::take_reader()
{
    if (spare_readers.empty())
        return std::make_unique<request_reader>(settings.limits);
    auto reader = std::move(spare_readers.back());
    spare_readers.pop_back();
    return reader;
}

void connection_site::give_back(std::unique_ptr<request_reader> reader) noexcept
{
    if (!reader || spare_readers.size() == spare_reader_count)
        return;
    reader->reset();
    spare_readers.push_back(std::move(reader));
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

connection::connection(connection_site& site, socket connected)
    : site_(site), loop_(site.loop), socket_(std::move(connected)), timer_(site.loop.timers(), [this] { on_timer(); }),
      fd_(socket_->native_handle())
{
}

connection::~connection() = default;

void connection::start()
{
    self_ = shared_from_this();
    next_ = site_.first;
    if (next_)
        next_->previous_ = this;
    site_.first = this;
    site_.open_connections.fetch_add(1, std::memory_order_relaxed);
    deadline_after(site_.settings.first_byte_timeout);
    watch();
}

void connection::start_refused(refusal why)
{
    start();
    refuse(why);
}

void connection::stop()
{
    lose(stream_end::stopping);
}

void connection::close_unread()
{
    count(site_.closed_readers);
    lose(stream_end::peer_gone, true);
}

// --- Time ------------------------------------------------------------------------------------------------

void connection::set_deadline(base::time_point when)
{
    deadline_ = when;
    if (when < armed_) {
        armed_ = when;
        timer_.at(when);
    }
}

void connection::on_timer()
{
    auto const held = shared_from_this();
    armed_ = base::time_point::max();
    if (deadline_ == base::time_point::max())
        return;
    if (loop_.now() < deadline_)
        return set_deadline(deadline_);
    no_deadline();
    switch (phase_) {
    case phase::idle: return close();
    case phase::head: return refuse(slow_head);
    case phase::body: return refuse(slow_body);
    case phase::answering:
    case phase::streaming:
    case phase::finishing:
        // The peer does not read. A reset gives the kernel's buffer back at once.
        return lose(stream_end::peer_gone, true);
    case phase::lingering: return close();
    case phase::closed: return;
    }
}

// --- Reading ---------------------------------------------------------------------------------------------

void connection::watch()
{
    if (read_armed_ || has_ended_input_ || phase_ == phase::closed)
        return;
    if (phase_ >= phase::answering && phase_ <= phase::finishing && pending_.size() >= pending_bytes)
        return;
    read_armed_ = true;
    socket_->async_wait(socket::wait_read, [self = shared_from_this()](boost::system::error_code const& error) {
        self->on_readable(error);
    });
}

void connection::on_readable(boost::system::error_code const& error)
{
    read_armed_ = false;
    if (phase_ == phase::closed)
        return;
    if (error)
        return lose(stream_end::peer_gone);

    bool const is_answering = phase_ >= phase::answering && phase_ <= phase::finishing;
    std::size_t room = scratch_bytes;
    if (is_answering)
        room = pending_bytes - std::min(pending_.size(), pending_bytes);
    else if (phase_ == phase::idle || phase_ == phase::head)
        room = pending_bytes;
    if (room == 0) // the answer began since the wait did
        return;
    auto const got = ::recv(fd_, site_.scratch.get(), room, MSG_DONTWAIT);
    if (got < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            return watch();
        return lose(stream_end::peer_gone);
    }
    if (got == 0)
        return on_end_of_input();

    std::string_view const bytes(site_.scratch.get(), static_cast<std::size_t>(got));
    if (phase_ == phase::lingering) {
        // Discarded, so that the kernel does not answer it with a reset that would eat our last words.
    } else if (is_answering) {
        pending_.append(bytes);
    } else if (!pending_.empty()) {
        pending_.append(bytes);
        consume_pending();
    } else {
        consume(bytes);
    }
    watch();
}

void connection::on_end_of_input()
{
    has_ended_input_ = true;
    if (phase_ == phase::finishing) {
        // The whole answer is on its way; a peer that only shut down its sending side gets it.
        keep_alive_ = false;
        return;
    }
    lose(stream_end::peer_gone);
}

void connection::consume_pending()
{
    if (phase_ != phase::idle || pending_.empty())
        return;
    auto const bytes = std::exchange(pending_, {});
    consume(bytes);
    watch();
}

void connection::consume(std::string_view bytes)
{
    in_consume_ = true;
    while (phase_ <= phase::body && !bytes.empty()) {
        if (!reader_)
            reader_ = site_.take_reader();
        bytes.remove_prefix(reader_->feed(bytes));
        switch (reader_->where()) {
        case request_reader::state::head:
            if (phase_ == phase::idle && reader_->has_begun()) {
                phase_ = phase::head;
                deadline_after(site_.settings.header_timeout);
            }
            break;
        case request_reader::state::body:
            if (!has_room_for_body()) {
                count(site_.refused_bodies);
                refuse(no_room);
                break;
            }
            count_body();
            if (phase_ == phase::body)
                break;
            phase_ = phase::body;
            deadline_after(site_.settings.body_timeout);
            if (reader_->expects_continue() && reader_->body().empty()) {
                std::array<iovec, 2> parts{iovec{}, part_of("HTTP/1.1 100 Continue\r\n\r\n")};
                auto const outcome = transmit(parts);
                if (outcome == sent::failed)
                    lose(stream_end::peer_gone);
                else if (outcome == sent::part)
                    await_writable();
            }
            break;
        case request_reader::state::complete:
            count_body(); // kept until it is answered
            dispatch();
            break;
        case request_reader::state::failed: refuse(reader_->why()); break;
        }
    }
    in_consume_ = false;
    if (phase_ >= phase::answering && phase_ <= phase::finishing)
        pending_.assign(bytes);
    else if (phase_ == phase::idle && !reader_)
        deadline_after(site_.settings.idle_timeout);
}

bool connection::has_room_for_body() const
{
    auto most = reader_->bytes();
    if (phase_ != phase::body) { // known before it comes, unless it comes in chunks
        std::size_t announced = 0;
        auto const length = reader_->header("Content-Length").value_or("");
        std::from_chars(length.data(), length.data() + length.size(), announced);
        most = std::max(most, announced);
    }
    return most <= in_flight::uncounted || site_.in_flight.takes(most - std::min(most, counted_in_));
}

void connection::count_body()
{
    auto const kept = reader_ ? reader_->bytes() : 0;
    auto const now = kept > in_flight::uncounted ? kept : 0;
    if (now != counted_in_)
        site_.in_flight.count_in(std::exchange(counted_in_, now), now);
}

void connection::give_reader_back()
{
    site_.give_back(std::move(reader_));
    count_body();
}

void connection::dispatch()
{
    phase_ = phase::answering;
    no_deadline();
    ++serial_;
    keep_alive_ = reader_->keeps_alive();
    is_http11_ = reader_->is_http11();
    is_head_request_ = reader_->method() == method::head;
    begin_record();
    auto const verdict = site_.policy.judge(*reader_);
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

// --- Answering -------------------------------------------------------------------------------------------

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
    // Goes out with the first flush.
    append_head(unsent_, head, stream_framing_, 0);
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

// --- Writing ---------------------------------------------------------------------------------------------

connection::sent connection::transmit(std::span<iovec> parts)
{
    parts[0] = part_of(std::string_view(unsent_).substr(unsent_at_));
    std::size_t total = 0;
    for (auto const& part : parts)
        total += part.iov_len;
    if (record_)
        record_->bytes_out += total - (write_armed_ ? parts[0].iov_len : 0);
    if (total == 0)
        return sent::all;
    auto const first = parts[0].iov_len == 0 ? parts.subspan(1) : parts;
    msghdr message{};
    message.msg_iov = first.data();
    message.msg_iovlen = first.size();
    ssize_t taken = 0;
    do {
        count(site_.sends);
        taken = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (taken < 0 && errno == EINTR);
    if (taken < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return sent::failed;
        taken = 0;
    }
    auto left = static_cast<std::size_t>(taken);
    handed_over_ += left;
    if (left == total) {
        release(unsent_);
        unsent_at_ = 0;
        if (counted_out_ != 0)
            count_unsent(true);
        return sent::all;
    }
    auto const from_unsent = std::min(left, parts[0].iov_len);
    unsent_at_ += from_unsent;
    left -= from_unsent;
    if (unsent_at_ == unsent_.size()) {
        unsent_.clear();
        unsent_at_ = 0;
    }
    for (auto const& part : parts.subspan(1)) {
        auto const skipped = std::min(left, part.iov_len);
        left -= skipped;
        unsent_.append(static_cast<char const*>(part.iov_base) + skipped, part.iov_len - skipped);
    }
    count_unsent(taken > 0);
    return sent::part;
}

// Counts what is kept, sent or not: it is given back as a whole.
void connection::count_unsent(bool has_progress)
{
    auto const now = unsent_.size() > in_flight::uncounted ? unsent_.size() : 0;
    if (has_progress || counted_out_ == 0 || now == 0) {
        unlist_unread();
        if (now != 0)
            list_unread();
    }
    if (now != counted_out_)
        site_.in_flight.count_out(std::exchange(counted_out_, now), now, loop_);
}

void connection::list_unread()
{
    auto& list = site_.unread;
    progress_at_ = loop_.now();
    slower_ = std::exchange(list.last, this);
    if (slower_)
        slower_->faster_ = this;
    else
        list.first = this;
    list.oldest = list.first->progress_at_.time_since_epoch().count();
}

void connection::unlist_unread() noexcept
{
    auto& list = site_.unread;
    if (counted_out_ == 0)
        return;
    (slower_ ? slower_->faster_ : list.first) = faster_;
    (faster_ ? faster_->slower_ : list.last) = slower_;
    slower_ = faster_ = nullptr;
    list.oldest = list.first ? list.first->progress_at_.time_since_epoch().count() : in_flight::unread_list::none;
}

void connection::await_writable()
{
    // While a body is awaited its own deadline holds; an unsent "100 Continue" does not lengthen it.
    if (phase_ >= phase::answering)
        deadline_after(site_.settings.write_timeout);
    if (std::exchange(write_armed_, true))
        return;
    socket_->async_wait(socket::wait_write, [self = shared_from_this()](boost::system::error_code const& error) {
        self->on_writable(error);
    });
}

void connection::on_writable(boost::system::error_code const& error)
{
    if (phase_ == phase::closed)
        return;
    if (error)
        return lose(stream_end::peer_gone);
    auto const before = unsent_.size() - unsent_at_;
    std::array<iovec, 1> parts{};
    auto const outcome = transmit(parts);
    write_armed_ = false;
    if (outcome == sent::failed)
        return lose(stream_end::peer_gone);
    if (outcome == sent::part) {
        auto const kept = deadline_;
        bool const has_progress = unsent_.size() - unsent_at_ < before;
        await_writable();
        if (!has_progress)
            deadline_ = kept;
        return;
    }
    switch (phase_) {
    case phase::finishing: return answer_sent();
    case phase::streaming:
        no_deadline();
        if (std::exchange(drain_awaited_, false) && observer_)
            observer_->on_drained();
        return;
    default: return; // a "100 Continue"
    }
}

void connection::finish_answer(sent outcome)
{
    report();
    give_reader_back();
    phase_ = phase::finishing;
    switch (outcome) {
    case sent::all: return answer_sent();
    case sent::part: return await_writable();
    case sent::failed: return close();
    }
}

void connection::answer_sent()
{
    release(out_);
    if (!keep_alive_ || has_ended_input_)
        return finish_connection();
    phase_ = phase::idle;
    if (in_consume_) // which goes on with what it has
        return;
    deadline_after(site_.settings.idle_timeout);
    if (!pending_.empty())
        loop_.post([self = shared_from_this()] { self->consume_pending(); });
    watch();
}

// The last answer is with the kernel. The peer sees our end first and closes; closing at once with unread
// input would make the kernel send a reset, which may overtake the answer.
void connection::finish_connection()
{
    if (has_ended_input_ || ::shutdown(fd_, SHUT_WR) != 0)
        return close();
    phase_ = phase::lingering;
    release(pending_);
    deadline_after(site_.settings.linger_timeout);
    watch();
}

void connection::note(std::string_view name, std::string value)
{
    if (!record_)
        return;
    auto const known = std::ranges::find(record_->notes, name, &access_note::name);
    if (known != record_->notes.end())
        known->value = std::move(value);
    else
        record_->notes.push_back({name, std::move(value)});
}

void connection::begin_record()
{
    if (record_ || !site_.settings.on_exchange_end)
        return;
    record_ = std::make_unique<record>();
    record_->begun = loop_.now();
    if (!reader_)
        return;
    record_->method = reader_->method();
    record_->path = reader_->path().substr(0, recorded_path_bytes);
    record_->bytes_in = reader_->bytes();
}

void connection::report()
{
    if (!record_)
        return;
    auto const done = std::move(record_);
    access_record entry;
    entry.method = done->method;
    entry.path = done->path;
    entry.status = done->status;
    entry.duration = loop_.now() - done->begun;
    entry.bytes_in = done->bytes_in;
    entry.bytes_out = done->bytes_out;
    entry.is_stream = done->is_stream;
    entry.notes = done->notes;
    site_.settings.on_exchange_end(entry);
}

// --- Ending ----------------------------------------------------------------------------------------------

void connection::close(bool with_reset)
{
    if (phase_ == phase::closed)
        return;
    auto const held = std::move(self_);
    unacknowledged_at_close_ = unacknowledged();
    tell_arrived();
    receipts_.clear();
    phase_ = phase::closed;
    is_closed_.store(true, std::memory_order_release);
    timer_.cancel();
    no_deadline();
    if (with_reset) {
        linger const at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    boost::system::error_code ignored;
    socket_->close(ignored);
    socket_.reset();
    if (previous_)
        previous_->next_ = next_;
    else
        site_.first = next_;
    if (next_)
        next_->previous_ = previous_;
    previous_ = next_ = nullptr;
    site_.open_connections.fetch_sub(1, std::memory_order_relaxed);
    report();
    give_reader_back();
    release(pending_);
    release(unsent_);
    unsent_at_ = 0;
    count_unsent(false);
}

void connection::lose(stream_end why, bool with_reset)
{
    auto const held = shared_from_this();
    close(with_reset);
    if (auto* const told = std::exchange(observer_, nullptr))
        told->on_closed(why);
}

void connection::lose_later()
{
    close();
    tell_closed_later();
}

void connection::tell_closed_later()
{
    loop_.post([self = shared_from_this()] {
        if (auto* const told = std::exchange(self->observer_, nullptr))
            told->on_closed(stream_end::peer_gone);
    });
}

}
