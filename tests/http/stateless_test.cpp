// A server that is mounted without sessions: every POST stands alone, and nothing is left of it.
#include "support/server_fixture.hpp"

#include "server/access.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace belay::test {

class Stateless : public Server {
protected:
    static constexpr auto path = "/plain/mcp";

    Stateless()
    {
        plain_.tool("quick", [] { return std::string("at once"); });
        plain_.tool("count", [](call& call, json::object args) -> task<std::string> {
            auto const to = args.at("to").to_number<int>();
            auto progress = call.progress(to);
            for (int i = 1; i <= to; ++i) {
                co_await call.sleep(1s);
                co_await call.log(log_level::emergency, "count", std::string("nobody asked for logs"));
                co_await progress.step();
            }
            co_return fmt::format("counted to {}", to);
        });
        plain_.tool("wait", [this](call& call) -> task<std::string> {
            guard const at_end{ended_};
            co_await call.sleep(std::chrono::hours(1));
            co_return "never";
        });
        plain_.tool("ask", [](call& call) -> task<std::string> {
            json::object schema{{"type", "object"}, {"properties", json::object()}};
            (void)co_await call.ask("name", "Your name?", std::move(schema));
            co_return "asked";
        });
        plain_.tool("sample", [](call& call) -> task<std::string> {
            auto const said = co_await call.sample("Say something", 10);
            co_return said.text();
        });
        plain_.tool("knock", [](call& call) -> task<std::string> {
            co_await call.ping();
            co_return "there";
        });
        plain_.tool("flood", [this](call& call) -> task<std::string> {
            guard const at_end{ended_};
            for (auto meter = call.progress();; ++said_) {
                co_await meter.step(std::string(50'000, 'x'));
                co_await call.sleep(1s);
            }
        });
        plain_.resource("plain://one", [] { return std::string("one"); });
        plain_.prompt("greeting", [] { return std::string("Say hello."); });
        server_.mount_stateless(path, plain_);
    }

    struct guard {
        std::atomic<int>& count;
        ~guard() { ++count; }
    };

    static header_list headers(header_list more = {})
    {
        more.emplace_back("Content-Type", "application/json");
        return more;
    }
    static header_list in(std::string const& version, std::string const& accept = "application/json, text/event-stream")
    {
        return headers({{"Accept", accept}, {"Mcp-Protocol-Version", version}});
    }
    http_response send(std::string_view body, header_list more = in("2025-11-25"))
    {
        return ask("POST", path, std::move(more), body);
    }
    http_client open(std::string_view body, header_list more = in("2025-11-25"))
    {
        auto client = connect();
        client.send_request("POST", path, more, body);
        client.read_head();
        return client;
    }
    static std::string counting(std::string_view id, int to)
    {
        return tool_call(id, "count", fmt::format(R"({{"to":{}}})", to), R"({"progressToken":"p"})");
    }

    /// Nothing is left of anything.
    void expect_clean()
    {
        EXPECT_TRUE(eventually([this] { return host().node().departures().calls() == 0; }));
        EXPECT_TRUE(eventually([this] { return host().node().departures().connections() == 0; }));
        auto const used = store().used();
        EXPECT_EQ(used.sessions, 0u);
        EXPECT_EQ(used.streams, 0u);
        EXPECT_EQ(used.bytes, 0u);
        EXPECT_EQ(metric("belay_sessions"), 0);
        EXPECT_EQ(metric("belay_streams"), 0);
        EXPECT_EQ(metric("belay_store_bytes"), 0);
        EXPECT_EQ(metric("belay_calls_running"), 0);
        EXPECT_EQ(appended(), 0);
    }

    std::atomic<int> ended_{0};
    std::atomic<int> said_{0};
    belay::server plain_{"plain", "2.0"};
};

TEST_F(Stateless, AnswersInitializeWithoutASession)
{
    start();
    for (auto const* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
        auto const answer = send(hello(version), headers());
        EXPECT_EQ(answer.status, 200u);
        EXPECT_FALSE(answer.header("Mcp-Session-Id"));
        EXPECT_EQ(text_at(answer.json(), "result/protocolVersion"), version);
        EXPECT_EQ(text_at(answer.json(), "result/serverInfo/name"), "plain");
        // What needs a session is not offered.
        json::value const offered{
            {"tools", json::object()}, {"resources", json::object()}, {"prompts", json::object()}};
        EXPECT_EQ(at(answer.json(), "result/capabilities"), offered);
    }
    EXPECT_EQ(send(notification("notifications/initialized")).status, 202u);
    expect_clean();
}

TEST_F(Stateless, EveryPostStandsAlone)
{
    start();
    // Without initialize, without a version, with a session id that nobody gave.
    EXPECT_EQ(at(send(rpc("1", "ping"), headers()).json(), "result"), json::value(json::object()));
    auto const stale = send(rpc("2", "tools/list"), headers({{"Mcp-Session-Id", "of-another-life"}}));
    EXPECT_EQ(stale.status, 200u);
    EXPECT_FALSE(stale.header("Mcp-Session-Id"));
    EXPECT_EQ(text_at(stale.json(), "result/tools/0/name"), "quick");
    EXPECT_EQ(text_at(send(tool_call("3", "quick")).json(), "result/content/0/text"), "at once");
    EXPECT_EQ(
        text_at(send(rpc("4", "resources/read", R"({"uri":"plain://one"})")).json(), "result/contents/0/text"), "one");
    EXPECT_EQ(
        text_at(send(rpc("5", "prompts/get", R"({"name":"greeting"})")).json(), "result/messages/0/content/text"),
        "Say hello.");
    // The tools of the endpoint with sessions are not here.
    EXPECT_EQ(send(tool_call("6", "echo", R"({"message":"x"})")).error_code(), -32602);
    expect_clean();
}

TEST_F(Stateless, NotificationsAndAnswersAreAcceptedWithoutEffect)
{
    start();
    auto call = open(counting("1", 2));
    EXPECT_EQ(send(notification("notifications/cancelled", R"({"requestId":1})")).status, 202u);
    EXPECT_EQ(send(R"({"jsonrpc":"2.0","id":"x-1","result":{}})").status, 202u);
    EXPECT_EQ(text_at(read_to_end(call).response(), "result/content/0/text"), "counted to 2");
    expect_clean();
}

TEST_F(Stateless, ACallStreamsProgressWithoutIdsAndEndsWithItsAnswer)
{
    start();
    auto call = open(counting("7", 3));
    EXPECT_EQ(call.head().status, 200u);
    EXPECT_EQ(call.head().header("Content-Type").value_or(""), "text/event-stream");
    EXPECT_FALSE(call.head().header("Mcp-Session-Id"));
    EXPECT_FALSE(call.poll_event()) << "nothing comes before the tool has said something";
    auto const all = read_to_end(call);
    EXPECT_TRUE(all.primings.empty());
    ASSERT_EQ(all.events.size(), 4u) << "three times progress, no log message, the answer";
    for (auto const& event : all.events)
        EXPECT_EQ(event.id, "");
    EXPECT_EQ(at(message_of(all.events[1]), "params/progress"), json::value(2));
    EXPECT_EQ(at(all.response(), "id"), json::value(7));
    EXPECT_EQ(text_at(all.response(), "result/content/0/text"), "counted to 3");
    expect_clean();
}

TEST_F(Stateless, AQuietCallIsKeptAlive)
{
    start();
    auto call = open(tool_call("1", "wait"));
    settle();
    EXPECT_EQ(call.comment_count(), 0u);
    advance_in_steps(40s, 5s);
    EXPECT_EQ(call.comment_count(), 2u);
}

TEST_F(Stateless, TheAcceptFieldChoosesTheForm)
{
    start();
    auto held = connect();
    held.send_request("POST", path, in("2025-11-25", "application/json"), counting("1", 2));
    EXPECT_TRUE(eventually([&] { return host().node().departures().calls() == 1; }));
    advance_in_steps(2s, 1s);
    auto const whole = held.read_response();
    EXPECT_EQ(whole.header("Content-Type").value_or(""), "application/json");
    EXPECT_EQ(text_at(whole.json(), "result/content/0/text"), "counted to 2");

    auto stream = open(tool_call("2", "quick"), in("2025-11-25", "text/event-stream"));
    EXPECT_EQ(stream.head().header("Content-Type").value_or(""), "text/event-stream");
    auto const all = read_to_end(stream);
    ASSERT_EQ(all.events.size(), 1u);
    EXPECT_EQ(all.events[0].id, "");
    EXPECT_EQ(text_at(all.response(), "result/content/0/text"), "at once");

    EXPECT_EQ(send(rpc("3", "ping"), in("2025-11-25", "text/html")).status, 406u);
    expect_clean();
}

TEST_F(Stateless, TheOperatorsChoiceOfFormHolds)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto held = connect();
    held.send_request("POST", path, in("2025-11-25"), counting("1", 1));
    EXPECT_TRUE(eventually([&] { return host().node().departures().calls() == 1; }));
    advance_in_steps(1s, 1s);
    EXPECT_EQ(held.read_response().header("Content-Type").value_or(""), "application/json");
    EXPECT_EQ(send(rpc("3", "ping"), in("2025-11-25", "text/event-stream")).status, 406u);
}

TEST_F(Stateless, ClosingTheConnectionCancelsTheCall)
{
    start();
    for (auto const* accept : {"application/json, text/event-stream", "application/json"}) {
        auto const before = ended_.load();
        auto client = connect();
        client.send_request("POST", path, in("2025-11-25", accept), tool_call("1", "wait"));
        EXPECT_TRUE(eventually([&] { return host().node().departures().calls() == 1; })) << accept;
        client.close();
        EXPECT_TRUE(eventually([&] { return ended_ == before + 1; })) << accept;
    }
    EXPECT_EQ(metric(R"(belay_calls_ended_total{reason="cancelled"})"), 2);
    expect_clean();
}

TEST_F(Stateless, ClosingTheConnectionCancelsABatch)
{
    start();
    auto const batch = "[" + tool_call("1", "wait") + "," + tool_call("2", "wait") + "]";
    for (auto const* accept : {"application/json, text/event-stream", "application/json"}) {
        auto const before = ended_.load();
        auto client = connect();
        client.send_request("POST", path, in("2025-03-26", accept), batch);
        EXPECT_TRUE(eventually([&] { return metric("belay_calls_started_total") >= before + 2; })) << accept;
        settle();
        client.close();
        EXPECT_TRUE(eventually([&] { return ended_ == before + 2; })) << accept;
    }
    expect_clean();
}

TEST_F(Stateless, AReaderThatStandsStillCostsLittleAndKeepsItsCall)
{
    settings_.http.write_timeout = std::chrono::hours(1);
    start();
    auto client = http_client(port(), {.receive_buffer = 4096, .source = {}});
    client.send_request("POST", path, in("2025-11-25"), tool_call("1", "flood", "{}", R"({"progressToken":1})"));
    ASSERT_TRUE(client.read_head());
    // Far more than the kernel takes, and longer than flow.stall.
    advance_in_steps(400s, 1s);
    EXPECT_EQ(said_.load(), 400);
    EXPECT_EQ(ended_.load(), 0);
    // What was not taken is merged: the newest is there.
    double jump = 0;
    double last = 0;
    while (last < 400) {
        auto const event = next(client, 1ms);
        ASSERT_TRUE(event);
        auto const value = at(message_of(*event), "params/progress").to_number<double>();
        EXPECT_GT(value, last);
        jump = std::max(jump, value - last);
        last = value;
    }
    EXPECT_GT(jump, 100);
    client.close();
    EXPECT_TRUE(eventually([&] { return ended_ == 1; }));
    expect_clean();
}

TEST_F(Stateless, OnlyPostIsThere)
{
    start();
    for (auto const* method : {"GET", "DELETE", "PUT", "HEAD"}) {
        auto const answer = ask(method, path, {{"Accept", "text/event-stream"}});
        EXPECT_EQ(answer.status, 405u) << method;
        EXPECT_EQ(answer.header("Allow").value_or(""), "POST, OPTIONS") << method;
    }
    auto const options = ask("OPTIONS", path);
    EXPECT_EQ(options.status, 204u);
    EXPECT_EQ(options.header("Allow").value_or(""), "POST, OPTIONS");
}

TEST_F(Stateless, QuestionsAreRefusedWithAReason)
{
    start();
    for (auto const* tool : {"ask", "sample", "knock"})
        for (auto const* accept : {"text/event-stream", "application/json"}) {
            auto client = open(tool_call("1", tool), in("2025-11-25", accept));
            auto const body = std::string_view(accept) == "application/json" ? client.read_rest().json()
                                                                             : read_to_end(client).response();
            EXPECT_EQ(at(body, "result/isError"), json::value(true)) << tool;
            EXPECT_TRUE(text_at(body, "result/content/0/text").contains("keeps no sessions")) << tool;
        }
    expect_clean();
}

TEST_F(Stateless, WhatNeedsASessionIsNotFound)
{
    start();
    EXPECT_EQ(send(rpc("1", "logging/setLevel", R"({"level":"debug"})")).error_code(), -32601);
    EXPECT_EQ(send(rpc("1", "resources/subscribe", R"({"uri":"plain://one"})")).error_code(), -32601);
    EXPECT_EQ(send(rpc("1", "resources/unsubscribe", R"({"uri":"plain://one"})")).error_code(), -32601);
    EXPECT_EQ(send(tool_call("1", "count", R"({"to":1})", R"({"belay/idempotencyKey":"k"})")).error_code(), -32602);
    expect_clean();
}

TEST_F(Stateless, TheSamePolicyHoldsAsWithSessions)
{
    settings_.http.limits.body_bytes = 2000;
    start();
    EXPECT_EQ(send(rpc("1", "ping"), {{"Content-Type", "text/plain"}}).status, 415u);
    EXPECT_EQ(send(rpc("1", "ping"), headers({{"Origin", "https://evil.example"}})).status, 403u);
    EXPECT_EQ(send(rpc("1", "ping"), headers({{"Mcp-Protocol-Version", "1999-01-01"}})).status, 400u);
    EXPECT_EQ(send("{", headers()).status, 400u);
    EXPECT_EQ(send(std::string(3000, ' ') + rpc("1", "ping"), headers()).status, 413u);
    auto client = connect();
    client.send("POST /plain/mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}");
    EXPECT_EQ(client.read_response().status, 403u);
}

TEST_F(Stateless, BatchesAreOf20250326)
{
    start();
    auto const pings = "[" + rpc("1", "ping") + "," + notification("notifications/initialized") + "]";
    // Without a version field it is that revision.
    for (auto const& with : {headers(), in("2025-03-26")}) {
        auto const answer = send(pings, with);
        EXPECT_EQ(answer.status, 200u);
        EXPECT_EQ(answer.body, R"([{"jsonrpc":"2.0","id":1,"result":{}}])");
    }
    EXPECT_EQ(send(pings, in("2025-06-18")).status, 400u);
    EXPECT_EQ(send("[" + notification("notifications/initialized") + "]", headers()).status, 202u);
    EXPECT_EQ(send("[" + hello() + "]", headers()).status, 400u);

    auto stream = open("[" + counting("1", 2) + "," + rpc("2", "ping") + "]", in("2025-03-26"));
    auto const all = read_to_end(stream);
    ASSERT_EQ(all.events.size(), 4u);
    EXPECT_EQ(at(message_of(all.events[0]), "id"), json::value(2));
    EXPECT_EQ(at(all.response(), "id"), json::value(1));
    EXPECT_EQ(all.events[3].id, "");
    expect_clean();
}

TEST_F(Stateless, AStopGivesCallsTheirLastAnswer)
{
    settings_.drain = 2s;
    start();
    auto call = open(tool_call("1", "wait"));
    auto held = connect();
    held.send_request("POST", path, in("2025-11-25", "application/json"), tool_call("2", "wait"));
    EXPECT_TRUE(eventually([&] { return host().node().departures().calls() == 2; }));
    host().shut_down();
    EXPECT_TRUE(eventually([&] { return host().node().departures().is_draining(); }));
    EXPECT_EQ(send(counting("3", 1)).status, 503u);
    advance_in_steps(3s, 1s);
    EXPECT_TRUE(json::serialize(read_to_end(call).response()).contains("interrupted"));
    EXPECT_EQ(held.read_response().status, 200u);
    host().wait();
    EXPECT_EQ(ended_.load(), 2);
    checks_balance_ = false;
    drop();
}

TEST_F(Stateless, AServerCanBeMountedBesideItself)
{
    server_.mount_stateless("/other/mcp", server_);
    start();
    auto const answer = ask("POST", "/other/mcp", headers(), tool_call("1", "echo", R"({"message":"x"})"));
    EXPECT_EQ(text_at(answer.json(), "result/content/0/text"), "Echo: x");
    auto const session = open_session();
    EXPECT_EQ(echo(session, "y"), "Echo: y");
}

TEST_F(Stateless, AMountedServerTellsNobodyOfItsChanges)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    settle();
    plain_.tool("late", [] { return std::string(); });
    plain_.log(log_level::error, "plain", "a word");
    plain_.resource_updated("plain://one");
    settle();
    while (auto const event = listener.poll_event())
        EXPECT_TRUE(is_priming(*event)) << event->data;
    EXPECT_EQ(text_at(send(rpc("1", "tools/list")).json(), "result/tools/7/name"), "late");
}

TEST_F(Stateless, BadMountsAreRefused)
{
    belay::server other("other", "1");
    EXPECT_THROW(server_.mount_stateless("plain", other), std::invalid_argument);
    EXPECT_THROW(server_.mount_stateless("/", other), std::invalid_argument);
    EXPECT_THROW(server_.mount_stateless("/a?b", other), std::invalid_argument);
    EXPECT_THROW(server_.mount_stateless(path, other), std::invalid_argument);
    other.mount_stateless("/x", plain_);
    EXPECT_THROW(server_.mount_stateless("/y", other), std::invalid_argument);
    server_.mount_stateless("/mcp", plain_); // the endpoint's own path is a setting
    EXPECT_TRUE(app::complete(settings_));
    base::system_random random;
    EXPECT_ANY_THROW(app::http_host(detail::access::core(server_), settings_, clock_, random, log_));
}

}
