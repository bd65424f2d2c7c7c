// One Belay process, as seen by its transports: sessions, calls and followers, on whatever store it was
// given. Functions may be called on any loop; completions come on the loop that called.
#pragma once

#include "base/ids.hpp"
#include "base/log.hpp"
#include "base/loop.hpp"
#include "observe/metrics.hpp"
#include "runtime/call.hpp"
#include "runtime/direct_output.hpp"
#include "runtime/following.hpp"
#include "runtime/hello.hpp"
#include "runtime/live_session.hpp"
#include "runtime/service.hpp"
#include "runtime/settings.hpp"
#include "store/ports.hpp"

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace belay::runtime {

/// A session in use by a request: keeps it from expiring meanwhile.
class session_use {
public:
    session_use() = default;
    session_use(node& node, base::loop& loop, std::shared_ptr<live_session> session)
        : node_(&node), loop_(&loop), session_(std::move(session))
    {
    }
    session_use(session_use&&) noexcept = default;
    session_use& operator=(session_use&&) = delete;
    ~session_use();

    [[nodiscard]] std::shared_ptr<live_session> const& session() const noexcept { return session_; }
    [[nodiscard]] std::shared_ptr<store::session_record const> const& record() const noexcept { return record_; }

private:
    friend class node;
    node* node_ = nullptr;
    base::loop* loop_ = nullptr;
    std::shared_ptr<live_session> session_;
    std::shared_ptr<store::session_record const> record_;
};

/// Where a request came from: decides how many connections its session may have, and how they are primed.
enum class caller {
    direct,
    browser, ///< shares six connections per origin
    pipe,    ///< one connection for everything, without event ids
};

struct call_request {
    std::string id; ///< JSON text; of a batch: one per line
    protocol::revision revision = protocol::newest_revision;
    call_traits traits;
    caller from = caller::direct;
    std::optional<store::once_key> once{};
    std::optional<protocol::trace_context> trace{};
    std::size_t bytes = 0; ///< of the message that asks for it; its arguments live as long as the call runs
};

struct begun_call {
    std::shared_ptr<runtime::call> call;
    std::shared_ptr<runtime::following> following;
    std::optional<store::stream_id> twin; ///< the first call with the same key: repeat that one, run nothing
};

struct begun_direct_call {
    std::shared_ptr<runtime::call> call;
    std::shared_ptr<direct_output> output;
};

/// Why a stream cannot be followed.
enum class follow_refusal {
    bad_cursor,     ///< 400: not a cursor of this session's streams, or its stream is no longer kept
    nothing_left,   ///< 204: the stream is finished and the cursor is at its end
    conflict,       ///< 409: the standalone stream has a reader, or changes hands too often
    over_budget,    ///< 429
    session_gone,   ///< 404
    unavailable,    ///< 503
};

struct follow_request {
    std::optional<std::string_view> last_event_id;
    caller from = caller::direct;
};

/// What an operator may know of a session: nothing with which it could be used.
struct session_summary {
    std::string name; ///< as in the log
    std::string version;
    std::string client_info; ///< JSON text, as the client gave it
    base::duration age{};    ///< since this node knows it
    base::duration idle{};   ///< zero while something holds it
    std::size_t connections = 0;
    std::size_t running_calls = 0;
};

struct session_page {
    std::vector<session_summary> sessions; ///< by name
    std::size_t total = 0;                 ///< of the node
    bool has_more = false;
};

class node {
public:
    node(
        runtime::settings settings, store::backend& store, base::random_source& random, observe::metrics& metrics,
        base::logger log);
    ~node();

    /// Starts the periodic work on that loop: reaper, sweep, lease.
    void start(base::loop& loop);
    /// On the loop given to start().
    void stop();

    // --- sessions

    /// The session in use, or `errc::not_found` for unknown, expired and foreign ones alike.
    void use(std::string_view principal, std::string_view id, base::loop& loop, store::completion<session_use> done);
    void open(client_hello hello, base::loop& loop, store::completion<session_use> done);
    /// A new hello on a live session: later requests speak by it, open streams go on as they are.
    void reopen(session_use const& use, client_hello hello, store::completion<void> done);
    void change(
        std::shared_ptr<live_session> session, std::function<void(store::session_record&)> edit,
        store::completion<void> done);
    /// `errc::too_many_subscriptions` at the limit of the settings.
    void subscribe(std::shared_ptr<live_session> const& session, std::string uri, store::completion<void> done);
    void unsubscribe(std::shared_ptr<live_session> const& session, std::string_view uri, store::completion<void> done);
    /// Gives every open stream its final error, lets connections write it, then removes all keys.
    void end(std::shared_ptr<live_session> session, base::loop& loop, store::completion<void> done);

    // --- for operators

    /// The first sessions of this node whose name comes after that one.
    [[nodiscard]] session_page list_sessions(std::string_view after, std::size_t limit, base::time_point now);
    /// Ends the session with that name. `errc::not_found` if there is none, `errc::conflict` if there are several.
    void end_by_name(std::string_view name, base::loop& loop, store::completion<void> done);

    // --- calls

    /// Makes the call and its stream, and attaches the caller's connection, before anything runs.
    void begin_call(session_use const& use, base::loop& loop, call_request request, store::completion<begun_call> done);
    /// A member of a batch, which is a call with a stream (call::expect_answers).
    [[nodiscard]] std::shared_ptr<call>
    begin_member(std::shared_ptr<call> const& batch, std::uint32_t line, std::string id, call_traits traits);
    /// A call without a stream, whose answer goes to `answer`. `session` may be null: it belongs to none.
    result<std::shared_ptr<call>> begin_held_call(
        std::shared_ptr<live_session> session, base::loop& loop, call_request request, call::held_answer answer);
    /// A call that belongs to no session and speaks to its connection.
    result<begun_direct_call> begin_direct_call(base::loop& loop, call_request request);
    /// Cancels the newest running call of the session with that id. No effect if there is none, or if a newer one has
    /// an answer that has not arrived: the cancel crossed it. `done` is called on the loop once that is decided.
    void cancel(
        std::shared_ptr<live_session> const& session, std::string_view id, base::loop& loop,
        std::move_only_function<void()> done);
    /// Cancels the call that owns the stream, wherever it runs.
    void cancel_stream(store::stream_key const& stream);

    /// A client's answer to a request of ours. Unknown, foreign and second answers have no effect.
    void take_answer(std::shared_ptr<live_session> const& session, protocol::message const& answer);

    // --- what belongs to no call

    /// Runs on the node's own loop, soon. From any thread; nothing happens while the node is not started.
    void later(std::move_only_function<void()> work);
    /// A message on the session's standalone stream. From any thread.
    void notify(std::shared_ptr<live_session> const& session, std::string message);
    /// The same for every initialized session of this node that the filter takes. From any thread.
    void broadcast(std::string message, std::function<bool(store::session_record const&)> filter);
    /// The URIs that sessions are subscribed to, each once. From any thread.
    [[nodiscard]] std::vector<std::string> subscriptions() { return store_.subscribed_uris(); }
    /// A message for the sessions that are subscribed to the URI. From any thread.
    void notify_subscribers(std::string uri, std::string message);

    // --- streams

    void follow(
        session_use const& use, base::loop& loop, follow_request request,
        std::move_only_function<void(std::expected<std::shared_ptr<following>, follow_refusal>)> done);

    // --- life

    /// From now on new sessions and calls are refused.
    void drain() noexcept { is_draining_.store(true); }
    [[nodiscard]] bool is_draining() const noexcept { return is_draining_.load(); }
    /// Ends every call with `interrupted`. From any thread.
    void interrupt_calls();
    /// Closes every following connection once it has written what it has. From any thread.
    void close_followers(engine::close_reason reason);
    /// Called whenever a call or a following has gone, while draining; on any thread. Set before drain().
    void on_departure(std::function<void()> departed) { on_departure_ = std::move(departed); }
    [[nodiscard]] std::size_t running_calls() const noexcept { return running_calls_.load(); }
    [[nodiscard]] std::size_t open_followings() const noexcept { return open_followings_.load(); }

    /// One pass of the reaper. Public for tests and benches.
    void reap(base::time_point now);
    /// How many sessions wait for the end of session.max_lifetime. For tests.
    [[nodiscard]] std::size_t sessions_with_lifetime()
    {
        std::lock_guard const lock(by_age_mutex_);
        return by_age_.size();
    }
    /// Brings the gauges up to date and gives the metrics' text.
    [[nodiscard]] std::string metrics_text(std::size_t http_connections);

    [[nodiscard]] runtime::settings const& settings() const noexcept { return settings_; }
    [[nodiscard]] store::backend& store() noexcept { return store_; }
    [[nodiscard]] observe::metrics& metrics() noexcept { return metrics_; }
    [[nodiscard]] base::logger const& log() const noexcept { return log_; }
    /// The delay with its jitter of up to a quarter.
    [[nodiscard]] std::chrono::milliseconds retry_delay(std::chrono::milliseconds base);
    [[nodiscard]] std::chrono::milliseconds retry_delay() { return retry_delay(settings_.retry); }
    [[nodiscard]] std::uint64_t next_nonce();

private:
    friend class call;
    friend class direct_output;
    friend class following;
    friend class session_use;

    struct table_stripe {
        std::mutex mutex;
        std::unordered_map<store::session_key, std::shared_ptr<live_session>, store::session_key_hash> sessions;
    };

    [[nodiscard]] table_stripe& stripe_of(store::session_key const& key) noexcept;
    [[nodiscard]] std::shared_ptr<live_session> find_live(store::session_key const& key);
    [[nodiscard]] std::vector<std::shared_ptr<live_session>> live_sessions();
    std::shared_ptr<live_session>
    insert_live(std::shared_ptr<store::session_record const> record, base::time_point now);
    void remove_live(store::session_key const& key);
    /// Stands in for the session of a call that has none: in no table and no store, gone with the call.
    [[nodiscard]] std::shared_ptr<live_session> passing_session(protocol::revision revision);
    result<session_use> take(std::shared_ptr<live_session> const& session, base::loop& loop);
    void release(live_session& session, base::time_point now);
    /// Writes presence to the store where it has changed, or activity where it is old. Under the session's lock.
    void write_presence(live_session& session, base::time_point now);

    struct attachment {
        std::shared_ptr<following> fresh;
        std::shared_ptr<following> over_budget; ///< must make room for it, once it is sure to stay
    };
    std::expected<attachment, follow_refusal> attach(
        std::shared_ptr<live_session> const& session, base::loop& loop, store::stream_id stream,
        store::stream_kind kind, start_position from, protocol::revision revision, caller who,
        bool is_new_call = false);
    void close_over_budget(attachment const& made);
    /// The newcomer's call was refused: nobody has to go for it.
    void give_up(live_session& session, attachment const& made);
    /// A call on its way into the store.
    struct beginning_call {
        std::shared_ptr<live_session> session;
        base::loop& loop;
        store::stream_key stream;
        attachment made;
        call_request request;
        store::completion<begun_call> done;
        bool has_asked = false; ///< whether answers have arrived of which nobody knew
    };
    void open_stream(std::shared_ptr<beginning_call> beginning);
    void make_call(beginning_call& beginning, store::opened_stream const& opened);
    /// What was sent to the call before it was there. From then on it has none.
    [[nodiscard]] std::vector<store::owner_message> take_early_mail(beginning_call const& beginning);
    /// Lets the store know of all answers of the session that have arrived by now. `then` is called on the loop, at
    /// once if only that one had to be asked.
    void ask_receipts(live_session& session, base::loop& loop, std::move_only_function<void()> then);
    void detached(live_session& session, following& gone, base::time_point now);
    void direct_opened();
    void direct_closed();
    /// A call is counted before it is made: either it sees the drain, or the drain sees it. False: draining.
    [[nodiscard]] bool count_call();
    void uncount_call();
    /// False if the session has ended.
    [[nodiscard]] bool add_call(live_session& session, std::shared_ptr<call> const& fresh, base::time_point now);
    void call_done(live_session& session, call& gone, base::time_point now);
    /// Takes what is to be called now that an ending session has gone quiet, if it has.
    std::move_only_function<void()> take_quiet(live_session& session);
    void end_overdue(base::time_point now);
    void finish_end(std::shared_ptr<live_session> const& session, store::completion<void> done);
    [[nodiscard]] priming_style style_of(protocol::revision revision) const noexcept;
    void send_cancel(store::call_ref const& to, std::string_view id);
    void with_owner(store::stream_key const& stream, std::function<void(store::call_ref const&)> then);
    void answer_lost(store::call_ref const& lost, store::claimed_call const& claimed, base::time_point now);
    /// On the node's own loop.
    void append_standalone(store::stream_key const& stream, store::bytes message);
    /// In bites, so that a great number of subscribers does not hold the loop. From any thread.
    void tell_subscribers(std::string uri, std::optional<store::session_key> after, store::bytes message);
    void tell_all(
        std::vector<std::shared_ptr<live_session>> sessions, std::size_t from, store::bytes message,
        std::function<bool(store::session_record const&)> filter);
    void reap_bite(base::time_point now);
    /// False if it is in use.
    bool reap_one(store::session_key const& key, base::time_point now);
    void cancel_held(live_session& session, std::string_view id);
    /// Visits every live session, and what stands in for one, under its lock.
    template<class F>
    void for_each_session(F const& visit);
    void deliver(store::owner_message message);
    void recover_lapsed(base::time_point now);

    runtime::settings settings_;
    store::backend& store_;
    base::random_source& random_;
    std::mutex random_mutex_;
    observe::metrics& metrics_;
    base::logger log_;
    std::string owner_; // this node's name and incarnation
    std::atomic<std::uint64_t> next_connection_{1};
    std::atomic<std::uint64_t> nonce_{1};
    std::atomic<std::size_t> running_calls_{0};
    std::atomic<std::size_t> open_followings_{0};
    std::atomic<bool> is_draining_{false};
    std::atomic<bool> is_interrupting_{false};
    std::function<void()> on_departure_;
    std::unique_ptr<store::watch_handle> mail_;

    std::mutex passing_mutex_;
    std::unordered_map<live_session const*, std::weak_ptr<live_session>> passing_;

    // Sessions in the order they were opened, kept only where session.max_lifetime is on.
    std::mutex by_age_mutex_;
    std::list<std::pair<base::time_point, store::session_key>> by_age_;
    std::unordered_map<store::session_key, decltype(by_age_)::iterator, store::session_key_hash> age_places_;

    static constexpr std::size_t stripe_count = 64;
    std::array<table_stripe, stripe_count> table_;

    struct periodic;
    std::unique_ptr<periodic> periodic_;
    std::atomic<base::loop*> own_loop_{nullptr}; // null: not started
};

}
