// Tools and their results as the JSON of a revision.
#pragma once

#include "base/log.hpp"
#include "protocol/revision.hpp"

#include <belay/server.hpp>

#include <exception>
#include <string>

namespace belay::detail {

/// The JSON text of a CallToolResult.
[[nodiscard]] std::string render(tool_result const& result, protocol::revision revision);

/// Appends a Tool.
void append_tool(std::string& out, tool_definition const& tool, protocol::revision revision);

/// What the caller is told of the exception being handled: its text if it is a tool_error, a general sentence
/// otherwise, with the text in the log.
[[nodiscard]] tool_result current_failure(base::logger const& log, std::string const& tool);

/// Runs a quick tool; what it throws becomes its result.
template<class F>
auto guard(base::logger const& log, std::string const& tool, F const& run) -> decltype(run())
{
    try {
        return run();
    } catch (...) {
        return current_failure(log, tool);
    }
}

}
