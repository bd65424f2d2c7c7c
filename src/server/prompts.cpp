#include "server/prompts.hpp"

#include "runtime/node.hpp"
#include "server/answers.hpp"
#include "server/call_state.hpp"
#include "server/content.hpp"
#include "server/render.hpp"

#include <algorithm>
#include <stdexcept>

namespace belay::inline v0::detail {

namespace {

void append_prompt(std::string& out, prompt_definition const& what, protocol::revision revision)
{
    json::object object;
    object["name"] = what.name;
    if (!what.title.empty() && protocol::facts_of(revision).has_titles)
        object["title"] = what.title;
    if (!what.description.empty())
        object["description"] = what.description;
    if (!what.arguments.empty()) {
        auto& list = object["arguments"].emplace_array();
        for (auto const& each : what.arguments) {
            json::object argument;
            argument["name"] = each.name;
            if (!each.description.empty())
                argument["description"] = each.description;
            argument["required"] = each.is_required;
            list.push_back(std::move(argument));
        }
    }
    add_icons_and_meta(object, what.icons, what.meta, revision);
    json_text::append_json(out, object);
}

std::string render_prompt(prompt_result const& result, prompt_definition const& what, protocol::revision revision)
{
    json::object object;
    if (auto const& text = result.description.empty() ? what.description : result.description; !text.empty())
        object["description"] = text;
    auto& messages = object["messages"].emplace_array();
    for (auto const& each : result.messages) {
        json::object message;
        message["role"] = each.from == role::user ? "user" : "assistant";
        message["content"] = block_for(each.content, revision);
        messages.push_back(std::move(message));
    }
    if (!result.meta.empty())
        object["_meta"] = result.meta;
    return json_text::to_json(object);
}

}

void prompt_catalogue::check(prompt_definition const& fresh) const
{
    if (fresh.name.empty())
        throw std::invalid_argument("a prompt needs a name");
    if (find(fresh.name))
        throw std::invalid_argument("prompt " + fresh.name + " is registered twice");
}

void prompt_catalogue::add(std::shared_ptr<prompt_definition const> fresh)
{
    listed as{fresh->name, texts_by_revision([&](std::string& out, protocol::revision revision) {
                  append_prompt(out, *fresh, revision);
              })};
    if (!prompts_.add(fresh, std::move(as)))
        throw std::invalid_argument("prompt " + fresh->name + " is registered twice");
}

bool prompt_catalogue::has_completers() const
{
    return std::ranges::any_of(
        prompts_.now()->in_order, [](auto const& each) { return !each->what->completers.empty(); });
}

runtime::outcome prompt_catalogue::list(runtime::incoming const& request, std::size_t page_size) const
{
    return list_page(request, "prompts", prompts_, page_size);
}

std::shared_ptr<prompt_definition const> prompt_catalogue::find(protocol::message const& request) const
{
    auto const* const name = text_param(request, "name");
    return name ? find(view(*name)) : nullptr;
}

runtime::outcome
prompt_catalogue::get(runtime::incoming const& request, std::shared_ptr<prompt_definition const> const& what) const
{
    if (!what)
        return refuse(
            request, {protocol::code::invalid_params, "Unknown prompt; prompts/list names those there are", {}});
    static json::object const nothing;
    auto const* arguments = &nothing;
    if (auto const* given = request.message.params->if_contains("arguments")) {
        arguments = given->if_object();
        if (!arguments)
            return refuse(request, {protocol::code::invalid_params, "params.arguments must be an object", {}});
    }
    for (auto const& each : *arguments)
        if (!each.value().is_string())
            return refuse(
                request,
                {protocol::code::invalid_params,
                 "Invalid arguments for prompt " + what->name + ": /" + std::string(each.key()) + ": expected string",
                 {}});
    auto const bad_arguments = [&](decode_error const& error) {
        return refuse(
            request,
            {protocol::code::invalid_params, "Invalid arguments for prompt " + what->name + ": " + error.text(), {}});
    };
    auto const failed = [what](base::logger const& log) {
        return read_failure(
            log, "prompt " + what->name, {protocol::code::invalid_params, "There is nothing for these arguments", {}});
    };
    if (what->get.quick) {
        auto const facts = facts_of(request);
        try {
            auto const result = what->get.quick(access::make<caller>(facts), *arguments);
            if (!result)
                return bad_arguments(result.error());
            return give(request, render_prompt(*result, *what, request.revision));
        } catch (...) {
            return refuse(request, failed(log_of(request)));
        }
    }
    auto work = what->get.waiting(*arguments);
    if (!work)
        return bad_arguments(work.error());
    runtime::start_call start;
    start.traits.is_tool_call = false;
    start.traits.is_retry_safe = true;
    start.progress_token = progress_token_of(request.message);
    start.run = [&node = request.node, context = context_of(request), id = request.message.id, what, failed,
                 revision = request.revision, work = std::move(*work)](std::shared_ptr<runtime::call> on) mutable {
        start_work<prompt_result>(
            node, std::move(on), std::move(context), std::move(work),
            [id, what, revision](prompt_result const& result) {
                return protocol::result_response(id, render_prompt(result, *what, revision));
            },
            [id, failed](base::logger const& log) { return protocol::error_response(id, failed(log)); });
    };
    return start;
}

}
