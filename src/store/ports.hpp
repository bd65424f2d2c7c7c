// The ports between the runtime and whatever keeps its data. Their guarantees are the contract of
// tests/contract; every backend passes the same bodies.
//
// A completion is called exactly once, on the caller's loop, possibly before the function returns (the
// memory store always does that). Wake functions are called on any thread and must only post.
//
// The store owns time: ports take durations, never a reading of a node's clock.
//
// `errc::unavailable` means that the outcome is not known: the change was made, or will be, or not. So every
// operation may be repeated, with the same arguments, and a repetition gives the outcome of the first.
//
// Whoever runs calls or follows streams is an owner: one incarnation of a node, by a name that is never used
// again. An owner lives while its lease does; one that the store has never heard of is dead.
#pragma once

#include "store/types.hpp"

#include <belay/error.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay::store {

template<class T>
using completion = std::move_only_function<void(result<T>)>;

/// Stops watching when destroyed. Wake-ups under way may still arrive.
class watch_handle {
public:
    virtual ~watch_handle() = default;
};

class session_store {
public:
    virtual ~session_store() = default;

    /// Gives the record as it is kept. `errc::too_many_sessions` at the limit, `errc::no_space` where the record does
    /// not fit: what a session keeps is charged to it, its record and its subscriptions too. `errc::conflict` if
    /// another record has that key.
    virtual void create(session_record record, completion<record_ptr> done) = 0;
    /// Loading is activity. `errc::not_found` also once the session is closed.
    virtual void load(session_key const& key, completion<record_ptr> done) = 0;
    /// Replaces the record if its revision is still the given one; the stored one has the next revision. If the
    /// stored one is just what this update makes of it, that was this update. `errc::conflict` otherwise,
    /// `errc::no_space` if it has grown and there is no room.
    virtual void update(session_record record, completion<record_ptr> done) = 0;
    /// These sessions are in use in ways that the store does not see. A hint.
    virtual void touch(std::span<session_key const> in_use) = 0;
    /// Removes sessions that nothing has held for the idle limit (readers and unfinished calls of living owners hold
    /// one; loading and touching renew it), and closed ones that nobody removed. Costs by what it returns.
    ///
    /// Never before the idle limit, and at the latest `expiry_slack` after it: what is touched in batches from
    /// elsewhere may be in use although the last batch did not arrive. A store that hears of every use at once needs no
    /// slack.
    virtual void expire(std::size_t limit, completion<expired_sessions> done) = 0;
    /// From now on the session cannot be loaded, and no stream of it opened or attached to. A letter `session_ended`
    /// goes to each unfinished call, readers are woken. Gives the calls that were told. `errc::not_found` if there is
    /// no such session; closing twice is closing once.
    virtual void close(session_key const& key, completion<std::vector<call_ref>> done) = 0;
    /// Whether the session has neither unfinished calls nor readers of living owners. True also if it is gone.
    virtual void is_quiet(session_key const& key, completion<bool> done) = 0;
    /// Removes every key of the session. Followers are woken and find the session gone. No error if it is gone.
    virtual void remove(session_key const& key, completion<void> done) = 0;

    /// The first sessions whose names come after that one, in the order of their names (`base::log_name` of the id);
    /// closed ones are left out. Costs by what it returns, or little more.
    virtual void list(std::string_view after, std::size_t limit, completion<session_list> done) = 0;
    /// The sessions with that name: nearly always one.
    virtual void named(std::string_view name, completion<std::vector<session_key>> done) = 0;

    /// Wakes after the record has changed, and when a closed session has become quiet or has gone. A hint.
    [[nodiscard]] virtual std::unique_ptr<watch_handle>
    watch_session(session_key const& key, std::function<void()> wake) = 0;

    /// Subscribing twice is subscribing once. `errc::too_many_subscriptions` if the session has `limit` others.
    virtual void subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done) = 0;
    virtual void unsubscribe(session_key const& key, std::string_view uri, completion<void> done) = 0;
    /// The first sessions subscribed to the URI that come after that one, in an order of the store's own. Costs by
    /// what it returns.
    virtual void subscribers(
        std::string_view uri, std::optional<session_key> after, std::size_t limit,
        completion<std::vector<subscriber>> done)
        = 0;
    /// The URIs that anybody is subscribed to, each once, as last known: see `used()`.
    [[nodiscard]] virtual std::vector<std::string> subscribed_uris() const = 0;
};

class event_store {
public:
    virtual ~event_store() = default;

    /// Makes a request stream, owned by a call, and gives its fence; with `reader` that connection follows it from its
    /// beginning. Makes room by dropping the oldest finished and delivered stream; a session over its budget of
    /// readers dismisses the one that has read longest, of those that can return. `errc::too_many_streams` or
    /// `errc::no_space` if there is no room, `errc::too_many_streams` too if no reader can be dismissed. Of calls
    /// with the same once_key only the first repeats nothing; `errc::key_spent` or `errc::key_mismatch` if the key
    /// cannot be used. `errc::duplicate_id` as the meta says. `errc::conflict` if another owner has that stream.
    /// `errc::finished` if it was there and is not kept any more: the store knows those that it dropped last, because
    /// an open may come late. One that comes when nobody counts on it makes a stream that its owner finds and ends.
    virtual void open(
        stream_key const& key, stream_meta meta, std::string const& owner, std::optional<reader_request> reader,
        completion<opened_stream> done)
        = 0;

    /// Gives the events the next sequences and keeps them, all or none. On completion their ids may be shown to a
    /// client. With `finish` nothing can follow.
    ///
    /// `batch` numbers the appends of one fence, from 1: the same number again, or a lower one, appends nothing and
    /// gives the last outcome, even of a stream that is finished. A refused append leaves its number unused.
    ///
    /// `after` is where the stream ended when its author last heard of it: the outcome of the batch before, or of the
    /// claim. If it ends elsewhere, the store has lost data, or a cursor has raised the end (see attach()): the events
    /// come after the higher of both, and what is missing between is a gap to whoever reads it. So no sequence that a
    /// client may have seen is given twice.
    ///
    /// `errc::fenced` if the call belongs to someone else
    /// now, `errc::finished`, `errc::stream_gone`, `errc::not_found` if the session is gone (a closed one is not).
    ///
    /// Room for an answer of the meta's `answer_bytes` to each request is set aside: an append of such an answer
    /// alone is never refused for want of room. With a request's answer, letters that cancel it go.
    virtual void append(
        stream_key const& key, fence fence, std::uint64_t batch, std::uint64_t after, std::vector<event_data> events,
        bool finish, completion<stream_top> done)
        = 0;
    /// The same for the standalone stream, which has no owner and exists from its first use: appends are numbered by
    /// who makes them, for each stream in the order in which they are made.
    virtual void append_standalone(
        stream_key const& key, std::string const& owner, std::uint64_t batch, std::vector<event_data> events,
        completion<stream_top> done)
        = 0;

    /// Takes the payload out of a kept question; its place stays, and letters that answer it go, except where the
    /// question has a key: those stay until the call is finished. No error if it is not there any more.
    virtual void blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done) = 0;

    /// The connection follows the stream, from the cursor on, and whoever followed it until now is dismissed; who is
    /// dismissed for the budget is decided as with open(), but nobody who comes back for a stream is refused for it.
    /// Attaching again with the same reader changes nothing; one that was dismissed while it waited is told so by its
    /// first page, which has no events. Readers of one owner come to a stream in the order of their numbers: one that
    /// has left, or that comes after a higher number, is refused, because nobody counts on it any more.
    ///
    /// A cursor that is ahead of the end of its stream is of a client that has seen what the store has lost. The end of
    /// a stream whose call runs is raised to it, which leaves a hole: what comes next comes behind it. Never by more
    /// than `limits::window_events`. The standalone stream, which has no author who knows better, begins a new epoch
    /// instead: its reader begins anew, and is told.
    ///
    /// `errc::not_found` if there is no such session, `errc::stream_gone`, `errc::bad_cursor` if the stream does not
    /// have that place, `errc::finished` if a finished stream ends at the cursor (which is then known to have been
    /// delivered), `errc::conflict` if the standalone stream has a reader and the policy, or the storm of takeovers,
    /// is against it, `errc::fenced` if the reader's number is.
    virtual void attach(stream_key const& key, attach_request request, completion<attached_stream> done) = 0;

    /// The kept events after the sequence. A gap is data, not an error. Never a scan. `reader` is who asks, if it is
    /// one that has attached: a page tells it that it is dismissed, as it does a reader that the store does not know.
    virtual void read_after(
        stream_key const& key, std::uint64_t after, read_limit limit, std::optional<reader_id> reader,
        completion<page> done)
        = 0;

    /// A follower's position, for flow control and the delivered mark, which never goes back. From a reader that is not
    /// the stream's any more, because a newer one has attached, only what was delivered and given counts.
    virtual void note_reader(stream_key const& key, reader_id const& reader, reader_mark mark) = 0;
    /// The last mark of a reader, which then is none any more. Whoever waits for it to leave is woken.
    virtual void detach(stream_key const& key, reader_id const& reader, std::optional<reader_mark> mark) = 0;
    /// Lets the stream's reader know that it has to leave. Nobody who cannot return is `asked` to.
    virtual void dismiss(stream_key const& key, dismissed_reader how) = 0;
    /// What a reader was given before it left has arrived, up to that sequence.
    virtual void note_delivered(stream_key const& key, std::uint64_t sequence) = 0;
    /// The newest mark. Cheap.
    virtual void reader(stream_key const& key, completion<reader_mark> done) = 0;

    /// Wakes after the stream has grown or gone (`growth`); after its reader has moved or left (`reader`); after a
    /// letter has come for its call, or somebody else has claimed it (`mail`); after a reader of it was dismissed
    /// (`dismissal`). A hint: it may come late, twice, or merged with others.
    enum class interest : std::uint8_t { growth = 1, reader = 2, mail = 4, dismissal = 8 };
    [[nodiscard]] friend constexpr interest operator|(interest a, interest b) noexcept
    {
        return static_cast<interest>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
    }
    /// `wake` is called with one kind at a time, of those asked for.
    [[nodiscard]] virtual std::unique_ptr<watch_handle>
    watch(stream_key const& key, interest interests, std::function<void(interest)> wake) = 0;

    /// Drops what is older than the age limit. Costs by what is due.
    virtual void sweep() = 0;
};

class call_store {
public:
    virtual ~call_store() = default;

    /// The owner lives for that long from now.
    virtual void renew(std::string const& owner, base::duration lease, completion<void> done) = 0;
    /// Calls that are not finished and have no living owner. Readers of dead owners are gone from then on.
    virtual void lapsed(std::size_t limit, completion<std::vector<call_ref>> done) = 0;
    /// Takes a call over if its fence is still the one that was seen; older fences are refused from then on. Fences
    /// only grow. Readers of its former owner leave the stream. `errc::conflict` if somebody else was first,
    /// `errc::finished`, `errc::stream_gone`.
    virtual void claim(stream_key const& key, fence seen, std::string const& owner, completion<claimed_call> done) = 0;
    /// The unfinished calls of that owner that come after that one, in an order of the store's own: so that it can find
    /// what it is said to run and does not.
    virtual void owned(
        std::string const& owner, std::optional<stream_key> after, std::size_t limit,
        completion<std::vector<call_ref>> done)
        = 0;
    /// Gives a call up for others to claim, who find it among the lapsed ones; its fence is refused from then on.
    /// Whoever has claimed it and has not run it is not counted as an attempt.
    virtual void release(stream_key const& key, fence fence, bool has_run, completion<void> done) = 0;
    /// The newest call of the session that has a request with this id and no answer to it. `errc::finished` if a newer
    /// one has an answer that has not arrived: whoever names the id cannot know of it, and means that one.
    virtual void find(session_key const& key, std::string_view request_id, completion<call_ref> done) = 0;

    /// Keeps a letter for whoever runs the call, now or later, until what it leads to is in the store: the answer that
    /// a cancel or an end leads to, the blank that an answer leads to; an answer under a key stays until the call is
    /// finished, for whoever runs the call again. Completes when it is kept. What nobody waits for is dropped and is no
    /// error: a letter to a stream that is finished or gone, an answer to a question that is not open or has one, a
    /// cancel of a request that is answered or cancelled. `errc::no_space` if there is no room; letters are charged to
    /// the session. `errc::not_found` if the session is gone.
    virtual void post(stream_key const& key, letter letter, completion<void> done) = 0;
    /// The letters after that one, oldest first. `errc::fenced` if the call belongs to someone else.
    virtual void
    read_mail(stream_key const& key, fence fence, std::uint64_t after, completion<std::vector<letter>> done)
        = 0;
};

/// Small values with a lifetime, for what belongs to no session. Names and values are the user's; every value has a
/// revision, which grows for as long as the store remembers the name: while there is a value, and for
/// `late_command_limit` after it was taken. Bounded by `limits::small_records` and the total bytes, which what is
/// remembered counts for too: `errc::no_space` beyond.
class small_record_store {
public:
    struct small_record {
        std::string value;
        std::uint64_t revision = 0;
    };
    virtual ~small_record_store() = default;

    /// Replaces the value if its revision is the one that was seen (0: there is none) and gives the new one's. If the
    /// value that replaced the one that was seen is just this, that was this change, even if it has been taken since.
    /// `errc::conflict` otherwise.
    virtual void put_record(
        std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime,
        completion<std::uint64_t> done)
        = 0;
    /// `errc::not_found` if there is none, or not any more.
    virtual void get_record(std::string_view name, completion<small_record> done) = 0;
    /// Removes it if its revision is the one that was seen: of several who try, one succeeds. `taker` names this
    /// attempt and no other; who has succeeded does so again under that name, for `late_command_limit`.
    /// `errc::not_found` for the others, `errc::conflict` if there is another revision.
    virtual void take_record(std::string_view name, std::uint64_t seen, std::string taker, completion<void> done) = 0;
};

/// Words to all nodes, this one too. Whoever does not listen at that moment misses them: nothing may depend on them.
class bulletin {
public:
    virtual ~bulletin() = default;
    virtual void publish(std::string text) = 0;
    [[nodiscard]] virtual std::unique_ptr<watch_handle> listen(std::function<void(std::string const&)> hear) = 0;
};

/// What the promise of a completed append is worth.
enum class durability { process, disk, shared };

/// One backend: all ports over one set of data.
class backend : public session_store,
                public event_store,
                public call_store,
                public small_record_store,
                public bulletin {
public:
    [[nodiscard]] virtual durability promise() const noexcept = 0;
    /// Says false when the data cannot be reached for a while, and true when it can be again; nothing before that. On
    /// any thread.
    [[nodiscard]] virtual std::unique_ptr<watch_handle> on_health(std::function<void(bool)> hear) = 0;
    /// What is kept, as last known. A store that is elsewhere answers with what it knew, and asks anew if that is more
    /// than a second old: whoever asks again learns of it. So metrics never wait for a store that cannot be reached.
    [[nodiscard]] virtual usage used() const = 0;
};

}
