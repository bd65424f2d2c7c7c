// The test kit, tested as an author would use it.
#include <belay/testing.hpp>

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <type_traits>

namespace belay::inline v0 {

namespace {

using namespace std::chrono_literals;

struct trip {
    std::string city;
    int days = 3;

    static constexpr field docs[] = {field("days").defaulted()};
};
BOOST_DESCRIBE_STRUCT(trip, (), (city, days))

struct place {
    std::string city;
};
BOOST_DESCRIBE_STRUCT(place, (), (city))

struct confirmation {
    bool yes = false;
};
BOOST_DESCRIBE_STRUCT(confirmation, (), (yes))

task<std::string> forecast(call& call, trip args)
{
    auto progress = call.progress(args.days);
    for (int day = 1; day <= args.days; ++day) {
        co_await call.sleep(1s);
        co_await progress.step();
    }
    co_return "sunny in " + args.city;
}

task<std::string> careful(call& call)
{
    answer<confirmation> reply = co_await call.ask<confirmation>("sure", "Are you sure?");
    if (!reply || !reply->yes)
        throw tool_error("not confirmed");
    co_return std::string("done");
}

server weather()
{
    server made("weather", "1");
    made.tool("forecast", forecast);
    made.tool("careful", careful);
    made.resource("weather://today", [] { return std::string("sun"); }).mime("text/plain");
    return made;
}

}

TEST(TestKit, WaitsForBlockingTools)
{
    server made("slow", "1");
    auto const gate = std::make_shared<std::promise<void>>();
    made.tool("plain", [] { return std::string("done"); }).blocking();
    made.tool("held", [wait = gate->get_future().share()](blocking_call& call) {
        call.log(log_level::info, "", "begun");
        wait.wait();
        return std::string("let go");
    });
    testing::client client(made);
    EXPECT_EQ(client.call("plain").at("content").at(0).at("text"), "done");
    auto held = client.begin("tools/call", {{"name", "held"}});
    EXPECT_FALSE(held.is_answered());
    gate->set_value();
    EXPECT_EQ(held.result().at("content").at(0).at("text"), "let go");
    EXPECT_EQ(client.notifications("notifications/message").size(), 1u);
}

TEST(TestKit, WorksWithoutTimePassing)
{
    auto server = weather();
    testing::client client(server);
    server.tool("later", [] { return std::string(); });
    client.advance(0s);
    EXPECT_EQ(client.notifications("notifications/tools/list_changed").size(), 1u);
}

TEST(TestKit, RefusesAServerThatIsNotAllRegistered)
{
    server made("half", "1");
    {
        auto const kept = made.tool("kept", [] { return std::string(); });
        try {
            testing::client const client(made);
            ADD_FAILURE() << "it started";
        } catch (std::invalid_argument const& error) {
            EXPECT_TRUE(std::string(error.what()).starts_with("tool kept is not registered yet")) << error.what();
        }
    }
    testing::client client(made);
    EXPECT_EQ(client.request("tools/list").at("tools").as_array().size(), 1u);
}

TEST(TestKit, PeriodicFunctionsKeepTheirPace)
{
    server made("clock", "1");
    int ticks = 0;
    made.every(1s, [&ticks] { ++ticks; });
    testing::client client(made);
    client.advance(1ns);
    client.advance(1ms);
    client.advance(1s);
    client.advance(3s);
    EXPECT_EQ(ticks, 4);
}

TEST(TestKit, RunsFunctionsOfEveryShape)
{
    testing::tool_run<std::string> quick([](trip const& to) { return to.city; }, trip{"Rome", 1});
    EXPECT_THROW((void)quick.result(), std::logic_error) << "not begun";
    EXPECT_THROW(quick.cancel(), std::logic_error);
    quick.begin();
    EXPECT_EQ(quick.result(), "Rome");
    testing::tool_run<int> blocking(
        [](blocking_call& call, trip const& to) {
            call.log(log_level::info, "", "working");
            return to.days;
        },
        trip{"Rome", 5});
    blocking.begin();
    EXPECT_EQ(blocking.result(), 5);
    EXPECT_EQ(blocking.by().notifications("notifications/message").size(), 1u);
}

TEST(TestKit, RunsFunctionsThatCannotBeCopied)
{
    auto const owned = [] { return std::make_unique<std::string>("mine"); };
    testing::tool_run<std::string> quick([own = owned()](caller const& by) { return *own + " " + by.revision(); });
    quick.begin();
    EXPECT_EQ(quick.result(), "mine 2025-11-25");
    testing::tool_run<std::string> waiting([own = owned()](call& on) -> task<std::string> {
        return [](std::string const& text, call& of) -> task<std::string> {
            co_await of.sleep(1s);
            co_return text;
        }(*own, on);
    });
    waiting.begin();
    waiting.by().advance(1s);
    EXPECT_EQ(waiting.result(), "mine");
    testing::tool_run<std::string> blocking([own = owned()](blocking_call&) { return *own; });
    blocking.begin();
    EXPECT_EQ(blocking.result(), "mine");
}

TEST(TestKit, TakesFunctionsThatCannotBeCopiedForResourcesAndPrompts)
{
    auto const owned = [] { return std::make_unique<std::string>("mine"); };
    auto const later = [](std::string const& text, call& on) -> task<std::string> {
        co_await on.sleep(1s);
        co_return text;
    };
    server made("owner", "1");
    made.tool("plain", [own = owned()] { return *own; }).blocking();
    made.resource("a://quick", [own = owned()] { return *own; });
    made.resource("a://waits", [own = owned(), later](call& on) { return later(*own, on); });
    made.prompt("quick", [own = owned()] { return *own; });
    made.prompt("waits", [own = owned(), later](call& on) { return later(*own, on); });
    testing::client client(made);
    EXPECT_EQ(client.call("plain").at("content").at(0).at("text"), "mine");
    for (auto const* const which : {"quick", "waits"}) {
        auto const read = client.begin("resources/read", {{"uri", std::string("a://") + which}});
        auto const get = client.begin("prompts/get", {{"name", which}});
        client.advance(1s);
        EXPECT_EQ(read.result().at("contents").at(0).at("text"), "mine");
        EXPECT_EQ(get.result().at("messages").at(0).at("content").at("text"), "mine");
    }
}

TEST(TestKit, TellsQuickResourcesAndPromptsWhoCalls)
{
    server made("curious", "1");
    made.resource("a://who", [](caller const& by) { return by.revision(); });
    made.resource("a://{city}", [](caller const& by, place of) { return of.city + " " + by.revision(); });
    made.prompt("who", [](caller const& by) { return by.revision(); });
    made.prompt(
        "where", [](caller const& by, place of) { return of.city + " " + std::string(by.meta().at("a").as_string()); });
    testing::client client(made);
    auto const read = [&](std::string_view uri) {
        return client.request("resources/read", {{"uri", uri}}).at("contents").at(0).at("text");
    };
    EXPECT_EQ(read("a://who"), "2025-11-25");
    EXPECT_EQ(read("a://Rome"), "Rome 2025-11-25");
    auto const get = [&](json::object params) {
        return client.request("prompts/get", std::move(params)).at("messages").at(0).at("content").at("text");
    };
    EXPECT_EQ(get({{"name", "who"}}), "2025-11-25");
    EXPECT_EQ(get({{"name", "where"}, {"arguments", {{"city", "Rome"}}}, {"_meta", {{"a", "b"}}}}), "Rome b");
}

TEST(TestKit, EndsQuestionsAtTheirLimits)
{
    server made("asker", "1");
    auto const add = [&](std::string name, auto ask) {
        made.tool(std::move(name), [ask](call& on) -> task<std::string> {
            return [](call& of, auto question) -> task<std::string> {
                try {
                    co_await question(of);
                } catch (client_error const&) {
                    co_return std::string("too late");
                }
                co_return std::string("answered");
            }(on, ask);
        });
    };
    add("form", [](call& on) { return on.ask<confirmation>("sure", "Are you sure?", 2s); });
    add("model", [](call& on) { return on.sample(sampling_request{}, 2s); });
    add("words", [](call& on) { return on.sample("Say hello.", 10, 2s); });
    add("roots", [](call& on) { return on.roots(2s); });
    add("ping", [](call& on) { return on.ping(2s); });
    json::object const nothing;
    testing::client client(
        made, {.capabilities = {{"elicitation", nothing}, {"sampling", nothing}, {"roots", nothing}}});
    for (auto const* const name : {"form", "model", "words", "roots", "ping"}) {
        auto const call = client.begin("tools/call", {{"name", name}});
        client.advance(1s);
        EXPECT_FALSE(call.is_answered()) << name;
        client.advance(1s);
        ASSERT_TRUE(call.is_answered()) << name;
        EXPECT_EQ(call.result().at("content").at(0).at("text"), "too late") << name;
    }
}

static_assert(!std::is_copy_constructible_v<server> && !std::is_copy_assignable_v<server>);

TEST(Server, SaysThatItWasMovedAway)
{
    auto one = weather();
    auto const other = std::move(one);
    EXPECT_THROW(one.tool("late", [] { return std::string(); }), std::logic_error);
    EXPECT_THROW(testing::client{one}, std::logic_error);
    one = weather();
    EXPECT_TRUE(one.remove_tool("careful"));
}

TEST(TestKit, DrivesAServerWithItsOwnClock)
{
    // [drive]
    auto const server = weather();
    testing::client client(server);
    EXPECT_EQ(client.initialized().at("serverInfo").at("name"), "weather");
    auto call = client.begin(
        "tools/call", {{"name", "forecast"}, {"arguments", {{"city", "Rome"}}}, {"_meta", {{"progressToken", "p"}}}});
    EXPECT_FALSE(call.is_answered());
    EXPECT_THROW((void)call.result(), std::logic_error);
    client.advance(1s);
    EXPECT_EQ(client.notifications("notifications/progress").size(), 1u);
    client.advance(2s);
    EXPECT_EQ(call.result().at("content").at(0).at("text"), "sunny in Rome");
    EXPECT_EQ(client.notifications("notifications/progress").size(), 3u);
    // [/drive]
}

TEST(TestKit, AnswersForTheClient)
{
    // [answer]
    auto const server = weather();
    testing::client client(server, {.capabilities = {{"elicitation", json::object()}}});
    bool says = true;
    client.answer("elicitation/create", [&](json::object const& params) {
        EXPECT_EQ(params.at("message"), "Are you sure?");
        return json::object{{"action", "accept"}, {"content", {{"yes", says}}}};
    });
    EXPECT_EQ(client.call("careful").at("content").at(0).at("text"), "done");
    says = false;
    EXPECT_EQ(client.call("careful").at("isError"), true);
    // [/answer]
}

TEST(TestKit, LeavesAQuestionOpenUntilSomeoneAnswers)
{
    auto const server = weather();
    testing::client client(server, {.capabilities = {{"elicitation", json::object()}}});
    auto call = client.begin("tools/call", {{"name", "careful"}});
    client.advance(5min);
    EXPECT_FALSE(call.is_answered());
    client.answer("elicitation/create", [](json::object const&) -> json::object { throw std::runtime_error("no"); });
    EXPECT_EQ(call.result().at("isError"), true);
}

TEST(TestKit, GivesErrorsAsExceptions)
{
    auto const server = weather();
    testing::client client(server);
    try {
        (void)client.request("resources/read", {{"uri", "weather://tomorrow"}});
        FAIL();
    } catch (testing::request_error const& error) {
        EXPECT_EQ(error.code(), -32002);
        EXPECT_EQ(error.data().at("uri"), "weather://tomorrow");
    }
    EXPECT_EQ(client.request("resources/read", {{"uri", "weather://today"}}).at("contents").at(0).at("text"), "sun");
}

TEST(TestKit, CancelsACall)
{
    auto const server = weather();
    testing::client client(server);
    auto call = client.begin("tools/call", {{"name", "forecast"}, {"arguments", {{"city", "Rome"}}}});
    call.cancel();
    EXPECT_THROW((void)call.result(), testing::request_error);
}

TEST(TestKit, RunsOneFunction)
{
    // [function]
    testing::tool_run<std::string> run(forecast, trip{"Oslo", 2});
    run.begin();
    EXPECT_THROW((void)run.result(), std::logic_error);
    run.by().advance(2s);
    EXPECT_EQ(run.result(), "sunny in Oslo");
    EXPECT_EQ(run.by().notifications("notifications/progress").size(), 2u);
    // [/function]
}

TEST(TestKit, TellsHowAFunctionFailed)
{
    testing::tool_run<std::string> run(careful);
    run.begin();
    EXPECT_THROW((void)run.result(), tool_error); // the client cannot show forms
}

TEST(TestKit, TellsOfChangedLists)
{
    auto server = weather();
    server.declare(server::list::prompts);
    testing::client client(server);
    server.tool("new", [] { return std::string(); });
    server.prompt("greet", [] { return std::string("Say hello."); });
    EXPECT_TRUE(server.remove_tool("careful"));
    EXPECT_FALSE(server.remove_tool("careful"));
    client.advance(1ms);
    EXPECT_EQ(client.notifications("notifications/tools/list_changed").size(), 1u);
    EXPECT_EQ(client.notifications("notifications/prompts/list_changed").size(), 1u);
    EXPECT_EQ(client.request("tools/list").at("tools").as_array().size(), 2u);
    EXPECT_EQ(
        client.request("prompts/get", {{"name", "greet"}}).at("messages").at(0).at("content").at("text"), "Say hello.");
}

TEST(TestKit, TellsSubscribersOfUpdates)
{
    auto server = weather();
    testing::client client(server);
    server.resource_updated("weather://today"); // nobody is subscribed
    EXPECT_TRUE(client.request("resources/subscribe", {{"uri", "weather://today"}}).empty());
    EXPECT_EQ(server.subscriptions(), std::vector<std::string>{"weather://today"});
    server.resource_updated("weather://today");
    client.advance(1ms);
    ASSERT_EQ(client.notifications("notifications/resources/updated").size(), 1u);
    client.request("resources/unsubscribe", {{"uri", "weather://today"}});
    server.resource_updated("weather://today");
    client.advance(1ms);
    EXPECT_EQ(client.notifications("notifications/resources/updated").size(), 1u);
}

TEST(TestKit, ToolsSeeTheTraceOfTheirRequest)
{
    server on("s", "0");
    on.tool("trace", [](call& call) -> task<std::string> { co_return call.trace().id; });
    testing::client by(on);

    auto const result = by.request(
        "tools/call",
        {{"name", "trace"},
         {"arguments", json::object()},
         {"_meta", json::object{{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}});

    EXPECT_EQ(result.at("content").at(0).at("text").as_string(), "0af7651916cd43dd8448eb211c80319c");
}

}
