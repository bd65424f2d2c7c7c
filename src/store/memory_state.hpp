// What a memory_store is made of. Private to its source files.
#pragma once

#include "base/mutex.hpp"
#include "store/memory_store.hpp"

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <deque>

namespace belay::store {

// Members of these leave the container when they are destroyed, so containers outlive what is in them.
using list_link = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
using tree_link = boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
using uncounted = boost::intrusive::constant_time_size<false>;

/// How long an owner lives. Changed and read from any thread.
struct memory_store::lease {
    explicit lease(std::string owner) : name(std::move(owner)) {}
    [[nodiscard]] base::time_point end() const noexcept
    {
        return base::time_point(base::duration(until.load(std::memory_order_acquire)));
    }
    [[nodiscard]] bool is_alive(base::time_point now) const noexcept { return end() > now; }

    std::string name;
    std::atomic<base::duration::rep> until{base::time_point::min().time_since_epoch().count()};
};

struct memory_store::watcher {
    std::function<void(interest)> wake;
    std::uint8_t interests = 0;
    std::atomic<bool> is_active{true};
};

/// One operation under a stripe's lock. Whom it has to wake is woken after the lock is released.
class memory_store::visit {
public:
    visit(memory_store const& store, stripe& in);
    visit(memory_store const& store, session_key const& key);
    visit(visit const&) = delete;
    visit& operator=(visit const&) = delete;
    ~visit();

    void wake(std::vector<std::shared_ptr<watcher>> const& watchers, std::uint8_t interests);

    stripe& in;

private:
    base::lock lock_;
    boost::container::small_vector<std::pair<std::shared_ptr<watcher>, interest>, 4> to_wake_;

public:
    base::time_point const now; // read under the lock, so that a stripe's times are in order
};

/// A request of a stream, found by its id.
struct memory_store::request {
    stream* of = nullptr;
    std::uint32_t place = 0;
    std::string_view id; // in the stream's meta
    std::size_t reserve = 0;       // for its answer
    std::uint64_t answered_at = 0; // the answer's sequence; 0: there is none yet
    bool is_counted = false;       // while an append is looked at
    tree_link by_id{};

    struct id_of {
        using type = std::string_view;
        type operator()(request const& each) const noexcept { return each.id; }
    };
};

struct memory_store::stream {
    stream(session& of, stream_id id) : of(of), id(id) {}

    session& of;
    stream_id id;
    stream_meta meta;
    std::uint64_t order = 0; // creation order within the session
    stream_top top;
    bool finished = false;
    std::size_t own_charge = 0; // of the stream itself
    std::size_t charge = 0;     // of all kept events
    std::size_t reserved = 0;   // for the answers that are to come, and what its call keeps until then
    std::deque<stored_event> events;  // with growing sequences; a jump is what was lost
    bool has_blank = false;           // perhaps among the pinned; looked for at the next append
    std::vector<stored_event> pinned; // undelivered responses that retention has passed by; older than all events
    std::optional<std::deque<base::time_point>> appended_at; // of `events`, standalone stream only
    reader_mark reader;
    std::size_t reader_count = 0; // in the session's table
    std::vector<std::pair<std::shared_ptr<lease>, std::uint64_t>> last_readers; // the newest of each owner
    std::vector<std::shared_ptr<watcher>> watchers;
    std::multimap<base::time_point, stream*>::iterator aging;
    bool is_aging = false;
    tree_link droppable_link{};

    // Of a request stream: its call.
    boost::container::small_vector<request, 1> requests;
    std::string owner; // empty: released
    presence* runs_with = nullptr; // its owner, until it is finished
    list_link call_link{};
    store::fence fence = 0;
    store::fence claimed_from = 0;  // the fence that the owner saw when it claimed the call
    store::fence released_from = 0; // the fence of whoever gave it up last
    std::uint64_t last_batch = 0;   // of this fence
    stream_top last_outcome;        // of that batch
    std::uint32_t attempt = 1;
    std::optional<stream_id> repeats;
    base::time_point opened_at{};
    struct open_question {
        std::uint32_t number;
        std::uint64_t sequence;
        bytes key; // null: none
    };
    std::vector<open_question> questions; // not blank yet, even if retention has passed them by
    std::uint32_t last_question = 0;
    std::optional<double> progress;
    std::vector<letter> mail;
    std::uint64_t last_letter = 0;
    std::size_t mail_charge = 0; // with the keys of questions

    // Of the standalone stream: the last append of each owner.
    struct writer {
        std::shared_ptr<lease> owner;
        std::uint64_t last_batch;
        stream_top top;
        base::time_point at;
    };
    std::vector<writer> writers;

    [[nodiscard]] bool is_standalone() const noexcept { return meta.kind == stream_kind::standalone; }
    [[nodiscard]] stream_key key() const;
    [[nodiscard]] call_ref call(std::uint32_t place = 0) const { return {key(), owner, fence, place, meta.work}; }
    [[nodiscard]] std::uint64_t first_kept() const noexcept
    {
        if (!pinned.empty())
            return pinned.front().sequence;
        return events.empty() ? top.sequence + 1 : events.front().sequence;
    }
    [[nodiscard]] stream_state state() const noexcept;
    /// How many of `events` have that sequence or a lower one.
    [[nodiscard]] std::size_t count_up_to(std::uint64_t sequence) const noexcept;
    /// Null if it is not kept.
    [[nodiscard]] stored_event const* find_event(std::uint64_t sequence) const noexcept;
    /// How many kept events have a sequence in (after, to].
    [[nodiscard]] std::uint64_t count_kept(std::uint64_t after, std::uint64_t to) const noexcept;
    /// Whether it stays, however much comes after it. What a caller's machine has taken may not have reached the
    /// caller: the answers of a batch stay while others are to come, and what a call has asked stays while it is open.
    [[nodiscard]] bool is_pinned(stored_event const& event) const noexcept
    {
        return event.kind != event_kind::ordinary
            && (event.sequence > reader.delivered || (!finished && !is_standalone()));
    }
    [[nodiscard]] bool is_droppable() const noexcept
    {
        return !is_standalone() && finished && reader_count == 0 && reader.delivered >= top.sequence;
    }
    [[nodiscard]] std::size_t all_charges() const noexcept { return own_charge + charge + reserved + mail_charge; }

    struct order_of {
        using type = std::uint64_t;
        type operator()(stream const& each) const noexcept { return each.order; }
    };
};

/// What an owner has to do with a session: readers, unfinished calls. There while it has any.
struct memory_store::presence {
    using call_list = boost::intrusive::list<
        stream, boost::intrusive::member_hook<stream, list_link, &stream::call_link>, uncounted>;

    owner_share* of = nullptr;
    session* in = nullptr;
    std::size_t readers = 0;
    call_list calls; // oldest first
    list_link link{};
};

struct memory_store::session {
    struct once_entry {
        std::uint64_t fingerprint;
        stream_id stream; // of the first call with the key
        std::uint64_t order; // its creation order
        bool is_spent; // the stream is no longer kept
    };
    using once_map = std::map<std::string, once_entry, std::less<>>;
    using request_set = boost::intrusive::multiset<
        request, boost::intrusive::member_hook<request, tree_link, &request::by_id>,
        boost::intrusive::key_of_value<request::id_of>, uncounted>;
    using droppable_set = boost::intrusive::set<
        stream, boost::intrusive::member_hook<stream, tree_link, &stream::droppable_link>,
        boost::intrusive::key_of_value<stream::order_of>, uncounted>;

    record_ptr record;
    std::string name; // for listings
    std::shared_ptr<std::atomic<std::size_t>> user_bytes; // of all sessions of the principal
    std::size_t record_charge = 0;
    boost::unordered_flat_set<std::string> subscriptions;
    once_map once;
    std::map<std::uint64_t, once_map::iterator> spent; // by the order of their streams
    boost::container::small_vector<std::unique_ptr<presence>, 1> presences;
    request_set requests;
    droppable_set droppable;
    std::deque<stream_id> dropped; // the last ones
    boost::unordered_flat_map<stream_id, std::unique_ptr<stream>> streams;
    reader_table readers;
    std::vector<std::shared_ptr<watcher>> watchers;
    std::size_t charge = 0;
    std::uint64_t next_order = 0;
    base::time_point created_at{};
    base::time_point last_activity{};
    base::time_point idle_since{}; // its place among the idle ones; activity may be later
    base::time_point closed_at{};
    bool is_closed = false;
    tree_link name_link{}; // all that are not closed
    tree_link idle_link{}; // nothing holds it, not closed
    list_link age_link{}; // not closed
    list_link closed_link{};

    [[nodiscard]] presence* find_presence(std::string_view owner) const noexcept;
    [[nodiscard]] bool is_held() const noexcept;
    [[nodiscard]] bool has_living(base::time_point now) const noexcept;
    [[nodiscard]] reader_table::alive_function who_lives(base::time_point now) const;

    struct name_of {
        using type = std::string_view;
        type operator()(session const& each) const noexcept { return each.name; }
    };
    struct idle_of {
        using type = base::time_point;
        type operator()(session const& each) const noexcept { return each.idle_since; }
    };
};

/// What an owner has in a stripe.
struct memory_store::owner_share {
    using presence_list = boost::intrusive::list<
        presence, boost::intrusive::member_hook<presence, list_link, &presence::link>, uncounted>;

    std::shared_ptr<store::memory_store::lease> lease;
    bool is_void = false; // found dead: holds no session
    std::size_t readers = 0;
    presence_list presences;
};

struct memory_store::stripe {
    template<auto Link>
    using session_list_of
        = boost::intrusive::list<session, boost::intrusive::member_hook<session, list_link, Link>, uncounted>;

    mutable base::mutex mutex;
    boost::intrusive::multiset<
        session, boost::intrusive::member_hook<session, tree_link, &session::name_link>,
        boost::intrusive::key_of_value<session::name_of>, uncounted>
        by_name;
    boost::intrusive::multiset<
        session, boost::intrusive::member_hook<session, tree_link, &session::idle_link>,
        boost::intrusive::key_of_value<session::idle_of>, uncounted>
        idle; // longest idle first
    session_list_of<&session::age_link> by_age; // oldest first
    session_list_of<&session::closed_link> closed; // longest closed first
    std::map<std::string, owner_share, std::less<>> owners;
    boost::unordered_flat_map<session_key, std::unique_ptr<session>, session_key_hash> sessions;
    std::multimap<base::time_point, stream*> aging;

    session* find(session_key const& key)
    {
        auto const found = sessions.find(key);
        return found == sessions.end() ? nullptr : found->second.get();
    }
};

constexpr std::uint8_t bits(event_store::interest interest) noexcept
{
    return static_cast<std::uint8_t>(interest);
}
constexpr std::uint8_t growth_bit = bits(event_store::interest::growth);
constexpr std::uint8_t reader_bit = bits(event_store::interest::reader);
constexpr std::uint8_t mail_bit = bits(event_store::interest::mail);
constexpr std::uint8_t dismissal_bit = bits(event_store::interest::dismissal);
constexpr std::uint8_t all_bits = 0xff;

// Of so many owners the last command is remembered, to know it again, even when they are dead.
constexpr std::size_t remembered_owners = 16;

// So many streams of a session are known to have been there.
constexpr std::size_t remembered_streams = 16;

// What things cost beside their texts: the thing itself, its places in tables, the allocator.
constexpr std::size_t session_overhead = 3072; // with its standalone stream, what the node keeps of it, a reader
constexpr std::size_t subscription_overhead = 256; // its URI is kept twice
constexpr std::size_t stream_overhead = 1792; // with its owner's name, a reader, and the letter that ends it
constexpr std::size_t request_overhead = 160;
constexpr std::size_t event_overhead = 112;
constexpr std::size_t key_overhead = 160;
constexpr std::size_t letter_overhead = 96;
constexpr std::size_t record_overhead = 320; // its name is kept twice

[[nodiscard]] inline std::size_t charge_of(bytes const& payload) noexcept
{
    return payload->size() + event_overhead;
}

template<class F>
void memory_store::take_questions(stream& of, F const& condition)
{
    std::erase_if(of.questions, [&](auto const& each) {
        if (!condition(each))
            return false;
        auto const charge = each.key ? each.key->size() : 0;
        of.mail_charge -= charge;
        release_bytes(of.of, charge);
        return true;
    });
}

/// Runs a function when the watch is over.
class unwatch final : public watch_handle {
public:
    explicit unwatch(std::move_only_function<void()> stop) : stop_(std::move(stop)) {}
    ~unwatch() override { stop_(); }

private:
    std::move_only_function<void()> stop_;
};

}
