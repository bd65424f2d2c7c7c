// Tools with schemas of their author's own: arguments and results against them.
#pragma once

#include "json/schema_check.hpp"

#include <belay/server.hpp>

#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace belay::inline v0::detail {

/// A tool's schema, ready for use; `which` is "input" or "output". Throws std::invalid_argument if it cannot be used.
[[nodiscard]] std::shared_ptr<schema_check const> check_of(
    std::string const& tool, std::string_view which, json::object const& schema,
    std::shared_ptr<schema_limits const> limits);

/// The arguments that fit the tool's own schema: those given, which are an object, or the same in `instead` without
/// nulls. Clients in strict modes send null for what they leave out: it is left out where the schema names the member,
/// does not require it, and takes no null there. Without a schema of its own, everything is good: the codec has the
/// say.
[[nodiscard]] std::expected<json::object const*, decode_error>
check_arguments(tool_definition const& tool, json::value const& given, json::value& instead);

/// Throws std::runtime_error if the result is not what the schema, if there is one, promises.
void require_output(schema_check const* schema, tool_result const& result);

/// The function with require_output() on what it returns.
[[nodiscard]] waiting_call with_output_check(tool_definition const& tool, waiting_call run);
[[nodiscard]] blocking_work with_output_check(tool_definition const& tool, blocking_work run);

}
