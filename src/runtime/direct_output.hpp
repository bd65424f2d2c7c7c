// The output of a call that has no stream: what it says goes straight to its connection. Nothing is kept, so the call
// ends with its connection. Belongs to the connection's loop, which is the call's.
#pragma once

#include "runtime/following.hpp"
#include "runtime/paced_output.hpp"

#include <map>
#include <memory>
#include <string>

namespace belay::runtime {

class direct_output final : public paced_output, public sink_writer {
public:
    direct_output(node_context& context, base::loop& loop, engine::flow_settings flow, std::size_t requests);
    ~direct_output() override;

    void begin(std::weak_ptr<output_user> user) override;
    /// Before any handler runs. `sink` is closed through end() or abort(), once.
    void attach(std::shared_ptr<event_sink> sink);
    /// Sends what was said so far in one write; from now on messages leave as they come.
    void start();

    void progress(std::uint32_t request, double value, std::string message) override;
    std::uint64_t
    ask(std::uint32_t request, std::string_view method, std::string_view params, std::string_view key,
        answered done) override;
    void withdraw(std::uint64_t) override {}
    void relay_question(std::string message, std::move_only_function<void()> failed) override;

    void drained() override;
    void peer_gone() override;

private:
    void write(engine::append_events& batch) override;
    void dismiss_reader() override {}
    void close_request(std::uint32_t request) override;
    void close() override {}

    void flush();
    void keep_alive();
    void leave(engine::close_reason reason);
    /// Whether the kernel has taken all that was said.
    [[nodiscard]] bool is_caught_up() const noexcept { return reader_.position == top_.sequence; }

    std::shared_ptr<event_sink> sink_; // null: over
    std::shared_ptr<paced_output> self_; // while the connection is open
    std::map<std::uint32_t, std::string> late_progress_; // of each request, what the reader has kept waiting
    store::stream_top top_; // positions count as in a log, for the flow control
    store::stream_top flushed_; // what the reader will have when the sink has drained
    store::reader_mark reader_;
    bool is_started_ = false;
    bool is_flushing_ = false;
    bool is_finished_ = false;
    base::timer keep_alive_;
};

}
