#include "server/checks.hpp"

#include "json/values.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace belay::inline v0::detail {

namespace {

/// The member at that place, if it is null and the schema of the whole names it without requiring it.
std::optional<std::string_view>
null_to_leave_out(json::object const& schema, json::object const& arguments, std::string_view path)
{
    auto const* const properties = schema.if_contains("properties");
    auto const* const required = schema.if_contains("required");
    if (!properties || !properties->is_object())
        return std::nullopt;
    for (auto const& [name, value] : arguments)
        if (value.is_null() && pointer_step(view(name)) == path) {
            bool const is_required = required && required->is_array()
                && std::ranges::find(required->get_array(), json::value(name)) != required->get_array().end();
            return !is_required && properties->get_object().contains(name) ? std::optional(view(name)) : std::nullopt;
        }
    return std::nullopt;
}

task<tool_result> run_checked(std::shared_ptr<schema_check const> schema, task<tool_result> running)
{
    tool_result result = co_await std::move(running);
    require_output(schema.get(), result);
    co_return result;
}

}

std::shared_ptr<schema_check const> check_of(
    std::string const& tool, std::string_view which, json::object const& schema,
    std::shared_ptr<schema_limits const> limits)
{
    auto const named = "tool " + tool + ", " + std::string(which) + " schema: ";
    // Clients refuse a whole list in which one schema has another type.
    auto const* const type = schema.if_contains("type");
    if (!type || *type != "object")
        throw std::invalid_argument(named + "/type: must be \"object\"");
    try {
        return std::make_shared<schema_check const>(schema, std::move(limits));
    } catch (std::invalid_argument const& error) {
        throw std::invalid_argument(named + error.what());
    }
}

std::expected<json::object const*, decode_error>
check_arguments(tool_definition const& tool, json::value const& given, json::value& instead)
{
    auto const* fitting = &given;
    while (tool.input_check) {
        auto checked = tool.input_check->check(*fitting);
        if (checked)
            break;
        auto const at = null_to_leave_out(tool.input_schema, fitting->get_object(), checked.error().path);
        if (!at)
            return std::unexpected(std::move(checked).error());
        auto const name = std::string(*at);
        if (fitting == &given)
            instead = given;
        fitting = &instead;
        instead.get_object().stable_erase(name);
    }
    return &fitting->get_object();
}

void require_output(schema_check const* schema, tool_result const& result)
{
    if (!schema || result.is_error)
        return;
    if (!result.structured)
        throw std::runtime_error("it has an output schema and gave no structured content");
    auto const checked = schema->check(*result.structured);
    if (!checked)
        throw std::runtime_error("its structured content does not fit its output schema: " + checked.error().text());
}

waiting_call with_output_check(tool_definition const& tool, waiting_call run)
{
    if (!tool.output_check)
        return run;
    return
        [schema = tool.output_check, run = std::move(run)](call& on) mutable { return run_checked(schema, run(on)); };
}

blocking_work with_output_check(tool_definition const& tool, blocking_work run)
{
    if (!tool.output_check)
        return run;
    return [schema = tool.output_check, run = std::move(run)](blocking_call& on) mutable {
        auto result = run(on);
        require_output(schema.get(), result);
        return result;
    };
}

}
