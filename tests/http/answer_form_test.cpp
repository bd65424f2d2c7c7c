// In which form answers come: JSON or a stream, what a stream begins with, what it carries besides messages,
// and that the counters add up.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <set>

namespace belay::test {

class AnswerForm : public Server {
protected:
    static std::string type_of(http_response const& answer) { return answer.header("Content-Type").value_or(""); }
};

TEST_F(AnswerForm, AutomaticJsonForInstantFunctions)
{
    start();
    auto const opened = post_plain(hello());
    EXPECT_EQ(type_of(opened), "application/json");
    auto const session = open_session();
    auto const sends = host().http_statistics().sends;
    for (auto const& body :
         {rpc("1", "ping"), rpc("2", "tools/list"), tool_call("3", "echo", R"({"message":"x"})"),
          tool_call("4", "add", R"({"a":1,"b":2})"), rpc("5", "logging/setLevel", R"({"level":"info"})"),
          rpc("6", "nothing"), tool_call("7", "nothing")}) {
        auto const answer = post(session, body);
        EXPECT_EQ(answer.status, 200u) << body;
        EXPECT_EQ(type_of(answer), "application/json") << body;
        EXPECT_TRUE(at(answer.json(), "id").is_int64()) << body;
    }
    settle();
    EXPECT_EQ(appended(), 0) << "instant answers append nothing";
    EXPECT_EQ(store().census().streams, 0u);
    // Seven answers and three of the probe: one write each.
    EXPECT_EQ(host().http_statistics().sends - sends, 10u);
}

TEST_F(AnswerForm, WhatIsRefusedAStreamHasNotRun)
{
    settings_.transport.answer = transport::answer_form::sse;
    settings_.runtime.limits.streams_per_session = 1;
    std::atomic<int> runs = 0;
    server_.tool("quick", [&runs] { return std::to_string(++runs); });
    start();
    auto const session = open_session();
    auto running = open_post(session, tool_call("1", "longRunningOperation", R"({"duration":100,"steps":1})"));
    ASSERT_EQ(running.head().status, 200u);
    auto const refused = post(session, tool_call("2", "quick"));
    EXPECT_EQ(refused.status, 429u);
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":1})")).status, 202u);
    (void)read_to_end(running);
    auto stream = open_post(session, tool_call("3", "quick"));
    EXPECT_EQ(text_at(read_to_end(stream).response(), "result/content/0/text"), "1");
}

TEST_F(AnswerForm, AutomaticStreamsForCalls)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "burst", R"({"count":2})"));
    EXPECT_EQ(stream.head().status, 200u);
    EXPECT_EQ(type_of(stream.head()), "text/event-stream");
    EXPECT_EQ(stream.head().header("X-Accel-Buffering").value_or(""), "no");
    EXPECT_NE(stream.head().header("Cache-Control").value_or("").find("no-cache"), std::string::npos);
    EXPECT_FALSE(stream.head().header("Content-Length"));
    auto const all = read_to_end(stream);
    EXPECT_EQ(all.events.size(), 3u);
    for (auto const& event : all.events)
        EXPECT_EQ(event.type, "message");
}

TEST_F(AnswerForm, HeadPrimingAndFirstMessagesAreOneWrite)
{
    start();
    auto const session = open_session();
    settle();
    auto const before = host().http_statistics().sends;
    auto client = send_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 1, 1000)));
    ASSERT_TRUE(client.read_head());
    auto const priming = client.next_event();
    auto const starting = client.next_event();
    ASSERT_TRUE(priming && starting);
    EXPECT_TRUE(is_priming(*priming));
    EXPECT_EQ(log_text(*starting), "t: starting, 1 messages every 1000 ms");
    EXPECT_EQ(host().http_statistics().sends - before, 1u);
}

TEST_F(AnswerForm, AlwaysStreams)
{
    settings_.transport.answer = transport::answer_form::sse;
    start();
    auto const opened = post_plain(hello());
    EXPECT_EQ(opened.status, 200u);
    EXPECT_EQ(type_of(opened), "text/event-stream");
    EXPECT_TRUE(opened.header("Mcp-Session-Id"));
    auto const session = open_session();
    for (auto const& body :
         {rpc("1", "ping"), rpc("1", "tools/list"), tool_call("1", "echo", R"({"message":"x"})"), rpc("1", "nothing"),
          rpc("1", "logging/setLevel", R"({"level":"debug"})")}) {
        auto stream = open_post(session, body);
        EXPECT_EQ(type_of(stream.head()), "text/event-stream") << body;
        auto const all = read_to_end(stream);
        ASSERT_EQ(all.primings.size(), 1u) << body;
        ASSERT_EQ(all.events.size(), 1u) << body;
        EXPECT_EQ(at(all.response(), "id"), 1);
        // Each is a call: it can be fetched again.
        auto again = get(session, all.primings[0].id);
        ASSERT_EQ(again.head().status, 200u) << body;
        EXPECT_EQ(read_to_end(again).events[0].data, all.events[0].data);
        EXPECT_EQ(get(session, all.cursor).head().status, 204u);
    }
    EXPECT_EQ(post(session, notification("notifications/initialized")).status, 202u);
    EXPECT_EQ(appended(), 5);
}

TEST_F(AnswerForm, NeverStreams)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const session = open_session();
    auto held = send_post(
        session, tool_call("8", "utility-notifications", utility_arguments("t", 3, 1000), R"({"progressToken":1})"));
    ASSERT_TRUE(eventually([&] { return host().node().departures().calls() == 1; }));
    EXPECT_EQ(echo(session, "meanwhile"), "Echo: meanwhile");
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    auto const answer = held.read_response();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(type_of(answer), "application/json");
    EXPECT_EQ(at(answer.json(), "id"), 8);
    EXPECT_TRUE(at(answer.json(), "result/content").is_array());
    EXPECT_EQ(appended(), 0);
    EXPECT_EQ(store().census().streams, 0u);
}

TEST_F(AnswerForm, NeverStreamsButCancels)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const session = open_session();
    auto held = send_post(session, tool_call("8", "utility-notifications", utility_arguments("t", 60, 1000)));
    ASSERT_TRUE(eventually([&] { return host().node().departures().calls() == 1; }));
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":8})")).status, 202u);
    auto const answer = held.read_response();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.error_code(), -32800);
    EXPECT_EQ(at(answer.json(), "id"), 8);
}

TEST_F(AnswerForm, NeverStreamsAndItsCallerGoes)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const session = open_session();
    auto held = send_post(session, tool_call("8", "utility-notifications", utility_arguments("t", 3, 1000)));
    ASSERT_TRUE(eventually([&] { return host().node().departures().calls() == 1; }));
    held.close();
    settle();
    EXPECT_EQ(host().node().departures().calls(), 1u) << "disconnection is not cancellation";
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    EXPECT_TRUE(is_alive(session));
    EXPECT_EQ(remove(session).status / 100, 2u);
}

TEST_F(AnswerForm, EveryConnectionIsPrimedWithItsOwnId)
{
    start();
    auto const session = open_session();
    std::set<std::string> ids;
    auto const note = [&](http_client& stream) {
        auto const first = stream.next_event();
        ASSERT_TRUE(first);
        EXPECT_EQ(first->data, "");
        EXPECT_TRUE(first->retry_ms);
        EXPECT_LE(first->id.size(), 64u);
        EXPECT_TRUE(ids.insert(first->id).second) << "an id was used twice";
    };
    auto listener = get(session);
    note(listener);
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 2, 1000)));
    note(stream);
    auto const starting = stream.next_event();
    ASSERT_TRUE(starting);
    for (int i = 0; i < 5; ++i) {
        stream = get(session, starting->id);
        ASSERT_EQ(stream.head().status, 200u);
        note(stream);
    }
    auto const rest = read_to_end(stream);
    EXPECT_EQ(rest.logs().size(), 3u); // the first was seen: two ticks, complete
}

TEST_F(AnswerForm, KeepAliveOnAQuietCall)
{
    settings_.runtime.follower.keepalive = 5s;
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "longRunningOperation", R"({"duration":60,"steps":1})"));
    advance_in_steps(31s, 500ms);
    EXPECT_GE(stream.comment_count(), 5u);
    EXPECT_LE(stream.comment_count(), 6u);
    auto const all = read_to_end(stream, 1s);
    EXPECT_EQ(all.events.size(), 1u) << "comments are no events";
}

TEST_F(AnswerForm, NoKeepAliveWhileMessagesFlow)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 40, 10'000)));
    auto const all = read_to_end(stream, 1s);
    EXPECT_EQ(all.logs().size(), 6u);
    EXPECT_EQ(stream.comment_count(), 0u);
}

TEST_F(AnswerForm, StandaloneBacklog)
{
    start();
    auto const session = open_session();
    append_standalone(session, "m1");
    append_standalone(session, "m2");
    auto first = get(session);
    seen all;
    read_until(first, all, [](seen const& so_far) { return so_far.events.size() == 2; });
    EXPECT_EQ(all.logs(), (std::vector<std::string>{"m1", "m2"}));
    settle();
    first.close();
    settle();
    append_standalone(session, "m3");
    auto second = get(session); // no cursor: what nobody was given yet
    seen more;
    read_until(second, more, [](seen const& so_far) { return !so_far.events.empty(); });
    settle();
    while (auto const event = second.poll_event())
        more.add(*event);
    EXPECT_EQ(more.logs(), std::vector<std::string>{"m3"});
    second.close();
    // With a cursor, everything after it.
    auto third = get(session, all.events[0].id);
    seen rest;
    read_until(third, rest, [](seen const& so_far) { return so_far.events.size() == 2; });
    EXPECT_EQ(rest.logs(), (std::vector<std::string>{"m2", "m3"}));
}

TEST_F(AnswerForm, StandaloneWithoutBacklog)
{
    settings_.runtime.backlog = runtime::backlog_policy::none;
    start();
    auto const session = open_session();
    append_standalone(session, "m1");
    auto listener = get(session);
    ASSERT_TRUE(listener.next_event());
    append_standalone(session, "m2");
    auto const event = listener.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(log_text(*event), "m2");
}

TEST_F(AnswerForm, LogLevel)
{
    server_.tool("talk", [](call& call) -> task<std::string> {
        for (auto const level : {log_level::debug, log_level::info, log_level::warning, log_level::emergency}) {
            std::string text = fmt::format("{}", static_cast<int>(level));
            co_await call.log(level, "talk", std::move(text));
        }
        co_return std::string("done");
    });
    start();
    auto const session = open_session();
    auto const other = open_session();
    auto const talk = [&](client_session const& to) {
        auto stream = open_post(to, tool_call("1", "talk"));
        return read_to_end(stream).logs().size();
    };
    EXPECT_EQ(talk(session), 4u) << "the default level is debug";
    EXPECT_EQ(post(session, rpc("1", "logging/setLevel", R"({"level":"warning"})")).status, 200u);
    EXPECT_EQ(talk(session), 2u);
    EXPECT_EQ(talk(other), 4u) << "a level belongs to its session";
    EXPECT_EQ(post(session, rpc("1", "logging/setLevel", R"({"level":"emergency"})")).status, 200u);
    EXPECT_EQ(talk(session), 1u);
}

TEST_F(AnswerForm, ProgressCoalesces)
{
    server_.tool("hurry", [](call& call) -> task<std::string> {
        auto progress = call.progress(100);
        for (int i = 0; i < 100; ++i)
            co_await progress.step();
        co_return std::string("done");
    });
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "hurry", "{}", R"({"progressToken":"t"})"));
    auto const all = read_to_end(stream);
    ASSERT_EQ(all.events.size(), 3u);
    EXPECT_EQ(at(message_of(all.events[0]), "params/progress"), 1);
    EXPECT_EQ(at(message_of(all.events[1]), "params/progress"), 100) << "the last before the result is always sent";
    EXPECT_TRUE(all.has_response());
    auto without = open_post(session, tool_call("1", "hurry"));
    EXPECT_EQ(read_to_end(without).events.size(), 1u) << "nobody asked for progress";
}

TEST_F(AnswerForm, ToolErrors)
{
    server_.tool("refuses", [](call&) -> task<std::string> {
        throw tool_error("the door is shut");
        co_return std::string();
    });
    server_.tool("breaks", [](call&) -> task<std::string> {
        throw std::runtime_error("secret detail");
        co_return std::string();
    });
    start();
    auto const session = open_session();
    auto refuses = open_post(session, tool_call("1", "refuses"));
    auto const said = read_to_end(refuses).response();
    EXPECT_EQ(at(said, "result/isError"), true);
    EXPECT_EQ(text_at(said, "result/content/0/text"), "the door is shut");
    auto breaks = open_post(session, tool_call("2", "breaks"));
    auto const all = read_to_end(breaks);
    EXPECT_EQ(at(all.response(), "result/isError"), true);
    EXPECT_EQ(all.events.back().data.find("secret"), std::string::npos);
}

TEST_F(AnswerForm, MetricsHaveTheirNames)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 30, 10000)));
    seen before;
    read_until(stream, before, [](seen const& so_far) { return so_far.events.size() == 2; });
    advance(1s); // readers say now and then where they are
    settle();
    EXPECT_EQ(metric("belay_sessions"), 1);
    EXPECT_EQ(metric("belay_streams"), 2);
    EXPECT_EQ(metric("belay_calls_running"), 1);
    EXPECT_GE(metric("belay_connections"), 2);
    EXPECT_EQ(metric("belay_events_appended_total"), 2);
    EXPECT_EQ(metric("belay_events_delivered_total"), 2);
    EXPECT_EQ(metric("belay_events_replayed_total"), 0);
    stream = get(session, before.primings[0].id);
    ASSERT_EQ(stream.head().status, 200u);
    EXPECT_TRUE(read_to_end(stream).has_response());
    settle();
    EXPECT_EQ(metric("belay_events_appended_total"), 6);
    EXPECT_EQ(metric("belay_events_delivered_total"), 6);
    EXPECT_EQ(metric("belay_events_replayed_total"), 2);
    EXPECT_EQ(metric("belay_takeovers_total"), 1);
    EXPECT_EQ(metric("belay_calls_running"), 0);
    EXPECT_EQ(metric("belay_calls_interrupted_total"), 0);
    auto const text = ask("GET", "/metrics").body;
    for (auto const* name :
         {"belay_sessions", "belay_streams", "belay_connections", "belay_calls_running", "belay_events_appended_total",
          "belay_events_delivered_total", "belay_events_replayed_total", "belay_events_trimmed_total",
          "belay_takeovers_total", "belay_calls_interrupted_total", "belay_request_seconds_count",
          "belay_append_seconds_count"})
        EXPECT_NE(text.find(fmt::format("\n{}", name)), std::string::npos) << name;
}

TEST_F(AnswerForm, MetricsAddUp)
{
    settings_.runtime.limits.events_per_stream = 10;
    settings_.runtime.limits.streams_per_session = 6;
    start();
    // Delivered, replayed, trimmed before and after delivery, ended before and after, evicted, pending.
    for (int round = 0; round < 4; ++round) {
        auto const session = open_session();
        std::vector<std::string> cursors;
        for (int i = 0; i < 5; ++i) {
            auto stream = open_post(
                session, tool_call(std::to_string(i), "utility-notifications", utility_arguments("t", 10 + i, 1000)));
            seen part;
            read_until(
                stream, part,
                [&](seen const& so_far) { return so_far.events.size() >= static_cast<std::size_t>(1 + i); }, 500ms);
            cursors.push_back(part.primings[0].id);
            if (i % 2)
                stream.close();
            else
                stream.reset();
        }
        if (round > 0)
            ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));
        for (int i = 0; i < 3; ++i) {
            auto stream = get(session, cursors[i]);
            ASSERT_EQ(stream.head().status, 200u);
            if (round > 0)
                EXPECT_TRUE(read_to_end(stream).has_response());
        }
        for (int i = 0; i < round; ++i) {
            auto stream = open_post(session, tool_call("1", "burst", R"({"count":30})"));
            ASSERT_EQ(stream.head().status, 200u);
            EXPECT_TRUE(read_to_end(stream).has_response());
        }
        EXPECT_TRUE(eventually([&] { return is_balanced(); })) << round;
        if (round % 2 == 0)
            EXPECT_EQ(remove(session).status / 100, 2u);
        EXPECT_TRUE(eventually([&] { return is_balanced(); })) << round;
    }
    EXPECT_GT(host().metrics().events_trimmed_undelivered.Value(), 0);
    EXPECT_GT(host().metrics().events_trimmed.Value(), 0);
    EXPECT_GT(host().metrics().events_ended.Value(), 0);
    EXPECT_GT(replayed(), 0);
    EXPECT_GT(store().census().pending, 0u);
    // All kept events were appended and have not left.
    auto& metrics = host().metrics();
    EXPECT_EQ(
        static_cast<double>(store().census().events),
        appended() - metrics.events_trimmed.Value() - metrics.events_trimmed_undelivered.Value()
            - metrics.events_ended.Value() - metrics.events_ended_undelivered.Value());
}

}
