// What a tool asks of its caller's client. A question is an event on the call's stream; its answer comes as a
// request of its own, on any connection, to any node.
#include "protocol/message.hpp"
#include "protocol/names.hpp"
#include "runtime/node.hpp"
#include "server/call_state.hpp"
#include "server/content.hpp"
#include "server/render.hpp"
#include "json/parse.hpp"
#include "json/schema_check.hpp"
#include "json/serialize.hpp"

#include <algorithm>

namespace belay::inline v0 {

namespace {

std::string text_of(json::object const& in, std::string_view name)
{
    auto const* value = in.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

action action_of(json::object const& result)
{
    auto const text = text_of(result, "action");
    if (text == "accept")
        return action::accepted;
    if (text == "decline")
        return action::declined;
    if (text == "cancel")
        return action::cancelled;
    detail::throw_bad_answer({"/action", "expected accept, decline or cancel"});
}

/// Clients before 2025-11-25 know one block per message: several become several messages of the same role.
json::array sampling_messages(std::vector<sampling_message> const& given, protocol::revision revision)
{
    json::array messages;
    for (auto const& each : given) {
        auto blocks = detail::sampling_blocks(each.content, revision);
        if (!blocks)
            throw tool_error(blocks.error());
        json::object message;
        message["role"] = each.from == role::user ? "user" : "assistant";
        if (each.content.is_array() && protocol::facts_of(revision).has_several_blocks) {
            message["content"] = json::array(blocks->begin(), blocks->end());
            messages.push_back(std::move(message));
            continue;
        }
        for (auto& block : *blocks) {
            message["content"] = std::move(block);
            messages.push_back(message);
        }
    }
    return messages;
}

/// `oneOf` with a title for each value, as clients of 2025-06-18 have it.
void name_values(json::object& field)
{
    auto const* choices = field.if_contains("oneOf");
    if (!choices || !choices->is_array())
        return;
    json::array values;
    json::array names;
    for (auto const& each : choices->get_array()) {
        auto const* choice = each.if_object();
        auto const* value = choice ? choice->if_contains("const") : nullptr;
        if (!value)
            return;
        auto const* title = choice->if_contains("title");
        values.push_back(*value);
        names.push_back(title ? *title : *value);
    }
    field.erase("oneOf");
    field["enum"] = std::move(values);
    field["enumNames"] = std::move(names);
}

/// The schema as clients of the revision understand it: 2025-06-18 has defaults for booleans only, names values in
/// another way, and cannot choose several.
json::object form_for(json::object schema, protocol::revision revision)
{
    schema.erase("additionalProperties");
    auto* properties = schema.if_contains("properties");
    if (protocol::facts_of(revision).has_rich_forms || !properties || !properties->is_object())
        return schema;
    auto const* required = schema.if_contains("required");
    std::vector<std::string> unknown;
    for (auto& [name, value] : properties->get_object())
        if (auto* field = value.if_object()) {
            auto const type = text_of(*field, "type");
            if (type != "boolean")
                field->erase("default");
            name_values(*field);
            if (type != "array")
                continue;
            if (required && required->is_array()
                && std::ranges::find(required->get_array(), json::value(name)) != required->get_array().end())
                throw tool_error(
                    "This tool lets a person choose several values, which clients show since MCP "
                    + std::string(protocol::to_string(*protocol::first_with(&protocol::revision_facts::has_rich_forms)))
                    + "; this one speaks " + std::string(protocol::to_string(revision)) + ".");
            unknown.emplace_back(name);
        }
    for (auto const& name : unknown)
        properties->get_object().erase(name);
    return schema;
}

bool is_block(json::value const& value)
{
    return value.is_object() && !text_of(value.get_object(), "type").empty();
}

}

std::string sampled::text() const
{
    auto const text_in = [](json::value const& block) -> std::string {
        return block.is_object() ? text_of(block.get_object(), "text") : std::string();
    };
    if (!content.is_array())
        return text_in(content);
    std::string all;
    for (auto const& each : content.get_array())
        all += text_in(each);
    return all;
}

bool call::can_ask() const
{
    // A client that names no mode has forms.
    return state_->client_has("elicitation") && state_->speaks().has_elicitation
        && (state_->client_has("elicitation/form") || !state_->client_has("elicitation/url"));
}

bool call::can_ask_by_url() const
{
    return state_->client_has("elicitation/url") && state_->speaks().has_url_elicitation;
}

bool call::can_sample() const
{
    return state_->client_has("sampling");
}

bool call::has_roots() const
{
    return state_->client_has("roots");
}

task<answer<json::object>>
call::ask(std::string key, std::string text, json::object schema, std::optional<std::chrono::nanoseconds> limit)
{
    state_->require_questions();
    if (!can_ask())
        throw tool_error("This tool has a question, and the client cannot show forms (elicitation).");
    json::object params;
    if (state_->speaks().has_url_elicitation)
        params["mode"] = "form";
    params["message"] = std::move(text);
    auto form = form_for(std::move(schema), state_->revision());
    detail::schema_check const check(form);
    params["requestedSchema"] = std::move(form);
    auto const result = co_await state_->ask(protocol::method::elicit, json_text::to_json(params), key, limit);
    auto const what = action_of(result);
    std::optional<json::object> values;
    if (what == action::accepted) {
        auto const* content = result.if_contains("content");
        json::value const given = content ? *content : json::value(json::object());
        if (auto const fits = check.check(given); !fits)
            detail::throw_bad_answer(fits.error());
        values = given.is_object() ? given.get_object() : json::object();
    }
    co_return answer<json::object>(what, std::move(values));
}

task<action> call::ask_by_url(
    std::string key, std::string text, std::string url, std::string id, std::optional<std::chrono::nanoseconds> limit)
{
    state_->require_questions();
    if (!can_ask_by_url())
        throw tool_error("This tool needs a page to be opened, and the client cannot do that: " + url);
    json::object params;
    params["mode"] = "url";
    params["message"] = std::move(text);
    params["url"] = std::move(url);
    params["elicitationId"] = std::move(id);
    auto const result = co_await state_->ask(protocol::method::elicit, json_text::to_json(params), key, limit);
    co_return action_of(result);
}

void call::url_is_done(std::string const& id)
{
    if (!state_->speaks().has_url_elicitation)
        return; // it has not asked such a client
    std::string params = "{\"elicitationId\":";
    json_text::append_json_string(params, id);
    params += '}';
    state_->notify_session(protocol::notification(protocol::method::elicitation_complete, params));
}

task<sampled> call::sample(sampling_request request, std::optional<std::chrono::nanoseconds> limit)
{
    state_->require_questions();
    if (!can_sample())
        throw tool_error("This tool needs a model, and the client offers none (sampling).");
    bool const has_tools = state_->speaks().has_sampling_tools && state_->client_has("sampling/tools");
    if ((!request.tools.empty() || !request.tool_choice.empty()) && !has_tools)
        throw tool_error("This tool needs a model that can use tools, and the client offers none (sampling.tools).");
    json::object params;
    params["messages"] = sampling_messages(request.messages, state_->revision());
    params["maxTokens"] = request.max_tokens;
    if (!request.system_prompt.empty())
        params["systemPrompt"] = request.system_prompt;
    if (request.temperature)
        params["temperature"] = *request.temperature;
    if (!request.stop_sequences.empty()) {
        auto& stops = params["stopSequences"].emplace_array();
        for (auto const& each : request.stop_sequences)
            stops.emplace_back(each);
    }
    if (!request.model_preferences.empty())
        params["modelPreferences"] = std::move(request.model_preferences);
    bool const has_context = !state_->speaks().has_context_capability || state_->client_has("sampling/context");
    if (!request.include_context.empty() && (has_context || request.include_context == "none"))
        params["includeContext"] = request.include_context;
    if (!request.metadata.empty())
        params["metadata"] = std::move(request.metadata);
    if (!request.tools.empty())
        params["tools"] = std::move(request.tools);
    if (!request.tool_choice.empty())
        params["toolChoice"].emplace_object()["mode"] = request.tool_choice;
    auto const result = co_await state_->ask(protocol::method::sample, json_text::to_json(params), {}, limit);
    sampled got;
    got.from = text_of(result, "role") == "user" ? role::user : role::assistant;
    auto const* content = result.if_contains("content");
    bool const is_good
        = content && (content->is_array() ? std::ranges::all_of(content->get_array(), is_block) : is_block(*content));
    if (!is_good)
        detail::throw_bad_answer({"/content", "expected a block, or an array of them"});
    got.content = *content;
    got.model = text_of(result, "model");
    got.stop_reason = text_of(result, "stopReason");
    co_return got;
}

task<sampled> call::sample(std::string prompt, int max_tokens, std::optional<std::chrono::nanoseconds> limit)
{
    sampling_request request;
    request.messages.push_back({role::user, content::text(prompt)});
    request.max_tokens = max_tokens;
    return sample(std::move(request), limit);
}

task<std::vector<root>> call::roots(std::optional<std::chrono::nanoseconds> limit)
{
    state_->require_questions();
    if (!has_roots())
        throw tool_error("This tool needs to know the client's roots, and the client has none.");
    auto const result = co_await state_->ask(protocol::method::roots_list, {}, {}, limit);
    std::vector<root> all;
    auto const* list = result.if_contains("roots");
    if (!list || !list->is_array())
        detail::throw_bad_answer({"/roots", "expected an array"});
    for (auto const& each : list->get_array()) {
        auto uri = each.is_object() ? text_of(each.get_object(), "uri") : std::string();
        if (uri.empty())
            detail::throw_bad_answer({"/roots/" + std::to_string(all.size()) + "/uri", "expected a URI"});
        all.push_back({std::move(uri), text_of(each.get_object(), "name")});
    }
    co_return all;
}

task<void> call::ping(std::optional<std::chrono::nanoseconds> limit)
{
    state_->require_questions();
    co_await state_->ask(protocol::method::ping, {}, {}, limit);
}

}

namespace belay::inline v0::detail {

namespace {

/// A question that its frame waits for: whatever ends the wait, it is not open after that.
class open_question {
public:
    open_question(runtime::call& on, std::uint64_t number) : on_(on), number_(number) {}
    open_question(open_question const&) = delete;
    open_question& operator=(open_question const&) = delete;
    ~open_question() { on_.withdraw(number_); } // no effect if it was answered

private:
    runtime::call& on_;
    std::uint64_t number_;
};

}

void call_state::require_questions() const
{
    if (!on_->can_ask())
        throw tool_error(
            "This tool has a question for its caller, and cannot ask it here: this endpoint keeps no sessions, or "
            "answers as JSON only.");
}

bool call_state::client_has(std::string_view capability) const
{
    if (!on_->can_ask())
        return false;
    return has_capability(on_->session().current_record()->client_capabilities, capability);
}

task<json::object> call_state::ask(
    std::string_view method, std::string params, std::string key, std::optional<std::chrono::nanoseconds> limit)
{
    throw_if_ended();
    if (!key.empty() && !asked_.insert(key).second)
        throw std::logic_error("a call asked twice under the key " + key);
    auto const wait = std::make_shared<wait_for<result<std::string>>>(shared_from_this(), failure(errc::timed_out));
    open_question const question(
        *on_, on_->ask(method, params, key, [weak = std::weak_ptr(wait)](result<std::string> given) {
            if (auto const waiting = weak.lock())
                waiting->resume_with(std::move(given));
        }));
    base::timer timer(on_->loop().timers(), [&wait = *wait] { wait.resume(); });
    if (limit)
        timer.after(*limit);
    co_await wait->suspended();
    timer.cancel();
    auto const& outcome = wait->value();
    if (!outcome && outcome.error() == errc::timed_out)
        throw client_error(protocol::code::server_error, "The client did not answer in time.");
    if (!outcome)
        throw client_error(protocol::code::server_error, "The client could not be asked: " + outcome.error().message());
    auto const response = json_text::parse(*outcome).value_or(json::value());
    auto const* whole = response.if_object();
    if (auto const* error = whole ? whole->if_contains("error") : nullptr) {
        auto const* object = error->if_object();
        auto const* code = object ? object->if_contains("code") : nullptr;
        auto text = object ? text_of(*object, "message") : std::string();
        if (text.empty())
            text = "The client answered with an error.";
        throw client_error(
            code && code->is_int64() ? static_cast<int>(code->get_int64()) : protocol::code::server_error, text);
    }
    auto const* got = whole ? whole->if_contains("result") : nullptr;
    if (!got || !got->is_object())
        throw_bad_answer({"", "expected object"});
    co_return got->get_object();
}

}
