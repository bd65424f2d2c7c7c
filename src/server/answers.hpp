// Ways to answer a request that the parts of a server share.
#pragma once

#include "protocol/endings.hpp"
#include "protocol/message.hpp"
#include "protocol/names.hpp"
#include "runtime/live_session.hpp"
#include "runtime/node.hpp"
#include "runtime/service.hpp"
#include "server/pages.hpp"
#include "server/registry.hpp"
#include "json/serialize.hpp"

#include <belay/schema.hpp>

#include <string>
#include <string_view>

namespace belay::inline v0::detail {

[[nodiscard]] inline std::string_view view(json::string const& text) noexcept
{
    return {text.data(), text.size()};
}

[[nodiscard]] inline runtime::outcome refuse(runtime::incoming const& request, protocol::rpc_error error)
{
    return runtime::instant_answer{protocol::error_response(request.message.id, error)};
}

[[nodiscard]] inline runtime::outcome give(runtime::incoming const& request, std::string_view result)
{
    return runtime::instant_answer{protocol::result_response(request.message.id, result)};
}

/// In the place of an answer that is larger than an event may be.
[[nodiscard]] inline std::string too_large_answer(runtime::incoming const& request)
{
    bool const is_tool_call = request.message.method == protocol::method::tools_call;
    return protocol::ended_answer({request.message.id, is_tool_call}, protocol::end_reason::result_too_large);
}

/// The node's log, with what the request is on every line.
[[nodiscard]] inline base::logger log_of(runtime::incoming const& request)
{
    auto log = request.node.log();
    if (request.session)
        log = log.with("session", request.session->name);
    return request.trace ? log.with("trace", request.trace->trace_id) : log;
}

/// A member of the params that must be a string; null if it is not.
[[nodiscard]] inline json::string const* text_param(protocol::message const& message, std::string_view name)
{
    auto const* value = message.params ? message.params->if_contains(name) : nullptr;
    return value ? value->if_string() : nullptr;
}

/// One page of a list: `{"<member>":[…],"nextCursor":"…"}`. It ends early where the answer would be larger than an
/// event may be.
template<class T>
[[nodiscard]] runtime::outcome
list_page(runtime::incoming const& request, std::string_view member, registry<T> const& things, std::size_t page_size)
{
    auto const snapshot = things.now();
    auto const& all = snapshot->in_order;
    std::size_t from = 0;
    auto const* given = request.message.params ? request.message.params->if_contains("cursor") : nullptr;
    if (given && !given->is_null()) { // null is its absence, as for a tool's optional arguments
        auto const* text = given->if_string();
        auto const at = text ? parse_cursor(member, view(*text)) : std::nullopt;
        if (!at)
            return refuse(request, {protocol::code::invalid_params, "Invalid cursor: it is not from this list", {}});
        // Where it was, unless something before it came or went.
        auto const is_there = [&](std::size_t index) {
            return index > 0 && index <= all.size() && all[index - 1]->as.key == at->after;
        };
        from = std::min(at->index, all.size());
        if (!is_there(from))
            for (std::size_t i = 1; i <= all.size(); ++i)
                if (is_there(i))
                    from = i;
    }
    constexpr std::size_t around = 1024; // the response around the page, with a cursor
    auto const most = request.node.settings().limits.event_bytes;
    auto end = page_size == 0 ? all.size() : std::min(all.size(), from + page_size);
    std::string out = "{\"";
    out += member;
    out += "\":[";
    for (auto i = from; i < end; ++i) {
        auto const& text = all[i]->as.texts[static_cast<std::size_t>(request.revision)];
        if (i > from && out.size() + text.size() + request.message.id.size() + around > most) {
            end = i;
            break;
        }
        if (i > from)
            out += ',';
        out += text;
    }
    out += ']';
    if (end < all.size()) {
        out += ",\"nextCursor\":\"";
        out += to_cursor(member, {end, all[end - 1]->as.key});
        out += '"';
    }
    out += '}';
    return give(request, out);
}

/// The texts of a listed thing for all revisions.
template<class F>
[[nodiscard]] std::vector<std::string> texts_by_revision(F const& append)
{
    std::vector<std::string> texts;
    for (auto const each : protocol::revisions) {
        std::string text;
        append(text, each);
        texts.push_back(std::move(text));
    }
    return texts;
}

}
