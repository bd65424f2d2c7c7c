// The tools that the official conformance suite calls.
#include "app/reference/parts.hpp"
#include "json/parse.hpp"

namespace belay::app::reference {

using namespace std::chrono_literals;

namespace {

tool_result image_content()
{
    tool_result result;
    result.content.push_back(content::image(tiny_png(), "image/png"));
    return result;
}

tool_result audio_content()
{
    tool_result result;
    result.content.push_back(content::audio(tiny_wav(), "audio/wav"));
    return result;
}

tool_result embedded_resource()
{
    tool_result result;
    result.content.push_back(
        content::embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."));
    return result;
}

tool_result multiple_content_types()
{
    tool_result result;
    result.content.push_back(content::text("Multiple content types test:"));
    result.content.push_back(content::image(tiny_png(), "image/png"));
    result.content.push_back(
        content::embedded("test://mixed-content-resource", "application/json", R"({"test":"data","value":123})"));
    return result;
}

std::string error_handling()
{
    throw tool_error("This tool intentionally returns an error for testing");
}

task<std::string> with_logging(call& call)
{
    co_await call.log(log_level::info, "test_tool_with_logging", "Tool execution started");
    co_await call.sleep(50ms);
    co_await call.log(log_level::info, "test_tool_with_logging", "Tool processing data");
    co_await call.sleep(50ms);
    co_await call.log(log_level::info, "test_tool_with_logging", "Tool execution completed");
    co_return "Three messages were logged.";
}

task<std::string> with_progress(call& call)
{
    auto progress = call.progress(100);
    co_await progress.report(0);
    co_await call.sleep(50ms);
    co_await progress.report(50);
    co_await call.sleep(50ms);
    co_await progress.report(100);
    co_return "Progress was reported three times.";
}

struct sampling_args {
    std::string prompt;
    static constexpr field docs[] = {field("prompt").describe("What to ask the model")};
};
BOOST_DESCRIBE_STRUCT(sampling_args, (), (prompt))

task<std::string> sampling(call& call, sampling_args args)
{
    sampled const got = co_await call.sample(std::move(args.prompt), 100);
    co_return "LLM response: " + got.text();
}

struct elicitation_args {
    std::string message;
    static constexpr field docs[] = {field("message").describe("What to ask the user")};
};
BOOST_DESCRIBE_STRUCT(elicitation_args, (), (message))

task<std::string> ask_form(call& call, std::string text, char const* form)
{
    json::object schema = json_text::parse(form)->as_object();
    answer<json::object> const given = co_await call.ask("form", std::move(text), std::move(schema));
    co_return "User response: " + answer_text(given);
}

task<std::string> elicitation(call& call, elicitation_args args)
{
    return ask_form(call, std::move(args.message), R"({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "The user's name"},
            "email": {"type": "string", "description": "The user's email address"}
        },
        "required": ["username", "email"]
    })");
}

task<std::string> elicitation_defaults(call& call)
{
    return ask_form(call, "Please look at the values that are filled in", R"({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true}
        },
        "required": []
    })");
}

task<std::string> elicitation_enums(call& call)
{
    return ask_form(call, "Please choose", R"({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["one", "two", "three"]},
            "titledSingle": {
                "type": "string",
                "oneOf": [{"const": "one", "title": "The first"}, {"const": "two", "title": "The second"}]
            },
            "legacyEnum": {"type": "string", "enum": ["one", "two"], "enumNames": ["The first", "The second"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["one", "two", "three"]}},
            "titledMulti": {
                "type": "array",
                "items": {"anyOf": [{"const": "one", "title": "The first"}, {"const": "two", "title": "The second"}]}
            }
        },
        "required": []
    })");
}

task<std::string> reconnection(call& call)
{
    call.close_connection(500ms);
    co_await call.sleep(100ms);
    co_return "Reconnection test completed successfully. The connection was closed while the call was running.";
}

constexpr auto schema_2020_12 = R"({
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false
})";

void add_plain(server& server)
{
    server.tool("test_simple_text", [] { return std::string("This is a simple text response for testing."); })
        .describe("Answers with a text")
        .read_only();
    server.tool("test_image_content", image_content).describe("Answers with an image").read_only();
    server.tool("test_audio_content", audio_content).describe("Answers with a sound").read_only();
    server.tool("test_embedded_resource", embedded_resource).describe("Answers with a resource").read_only();
    server.tool("test_multiple_content_types", multiple_content_types)
        .describe("Answers with a text, an image and a resource")
        .read_only();
    server.tool("test_error_handling", error_handling).describe("Always fails").read_only();
    server.tool("json_schema_2020_12_tool", [](json::object) { return std::string("The arguments fit the schema."); })
        .describe("Has a schema that uses much of JSON Schema 2020-12")
        .input_schema(json_text::parse(schema_2020_12)->as_object())
        .read_only();
}

}

void add_conformance(server& server)
{
    add_plain(server);
    server.tool("test_tool_with_logging", with_logging).describe("Logs three messages").read_only();
    server.tool("test_tool_with_progress", with_progress).describe("Reports progress three times").read_only();
    server.tool("test_sampling", sampling).describe("Asks the client's model").read_only();
    server.tool("test_elicitation", elicitation).describe("Asks the user for a name and an address").read_only();
    server.tool("test_elicitation_sep1034_defaults", elicitation_defaults)
        .describe("Shows the user a form with defaults of every type")
        .read_only();
    server.tool("test_elicitation_sep1330_enums", elicitation_enums)
        .describe("Shows the user a form with choices of every form")
        .read_only();
    server.tool("test_reconnection", reconnection)
        .describe("Closes its caller's connection while it runs; the result comes after a reconnect")
        .read_only();
}

}
