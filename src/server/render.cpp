#include "server/render.hpp"

#include "json/serialize.hpp"

namespace belay::detail {

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

std::string render(tool_result const& result, protocol::revision revision)
{
    std::string out = R"({"content":)";
    if (!result.content.empty()) {
        json_text::append_json(out, result.content);
    } else {
        out += R"([{"type":"text","text":)";
        if (result.structured && result.text.empty())
            json_text::append_json_string(out, json_text::to_json(*result.structured));
        else
            json_text::append_json_string(out, result.text);
        out += "}]";
    }
    if (result.structured && protocol::has_structured_content(revision)) {
        out += R"(,"structuredContent":)";
        json_text::append_json(out, *result.structured);
    }
    if (result.is_error)
        out += R"(,"isError":true)";
    out += '}';
    return out;
}

void append_tool(std::string& out, tool_definition const& tool, protocol::revision revision)
{
    out += R"({"name":)";
    json_text::append_json_string(out, tool.name);
    if (!tool.title.empty() && revision >= protocol::revision::r2025_06_18)
        append_member(out, "title", tool.title);
    if (!tool.description.empty())
        append_member(out, "description", tool.description);
    out += R"(,"inputSchema":)";
    json_text::append_json(out, tool.input_schema);
    if (tool.output_schema && protocol::has_structured_content(revision)) {
        out += R"(,"outputSchema":)";
        json_text::append_json(out, *tool.output_schema);
    }
    bool const has_hints = tool.read_only || tool.destructive || tool.idempotent || tool.open_world;
    if (has_hints && revision >= protocol::revision::r2025_03_26) {
        out += R"(,"annotations":{)";
        append_hint(out, "readOnlyHint", tool.read_only);
        append_hint(out, "destructiveHint", tool.destructive);
        append_hint(out, "idempotentHint", tool.idempotent);
        append_hint(out, "openWorldHint", tool.open_world);
        out += '}';
    }
    out += '}';
}

tool_result current_failure(base::logger const& log, std::string const& tool)
{
    try {
        throw;
    } catch (tool_error const& error) {
        return {error.what(), {}, {}, true};
    } catch (std::exception const& error) {
        log.error("tool {} failed: {}", tool, error.what());
    } catch (...) {
        log.error("tool {} failed with something that is not an exception", tool);
    }
    return {"The tool failed. The server's log has the reason.", {}, {}, true};
}

}
