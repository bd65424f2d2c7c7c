// The words of the store: keys, events, cursors, pages. Plain values without I/O, so that the engine
// can use them. The store keeps keys, bytes and time; what the bytes mean is not its business.
#pragma once

#include "base/clock.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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

struct stream_meta {
    stream_kind kind = stream_kind::request;
    std::string tag;   ///< Kept for the engine: the revision that the stream speaks.
    std::string label; ///< The ids of its requests as JSON text, one per line; calls are found by them.
    std::optional<once_key> once{};
    /// For each line of the label, the bytes that an answer to it may have in a store that is full. Lines without a
    /// number have `default_answer_bytes`.
    std::vector<std::size_t> answer_bytes{};
    std::size_t held_bytes = 0; ///< what its call keeps in memory until the stream is finished
    bool has_unique_ids
        = false; ///< refused while another call of the session has one of its ids and no answer, or if two are equal
};

constexpr std::size_t default_answer_bytes = 900;

/// `ordinary` events go by retention; a `question` is kept until delivered or blank, a `response` until delivered or
/// the session ends.
enum class event_kind : std::uint8_t { ordinary, question, response };

struct event_data {
    bytes payload;
    event_kind kind = event_kind::ordinary;
    std::uint32_t line = 0; ///< of a response: which line of the stream's label it answers
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
    reader_mark reader;
};

struct page {
    std::vector<stored_event> events; ///< Oldest first; a jump between sequences is a hole.
    stream_state state;
};

struct read_limit {
    std::size_t events = 256;
    std::size_t bytes = 64 * 1024; ///< At least one event is returned even if it is larger.
};

struct session_record {
    session_key key;
    stream_id standalone = 0;
    std::string version;
    std::string client_info; ///< JSON text
    std::string client_capabilities; ///< JSON text
    bool initialized = false;
    int log_level = 0;
    std::uint32_t offers = ~std::uint32_t(0); ///< What its client was told that there is; the service knows the bits.
    std::uint64_t revision = 0; ///< Changes are compare-and-set on this number.
};

/// A session that wants to hear of a URI, and the stream on which it does.
struct subscriber {
    session_key session;
    stream_id standalone = 0;
};

/// Whether a session may expire: `held` while it has a connection, a running call or inbound traffic.
enum class presence { idle, held };

using fence = std::uint64_t;

/// A stream that was just made, for the call that owns it.
struct opened_stream {
    store::fence fence = 0;
    std::uint64_t epoch = 0;
    std::optional<stream_id> twin{}; ///< the stream of the first call with the same once_key
};

/// What must be known to run, cancel or end a call from elsewhere.
struct call_ref {
    stream_key stream;
    std::string owner; ///< node and incarnation
    std::string label;
};

/// A call that was taken over.
struct claimed_call {
    store::fence fence = 0;
    std::vector<std::uint32_t> unanswered; ///< the lines of its label that have no answer yet
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
    base::duration event_age = std::chrono::minutes(10);
    base::duration session_idle = std::chrono::minutes(10);

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

}
