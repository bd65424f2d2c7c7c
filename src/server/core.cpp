#include "server/core.hpp"

#include "protocol/logging.hpp"
#include "protocol/names.hpp"
#include "runtime/node.hpp"
#include "server/call_state.hpp"
#include "server/render.hpp"
#include "json/serialize.hpp"

#include <algorithm>
#include <stdexcept>

namespace belay {

server::server(std::string name, std::string version)
    : core_(std::make_shared<detail::server_core>(std::move(name), std::move(version)))
{
}

server& server::instructions(std::string text)
{
    core_->set_instructions(std::move(text));
    return *this;
}

tool_entry server::add(std::unique_ptr<detail::tool_definition> definition)
{
    return tool_entry(core_->add(std::move(definition)));
}

tool_entry& tool_entry::describe(std::string text)
{
    definition_.description = std::move(text);
    return *this;
}
tool_entry& tool_entry::title(std::string text)
{
    definition_.title = std::move(text);
    return *this;
}
tool_entry& tool_entry::read_only()
{
    definition_.read_only = true;
    return *this;
}
tool_entry& tool_entry::destructive()
{
    definition_.destructive = true;
    return *this;
}
tool_entry& tool_entry::idempotent()
{
    definition_.idempotent = true;
    return *this;
}
tool_entry& tool_entry::closed_world()
{
    definition_.open_world = false;
    return *this;
}
tool_entry& tool_entry::timeout(std::chrono::nanoseconds limit)
{
    if (definition_.quick)
        throw std::invalid_argument("tool " + definition_.name + " cannot wait, so it can have no timeout");
    definition_.timeout = limit;
    return *this;
}
tool_entry& tool_entry::cancel_when_orphaned(std::chrono::nanoseconds limit)
{
    if (definition_.quick)
        throw std::invalid_argument("tool " + definition_.name + " cannot wait, so it can have no orphan limit");
    definition_.orphan_limit = limit;
    return *this;
}
tool_entry& tool_entry::never_wait()
{
    definition_.waits_for_reader = false;
    return *this;
}

}

namespace belay::detail {

namespace {

using protocol::rpc_error;

runtime::outcome refuse(runtime::incoming const& request, rpc_error error)
{
    return runtime::instant_answer{protocol::error_response(request.message.id, error)};
}

std::string_view view(json::string const& text) noexcept
{
    return {text.data(), text.size()};
}

std::string bad_arguments_answer(
    tool_definition const& tool, std::string_view id, decode_error const& error, protocol::revision revision)
{
    auto const text = "Invalid arguments for tool " + tool.name + ": " + error.text();
    if (protocol::reports_bad_arguments_as_result(revision))
        return protocol::result_response(id, render({text, {}, {}, true}, revision));
    return protocol::error_response(id, {protocol::code::invalid_params, text, {}});
}

constexpr std::size_t max_key_bytes = 128;

/// The call's idempotency key, if its caller gave one.
std::expected<std::optional<store::once_key>, std::string>
read_once(protocol::message const& message, json::object const& arguments)
{
    auto const* meta = message.params->if_contains("_meta");
    auto const* given
        = meta && meta->is_object() ? meta->get_object().if_contains(protocol::meta::idempotency_key) : nullptr;
    if (!given)
        return std::nullopt;
    auto const* text = given->if_string();
    if (!text || text->empty() || text->size() > max_key_bytes)
        return std::unexpected(
            std::string(protocol::meta::idempotency_key) + " must be a string of 1 to " + std::to_string(max_key_bytes)
            + " bytes");
    // FNV-1a: the same on every node and in every version.
    auto const called = json_text::to_json(*message.params->if_contains("name")) + json_text::to_json(arguments);
    std::uint64_t fingerprint = 14695981039346656037u;
    for (char const c : called)
        fingerprint = (fingerprint ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return store::once_key{std::string(view(*text)), fingerprint};
}

bool is_name(std::string_view name)
{
    auto const is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'
            || c == '-';
    };
    return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, is_allowed);
}

}

server_core::server_core(std::string name, std::string version) : name_(std::move(name)), version_(std::move(version))
{
}

server_core::~server_core() = default;

tool_definition& server_core::add(std::unique_ptr<tool_definition> tool)
{
    if (!is_name(tool->name))
        throw std::invalid_argument(
            "tool name \"" + tool->name + "\": use 1 to 128 letters, digits, underscores, dots and dashes");
    auto const [place, is_new] = tools_.try_emplace(tool->name);
    if (!is_new)
        throw std::invalid_argument("tool " + tool->name + " is registered twice");
    place->second = std::move(tool);
    in_order_.push_back(place->second.get());
    return *place->second;
}

void server_core::seal()
{
    for (std::size_t i = 0; i < tool_lists_.size(); ++i)
        tool_lists_[i] = list_tools(static_cast<protocol::revision>(i));
}

std::string server_core::list_tools(protocol::revision revision) const
{
    std::string out = R"({"tools":[)";
    for (auto const* tool : in_order_) {
        if (out.back() == '}')
            out += ',';
        append_tool(out, *tool, revision);
    }
    out += "]}";
    return out;
}

std::string server_core::initialize_result(protocol::revision revision) const
{
    std::string out = R"({"protocolVersion":")";
    out += protocol::to_string(revision);
    out += R"(","capabilities":{"logging":{},"tools":{}},"serverInfo":{"name":)";
    json_text::append_json_string(out, name_);
    out += R"(,"version":)";
    json_text::append_json_string(out, version_);
    out += '}';
    if (!instructions_.empty()) {
        out += R"(,"instructions":)";
        json_text::append_json_string(out, instructions_);
    }
    out += '}';
    return out;
}

runtime::outcome server_core::handle(runtime::incoming const& request)
{
    auto const& method = request.message.method;
    if (method == protocol::method::tools_call)
        return call_tool(request);
    if (method == protocol::method::ping)
        return runtime::instant_answer{protocol::result_response(request.message.id, "{}")};
    if (method == protocol::method::tools_list) {
        // One page holds all tools, so the only cursor there could be is one that we never gave.
        if (request.message.params && request.message.params->contains("cursor"))
            return refuse(request, {protocol::code::invalid_params, "Invalid cursor: it is not from this server", {}});
        return runtime::instant_answer{
            protocol::result_response(request.message.id, tool_lists_[static_cast<std::size_t>(request.revision)])};
    }
    if (method == protocol::method::set_level)
        return set_level(request);
    return refuse(request, {protocol::code::method_not_found, "Method not found", {}});
}

runtime::outcome server_core::set_level(runtime::incoming const& request) const
{
    auto const* value = request.message.params ? request.message.params->if_contains("level") : nullptr;
    auto const level = value && value->is_string() ? protocol::parse_level(view(value->get_string())) : std::nullopt;
    if (!level)
        return refuse(
            request,
            {protocol::code::invalid_params,
             "level must be one of debug, info, notice, warning, error, critical, alert, emergency",
             {}});
    return runtime::deferred_answer{[&node = request.node, session = request.session, level = static_cast<int>(*level),
                                     id = request.message.id](std::move_only_function<void(std::string)> answer) {
        node.change(
            session, [level](store::session_record& record) { record.log_level = level; },
            [id, answer = std::move(answer)](result<void> changed) mutable {
                answer(
                    changed ? protocol::result_response(id, "{}")
                            : protocol::error_response(
                                  id, {protocol::code::internal_error, changed.error().message(), {}}));
            });
    }};
}

runtime::outcome server_core::call_tool(runtime::incoming const& request) const
{
    auto const& message = request.message;
    auto const* name = message.params ? message.params->if_contains("name") : nullptr;
    if (!name || !name->is_string())
        return refuse(request, {protocol::code::invalid_params, "params.name must be the name of a tool", {}});
    auto const found = tools_.find(view(name->get_string()));
    if (found == tools_.end())
        return refuse(request, {protocol::code::invalid_params, "Unknown tool; tools/list names those there are", {}});
    auto const& tool = *found->second;

    static json::object const nothing;
    auto const* arguments = &nothing;
    if (auto const* given = message.params->if_contains("arguments")) {
        arguments = given->if_object();
        if (!arguments)
            return refuse(request, {protocol::code::invalid_params, "params.arguments must be an object", {}});
    }
    auto const bad_arguments = [&](decode_error const& error) {
        return runtime::instant_answer{bad_arguments_answer(tool, message.id, error, request.revision)};
    };

    auto once = read_once(message, *arguments);
    if (!once)
        return refuse(request, {protocol::code::invalid_params, once.error(), {}});
    if (tool.quick && *once) {
        // To have an outcome that can be kept, it needs a stream.
        runtime::start_call start;
        start.once = std::move(*once);
        start.traits.is_retry_safe = tool.read_only.value_or(false) || tool.idempotent.value_or(false);
        start.run = [&tool, &node = request.node, revision = request.revision, id = message.id,
                     arguments = json::object(*arguments, json::storage_ptr())](std::shared_ptr<runtime::call> on) {
            auto const result = guard(node.log(), tool.name, [&] { return tool.quick(arguments); });
            on->answer(
                result ? protocol::result_response(id, render(*result, revision))
                       : bad_arguments_answer(tool, id, result.error(), revision));
        };
        return start;
    }

    if (tool.quick) {
        auto const result = guard(request.node.log(), tool.name, [&] { return tool.quick(*arguments); });
        if (!result)
            return bad_arguments(result.error());
        return runtime::instant_answer{protocol::result_response(message.id, render(*result, request.revision))};
    }

    auto ready = tool.waiting(*arguments);
    if (!ready)
        return bad_arguments(ready.error());
    runtime::call_traits traits;
    traits.is_retry_safe = tool.read_only.value_or(false) || tool.idempotent.value_or(false);
    traits.max_duration = tool.timeout;
    traits.orphan_limit = tool.orphan_limit;
    traits.waits_for_reader = tool.waits_for_reader;
    std::string token;
    if (auto const* meta = message.params->if_contains("_meta"); meta && meta->is_object())
        if (auto const* given = meta->get_object().if_contains(protocol::meta::progress_token))
            token = protocol::id_text(*given);
    return runtime::start_call{
        traits,
        [&node = request.node, revision = request.revision, name = tool.name, token,
         run = std::move(*ready)](std::shared_ptr<runtime::call> on) mutable {
            start_tool(node, std::move(on), revision, std::move(name), std::move(token), std::move(run));
        },
        std::move(*once), token};
}

}
