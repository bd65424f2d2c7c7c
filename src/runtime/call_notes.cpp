#include "runtime/call_notes.hpp"

namespace belay::runtime {

namespace {

// One letter for each thing that is not as the defaults say.
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
    return text;
}

call_notes read_call_notes(std::string_view text)
{
    call_notes notes;
    notes.is_tool_call = text.find(no_tool_call) == std::string_view::npos;
    notes.is_retry_safe = text.find(retry_safe) != std::string_view::npos;
    return notes;
}

}
