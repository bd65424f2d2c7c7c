#include "transcripts/demonstration.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

namespace belay::test {

using namespace std::chrono_literals;

namespace {

icon picture()
{
    return {"https://example.org/demo.png", "image/png", {"48x48"}};
}

// --- tools

struct echo_args {
    std::string text;
    static constexpr field docs[] = {field("text").describe("What to say back")};
};
BOOST_DESCRIBE_STRUCT(echo_args, (), (text))

std::string echo(echo_args args)
{
    return args.text;
}

struct sum_args {
    int a = 0;
    int b = 0;
};
BOOST_DESCRIBE_STRUCT(sum_args, (), (a, b))

struct sum_result {
    int sum = 0;
};
BOOST_DESCRIBE_STRUCT(sum_result, (), (sum))

sum_result add(sum_args args)
{
    return {args.a + args.b};
}

std::string fail()
{
    throw tool_error("There is no paper in the printer.");
}

std::string break_down()
{
    throw std::runtime_error("a detail that is nobody's business");
}

tool_result show()
{
    tool_result result;
    result.content.push_back(
        content::annotated(content::text("All kinds of content"), {true, false, 0.5, "2026-01-02T03:04:05Z"}));
    result.content.push_back(content::image({"PNG"}, "image/png"));
    result.content.push_back(content::audio({"WAV"}, "audio/wav"));
    result.content.push_back(content::embedded("notes://today", "text/plain", "milk"));
    result.content.push_back(content::embedded("notes://scan", "application/pdf", blob{"PDF"}));
    result.content.push_back(content::link("notes://today", "today", "text/plain", "What is to do"));
    result.meta["example.org/took"] = 3;
    return result;
}

struct count_args {
    int to = 0;
};
BOOST_DESCRIBE_STRUCT(count_args, (), (to))

task<std::string> count(call& call, count_args args)
{
    auto progress = call.progress(args.to);
    for (int i = 1; i <= args.to; ++i) {
        co_await call.sleep(1s);
        co_await call.log(log_level::info, "count", std::to_string(i));
        co_await progress.step("second " + std::to_string(i));
    }
    co_return fmt::format("counted to {}", args.to);
}

enum class colour { red, green };
BOOST_DESCRIBE_ENUM(colour, red, green)

struct order {
    std::string name;
    int copies = 1;
    bool fast = true;
    colour ink = colour::red;
    static constexpr field docs[]
        = {field("name").describe("For whom"), field("copies").range(1, 9).defaulted(), field("fast").defaulted()};
};
BOOST_DESCRIBE_STRUCT(order, (), (name, copies, fast, ink))

task<std::string> print(call& call)
{
    auto const got = co_await call.ask<order>("order", "What shall be printed?");
    if (!got)
        co_return got.what() == action::declined ? "declined" : "cancelled";
    co_return fmt::format("{} for {}{}", got->copies, got->name, got->fast ? ", fast" : "");
}

task<std::string> hurry(call& call)
{
    json::object schema{{"type", "object"}, {"properties", json::object()}};
    auto const got = co_await call.ask("hurry", "Quick!", schema, 30s);
    co_return got ? "in time" : "no";
}

task<std::string> pay(call& call)
{
    auto const what = co_await call.ask_by_url("pay", "Pay for the paper", "https://example.org/pay/7", "pay-7");
    if (what != action::accepted)
        co_return "not paid";
    co_await call.sleep(1s);
    call.url_is_done("pay-7");
    co_return "paid";
}

std::string sign_in()
{
    throw url_required("Sign in first.", "https://example.org/sign-in", "sign-in-1");
}

task<std::string> rhyme(call& call)
{
    sampling_request request;
    request.messages.push_back({role::user, content::text("A rhyme on paper")});
    request.max_tokens = 20;
    request.system_prompt = "You are a poet.";
    request.temperature = 0.5;
    request.stop_sequences = {"\n"};
    auto const got = co_await call.sample(std::move(request));
    co_return got.model + ": " + got.text();
}

task<std::string> hum(call& call)
{
    sampling_request request;
    request.messages.push_back(
        {role::user, json::array{content::text("What song is this?"), content::audio({"WAV"}, "audio/wav")}});
    request.include_context = "thisServer";
    auto const got = co_await call.sample(std::move(request));
    co_return got.text();
}

task<std::string> hire(call& call)
{
    sampling_request request;
    request.messages.push_back({role::user, content::text("Print it")});
    request.tools.push_back(json::object{{"name", "print"}, {"inputSchema", {{"type", "object"}}}});
    request.tool_choice = "required";
    auto const got = co_await call.sample(std::move(request));
    co_return got.stop_reason;
}

task<std::string> folders(call& call)
{
    auto const all = co_await call.roots();
    std::string names;
    for (auto const& each : all)
        names += each.name + " is " + each.uri + "\n";
    co_return names;
}

task<std::string> knock(call& call)
{
    co_await call.ping();
    co_return "the client is there";
}

void add_tools(server& server)
{
    server.tool("echo", echo)
        .title("Echo")
        .describe("Says it back")
        .read_only()
        .idempotent()
        .closed_world()
        .add_icon(picture())
        .meta("example.org/kind", "toy");
    server.tool("add", add);
    server.tool("fail", fail).destructive();
    server.tool("break_down", break_down);
    server.tool("show", show);
    server.tool("count", count);
    server.tool("print", print);
    server.tool("hurry", hurry);
    server.tool("pay", pay);
    server.tool("sign_in", sign_in);
    server.tool("rhyme", rhyme);
    server.tool("hum", hum);
    server.tool("hire", hire);
    server.tool("folders", folders);
    server.tool("knock", knock);
}

// --- resources

struct day {
    int number = 0;
};
BOOST_DESCRIBE_STRUCT(day, (), (number))

std::string read_day(day args)
{
    if (args.number > 31)
        throw not_found("no such day");
    return fmt::format("nothing on day {}", args.number);
}

resource_contents read_pages()
{
    resource_contents pages;
    pages.parts.push_back({"notes://pages#1", {}, "one", {}, {{"example.org/page", 1}}});
    pages.parts.push_back({"notes://pages#2", {}, "two", {}, {{"example.org/page", 2}}});
    pages.meta["example.org/pages"] = 2;
    return pages;
}

task<std::string> read_slow(call& call)
{
    co_await call.sleep(1s);
    co_return "worth the wait";
}

void add_resources(server& server)
{
    server.resource("notes://today", [] { return std::string("milk, paper"); })
        .name("today")
        .title("Today's notes")
        .describe("What is to do")
        .mime("text/plain")
        .size(11)
        .annotate({false, true, 1.0, "2026-01-02T03:04:05Z"})
        .add_icon(picture())
        .meta("example.org/kind", "list");
    server.resource("notes://scan", [] { return blob{"PDF"}; }).mime("application/pdf");
    server.resource("notes://slow", read_slow);
    server.resource("notes://pages", read_pages);
    server.resource("notes://day/{number}", read_day)
        .name("day")
        .title("Notes of a day")
        .mime("text/plain")
        .complete("number", {"1", "10", "2"});
}

// --- prompts

struct letter {
    std::string to;
    std::optional<std::string> tone;
    static constexpr field docs[] = {field("to").describe("Who gets it")};
};
BOOST_DESCRIBE_STRUCT(letter, (), (to, tone))

prompt_result write_letter(letter args)
{
    auto const ask = fmt::format("Write a {} letter to {}.", args.tone.value_or("friendly"), args.to);
    return {{}, {{role::user, content::text(ask)}, {role::assistant, content::audio({"WAV"}, "audio/wav")}}};
}

void add_prompts(server& server)
{
    server.prompt("letter", write_letter)
        .title("A letter")
        .describe("Writes a letter")
        .add_icon(picture())
        .meta("example.org/kind", "text")
        .complete("to", [](std::string_view typed, json::object const& others) {
            auto const* tone = others.if_contains("tone");
            auto const title = tone && *tone == "formal" ? "Ms. " : "";
            std::vector<std::string> names;
            for (auto const* name : {"Ada", "Alan", "Grace"})
                if (std::string_view(name).starts_with(typed))
                    names.push_back(std::string(title) + name);
            return names;
        });
    server.prompt("greeting", [] { return std::string("Say hello."); });
    server.prompt("reply", [] {
        auto letter = content::embedded("notes://letter", "text/plain", "Dear all");
        letter["resource"].get_object()["_meta"] = {{"example.org/from", "Ada"}};
        return prompt_result{{}, {{role::user, std::move(letter)}}, {{"example.org/tone", "formal"}}};
    });
}

}

belay::server demonstration_server()
{
    belay::server server("demonstration", "1.0");
    server.title("Demonstration")
        .instructions("One of everything.")
        .website("https://example.org/")
        .add_icon(picture());
    add_tools(server);
    add_resources(server);
    add_prompts(server);
    return server;
}

}
