// The connections of this node: which follows which stream, how they are primed, and how they are closed. Who of them
// has to make room for whom is decided in the store.
#pragma once

#include "engine/cursor.hpp"
#include "protocol/revision.hpp"
#include "runtime/context.hpp"
#include "runtime/following.hpp"
#include "runtime/live_session.hpp"
#include "runtime/session_table.hpp"

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace belay::runtime {

/// Where a request came from: decides how many connections its session may have, and how they are primed.
enum class caller {
    program,
    browser, ///< shares six connections per origin
    pipe,    ///< one connection for everything, without event ids
};

/// Why a stream cannot be followed.
enum class follow_refusal {
    bad_cursor,     ///< 400: not a cursor of this session's streams, or its stream is no longer kept
    nothing_left,   ///< 204: the stream is finished and the cursor is at its end
    conflict,       ///< 409: the standalone stream has a reader, or changes hands too often
    session_gone,   ///< 404
    unavailable,    ///< 503
};

struct follow_request {
    std::optional<std::string_view> last_event_id;
    caller from = caller::program;
};

class attachments {
public:
    attachments(node_context& context, session_table& table) : context_(context), table_(table) {}

    using followed = std::move_only_function<void(std::expected<std::shared_ptr<following>, follow_refusal>)>;
    /// Follows the stream that the cursor names, or the standalone stream.
    void follow(session_use const& use, base::loop& loop, follow_request request, followed done);

    /// What the store is told of the connection of a new call.
    [[nodiscard]] store::reader_request reader_for(protocol::revision revision, caller from);
    /// That connection, once the store has taken it.
    [[nodiscard]] std::shared_ptr<following> follow_new(
        std::shared_ptr<live_session> const& session, base::loop& loop, store::reader_request const& reader,
        store::stream_id stream, std::uint64_t epoch, protocol::revision revision, caller from);

    /// Closes every connection once it has written what it has. From any thread.
    void close_all(engine::close_reason reason);

private:
    /// A connection that asks for a stream.
    struct coming {
        std::shared_ptr<live_session> session;
        base::loop& loop;
        store::stream_id stream;
        caller from;
        protocol::revision revision;
        std::optional<engine::position> cursor;
        followed done;
        bool is_standalone = true;
    };
    void attach(coming one);
    void attached_to(std::shared_ptr<following> const& fresh, coming const& one);
    [[nodiscard]] priming_style style_of(protocol::revision revision, caller from) const noexcept;
    [[nodiscard]] store::reader_request request_for(bool can_return, caller from);
    void keep(std::shared_ptr<following> const& fresh, live_session& session);

    node_context& context_;
    session_table& table_;
};

}
