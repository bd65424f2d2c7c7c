#include "runtime/call_notes.hpp"

#include <charconv>

namespace belay::runtime {

namespace {

// The first line has for each request, ended by a comma, one letter for each thing that is not as the defaults say. The
// second has the time, and the rest is the request as JSON text, which has no line breaks.
constexpr char no_tool_call = 'm';
constexpr char retry_safe = 's';
constexpr char end_of_request = ',';

std::vector<request_kind> read_kinds(std::string_view line)
{
    std::vector<request_kind> kinds;
    for (auto end = line.find(end_of_request); end != std::string_view::npos; end = line.find(end_of_request)) {
        auto const letters = line.substr(0, end);
        kinds.push_back({!letters.contains(no_tool_call), letters.contains(retry_safe)});
        line.remove_prefix(end + 1);
    }
    return kinds;
}

}

std::string to_text(call_notes const& notes)
{
    std::string text;
    for (auto const& each : notes.requests) {
        if (!each.is_tool_call)
            text += no_tool_call;
        if (each.is_retry_safe)
            text += retry_safe;
        text += end_of_request;
    }
    return text + '\n' + std::to_string(notes.time.count()) + '\n' + notes.request;
}

call_notes read_call_notes(std::string_view text)
{
    call_notes notes;
    auto const end_of_kinds = std::min(text.find('\n'), text.size());
    notes.requests = read_kinds(text.substr(0, end_of_kinds));
    text.remove_prefix(std::min(end_of_kinds + 1, text.size()));
    auto const end_of_time = text.find('\n');
    base::duration::rep time = 0;
    auto const read = std::from_chars(text.data(), text.data() + std::min(end_of_time, text.size()), time);
    if (end_of_time == std::string_view::npos || read.ec != std::errc() || read.ptr != text.data() + end_of_time)
        return notes;
    notes.time = base::duration(time);
    notes.request = text.substr(end_of_time + 1);
    return notes;
}

}
