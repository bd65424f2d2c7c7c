#include "server/render.hpp"

#include "server/content.hpp"
#include "json/parse.hpp"
#include "json/serialize.hpp"

#include <algorithm>

namespace belay::inline v0::detail {

namespace {

void append_member(std::string& out, std::string_view name, std::string_view text)
{
    out += ",\"";
    out += name;
    out += "\":";
    json_text::append_json_string(out, text);
}

void append_hint(std::string& out, std::string_view name, std::optional<bool> hint)
{
    if (!hint)
        return;
    if (out.back() != '{')
        out += ',';
    out += '"';
    out += name;
    out += *hint ? "\":true" : "\":false";
}

}

namespace {

void append_result(std::string& out, tool_result const& result, protocol::revision revision)
{
    out += R"({"content":)";
    if (!result.content.empty()) {
        json::array blocks;
        for (auto const& each : result.content) {
            auto const* block = each.if_object();
            auto const* type = block ? block->if_contains("type") : nullptr;
            if (!type || !type->is_string())
                throw std::logic_error(
                    "its content has something that is no block; belay::content makes them, and text alone goes into "
                    "tool_result::text");
            blocks.push_back(block_for(*block, revision));
        }
        json_text::append_json(out, blocks);
    } else {
        out += R"([{"type":"text","text":)";
        if (result.structured && result.text.empty())
            json_text::append_json_string(out, json_text::to_json(*result.structured));
        else
            json_text::append_json_string(out, result.text);
        out += "}]";
    }
    if (result.structured && protocol::facts_of(revision).has_structured_content) {
        // Clients refuse a result whose structured content is no object.
        bool const is_object = result.structured->is_object();
        out += is_object ? R"(,"structuredContent":)" : R"(,"structuredContent":{"result":)";
        json_text::append_json(out, *result.structured);
        if (!is_object)
            out += '}';
    }
    if (result.is_error)
        out += R"(,"isError":true)";
    if (!result.meta.empty()) {
        out += R"(,"_meta":)";
        json_text::append_json(out, result.meta);
    }
    out += '}';
}

}

std::string render(tool_result const& result, protocol::revision revision)
{
    std::string out;
    append_result(out, result, revision);
    return out;
}

std::string result_answer(std::string_view id, tool_result const& result, protocol::revision revision)
{
    auto out = protocol::begin_result(id, result.text.size() + 64);
    append_result(out, result, revision);
    out += '}';
    return out;
}

void append_tool(std::string& out, tool_definition const& tool, protocol::revision revision)
{
    auto const& speaks = protocol::facts_of(revision);
    out += R"({"name":)";
    json_text::append_json_string(out, tool.name);
    if (!tool.title.empty() && speaks.has_titles)
        append_member(out, "title", tool.title);
    if (!tool.description.empty())
        append_member(out, "description", tool.description);
    out += R"(,"inputSchema":)";
    json_text::append_json(out, tool.input_schema);
    if (tool.output_schema && speaks.has_structured_content) {
        out += R"(,"outputSchema":)";
        json_text::append_json(out, *tool.output_schema);
    }
    // Before tools had titles of their own, one could stand here.
    bool const has_title = !tool.title.empty() && !speaks.has_titles;
    bool const has_hints = tool.read_only || tool.destructive || tool.idempotent || tool.open_world || has_title;
    if (has_hints && speaks.has_tool_annotations) {
        out += R"(,"annotations":{)";
        if (has_title) {
            out += R"("title":)";
            json_text::append_json_string(out, tool.title);
        }
        append_hint(out, "readOnlyHint", tool.read_only);
        append_hint(out, "destructiveHint", tool.destructive);
        append_hint(out, "idempotentHint", tool.idempotent);
        append_hint(out, "openWorldHint", tool.open_world);
        out += '}';
    }
    json::object rest;
    add_icons_and_meta(rest, tool.icons, tool.meta, revision);
    for (auto const& each : rest) {
        out += ",\"";
        out += each.key();
        out += "\":";
        json_text::append_json(out, each.value());
    }
    out += '}';
}

void add_icons_and_meta(
    json::object& to, std::vector<icon> const& icons, json::object const& meta, protocol::revision revision)
{
    if (!icons.empty() && protocol::facts_of(revision).has_icons) {
        auto& list = to["icons"].emplace_array();
        for (auto const& each : icons) {
            json::object one;
            one["src"] = each.src;
            if (!each.mime.empty())
                one["mimeType"] = each.mime;
            if (!each.sizes.empty()) {
                auto& sizes = one["sizes"].emplace_array();
                for (auto const& size : each.sizes)
                    sizes.emplace_back(size);
            }
            if (!each.theme.empty())
                one["theme"] = each.theme;
            list.push_back(std::move(one));
        }
    }
    if (!meta.empty() && protocol::facts_of(revision).has_meta)
        to["_meta"] = meta;
}

bool has_capability(std::string_view capabilities, std::string_view name)
{
    auto const all = json_text::parse(capabilities);
    if (!all)
        return false;
    json::value const* at = &*all;
    for (auto rest = name; !rest.empty();) {
        auto const slash = std::min(rest.find('/'), rest.size());
        auto const* object = at->if_object();
        at = object ? object->if_contains(rest.substr(0, slash)) : nullptr;
        if (!at)
            return false;
        rest.remove_prefix(std::min(slash + 1, rest.size()));
    }
    return at->is_object();
}

std::string failed_answer(
    base::logger const& log, std::string const& tool, std::string_view id, protocol::revision revision,
    std::string_view capabilities)
{
    try {
        throw;
    } catch (url_required const& needs) {
        if (protocol::facts_of(revision).has_url_elicitation && has_capability(capabilities, "elicitation/url")) {
            json::object one;
            one["mode"] = "url";
            one["message"] = needs.what();
            one["url"] = needs.url();
            one["elicitationId"] = needs.id();
            json::object data;
            data["elicitations"].emplace_array().push_back(std::move(one));
            return protocol::error_response(id, {protocol::code::url_required, needs.what(), json_text::to_json(data)});
        }
        tool_result result;
        result.text = std::string(needs.what()) + " Open this page, then call the tool again: " + needs.url();
        result.is_error = true;
        return result_answer(id, result, revision);
    } catch (...) {
        return result_answer(id, current_failure(log, tool), revision);
    }
}

protocol::rpc_error read_failure(base::logger const& log, std::string const& name, protocol::rpc_error missing)
{
    try {
        throw;
    } catch (not_found const&) {
        return missing;
    } catch (tool_error const& error) {
        return {protocol::code::internal_error, error.what(), {}};
    } catch (client_error const& error) {
        return {protocol::code::internal_error, error.what(), {}};
    } catch (std::exception const& error) {
        log.error("{} failed: {}", name, error.what());
    } catch (...) {
        log.error("{} failed with something that is not an exception", name);
    }
    return {protocol::code::internal_error, "It failed. The server's log has the reason.", {}};
}

tool_result current_failure(base::logger const& log, std::string const& tool)
{
    try {
        throw;
    } catch (tool_error const& error) {
        return {error.what(), {}, {}, true};
    } catch (client_error const& error) {
        return {error.what(), {}, {}, true};
    } catch (std::exception const& error) {
        log.error("tool {} failed: {}", tool, error.what());
    } catch (...) {
        log.error("tool {} failed with something that is not an exception", tool);
    }
    return {"The tool failed. The server's log has the reason.", {}, {}, true};
}

}
