// Event ids: the outside form of a position in a stream, `<stream>.<epoch>.<sequence>[~<nonce>]` in
// base62, at most 64 bytes. Opaque to clients; meaningful only inside the session it was made in.
#pragma once

#include "store/types.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace belay::engine {

struct position {
    store::stream_id stream = 0;
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    friend bool operator==(position const&, position const&) = default;
};

constexpr std::size_t max_event_id_bytes = 64;

/// Writes "<stream>.<epoch>." once, so that each event only adds its sequence.
class event_ids {
public:
    event_ids(store::stream_id stream, std::uint64_t epoch);
    void append(std::string& out, std::uint64_t sequence) const;
    /// The nonce keeps repeated ids of one position apart; it is ignored on reading.
    void append(std::string& out, std::uint64_t sequence, std::uint64_t nonce) const;

private:
    std::string prefix_;
};

/// The id of a request to the client: its stream and its number there, as a JSON string's content.
struct question_id {
    store::stream_id stream = 0;
    std::uint64_t number = 0;
    friend bool operator==(question_id const&, question_id const&) = default;
};
[[nodiscard]] std::string to_string(question_id const& id);
[[nodiscard]] std::optional<question_id> parse_question_id(std::string_view text) noexcept;

[[nodiscard]] std::string to_event_id(position const& at);
/// Nothing for text that this program cannot have written.
[[nodiscard]] std::optional<position> parse_event_id(std::string_view text) noexcept;

}
