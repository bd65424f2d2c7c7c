// A server that changes while it serves: tools, resources and prompts come and go.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace belay::test {

class Registration : public Server {
protected:
    Registration()
    {
        server_ = belay::server("registration", "1.0"); // nothing but what the tests add
        // On the server's own loop, so that all of it happens before anything is told.
        server_.tool("grow", [this] {
            for (auto const* name : {"fresh_1", "fresh_2", "fresh_3"})
                server_.tool(name, [] { return std::string("fresh"); });
            return std::string("grown");
        });
        server_.tool("shrink", [this] {
            for (auto const* name : {"fresh_1", "fresh_2", "fresh_3"})
                server_.remove_tool(name);
            return std::string("shrunk");
        });
        server_.tool("grow_all", [this] {
            server_.tool("tool", [] { return std::string(); });
            server_.resource("fresh://one", [] { return std::string("one"); });
            server_.resource("fresh://{name}", [](json::object) { return std::string("any"); });
            server_.prompt("prompt", [] { return std::string("Say hello."); });
            server_.prompt("prompt_2", [] { return std::string("Say hello."); });
            return std::string("grown");
        });
    }

    /// Runs one of the tools above, which answer at once.
    void run(client_session const& session, std::string_view tool)
    {
        auto const answer = post(session, tool_call("1", tool));
        ASSERT_EQ(answer.status, 200u);
        ASSERT_FALSE(at(answer.json(), "result/isError").is_bool()) << answer.body;
    }

    /// The methods of what can be read without the clock moving.
    std::vector<std::string> methods(http_client& stream)
    {
        settle();
        std::vector<std::string> all;
        while (auto const event = stream.poll_event())
            if (!is_priming(*event)) {
                EXPECT_TRUE(message_of(*event).is_object()) << event->data;
                all.push_back(text_at(message_of(*event), "method"));
            }
        return all;
    }

    std::vector<std::string>
    names(client_session const& session, std::string_view method, std::string_view list, std::string_view member)
    {
        std::vector<std::string> all;
        auto const answer = post(session, rpc("1", method)).json();
        auto const listed = at(answer, fmt::format("result/{}", list));
        for (auto const& each : listed.as_array())
            all.push_back(text_at(each, member));
        return all;
    }
    std::vector<std::string> tools(client_session const& session)
    {
        return names(session, "tools/list", "tools", "name");
    }

    using texts = std::vector<std::string>;
};

TEST_F(Registration, SeveralChangesAreToldOnce)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    EXPECT_EQ(methods(listener), texts());
    run(session, "grow");
    EXPECT_EQ(methods(listener), texts{"notifications/tools/list_changed"});
    run(session, "shrink");
    EXPECT_EQ(methods(listener), texts{"notifications/tools/list_changed"});
}

TEST_F(Registration, ASessionHearsOnlyOfWhatItWasToldThereIs)
{
    start();
    auto const early = open_session();
    auto listener = get(early);
    run(early, "grow_all");
    EXPECT_EQ(methods(listener), texts{"notifications/tools/list_changed"});
    // Whoever comes now is told that there are such things, and of their changes.
    auto const answer = post_plain(hello());
    EXPECT_TRUE(at(answer.json(), "result/capabilities/prompts").is_object());
    auto const late = open_session();
    auto late_listener = get(late);
    server_.prompt("another", [] { return std::string(); });
    EXPECT_EQ(methods(late_listener), texts{"notifications/prompts/list_changed"});
    EXPECT_EQ(methods(listener), texts());
    // A new hello on a live session tells it too.
    EXPECT_EQ(post(early, hello()).status, 200u);
    EXPECT_EQ(post(early, notification("notifications/initialized")).status, 202u);
    server_.remove_prompt("another");
    EXPECT_EQ(methods(listener), texts{"notifications/prompts/list_changed"});
}

TEST_F(Registration, WhatIsDeclaredIsThereFromTheStart)
{
    server_.declare(server::list::prompts).declare(server::list::resource_templates);
    start();
    auto const answer = post_plain(hello()).json();
    EXPECT_EQ(at(answer, "result/capabilities/prompts/listChanged"), json::value(true));
    EXPECT_EQ(at(answer, "result/capabilities/resources/subscribe"), json::value(true));
    auto const session = open_session();
    EXPECT_EQ(names(session, "prompts/list", "prompts", "name"), texts());
}

TEST_F(Registration, EveryListIsToldOfItsOwnChanges)
{
    server_.declare(server::list::prompts).declare(server::list::resources);
    start();
    auto const session = open_session();
    auto listener = get(session);
    run(session, "grow_all");
    auto told = methods(listener);
    std::ranges::sort(told);
    EXPECT_EQ(
        told,
        (texts{
            "notifications/prompts/list_changed", "notifications/resources/list_changed",
            "notifications/tools/list_changed"}));
    EXPECT_EQ(names(session, "prompts/list", "prompts", "name"), (texts{"prompt", "prompt_2"}));
    EXPECT_EQ(names(session, "resources/list", "resources", "uri"), texts{"fresh://one"});
    EXPECT_EQ(names(session, "resources/templates/list", "resourceTemplates", "uriTemplate"), texts{"fresh://{name}"});
    auto const read = post(session, rpc("1", "resources/read", R"({"uri":"fresh://two"})"));
    EXPECT_EQ(text_at(read.json(), "result/contents/0/text"), "any");

    EXPECT_TRUE(server_.remove_resource("fresh://{name}"));
    EXPECT_TRUE(server_.remove_prompt("prompt"));
    EXPECT_FALSE(server_.remove_resource("fresh://{name}"));
    EXPECT_FALSE(server_.remove_prompt("prompt"));
    EXPECT_FALSE(server_.remove_tool("prompt"));
    EXPECT_EQ(post(session, rpc("1", "resources/read", R"({"uri":"fresh://two"})")).error_code(), -32002);
    EXPECT_EQ(post(session, rpc("1", "prompts/get", R"({"name":"prompt"})")).error_code(), -32602);
    EXPECT_EQ(names(session, "prompts/list", "prompts", "name"), texts{"prompt_2"});
    auto gone = methods(listener);
    std::ranges::sort(gone);
    EXPECT_EQ(gone, (texts{"notifications/prompts/list_changed", "notifications/resources/list_changed"}));
}

TEST_F(Registration, NothingIsToldOnACallsStream)
{
    server_.tool("wait", [](call& call) -> task<std::string> {
        co_await call.sleep(10s);
        co_return "done";
    });
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("7", "wait"));
    run(session, "grow");
    auto const all = read_to_end(stream);
    ASSERT_EQ(all.events.size(), 1u);
    EXPECT_TRUE(all.has_response());
    // Nobody was listening; it waits for the next who does.
    auto listener = get(session);
    EXPECT_EQ(methods(listener), texts{"notifications/tools/list_changed"});
}

TEST_F(Registration, OnlyInitializedSessionsAreTold)
{
    start();
    auto const other = open_session();
    auto const answer = post_plain(hello());
    client_session const session{answer.header("Mcp-Session-Id").value_or(""), "2025-11-25"};
    auto listener = get(session);
    run(other, "grow");
    EXPECT_EQ(methods(listener), texts());
    EXPECT_EQ(post(session, notification("notifications/initialized")).status, 202u);
    run(other, "shrink");
    EXPECT_EQ(methods(listener), texts{"notifications/tools/list_changed"});
}

TEST_F(Registration, AllSessionsAreTold)
{
    start();
    std::vector<client_session> sessions;
    std::vector<http_client> listeners;
    for (auto const* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
        sessions.push_back(open_session(version));
        listeners.push_back(get(sessions.back()));
    }
    run(sessions[0], "grow");
    for (auto& each : listeners)
        EXPECT_EQ(methods(each), texts{"notifications/tools/list_changed"});
}

TEST_F(Registration, ACallOfARemovedToolGoesOn)
{
    server_.tool("wait", [](call& call) -> task<std::string> {
        co_await call.sleep(10s);
        co_await call.log(log_level::info, "wait", "still here");
        co_return "done";
    });
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("7", "wait"));
    (void)next(stream);
    EXPECT_TRUE(server_.remove_tool("wait"));
    EXPECT_FALSE(server_.remove_tool("wait"));
    EXPECT_EQ(post(session, tool_call("8", "wait")).error_code(), -32602);
    auto const all = read_to_end(stream);
    EXPECT_EQ(all.logs(), texts{"still here"});
    EXPECT_EQ(text_at(all.response(), "result/content/0/text"), "done");
}

TEST_F(Registration, ANameCanBeUsedAgainWithANewMeaning)
{
    server_.tool("what", [] { return std::string("old"); });
    start();
    auto const session = open_session();
    EXPECT_THROW(server_.tool("what", [] { return std::string("new"); }), std::invalid_argument);
    EXPECT_EQ(text_at(post(session, tool_call("1", "what")).json(), "result/content/0/text"), "old");
    EXPECT_TRUE(server_.remove_tool("what"));
    server_.tool("what", [] { return std::string("new"); });
    EXPECT_EQ(text_at(post(session, tool_call("1", "what")).json(), "result/content/0/text"), "new");
    auto const all = tools(session);
    EXPECT_EQ(std::ranges::count(all, "what"), 1);
}

TEST_F(Registration, ABadRegistrationChangesNothing)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    auto const before = tools(session);
    server_.tool("quick", [] { return std::string(); }).timeout(1s); // said in the log
    EXPECT_THROW(server_.tool("no blanks", [] { return std::string(); }), std::invalid_argument);
    EXPECT_THROW(server_.resource("no-scheme", [] { return std::string(); }), std::invalid_argument);
    EXPECT_THROW(
        server_.resource("a://b", [] { return std::string(); }).complete("x", texts{"y"}), std::invalid_argument);
    EXPECT_THROW(server_.prompt("p", [] { return std::string(); }).complete("x", texts{"y"}), std::invalid_argument);
    EXPECT_EQ(tools(session), before);
    EXPECT_EQ(methods(listener), texts());
    server_.tool("quick", [] { return std::string(); }); // the name is free again
    server_.prompt("p", [] { return std::string(); });
    server_.resource("a://b", [] { return std::string(); });
    EXPECT_EQ(tools(session).size(), before.size() + 1);
}

TEST_F(Registration, IsForAnyThreadWhileCallsRun)
{
    settings_.threads = 2;
    start();
    auto const session = open_session();
    std::thread changing([this] {
        for (int i = 0; i < 100; ++i) {
            server_.tool("flicker", [] { return std::string("on"); }).describe("comes and goes");
            server_.resource("flicker://light", [] { return std::string("on"); });
            server_.remove_resource("flicker://light");
            server_.remove_tool("flicker");
        }
    });
    for (int i = 0; i < 50; ++i) {
        auto const listed = tools(session);
        EXPECT_LE(std::ranges::count(listed, "flicker"), 1);
        auto const called = post(session, tool_call("1", "flicker"));
        EXPECT_TRUE(called.error_code() == -32602 || text_at(called.json(), "result/content/0/text") == "on");
    }
    changing.join();
    auto const listed = tools(session);
    EXPECT_EQ(std::ranges::count(listed, "flicker"), 0);
}

}
