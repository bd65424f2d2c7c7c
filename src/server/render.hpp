// Tools and their results as the JSON of a revision.
#pragma once

#include "base/log.hpp"
#include "protocol/message.hpp"
#include "protocol/revision.hpp"

#include <belay/server.hpp>

#include <exception>
#include <string>

namespace belay::inline v0::detail {

/// The JSON text of a CallToolResult.
[[nodiscard]] std::string render(tool_result const& result, protocol::revision revision);
/// The whole response with it.
[[nodiscard]] std::string result_answer(std::string_view id, tool_result const& result, protocol::revision revision);

/// Appends a Tool.
void append_tool(std::string& out, tool_definition const& tool, protocol::revision revision);

/// Adds icons and `_meta` to a listed thing, where the revision has them.
void add_icons_and_meta(
    json::object& to, std::vector<icon> const& icons, json::object const& meta, protocol::revision revision);

/// The response of a tool that threw: of the exception being handled. `capabilities` are the client's, as JSON text.
[[nodiscard]] std::string failed_answer(
    base::logger const& log, std::string const& tool, std::string_view id, protocol::revision revision,
    std::string_view capabilities);

/// Whether the client has said that it can do this; "sampling/tools" is the member of a member.
[[nodiscard]] bool has_capability(std::string_view capabilities, std::string_view name);

/// The error of a resource or prompt that threw: `missing` for not_found, of the exception being handled.
[[nodiscard]] protocol::rpc_error
read_failure(base::logger const& log, std::string const& name, protocol::rpc_error missing);

/// What the caller is told of the exception being handled: its text if it is a tool_error, a general sentence
/// otherwise, with the text in the log.
[[nodiscard]] tool_result current_failure(base::logger const& log, std::string const& tool);

}
