// A session as this node serves it: the newest record that it has seen, and the connections and calls that are here.
// What belongs to the session wherever it is served is in the store. Reached from every loop, under a lock of its own
// that is held for one function; called while it is held: `peer_gone` of a connection.
#pragma once

#include "base/ids.hpp"
#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "base/receipt.hpp"
#include "protocol/revision.hpp"
#include "store/ports.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::runtime {

class batch;
class call;
class following;

/// What logs show of a stream: its id is part of what clients resume with.
[[nodiscard]] inline std::string stream_log_name(store::stream_id stream)
{
    return base::log_name({0, stream});
}

class live_session {
public:
    explicit live_session(store::record_ptr record);
    ~live_session();

    store::session_key const key;
    std::string const name; ///< what logs and operators see instead of the id

    [[nodiscard]] store::record_ptr current_record();
    /// What the record's version says.
    [[nodiscard]] protocol::revision current_revision();
    /// The newer one stays. Gives what the version of the one given says.
    protocol::revision see(store::record_ptr const& record);

    // Requests under way, and calls that the store does not know of: it has to be told that they hold the session.
    void add_use() noexcept { uses_.fetch_add(1, std::memory_order_relaxed); }
    void remove_use() noexcept { uses_.fetch_sub(1, std::memory_order_relaxed); }
    [[nodiscard]] bool is_in_use() const noexcept { return uses_.load(std::memory_order_relaxed) > 0; }

    // Connections that are here.
    void add(std::shared_ptr<following> fresh);
    /// False if it was not there.
    bool remove(following& gone);
    [[nodiscard]] std::vector<std::shared_ptr<following>> followers();
    /// The reader of the stream, if it is here and its peer has gone.
    [[nodiscard]] std::optional<store::reader_id> broken_reader(store::stream_id stream);
    /// From here on no other loop asks what the connection writes to.
    void hide_sink(following& of);
    void show_sink(following& of);

    // Calls that run here.
    void add(std::shared_ptr<call> fresh);
    [[nodiscard]] bool remove(call& gone);
    void add(std::shared_ptr<batch> fresh);
    [[nodiscard]] bool remove(batch& gone);
    [[nodiscard]] std::vector<std::shared_ptr<call>> calls();
    /// Ends the calls that have no stream, because the session has ended: the store, which tells the others, does not
    /// know of them.
    void end_held_calls();
    /// Whether a call or a batch with that stream runs here.
    [[nodiscard]] bool runs(store::stream_id stream);

    /// Answers that were given to connections and are not known to have arrived.
    struct awaited_receipt {
        base::loop* loop;
        std::weak_ptr<base::receipt> receipt;
    };
    void expect(base::loop& loop, std::shared_ptr<base::receipt> const& receipt);
    [[nodiscard]] std::vector<awaited_receipt> receipts();

    /// Hears of changes of its record, once there is a reason to. `reload` is called on any thread and only posts.
    void watch_record(store::session_store& store, std::function<void()> reload);
    /// What is here and the session hold each other while they live; this lets go.
    void let_go();

private:
    std::atomic<std::size_t> uses_{0};
    base::mutex mutex_;
    store::record_ptr record_ BELAY_GUARDED_BY(mutex_);
    protocol::revision revision_ BELAY_GUARDED_BY(mutex_);
    std::vector<std::shared_ptr<following>> followers_ BELAY_GUARDED_BY(mutex_);
    std::vector<std::shared_ptr<call>> calls_ BELAY_GUARDED_BY(mutex_);
    std::vector<std::shared_ptr<batch>> batches_ BELAY_GUARDED_BY(mutex_);
    std::vector<awaited_receipt> receipts_ BELAY_GUARDED_BY(mutex_);
    std::size_t many_receipts_ BELAY_GUARDED_BY(mutex_) = 0; // with so many, those that have arrived are left out
    std::unique_ptr<store::watch_handle> watch_ BELAY_GUARDED_BY(mutex_);
    bool is_watched_ BELAY_GUARDED_BY(mutex_) = false;
};

/// A session in use by a request, which has just seen its record.
class session_use {
public:
    session_use() = default;
    session_use(std::shared_ptr<live_session> session, store::record_ptr record);
    session_use(session_use&&) noexcept = default;
    session_use& operator=(session_use&&) = delete;
    ~session_use()
    {
        if (session_)
            session_->remove_use();
    }

    [[nodiscard]] std::shared_ptr<live_session> const& session() const noexcept { return session_; }
    /// As it was when the request came.
    [[nodiscard]] store::record_ptr const& record() const noexcept { return record_; }
    [[nodiscard]] protocol::revision revision() const noexcept { return revision_; }

private:
    std::shared_ptr<live_session> session_;
    store::record_ptr record_;
    protocol::revision revision_ = protocol::newest_revision;
};

}
