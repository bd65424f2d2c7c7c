#include "protocol/endings.hpp"

#include "protocol/message.hpp"
#include "protocol/names.hpp"
#include "json/serialize.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace belay::protocol {

std::string_view to_string(end_reason reason) noexcept
{
    switch (reason) {
    case end_reason::cancelled: return "cancelled";
    case end_reason::orphaned: return "orphaned";
    case end_reason::timed_out: return "timed_out";
    case end_reason::interrupted: return "interrupted";
    case end_reason::owner_lost: return "owner_lost";
    case end_reason::session_ended: return "session_ended";
    case end_reason::result_too_large: return "result_too_large";
    case end_reason::overloaded: return "overloaded";
    }
    return "?";
}

namespace {

std::string_view happened(end_reason reason) noexcept
{
    switch (reason) {
    case end_reason::cancelled: return "The call was cancelled by its caller.";
    case end_reason::orphaned:
        return "Nobody was connected to the call for as long as the tool allows, so it was stopped; what it did is not "
               "known.";
    case end_reason::timed_out: return "The tool took longer than it may and was stopped; what it did is not known.";
    case end_reason::interrupted: return "The server stopped while the tool was running; what it did is not known.";
    case end_reason::owner_lost: return "The server that ran the tool was lost; what it did is not known.";
    case end_reason::session_ended: return "The session ended while the call was running.";
    case end_reason::result_too_large:
        return "The tool finished, but its result is larger than this server passes on. Ask for less.";
    case end_reason::overloaded: return "The server is busy; the tool was not started.";
    }
    return "";
}

std::string_view happened_before_start(end_reason reason) noexcept
{
    switch (reason) {
    case end_reason::orphaned: return "Nobody was connected to the call while it waited; the tool was not started.";
    case end_reason::timed_out: return "The call waited for its turn for as long as it may; the tool was not started.";
    case end_reason::interrupted: return "The server stopped before the tool was started.";
    default: return happened(reason);
    }
}

}

std::string ended_answer(ended_request const& request, end_reason reason)
{
    bool const has_started = request.has_started && reason != end_reason::overloaded;
    bool const is_retryable = (request.is_retry_safe || !has_started) && reason != end_reason::cancelled
        && reason != end_reason::result_too_large && reason != end_reason::session_ended;
    bool const is_large_answer = !request.is_tool_call && reason == end_reason::result_too_large;
    auto const what = is_large_answer ? "The answer is larger than this server passes on."
        : has_started                 ? happened(reason)
                                      : happened_before_start(reason);
    auto const ended = fmt::format(R"({{"reason":"{}","retryable":{}}})", to_string(reason), is_retryable);
    bool const is_result
        = request.is_tool_call && reason != end_reason::cancelled && reason != end_reason::session_ended;
    if (!is_result) {
        auto const number = reason == end_reason::cancelled ? code::cancelled : code::internal_error;
        return error_response(request.id, {number, std::string(what), ended});
    }
    std::string text(what);
    if (reason != end_reason::result_too_large)
        text
            += is_retryable ? " It is safe to call it again." : " Calling it again may do the work twice; check first.";
    std::string result = R"({"content":[{"type":"text","text":)";
    json_text::append_json_string(result, text);
    result += R"(}],"isError":true,"_meta":{"belay/ended":)";
    result += ended;
    result += "}}";
    return result_response(request.id, result);
}

std::size_t longest_ended_answer(std::string_view id)
{
    static std::size_t const without_id = [] {
        std::size_t longest = 0;
        for (auto reason = end_reason::cancelled; reason <= end_reason::overloaded;
             reason = static_cast<end_reason>(static_cast<int>(reason) + 1))
            for (bool const is_tool_call : {false, true})
                for (bool const is_retry_safe : {false, true})
                    for (bool const has_started : {false, true})
                        longest = std::max(
                            longest, ended_answer({"", is_tool_call, is_retry_safe, has_started}, reason).size());
        return longest;
    }();
    return without_id + id.size();
}

std::string_view spent_key_text() noexcept
{
    return "The call with this idempotency key was made, and its outcome is no longer kept. Check what it did; use a "
           "new "
           "key to make it again.";
}

std::string gap_notice(std::uint64_t from, std::uint64_t to, bool restarted)
{
    // A restarted log says so; its numbers speak of the new one only.
    auto const missed = to + 1 - from;
    return notification(
        method::message,
        fmt::format(
            R"({{"level":"warning","logger":"resumability","data":{{"missed":{},"from":{},"to":{}{}}}}})", missed, from,
            to, restarted ? R"(,"restarted":true)" : ""));
}

std::string rerun_notice(std::uint32_t attempt, end_reason why)
{
    return notification(
        method::message,
        fmt::format(
            R"({{"level":"warning","logger":"belay","data":{{"rerun":{},"reason":"{}"}}}})", attempt, to_string(why)));
}

}
