// One connection that follows one stream: performs the follower machine's actions on the store and on a
// sink that the transport provides. Belongs to the connection's loop. Who may follow a stream is the store's to say: a
// following learns from what it reads that it has to go, on whichever node its successor is.
#pragma once

#include "base/loop.hpp"
#include "base/receipt.hpp"
#include "engine/cursor.hpp"
#include "engine/follower.hpp"
#include "store/ports.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

namespace belay::runtime {

class live_session;
class node_context;

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

class following final : public sink_writer, public std::enable_shared_from_this<following> {
public:
    following(
        node_context& context, std::shared_ptr<live_session> session, base::loop& loop, store::reader_id reader,
        store::stream_key stream, priming_style priming, bool can_return);
    ~following() override;

    /// The stream is new and this its reader, from its beginning.
    void follow_new(std::uint64_t epoch);
    /// Becomes the reader of a stream that is there.
    void attach(store::attach_request request, store::completion<void> done);
    /// Before start().
    void set_priming(priming_style style) noexcept { priming_ = style; }
    /// Begins, or begins when its predecessor has gone. `sink` is closed through end() or abort(), once.
    void start(std::shared_ptr<event_sink> sink);

    void drained() override;
    void peer_gone() override;
    /// End the connection, not the stream. From any thread.
    void close(engine::close_reason reason, std::optional<std::chrono::milliseconds> retry);

    [[nodiscard]] store::reader_id const& reader() const noexcept { return reader_; }
    [[nodiscard]] store::stream_id stream() const noexcept { return stream_.stream; }
    /// What the store said when it attached.
    [[nodiscard]] store::attached_stream const& attached() const noexcept { return *attached_; }
    // Under the session's lock: what another loop may ask.
    [[nodiscard]] bool is_peer_gone() const { return sink_view_ && sink_view_->peer_gone(); }
    void offer_sink() noexcept { sink_view_ = sink_.get(); }
    void forget_sink() noexcept { sink_view_ = nullptr; }

private:
    void watch();
    void wake_hint(store::event_store::interest what);
    void begin();
    void begin_new();
    void wait_for_predecessor();
    void try_again(bool insists);
    void open(std::uint64_t position, std::optional<store::page> first);
    void read(std::uint64_t after);
    void ask_whether_dismissed();
    void leave_for(store::dismissed_reader const& how);
    void perform();
    void arm();
    void leave(engine::close_reason reason);
    void end_finished();
    void close_here(engine::close_reason reason, std::optional<std::chrono::milliseconds> retry);

    node_context& context_;
    std::shared_ptr<live_session> session_;
    base::loop& loop_;
    store::reader_id reader_;
    store::stream_key stream_;
    std::optional<engine::event_ids> ids_;
    priming_style priming_;
    std::optional<store::attach_request> request_; // of one that comes back
    std::optional<store::attached_stream> attached_;
    bool is_standalone_ = false;
    bool is_begun_ = false;
    bool is_detached_ = false;
    bool has_left_ = false;
    bool was_woken_ = false; // before there was a machine
    bool asks_again_ = false; // whether it is dismissed: the store could not say
    bool is_attaching_ = false;
    std::shared_ptr<event_sink> sink_;
    event_sink* sink_view_ = nullptr; // under the session's lock
    std::optional<std::pair<engine::close_reason, std::optional<std::chrono::milliseconds>>> early_close_;
    engine::follower_settings settings_;
    std::optional<engine::follower> machine_;
    engine::follower_actions actions_;
    engine::follower_actions performing_;
    bool is_performing_ = false;
    std::unique_ptr<store::watch_handle> watch_;
    std::unique_ptr<store::watch_handle> predecessor_watch_;
    base::timer tick_;
    base::time_point tick_at_{};
    std::string id_text_;
    std::vector<store::bytes> unanswered_; // to be asked again, after the priming event
};

}
