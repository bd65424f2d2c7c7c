// What a node knows of a session while it serves it: which connections follow which streams, whether
// anything holds the session, when it was last active. Decides takeovers, the storm guard, the
// connection budget and expiry. Pure; its owner runs it under the session's lock.
#pragma once

#include "store/types.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace belay::engine {

using connection_id = std::uint64_t;

enum class standalone_policy { takeover, conflict };

struct attach_request {
    connection_id connection = 0;
    store::stream_id stream = 0;
    store::stream_kind kind = store::stream_kind::request;
    bool can_return = true;      ///< the client resumes when its connection ends before its call
    bool is_new_call = false;    ///< may be refused; who comes back for a stream never is
    std::size_t budget = 64;     ///< streams.open for this request
    standalone_policy policy = standalone_policy::takeover;
};

enum class attach_verdict { accepted, conflict, over_budget, ended };

struct attach_decision {
    attach_verdict verdict = attach_verdict::accepted;
    std::optional<connection_id> displaced; ///< follows the stream until now and has to go
    std::optional<connection_id> closed;    ///< must poll, to stay within the budget
    bool waits = false;                     ///< starts when detach() names it: an earlier one is still leaving
};

class session {
public:
    /// `is_gone` tells whether a connection's peer has closed or broken it, even if that was not read yet.
    [[nodiscard]] attach_decision
    attach(attach_request const& request, base::time_point now, std::function<bool(connection_id)> const& is_gone);
    /// Returns the connection that waited for this one to leave its stream, if any.
    std::optional<connection_id> detach(connection_id connection);
    /// A connection that was to be closed for the budget stays after all: the newcomer was refused.
    void stay(connection_id connection) noexcept;
    [[nodiscard]] std::optional<connection_id> follower_of(store::stream_id stream) const noexcept;

    void call_began() noexcept { ++calls_; }
    void call_ended() noexcept { --calls_; }
    void inbound_began(base::time_point now) noexcept;
    void inbound_ended(base::time_point now) noexcept;

    [[nodiscard]] bool is_held() const noexcept { return !attached_.empty() || calls_ > 0 || inbound_ > 0; }
    [[nodiscard]] base::time_point last_activity() const noexcept { return last_activity_; }
    [[nodiscard]] std::size_t connection_count() const noexcept { return attached_.size(); }
    [[nodiscard]] std::size_t call_count() const noexcept { return calls_; }

    /// Ends the session if it is idle for that long at this moment. After it, nothing can attach.
    [[nodiscard]] bool end_if_idle(base::time_point now, base::duration idle_limit) noexcept;
    /// False if it had ended already.
    [[nodiscard]] bool end() noexcept { return !std::exchange(is_ended_, true); }
    [[nodiscard]] bool is_ended() const noexcept { return is_ended_; }
    void note_activity(base::time_point now) noexcept { last_activity_ = std::max(last_activity_, now); }

private:
    struct attachment {
        connection_id connection;
        store::stream_id stream;
        store::stream_kind kind;
        bool can_return;
        bool is_leaving; // displaced or closed; no longer counts
    };
    std::vector<attachment> attached_; // longest attached first
    std::vector<base::time_point> takeovers_; // counted ones, newest last
    std::size_t calls_ = 0;
    std::size_t inbound_ = 0;
    base::time_point last_activity_{};
    bool is_ended_ = false;
};

/// The fourth counted takeover of a standalone stream within this time is refused.
constexpr base::duration takeover_window = std::chrono::seconds(10);
constexpr std::size_t takeovers_per_window = 3;

}
