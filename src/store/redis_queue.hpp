// The commands of a link: waiting to be sent, on their way, or to be sent again. A machine without I/O.
//
// Replies come in the order of commands. When a connection is lost, nobody knows the outcome of what was on its way:
// it goes to the front again, in its order. A reply that says "not now" holds everything back until the others on
// their way have been answered, so that what is sent again keeps its order too.
#pragma once

#include "base/clock.hpp"
#include "store/redis_reply.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

namespace belay::store {

struct redis_command {
    using done_function = std::move_only_function<void(result<redis_reply>)>;

    std::string bytes; ///< as it is sent
    done_function done;
    base::time_point give_up{}; ///< fails as unavailable after that
    std::uint16_t slot = 0;     ///< of its keys
    int redirections = 0;
    bool asks = false; ///< is sent with ASKING before it
    /// Of one that was sent in vain: why, and of MOVED and ASK where it belongs ("host:port").
    redis_verdict held_for = redis_verdict::answer;
    std::string belongs_to{};
};

class redis_queue {
public:
    /// Commands may wait for more bytes than that only if there is one of them.
    explicit redis_queue(std::size_t most_bytes) : most_bytes_(most_bytes) {}

    /// False if there is no room: the command is as it was.
    [[nodiscard]] bool push(redis_command& command);
    /// The bytes of what waits, for one write; nothing while something is held.
    void take_unsent(std::string& out, base::time_point now);

    /// What to do after a reply.
    struct answer {
        enum class kind {
            complete, ///< the command has its outcome: `command.done` is to be called with the reply
            hold, ///< it is held and will be sent again, after what `verdict` asks for
            swallow, ///< the reply to an ASKING
            none, ///< nobody waits for this reply: the connection is of no use
        };
        answer::kind what = kind::none;
        redis_verdict verdict = redis_verdict::answer;
        redis_command command;
    };
    [[nodiscard]] answer on_reply(redisReply const& reply);
    /// The connection is gone.
    void on_lost();
    /// Whether something is held and nothing else is on its way: release() then.
    [[nodiscard]] bool is_held() const noexcept { return !held_.empty() && in_flight_.empty(); }
    /// What was held is the next to be sent.
    void release();
    [[nodiscard]] bool holds() const noexcept { return !held_.empty(); }

    /// Commands whose time is over and that are not on their way.
    [[nodiscard]] std::deque<redis_command> take_late(base::time_point now);
    /// All of them; what was on its way is sent again by whoever takes it.
    [[nodiscard]] std::deque<redis_command> take_all();
    /// Whether something is held for that reason.
    [[nodiscard]] bool holds_for(redis_verdict why) const noexcept;

    /// When the oldest command on its way was sent.
    [[nodiscard]] std::optional<base::time_point> oldest_sent() const noexcept;
    [[nodiscard]] bool is_empty() const noexcept { return waiting_.empty() && in_flight_.empty() && held_.empty(); }
    [[nodiscard]] bool has_unsent() const noexcept { return !waiting_.empty(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
    struct sent {
        redis_command command;
        base::time_point at;
        bool is_asking = false; // no command: the word before one
    };
    void forget(redis_command const& command) noexcept { bytes_ -= command.bytes.size(); }

    std::size_t most_bytes_;
    std::size_t bytes_ = 0;
    std::deque<redis_command> waiting_;
    std::deque<sent> in_flight_;
    std::deque<redis_command> held_;
};

}
