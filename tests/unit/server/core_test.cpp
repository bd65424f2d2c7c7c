#include "server/core.hpp"

#include "protocol/names.hpp"
#include "server/access.hpp"
#include "unit/server/node_fixture.hpp"

#include <boost/json/serialize.hpp>

#include <future>

namespace belay::inline v0 {

namespace {

using namespace std::chrono_literals;
using protocol::revision;

// --- registration

std::string nothing()
{
    return "done";
}

TEST(Server, RefusesABadToolName)
{
    server server("s", "1");
    for (std::string const& name :
         {std::string(), std::string("a b"), std::string("a/b"), std::string("\xC3\xA9"), std::string("a\n"),
          std::string("a\0", 2), std::string(129, 'x')})
        EXPECT_THROW(server.tool(name, nothing), std::invalid_argument) << name;
}

TEST(Server, TakesEveryGoodToolName)
{
    server server("s", "1");
    for (std::string const& name : {std::string("a"), std::string("A.b_c-9"), std::string(128, 'x')})
        EXPECT_NO_THROW(server.tool(name, nothing)) << name;
}

TEST(Server, RefusesATwiceRegisteredTool)
{
    server server("s", "1");
    server.tool("a", nothing);
    EXPECT_THROW(server.tool("a", nothing), std::invalid_argument);
}

TEST(Server, RefusesATimeoutForAQuickTool)
{
    server server("s", "1");
    EXPECT_NO_THROW(server.tool("a", nothing).timeout(1s).blocking());
    EXPECT_NO_THROW(detail::access::core(server)->get_ready({}));
    server.tool("b", nothing).timeout(1s); // said when it starts
    EXPECT_THROW(detail::access::core(server)->get_ready({}), std::invalid_argument);
}

TEST(Server, RunsAgainOnlyWhatDoesNoHarmTwice)
{
    auto const is_taken = [](auto const& say) {
        server server("s", "1");
        say(server.tool("a", nothing));
        try {
            detail::access::core(server)->get_ready({});
            return true;
        } catch (std::invalid_argument const&) {
            return false;
        }
    };
    EXPECT_FALSE(is_taken([](tool_entry&& quick) { quick.read_only().on_interruption(rerun); }));
    EXPECT_FALSE(is_taken([](tool_entry&& unsafe) { unsafe.blocking().on_interruption(rerun); }));
    EXPECT_TRUE(is_taken([](tool_entry&& each) { each.blocking().read_only().on_interruption(rerun); }));
    EXPECT_TRUE(is_taken([](tool_entry&& each) { each.on_interruption(rerun).idempotent().blocking(); }));
    EXPECT_TRUE(is_taken([](tool_entry&& each) { each.blocking().on_interruption(after_interruption::end); }));
}

TEST(Server, RefusesTurnsForAQuickTool)
{
    server server("s", "1");
    EXPECT_NO_THROW(server.tool("a", nothing).at_most(1).blocking());
    EXPECT_NO_THROW(server.tool("b", nothing).blocking().at_most(1));
    EXPECT_THROW(server.tool("c", nothing).blocking().at_most(0), std::invalid_argument);
}

TEST(Server, LetsABlockingToolHaveATimeout)
{
    server server("s", "1");
    EXPECT_NO_THROW(server.tool("a", nothing).blocking().timeout(1s).cancel_when_orphaned(1s));
    EXPECT_NO_THROW(server.tool("b", [](blocking_call&) { return std::string(); }).blocking().timeout(1s));
}

TEST(Server, RefusesABlockingCoroutine)
{
    server server("s", "1");
    auto const coroutine = [](call&) -> task<std::string> { co_return std::string(); };
    EXPECT_THROW(server.tool("a", coroutine).blocking(), std::invalid_argument);
}

TEST(Server, NamesTheToolInItsRefusal)
{
    server server("s", "1");
    server.tool("twice", nothing);
    try {
        server.tool("twice", nothing);
        FAIL() << "was taken";
    } catch (std::invalid_argument const& error) {
        EXPECT_NE(std::string(error.what()).find("twice"), std::string::npos);
    }
}

TEST(Server, IntroducesItself)
{
    server server("my \"server\"", "1.2");
    server.instructions("be kind");
    EXPECT_EQ(
        json::parse(detail::access::core(server)->initialize_result(
            revision::r2025_06_18, runtime::session_mode::kept, detail::access::core(server)->features())),
        (json::value{
            {"protocolVersion", "2025-06-18"},
            {"capabilities", {{"logging", json::object()}, {"tools", {{"listChanged", true}}}}},
            {"serverInfo", {{"name", "my \"server\""}, {"version", "1.2"}}},
            {"instructions", "be kind"}}));
}

TEST(Server, HasNoInstructionsUnlessGiven)
{
    EXPECT_FALSE(json::parse(detail::access::core(server("s", "1"))
                                 ->initialize_result(revision::r2025_11_25, runtime::session_mode::kept, 0))
                     .as_object()
                     .contains("instructions"));
}

// --- dispatch, on a node with a memory store

struct place {
    std::string city;
};
BOOST_DESCRIBE_STRUCT(place, (), (city))

struct trip_args {
    place where;
    int days = 1;
    static constexpr field docs[] = {field("days").range(1, 30).defaulted()};
};
BOOST_DESCRIBE_STRUCT(trip_args, (), (where, days))

std::string trip(trip_args args)
{
    return args.where.city + ' ' + std::to_string(args.days);
}

task<std::string> slow_trip(call& on, trip_args args)
{
    co_await on.log(log_level::info, "trip", "leaving");
    co_await on.sleep(10min);
    co_return args.where.city;
}

struct forecast {
    int degrees = 0;
};
BOOST_DESCRIBE_STRUCT(forecast, (), (degrees))

class Dispatch : public OnNode {
protected:
    ~Dispatch() override
    {
        // A call that is left over holds its loop's timers.
        node_.calls().interrupt_all();
        run();
    }

    /// Works off what is posted, and the timers that are due.
    void run()
    {
        loop_.context().restart();
        loop_.poke();
        loop_.context().poll();
    }
    void advance(base::duration by)
    {
        clock_.advance(by);
        run();
    }
    runtime::outcome
    call(std::string const& tool, std::string const& arguments, revision revision = protocol::newest_revision)
    {
        return handle(
            R"({"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":")" + tool + R"(","arguments":)"
                + arguments + "}}",
            revision);
    }
    static json::value answer(runtime::outcome const& outcome)
    {
        auto const* instant = std::get_if<runtime::instant_answer>(&outcome);
        if (!instant) {
            ADD_FAILURE() << "not answered at once";
            return {};
        }
        return json::parse(instant->response);
    }
    static std::string text_of(json::value const& answer)
    {
        return std::string(answer.at("result").at("content").at(0).at("text").as_string());
    }

    /// Begins a call as a transport does, without a connection.
    std::shared_ptr<runtime::call> start(runtime::outcome outcome)
    {
        auto* const begin = std::get_if<runtime::start_call>(&outcome);
        if (!begin) {
            ADD_FAILURE() << "not a call: " << json::serialize(answer(outcome));
            return nullptr;
        }
        std::shared_ptr<runtime::call> made;
        node_.calls().begin(
            *use_, loop_, {{"\"7\""}, protocol::newest_revision, begin->traits},
            [&](result<runtime::begun_call> begun) {
                ASSERT_TRUE(begun);
                made = begun->call;
                begun->following->peer_gone(); // nobody is connected
            });
        begin->run(made);
        run();
        return made;
    }
    std::vector<json::value> stream_of(runtime::call const& of)
    {
        std::vector<json::value> messages;
        store_.read_after(of.stream(), 0, {}, std::nullopt, [&](result<store::page> page) {
            ASSERT_TRUE(page);
            for (auto const& each : page->events)
                messages.push_back(json::parse(*each.payload));
        });
        return messages;
    }
};

TEST_F(Dispatch, CountsSubscriptionsExactlyWhoeverComesFirst)
{
    server_.resource("x://{name}", [](json::object) { return std::string(); });
    auto const limit = node_.settings().max_subscriptions;
    std::vector<runtime::outcome> outcomes;
    for (std::size_t i = 0; i < limit + 2; ++i) // all of them find room before one of them takes it
        outcomes.push_back(handle(
            R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x://)" + std::to_string(i)
            + "\"}}"));
    std::size_t accepted = 0;
    for (auto& each : outcomes)
        std::get<runtime::deferred_answer>(each).run(
            [&](std::string answer) { accepted += answer.contains("\"result\"") ? 1 : 0; });
    run();
    EXPECT_EQ(accepted, limit);
    // Again what is there already is no further one.
    auto again = handle(R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x://0"}})");
    bool is_taken = false;
    std::get<runtime::deferred_answer>(again).run(
        [&](std::string answer) { is_taken = answer.contains("\"result\""); });
    EXPECT_TRUE(is_taken);
}

TEST_F(Dispatch, KnowsARouteThatIsInstantBeforeItRuns)
{
    server_.tool("quick", [] { return std::string("q"); });
    server_.tool("waits", [](belay::call&) -> task<std::string> { co_return "w"; });
    server_.tool("safe", [](belay::call&) -> task<std::string> { co_return "s"; }).idempotent();
    server_.resource("r://quick", [] { return std::string("q"); });
    server_.resource("r://waits", [](belay::call&) -> task<std::string> { co_return "w"; })
        .on_subscribe([](belay::call&, std::string) -> task<void> { co_return; });
    server_.prompt("quick", [] { return std::string("q"); });
    server_.prompt("waits", [](belay::call&) -> task<std::string> { co_return "w"; });
    auto const is_instant = [&](std::string const& method, std::string const& params) {
        auto const request
            = json::parse(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}");
        auto const message = protocol::read_message(request);
        auto route = detail::access::core(server_)->find(*message);
        auto const outcome = route.run({node_, use_->session(), protocol::newest_revision, *message});
        // What it says of itself is what it does.
        bool const is_call = std::holds_alternative<runtime::start_call>(outcome);
        EXPECT_EQ(is_call, !route.is_instant || route.has_key) << method << params;
        if (is_call)
            EXPECT_EQ(route.kind, runtime::request_kind(std::get<runtime::start_call>(outcome).traits))
                << method << params;
        return !is_call;
    };
    EXPECT_TRUE(is_instant("ping", "{}"));
    EXPECT_TRUE(is_instant("tools/list", "{}"));
    EXPECT_TRUE(is_instant("tools/call", R"({"name":"quick"})"));
    EXPECT_TRUE(is_instant("tools/call", R"({"name":"nothing"})"));
    EXPECT_TRUE(is_instant("tools/call", "{}"));
    EXPECT_FALSE(is_instant("tools/call", R"({"name":"waits"})"));
    EXPECT_FALSE(is_instant("tools/call", R"({"name":"safe"})"));
    EXPECT_FALSE(is_instant("tools/call", R"({"name":"quick","_meta":{"belay/idempotencyKey":"k"}})"));
    EXPECT_TRUE(is_instant("resources/read", R"({"uri":"r://quick"})"));
    EXPECT_TRUE(is_instant("resources/read", R"({"uri":"r://nothing"})"));
    EXPECT_TRUE(is_instant("resources/read", "{}"));
    EXPECT_FALSE(is_instant("resources/read", R"({"uri":"r://waits"})"));
    EXPECT_TRUE(is_instant("resources/subscribe", R"({"uri":"r://quick"})"));
    EXPECT_FALSE(is_instant("resources/subscribe", R"({"uri":"r://waits"})"));
    EXPECT_TRUE(is_instant("resources/unsubscribe", R"({"uri":"r://waits"})"));
    EXPECT_TRUE(is_instant("prompts/get", R"({"name":"quick"})"));
    EXPECT_TRUE(is_instant("prompts/get", R"({"name":"nothing"})"));
    EXPECT_FALSE(is_instant("prompts/get", R"({"name":"waits"})"));
    EXPECT_TRUE(is_instant("logging/setLevel", R"({"level":"info"})"));
    EXPECT_TRUE(is_instant("no/method", "{}"));
}

TEST_F(Dispatch, RunsWhatWasFoundThoughItIsGone)
{
    server_.tool("first", [] { return std::string("the first"); });
    request_ = json::parse(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"first"}})");
    auto const message = protocol::read_message(request_);
    auto route = detail::access::core(server_)->find(*message);
    EXPECT_TRUE(server_.remove_tool("first"));
    server_.tool("first", [](belay::call&) -> task<std::string> { co_return "the second"; });
    EXPECT_TRUE(route.is_instant);
    EXPECT_EQ(text_of(answer(route.run({node_, use_->session(), protocol::newest_revision, *message}))), "the first");
}

TEST_F(Dispatch, RunsNothingWhileItLooks)
{
    int runs = 0;
    server_.tool("counted", [&runs] { return std::to_string(++runs); });
    request_ = json::parse(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"counted"}})");
    auto const message = protocol::read_message(request_);
    (void)detail::access::core(server_)->find(*message);
    EXPECT_EQ(runs, 0);
}

TEST_F(Dispatch, GivesTheRequestOfAToolThatMayRunAgainAndKnowsItByItsSchema)
{
    auto const work = [](belay::call&) -> task<std::string> { co_return "done"; };
    server_.tool("again", work).idempotent().on_interruption(rerun);
    server_.tool("once", work).idempotent();
    auto const start_of = [&](std::string const& name) {
        auto const value = protocol::parse_json(
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + name
                + R"(","arguments":{},"_meta":{"m":1}}})",
            {});
        auto const message = protocol::read_message(*value);
        return std::get<runtime::start_call>(detail::access::core(server_)->find(*message).run(
            {node_, use_->session(), protocol::newest_revision, *message}));
    };
    EXPECT_FALSE(start_of("once").again);
    auto const again = start_of("again").again;
    ASSERT_TRUE(again);
    EXPECT_EQ(
        again->message,
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"again","arguments":{},"_meta":{"m":1}}})");
    EXPECT_TRUE(detail::access::core(server_)->can_run(again->work));
    EXPECT_FALSE(detail::access::core(server_)->can_run(again->work + 1));
    server_.remove_tool("again");
    EXPECT_FALSE(detail::access::core(server_)->can_run(again->work));
    server_.tool("again", work)
        .input_schema({{"type", "object"}, {"minProperties", 0}})
        .idempotent()
        .on_interruption(rerun);
    EXPECT_FALSE(detail::access::core(server_)->can_run(again->work));
}

TEST_F(Dispatch, AnswersAPing)
{
    EXPECT_EQ(
        answer(handle(R"({"jsonrpc":"2.0","id":0,"method":"ping"})")),
        (json::value{{"jsonrpc", "2.0"}, {"id", 0}, {"result", json::object()}}));
}

TEST_F(Dispatch, DoesNotKnowOtherMethods)
{
    for (auto const method : {"resources/forget", "prompts/put", "", "Ping", "tools/call2"})
        EXPECT_EQ(
            answer(handle(std::string(R"({"jsonrpc":"2.0","id":1,"method":")") + method + "\"}"))
                .at("error")
                .at("code"),
            -32601);
}

TEST_F(Dispatch, ListsToolsInTheOrderOfTheirRegistration)
{
    server_.tool("z", nothing);
    server_.tool("a", trip);
    auto const tools
        = answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")).at("result").at("tools").as_array();
    ASSERT_EQ(tools.size(), 2u);
    EXPECT_EQ(tools[0].at("name"), "z");
    EXPECT_EQ(tools[1].at("name"), "a");
}

TEST_F(Dispatch, ListsNoToolsAsAnEmptyList)
{
    EXPECT_TRUE(answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"))
                    .at("result")
                    .at("tools")
                    .as_array()
                    .empty());
}

TEST_F(Dispatch, RefusesACursorItNeverGave)
{
    EXPECT_EQ(
        answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})"))
            .at("error")
            .at("code"),
        -32602);
}

TEST_F(Dispatch, TakesNoCursorForTheFirstPage)
{
    auto const first = answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"));
    EXPECT_EQ(answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null}})")), first);
    EXPECT_TRUE(first.at("result").at("tools").is_array());
}

TEST_F(Dispatch, AnswersAQuickToolAtOnce)
{
    server_.tool("trip", trip);
    auto const result = answer(call("trip", R"({"where":{"city":"Rome"},"days":3})"));
    EXPECT_EQ(result.at("id"), "7");
    EXPECT_EQ(text_of(result), "Rome 3");
}

TEST_F(Dispatch, HoldsTheResultOfAQuickToolToTheSizeOfAnEvent)
{
    auto const most = node_.settings().limits.event_bytes;
    server_.tool("fits", [most] { return std::string(most - 1000, 'x'); });
    server_.tool("text", [most] { return std::string(most, 'x'); });
    server_.tool("blocks", [most] {
        tool_result result;
        result.content.push_back(content::text(std::string(most, 'x')));
        return result;
    });
    EXPECT_EQ(text_of(answer(call("fits", "{}"))).size(), most - 1000);
    for (auto const* name : {"text", "blocks"}) {
        auto const result = answer(call(name, "{}")).at("result");
        EXPECT_EQ(result.at("isError"), true) << name;
        EXPECT_EQ(result.at("_meta").at("belay/ended").at("reason"), "result_too_large") << name;
    }
}

TEST_F(Dispatch, HoldsOtherAnswersToTheSizeOfAnEvent)
{
    auto const most = node_.settings().limits.event_bytes;
    server_.resource("x://fits", [most] { return std::string(most - 1000, 'x'); });
    server_.resource("x://text", [most] { return std::string(most, 'x'); });
    server_.resource("x://escaped", [most] { return std::string(most / 2, '"'); });
    server_.resource("x://bytes", [most] { return blob{std::string(most / 4 * 3, 'x')}; });
    server_.prompt("prompt", [most] { return std::string(most, 'x'); });
    auto const read = [&](std::string const& uri) {
        return answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":")" + uri + "\"}}"));
    };
    EXPECT_EQ(read("x://fits").at("result").at("contents").at(0).at("text").as_string().size(), most - 1000);
    for (auto const& refused :
         {read("x://text"), read("x://escaped"), read("x://bytes"),
          answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"prompt"}})"))}) {
        EXPECT_EQ(refused.at("error").at("code"), -32603);
        EXPECT_EQ(refused.at("error").at("message"), "The answer is larger than this server passes on.");
        EXPECT_EQ(refused.at("error").at("data").at("reason"), "result_too_large");
    }
}

TEST_F(Dispatch, HoldsAResourceThatWaitsToTheSizeOfAnEvent)
{
    auto const most = node_.settings().limits.event_bytes;
    server_.resource("x://slow", [most](belay::call& on) -> task<std::string> {
        co_await on.sleep(1s);
        co_return std::string(most, 'x');
    });
    auto const on
        = start(handle(R"({"jsonrpc":"2.0","id":"7","method":"resources/read","params":{"uri":"x://slow"}})"));
    advance(1s);
    EXPECT_EQ(stream_of(*on).back().at("error").at("data").at("reason"), "result_too_large");
}

TEST_F(Dispatch, EndsAPageOfAListBeforeItIsLargerThanAnEvent)
{
    auto const most = node_.settings().limits.event_bytes;
    for (auto const* name : {"a", "b", "c", "d", "e"})
        server_.tool(name, nothing).describe(std::string(most / 3, 'x'));
    std::string names;
    std::string cursor;
    int pages = 0;
    do {
        auto const outcome = handle(
            R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{)"
            + (cursor.empty() ? std::string() : R"("cursor":")" + cursor + "\"") + "}}");
        EXPECT_LE(std::get<runtime::instant_answer>(outcome).response.size(), most);
        auto const result = answer(outcome).at("result");
        for (auto const& each : result.at("tools").as_array())
            names += each.at("name").as_string();
        auto const* next = result.as_object().if_contains("nextCursor");
        cursor = next ? std::string(next->as_string()) : std::string();
    } while (++pages < 10 && !cursor.empty());
    EXPECT_EQ(names, "abcde");
    EXPECT_EQ(pages, 3);
}

TEST_F(Dispatch, RunsAToolWithoutArguments)
{
    server_.tool("nothing", nothing);
    EXPECT_EQ(
        text_of(answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}})"))),
        "done");
}

TEST_F(Dispatch, PassesPlainJsonToAToolThatWantsIt)
{
    server_.tool("raw", [](json::object in) { return json::serialize(in); });
    EXPECT_EQ(text_of(answer(call("raw", R"({"a":[1]})"))), R"({"a":[1]})");
}

TEST_F(Dispatch, SendsAStructAsStructuredContent)
{
    server_.tool("forecast", [] { return forecast{21}; });
    auto const result = answer(call("forecast", "{}")).at("result");
    EXPECT_EQ(result.at("structuredContent"), (json::value{{"degrees", 21}}));
    EXPECT_FALSE(
        answer(call("forecast", "{}", revision::r2025_03_26)).at("result").as_object().contains("structuredContent"));
}

struct bad_call {
    char const* params;
    char const* text;
};

TEST_F(Dispatch, RefusesACallThatNamesNoTool)
{
    server_.tool("trip", trip);
    for (auto const& [params, text] : {
             bad_call{"{}", "params.name must be the name of a tool"},
             bad_call{R"({"name":5})", "params.name must be the name of a tool"},
             bad_call{R"({"name":"Trip"})", "Unknown tool"},
             bad_call{R"({"name":""})", "Unknown tool"},
             bad_call{R"({"name":"trip","arguments":[]})", "params.arguments must be an object"},
             bad_call{R"({"name":"trip","arguments":null})", "params.arguments must be an object"},
         }) {
        auto const refusal
            = answer(handle(std::string(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)") + params + "}"));
        EXPECT_EQ(refusal.at("error").at("code"), -32602) << params;
        EXPECT_TRUE(std::string(refusal.at("error").at("message").as_string()).starts_with(text)) << params;
    }
    EXPECT_EQ(answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})")).at("error").at("code"), -32602);
}

struct bad_arguments {
    char const* arguments;
    char const* path;
};

constexpr bad_arguments wrong[] = {
    {R"({"where":{"city":5}})", "/where/city"},
    {R"({"where":"Rome"})", "/where"},
    {R"({"where":{}})", "/where"},
    {R"({})", "where"},
    {R"({"where":{"city":"Rome"},"days":31})", "/days"},
    {R"({"where":{"city":"Rome"},"days":"3"})", "/days"},
};

TEST_F(Dispatch, TellsTheModelWhichArgumentIsWrong)
{
    server_.tool("trip", trip);
    server_.tool("slow", slow_trip);
    for (auto const& [arguments, path] : wrong)
        for (auto const tool : {"trip", "slow"}) {
            auto const result = answer(call(tool, arguments));
            EXPECT_EQ(result.at("result").at("isError"), true);
            auto const text = text_of(result);
            EXPECT_TRUE(text.starts_with(std::string("Invalid arguments for tool ") + tool + ": ")) << text;
            EXPECT_NE(text.find(path), std::string::npos) << text;
        }
}

TEST_F(Dispatch, TellsOlderClientsAsAProtocolError)
{
    server_.tool("trip", trip);
    server_.tool("slow", slow_trip);
    for (auto const old : {revision::r2024_11_05, revision::r2025_03_26, revision::r2025_06_18})
        for (auto const& [arguments, path] : wrong)
            for (auto const tool : {"trip", "slow"}) {
                auto const refusal = answer(call(tool, arguments, old));
                EXPECT_EQ(refusal.at("error").at("code"), -32602);
                EXPECT_NE(std::string(refusal.at("error").at("message").as_string()).find(path), std::string::npos);
            }
}

TEST_F(Dispatch, ShowsAToolErrorAndHidesOtherExceptions)
{
    server_.tool("refuses", []() -> std::string { throw tool_error("no such city"); });
    server_.tool("breaks", []() -> std::string { throw std::runtime_error("secret"); });
    auto const refused = answer(call("refuses", "{}"));
    EXPECT_EQ(refused.at("result").at("isError"), true);
    EXPECT_EQ(text_of(refused), "no such city");
    auto const broken = answer(call("breaks", "{}"));
    EXPECT_EQ(broken.at("result").at("isError"), true);
    EXPECT_EQ(json::serialize(broken).find("secret"), std::string::npos);
    ASSERT_EQ(logged_.size(), 1u);
    EXPECT_TRUE(logged_[0].starts_with("tool breaks failed: secret session=")) << logged_[0];
}

struct reading {
    double value = 0;
    std::vector<double> others;
};
BOOST_DESCRIBE_STRUCT(reading, (), (value, others))

TEST_F(Dispatch, SendsNoNumberThatJsonDoesNotHave)
{
    auto const infinity = std::numeric_limits<double>::infinity();
    server_.tool("fine", [] { return reading{1.5, {2}}; });
    server_.tool("infinite", [infinity] { return reading{infinity, {}}; });
    server_.tool("none", [] { return reading{0, {1, std::numeric_limits<double>::quiet_NaN()}}; });
    EXPECT_EQ(answer(call("fine", "{}")).at("result").at("structuredContent").at("value"), 1.5);
    for (auto const& [tool, place] : {std::pair{"infinite", "value"}, std::pair{"none", "others"}}) {
        EXPECT_EQ(answer(call(tool, "{}")).at("result").at("isError"), true);
        EXPECT_TRUE(logged_.back().contains(std::string(place) + " in its structured content is not finite"));
    }
}

// --- tools that wait

TEST_F(Dispatch, RunsAToolThatWaitsToItsFirstWait)
{
    server_.tool("slow", slow_trip);
    auto const on = start(call("slow", R"({"where":{"city":"Rome"}})"));
    ASSERT_EQ(stream_of(*on).size(), 1u);
    EXPECT_EQ(stream_of(*on)[0].at("method"), "notifications/message");
    EXPECT_EQ(stream_of(*on)[0].at("params").at("data"), "leaving");
}

TEST_F(Dispatch, EndsAToolThatWaitsWithItsResult)
{
    server_.tool("slow", slow_trip);
    auto const on = start(call("slow", R"({"where":{"city":"Rome"}})"));
    advance(10min);
    auto const messages = stream_of(*on);
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_EQ(messages[1].at("id"), "7");
    EXPECT_EQ(text_of(messages[1]), "Rome");
}

TEST_F(Dispatch, ShowsTheErrorOfAToolThatWaits)
{
    server_.tool("refuses", [](belay::call& on) -> task<std::string> {
        co_await on.sleep(1s);
        throw tool_error("no such city");
    });
    server_.tool("breaks", [](belay::call& on) -> task<std::string> {
        co_await on.sleep(1s);
        throw std::runtime_error("secret");
    });
    auto const refused = start(call("refuses", "{}"));
    auto const broken = start(call("breaks", "{}"));
    advance(1s);
    EXPECT_EQ(text_of(stream_of(*refused).back()), "no such city");
    EXPECT_EQ(stream_of(*refused).back().at("result").at("isError"), true);
    EXPECT_EQ(json::serialize(stream_of(*broken).back()).find("secret"), std::string::npos);
    ASSERT_EQ(logged_.size(), 1u);
    EXPECT_TRUE(logged_[0].starts_with("tool breaks failed: secret session=")) << logged_[0];
}

TEST_F(Dispatch, UnwindsATimedOutTool)
{
    struct marker {
        bool& is_gone;
        ~marker() { is_gone = true; }
    };
    bool is_gone = false;
    server_
        .tool(
            "stuck",
            [&is_gone](belay::call& on) -> task<std::string> {
                marker const here{is_gone};
                co_await on.sleep(100h);
                co_return "never";
            })
        .timeout(10s);
    auto const on = start(call("stuck", "{}"));
    advance(10s);
    EXPECT_TRUE(is_gone);
    auto const last = stream_of(*on).back();
    EXPECT_EQ(last.at("result").at("_meta").at("belay/ended").at("reason"), "timed_out");
    EXPECT_EQ(last.at("result").at("_meta").at("belay/ended").at("retryable"), false);
}

TEST_F(Dispatch, KnowsWhichToolsMayBeCalledAgain)
{
    auto const stuck = [](belay::call& on) -> task<std::string> {
        co_await on.sleep(100h);
        co_return "never";
    };
    server_.tool("plain", stuck).timeout(1s);
    server_.tool("reads", stuck).timeout(1s).read_only();
    server_.tool("repeats", stuck).timeout(1s).idempotent();
    for (auto const& [tool, is_retryable] : {std::pair{"plain", false}, {"reads", true}, {"repeats", true}}) {
        auto const on = start(call(tool, "{}"));
        advance(1s);
        EXPECT_EQ(stream_of(*on).back().at("result").at("_meta").at("belay/ended").at("retryable"), is_retryable)
            << tool;
    }
}

TEST_F(Dispatch, SendsProgressToACallerThatAsked)
{
    server_.tool("counts", [](belay::call& on) -> task<std::string> {
        auto progress = on.progress(2);
        co_await progress.step("one");
        co_await on.sleep(1s);
        co_await progress.report(1.5);
        co_await progress.report(1); // back: not sent
        co_return "two";
    });
    auto const on = start(handle(
        R"({"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"counts","_meta":{"progressToken":"t"}}})"));
    advance(1s);
    auto const messages = stream_of(*on);
    ASSERT_EQ(messages.size(), 3u);
    EXPECT_EQ(
        messages[0].at("params"),
        (json::value{{"progressToken", "t"}, {"progress", 1}, {"total", 2}, {"message", "one"}}));
    EXPECT_EQ(messages[1].at("params"), (json::value{{"progressToken", "t"}, {"progress", 1.5}, {"total", 2}}));
}

TEST_F(Dispatch, SendsNoProgressToACallerThatDidNotAsk)
{
    server_.tool("counts", [](belay::call& on) -> task<std::string> {
        auto progress = on.progress();
        co_await progress.step();
        co_return "two";
    });
    EXPECT_EQ(stream_of(*start(call("counts", "{}"))).size(), 1u);
}

TEST_F(Dispatch, SetsTheLevelOfTheSession)
{
    auto outcome = handle(R"({"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"warning"}})");
    auto* const deferred = std::get_if<runtime::deferred_answer>(&outcome);
    ASSERT_NE(deferred, nullptr);
    std::string response;
    deferred->run([&](std::string text) { response = std::move(text); });
    EXPECT_EQ(response, R"({"jsonrpc":"2.0","id":3,"result":{}})");
    server_.tool("slow", slow_trip);
    auto const on = start(call("slow", R"({"where":{"city":"Rome"}})"));
    EXPECT_TRUE(stream_of(*on).empty()); // its message is below the level
}

TEST_F(Dispatch, ASessionThatIsKeptSpeaksAtTheLevelOfNow)
{
    std::optional<session> kept;
    server_.tool("keep", [&](caller const& by) {
        kept = by.session();
        return std::string("kept");
    });
    node_.start(loop_);
    (void)handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"keep"}})");
    ASSERT_TRUE(kept);
    auto record = *use_->session()->current_record();
    record.log_level = static_cast<int>(log_level::error);
    store_.update(record, [](result<store::record_ptr> changed) { EXPECT_TRUE(changed); }); // another node's doing
    run();
    kept->log(log_level::info, "kept", "not heard");
    kept->log(log_level::error, "kept", "heard");
    run();
    store_.read_after({use_->session()->key, record.standalone}, 0, {}, std::nullopt, [](result<store::page> page) {
        ASSERT_EQ(page.value().events.size(), 1u);
        EXPECT_NE(page->events.front().payload->find("\"heard\""), std::string::npos);
    });
    node_.stop();
}

TEST_F(Dispatch, RefusesALevelThatIsNone)
{
    for (auto const params : {"{}", R"({"level":5})", R"({"level":"loud"})"})
        EXPECT_EQ(
            answer(
                handle(std::string(R"({"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":)") + params + "}"))
                .at("error")
                .at("code"),
            -32602)
            << params;
}

// --- schemas of the author's own

json::object parsed(std::string_view text)
{
    return json::parse(json::string_view(text)).as_object();
}

// The schema of the conformance suite's json_schema_2020_12_tool.
constexpr std::string_view contact_schema
    = R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
    "$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},
        "city":{"type":"string"}}}},
    "properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},
        "contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
    "allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
    "if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},
    "else":{"required":["email"]},"additionalProperties":false})";

TEST_F(Dispatch, ChecksArgumentsAgainstTheAuthorsSchema)
{
    int runs = 0;
    server_
        .tool(
            "raw",
            [&](json::object) {
                ++runs;
                return std::string("ran");
            })
        .input_schema(parsed(contact_schema));
    EXPECT_EQ(text_of(answer(call("raw", R"({"contactMethod":"phone","phone":"1"})"))), "ran");
    for (auto const& [arguments, says] : {
             std::pair{R"({"contactMethod":"phone","email":"a"})", "/phone: required"},
             {R"({"email":"a","address":{"city":5}})", "/address/city: expected string"},
             {R"({"email":"a","extra":5})", "/extra: unknown member"},
         }) {
        auto const refused = answer(call("raw", arguments));
        EXPECT_EQ(text_of(refused), std::string("Invalid arguments for tool raw: ") + says);
        EXPECT_EQ(refused.at("result").at("isError"), true);
        EXPECT_EQ(answer(call("raw", arguments, revision::r2025_06_18)).at("error").at("code"), -32602);
    }
    EXPECT_EQ(runs, 1);
}

TEST_F(Dispatch, LeavesOutNullsThatASchemaNeitherTakesNorRequires)
{
    json::object got;
    server_
        .tool(
            "raw",
            [&got](json::object in) {
                got = std::move(in);
                return std::string("ran");
            })
        .input_schema(parsed(R"({"type":"object","required":["a"],"additionalProperties":false,"properties":
        {"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":["string","null"]},"d/e":{"type":"object"}}})"));
    EXPECT_EQ(text_of(answer(call("raw", R"({"a":1,"b":null,"c":null,"d/e":null})"))), "ran");
    EXPECT_EQ(got, parsed(R"({"a":1,"c":null})"));
    EXPECT_EQ(text_of(answer(call("raw", R"({"a":1,"b":"x","c":null})"))), "ran");
    EXPECT_EQ(got, parsed(R"({"a":1,"b":"x","c":null})"));
    for (auto const& [arguments, says] : {
             std::pair{R"({"a":null,"b":null})", "/a: expected integer"},
             {R"({"a":1,"b":null,"x":null})", "/x: unknown member"},
             {R"({"a":1,"b":null,"d/e":5})", "/d~1e: expected object"},
         })
        EXPECT_EQ(text_of(answer(call("raw", arguments))), std::string("Invalid arguments for tool raw: ") + says);
}

TEST_F(Dispatch, AToolWithoutArgumentsIgnoresWhatItIsSent)
{
    server_.tool("bare", [] { return std::string("ran"); });
    EXPECT_EQ(text_of(answer(call("bare", R"({"dummy":1})"))), "ran");
    auto const list = answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"));
    EXPECT_EQ(
        list.at("result").at("tools").at(0).at("inputSchema"),
        parsed(R"({"type":"object","properties":{},"additionalProperties":false})"));
}

TEST_F(Dispatch, ChecksAbsentArgumentsToo)
{
    server_.tool("raw", [](json::object) { return std::string("ran"); })
        .input_schema(parsed(R"({"type":"object","required":["a"]})"));
    EXPECT_EQ(
        text_of(answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw"}})"))),
        "Invalid arguments for tool raw: /a: required");
}

TEST_F(Dispatch, ChecksArgumentsOfToolsThatWait)
{
    server_.tool("waits", [](belay::call&, json::object) -> task<std::string> { co_return "ran"; })
        .input_schema(parsed(R"({"type":"object","required":["a"]})"));
    EXPECT_EQ(text_of(answer(call("waits", "{}"))), "Invalid arguments for tool waits: /a: required");
    EXPECT_EQ(text_of(stream_of(*start(call("waits", R"({"a":1})"))).at(0)), "ran");
}

TEST_F(Dispatch, ChecksATypedToolsArgumentsAgainstBoth)
{
    server_.tool("trip", trip)
        .input_schema(parsed(R"({"type":"object","properties":{"days":{"type":"integer","maximum":3}}})"));
    EXPECT_EQ(
        text_of(answer(call("trip", R"({"where":{"city":"Rome"},"days":4})"))),
        "Invalid arguments for tool trip: /days: expected integer of at most 3");
    EXPECT_EQ(text_of(answer(call("trip", "{}"))), "Invalid arguments for tool trip: /where: required");
}

TEST_F(Dispatch, HoldsSchemasToTheOperatorsLimits)
{
    server_.tool("raw", [](json::object) { return std::string("taken"); })
        .input_schema(parsed(R"({"type":"object","properties":{"all":{"items":{"type":"integer"}}}})"));
    auto const arguments = R"({"all":[1,2,3,4,5,6]})";
    EXPECT_EQ(text_of(answer(call("raw", arguments))), "taken");
    detail::schema_limits limits;
    limits.max_steps = 5;
    detail::access::core(server_)->get_ready(limits);
    EXPECT_EQ(text_of(answer(call("raw", arguments))), "Invalid arguments for tool raw: too much to be checked");
    limits = {};
    limits.max_schemas = 2;
    try {
        detail::access::core(server_)->get_ready(limits);
        FAIL() << "was taken";
    } catch (std::invalid_argument const& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("tool raw, input schema: ")) << error.what();
    }
    EXPECT_THROW(
        server_.tool("late", [](json::object) { return std::string(); })
            .input_schema(parsed(R"({"type":"object","properties":{"a":{"items":{"type":"integer"}}}})")),
        std::invalid_argument);
}

TEST_F(Dispatch, ListsTheAuthorsSchemaAsItIs)
{
    server_.tool("raw", [](json::object) { return std::string(); }).input_schema(parsed(contact_schema));
    auto const list = answer(handle(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"));
    EXPECT_EQ(
        json::serialize(list.at("result").at("tools").at(0).at("inputSchema")),
        json::serialize(parsed(contact_schema)));
}

TEST_F(Dispatch, ChecksStructuredContentBeforeItIsSent)
{
    auto const schema
        = parsed(R"({"type":"object","properties":{"degrees":{"type":"integer"}},"required":["degrees"]})");
    auto const give = [](json::object in) {
        tool_result result;
        result.text = "text";
        if (auto const* given = in.if_contains("give"))
            result.structured = *given;
        result.is_error = in.contains("error");
        return result;
    };
    server_.tool("quick", give).output_schema(schema);
    server_.tool("waits", [give](belay::call&, json::object in) -> task<tool_result> { co_return give(in); })
        .output_schema(schema);
    auto const run = [&](char const* tool, char const* arguments) {
        auto outcome = call(tool, arguments);
        return std::holds_alternative<runtime::start_call>(outcome) ? stream_of(*start(std::move(outcome))).at(0)
                                                                    : answer(outcome);
    };
    for (auto const* const tool : {"quick", "waits"}) {
        EXPECT_EQ(
            run(tool, R"({"give":{"degrees":3}})").at("result").at("structuredContent"), (json::value{{"degrees", 3}}));
        EXPECT_EQ(text_of(run(tool, R"({"error":1})")), "text");
        EXPECT_TRUE(logged_.empty());
        for (auto const& [arguments, why] : {
                 std::pair{
                     R"({"give":{"degrees":"hot"}})",
                     "its structured content does not fit its output schema: /degrees: expected integer"},
                 {"{}", "it has an output schema and gave no structured content"},
             }) {
            auto const failed = run(tool, arguments);
            EXPECT_EQ(text_of(failed), "The tool failed. The server's log has the reason.");
            EXPECT_EQ(failed.at("result").at("isError"), true);
            EXPECT_FALSE(failed.at("result").as_object().contains("structuredContent"));
            ASSERT_EQ(logged_.size(), 1u);
            EXPECT_TRUE(logged_[0].starts_with(std::string("tool ") + tool + " failed: " + why + " session="))
                << logged_[0];
            logged_.clear();
        }
    }
}

TEST_F(Dispatch, TakesFunctionsThatCannotBeCopied)
{
    server_.tool("owns", [text = std::make_unique<std::string>("mine")] { return *text; });
    EXPECT_EQ(text_of(answer(call("owns", "{}"))), "mine");
}

TEST_F(Dispatch, TellsAQuickFunctionWhoCalls)
{
    server_.tool("who", [](caller const& by) {
        return by.session()->name() + " " + by.revision() + " " + std::to_string(by.meta().size());
    });
    auto const said = text_of(answer(call("who", "{}")));
    EXPECT_TRUE(said.ends_with(" 2025-11-25 0")) << said;
}

TEST_F(Dispatch, ChecksStructuredContentOfAWorkersFunction)
{
    base::worker_pool workers(1, 8);
    detail::access::core(server_)->work_on(workers);
    server_
        .tool(
            "works",
            [](blocking_call&, json::object in) {
                tool_result result;
                result.structured = std::move(in);
                return result;
            })
        .output_schema(parsed(R"({"type":"object","required":["a"]})"));
    auto const run_one = [&](std::string const& arguments) {
        auto const on = start(call("works", arguments));
        // The one worker comes to this when it is done with the function.
        std::promise<void> done;
        EXPECT_TRUE(workers.try_post([&] { done.set_value(); }));
        done.get_future().wait();
        run();
        return stream_of(*on).at(0);
    };
    EXPECT_EQ(run_one(R"({"a":1})").at("result").at("structuredContent"), (json::value{{"a", 1}}));
    EXPECT_EQ(text_of(run_one("{}")), "The tool failed. The server's log has the reason.");
    ASSERT_EQ(logged_.size(), 1u);
    EXPECT_TRUE(logged_[0].starts_with(
        "tool works failed: its structured content does not fit its output schema: /a: required session="))
        << logged_[0];
}

TEST(Server, RefusesASchemaThatCannotBeUsed)
{
    server server("s", "1");
    auto const raw = [](json::object) { return std::string(); };
    auto const refusal_of = [&](auto const& add) {
        try {
            add();
        } catch (std::invalid_argument const& error) {
            return std::string(error.what());
        }
        return std::string("taken");
    };
    EXPECT_EQ(
        refusal_of([&] { server.tool("a", raw).input_schema(parsed(R"({"type":"object","minProperties":"1"})")); }),
        "tool a, input schema: /minProperties: must be a number");
    EXPECT_EQ(
        refusal_of([&] { server.tool("a", raw).output_schema(parsed(R"({"type":"array"})")); }),
        "tool a, output schema: /type: must be \"object\"");
    EXPECT_EQ(
        refusal_of([&] { server.tool("a", raw).input_schema({}); }), "tool a, input schema: /type: must be \"object\"");
    // A refused tool is not there, and its name is free.
    EXPECT_EQ(refusal_of([&] { server.tool("a", raw).input_schema(parsed(contact_schema)); }), "taken");
}

}

}
