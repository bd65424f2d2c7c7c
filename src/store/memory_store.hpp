// The embedded default: everything in the memory of this process, bounded by `limits`. Safe from every
// loop. Sessions are spread over stripes, each under one lock that is held for one operation and never
// across a call to anyone else: wake functions run after it is released.
#pragma once

#include "store/ports.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

namespace belay::store {

/// Counts what becomes of events, so that the numbers balance: what was appended is delivered, pending, or was
/// trimmed or ended undelivered. Called under a stripe's lock: only counts.
class event_counter {
public:
    virtual ~event_counter() = default;
    /// `first`: how many of them no reader had been given before.
    virtual void delivered(std::size_t events, std::size_t first) = 0;
    /// `undelivered`: how many of them no reader was ever given.
    virtual void trimmed(std::size_t events, std::size_t undelivered) = 0;
    virtual void ended(std::size_t events, std::size_t undelivered) = 0;
};

class memory_store final : public backend {
public:
    /// The epoch names this life of the store.
    memory_store(limits limits, std::uint64_t epoch, event_counter* counter = nullptr);
    ~memory_store() override;

    void create(
        session_record record, base::time_point now, completion<std::shared_ptr<session_record const>> done) override;
    void load(session_key const& key, completion<std::shared_ptr<session_record const>> done) override;
    void update(session_record record, completion<std::shared_ptr<session_record const>> done) override;
    void touch(session_key const& key, base::time_point at, presence presence) override;
    void expired(base::time_point now, std::size_t limit, completion<std::vector<session_key>> done) override;
    void end(session_key const& key, completion<void> done) override;
    void subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done) override;
    void unsubscribe(session_key const& key, std::string_view uri, completion<void> done) override;
    void subscribers(
        std::string_view uri, std::optional<session_key> after, std::size_t limit,
        completion<std::vector<subscriber>> done) override;
    [[nodiscard]] std::vector<std::string> subscribed_uris() const override;

    void open(
        stream_key const& key, stream_meta meta, std::string const& owner, base::time_point now,
        completion<opened_stream> done) override;
    void append(
        stream_key const& key, fence fence, std::vector<event_data> events, bool finish, base::time_point now,
        completion<stream_top> done) override;
    void blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done) override;
    void read_after(stream_key const& key, std::uint64_t after, read_limit limit, completion<page> done) override;
    void inspect(stream_key const& key, completion<stream_meta> done) override;
    [[nodiscard]] std::unique_ptr<watch_handle>
    watch(stream_key const& key, interest interest, std::function<void()> wake) override;
    void note_reader(stream_key const& key, reader_mark mark) override;
    void note_delivered(stream_key const& key, std::uint64_t sequence) override;
    void reader(stream_key const& key, completion<reader_mark> done) override;
    void sweep(base::time_point now) override;

    void renew(std::string const& owner, base::time_point until) override;
    void lapsed(base::time_point now, std::size_t limit, completion<std::vector<call_ref>> done) override;
    void claim(stream_key const& key, std::string const& owner, completion<claimed_call> done) override;
    void find(session_key const& key, std::string_view label, completion<call_ref> done) override;
    void running(session_key const& key, completion<std::vector<call_ref>> done) override;

    void send(std::string const& owner, owner_message message, completion<void> done) override;
    [[nodiscard]] std::unique_ptr<watch_handle>
    listen(std::string const& owner, std::function<void(owner_message)> deliver) override;

    [[nodiscard]] durability promise() const noexcept override { return durability::process; }
    [[nodiscard]] usage used() const override;
    /// used(), counted event by event. For tests: it visits everything.
    [[nodiscard]] usage census() const;

private:
    struct stream;
    struct session;
    struct stripe;
    struct watcher;
    using wakes = std::vector<std::shared_ptr<watcher>>;

    [[nodiscard]] stripe& stripe_of(session_key const& key) const noexcept;
    result<stream*> find_stream(stripe& in, stream_key const& key);
    result<void> make_room(stripe& in, session& of, stream* appending, std::size_t need, bool is_final);
    bool drop_one_finished(stripe& in, session& of);
    void drop_stream(stripe& in, session& of, stream_id id, bool is_end);
    void trim_front(session& of, stream& from);
    void forget(session& of, stream& from, stored_event const& event);
    void add_bytes(session& to, std::size_t bytes) noexcept;
    void release_bytes(session& from, std::size_t bytes) noexcept;
    void forget_key(session& of, std::string const& key);
    void forget_subscription(session& of, std::string const& uri);
    /// The stream of the first call with that key, if there was one.
    result<std::optional<stream_id>> look_up_key(session& of, once_key const& key) const;
    void remember_key(session& of, once_key const& key, stream_id stream, std::uint64_t order);
    /// The stream of the key is no longer kept.
    void spend_key(session& of, std::string const& key, stream_id stream);
    [[nodiscard]] std::shared_ptr<std::atomic<std::size_t>> user_bytes_of(std::string const& principal);
    /// Charges the session for another record.
    result<void> recharge(stripe& in, session& of, std::size_t charge);
    void schedule_aging(stripe& in, stream_key const& key, stream& of, base::time_point when);
    result<stream_top> append_locked(
        stripe& in, stream_key const& key, fence fence, std::vector<event_data>& events, bool finish,
        base::time_point now, wakes& to_wake);
    /// Whether one of the ids belongs to a call that has no answer yet, or is there twice.
    [[nodiscard]] static bool is_any_in_use(session const& of, std::string_view label);
    result<opened_stream>
    open_locked(stripe& in, stream_key const& key, stream_meta& meta, std::string const& owner, base::time_point now);

    limits limits_;
    std::uint64_t epoch_;
    event_counter* counter_;
    std::atomic<std::size_t> total_bytes_{0};
    std::atomic<std::size_t> session_count_{0};
    std::atomic<std::size_t> stream_count_{0};
    std::atomic<std::uint64_t> next_fence_{1};

    // Sessions share their principal's number; who has none left is forgotten. Outlives the sessions.
    std::mutex users_mutex_;
    std::map<std::string, std::weak_ptr<std::atomic<std::size_t>>, std::less<>> users_;

    // Who is subscribed to what; taken under a stripe's lock.
    struct by_id {
        bool operator()(session_key const& a, session_key const& b) const noexcept
        {
            return std::tie(a.id.high, a.id.low, a.principal) < std::tie(b.id.high, b.id.low, b.principal);
        }
    };
    mutable std::mutex subscribers_mutex_;
    std::map<std::string, std::map<session_key, stream_id, by_id>, std::less<>> subscribers_;

    static constexpr std::size_t stripe_count = 64;
    std::unique_ptr<std::array<stripe, stripe_count>> stripes_;

    struct owner_state {
        base::time_point lease_until{};
        std::shared_ptr<std::function<void(owner_message)>> mailbox;
    };
    mutable std::mutex owners_mutex_;
    std::map<std::string, owner_state, std::less<>> owners_;
};

}
