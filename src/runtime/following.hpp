// One connection that follows one stream: performs the follower machine's actions on the store and on a
// sink that the transport provides. Belongs to the connection's loop.
#pragma once

#include "base/loop.hpp"
#include "base/receipt.hpp"
#include "engine/cursor.hpp"
#include "engine/follower.hpp"
#include "engine/session.hpp"
#include "protocol/revision.hpp"
#include "store/ports.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

namespace belay::runtime {

class node;
class live_session;

enum class priming_style { empty, typed, none };

/// Who writes to a sink, and hears from it. On its loop.
class sink_writer {
public:
    virtual ~sink_writer() = default;
    /// All flushed bytes are with the kernel.
    virtual void drained() = 0;
    /// The connection is gone.
    virtual void peer_gone() = 0;
};

/// Where events of a connection go. On its writer's loop, except peer_gone().
class event_sink {
public:
    virtual ~event_sink() = default;
    virtual void write_priming(std::string_view id, std::chrono::milliseconds retry, priming_style style) = 0;
    virtual void write_event(std::string_view id, std::string_view message) = 0;
    /// A place in the log without a message.
    virtual void write_id(std::string_view id, priming_style style) = 0;
    virtual void write_comment(std::string_view text) = 0;
    virtual void write_retry(std::chrono::milliseconds retry) = 0;
    /// True if the kernel took all; otherwise sink_writer::drained() is called later.
    virtual bool flush() = 0;
    /// Ends the answer properly. `arrived` is called once, on the loop, when all of it has arrived; never if the
    /// connection is lost before. Null where that is known already.
    virtual std::shared_ptr<base::receipt> end(std::move_only_function<void()> arrived) = 0;
    virtual void abort() = 0;
    /// Bytes given to flush() so far, and how many of them may not have arrived.
    [[nodiscard]] virtual std::uint64_t written() const = 0;
    [[nodiscard]] virtual std::uint64_t unacknowledged() const = 0;
    /// From any thread while the following is attached.
    [[nodiscard]] virtual bool peer_gone() const = 0;
};

/// Where a connection begins to follow.
struct start_position {
    std::optional<std::uint64_t> sequence; ///< absent: at the delivered mark, or the end (`standalone_backlog`)
    bool restarted = false;
    std::optional<std::uint64_t> replay_end = {}; ///< of a reader that comes back: the last event it can have missed
};

class following final : public sink_writer, public std::enable_shared_from_this<following> {
public:
    following(
        node& node, std::shared_ptr<live_session> session, base::loop& loop, engine::connection_id id,
        store::stream_key stream, start_position from, priming_style priming, bool can_return, bool waits);
    ~following() override;

    /// The life of the stream that is followed, for the events' ids. Before start().
    void set_epoch(std::uint64_t epoch) { ids_.emplace(stream_.stream, epoch); }
    /// The stream is new: its call counts on this reader before it starts.
    void announce();
    /// Begins, or begins when its predecessor has gone. `sink` is closed through end() or abort(), once.
    void start(std::shared_ptr<event_sink> sink);
    /// The predecessor has gone. From any thread.
    void allow();
    void drained() override;
    void peer_gone() override;
    /// End the connection, not the stream. From any thread.
    void close(engine::close_reason reason, std::optional<std::chrono::milliseconds> retry);
    /// Never started, and never will be.
    void abandon();

    [[nodiscard]] engine::connection_id id() const noexcept { return id_; }
    [[nodiscard]] store::stream_id stream() const noexcept { return stream_.stream; }
    /// Under the session's lock.
    [[nodiscard]] bool is_peer_gone() const { return sink_view_ && sink_view_->peer_gone(); }
    /// Under the session's lock: no other loop asks the sink from here on.
    void forget_sink() noexcept { sink_view_ = nullptr; }

private:
    void begin();
    void collect_questions();
    void open(std::uint64_t position);
    void perform();
    void wake_hint();
    void arm();
    void leave(engine::close_reason reason);
    void end_finished();
    void close_here(engine::close_reason reason, std::optional<std::chrono::milliseconds> retry);

    node& node_;
    std::shared_ptr<live_session> session_;
    base::loop& loop_;
    engine::connection_id id_;
    store::stream_key stream_;
    std::optional<engine::event_ids> ids_;
    start_position from_;
    priming_style priming_;
    bool can_return_; // its client comes back if the connection is closed before the stream has ended
    bool is_allowed_;
    bool is_begun_ = false;
    bool is_announced_ = false;
    bool has_left_ = false;
    std::shared_ptr<event_sink> sink_;
    event_sink* sink_view_ = nullptr; // under the session's lock; what another loop may ask
    std::optional<std::pair<engine::close_reason, std::optional<std::chrono::milliseconds>>> early_close_;
    engine::follower_settings settings_;
    std::optional<engine::follower> machine_;
    engine::follower_actions actions_;
    engine::follower_actions performing_;
    bool is_performing_ = false;
    std::unique_ptr<store::watch_handle> watch_;
    std::shared_ptr<std::atomic<bool>> wake_pending_;
    base::timer tick_;
    base::time_point tick_at_{};
    std::string id_text_;
    std::vector<store::bytes> unanswered_; // to be asked again, after the priming event
};

}
