// The bench's own load: a plain client over loopback sockets that costs little beside what it measures.
//
//   load PORT CONNECTIONS REQUESTS FILE NEEDLE   the request in FILE, that many times over kept connections
//   stream PORT FILE [EVENTS]                    one request, its event stream read to the end or so far
//   idle PORT COUNT mcp|nchan                    that many quiet event streams, until standard input ends
//
// Eight '#' in a request are replaced by a number that is new each time. Results are printed as one line
// of JSON. Anything unexpected ends the program with a message and status 1.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr std::string_view number_mark = "########";

[[noreturn]] void fail(std::string const& why)
{
    std::fprintf(stderr, "bench client: %s\n", why.c_str());
    std::exit(1);
}

[[noreturn]] void fail_errno(char const* what)
{
    fail(std::string(what) + ": " + std::strerror(errno));
}

std::string contents_of(char const* path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        fail(std::string("cannot read ") + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

int connect_to(int port)
{
    int const fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fail_errno("socket");
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0)
        fail_errno("connect");
    int const on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

void send_all(int fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        auto const taken = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (taken < 0)
            fail_errno("send");
        bytes.remove_prefix(static_cast<std::size_t>(taken));
    }
}

/// An HTTP response, piece by piece. Hands the pieces of its body, without framing, to a function.
class response_reader {
public:
    [[nodiscard]] bool has_head() const { return state_ != state::head; }
    [[nodiscard]] bool is_complete() const { return state_ == state::complete; }
    [[nodiscard]] int status() const { return status_; }

    [[nodiscard]] std::string header(std::string_view name) const
    {
        for (std::size_t at = head_.find("\r\n"); at + 4 < head_.size(); at = head_.find("\r\n", at + 2)) {
            auto const line = std::string_view(head_).substr(at + 2, head_.find("\r\n", at + 2) - at - 2);
            if (line.size() > name.size() && line[name.size()] == ':'
                && ::strncasecmp(line.data(), name.data(), name.size()) == 0) {
                auto value = line.substr(name.size() + 1);
                value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
                return std::string(value);
            }
        }
        return {};
    }

    template<class Body>
    void feed(std::string_view bytes, Body body)
    {
        while (!bytes.empty() && state_ != state::complete) {
            switch (state_) {
            case state::head: take_head(bytes); break;
            case state::sized:
            case state::chunk: {
                auto const part = bytes.substr(0, left_);
                body(part);
                bytes.remove_prefix(part.size());
                left_ -= part.size();
                if (left_ == 0)
                    state_ = state_ == state::sized ? state::complete : state::size_line;
                break;
            }
            case state::size_line:
            case state::trailer: {
                auto const end = bytes.find('\n');
                line_.append(bytes.substr(0, end));
                if (end == std::string_view::npos)
                    return;
                bytes.remove_prefix(end + 1);
                take_line();
                break;
            }
            case state::complete: break;
            }
        }
        if (!bytes.empty())
            fail("more bytes than the response has");
    }

    void reset()
    {
        state_ = state::head;
        head_.clear();
    }

private:
    enum class state { head, sized, size_line, chunk, trailer, complete };

    void take_head(std::string_view& bytes)
    {
        auto const before = head_.size();
        head_.append(bytes);
        auto const end = head_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
        if (end == std::string::npos) {
            bytes = {};
            return;
        }
        bytes.remove_prefix(end + 4 - before);
        head_.resize(end + 4);
        status_ = head_.size() > 12 ? std::atoi(head_.c_str() + 9) : 0;
        if (auto const length = header("Content-Length"); !length.empty())
            left_ = std::strtoul(length.c_str(), nullptr, 10);
        else if (header("Transfer-Encoding") == "chunked") {
            state_ = state::size_line;
            return;
        } else // to the end of the connection, which no one here waits for
            left_ = header("Content-Type").starts_with("text/event-stream") ? SIZE_MAX : 0;
        state_ = left_ == 0 ? state::complete : state::sized;
    }

    void take_line()
    {
        if (line_.ends_with('\r'))
            line_.pop_back();
        if (state_ == state::trailer)
            state_ = line_.empty() ? state::complete : state::trailer;
        else if (!line_.empty()) { // empty: the end of the chunk before
            left_ = std::strtoul(line_.c_str(), nullptr, 16);
            state_ = left_ == 0 ? state::trailer : state::chunk;
        }
        line_.clear();
    }

    state state_ = state::head;
    int status_ = 0;
    std::size_t left_ = 0;
    std::string head_;
    std::string line_;
};

class request_source {
public:
    explicit request_source(std::string text) : text_(std::move(text)), at_(text_.find(number_mark)) {}

    std::string_view next()
    {
        if (at_ != std::string::npos)
            std::to_chars(text_.data() + at_, text_.data() + at_ + number_mark.size(), number_++);
        return text_;
    }

private:
    std::string text_;
    std::size_t at_;
    unsigned number_ = 10'000'000;
};

int load(int port, std::size_t connections, std::size_t requests, char const* file, std::string_view needle)
{
    struct peer {
        int fd = -1;
        response_reader response;
        std::string body;
    };
    request_source source(contents_of(file));
    std::vector<peer> peers(connections);
    int const poll = ::epoll_create1(EPOLL_CLOEXEC);
    std::size_t sent = 0;
    std::size_t done = 0;
    for (auto& each : peers) {
        each.fd = connect_to(port);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &each;
        ::epoll_ctl(poll, EPOLL_CTL_ADD, each.fd, &event);
        if (sent < requests) {
            ++sent;
            send_all(each.fd, source.next());
        }
    }
    std::vector<char> buffer(256 * 1024);
    std::array<epoll_event, 256> events{};
    while (done < requests) {
        int const count = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), 30'000);
        if (count == 0)
            fail("no answer for 30 seconds");
        for (int i = 0; i < count; ++i) {
            auto& each = *static_cast<peer*>(events[static_cast<std::size_t>(i)].data.ptr);
            auto const got = ::recv(each.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EINTR))
                continue;
            if (got <= 0)
                fail("the server closed a connection");
            each.response.feed(
                {buffer.data(), static_cast<std::size_t>(got)}, [&](std::string_view part) { each.body.append(part); });
            if (!each.response.is_complete())
                continue;
            if (each.response.status() / 100 != 2 || each.body.find(needle) == std::string::npos)
                fail("unexpected answer " + std::to_string(each.response.status()) + ": " + each.body.substr(0, 500));
            ++done;
            each.response.reset();
            each.body.clear();
            if (sent < requests) {
                ++sent;
                send_all(each.fd, source.next());
            }
        }
    }
    std::printf("{\"requests\":%zu}\n", done);
    return 0;
}

/// Counts the events of a stream and remembers the last ids.
class event_counter {
public:
    void take(std::string_view part)
    {
        bytes_ += part.size();
        for (;;) {
            auto const end = part.find('\n');
            if (end == std::string_view::npos) {
                partial_.append(part);
                return;
            }
            if (partial_.empty()) {
                take_line(part.substr(0, end));
            } else {
                partial_.append(part.substr(0, end));
                take_line(partial_);
                partial_.clear();
            }
            part.remove_prefix(end + 1);
        }
    }
    [[nodiscard]] std::size_t events() const { return events_; }
    void print() const
    {
        std::printf(
            "{\"events\":%zu,\"bytes\":%zu,\"payload\":%zu,\"id_before_last\":\"%s\"}\n", events_, bytes_, payload_[0],
            ids_[0].c_str());
    }

private:
    void take_line(std::string_view line)
    {
        if (line.starts_with("data: ") && line.size() > 6) {
            ++events_;
            payload_ = {payload_[1], line.size() - 6};
        } else if (line.starts_with("id: ")) {
            ids_[0].swap(ids_[1]);
            ids_[1].assign(line.substr(4));
        }
    }

    std::size_t events_ = 0;
    std::size_t bytes_ = 0;
    std::array<std::size_t, 2> payload_{};
    std::array<std::string, 2> ids_;
    std::string partial_;
};

int stream(int port, char const* file, std::optional<std::size_t> until)
{
    int const fd = connect_to(port);
    request_source source(contents_of(file));
    send_all(fd, source.next());
    response_reader response;
    event_counter counter;
    std::vector<char> buffer(1024 * 1024);
    bool is_ready = false;
    while (!response.is_complete() && (!until || counter.events() < *until)) {
        auto const got = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (got <= 0)
            fail("the stream broke off after " + std::to_string(counter.events()) + " events");
        response.feed(
            {buffer.data(), static_cast<std::size_t>(got)}, [&](std::string_view part) { counter.take(part); });
        if (!is_ready && response.has_head()) {
            is_ready = true;
            if (response.status() != 200)
                fail("the stream was refused with " + std::to_string(response.status()));
            std::printf("ready\n");
            std::fflush(stdout);
        }
    }
    counter.print();
    return 0;
}

std::string post(std::string const& host, std::string const& session, std::string const& body)
{
    auto text = "POST /mcp HTTP/1.1\r\nHost: " + host
        + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    if (!session.empty())
        text += "Mcp-Session-Id: " + session + "\r\nMcp-Protocol-Version: 2025-11-25\r\n";
    return text + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

response_reader exchange(int fd, std::string const& request, bool to_first_body_byte)
{
    send_all(fd, request);
    response_reader response;
    std::array<char, 16384> buffer{};
    bool has_body = false;
    while (!response.is_complete() && !(to_first_body_byte && has_body)) {
        auto const got = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (got <= 0)
            fail("the server closed a connection");
        response.feed({buffer.data(), static_cast<std::size_t>(got)}, [&](std::string_view) { has_body = true; });
    }
    if (response.status() / 100 != 2)
        fail("unexpected answer " + std::to_string(response.status()));
    return response;
}

int idle(int port, std::size_t count, bool is_mcp)
{
    auto const host = "127.0.0.1:" + std::to_string(port);
    int const common = connect_to(port);
    for (std::size_t i = 0; i < count; ++i) {
        std::string request;
        if (is_mcp) {
            auto const opened = exchange(
                common,
                post(
                    host, {},
                    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
                    R"("capabilities":{},"clientInfo":{"name":"bench","version":"1"}}})"),
                false);
            auto const session = opened.header("Mcp-Session-Id");
            exchange(common, post(host, session, R"({"jsonrpc":"2.0","method":"notifications/initialized"})"), false);
            request = "GET /mcp HTTP/1.1\r\nHost: " + host + "\r\nAccept: text/event-stream\r\nMcp-Session-Id: "
                + session + "\r\nMcp-Protocol-Version: 2025-11-25\r\n\r\n";
        } else {
            request = "GET /sub/" + std::to_string(i) + " HTTP/1.1\r\nHost: " + host
                + "\r\nAccept: text/event-stream\r\n\r\n";
        }
        exchange(connect_to(port), request, true);
    }
    ::close(common);
    std::printf("ready\n");
    std::fflush(stdout);
    char ignored = 0;
    while (::read(STDIN_FILENO, &ignored, 1) > 0) {
    }
    return 0;
}

void raise_descriptor_limit()
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

}

int main(int argc, char** argv)
{
    raise_descriptor_limit();
    auto const number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
    std::string_view const mode = argc > 1 ? argv[1] : "";
    if (mode == "load" && argc == 7)
        return load(std::atoi(argv[2]), number(3), number(4), argv[5], argv[6]);
    if (mode == "stream" && (argc == 4 || argc == 5))
        return stream(std::atoi(argv[2]), argv[3], argc == 5 ? std::optional(number(4)) : std::nullopt);
    if (mode == "idle" && argc == 5)
        return idle(std::atoi(argv[2]), number(3), std::string_view(argv[4]) == "mcp");
    fail("usage: load PORT CONNECTIONS REQUESTS FILE NEEDLE | stream PORT FILE [EVENTS] | idle PORT COUNT mcp|nchan");
}
