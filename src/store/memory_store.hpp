// The embedded default: everything in the memory of this process, bounded by `limits`. Safe from every
// loop. Sessions are spread over stripes, each under one lock that is held for one operation and never
// across a call to anyone else: wake functions run after it is released.
#pragma once

#include "base/mutex.hpp"
#include "store/ports.hpp"
#include "store/reader_table.hpp"

#include <array>
#include <atomic>
#include <map>
#include <tuple>

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
    memory_store(limits limits, base::clock const& clock, std::uint64_t epoch, event_counter* counter = nullptr);
    ~memory_store() override;

    // session_store: memory_sessions.cpp, memory_listing.cpp
    void create(session_record record, completion<record_ptr> done) override;
    void load(session_key const& key, completion<record_ptr> done) override;
    void update(session_record record, completion<record_ptr> done) override;
    void touch(std::span<session_key const> in_use) override;
    void expire(std::size_t limit, completion<expired_sessions> done) override;
    void close(session_key const& key, completion<std::vector<call_ref>> done) override;
    void is_quiet(session_key const& key, completion<bool> done) override;
    void remove(session_key const& key, completion<void> done) override;
    void list(std::string_view after, std::size_t limit, completion<session_list> done) override;
    void named(std::string_view name, completion<std::vector<session_key>> done) override;
    [[nodiscard]] std::unique_ptr<watch_handle>
    watch_session(session_key const& key, std::function<void()> wake) override;
    void subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done) override;
    void unsubscribe(session_key const& key, std::string_view uri, completion<void> done) override;
    void subscribers(
        std::string_view uri, std::optional<session_key> after, std::size_t limit,
        completion<std::vector<subscriber>> done) override;
    [[nodiscard]] std::vector<std::string> subscribed_uris() const override;

    // event_store: memory_streams.cpp, memory_readers.cpp, memory_retention.cpp
    void open(
        stream_key const& key, stream_meta meta, std::string const& owner, std::optional<reader_request> reader,
        completion<opened_stream> done) override;
    void append(
        stream_key const& key, fence fence, std::uint64_t batch, std::uint64_t after, std::vector<event_data> events,
        bool finish, completion<stream_top> done) override;
    void append_standalone(
        stream_key const& key, std::string const& owner, std::uint64_t batch, std::vector<event_data> events,
        completion<stream_top> done) override;
    void blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done) override;
    void attach(stream_key const& key, attach_request request, completion<attached_stream> done) override;
    void read_after(
        stream_key const& key, std::uint64_t after, read_limit limit, std::optional<reader_id> reader,
        completion<page> done) override;
    void note_reader(stream_key const& key, reader_id const& reader, reader_mark mark) override;
    void detach(stream_key const& key, reader_id const& reader, std::optional<reader_mark> mark) override;
    void dismiss(stream_key const& key, dismissed_reader how) override;
    void note_delivered(stream_key const& key, std::uint64_t sequence) override;
    void reader(stream_key const& key, completion<reader_mark> done) override;
    [[nodiscard]] std::unique_ptr<watch_handle>
    watch(stream_key const& key, interest interests, std::function<void(interest)> wake) override;
    void sweep() override;

    // call_store: memory_owners.cpp, memory_calls.cpp
    void renew(std::string const& owner, base::duration lease, completion<void> done) override;
    void lapsed(std::size_t limit, completion<std::vector<call_ref>> done) override;
    void claim(stream_key const& key, fence seen, std::string const& owner, completion<claimed_call> done) override;
    void owned(
        std::string const& owner, std::optional<stream_key> after, std::size_t limit,
        completion<std::vector<call_ref>> done) override;
    void release(stream_key const& key, fence fence, bool has_run, completion<void> done) override;
    void find(session_key const& key, std::string_view request_id, completion<call_ref> done) override;
    void post(stream_key const& key, letter letter, completion<void> done) override;
    void
    read_mail(stream_key const& key, fence fence, std::uint64_t after, completion<std::vector<letter>> done) override;

    // small_record_store, bulletin: memory_records.cpp
    void put_record(
        std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime,
        completion<std::uint64_t> done) override;
    void get_record(std::string_view name, completion<small_record> done) override;
    void take_record(std::string_view name, std::uint64_t seen, std::string taker, completion<void> done) override;
    void publish(std::string text) override;
    [[nodiscard]] std::unique_ptr<watch_handle> listen(std::function<void(std::string const&)> hear) override;

    [[nodiscard]] durability promise() const noexcept override { return durability::process; }
    [[nodiscard]] std::unique_ptr<watch_handle> on_health(std::function<void(bool)>) override
    {
        return std::make_unique<watch_handle>(); // it is always within reach
    }
    [[nodiscard]] usage used() const override;
    /// used(), counted event by event. For tests: it visits everything.
    [[nodiscard]] usage census() const;

private:
    struct lease;
    struct watcher;
    struct request;
    struct stream;
    struct presence;
    struct session;
    struct owner_share;
    struct stripe;
    class visit;

    [[nodiscard]] static std::size_t stripe_index(session_key const& key) noexcept;
    [[nodiscard]] stripe& stripe_of(session_key const& key) const noexcept;

    // Sessions.
    void remove_session(visit& at, session& gone);
    /// Puts the session among the idle ones or takes it from there, after what holds it has changed.
    void settle(visit& at, session& of, base::time_point since);
    result<void> recharge(visit& at, session& of, std::size_t charge);
    void forget_subscription(session& of, std::string const& uri);
    [[nodiscard]] std::shared_ptr<std::atomic<std::size_t>> user_bytes_of(std::string const& principal);

    // Streams.
    result<stream*> find_stream(visit& at, stream_key const& key);
    result<opened_stream> open_here(
        visit& at, stream_key const& key, stream_meta& meta, std::string const& owner,
        std::optional<reader_request> const& reader);
    result<stream_top>
    append_events(visit& at, stream& into, std::uint64_t after, std::vector<event_data>& events, bool finish);
    void end_call(visit& at, stream& of);
    [[nodiscard]] static page read_page(stream const& from, std::uint64_t after, read_limit limit);
    /// Whether one of the ids belongs to a call that has no answer yet, or is there twice.
    [[nodiscard]] static bool is_any_in_use(session const& of, std::vector<expected_request> const& requests);
    /// The stream of the first call with that key, if there was one.
    [[nodiscard]] static result<std::optional<stream_id>> look_up_key(session const& of, once_key const& key);
    void remember_key(session& of, once_key const& key, stream const& of_call);
    /// The stream of the key is no longer kept.
    void spend_key(session& of, std::string const& key, stream_id stream);

    // Room.
    void add_bytes(session& to, std::size_t bytes) noexcept;
    void release_bytes(session& from, std::size_t bytes) noexcept;
    /// What to make room for. `spare` is a stream that must not be dropped for it.
    struct demand {
        std::size_t bytes = 0;
        bool is_final = false;
        stream* appending = nullptr;
        stream const* spare = nullptr;
    };
    [[nodiscard]] bool fits(session const& of, demand const& need, std::size_t after_dropping) const noexcept;
    [[nodiscard]] bool could_make_room(session const& of, demand const& need) const;
    result<void> make_room(visit& at, session& of, demand const& need);
    [[nodiscard]] static stream* oldest_droppable(session& of, stream const* spare) noexcept;
    void update_droppable(stream& of);
    void drop_stream(visit& at, stream& gone, bool is_end);
    void trim_front(stream& from);
    void forget(stream& from, stored_event const& event);
    /// What retention had passed by, and nothing keeps any more: it has arrived, or is blank.
    void trim_unpinned(stream& from);
    void schedule_aging(visit& at, stream& of, base::time_point when);
    void age(visit& at, stream& old);

    // Readers.
    /// Whether the reader, or a newer one of its owner, has come to the stream or gone from it: then it is a repetition
    /// of a request that nobody counts on any more.
    [[nodiscard]] static bool is_known(stream const& of, reader_id const& reader) noexcept;
    void note_known(visit& at, stream& of, reader_id const& reader);
    /// A client has seen more of the stream than there is.
    void mend_end(visit& at, stream& of, std::uint64_t seen);
    result<attached_stream> attach_here(visit& at, stream_key const& key, attach_request const& request);
    /// Makes the session's readers what the table decided.
    void reader_came(visit& at, stream& to, reader_id const& reader);
    void reader_left(visit& at, session& of, reader_id const& reader, stream_id stream);
    /// It did not leave by itself.
    void reader_removed(visit& at, session& of, reader_table::place const& gone);
    /// A reader was given events up to `sent` and has them up to `delivered`. Counts first deliveries.
    void advance_mark(stream& of, std::uint64_t sent, std::uint64_t delivered, std::uint64_t given);

    // Owners and calls.
    [[nodiscard]] std::shared_ptr<lease> lease_of(std::string const& owner);
    presence& presence_of(visit& at, session& of, std::string const& owner);
    void leave_if_empty(visit& at, session& of, presence& who, base::time_point since);
    /// Finds the dead owners of a stripe: their readers go, and their calls hold no session.
    void void_dead(visit& at);
    void void_readers(visit& at, owner_share& of);
    [[nodiscard]] fence next_fence(base::time_point now) noexcept;
    template<class F>
    void take_letters(stream& of, F const& condition);
    template<class F>
    void take_questions(stream& of, F const& condition);
    void take_letters_of(stream& of, letter::kind what, std::uint32_t number);
    void take_all_letters(stream& of);
    /// Whether somebody waits for such a letter, and has none.
    [[nodiscard]] static bool is_awaited(stream const& of, letter const& letter);

    // Small records.
    struct kept_record {
        small_record record;
        std::uint64_t replaced = 0; ///< what the author of the record had seen
        bool is_taken = false; ///< remembered for whoever repeats something
        std::string taker{}; ///< who took this one, or the one before it
        std::uint64_t taken = 0; ///< its revision
        std::size_t charge = 0;
        std::multimap<base::time_point, std::string>::iterator ends;
    };
    using record_map = std::map<std::string, kept_record, std::less<>>;
    void forget_old_records(base::time_point now);
    void forget_records_here(base::time_point now) BELAY_REQUIRES(records_mutex_);
    void forget_record(record_map::iterator gone) BELAY_REQUIRES(records_mutex_);
    void keep_record(record_map::iterator of, base::time_point now, base::duration lifetime)
        BELAY_REQUIRES(records_mutex_);

    limits limits_;
    base::clock const& clock_;
    std::uint64_t epoch_;
    event_counter* counter_;
    std::atomic<std::size_t> total_bytes_{0};
    std::atomic<std::size_t> session_count_{0};
    std::atomic<std::size_t> stream_count_{0};
    std::atomic<fence> last_fence_{0};

    // Sessions share their principal's number; who has none left is forgotten. Outlives the sessions.
    base::mutex users_mutex_;
    std::map<std::string, std::weak_ptr<std::atomic<std::size_t>>, std::less<>> users_ BELAY_GUARDED_BY(users_mutex_);

    // Who is subscribed to what; taken under a stripe's lock.
    struct by_id {
        bool operator()(session_key const& a, session_key const& b) const noexcept
        {
            return std::tie(a.id.high, a.id.low, a.principal) < std::tie(b.id.high, b.id.low, b.principal);
        }
    };
    mutable base::mutex subscribers_mutex_;
    std::map<std::string, std::map<session_key, stream_id, by_id>, std::less<>>
        subscribers_ BELAY_GUARDED_BY(subscribers_mutex_);

    // The leases of all owners; taken under a stripe's lock.
    base::mutex owners_mutex_;
    std::map<std::string, std::shared_ptr<lease>, std::less<>> owners_ BELAY_GUARDED_BY(owners_mutex_);

    // The first bits of a session's name choose its stripe, so that the stripes are in the order of names.
    static constexpr std::size_t stripe_bits = 6;
    static constexpr std::size_t stripe_count = std::size_t(1) << stripe_bits;
    std::unique_ptr<std::array<stripe, stripe_count>> stripes_;

    base::mutex records_mutex_;
    record_map records_ BELAY_GUARDED_BY(records_mutex_);
    std::size_t record_count_ BELAY_GUARDED_BY(records_mutex_) = 0; // without those that were taken
    std::multimap<base::time_point, std::string> records_by_end_ BELAY_GUARDED_BY(records_mutex_);

    struct listener;
    base::mutex listeners_mutex_;
    std::vector<std::shared_ptr<listener>> listeners_ BELAY_GUARDED_BY(listeners_mutex_);
};

}
