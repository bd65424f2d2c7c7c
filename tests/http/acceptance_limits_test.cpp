// Acceptance scenarios AS-39…43 and AS-54: limits, long lives, polling. docs/scenarios.md has a line for each.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

namespace belay::test {

class AcceptanceLimits : public Server {};

TEST_F(AcceptanceLimits, AS39_TrimmedHistory)
{
    settings_.runtime.limits.events_per_stream = 100;
    start();
    auto const session = open_session();
    // 1 event is seen; 248 messages, "complete" and the result are missed.
    auto stream = open_post(session, tool_call("9", "utility-notifications", utility_arguments("t", 248, 1000)));
    seen before;
    read_until(stream, before, [](seen const& so_far) { return so_far.events.size() == 1; });
    stream.close();
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));
    EXPECT_EQ(appended(), 251);

    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const after = read_to_end(resumed);
    ASSERT_EQ(after.events.size(), 101u);
    auto const& gap = after.events[0];
    EXPECT_EQ(missed_of(gap), 150);
    EXPECT_EQ(at(message_of(gap), "params/level"), "warning");
    EXPECT_EQ(at(message_of(gap), "params/data/from"), 2);
    EXPECT_EQ(at(message_of(gap), "params/data/to"), 151);
    for (std::size_t i = 1; i <= 100; ++i)
        EXPECT_EQ(sequence_of(after.events[i].id), 151 + i);
    EXPECT_EQ(at(after.response(), "id"), 9);
    // From the notice's own id on, nothing is missing.
    auto again = get(session, gap.id);
    auto const rest = read_to_end(again);
    EXPECT_EQ(rest.events.size(), 100u);
    EXPECT_FALSE(missed_of(rest.events[0]));
    EXPECT_EQ(host().metrics().gaps_told.Value(), 1);
    EXPECT_EQ(host().metrics().events_trimmed_undelivered.Value(), 150);
}

TEST_F(AcceptanceLimits, AS39_GapNoticeWhateverTheLogLevel)
{
    settings_.runtime.limits.events_per_stream = 5;
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("9", "utility-notifications", utility_arguments("t", 20, 1000)));
    auto const priming = stream.next_event();
    stream.close();
    EXPECT_EQ(post(session, rpc("1", "logging/setLevel", R"({"level":"emergency"})")).status, 200u);
    // From then on nothing is sent, so only the beginning and the result exist; trim by another call.
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));
    EXPECT_EQ(appended(), 2); // "starting", the result
    EXPECT_EQ(post(session, rpc("1", "logging/setLevel", R"({"level":"debug"})")).status, 200u);
    auto other = open_post(session, tool_call("10", "utility-notifications", utility_arguments("t", 20, 1000)));
    auto const its_priming = other.next_event();
    ASSERT_TRUE(its_priming);
    other.close();
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));
    EXPECT_EQ(post(session, rpc("1", "logging/setLevel", R"({"level":"emergency"})")).status, 200u);
    auto resumed = get(session, its_priming->id);
    auto const rest = read_to_end(resumed);
    ASSERT_FALSE(rest.events.empty());
    EXPECT_EQ(missed_of(rest.events[0]), 18); // 23 events, 5 kept
    EXPECT_EQ(rest.events.size(), 6u);
}

TEST_F(AcceptanceLimits, AS39_UndeliveredResultIsPinned)
{
    settings_.runtime.limits.event_age = 1min;
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("9", "utility-notifications", utility_arguments("t", 3, 1000)));
    seen before;
    read_until(stream, before, [](seen const& so_far) { return so_far.events.size() == 1; });
    stream.close();
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    advance_in_steps(6min, 10s);
    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const after = read_to_end(resumed);
    ASSERT_TRUE(after.has_response());
    EXPECT_EQ(at(after.response(), "id"), 9);
    EXPECT_TRUE(at(after.response(), "result").is_object());
    if (after.logs().size() != 4) { // three messages and "complete"
        EXPECT_EQ(missed_of(after.events[0]), 4);
        EXPECT_EQ(after.events.size(), 2u);
    }
}

TEST_F(AcceptanceLimits, AS40_SlowConsumer)
{
    constexpr int count = 5000;
    constexpr std::size_t bytes = 10'000; // 50 MB
    settings_.http.send_buffer_bytes = 64 * 1024;
    start();
    auto const bystander = open_session();
    auto const session = open_session();
    http_client slow(port(), {16 * 1024, {}});
    send_post(slow, session, tool_call("1", "burst", fmt::format(R"({{"count":{},"bytes":{}}})", count, bytes)));
    ASSERT_TRUE(slow.read_head());
    // It stops to read. The tool stops when it is half the retention ahead of what the kernel took.
    ASSERT_TRUE(eventually([&] {
        auto const before = appended();
        settle();
        return before > 10 && before == appended();
    }));
    auto const& limits = settings_.runtime.limits;
    EXPECT_LT(appended() * bytes, static_cast<double>(limits.bytes_per_stream));
    EXPECT_EQ(host().node().departures().calls(), 1u);
    EXPECT_EQ(echo(bystander, "meanwhile"), "Echo: meanwhile");
    EXPECT_LE(store().census().bytes, limits.bytes_per_stream + bytes);

    // After flow.stall its connection is closed, and the call goes on.
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));
    EXPECT_TRUE(eventually([&] { return host().node().departures().connections() == 0; }));
    EXPECT_EQ(appended(), count + 1);
    EXPECT_LE(store().census().bytes, limits.bytes_per_stream + bytes);
    advance_in_steps(60s, 5s);
    EXPECT_EQ(echo(bystander, "later"), "Echo: later");
    seen before;
    while (auto const event = slow.next_event())
        before.add(*event);
    EXPECT_NE(slow.how_it_ended(), http_client::ending::timed_out) << "the server has not closed the connection";
    EXPECT_NE(slow.how_it_ended(), http_client::ending::complete) << "what it was told is cut off, not complete";
    EXPECT_LT(slow.bytes_read(), 1u << 20);
    ASSERT_FALSE(before.cursor.empty());

    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const after = read_to_end(resumed);
    ASSERT_TRUE(after.has_response());
    ASSERT_TRUE(missed_of(after.events[0]));
    auto const kept = after.events.size() - 1;
    EXPECT_EQ(before.events.size() + static_cast<std::size_t>(*missed_of(after.events[0])) + kept, count + 1u);
    // All that retention allows is there, and in order.
    EXPECT_GT(kept * bytes, limits.bytes_per_stream * 9 / 10);
    auto const first = count + 1 - kept;
    for (std::size_t i = 1; i <= kept; ++i)
        ASSERT_EQ(sequence_of(after.events[i].id), first + i);
}

TEST_F(AcceptanceLimits, AS40_AReaderThatReadsGetsAll)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "burst", R"({"count":20000})"));
    std::uint64_t expected = 0;
    bool has_response = false;
    while (auto const event = stream.next_event()) {
        if (is_priming(*event))
            continue;
        ASSERT_EQ(sequence_of(event->id), ++expected);
        if (expected <= 20'000)
            ASSERT_NE(event->data.find(fmt::format("burst {}/20000 ", expected)), std::string::npos);
        else
            has_response = is_response(*event);
    }
    EXPECT_EQ(expected, 20'001u);
    EXPECT_TRUE(has_response);
    EXPECT_EQ(host().metrics().events_trimmed_undelivered.Value(), 0);
    EXPECT_LE(store().census().events, 1000u);
}

TEST_F(AcceptanceLimits, AS40_AReloadDuringABurstLosesNothing)
{
    // What lies unread in a dead page's socket counts as given to it. Small buffers keep that below half the
    // retention, which is what the tool may be ahead.
    settings_.http.send_buffer_bytes = 8 * 1024;
    start();
    auto const session = open_session();
    std::string cursor;
    std::size_t events = 0;
    for (int connection = 0;; ++connection) {
        ASSERT_LT(connection, 20);
        http_client page(port(), {8 * 1024, {}});
        auto headers = headers_of(
            session, {{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}});
        if (cursor.empty()) {
            page.send_request("POST", "/mcp", headers, tool_call("1", "burst", R"({"count":20000})"));
        } else {
            headers.emplace_back("Last-Event-ID", cursor);
            page.send_request("GET", "/mcp", headers);
        }
        ASSERT_TRUE(page.read_head());
        ASSERT_EQ(page.head().status, 200u);
        std::size_t const until = events + 1500;
        std::optional<http::sse_event> event;
        while (events < until && (event = page.next_event())) {
            cursor = event->id;
            if (!is_priming(*event)) {
                ASSERT_EQ(sequence_of(event->id), ++events) << event->data;
            }
        }
        if (events == 20'001)
            break;
        page.close();
        advance(1s); // within flow.grace
    }
    EXPECT_EQ(host().metrics().gaps_told.Value(), 0);
}

TEST_F(AcceptanceLimits, AS41_ManyStreams)
{
    start();
    auto const session = open_session();
    auto running = open_post(session, tool_call("\"long\"", "utility-notifications", utility_arguments("t", 5, 1000)));
    auto const running_cursor = running.next_event();
    ASSERT_TRUE(running_cursor);
    running.close();
    std::vector<std::string> firsts; // the first event's id of each
    for (int i = 0; i < 255; ++i) {
        auto stream = open_post(session, tool_call(std::to_string(i), "burst", R"({"count":1})"));
        ASSERT_EQ(stream.head().status, 200u);
        auto const log = read_to_end(stream);
        ASSERT_EQ(log.events.size(), 2u);
        firsts.push_back(log.events[0].id);
    }
    settle();
    EXPECT_EQ(store().census().streams, 256u);
    EXPECT_EQ(get(session, firsts[0]).head().status, 200u);
    settle();
    // The 257th.
    auto one_more = open_post(session, tool_call("1", "burst", R"({"count":1})"));
    ASSERT_EQ(one_more.head().status, 200u);
    EXPECT_TRUE(read_to_end(one_more).has_response());
    EXPECT_EQ(get(session, firsts[0]).head().status, 400u) << "the oldest finished one is gone";
    EXPECT_EQ(get(session, firsts[1]).head().status, 200u);
    EXPECT_EQ(store().census().streams, 256u);
    auto resumed = get(session, running_cursor->id);
    ASSERT_EQ(resumed.head().status, 200u) << "a running one is never evicted";
    EXPECT_EQ(read_to_end(resumed).logs(), utility_texts("t", 5, 1000));
}

TEST_F(AcceptanceLimits, AS41_NoneEvictable)
{
    auto const runs = std::make_shared<std::atomic<int>>(0);
    server_.tool("counted", [runs](call& call) -> task<std::string> {
        ++*runs;
        co_await call.sleep(1h - 1s);
        co_return std::string("done");
    });
    settings_.runtime.limits.streams_per_session = 5;
    start();
    auto const session = open_session();
    // Three run, two have finished without anyone there.
    std::vector<std::string> cursors;
    for (int i = 0; i < 5; ++i) {
        auto stream = open_post(
            session,
            i < 3 ? tool_call(std::to_string(i), "counted")
                  : tool_call(std::to_string(i), "longRunningOperation", R"({"duration":1,"steps":1})"));
        ASSERT_EQ(stream.head().status, 200u);
        auto const priming = stream.next_event();
        ASSERT_TRUE(priming);
        cursors.push_back(priming->id);
        stream.close();
    }
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 3; }));
    auto const refused = post(session, tool_call("6", "counted"));
    EXPECT_EQ(refused.status, 429u);
    EXPECT_TRUE(refused.header("Retry-After"));
    EXPECT_TRUE(at(refused.json(), "error").is_object());
    EXPECT_EQ(*runs, 3) << "the handler ran";
    EXPECT_TRUE(is_alive(session)) << "instant answers need no stream";
    // One finished call is fetched; it may go then.
    auto fetched = get(session, cursors[3]);
    EXPECT_TRUE(read_to_end(fetched).has_response());
    settle();
    auto accepted = open_post(session, tool_call("6", "counted"));
    EXPECT_EQ(accepted.head().status, 200u);
    EXPECT_EQ(get(session, cursors[3]).head().status, 400u);
    auto other = get(session, cursors[4]);
    ASSERT_EQ(other.head().status, 200u) << "an undelivered result is not evicted";
    EXPECT_TRUE(read_to_end(other).has_response());
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(get(session, cursors[i]).head().status, 200u);
}

TEST_F(AcceptanceLimits, AS42_LongToolBeyondEveryTimeout)
{
    settings_.runtime.limits.session_idle = 5min;
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 900, 1000)));
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    stream.close();
    ASSERT_TRUE(advance_until([&] { return appended() >= 721; }, 1s));
    EXPECT_EQ(store().census().sessions, 1u);
    auto resumed = get(session, priming->id);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const all = read_to_end(resumed, 1s);
    EXPECT_EQ(all.logs(), utility_texts("t", 900, 1000));
    EXPECT_TRUE(all.has_response());
    EXPECT_TRUE(is_alive(session));
    // With everything over, the session is as mortal as any.
    advance_in_steps(6min + 1s, 30s);
    EXPECT_EQ(store().census().sessions, 0u);
}

TEST_F(AcceptanceLimits, AS43_QuietListener)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    ASSERT_TRUE(listener.next_event());
    for (int minute = 1; minute <= 30; ++minute) {
        advance_in_steps(1min, 1s);
        auto const comments = listener.comment_count();
        EXPECT_GE(comments, static_cast<std::size_t>(minute * 4 - 1));
        EXPECT_LE(comments, static_cast<std::size_t>(minute * 4));
    }
    EXPECT_EQ(listener.poll_ending(), http_client::ending::open);
    EXPECT_EQ(store().census().sessions, 1u);
    // The count starts when the listener goes.
    listener.close();
    settle();
    advance_in_steps(9min + 50s, 10s);
    EXPECT_EQ(store().census().sessions, 1u);
    advance_in_steps(80s, 10s);
    EXPECT_EQ(store().census().sessions, 0u);
}

TEST_F(AcceptanceLimits, AS54_ServerInitiatedPolling)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "test_reconnection"));
    ASSERT_EQ(stream.head().status, 200u);
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    EXPECT_EQ(priming->data, "");
    EXPECT_FALSE(priming->id.empty());
    ASSERT_TRUE(stream.wait_ended()) << "the server closes before the result";
    EXPECT_EQ(stream.how_it_ended(), http_client::ending::complete);
    EXPECT_FALSE(stream.next_event());
    EXPECT_EQ(stream.retry_ms(), 500u);
    EXPECT_EQ(host().node().departures().calls(), 1u);
    advance_in_steps(500ms, 50ms);
    auto resumed = get(session, priming->id);
    ASSERT_EQ(resumed.head().status, 200u);
    ASSERT_TRUE(resumed.wait_ended());
    auto const rest = read_to_end(resumed);
    EXPECT_EQ(at(rest.response(), "id"), 1);
    EXPECT_TRUE(at(rest.response(), "result/content").is_array());
    EXPECT_TRUE(at(rest.response(), "result/isError") != true);
}

TEST_F(AcceptanceLimits, AS54_OldClientsWithoutACursorKeepTheirConnection)
{
    settings_.runtime.priming_legacy = runtime::legacy_priming::off;
    start();
    auto const session = open_session("2025-06-18");
    auto stream = open_post(session, tool_call("1", "test_reconnection"));
    auto const all = read_to_end(stream, 50ms);
    ASSERT_EQ(all.events.size(), 1u);
    EXPECT_TRUE(all.has_response());
}

TEST_F(AcceptanceLimits, AS54_MaximumConnectionAge)
{
    settings_.runtime.follower.max_age = 2s;
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 10, 1000)));
    seen all;
    int connections = 1;
    while (!all.has_response()) {
        while (auto const event = next(stream))
            all.add(*event);
        ASSERT_EQ(stream.how_it_ended(), http_client::ending::complete);
        if (all.has_response())
            break;
        EXPECT_TRUE(stream.retry_ms());
        ASSERT_LT(++connections, 20);
        stream = get(session, all.cursor);
        ASSERT_EQ(stream.head().status, 200u);
    }
    EXPECT_EQ(all.logs(), utility_texts("t", 10, 1000));
    EXPECT_GE(connections, 4);
}

}
