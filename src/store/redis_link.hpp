// A node's link to one Redis master, on one loop: commands go out in the order in which they were given, all of one
// turn of the loop in one write, and every one has an outcome in the end. A connection that is lost or does not answer
// in time is made anew, after 50 ms to 1 s, and what was on its way is sent again: every command of the store may be
// repeated. What has no outcome when its time is over is `errc::unavailable`.
#pragma once

#include "store/redis_connection.hpp"
#include "store/redis_queue.hpp"

#include <atomic>

namespace belay::store {

struct redis_link_settings {
    redis_connection::settings connection;
    base::duration timeout = std::chrono::seconds(2); ///< of one command, until the connection is given up
    base::duration give_up = std::chrono::seconds(5); ///< of one command, until it is unavailable
    std::size_t most_bytes = 64u << 20; ///< of commands that wait
    /// Of the connection's greeting, from which on its commands load scripts.
    std::size_t first_script = ~std::size_t(0);
    /// Of the greeting: where ROLE is, which has to be that of a master. None if there is none.
    std::optional<std::size_t> role{};
    /// Of the greeting: where CLIENT ID and INFO server are, in that order. None: what an abandoned connection has not
    /// been read of may still be done, after other things.
    std::optional<std::size_t> client_id{};
};

class redis_link final : public redis_connection::events, public std::enable_shared_from_this<redis_link> {
public:
    using settings = redis_link_settings;
    struct statistics {
        std::atomic<std::uint64_t> commands{0};
        std::atomic<std::uint64_t> errors{0};
        std::atomic<std::uint64_t> reconnects{0};
    };
    /// How the link fares. On its loop.
    class events {
    public:
        virtual ~events() = default;
        virtual void on_up() = 0;
        virtual void on_down(std::string const& why) = 0;
        /// Some of these commands belong elsewhere; they are all that the link had, in their order.
        virtual void on_moved(redis_link& from, std::deque<redis_command> all) = 0;
        /// Where to connect to, now or later; nothing if nobody knows.
        virtual void
        find_master(redis_address const& former, std::move_only_function<void(std::optional<redis_address>)> found)
            = 0;
    };

    redis_link(base::io_loop& loop, settings settings, events& told, statistics& counts);

    void start();
    /// On the link's loop. The completion is called once, on the loop, never before this returns; not at all once the
    /// link is closed.
    void send(redis_command command);
    /// Nobody is called after this.
    void close();
    /// All that it has: it will not be sent by this link.
    [[nodiscard]] std::deque<redis_command> take_all() { return queue_.take_all(); }
    [[nodiscard]] bool is_up() const noexcept { return connection_ && connection_->is_ready(); }
    [[nodiscard]] bool is_idle() const noexcept { return queue_.is_empty() && failed_.empty(); }
    [[nodiscard]] redis_address const& address() const noexcept { return settings_.connection.address; }

private:
    bool on_ready(std::vector<redis_reply> const& greeted) override;
    void on_reply(redis_reply reply) override;
    void on_lost(std::string const& why) override;

    void look_for_master();
    void connect();
    void want_flush();
    void flush();
    void drop_connection(std::string const& why);
    void resend_held();
    void check_times();
    void want_check();
    void fail(redis_command command, errc why);

    base::io_loop& loop_;
    settings settings_;
    events* told_;
    statistics& counts_;
    redis_queue queue_;
    std::shared_ptr<redis_connection> connection_;
    base::timer again_; // to connect, or to send what was held
    base::timer check_;
    base::duration delay_;
    std::size_t loading_ = 0; // replies that are to come before those of the queue
    std::string former_client_; // the connection before this one, in the words of CLIENT KILL
    std::string client_;
    std::string server_; // which has given them: its run_id
    redis_verdict held_for_ = redis_verdict::answer;
    std::vector<std::pair<redis_command, errc>> failed_;
    bool wants_flush_ = false;
    bool is_closed_ = false;
};

}
