// The words of the store: keys, events, cursors, pages. Plain values without I/O, so that the engine
// can use them. The store keeps keys, bytes and time; what the bytes mean is not its business.
#pragma once

#include "base/clock.hpp"
#include "base/ids.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace belay::store {

/// Shared and never changed: one payload serves the log, every page and every write.
using bytes = std::shared_ptr<std::string const>;

/// A session belongs to a principal. The principal is part of the key, so that a foreign id is not
/// refused but simply not found.
struct session_key {
    std::string principal;
    base::id128 id;
    friend bool operator==(session_key const&, session_key const&) = default;
};

struct session_key_hash {
    std::size_t operator()(session_key const& key) const noexcept
    {
        // Ids are random already; the principal only has to compare equal.
        return static_cast<std::size_t>(key.id.low ^ key.id.high);
    }
};

using stream_id = std::uint64_t;

struct stream_key {
    session_key session;
    stream_id stream = 0;
    friend bool operator==(stream_key const&, stream_key const&) = default;
};

enum class stream_kind { standalone, request };

/// A call that is to be made once: a second one with this key gets the outcome of the first.
struct once_key {
    std::string text;
    std::uint64_t fingerprint = 0; ///< of what the call is; the same key with another one is a mistake
};

constexpr std::size_t default_answer_bytes = 900;

/// A request that a stream will answer. A batch has several.
struct expected_request {
    std::string id;                                  ///< JSON text; calls are found by it
    std::size_t answer_bytes = default_answer_bytes; ///< what an answer to it may have in a store that is full
};

/// Who makes a call, for whoever runs it or goes on with it. Never a token: tokens rotate, and open doors.
struct identity {
    std::string principal{};
    std::vector<std::string> scopes{};
    std::string claims{}; ///< JSON text of an object; empty: none

    [[nodiscard]] std::size_t size() const noexcept
    {
        auto bytes = principal.size() + claims.size();
        for (auto const& each : scopes)
            bytes += sizeof(each) + each.size();
        return bytes;
    }
    friend bool operator==(identity const&, identity const&) = default;
};

struct stream_meta {
    stream_kind kind = stream_kind::request;
    std::string dialect; ///< Kept for the runtime: the revision that the stream speaks.
    std::vector<expected_request> requests;
    std::optional<once_key> once{};
    /// Kept for the runtime: what another node needs to end the call, or to run it again.
    std::string call_notes{};
    identity caller{}; ///< Kept for the runtime, and charged to the session.
    /// Names what the call runs, for whoever may run it again; 0: it is not to be run again.
    std::uint64_t work = 0;
    std::size_t held_bytes = 0; ///< what its call keeps in memory until the stream is finished
    /// Refused while another call of the session has one of its ids and no answer, or if two are equal.
    bool has_unique_ids = false;
};

/// `ordinary` events go by retention; a `question` is kept until delivered or blank, a `response` until delivered or
/// the session ends.
enum class event_kind : std::uint8_t { ordinary, question, response };

struct event_data {
    bytes payload;
    event_kind kind = event_kind::ordinary;
    /// Of a response: which of the stream's requests it answers. Of a question: its number, which answers name.
    std::uint32_t number = 0;
    /// Of a question: what the answer to it is kept under until the call is finished, so that another run of the call
    /// need not ask. Null: the answer goes once it was heard.
    bytes key{};
    std::optional<double> progress{}; ///< how far the call says that it is; the highest is kept with the call
};

/// Sequences begin at 1; 0 is the place before the first event.
struct stored_event {
    std::uint64_t sequence = 0;
    std::uint64_t end_offset = 0; ///< Payload bytes of the stream up to and including this event.
    bytes payload;
    event_kind kind = event_kind::ordinary;
};

/// The end of a stream after an append.
struct stream_top {
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
};

struct cursor {
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
};

/// A connection that follows a stream: a number of its node's, and the node's incarnation.
struct reader_id {
    std::string owner;
    std::uint64_t connection = 0;
    friend bool operator==(reader_id const&, reader_id const&) = default;
};

struct reader_mark {
    bool attached = false;
    std::uint64_t position = 0; ///< The last sequence handed to the kernel, or skipped as missing.
    std::uint64_t offset = 0; ///< Payload bytes up to that event.
    std::uint64_t sent = 0; ///< The highest sequence any reader was ever given.
    std::uint64_t given = 0; ///< Events written since the last mark, replayed ones too.
    std::uint64_t delivered = 0; ///< As far as is known to have arrived.
};

struct stream_state {
    stream_top top;
    std::uint64_t first_kept = 1;
    bool finished = false;
    bool session_closed = false; ///< the session is about to go: what is not answered will be, then nothing follows
    reader_mark reader;
};

/// Why a reader has to leave its stream.
enum class dismissal {
    taken_over, ///< a newer reader follows the stream
    over_budget, ///< the session has too many connections
    asked, ///< the call asked for it
    stalled, ///< it held the call up for too long
};

struct dismissed_reader {
    dismissal why = dismissal::taken_over;
    std::optional<std::chrono::milliseconds> retry{}; ///< when its client should come back, if the call said so
};

struct page {
    std::vector<stored_event> events; ///< Oldest first; a jump between sequences is a hole.
    stream_state state;
    std::optional<dismissed_reader> dismissed{}; ///< the reader that asked has to leave after these events
};

struct read_limit {
    std::size_t events = 256;
    std::size_t bytes = 64 * 1024; ///< At least one event is returned even if it is larger.
};

enum class standalone_policy { takeover, conflict };

/// A connection that wants to follow a stream, and what is known of its client.
struct reader_request {
    reader_id id;
    bool can_return = true; ///< the client resumes when its connection ends before its call
    bool is_of_page = false; ///< the request came from a web page; remembered with the session
    std::size_t budget = 64; ///< readers that the session may have, this one included
    std::size_t budget_of_page = 4; ///< the same once a web page has used the session
};

struct attach_request {
    reader_request reader;
    std::optional<cursor> from{}; ///< absent: where the last reader was, or the end (`skips_backlog`)
    bool skips_backlog = false;
    standalone_policy policy = standalone_policy::takeover;
    /// A reader whose connection is known to be broken: taking over from it is no fight between two.
    std::optional<reader_id> broken{};
    bool insists = false; ///< has waited long enough for its predecessor
    bool wants_questions = false; ///< unanswered questions from before the cursor
    read_limit limit{};
};

struct attached_stream {
    stream_kind kind = stream_kind::request;
    std::string dialect;
    bool waits = false; ///< its predecessor is still leaving: attach again when woken, or insist
    bool took_over = false; ///< from a reader that was there
    /// The cursor came from an earlier life of the stream, or showed that this is a new one: reading begins anew.
    bool is_other_epoch = false;
    std::uint64_t start = 0; ///< the first page begins after this sequence
    page first; ///< empty while it waits
    std::vector<bytes> questions;
};

struct session_record {
    session_key key;
    stream_id standalone = 0;
    std::string version;
    std::string client_info; ///< JSON text
    std::string client_capabilities; ///< JSON text
    bool initialized = false;
    int log_level = 0;
    std::uint32_t told_features
        = ~std::uint32_t(0); ///< What its client was told that there is, as bits of the service.
    std::uint64_t revision = 0; ///< Changes are compare-and-set on this number.
    friend bool operator==(session_record const&, session_record const&) = default;
};

using record_ptr = std::shared_ptr<session_record const>;

/// A session that wants to hear of a URI, and the stream on which it does.
struct subscriber {
    session_key session;
    stream_id standalone = 0;
};

/// A session as a listing shows it.
struct listed_session {
    record_ptr record;
    base::duration age{};
    base::duration idle{}; ///< zero while something holds it
    std::size_t readers = 0;
    std::size_t running_calls = 0;
    std::vector<std::string> call_owners; ///< of its running calls, each once
};

struct session_list {
    std::vector<listed_session> sessions; ///< in the order of their names
    std::size_t total = 0; ///< of the store
    bool has_more = false;
};

/// What a pass of the reaper found.
struct expired_sessions {
    std::vector<session_key> removed; ///< idle for too long; every key is gone
    std::vector<session_key> overdue; ///< older than a session may get, and not closed yet
};

using fence = std::uint64_t;

/// A stream that was just made, for the call that owns it.
struct opened_stream {
    store::fence fence = 0;
    std::uint64_t epoch = 0;
    std::optional<stream_id> repeats{}; ///< the stream of the first call with the same once_key
};

/// What must be known to run, cancel or end a call from elsewhere.
struct call_ref {
    stream_key stream;
    std::string owner; ///< node and incarnation; empty: released
    store::fence fence = 0;
    std::uint32_t request = 0; ///< where a call was looked for by a request's id: which of its requests
    std::uint64_t work = 0; ///< as in its meta
};

/// A call that was taken over.
struct claimed_call {
    store::fence fence = 0;
    stream_meta meta;
    stream_top top;
    std::vector<std::uint32_t> unanswered; ///< its requests that have no answer yet
    std::vector<std::pair<std::uint32_t, std::uint64_t>> questions; ///< the open ones: number and sequence
    std::uint32_t attempt = 1; ///< which owner this is, of those that have run it: the one that opened it is the first
    base::duration age{}; ///< since it was opened
    std::uint32_t last_question = 0; ///< the highest number that a question of it had
    std::optional<double> progress{}; ///< how far it said that it was
    std::optional<stream_id> repeats{}; ///< as when it was opened
};

/// A message for whoever runs a call.
struct letter {
    enum class kind : std::uint8_t { answer, cancel, session_ended };
    kind what = kind::answer;
    std::uint32_t number = 0; ///< of the question that is answered, or the request that is cancelled
    std::string body{};
    std::uint64_t order = 0; ///< given by the store: letters to one call, from 1
    std::string key{}; ///< given by the store: of an answer, the key of its question
};

struct limits {
    std::size_t events_per_stream = 1000;
    std::size_t bytes_per_stream = 8u << 20;
    std::size_t streams_per_session = 256;
    std::size_t bytes_per_session = 64u << 20;
    std::size_t bytes_per_principal = 1u << 30;
    std::size_t bytes_total = 1u << 30;
    std::size_t keys_per_session = 1000; ///< once_keys remembered, beside those whose streams are kept
    std::size_t sessions = 100'000;
    std::size_t event_bytes = 4u << 20;
    std::size_t small_records = 100'000;
    base::duration event_age = std::chrono::minutes(10);
    base::duration session_idle = std::chrono::minutes(10);
    base::duration session_lifetime = base::duration::zero(); ///< zero: no limit

    /// How far a call may be ahead of its reader: half of what is kept for it.
    [[nodiscard]] std::uint64_t window_events() const noexcept
    {
        return std::max<std::size_t>(1, events_per_stream / 2);
    }
    [[nodiscard]] std::uint64_t window_bytes() const noexcept { return std::max<std::size_t>(1, bytes_per_stream / 2); }

    /// Final answers may go this far beyond a byte limit: a full store must still end its calls.
    [[nodiscard]] static constexpr std::size_t reserve(std::size_t limit) { return limit / 16; }
};

struct usage {
    std::size_t sessions = 0;
    std::size_t streams = 0;
    std::size_t bytes = 0;
    std::size_t events = 0; ///< only where events are counted one by one
    std::uint64_t pending = 0; ///< of those, kept events that no reader was ever given
};

/// The fourth takeover of a standalone stream from a living reader within this time is refused.
constexpr base::duration takeover_window = std::chrono::seconds(10);
constexpr std::size_t takeovers_per_window = 3;

/// So long a command may come after the one that was made first, or come again.
constexpr base::duration late_command_limit = std::chrono::minutes(1);

/// So long after its time an idle session may still be there, in a store that hears of its use in batches: two of those
/// that the runtime sends.
constexpr base::duration expiry_slack = std::chrono::seconds(60);

/// A session that was closed and not removed, because its node died in between or its calls do not end, goes after this
/// time. Longer than a lost hint is lost: calls elsewhere hear of the end in time to say so.
constexpr base::duration closed_session_limit = std::chrono::seconds(20);

}
