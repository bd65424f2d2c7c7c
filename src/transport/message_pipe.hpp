// MCP over one line of messages in each direction: stdio, or the memory of a test. One client, one session,
// no event ids: what a following writes goes straight to the line, so calls, questions and notifications are
// the same as over HTTP, and end with the line.
#pragma once

#include "base/loop.hpp"
#include "protocol/message.hpp"
#include "runtime/node.hpp"
#include "runtime/service.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace belay::transport {

/// Where a pipe writes. On its loop.
class line_output {
public:
    virtual ~line_output() = default;
    /// One message, without its line break. True if there is room for more; otherwise message_pipe::drained() follows.
    virtual bool write(std::string_view message) = 0;
};

struct message_pipe_settings {
    std::string principal = "local";
    std::size_t batch_max = 50;
};

/// Lives on one loop.
class message_pipe : public std::enable_shared_from_this<message_pipe> {
public:
    message_pipe(
        runtime::node& node, runtime::service& service, base::loop& loop, line_output& out,
        message_pipe_settings settings);
    ~message_pipe();

    /// One line of the client.
    void receive(std::string_view line);
    /// A line that was too long to be read.
    void refuse_line(std::size_t limit);
    void drained();
    /// The client has said all. Ends its session: what still runs gets its final answer.
    void close(std::move_only_function<void()> done);
    /// Nobody reads any more: what waits for room waits for nothing.
    void let_go();

private:
    class sink;
    struct parsed_line;

    void receive(std::shared_ptr<parsed_line> const& line, protocol::message const& message);
    void initialize(protocol::message const& message);
    void request(std::shared_ptr<parsed_line> const& line, protocol::message const& message);
    void run_call(runtime::call_request request, runtime::start_call start);
    void follow_standalone();
    void write(std::string_view message);

    runtime::node& node_;
    runtime::service& service_;
    base::loop& loop_;
    line_output& out_;
    message_pipe_settings settings_;
    std::optional<runtime::session_use> use_; // holds the session while the pipe is open
    bool is_opening_ = false;
    bool is_closed_ = false;
    bool has_room_ = true;
    std::set<std::shared_ptr<runtime::following>> waiting_; // for drained()
};

}
