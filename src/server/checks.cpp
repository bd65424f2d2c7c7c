#include "server/checks.hpp"

#include <stdexcept>
#include <utility>

namespace belay::detail {

namespace {

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

std::expected<void, decode_error> check_arguments(tool_definition const& tool, json::value const& arguments)
{
    if (!tool.input_check)
        return {};
    return tool.input_check->check(arguments);
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
