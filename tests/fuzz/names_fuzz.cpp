// Small texts that clients choose: URIs for templates, list cursors, trace contexts. Any text is read or refused
// without harm. Input: two lines; the first also makes a template, the second a URI for it.
#include "protocol/trace_context.hpp"
#include "server/pages.hpp"
#include "server/uri_template.hpp"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace belay;

void require(bool holds)
{
    if (!holds)
        std::abort();
}

void match(std::string_view pattern, std::string_view uri)
{
    try {
        detail::uri_template const made(pattern);
        if (auto const values = made.match(uri))
            require(values->size() == made.variables().size());
    } catch (std::invalid_argument const&) {
    }
}

}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const first = text.substr(0, text.find('\n'));
    auto const second = text.substr(std::min(first.size() + 1, text.size()));
    match(first, second);
    match("notes://{id}/part/{+rest}", second);

    if (auto const at = detail::parse_cursor("tools", first)) {
        require(detail::to_cursor("tools", *at) == first);
    }
    detail::place const made{size, std::string(first)};
    auto const read = detail::parse_cursor("tools", detail::to_cursor("tools", made));
    require(first.size() > 7900 || (read && read->index == made.index && read->after == made.after));
    require(!detail::parse_cursor("prompts", detail::to_cursor("tools", made)));

    if (auto const trace = protocol::trace_context_of(nullptr, first, second))
        require(trace->trace_id.size() == 32 && trace->parent_id.size() == 16);
    return 0;
}
