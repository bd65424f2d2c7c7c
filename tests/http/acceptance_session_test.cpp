// Acceptance scenarios AS-16…29: tabs, the end of sessions, errors. docs/scenarios.md has a line for each.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <random>
#include <thread>

namespace belay::test {

namespace {

void expect_unknown_session(http_response const& answer)
{
    EXPECT_EQ(answer.status, 404u);
    EXPECT_EQ(answer.error_code(), -32001);
    auto const body = answer.json();
    ASSERT_TRUE(body.is_object());
    ASSERT_TRUE(body.get_object().contains("id"));
    EXPECT_TRUE(body.get_object().at("id").is_null());
}

}

class AcceptanceSession : public Server {
protected:
    http_response get_answer(client_session const& session, std::string_view cursor = {})
    {
        auto headers = headers_of(session, {{"Accept", "text/event-stream"}});
        if (!cursor.empty())
            headers.emplace_back("Last-Event-ID", cursor);
        return ask("GET", "/mcp", headers);
    }
};

TEST_F(AcceptanceSession, AS16_TakeoverStorm)
{
    start();
    auto const session = open_session();
    std::vector<http_client> tabs;
    for (int i = 0; i < 4; ++i) { // the first attaches, three take over
        tabs.push_back(get(session));
        ASSERT_EQ(tabs.back().head().status, 200u) << i;
    }
    auto fourth = get(session);
    EXPECT_EQ(fourth.head().status, 409u);
    EXPECT_EQ(fourth.head().header("Retry-After").value_or(""), "10");
    EXPECT_TRUE(is_alive(session));
    // The one that has the stream keeps it, and gets what comes.
    append_standalone(session, "still here");
    auto event = tabs[3].next_event();
    while (event && is_priming(*event))
        event = tabs[3].next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(log_text(*event), "still here");
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(tabs[i].wait_ended());
        while (auto const earlier = tabs[i].next_event())
            EXPECT_TRUE(is_priming(*earlier)) << "a message appeared in two places";
    }
    // Request streams change hands as often as one likes.
    auto call = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 3, 1000)));
    auto const priming = call.next_event();
    ASSERT_TRUE(priming);
    for (int i = 0; i < 10; ++i) {
        auto again = get(session, priming->id);
        ASSERT_EQ(again.head().status, 200u) << i;
        call = std::move(again);
    }
    EXPECT_EQ(read_to_end(call).logs(), utility_texts("t", 3, 1000));
    // The storm is forgotten after ten seconds.
    advance_in_steps(10s, 1s);
    EXPECT_EQ(get(session).head().status, 200u);
}

TEST_F(AcceptanceSession, AS16_ReplacingADeadConnectionDoesNotCount)
{
    start();
    auto const session = open_session();
    for (int i = 0; i < 12; ++i) {
        auto tab = get(session);
        ASSERT_EQ(tab.head().status, 200u) << i;
        if (i % 2)
            tab.reset();
        else
            tab.close();
    }
}

TEST_F(AcceptanceSession, AS16_ResumesOfTheStandaloneStreamCountToo)
{
    start();
    auto const session = open_session();
    auto first = get(session);
    auto const priming = first.next_event();
    ASSERT_TRUE(priming);
    std::vector<http_client> tabs;
    for (int i = 0; i < 3; ++i) {
        tabs.push_back(get(session, priming->id));
        ASSERT_EQ(tabs.back().head().status, 200u) << i;
    }
    EXPECT_EQ(get(session, priming->id).head().status, 409u);
}

TEST_F(AcceptanceSession, AS17_ExpiredSession)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "burst", R"({"count":3})"));
    auto const log = read_to_end(stream);
    advance(9min + 59s);
    EXPECT_EQ(store().census().sessions, 1u);
    advance_in_steps(62s, 1s); // idle 10 min, and one tick of the reaper
    EXPECT_EQ(store().census().sessions, 0u);
    EXPECT_EQ(store().census().streams, 0u);
    EXPECT_EQ(store().census().bytes, 0u);
    expect_unknown_session(post(session, rpc("1", "tools/list")));
    expect_unknown_session(get_answer(session));
    expect_unknown_session(get_answer(session, log.cursor));
    expect_unknown_session(remove(session));
    expect_unknown_session(post(session, notification("notifications/initialized")));
    // The same as for an id that never was.
    client_session const never{"0123456789abcdefABCDEF", session.version};
    EXPECT_EQ(post(session, rpc("1", "ping")).body, post(never, rpc("1", "ping")).body);
    EXPECT_EQ(get_answer(session).body, get_answer(never).body);
    // Fresh connect without any header.
    auto const fresh = open_session();
    EXPECT_NE(fresh.id, session.id);
    EXPECT_TRUE(is_alive(fresh));
    EXPECT_EQ(host().metrics().sessions_expired.Value(), 1);
}

TEST_F(AcceptanceSession, AS17_TrafficKeepsASession)
{
    start();
    auto const session = open_session();
    for (int i = 0; i < 6; ++i) {
        advance_in_steps(9min, 1min);
        ASSERT_TRUE(is_alive(session)) << i;
    }
    advance_in_steps(12min, 1min);
    EXPECT_FALSE(is_alive(session));
}

TEST_F(AcceptanceSession, AS18_ReconnectAgainstTheReaper)
{
    settings_.threads = 2;
    settings_.http.idle_timeout = 24h * 30;
    settings_.http.first_byte_timeout = 24h * 30;
    start();
    auto const seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    auto client = connect();
    auto other = connect();
    int alive = 0;
    int gone = 0;
    auto const headers = [&](client_session const& session) {
        return headers_of(
            session, {{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}});
    };
    header_list const plain{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}};
    base::time_point const began = clock_.now();
    for (int run = 0; run < 1000; ++run) {
        SCOPED_TRACE(fmt::format("run {}", run));
        auto const opened = client.ask("POST", "/mcp", plain, hello());
        ASSERT_EQ(opened.status, 200u);
        client_session const session{opened.header("Mcp-Session-Id").value(), "2025-11-25"};
        // One second before the limit; or anywhere around it; always so that the reaper's tick is due with it.
        auto const since = std::chrono::duration_cast<std::chrono::seconds>(clock_.now() - began).count();
        auto const to_tick = 60 - since % 60;
        auto const wanted = run % 2 ? 599 : 590 + static_cast<int>(random() % 70);
        clock_.advance(std::chrono::seconds(run % 2 ? wanted : std::max<std::int64_t>(wanted, 540 + to_tick)));
        bool const poke_first = random() % 2;
        if (poke_first)
            host().poke();
        bool const is_get = random() % 3 == 0;
        if (is_get)
            other.send_request("GET", "/mcp", headers_of(session, {{"Accept", "text/event-stream"}}));
        else
            other.send_request("POST", "/mcp", headers(session), rpc("1", "ping"));
        if (!poke_first)
            host().poke();
        ASSERT_TRUE(other.read_head());
        auto const status = other.head().status;
        ASSERT_TRUE(status == 200 || status == 404) << status;
        if (status == 404 || !is_get) {
            ASSERT_TRUE(other.wait_ended());
        }
        host().poke(); // the tick has surely passed
        settle();
        // Whatever it was told holds for the rest of the tick.
        auto const again = client.ask("POST", "/mcp", headers(session), rpc("2", "tools/list"));
        ASSERT_EQ(again.status, status) << (is_get ? "GET" : "POST");
        if (status == 200) {
            ++alive;
            ASSERT_TRUE(at(again.json(), "result/tools").is_array());
            if (is_get) {
                auto const priming = other.next_event();
                ASSERT_TRUE(priming);
                ASSERT_TRUE(is_priming(*priming));
                ASSERT_EQ(other.poll_ending(), http_client::ending::open);
            }
            auto const removed = client.ask("DELETE", "/mcp", headers_of(session));
            ASSERT_EQ(removed.status / 100, 2u);
        } else {
            ++gone;
            expect_unknown_session(again);
        }
        if (is_get && status == 200)
            other = connect();
    }
    EXPECT_GT(alive, 100);
    EXPECT_GT(gone, 20);
    EXPECT_EQ(store().census().sessions, 0u);
}

TEST_F(AcceptanceSession, AS22_ReinitialiseALiveSession)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 10, 1000)));
    seen all;
    read_until(stream, all, [](seen const& so_far) { return so_far.logs().size() >= 3; });
    auto const answer = post(session, hello("2025-11-25", "0"));
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.header("Mcp-Session-Id").value_or(""), session.id);
    auto const body = answer.json();
    EXPECT_EQ(at(body, "id"), 0);
    EXPECT_EQ(at(body, "result/protocolVersion"), "2025-11-25");
    EXPECT_TRUE(at(body, "result/serverInfo").is_object());
    EXPECT_TRUE(at(body, "result/capabilities").is_object());
    EXPECT_TRUE(is_alive(session));
    while (auto const event = next(stream))
        all.add(*event);
    EXPECT_EQ(all.logs(), utility_texts("t", 10, 1000));
    EXPECT_TRUE(all.has_response());
    EXPECT_EQ(store().census().sessions, 1u);
}

TEST_F(AcceptanceSession, AS22_NewVersionHoldsForLaterRequestsOnly)
{
    start();
    auto session = open_session("2025-11-25");
    auto old_call = open_post(session, tool_call("1", "utility-notifications", utility_arguments("old", 5, 1000)));
    auto const primed = old_call.next_event();
    ASSERT_TRUE(primed);
    EXPECT_EQ(primed->data, "");
    EXPECT_EQ(at(post(session, hello("2025-06-18")).json(), "result/protocolVersion"), "2025-06-18");
    session.version = "2025-06-18";
    auto new_call = open_post(session, tool_call("2", "utility-notifications", utility_arguments("new", 5, 1000)));
    auto const typed = new_call.next_event();
    ASSERT_TRUE(typed);
    EXPECT_EQ(typed->type, "belay");
    // The open stream speaks as it was opened, resumed too.
    auto resumed = get(session, primed->id);
    auto const again = resumed.next_event();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->data, "");
    EXPECT_EQ(read_to_end(resumed).logs(), utility_texts("old", 5, 1000));
}

TEST_F(AcceptanceSession, AS22_ReinitialiseRejected)
{
    settings_.transport.reinitialize = transport::reinitialize_policy::reject;
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 3, 1000)));
    auto const answer = post(session, hello("2025-06-18"));
    EXPECT_EQ(answer.status, 400u);
    EXPECT_EQ(answer.error_code(), -32600);
    EXPECT_TRUE(is_alive(session));
    EXPECT_EQ(read_to_end(stream).logs(), utility_texts("t", 3, 1000));
    auto next_call = open_post(session, tool_call("2", "burst", R"({"count":0})"));
    auto const first = next_call.next_event();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->data, "") << "the version has changed";
}

TEST_F(AcceptanceSession, AS23_InitialiseWithAStaleId)
{
    start();
    client_session const stale{"0123456789abcdefABCDEF", ""};
    expect_unknown_session(post(stale, hello()));
    EXPECT_EQ(store().census().sessions, 0u);
    client_session const nonsense{"not an id at all", ""};
    expect_unknown_session(post(nonsense, hello()));
}

TEST_F(AcceptanceSession, AS23_InitialiseWithAStaleIdAccepted)
{
    settings_.transport.accept_stale_initialize = true;
    start();
    client_session const stale{"0123456789abcdefABCDEF", ""};
    auto const answer = post(stale, hello());
    EXPECT_EQ(answer.status, 200u);
    auto const fresh = answer.header("Mcp-Session-Id").value_or("");
    EXPECT_FALSE(fresh.empty());
    EXPECT_NE(fresh, stale.id);
    expect_unknown_session(post(stale, rpc("1", "ping")));
    EXPECT_TRUE(is_alive({fresh, "2025-11-25"}));
    EXPECT_EQ(store().census().sessions, 1u);
}

TEST_F(AcceptanceSession, AS25_MissingHeader)
{
    start();
    auto const listed = post_plain(rpc("1", "tools/list"));
    EXPECT_EQ(listed.status, 400u);
    EXPECT_EQ(listed.error_code(), -32000);
    EXPECT_TRUE(at(listed.json(), "id").is_null());
    EXPECT_EQ(ask("GET", "/mcp", {{"Accept", "text/event-stream"}}).status, 400u);
    EXPECT_EQ(ask("DELETE", "/mcp").status, 400u);
    EXPECT_EQ(post_plain(notification("notifications/initialized")).status, 400u);
    // An empty one names no session; it is not a missing one only if the field counts as present.
    auto const empty = post_plain(rpc("1", "tools/list"), {{"Mcp-Session-Id", ""}});
    EXPECT_TRUE(empty.status == 400 || empty.status == 404) << empty.status;
    EXPECT_EQ(store().census().sessions, 0u);
}

namespace {

struct deleted_tool {
    std::atomic<int> unwound{0};
};

}

TEST_F(AcceptanceSession, AS26_Delete)
{
    auto const state = std::make_shared<deleted_tool>();
    server_.tool("stuck", [state](call& call) -> task<std::string> {
        struct on_exit {
            std::shared_ptr<deleted_tool> of;
            ~on_exit() { ++of->unwound; }
        } const guard{state};
        co_await call.sleep(24h);
        co_return std::string("never");
    });
    start();
    auto const bystander = open_session();
    auto its_stream = open_post(bystander, tool_call("1", "utility-notifications", utility_arguments("b", 3, 1000)));

    auto const session = open_session();
    auto listener = get(session);
    auto attached = open_post(session, tool_call("1", "stuck"));
    auto detached = open_post(session, tool_call("2", "stuck"));
    auto const cursor = detached.next_event();
    ASSERT_TRUE(cursor);
    detached.close();
    settle();

    auto const answer = remove(session);
    EXPECT_EQ(answer.status / 100, 2u);
    ASSERT_TRUE(attached.wait_ended());
    auto const last = read_to_end(attached);
    ASSERT_EQ(last.events.size(), 1u);
    EXPECT_EQ(at(last.response(), "id"), 1);
    EXPECT_EQ(at(last.response(), "error/code"), -32603);
    EXPECT_EQ(at(last.response(), "error/data/reason"), "session_ended");
    EXPECT_TRUE(listener.wait_ended());
    EXPECT_EQ(state->unwound, 2);

    expect_unknown_session(post(session, rpc("1", "ping")));
    expect_unknown_session(get_answer(session));
    expect_unknown_session(get_answer(session, cursor->id));
    expect_unknown_session(remove(session));
    EXPECT_EQ(store().census().sessions, 1u); // the bystander
    EXPECT_EQ(store().census().streams, 1u);
    EXPECT_EQ(host().node().departures().calls(), 1u);
    EXPECT_EQ(read_to_end(its_stream).logs(), utility_texts("b", 3, 1000));
    EXPECT_EQ(remove(bystander).status / 100, 2u);
    auto const census = store().census();
    EXPECT_EQ(census.sessions + census.streams + census.events + census.bytes, 0u);
}

TEST_F(AcceptanceSession, AS26_DeleteOnTwoLoops)
{
    settings_.threads = 2;
    start();
    for (int run = 0; run < 20; ++run) {
        auto const session = open_session();
        auto listener = get(session);
        std::vector<http_client> calls;
        for (int i = 0; i < 4; ++i)
            calls.push_back(open_post(
                session, tool_call(std::to_string(i), "utility-notifications", utility_arguments("t", 60, 1000))));
        EXPECT_EQ(remove(session).status / 100, 2u);
        EXPECT_EQ(post(session, rpc("1", "ping")).status, 404u);
        for (int i = 0; i < 4; ++i) {
            ASSERT_TRUE(calls[i].wait_ended());
            seen all;
            while (auto const event = calls[i].next_event())
                all.add(*event);
            EXPECT_EQ(calls[i].how_it_ended(), http_client::ending::complete);
            EXPECT_EQ(at(all.response(), "id"), i);
            EXPECT_EQ(at(all.response(), "error/data/reason"), "session_ended");
        }
        EXPECT_TRUE(listener.wait_ended());
        auto const census = store().census();
        EXPECT_EQ(census.sessions + census.streams + census.bytes, 0u);
    }
    EXPECT_EQ(host().node().departures().calls(), 0u);
}

TEST_F(AcceptanceSession, AS26_DeleteDoesNotWaitForAReaderThatDoesNotRead)
{
    settings_.http.send_buffer_bytes = 4096;
    start();
    auto const session = open_session();
    http_client stuck(port(), {4096, {}});
    send_post(stuck, session, tool_call("1", "burst", R"({"count":400,"bytes":4000})"));
    ASSERT_TRUE(stuck.read_head());
    settle();
    auto deleting = connect();
    deleting.send_request("DELETE", "/mcp", headers_of(session));
    settle();
    advance(1s);
    ASSERT_TRUE(deleting.read_head());
    EXPECT_EQ(deleting.head().status / 100, 2u);
    EXPECT_EQ(store().census().sessions, 0u);
    EXPECT_EQ(store().census().streams, 0u);
    // The rest of the answer is in nobody's way for ever.
    advance_in_steps(2min, 5s);
    EXPECT_TRUE(eventually([&] { return host().node().departures().connections() == 0; }));
    EXPECT_TRUE(eventually([&] { return host().http_statistics().open_connections <= 2; })); // the probe, this one
}

TEST_F(AcceptanceSession, AS28_StaleGetStream)
{
    start();
    auto const session = open_session();
    auto first = get(session); // and never reads again, never closes
    ASSERT_EQ(first.head().status, 200u);
    auto second = get(session);
    EXPECT_EQ(second.head().status, 200u);
    auto const priming = second.next_event();
    ASSERT_TRUE(priming);
    EXPECT_TRUE(first.wait_ended());
    append_standalone(session, "for the second");
    auto const event = second.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(log_text(*event), "for the second");
}

TEST_F(AcceptanceSession, WhatHasArrivedIsKnownWhileTheConnectionLives)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    for (std::uint64_t n = 1; n <= 3; ++n) {
        append_standalone(session, "a message");
        while (is_priming(*listener.next_event())) {
        }
        EXPECT_TRUE(eventually([&] {
            advance(1s);
            return delivered_standalone(session) == n;
        }));
    }
}

TEST_F(AcceptanceSession, AS28_StaleGetStreamOfAVanishedPeer)
{
    start();
    auto const session = open_session();
    auto first = get(session);
    ASSERT_TRUE(first.next_event());
    if (!first.vanish())
        GTEST_SKIP() << "needs CAP_NET_ADMIN to close a socket silently";
    auto second = get(session);
    ASSERT_EQ(second.head().status, 200u);
    append_standalone(session, "for the second");
    ASSERT_TRUE(second.next_event());
    auto const event = second.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(log_text(*event), "for the second");
    EXPECT_TRUE(eventually([&] { return host().node().departures().connections() == 1; })) << "the first is closed";
}

TEST_F(AcceptanceSession, AS28_Conflict)
{
    settings_.runtime.standalone = store::standalone_policy::conflict;
    start();
    auto const session = open_session();
    auto first = get(session);
    auto const priming = first.next_event();
    ASSERT_TRUE(priming);
    EXPECT_EQ(get(session).head().status, 409u);
    bool const is_silent = first.vanish();
    if (is_silent) {
        EXPECT_EQ(get(session).head().status, 409u) << "nobody can know yet";
        advance(15s); // the keep-alive comment finds nobody
    } else {
        first.close();
    }
    EXPECT_TRUE(eventually([&] { return host().node().departures().connections() == 0; }));
    EXPECT_EQ(get(session).head().status, 200u);
}

TEST_F(AcceptanceSession, AS28_ConflictDoesNotRefuseResumesOfCalls)
{
    settings_.runtime.standalone = store::standalone_policy::conflict;
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 3, 1000)));
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    auto resumed = get(session, priming->id);
    ASSERT_EQ(resumed.head().status, 200u);
    EXPECT_EQ(read_to_end(resumed).logs(), utility_texts("t", 3, 1000));
}

TEST_F(AcceptanceSession, AS29_MalformedCursor)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "burst", R"({"count":3})"));
    auto const log = read_to_end(stream);
    auto const good = log.events[0].id;
    auto const prefix = good.substr(0, good.rfind('.'));

    std::vector<std::string> const bad{
        "x",
        "random text",
        std::string(10'240, 'a'),
        std::string(65, '1'),
        "1.2",
        "1.2.3.4",
        "..",
        "-1.0.0",
        "1.2.3~",
        "18446744073709551616.1.1",
        good + ".",
        good + "~~",
        "\x7f",
        "caf\xc3\xa9",
        prefix + ".999",
        prefix + ".-1",
        prefix + ".zzzzzzzzzzzzzzzzzzzz",
        "0.0.0",
        "null",
        "*"};
    for (auto const& cursor : bad) {
        auto const answer = get_answer(session, cursor);
        EXPECT_EQ(answer.status, 400u) << cursor.substr(0, 70);
        EXPECT_FALSE(answer.body.empty()) << "a refusal has a reason";
    }
    // Bytes that no header may have.
    for (auto const& byte : {std::string("\0", 1), std::string("\1"), std::string("\x1b"), std::string("\x7f")}) {
        auto client = connect();
        client.send(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + session.id
            + "\r\nLast-Event-ID: a" + byte + "b\r\n\r\n");
        EXPECT_EQ(client.read_response().status, 400u);
    }
    EXPECT_EQ(get(session, good).head().status, 200u);
    // An empty one is none: the standalone stream.
    auto plain = get(session, {}, {{"Last-Event-ID", ""}});
    EXPECT_EQ(plain.head().status, 200u);
    EXPECT_TRUE(is_alive(session));
}

TEST_F(AcceptanceSession, AS29_StandaloneCursorWhoseHistoryIsGone)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    seen log;
    for (int i = 1; i <= 5; ++i)
        append_standalone(session, fmt::format("m{}", i));
    read_until(listener, log, [](seen const& so_far) { return so_far.events.size() == 5; });
    auto const cursor = log.events[1].id;
    advance_in_steps(16min, 1min); // age, and a sweep; the open connection keeps the session
    ASSERT_EQ(listener.poll_ending(), http_client::ending::open);
    listener.close();

    auto resumed = get(session, cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const primed = resumed.next_event();
    ASSERT_TRUE(primed);
    EXPECT_TRUE(is_priming(*primed));
    auto const gap = resumed.next_event();
    ASSERT_TRUE(gap);
    EXPECT_EQ(missed_of(*gap), 3);
    auto const message = message_of(*gap);
    EXPECT_EQ(at(message, "method"), "notifications/message");
    EXPECT_EQ(at(message, "params/level"), "warning");
    EXPECT_EQ(at(message, "params/data/from"), 3);
    EXPECT_EQ(at(message, "params/data/to"), 5);
    append_standalone(session, "m6");
    auto const live = resumed.next_event();
    ASSERT_TRUE(live);
    EXPECT_EQ(log_text(*live), "m6");
    // It is told once: its id stands for what is missing.
    resumed.close();
    auto again = get(session, gap->id);
    ASSERT_TRUE(again.next_event());
    auto const after = again.next_event();
    ASSERT_TRUE(after);
    EXPECT_EQ(log_text(*after), "m6");
}

TEST_F(AcceptanceSession, AS29_StandaloneCursorOfAnEarlierLife)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    append_standalone(session, "m1");
    seen log;
    read_until(listener, log, [](seen const& so_far) { return so_far.events.size() == 1; });
    listener.close();
    auto const stream = stream_of(log.cursor);
    auto resumed = get(session, stream + ".1.7"); // another epoch
    ASSERT_EQ(resumed.head().status, 200u);
    auto const primed = resumed.next_event();
    ASSERT_TRUE(primed && is_priming(*primed));
    auto const gap = resumed.next_event();
    ASSERT_TRUE(gap);
    EXPECT_EQ(at(message_of(*gap), "params/logger"), "resumability");
    EXPECT_EQ(at(message_of(*gap), "params/level"), "warning");
    append_standalone(session, "m2");
    std::optional<http::sse_event> event;
    do
        event = resumed.next_event();
    while (event && log_text(*event) == "m1");
    ASSERT_TRUE(event);
    EXPECT_EQ(log_text(*event), "m2");
}

}
