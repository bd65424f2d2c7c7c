#include "runtime/call_notes.hpp"

#include <charconv>

namespace belay::runtime {

namespace {

// One letter for each thing that is not as the defaults say. In the lines below, if it may be run again: its time, and
// the request as JSON text, which has no line breaks.
constexpr char no_tool_call = 'm';
constexpr char retry_safe = 's';

}

std::string to_text(call_notes const& notes)
{
    std::string text;
    if (!notes.is_tool_call)
        text += no_tool_call;
    if (notes.is_retry_safe)
        text += retry_safe;
    if (notes.request.empty())
        return text;
    text += '\n' + std::to_string(notes.time.count()) + '\n';
    return text + notes.request;
}

call_notes read_call_notes(std::string_view text)
{
    call_notes notes;
    auto const end_of_flags = text.find('\n');
    auto const flags = text.substr(0, end_of_flags);
    notes.is_tool_call = flags.find(no_tool_call) == std::string_view::npos;
    notes.is_retry_safe = flags.find(retry_safe) != std::string_view::npos;
    if (end_of_flags == std::string_view::npos)
        return notes;
    auto const rest = text.substr(end_of_flags + 1);
    auto const end_of_time = rest.find('\n');
    base::duration::rep time = 0;
    auto const read = std::from_chars(rest.data(), rest.data() + std::min(end_of_time, rest.size()), time);
    if (end_of_time == std::string_view::npos || read.ec != std::errc() || read.ptr != rest.data() + end_of_time)
        return notes;
    notes.time = base::duration(time);
    notes.request = rest.substr(end_of_time + 1);
    return notes;
}

}
