// A message pipe between two descriptors, one message per line. Both may be a pipe, a terminal or a file, so a thread
// reads and a thread writes, each blocking; everything else happens on the loop.
#pragma once

#include "base/loop.hpp"
#include "transport/message_pipe.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace belay::transport {

struct stdio_settings {
    message_pipe_settings pipe;
    std::size_t line_bytes = 4 << 20; ///< a longer line is refused
};

class stdio {
public:
    /// Both are called on the loop, at most once each.
    struct ends {
        std::function<void()> input_ended;
        std::function<void()> output_broken; ///< nobody reads any more
    };

    /// Neither descriptor is closed. The loop and the rest must outlive it.
    stdio(
        runtime::node& node, runtime::service& service, base::loop& loop, int input, int output,
        stdio_settings settings, ends ends);
    /// When the loop no longer runs. Writes what there is, as long as the client takes it.
    ~stdio();
    stdio(stdio const&) = delete;
    stdio& operator=(stdio const&) = delete;

    /// Begins to read.
    void start();
    /// Ends the client's session: what still runs gets its final answer. On the loop.
    void close(std::move_only_function<void()> done);
    /// What is not written by now never will be. On the loop, or when it no longer runs.
    void let_go();

private:
    class throttle;
    class line_reader;
    class line_writer;

    base::loop& loop_;
    int input_;
    std::size_t line_bytes_;
    ends ends_;
    std::unique_ptr<throttle> pace_;
    std::unique_ptr<line_writer> writer_;
    std::shared_ptr<message_pipe> pipe_;
    std::unique_ptr<line_reader> reader_;
};

}
