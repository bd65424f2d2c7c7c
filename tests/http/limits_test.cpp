// The limits of DESIGN.md, section 6: what happens at each, and that nothing else does.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <set>

namespace belay::test {

class Limits : public Server {
protected:
    static json::value ended_of(json::value const& response)
    {
        auto const meta = at(response, "result/_meta");
        return meta.is_object() && meta.get_object().contains("belay/ended") ? meta.get_object().at("belay/ended")
                                                                             : json::value();
    }
};

TEST_F(Limits, Sessions)
{
    settings_.runtime.limits.sessions = 3;
    start();
    std::vector<client_session> sessions;
    for (int i = 0; i < 3; ++i)
        sessions.push_back(open_session());
    auto const refused = post_plain(hello());
    EXPECT_EQ(refused.status, 503u);
    EXPECT_TRUE(refused.header("Retry-After"));
    EXPECT_FALSE(refused.header("Mcp-Session-Id"));
    for (auto const& each : sessions)
        EXPECT_TRUE(is_alive(each));
    EXPECT_EQ(remove(sessions[0]).status / 100, 2u);
    EXPECT_EQ(post_plain(hello()).status, 200u);
}

TEST_F(Limits, WhatAClientSaysOfItself)
{
    settings_.runtime.max_client_info = 200;
    settings_.runtime.max_client_capabilities = 300;
    start();
    auto const hello_with = [](std::size_t info, std::size_t capabilities) {
        return rpc(
            "1", "initialize",
            fmt::format(
                R"({{"protocolVersion":"2025-11-25","clientInfo":{{"name":"{}","version":"1"}},"capabilities":{{"experimental":{{"x":{{"y":"{}"}}}}}}}})",
                std::string(info, 'n'), std::string(capabilities, 'c')));
    };
    EXPECT_EQ(post_plain(hello_with(50, 50)).status, 200u);
    auto const long_name = post_plain(hello_with(300, 50));
    EXPECT_EQ(long_name.status, 400u);
    EXPECT_EQ(long_name.error_code(), -32602);
    EXPECT_NE(long_name.body.find("clientInfo"), std::string::npos);
    auto const long_list = post_plain(hello_with(50, 400));
    EXPECT_EQ(long_list.status, 400u);
    EXPECT_NE(long_list.body.find("capabilities"), std::string::npos);
    EXPECT_EQ(store().census().sessions, 1u);
    // The same where a session says it anew, which stays as it is.
    auto const session = open_session();
    EXPECT_EQ(post(session, hello_with(300, 50)).status, 400u);
    EXPECT_TRUE(is_alive(session));
}

TEST_F(Limits, SessionsAreChargedForWhatTheyKeep)
{
    settings_.runtime.limits.bytes_total = 256 * 1024;
    settings_.runtime.max_client_capabilities = 64 * 1024;
    start();
    auto const large = rpc(
        "1", "initialize",
        fmt::format(
            R"({{"protocolVersion":"2025-11-25","clientInfo":{{"name":"n","version":"1"}},"capabilities":{{"experimental":{{"x":{{"y":"{}"}}}}}}}})",
            std::string(60 * 1024, 'c')));
    std::size_t accepted = 0;
    http_response last;
    while (accepted < 10 && (last = post_plain(large)).status == 200)
        ++accepted;
    EXPECT_EQ(accepted, 4u);
    EXPECT_EQ(last.status, 503u);
    EXPECT_TRUE(last.header("Retry-After"));
}

TEST_F(Limits, TheUriOfASubscription)
{
    server_.resource("test://{+path}", [](json::object const&) { return std::string("x"); });
    settings_.runtime.max_subscription_bytes = 100;
    start();
    auto const session = open_session();
    auto const subscribe = [&](std::size_t size) {
        return post(
            session,
            rpc("1", "resources/subscribe",
                R"({"uri":"test://)" + std::string(size - std::string_view("test://").size(), 'a') + R"("})"));
    };
    EXPECT_TRUE(at(subscribe(100).json(), "result").is_object());
    auto const refused = subscribe(101);
    EXPECT_EQ(refused.error_code(), -32602);
    EXPECT_NE(refused.body.find("101"), std::string::npos);
}

TEST_F(Limits, EndedSessionsLeaveNothingForTheirLifetime)
{
    settings_.runtime.limits.session_lifetime = 1h;
    start();
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(remove(open_session()).status / 100, 2u);
    auto const left = open_session();
    advance_in_steps(1h + 2min, 30s);
    EXPECT_FALSE(is_alive(left));
    EXPECT_EQ(store().census().sessions, 0u);
}

TEST_F(Limits, DefaultsAreTheDocumentedOnes)
{
    app::settings const fresh;
    auto const& limits = fresh.runtime.limits;
    EXPECT_EQ(limits.session_idle, 10min);
    EXPECT_EQ(fresh.runtime.reaper_interval, 60s);
    EXPECT_EQ(fresh.runtime.follower.keepalive, 15s);
    EXPECT_EQ(fresh.runtime.retry, 3s);
    EXPECT_EQ(limits.events_per_stream, 1000u);
    EXPECT_EQ(limits.bytes_per_stream, 8u << 20);
    EXPECT_EQ(limits.streams_per_session, 256u);
    EXPECT_EQ(limits.sessions, 100'000u);
    EXPECT_EQ(limits.bytes_per_session, 64u << 20);
    EXPECT_EQ(limits.bytes_total, 1u << 30);
    EXPECT_EQ(limits.event_bytes, 4u << 20);
    EXPECT_EQ(fresh.runtime.call_max, 1h);
    EXPECT_EQ(fresh.runtime.lease, 15s);
    EXPECT_EQ(fresh.http.limits.body_bytes, 4u << 20);
    EXPECT_EQ(fresh.http.header_timeout, 10s);
    EXPECT_EQ(fresh.http.body_timeout, 30s);
    EXPECT_EQ(fresh.http.user_timeout, 45s);
    EXPECT_EQ(fresh.drain, 20s);
    EXPECT_EQ(fresh.runtime.flow.stall, 5s);
    EXPECT_EQ(fresh.runtime.flow.grace, 3s);
    EXPECT_EQ(fresh.runtime.open_with_origin, 4u);
    EXPECT_EQ(fresh.runtime.open_without_origin, 64u);
    EXPECT_EQ(fresh.runtime.follower.max_age, 0s);
    EXPECT_EQ(fresh.runtime.limits.session_lifetime, 0s);
    EXPECT_EQ(fresh.runtime.sweep_interval, 5min);
}

/// Fills the store to the last byte with a running call's events, one per second of the clock.
class ByteLimits : public Limits {
protected:
    struct script {
        std::atomic<std::size_t> next{0}; // bytes of the next message; 0: none
        std::atomic<bool> is_over{false};
    };

    void add_filler()
    {
        server_.tool("fill", [script = script_](call& call) -> task<std::string> {
            while (!script->is_over) {
                co_await call.sleep(1s);
                if (auto const size = script->next.exchange(0)) {
                    std::string text(size, 'x');
                    co_await call.log(log_level::info, "fill", std::move(text));
                }
            }
            co_return std::string(1000, 'r');
        });
    }
    std::size_t emit(std::size_t size)
    {
        auto const before = store().census();
        script_->next = size;
        EXPECT_TRUE(advance_until([&] { return store().census().events > before.events; }, 1s));
        return store().census().bytes - before.bytes;
    }
    void fill_to(std::size_t limit)
    {
        auto const overhead = emit(1) - 1;
        for (;;) {
            auto const left = limit - store().census().bytes;
            if (left == 0)
                return;
            // Never leave less than a message needs.
            auto const share = left > 40'000 + 2 * overhead ? std::size_t(20'000) : left - overhead;
            ASSERT_GT(share, 0u);
            emit(share);
        }
    }

    std::shared_ptr<script> script_ = std::make_shared<script>();
};

TEST_F(ByteLimits, InAll)
{
    settings_.runtime.limits.bytes_total = 256 * 1024;
    settings_.runtime.limits.event_bytes = 64 * 1024;
    add_filler();
    start();
    auto const session = open_session();
    auto const other = open_session();
    auto running = open_post(session, tool_call("1", "fill"));
    auto const priming = running.next_event();
    ASSERT_TRUE(priming);
    running.close();
    fill_to(256 * 1024);
    ASSERT_EQ(store().census().bytes, 256u * 1024);
    for (auto const& each : {session, other}) {
        auto const refused = post(each, tool_call("2", "longRunningOperation"));
        EXPECT_EQ(refused.status, 503u);
        EXPECT_TRUE(refused.header("Retry-After"));
        EXPECT_TRUE(is_alive(each)) << "what needs no room is answered";
    }
    // A full store still ends its calls.
    script_->is_over = true;
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));
    auto resumed = get(session, priming->id);
    auto const all = read_to_end(resumed);
    EXPECT_EQ(text_at(all.response(), "result/content/0/text"), std::string(1000, 'r'));
    EXPECT_LE(store().census().bytes, 256u * 1024 + store::limits::reserve(256 * 1024));
    // Delivered and finished, it makes room.
    auto accepted = open_post(session, tool_call("2", "burst", R"({"count":1})"));
    EXPECT_EQ(accepted.head().status, 200u);
    EXPECT_TRUE(read_to_end(accepted).has_response());
}

TEST_F(ByteLimits, PerSession)
{
    settings_.runtime.limits.bytes_per_session = 256 * 1024;
    add_filler();
    start();
    auto const other = open_session();
    auto const of_other = store().census().bytes;
    auto const session = open_session();
    auto running = open_post(session, tool_call("1", "fill"));
    ASSERT_TRUE(running.next_event());
    running.close();
    fill_to(256 * 1024 + of_other);
    auto const refused = post(session, tool_call("2", "longRunningOperation"));
    EXPECT_EQ(refused.status, 503u);
    EXPECT_TRUE(refused.header("Retry-After"));
    auto accepted = open_post(other, tool_call("2", "burst", R"({"count":1})"));
    EXPECT_EQ(accepted.head().status, 200u) << "another session has its own";
    EXPECT_TRUE(read_to_end(accepted).has_response());
    script_->is_over = true;
}

TEST_F(Limits, StreamBytes)
{
    settings_.runtime.limits.bytes_per_stream = 20'000;
    start();
    auto const session = open_session();
    auto stream = open_post(
        session, tool_call("1", "utility-notifications", utility_arguments(std::string(1000, 'p'), 60, 1000)));
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    stream.close();
    ASSERT_TRUE(advance_until(
        [&] {
            EXPECT_LE(store().census().bytes, 20'000u + 6000); // and what the session and the call cost
            return host().node().departures().calls() == 0;
        },
        1s));
    auto resumed = get(session, priming->id);
    auto const rest = read_to_end(resumed);
    ASSERT_TRUE(missed_of(rest.events[0]));
    EXPECT_GT(rest.events.size(), 10u);
    EXPECT_EQ(static_cast<std::size_t>(*missed_of(rest.events[0])) + rest.events.size() - 1, 63u);
    EXPECT_TRUE(rest.has_response());
}

TEST_F(Limits, OneEvent)
{
    settings_.runtime.limits.event_bytes = 10'000;
    server_.tool("large", [](call& call) -> task<std::string> {
        co_await call.sleep(1s);
        co_return std::string(20'000, 'x');
    });
    server_.tool("shouting", [](call& call) -> task<std::string> {
        std::string text(20'000, 'x');
        bool is_told = false;
        try {
            co_await call.log(log_level::info, "shouting", std::move(text));
        } catch (std::system_error const&) {
            is_told = true;
        }
        co_return std::string(is_told ? "told" : "not told");
    });
    server_.tool("failing", [](call& call) -> task<std::string> {
        std::string text(20'000, 'x');
        co_await call.log(log_level::info, "failing", std::move(text));
        co_return std::string("never");
    });
    start();
    auto const session = open_session();
    auto large = open_post(session, tool_call("1", "large"));
    auto const too_large = read_to_end(large).response();
    EXPECT_EQ(at(too_large, "id"), 1);
    EXPECT_EQ(at(too_large, "result/isError"), true);
    EXPECT_EQ(at(ended_of(too_large), "reason"), "result_too_large");
    EXPECT_EQ(at(ended_of(too_large), "retryable"), false);
    // The tool learns that a message was not kept; nothing of it is sent.
    auto shouting = open_post(session, tool_call("2", "shouting"));
    auto const told = read_to_end(shouting);
    EXPECT_EQ(told.events.size(), 1u);
    EXPECT_EQ(text_at(told.response(), "result/content/0/text"), "told");
    auto failing = open_post(session, tool_call("3", "failing"));
    auto const failed = read_to_end(failing);
    EXPECT_EQ(failed.events.size(), 1u);
    EXPECT_EQ(at(failed.response(), "result/isError"), true);
}

TEST_F(Limits, CallDuration)
{
    auto const body = [](call& call) -> task<std::string> {
        co_await call.sleep(24h);
        co_return std::string("never");
    };
    server_.tool("stuck", body);
    server_.tool("impatient", body).timeout(5s).read_only();
    start();
    auto const session = open_session();
    auto stuck = open_post(session, tool_call("1", "stuck"));
    auto impatient = open_post(session, tool_call("2", "impatient"));
    auto const short_one = read_to_end(impatient).response();
    EXPECT_EQ(at(short_one, "id"), 2);
    EXPECT_EQ(at(short_one, "result/isError"), true);
    EXPECT_EQ(at(ended_of(short_one), "reason"), "timed_out");
    EXPECT_EQ(at(ended_of(short_one), "retryable"), true);
    EXPECT_EQ(host().node().departures().calls(), 1u);
    advance_in_steps(59min, 10s);
    EXPECT_EQ(host().node().departures().calls(), 1u);
    auto const long_one = read_to_end(stuck, 10s).response();
    EXPECT_EQ(at(ended_of(long_one), "reason"), "timed_out");
    EXPECT_EQ(at(ended_of(long_one), "retryable"), false);
    EXPECT_EQ(metric(R"(belay_calls_ended_total{reason="timed_out"})"), 2);
}

TEST_F(Limits, ATimeWithoutCaller)
{
    auto const body = [](call& call) -> task<std::string> {
        co_await call.sleep(1h);
        co_return std::string("never");
    };
    server_.tool("patient", body);
    server_.tool("sociable", body).cancel_when_orphaned(30s);
    start();
    auto const session = open_session();
    auto patient = open_post(session, tool_call("1", "patient"));
    auto sociable = open_post(session, tool_call("2", "sociable"));
    seen before;
    read_until(sociable, before, [](seen const& so_far) { return !so_far.primings.empty(); });
    advance_in_steps(2min, 10s);
    EXPECT_EQ(host().node().departures().calls(), 2u) << "a caller that is there may wait";
    patient.close();
    sociable.close();
    settle();
    advance_in_steps(20s, 10s);
    EXPECT_EQ(host().node().departures().calls(), 2u);
    advance_in_steps(20s, 10s);
    EXPECT_EQ(host().node().departures().calls(), 1u);
    auto back = get(session, before.cursor);
    ASSERT_EQ(back.head().status, 200u);
    EXPECT_EQ(at(ended_of(read_to_end(back).response()), "reason"), "orphaned");
}

TEST_F(Limits, BrowsersGetFourConnections)
{
    start();
    header_list const page{{"Origin", "http://localhost:5173"}};
    auto const session = open_session("2025-11-25", page);
    auto listener = get(session, {}, page);
    ASSERT_EQ(listener.head().status, 200u);
    std::vector<http_client> calls;
    for (int i = 0; i < 3; ++i)
        calls.push_back(open_post(
            session, tool_call(std::to_string(i), "utility-notifications", utility_arguments("t", 3, 1000)), page));
    settle();
    EXPECT_EQ(host().node().departures().connections(), 4u);
    for (auto& each : calls)
        EXPECT_EQ(each.poll_ending(), http_client::ending::open);
    auto one_more = open_post(session, tool_call("3", "utility-notifications", utility_arguments("t", 3, 1000)), page);
    ASSERT_EQ(one_more.head().status, 200u);
    // The longest-attached request stream polls; the standalone stream is not touched.
    ASSERT_TRUE(calls[0].wait_ended());
    EXPECT_EQ(calls[0].how_it_ended(), http_client::ending::complete);
    seen first;
    while (auto const event = calls[0].next_event())
        first.add(*event);
    EXPECT_TRUE(calls[0].retry_ms());
    EXPECT_FALSE(first.has_response());
    EXPECT_EQ(listener.poll_ending(), http_client::ending::open);
    EXPECT_EQ(calls[1].poll_ending(), http_client::ending::open);
    settle();
    EXPECT_EQ(host().node().departures().connections(), 4u);
    auto back = get(session, first.cursor, page);
    ASSERT_EQ(back.head().status, 200u);
    auto const rest = read_to_end(back);
    auto logs = first.logs();
    for (auto const& text : rest.logs())
        logs.push_back(text);
    EXPECT_EQ(logs, utility_texts("t", 3, 1000));
}

TEST_F(Limits, AGetWithoutAnOriginIsOfThePageTooThatUsesTheSession)
{
    start();
    header_list const page{{"Origin", "http://localhost:5173"}};
    auto const session = open_session("2025-11-25", page);
    auto listener = get(session);
    std::vector<http_client> calls;
    for (int i = 0; i < 4; ++i)
        calls.push_back(open_post(
            session, tool_call(std::to_string(i), "utility-notifications", utility_arguments("t", 3, 1000)), page));
    ASSERT_TRUE(calls[0].wait_ended());
    seen first;
    while (auto const event = calls[0].next_event())
        first.add(*event);
    auto back = get(session, first.cursor);
    ASSERT_EQ(back.head().status, 200u);
    ASSERT_TRUE(calls[1].wait_ended());
    settle();
    EXPECT_EQ(host().node().departures().connections(), 4u);
    EXPECT_EQ(listener.poll_ending(), http_client::ending::open);
}

TEST_F(Limits, TenCallsOfAPageFinishByPolling)
{
    start();
    header_list const page{{"Origin", "http://localhost:5173"}};
    auto const session = open_session("2025-11-25", page);
    constexpr int count = 10;
    std::vector<http_client> streams;
    std::vector<seen> parts(count);
    for (int i = 0; i < count; ++i)
        streams.push_back(open_post(
            session,
            tool_call(std::to_string(i), "utility-notifications", utility_arguments(fmt::format("c{}", i), 5, 1000)),
            page));
    auto const all_done
        = [&] { return std::ranges::all_of(parts, [](seen const& each) { return each.has_response(); }); };
    for (int round = 0; !all_done(); ++round) {
        ASSERT_LT(round, 1000);
        for (int i = 0; i < count; ++i) {
            if (parts[i].has_response())
                continue;
            while (auto const event = streams[i].poll_event())
                parts[i].add(*event);
            if (streams[i].how_it_ended() != http_client::ending::open && !parts[i].has_response()) {
                ASSERT_FALSE(parts[i].cursor.empty());
                streams[i] = get(session, parts[i].cursor, page);
                ASSERT_EQ(streams[i].head().status, 200u);
            }
        }
        advance(100ms);
        EXPECT_LE(host().node().departures().connections(), 4u + 1u); // one may be leaving
    }
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(parts[i].logs(), utility_texts(fmt::format("c{}", i), 5, 1000));
        EXPECT_EQ(at(parts[i].response(), "id"), i);
    }
}

TEST_F(Limits, OlderClientsKeepTheConnectionThatAToolWouldClose)
{
    server_.tool("closes", [](call& call) -> task<std::string> {
        call.close_connection(100ms);
        co_await call.sleep(1s);
        co_return "still here";
    });
    settings_.runtime.follower.max_age = 30s;
    server_.tool("long", [](call& call) -> task<std::string> {
        co_await call.sleep(5min);
        co_return "still here";
    });
    start();
    for (auto const* version : {"2024-11-05", "2025-03-26", "2025-06-18"}) {
        auto const session = open_session(version);
        for (auto const* tool : {"closes", "long"}) {
            auto stream = open_post(session, tool_call("1", tool));
            EXPECT_EQ(text_at(read_to_end(stream, 1s).response(), "result/content/0/text"), "still here")
                << version << tool;
        }
    }
    auto const session = open_session("2025-11-25");
    auto stream = open_post(session, tool_call("1", "closes"));
    seen got;
    while (auto const event = next(stream))
        got.add(*event);
    EXPECT_FALSE(got.has_response());
    auto resumed = get(session, got.cursor);
    EXPECT_EQ(text_at(read_to_end(resumed).response(), "result/content/0/text"), "still here");
}

TEST_F(Limits, ClientsThatDoNotComeBackAreNotCutOff)
{
    settings_.runtime.open_without_origin = 2;
    start();
    auto const session = open_session("2025-06-18");
    auto const begin = [&](int id) {
        return open_post(session, tool_call(std::to_string(id), "longRunningOperation", R"({"duration":2,"steps":1})"));
    };
    auto a = begin(1);
    auto b = begin(2);
    auto c = begin(3);
    EXPECT_EQ(c.head().status, 429u);
    EXPECT_TRUE(read_to_end(a).has_response());
    EXPECT_TRUE(read_to_end(b).has_response());
}

TEST_F(Limits, SessionLifetime)
{
    settings_.runtime.limits.session_lifetime = 1h;
    start();
    auto const session = open_session();
    auto listener = get(session);
    advance_in_steps(59min, 1min);
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 600, 1000)));
    ASSERT_EQ(stream.head().status, 200u);
    auto const last = read_to_end(stream, 1s);
    EXPECT_EQ(at(last.response(), "error/data/reason"), "session_ended");
    EXPECT_TRUE(listener.wait_ended());
    EXPECT_EQ(post(session, rpc("1", "ping")).status, 404u);
    EXPECT_TRUE(eventually([&] { return store().census().sessions == 0; }));
}

TEST_F(Limits, RetryHasJitter)
{
    start();
    auto const session = open_session();
    std::set<std::uint32_t> values;
    for (int i = 0; i < 30; ++i) {
        auto stream = open_post(session, tool_call("1", "burst", R"({"count":0})"));
        auto const priming = stream.next_event();
        ASSERT_TRUE(priming && priming->retry_ms);
        EXPECT_GE(*priming->retry_ms, 3000u);
        EXPECT_LE(*priming->retry_ms, 3750u);
        values.insert(*priming->retry_ms);
    }
    EXPECT_GT(values.size(), 3u);
}

TEST_F(Limits, IdleHttpConnections)
{
    settings_.http.idle_timeout = 75s;
    start();
    auto client = connect();
    EXPECT_EQ(client.ask("GET", "/healthz", {}).status, 200u);
    advance_in_steps(70s, 5s);
    EXPECT_EQ(client.ask("GET", "/healthz", {}).status, 200u);
    advance_in_steps(80s, 5s);
    client.send_request("GET", "/healthz", {});
    EXPECT_FALSE(client.read_head());
}

TEST_F(Limits, UnreadAnswersOfAllConnections)
{
    settings_.http.send_buffer_bytes = 16384;
    settings_.http.max_bytes_out = 1 << 20;
    std::string const big(300'000, 'x');
    server_.tool("big", [&](call& on) -> task<std::string> {
        co_await on.sleep(1s);
        co_return big;
    });
    start();
    auto const session = open_session();
    struct unread {
        http_client connection;
        std::string cursor;
    };
    std::vector<unread> calls;
    for (int i = 0; i < 6; ++i) {
        http_client client(port(), {.receive_buffer = 4096, .source = {}});
        send_post(client, session, tool_call(std::to_string(i), "big"));
        ASSERT_TRUE(client.read_head());
        auto const priming = client.next_event();
        ASSERT_TRUE(priming);
        calls.push_back({std::move(client), priming->id});
    }
    advance(1s);
    ASSERT_TRUE(eventually([&] { return host().http_statistics().closed_readers >= 2; }));
    EXPECT_LE(host().http_statistics().bytes_out, 1u << 20);
    EXPECT_GE(metric("belay_http_readers_closed_total"), 2);
    EXPECT_EQ(echo(session, "others are served"), "Echo: others are served");
    // The answers wait in their streams.
    for (auto& [connection, cursor] : calls) {
        connection.close();
        auto resumed = get(session, cursor);
        auto const seen = read_to_end(resumed);
        EXPECT_EQ(text_at(seen.response(), "result/content/0/text"), big);
    }
}

TEST_F(Limits, RequestBodiesOfAllConnections)
{
    settings_.http.max_bytes_in = 1 << 20;
    start();
    auto const session = open_session();
    std::vector<http_client> halves;
    for (int i = 0; i < 10; ++i) {
        auto& client = halves.emplace_back(connect());
        client.send(fmt::format("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", 300'000));
        client.send(std::string(200'000, ' '));
    }
    ASSERT_TRUE(eventually([&] { return host().http_statistics().refused_bodies >= 4; }));
    EXPECT_GT(metric("belay_http_bytes_in"), 500'000);
    EXPECT_EQ(echo(session, "others are served"), "Echo: others are served");
    auto const refused = post(session, tool_call("1", "echo", R"({"message":")" + std::string(900'000, 'x') + "\"}"));
    EXPECT_EQ(refused.status, 503u);
    EXPECT_TRUE(refused.header("Retry-After"));
    halves.clear();
    ASSERT_TRUE(eventually([&] { return host().http_statistics().bytes_in == 0; }));
    EXPECT_EQ(echo(session, std::string(900'000, 'x')).size(), 900'006u);
}

}
