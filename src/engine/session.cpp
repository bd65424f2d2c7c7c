#include "engine/session.hpp"

#include <algorithm>
#include <utility>

namespace belay::engine {

attach_decision
session::attach(attach_request const& request, base::time_point now, std::function<bool(connection_id)> const& is_gone)
{
    auto const refuse = [](attach_verdict verdict) { return attach_decision{verdict, {}, {}, false}; };
    if (is_ended_)
        return refuse(attach_verdict::ended);
    attach_decision decision;
    bool is_counted = false;
    auto const current = std::ranges::find_if(
        attached_, [&](attachment const& each) { return each.stream == request.stream && !each.is_leaving; });
    if (current != attached_.end()) {
        if (request.kind == store::stream_kind::standalone && !is_gone(current->connection)) {
            if (request.policy == standalone_policy::conflict)
                return refuse(attach_verdict::conflict);
            std::erase_if(takeovers_, [&](base::time_point at) { return at + takeover_window <= now; });
            if (takeovers_.size() >= takeovers_per_window)
                return refuse(attach_verdict::conflict);
            is_counted = true;
        }
        decision.displaced = current->connection;
        current->is_leaving = true;
    }
    decision.waits = std::ranges::find(attached_, request.stream, &attachment::stream) != attached_.end();
    auto const staying = static_cast<std::size_t>(
        std::ranges::count_if(attached_, [](attachment const& each) { return !each.is_leaving; }));
    if (staying + 1 > request.budget) {
        auto const oldest = std::ranges::find_if(attached_, [](attachment const& each) {
            return !each.is_leaving && each.can_return && each.kind == store::stream_kind::request;
        });
        if (oldest != attached_.end()) {
            oldest->is_leaving = true;
            decision.closed = oldest->connection;
        } else if (request.is_new_call) {
            return refuse(attach_verdict::over_budget);
        }
    }
    if (is_counted)
        takeovers_.push_back(now);
    attached_.push_back({request.connection, request.stream, request.kind, request.can_return, false});
    note_activity(now);
    return decision;
}

std::optional<connection_id> session::detach(connection_id connection)
{
    auto const gone = std::ranges::find(attached_, connection, &attachment::connection);
    if (gone == attached_.end())
        return std::nullopt;
    auto const stream = gone->stream;
    bool const was_first = std::ranges::find(attached_, stream, &attachment::stream) == gone;
    attached_.erase(gone);
    if (!was_first)
        return std::nullopt;
    auto const next = std::ranges::find(attached_, stream, &attachment::stream);
    return next == attached_.end() ? std::nullopt : std::optional(next->connection);
}

std::optional<connection_id> session::follower_of(store::stream_id stream) const noexcept
{
    for (auto const& each : attached_)
        if (each.stream == stream && !each.is_leaving)
            return each.connection;
    return std::nullopt;
}

void session::stay(connection_id connection) noexcept
{
    auto const found = std::ranges::find(attached_, connection, &attachment::connection);
    if (found == attached_.end())
        return;
    // Unless its stream has been taken over meanwhile.
    bool const is_followed = follower_of(found->stream).has_value();
    found->is_leaving = is_followed;
}

void session::inbound_began(base::time_point now) noexcept
{
    ++inbound_;
    note_activity(now);
}

void session::inbound_ended(base::time_point now) noexcept
{
    --inbound_;
    note_activity(now);
}

bool session::end_if_idle(base::time_point now, base::duration idle_limit) noexcept
{
    if (is_ended_ || is_held() || last_activity_ + idle_limit > now)
        return false;
    is_ended_ = true;
    return true;
}

}
