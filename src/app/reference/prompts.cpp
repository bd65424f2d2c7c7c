// Prompts: plain, with arguments, with an image, with a resource; and those of the conformance suite.
#include "app/reference/parts.hpp"

#include <fmt/format.h>

namespace belay::app::reference {

namespace {

using messages = std::vector<prompt_message>;

struct complex_args {
    std::string temperature;
    std::optional<std::string> style;
    static constexpr field docs[] = {
        field("temperature").describe("How freely the model may answer"),
        field("style").describe("How the answer should sound"),
    };
};
BOOST_DESCRIBE_STRUCT(complex_args, (), (temperature, style))

messages complex_prompt(complex_args args)
{
    return {
        {role::user,
         content::text(fmt::format(
             "Describe an image to me. Temperature: {}, style: {}.", args.temperature, args.style.value_or("any")))},
        {role::assistant, content::text("Gladly. Which image?")},
        {role::user, content::image(tiny_png(), "image/png")}};
}

struct resource_args {
    std::int64_t resourceId = 1;
    static constexpr field docs[]
        = {field("resourceId").describe("Number of the resource, 1 to 100").range(1, static_resources)};
};
BOOST_DESCRIBE_STRUCT(resource_args, (), (resourceId))

messages resource_prompt(resource_args args)
{
    return {
        {role::user, content::text(fmt::format("Tell me what resource {} says:", args.resourceId))},
        {role::user, static_block(args.resourceId)}};
}

struct two_args {
    std::string arg1;
    std::string arg2;
    static constexpr field docs[]
        = {field("arg1").describe("The first argument"), field("arg2").describe("The second argument")};
};
BOOST_DESCRIBE_STRUCT(two_args, (), (arg1, arg2))

std::string prompt_with_arguments(two_args args)
{
    return fmt::format("Prompt with arguments: arg1='{}', arg2='{}'", args.arg1, args.arg2);
}

struct embedded_args {
    std::string resourceUri;
    static constexpr field docs[] = {field("resourceUri").describe("URI that the resource is given")};
};
BOOST_DESCRIBE_STRUCT(embedded_args, (), (resourceUri))

messages prompt_with_embedded_resource(embedded_args args)
{
    return {
        {role::user, content::embedded(args.resourceUri, "text/plain", "Embedded resource content for testing.")},
        {role::user, content::text("Please process the embedded resource above.")}};
}

messages prompt_with_image()
{
    return {
        {role::user, content::image(tiny_png(), "image/png")},
        {role::user, content::text("Please analyze the image above.")}};
}

void add_suite_prompts(server& server)
{
    server.prompt("test_simple_prompt", [] { return std::string("This is a simple prompt for testing."); })
        .describe("A prompt without arguments");
    server.prompt("test_prompt_with_arguments", prompt_with_arguments)
        .describe("A prompt with two arguments")
        .complete("arg1", {"test", "testing", "text"})
        .complete("arg2", {"value", "valve"});
    server.prompt("test_prompt_with_embedded_resource", prompt_with_embedded_resource)
        .describe("A prompt with a resource inside");
    server.prompt("test_prompt_with_image", prompt_with_image).describe("A prompt with an image");
}

}

void add_prompts(server& server)
{
    server.prompt("simple_prompt", [] { return std::string("Say hello in one sentence."); })
        .describe("A prompt without arguments");
    server.prompt("complex_prompt", complex_prompt)
        .describe("A prompt with arguments, several messages and an image")
        .complete("temperature", {"0", "0.5", "0.7", "1.0"})
        .complete("style", {"casual", "formal", "technical", "friendly"});
    server.prompt("resource_prompt", resource_prompt)
        .describe("A prompt with one of the numbered resources inside")
        .complete("resourceId", {"1", "2", "3", "4", "5"});
    add_suite_prompts(server);
}

}
