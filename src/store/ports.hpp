// The ports between the runtime and whatever keeps its data. Their guarantees are the contract of
// tests/contract; every backend passes the same bodies.
//
// A completion is called exactly once, on the caller's loop, possibly before the function returns (the
// memory store always does that). Wake functions are called on any thread and must only post.
#pragma once

#include "store/types.hpp"

#include <belay/error.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace belay::store {

template<class T>
using completion = std::move_only_function<void(result<T>)>;

class session_store {
public:
    virtual ~session_store() = default;

    /// Gives the record as it is kept. `errc::too_many_sessions` at the limit, `errc::no_space` where the record does
    /// not fit: what a session keeps is charged to it, its record and its subscriptions too.
    virtual void
    create(session_record record, base::time_point now, completion<std::shared_ptr<session_record const>> done)
        = 0;
    virtual void load(session_key const& key, completion<std::shared_ptr<session_record const>> done) = 0;
    /// Replaces the record if its revision is still the given one; the stored one has the next revision.
    /// `errc::no_space` if it has grown and there is no room.
    virtual void update(session_record record, completion<std::shared_ptr<session_record const>> done) = 0;
    /// Notes the last activity, and whether the session may expire from then on. Cheap; a hint.
    virtual void touch(session_key const& key, base::time_point at, presence presence) = 0;
    /// Sessions that have been idle for the limit. Costs by what it returns, not by what lives.
    virtual void expired(base::time_point now, std::size_t limit, completion<std::vector<session_key>> done) = 0;
    /// Removes every key of the session. Followers are woken and find the stream gone.
    virtual void end(session_key const& key, completion<void> done) = 0;

    /// Subscribing twice is subscribing once. `errc::too_many_subscriptions` if the session has `limit` others.
    virtual void subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done) = 0;
    virtual void unsubscribe(session_key const& key, std::string_view uri, completion<void> done) = 0;
    /// The first sessions subscribed to the URI that come after that one, in an order of the store's own. Costs by
    /// what it returns.
    virtual void subscribers(
        std::string_view uri, std::optional<session_key> after, std::size_t limit,
        completion<std::vector<subscriber>> done)
        = 0;
    /// The URIs that anybody is subscribed to, each once. A store that is elsewhere may answer from what it knew a
    /// second ago.
    [[nodiscard]] virtual std::vector<std::string> subscribed_uris() const = 0;
};

/// Stops watching when destroyed. Wake-ups under way may still arrive.
class watch_handle {
public:
    virtual ~watch_handle() = default;
};

class event_store {
public:
    virtual ~event_store() = default;

    /// Makes a request stream, owned by a call, and gives its fence. Makes room by dropping the oldest finished and
    /// delivered stream. `errc::too_many_streams` or `errc::no_space` if there is none. Of calls with the same once_key
    /// only the first has no twin; `errc::key_spent` or `errc::key_mismatch` if the key cannot be used.
    /// `errc::duplicate_id` as the meta says.
    virtual void open(
        stream_key const& key, stream_meta meta, std::string const& owner, base::time_point now,
        completion<opened_stream> done)
        = 0;

    /// Gives the events the next sequences and keeps them, all or none. On completion their ids may be shown to a
    /// client. With `finish` nothing can follow. Room for an answer of the meta's `answer_bytes` to each line of the
    /// label is set aside: an append of such an answer alone is never refused for want of room. The standalone stream
    /// takes any fence and exists from its first use.
    virtual void append(
        stream_key const& key, fence fence, std::vector<event_data> events, bool finish, base::time_point now,
        completion<stream_top> done)
        = 0;

    /// Takes the payload out of a kept event; its place stays. No error if it is not there any more.
    virtual void blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done) = 0;

    /// The kept events after the sequence. A gap is data, not an error. Never a scan.
    virtual void read_after(stream_key const& key, std::uint64_t after, read_limit limit, completion<page> done) = 0;

    /// What the stream was opened with.
    virtual void inspect(stream_key const& key, completion<stream_meta> done) = 0;

    /// Wakes after the stream has grown or gone (`growth`), or after its reader has moved (`reader`). A hint.
    enum class interest { growth, reader };
    [[nodiscard]] virtual std::unique_ptr<watch_handle>
    watch(stream_key const& key, interest interest, std::function<void()> wake) = 0;

    /// A follower's position, for flow control and the delivered mark, which never goes back.
    virtual void note_reader(stream_key const& key, reader_mark mark) = 0;
    /// What a reader was given before it left has arrived, up to that sequence.
    virtual void note_delivered(stream_key const& key, std::uint64_t sequence) = 0;
    /// The newest mark. Cheap.
    virtual void reader(stream_key const& key, completion<reader_mark> done) = 0;

    /// Drops what is older than the age limit. Costs by what is due.
    virtual void sweep(base::time_point now) = 0;
};

class call_store {
public:
    virtual ~call_store() = default;

    /// Keeps the calls of an owner (a node's incarnation) alive until the time given.
    virtual void renew(std::string const& owner, base::time_point until) = 0;
    /// Calls that are not finished and whose owner's lease has run out.
    virtual void lapsed(base::time_point now, std::size_t limit, completion<std::vector<call_ref>> done) = 0;
    /// Takes a call over; older fences are refused from then on.
    virtual void claim(stream_key const& key, std::string const& owner, completion<claimed_call> done) = 0;
    /// The newest call of the session that has this line in its label and no answer to it. `errc::finished` if a newer
    /// one has an answer that has not arrived: whoever names the id cannot know of it, and means that one.
    virtual void find(session_key const& key, std::string_view label, completion<call_ref> done) = 0;
    /// All unfinished calls of the session.
    virtual void running(session_key const& key, completion<std::vector<call_ref>> done) = 0;
};

/// A message for the node that runs a call.
struct owner_message {
    stream_key stream;
    std::string kind;
    std::string body;
};

class owner_mail {
public:
    virtual ~owner_mail() = default;
    /// `errc::not_found` if the owner does not listen.
    virtual void send(std::string const& owner, owner_message message, completion<void> done) = 0;
    [[nodiscard]] virtual std::unique_ptr<watch_handle>
    listen(std::string const& owner, std::function<void(owner_message)> deliver) = 0;
};

/// What the promise of a completed append is worth.
enum class durability { process, disk, shared };

/// One backend: all ports over one set of data.
class backend : public session_store, public event_store, public call_store, public owner_mail {
public:
    [[nodiscard]] virtual durability promise() const noexcept = 0;
    [[nodiscard]] virtual usage used() const = 0;
};

}
