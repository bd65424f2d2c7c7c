// Tools that show what a result can be made of.
#include "app/reference/parts.hpp"

#include <fmt/chrono.h>

#include <atomic>

namespace belay::app::reference {

namespace {

tool_result get_tiny_image()
{
    tool_result result;
    result.content.push_back(content::text("This is the tiny image:"));
    result.content.push_back(content::image(tiny_png(), "image/png"));
    result.content.push_back(content::text("It has 4 by 4 pixels."));
    return result;
}

enum class message_type { error, success, debug };
BOOST_DESCRIBE_ENUM(message_type, error, success, debug)

struct annotated_args {
    message_type messageType = message_type::error;
    bool includeImage = false;
    static constexpr field docs[] = {
        field("messageType").describe("What the message is about"),
        field("includeImage").describe("Whether an image comes with it").defaulted(),
    };
};
BOOST_DESCRIBE_STRUCT(annotated_args, (), (messageType, includeImage))

json::object annotated_text(message_type type)
{
    annotations notes;
    switch (type) {
    case message_type::error:
        notes.priority = 1.0;
        notes.for_user = notes.for_assistant = true;
        return content::annotated(content::text("Error: the operation failed"), notes);
    case message_type::success:
        notes.priority = 0.7;
        notes.for_user = true;
        return content::annotated(content::text("The operation succeeded"), notes);
    case message_type::debug: break;
    }
    notes.priority = 0.3;
    notes.for_assistant = true;
    return content::annotated(content::text("Debug: the operation took 150 ms"), notes);
}

tool_result annotated_message(annotated_args args)
{
    tool_result result;
    result.content.push_back(annotated_text(args.messageType));
    if (args.includeImage) {
        annotations notes;
        notes.priority = 0.5;
        notes.for_user = true;
        result.content.push_back(content::annotated(content::image(tiny_png(), "image/png"), notes));
    }
    return result;
}

struct reference_args {
    std::int64_t resourceId = 1;
    static constexpr field docs[] = {field("resourceId").describe("Number of the resource").range(1, static_resources)};
};
BOOST_DESCRIBE_STRUCT(reference_args, (), (resourceId))

tool_result get_resource_reference(reference_args args)
{
    tool_result result;
    result.content.push_back(content::text(fmt::format("This is resource {}:", args.resourceId)));
    result.content.push_back(static_block(args.resourceId));
    result.content.push_back(content::text(fmt::format("It can be read as {}", static_uri(args.resourceId))));
    return result;
}

struct links_args {
    std::int64_t count = 3;
    static constexpr field docs[] = {field("count").describe("How many resources").range(1, 10).defaulted()};
};
BOOST_DESCRIBE_STRUCT(links_args, (), (count))

tool_result get_resource_links(links_args args)
{
    tool_result result;
    result.content.push_back(content::text(fmt::format("Here are {} resources to read:", args.count)));
    for (std::int64_t id = 1; id <= args.count; ++id)
        result.content.push_back(content::link(
            static_uri(id), fmt::format("Resource {}", id), static_part(id).mime, "One of the numbered resources"));
    return result;
}

struct hello_stats {
    std::int64_t greetings = 0;
    static constexpr field docs[] = {field("greetings").describe("How often this server has greeted")};
};
BOOST_DESCRIBE_STRUCT(hello_stats, (), (greetings))

struct hello {
    std::string greeting;
    std::string timestamp;
    std::vector<std::string> features;
    hello_stats stats;
};
BOOST_DESCRIBE_STRUCT(hello, (), (greeting, timestamp, features, stats))

constexpr auto app_uri = "ui://hello-world/app.html";

// A view in the host's frame: it says hello, and shows the result that the host passes on.
constexpr auto app_page = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Hello world</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5em; }
pre { padding: 1em; border: 1px solid; overflow: auto; }
</style>
</head>
<body>
<h1 id="greeting">Hello, world!</h1>
<pre id="result">Waiting for the tool's result</pre>
<script>
const send = (message) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
window.addEventListener('message', ({ source, data }) => {
    if (source !== window.parent || data?.jsonrpc !== '2.0')
        return;
    if (data.id === 1 && data.result)
        send({ method: 'ui/notifications/initialized' });
    if (data.method === 'ui/notifications/tool-result') {
        const told = data.params.structuredContent;
        document.getElementById('greeting').textContent = told.greeting;
        document.getElementById('result').textContent = JSON.stringify(told, null, 2);
    }
});
send({
    id: 1,
    method: 'ui/initialize',
    params: {
        protocolVersion: '2026-01-26',
        appInfo: { name: 'hello-world', version: '1.0.0' },
        appCapabilities: {},
    },
});
</script>
</body>
</html>
)";

void add_app(server& server)
{
    server.resource(app_uri, [] { return std::string(app_page); })
        .name("Hello world")
        .describe("The page that shows what mcp_apps_hello_world answers")
        .mime("text/html;profile=mcp-app");
    auto const greetings = std::make_shared<std::atomic<std::int64_t>>(0);
    auto const greet = [greetings] {
        hello told;
        told.greeting = "Hello from Belay!";
        told.timestamp = fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::now()));
        told.features = {"text", "structured content", "a page of its own"};
        told.stats.greetings = ++*greetings;
        tool_result result;
        result.text = told.greeting;
        result.structured = encode(told);
        result.meta["ui"] = json::object{{"resourceUri", app_uri}};
        return result;
    };
    server.tool("mcp_apps_hello_world", greet)
        .title("Hello world")
        .describe("Greets, with a page that hosts can show")
        .output_schema(schema_of<hello>())
        .meta("ui", json::object{{"resourceUri", app_uri}})
        .read_only();
}

}

void add_content_tools(server& server)
{
    server.tool("getTinyImage", get_tiny_image).describe("Answers with an image between two texts").read_only();
    server.tool("annotatedMessage", annotated_message)
        .describe("Answers with content that says for whom it is and how much it matters")
        .read_only();
    server.tool("getResourceReference", get_resource_reference)
        .describe("Answers with a resource inside the result")
        .read_only();
    server.tool("getResourceLinks", get_resource_links).describe("Answers with links to resources").read_only();
    add_app(server);
}

}
