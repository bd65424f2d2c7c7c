// The connection of a call that has no stream: what the call says goes straight to it. Nothing is kept, so the call
// ends with its connection. Belongs to the connection's loop, which is the call's.
#pragma once

#include "base/loop.hpp"
#include "runtime/following.hpp"
#include "store/types.hpp"

#include <memory>
#include <vector>

namespace belay::runtime {

class call;
class node_context;

class direct_output final : public sink_writer, public std::enable_shared_from_this<direct_output> {
public:
    direct_output(node_context& context, base::loop& loop);
    ~direct_output() override;

    /// Before the call's handler runs. `sink` is closed through end() or abort(), once.
    void attach(std::shared_ptr<event_sink> sink, std::weak_ptr<call> of);
    /// Sends what was said so far in one write; from now on messages leave as they come.
    void start();

    /// From the call. Positions count as in a log, for its flow control.
    [[nodiscard]] store::stream_top write(std::vector<store::event_data> const& events, bool is_last);
    [[nodiscard]] store::reader_mark const& reader() const noexcept { return reader_; }
    /// Whether the kernel has taken all that was said.
    [[nodiscard]] bool is_caught_up() const noexcept { return reader_.position == top_.sequence; }

    void drained() override;
    void peer_gone() override;

private:
    void flush();
    void keep_alive();
    void leave(engine::close_reason reason);

    node_context& context_;
    std::shared_ptr<event_sink> sink_; // null: over
    std::weak_ptr<call> call_;
    std::shared_ptr<direct_output> self_; // while the connection is open
    store::stream_top top_;
    store::stream_top flushed_; // what the reader will have when the sink has drained
    store::reader_mark reader_;
    bool is_started_ = false;
    bool is_flushing_ = false;
    bool is_finished_ = false;
    base::timer keep_alive_;
};

}
