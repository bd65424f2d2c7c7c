// Tools that ask the client: its model, its user, its roots.
#include "app/reference/parts.hpp"
#include "json/parse.hpp"
#include "json/serialize.hpp"

#include <fmt/format.h>

#include <atomic>

namespace belay::app::reference {

using namespace std::chrono_literals;

namespace {

// People need time.
constexpr auto answer_limit = 10min;

char const* word_of(action what)
{
    switch (what) {
    case action::accepted: return "accept";
    case action::declined: return "decline";
    case action::cancelled: break;
    }
    return "cancel";
}

struct sample_args {
    std::string prompt;
    int maxTokens = 100;
    static constexpr field docs[] = {
        field("prompt").describe("What to ask the model"),
        field("maxTokens").describe("How long its answer may be").range(1, 1000000).defaulted(),
    };
};
BOOST_DESCRIBE_STRUCT(sample_args, (), (prompt, maxTokens))

task<std::string> sample_llm(call& call, sample_args args)
{
    sampled const got = co_await call.sample(std::move(args.prompt), args.maxTokens);
    co_return "The model answered: " + got.text();
}

constexpr auto form = R"({
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "Your name", "minLength": 1},
        "check": {"type": "boolean", "title": "Check", "description": "Whether you agree"},
        "color": {"type": "string", "title": "Colour", "description": "Your favourite colour", "default": "blue"},
        "email": {"type": "string", "title": "Email", "format": "email"},
        "homepage": {"type": "string", "title": "Home page", "format": "uri"},
        "birthdate": {"type": "string", "title": "Date of birth", "format": "date"},
        "integer": {"type": "integer", "title": "Integer", "minimum": 1, "maximum": 100, "default": 42},
        "number": {"type": "number", "title": "Number", "minimum": 0, "maximum": 1000, "default": 3.14},
        "petType": {
            "type": "string",
            "title": "Pet",
            "enum": ["cats", "dogs", "birds", "fish", "none"],
            "enumNames": ["Cats", "Dogs", "Birds", "Fish", "No pet"],
            "default": "dogs"
        }
    },
    "required": ["name"]
})";

task<std::string> elicit_inputs(call& call)
{
    json::object schema = json_text::parse(form)->as_object();
    answer<json::object> const given
        = co_await call.ask("inputs", "Please fill in this form", std::move(schema), answer_limit);
    co_return answer_text(given);
}

task<std::string> list_roots(call& call)
{
    std::vector<root> const roots = co_await call.roots();
    std::string text = fmt::format("The client has {} roots.", roots.size());
    for (auto const& each : roots)
        text += fmt::format("\n{} {}", each.uri, each.name);
    co_return text;
}

// One for each question of this process.
using question_counter = std::shared_ptr<std::atomic<std::uint64_t>>;

task<std::string> elicit_url(call& call, question_counter asked)
{
    auto const id = fmt::format("{}-{}", call.session().name(), ++*asked);
    action const what = co_await call.ask_by_url(
        "page", "Please open this page", "https://example.com/?question=" + id, id, answer_limit);
    // There is nothing to be done on this page, so it is done once it is open.
    if (what == action::accepted)
        call.url_is_done(id);
    co_return fmt::format(R"({{"action":"{}"}})", word_of(what));
}

}

std::string answer_text(answer<json::object> const& given)
{
    json::object all;
    all["action"] = word_of(given.what());
    if (given)
        all["content"] = *given;
    return json_text::to_json(all);
}

void add_questions(server& server)
{
    server.tool("sampleLLM", sample_llm).describe("Asks the client's model").read_only();
    server.tool("elicitInputs", elicit_inputs).describe("Asks the user to fill in a form").read_only();
    auto const asked = std::make_shared<std::atomic<std::uint64_t>>(0);
    server.tool("elicitUrl", [asked](call& call) { return elicit_url(call, asked); })
        .describe("Asks the user to open a page")
        .read_only();
    server.tool("listRoots", list_roots).describe("Lists the roots that the client offers").read_only();
}

}
