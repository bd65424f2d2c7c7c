#include "server/resources.hpp"

#include "protocol/names.hpp"
#include "runtime/node.hpp"
#include "server/answers.hpp"
#include "server/call_state.hpp"
#include "server/content.hpp"
#include "server/render.hpp"

#include <algorithm>
#include <stdexcept>

namespace belay::inline v0::detail {

namespace {

bool has_scheme(std::string_view uri)
{
    auto const colon = uri.find(':');
    return colon != std::string_view::npos && colon > 0 && uri.size() > colon + 1
        && std::ranges::none_of(uri, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; });
}

protocol::rpc_error unknown(std::string_view uri)
{
    std::string data = "{\"uri\":";
    json_text::append_json_string(data, uri);
    data += '}';
    return {protocol::code::resource_not_found, "Resource not found", std::move(data)};
}

protocol::rpc_error no_uri()
{
    return {protocol::code::invalid_params, "params.uri must be the URI of a resource", {}};
}

void append_resource(std::string& out, resource_definition const& what, protocol::revision revision)
{
    json::object object;
    object[what.is_template ? "uriTemplate" : "uri"] = what.uri;
    object["name"] = what.name.empty() ? what.uri : what.name;
    if (!what.title.empty() && protocol::facts_of(revision).has_titles)
        object["title"] = what.title;
    if (!what.description.empty())
        object["description"] = what.description;
    if (!what.mime.empty())
        object["mimeType"] = what.mime;
    if (what.size)
        object["size"] = *what.size;
    if (what.notes) {
        auto notes = annotations_object(*what.notes);
        if (!protocol::facts_of(revision).has_modification_times)
            notes.erase("lastModified");
        object["annotations"] = std::move(notes);
    }
    add_icons_and_meta(object, what.icons, what.meta, revision);
    json_text::append_json(out, object);
}

/// How a resource that was read becomes a response.
struct reading {
    std::string id;
    std::string uri;
    std::string mime;
    protocol::revision revision;
    std::size_t most; ///< bytes of an answer

    /// With one copy of what was read.
    [[nodiscard]] std::string response(resource_contents const& contents) const
    {
        std::size_t bytes = 0;
        for (auto const& each : contents.parts)
            bytes += each.data ? base64_bytes(each.data->bytes.size()) : each.text.size();
        if (bytes > most)
            return protocol::ended_answer({id, false}, protocol::end_reason::result_too_large);
        auto out = protocol::begin_result(id, bytes + 256);
        out += "{\"contents\":[";
        for (auto const& each : contents.parts) {
            if (&each != &contents.parts.front())
                out += ',';
            append_contents_part(out, uri, each, mime, revision);
        }
        out += ']';
        if (!contents.meta.empty()) {
            out += ",\"_meta\":";
            json_text::append_json(out, contents.meta);
        }
        out += "}}";
        return out;
    }
};

/// Adds a URI to what the session is subscribed to, or takes it away; `answer` gets the whole response.
void change_subscription(
    runtime::node& node, std::shared_ptr<runtime::live_session> const& session, std::string uri, bool wanted,
    std::string id, std::move_only_function<void(std::string)> answer)
{
    auto done = [id = std::move(id), limit = node.settings().max_subscriptions,
                 answer = std::move(answer)](result<void> changed) mutable {
        if (changed)
            return answer(protocol::result_response(id, "{}"));
        if (changed.error() == errc::too_many_subscriptions)
            return answer(protocol::error_response(
                id,
                {protocol::code::invalid_params,
                 "This session has as many subscriptions as it may (" + std::to_string(limit)
                     + "); unsubscribe from some",
                 {}}));
        answer(protocol::error_response(id, {protocol::code::internal_error, changed.error().message(), {}}));
    };
    if (wanted)
        node.sessions().subscribe(*session, std::move(uri), std::move(done));
    else
        node.sessions().unsubscribe(*session, uri, std::move(done));
}

runtime::deferred_answer change_soon(runtime::incoming const& request, std::string uri, bool wanted)
{
    return {[&node = request.node, session = request.session, uri = std::move(uri), wanted,
             id = request.message.id](std::move_only_function<void(std::string)> answer) {
        change_subscription(node, session, uri, wanted, id, std::move(answer));
    }};
}

// The whole life of a subscription that its author has a say in.
task<void>
subscribing_life(std::shared_ptr<call_state> state, std::string uri, std::shared_ptr<resource_definition const> what)
{
    auto context = access::make<call>(state);
    std::string refusal;
    try {
        co_await what->on_subscribe(context, uri);
    } catch (unwinding const&) {
    } catch (...) {
        if (!state->is_ended()) // else: cancelled inside an operation that is not ours
            refusal = protocol::error_response(
                state->on().id(),
                read_failure(state->on().logger(), "on_subscribe of resource " + what->uri, unknown(uri)));
    }
    state->close();
    if (state->on().is_ended())
        co_return;
    if (!refusal.empty()) {
        state->on().answer(std::move(refusal));
        co_return;
    }
    auto const on = state->on().shared_from_this();
    change_subscription(
        state->node(), on->shared_session(), std::move(uri), true, on->id(),
        [on](std::string response) { on->answer(std::move(response)); });
}

}

void resource_catalogue::check(resource_definition const& fresh) const
{
    if (!has_scheme(fresh.uri))
        throw std::invalid_argument(
            "resource \"" + fresh.uri + "\": a URI has a scheme and no blanks, as in notes://today");
    if (fresh.is_template) {
        auto const variables = uri_template(fresh.uri).variables();
        if (auto const* properties = fresh.read.schema.if_contains("properties"))
            for (auto const& [name, schema] : properties->as_object())
                if (std::ranges::find(variables, view(json::string(name))) == variables.end())
                    throw std::invalid_argument(
                        "resource \"" + fresh.uri + "\" has no {" + std::string(name) + "}, which its function wants");
    }
    if ((fresh.is_template ? templates_ : resources_).now()->find(fresh.uri))
        throw std::invalid_argument("resource " + fresh.uri + " is registered twice");
}

void resource_catalogue::add(std::shared_ptr<resource_definition const> fresh)
{
    if (fresh->is_template)
        (void)patterns_.add(std::make_shared<uri_template const>(fresh->uri), {fresh->uri, {}});
    auto& into = fresh->is_template ? templates_ : resources_;
    listed as{fresh->uri, texts_by_revision([&](std::string& out, protocol::revision revision) {
                  append_resource(out, *fresh, revision);
              })};
    if (!into.add(fresh, std::move(as)))
        throw std::invalid_argument("resource " + fresh->uri + " is registered twice");
}

bool resource_catalogue::remove(std::string_view uri)
{
    (void)patterns_.remove(uri);
    return resources_.remove(uri) || templates_.remove(uri);
}

bool resource_catalogue::is_empty() const
{
    return resources_.now()->in_order.empty() && templates_.now()->in_order.empty();
}

bool resource_catalogue::has_completers() const
{
    return std::ranges::any_of(
        templates_.now()->in_order, [](auto const& each) { return !each->what->completers.empty(); });
}

std::shared_ptr<resource_definition const> resource_catalogue::template_of(std::string_view text) const
{
    return templates_.now()->find(text);
}

std::optional<resource_catalogue::found> resource_catalogue::find(protocol::message const& request) const
{
    auto const* const given = text_param(request, "uri");
    if (!given)
        return std::nullopt;
    auto const uri = view(*given);
    if (auto exact = resources_.now()->find(uri))
        return found{std::move(exact), {}};
    auto const patterns = patterns_.now();
    auto const templates = templates_.now();
    for (auto const& each : templates->in_order)
        if (auto const pattern = patterns->find(each->as.key))
            if (auto variables = pattern->match(uri))
                return found{each->what, std::move(*variables)};
    return std::nullopt;
}

runtime::outcome resource_catalogue::list(runtime::incoming const& request, std::size_t page_size) const
{
    return list_page(request, "resources", resources_, page_size);
}

runtime::outcome resource_catalogue::list_templates(runtime::incoming const& request, std::size_t page_size) const
{
    return list_page(request, "resourceTemplates", templates_, page_size);
}

runtime::outcome resource_catalogue::read(runtime::incoming const& request, std::optional<found> const& what) const
{
    auto const* given = text_param(request.message, "uri");
    if (!given)
        return refuse(request, no_uri());
    std::string uri(view(*given));
    if (!what)
        return refuse(request, unknown(uri));
    auto const failed = [uri, name = "resource " + what->what->uri](base::logger const& log) {
        return read_failure(log, name, unknown(uri));
    };
    auto const bad_variables = [&](decode_error const&) { return refuse(request, unknown(uri)); };
    reading const shape{
        request.message.id, uri, what->what->mime, request.revision, request.node.settings().limits.event_bytes};
    if (what->what->read.quick) {
        auto const facts = facts_of(request);
        try {
            auto const contents = what->what->read.quick(access::make<caller>(facts), what->variables);
            if (!contents)
                return bad_variables(contents.error());
            return runtime::instant_answer{shape.response(*contents)};
        } catch (...) {
            return refuse(request, failed(log_of(request)));
        }
    }
    auto work = what->what->read.waiting(what->variables);
    if (!work)
        return bad_variables(work.error());
    runtime::start_call start;
    start.traits.is_tool_call = false;
    start.traits.is_retry_safe = true;
    start.progress_token = progress_token_of(request.message);
    start.run = [&node = request.node, context = context_of(request), id = request.message.id, shape, failed,
                 work = std::move(*work)](std::shared_ptr<runtime::call> on) mutable {
        start_work<resource_contents>(
            node, std::move(on), std::move(context), std::move(work),
            [shape](resource_contents const& contents) { return shape.response(contents); },
            [id, failed](base::logger const& log) { return protocol::error_response(id, failed(log)); });
    };
    return start;
}

runtime::outcome resource_catalogue::subscribe(runtime::incoming const& request, std::optional<found> const& what) const
{
    auto const* given = text_param(request.message, "uri");
    if (!given)
        return refuse(request, no_uri());
    std::string uri(view(*given));
    auto const longest = request.node.settings().max_subscription_bytes;
    if (uri.size() > longest)
        return refuse(
            request,
            {protocol::code::invalid_params,
             "params.uri has " + std::to_string(uri.size()) + " bytes; a subscription may have "
                 + std::to_string(longest),
             {}});
    if (!what)
        return refuse(request, unknown(uri));
    if (!what->what->on_subscribe)
        return change_soon(request, std::move(uri), true);
    runtime::start_call start;
    start.traits.is_tool_call = false;
    start.traits.is_retry_safe = true;
    start.progress_token = progress_token_of(request.message);
    start.run = [&node = request.node, context = context_of(request), uri = std::move(uri),
                 what = what->what](std::shared_ptr<runtime::call> on) mutable {
        auto const state = std::make_shared<call_state>(node, std::move(on), std::move(context));
        auto life = subscribing_life(state, std::move(uri), what);
        start_life(state, std::move(life));
    };
    return start;
}

runtime::outcome resource_catalogue::unsubscribe(runtime::incoming const& request) const
{
    auto const* given = text_param(request.message, "uri");
    if (!given)
        return refuse(request, no_uri());
    return change_soon(request, std::string(view(*given)), false);
}

}
