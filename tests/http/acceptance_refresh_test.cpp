// Acceptance scenarios AS-01…12: refresh and replay. docs/scenarios.md has a line for each.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <random>

namespace belay::test {

namespace {

template<class T>
std::vector<T> operator+(std::vector<T> a, std::vector<T> const& b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::vector<std::uint64_t> sequences(std::vector<http::sse_event> const& events)
{
    std::vector<std::uint64_t> all;
    for (auto const& each : events)
        all.push_back(sequence_of(each.id));
    return all;
}

void expect_consecutive(std::vector<http::sse_event> const& events)
{
    auto const all = sequences(events);
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(all[i], i + 1);
}

}

class Acceptance : public Server {
protected:
    /// Starts utility-notifications and reads until `count` periodic messages were seen.
    http_client begin_utility(
        client_session const& session, std::string const& id, std::string const& prefix, double seconds,
        int interval_ms, std::size_t count, seen& into)
    {
        auto stream = open_post(
            session, tool_call(id, "utility-notifications", utility_arguments(prefix, seconds, interval_ms)));
        EXPECT_EQ(stream.head().status, 200u);
        read_until(stream, into, [&](seen const& so_far) { return so_far.logs().size() >= count + 1; });
        return stream;
    }
};

TEST_F(Acceptance, AS01_RefreshMidTool)
{
    start();
    auto const session = open_session();
    auto listener = get(session);
    EXPECT_EQ(listener.head().status, 200u);
    seen before;
    auto stream = begin_utility(session, "7", "reconnect-test", 10, 1000, 3, before);
    stream.close();
    listener.close();
    advance_in_steps(2s, 100ms);

    auto resumed = get(session, before.cursor);
    EXPECT_EQ(resumed.head().status, 200u);
    EXPECT_EQ(resumed.head().header("Content-Type").value_or(""), "text/event-stream");
    auto const after = read_to_end(resumed);

    EXPECT_EQ(before.logs() + after.logs(), utility_texts("reconnect-test", 10, 1000));
    ASSERT_TRUE(after.has_response());
    auto const response = after.response();
    EXPECT_EQ(at(response, "id"), 7);
    auto const text = text_at(response, "result/content/0/text");
    EXPECT_EQ(
        text,
        R"({"success":true,"notificationsSent":12,"durationSeconds":10,"configuration":{"durationSeconds":10,"intervalMs":1000,"messagePrefix":"reconnect-test"}})");
    expect_consecutive(before.events + after.events);
    // Priming comes first on a resumed connection too, with an id that is not a repeated one.
    ASSERT_EQ(after.primings.size(), 1u);
    ASSERT_EQ(before.primings.size(), 1u);
    EXPECT_NE(after.primings[0].id, before.primings[0].id);
    EXPECT_TRUE(is_alive(session));
    EXPECT_EQ(store().census().sessions, 1u);
}

TEST_F(Acceptance, AS01_RefreshMidToolOnTwoLoops)
{
    settings_.threads = 2;
    start();
    for (int run = 0; run < 5; ++run) { // connections land on either loop
        auto const session = open_session();
        seen before;
        auto stream = begin_utility(session, "7", "t", 10, 1000, 3, before);
        stream.close();
        auto resumed = get(session, before.cursor);
        ASSERT_EQ(resumed.head().status, 200u);
        auto const after = read_to_end(resumed);
        EXPECT_EQ(before.logs() + after.logs(), utility_texts("t", 10, 1000));
        EXPECT_EQ(at(after.response(), "id"), 7);
        expect_consecutive(before.events + after.events);
    }
}

TEST_F(Acceptance, AS02_ResultDuringTheGap)
{
    start();
    auto const session = open_session();
    seen before;
    auto stream = begin_utility(session, "1", "gap", 3, 500, 2, before);
    stream.close();
    settle();
    auto const written = delivered() + replayed();
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    advance_in_steps(3s, 500ms);
    EXPECT_EQ(delivered() + replayed(), written) << "something was written while nobody was there";
    EXPECT_EQ(appended(), 9); // start, 6, complete, result

    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    // All of it is there: no time has to pass for the answer to end.
    ASSERT_TRUE(resumed.wait_ended());
    auto const after = read_to_end(resumed);
    EXPECT_EQ(before.logs() + after.logs(), utility_texts("gap", 3, 500));
    EXPECT_EQ(after.logs().size(), 5u);
    EXPECT_TRUE(after.has_response());
    expect_consecutive(before.events + after.events);
}

TEST_F(Acceptance, AS03_ResultAfterReconnect)
{
    start();
    auto const session = open_session();
    seen before;
    auto stream = begin_utility(session, "\"three\"", "t", 10, 1000, 3, before);
    stream.close();
    auto const had = static_cast<double>(before.events.size());
    ASSERT_TRUE(advance_until([&] { return appended() >= had + 2; }));
    settle();
    auto const missed = static_cast<std::size_t>(appended() - had);

    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    settle();
    // Without the clock moving: exactly what was appended in between.
    seen replay;
    while (auto const event = resumed.poll_event())
        replay.add(*event);
    EXPECT_EQ(replay.events.size(), missed);
    auto const live = read_to_end(resumed);
    EXPECT_EQ(before.logs() + replay.logs() + live.logs(), utility_texts("t", 10, 1000));
    expect_consecutive(before.events + replay.events + live.events);
    EXPECT_EQ(at(live.response(), "id"), "three");
}

TEST_F(Acceptance, AS04_DoubleRefresh)
{
    start();
    auto const session = open_session();
    seen all;
    auto stream = begin_utility(session, "1", "t", 20, 1000, 4, all);
    for (int refresh = 0; refresh < 2; ++refresh) {
        stream.close();
        advance_in_steps(1500ms, 100ms);
        stream = get(session, all.cursor);
        ASSERT_EQ(stream.head().status, 200u);
        auto const enough = all.logs().size() + 5;
        read_until(stream, all, [&](seen const& so_far) { return so_far.logs().size() >= enough; });
    }
    auto const rest = read_to_end(stream);
    EXPECT_EQ(all.logs() + rest.logs(), utility_texts("t", 20, 1000));
    EXPECT_TRUE(rest.has_response());
    expect_consecutive(all.events + rest.events);
}

TEST_F(Acceptance, AS04_RefreshWhileTheOldConnectionIsStillOpen)
{
    start();
    auto const session = open_session();
    seen before;
    auto stream = begin_utility(session, "1", "t", 5, 1000, 2, before);
    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    EXPECT_TRUE(stream.wait_ended()) << "the newest connection takes over";
    auto const after = read_to_end(resumed);
    EXPECT_EQ(before.logs() + after.logs(), utility_texts("t", 5, 1000));
    EXPECT_EQ(host().metrics().takeovers.Value(), 1);
}

TEST_F(Acceptance, AS06_CutBeforeTheFirstMessage)
{
    start();
    auto const session = open_session();
    auto stream = open_post(
        session, tool_call("1", "longRunningOperation", R"({"duration":2,"steps":2})", R"({"progressToken":"p"})"));
    auto const first = stream.next_event();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->data, "");
    EXPECT_EQ(first->type, "message");
    EXPECT_FALSE(first->id.empty());
    ASSERT_TRUE(first->retry_ms);
    EXPECT_GE(*first->retry_ms, 3000u);
    EXPECT_LE(*first->retry_ms, 3750u);
    stream.close();

    auto resumed = get(session, first->id);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const all = read_to_end(resumed);
    ASSERT_EQ(all.events.size(), 3u);
    EXPECT_EQ(at(message_of(all.events[0]), "params/progress"), 1);
    EXPECT_EQ(at(message_of(all.events[0]), "params/progressToken"), "p");
    EXPECT_EQ(at(message_of(all.events[1]), "params/progress"), 2);
    EXPECT_TRUE(all.has_response());
    expect_consecutive(all.events);
}

TEST_F(Acceptance, AS06_ResumeFromPrimingGivesEverythingFromTheFirstMessage)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 3, 1000)));
    auto const first = stream.next_event();
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->data.empty());
    stream.reset();
    auto resumed = get(session, first->id);
    ASSERT_EQ(resumed.head().status, 200u);
    EXPECT_EQ(read_to_end(resumed).logs(), utility_texts("t", 3, 1000));
}

class AcceptanceOldClient : public Acceptance, public testing::WithParamInterface<char const*> {};

TEST_P(AcceptanceOldClient, AS07_TypedPriming)
{
    start();
    auto const session = open_session(GetParam());
    auto stream = open_post(
        session, tool_call("1", "longRunningOperation", R"({"duration":2,"steps":1})", R"({"progressToken":1})"));
    auto const first = stream.next_event();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->type, "belay");
    EXPECT_EQ(first->data, "{}");
    EXPECT_FALSE(first->id.empty());
    stream.close();
    auto resumed = get(session, first->id);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const again = resumed.next_event();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->type, "belay");
    auto const all = read_to_end(resumed);
    for (auto const& each : all.events)
        EXPECT_FALSE(each.data.empty());
    EXPECT_TRUE(all.has_response());
    EXPECT_EQ(all.events.size(), 2u);
}

TEST_P(AcceptanceOldClient, AS07_PrimingOff)
{
    settings_.runtime.priming_legacy = runtime::legacy_priming::off;
    start();
    auto const session = open_session(GetParam());
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 2, 1000)));
    auto const first = stream.next_event();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->type, "message");
    EXPECT_EQ(log_text(*first), utility_texts("t", 2, 1000)[0]);
    EXPECT_FALSE(first->id.empty());
    stream.close();
    auto resumed = get(session, first->id);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const rest = read_to_end(resumed);
    EXPECT_EQ(rest.primings.size(), 0u);
    EXPECT_EQ(std::vector{log_text(*first)} + rest.logs(), utility_texts("t", 2, 1000));
}

INSTANTIATE_TEST_SUITE_P(
    Revisions, AcceptanceOldClient, testing::Values("2024-11-05", "2025-03-26", "2025-06-18"), [](auto const& info) {
        std::string name = info.param;
        std::ranges::replace(name, '-', '_');
        return name;
    });

TEST_F(Acceptance, AS07_NoVersionHeaderMeansTheSessionsVersion)
{
    start();
    auto session = open_session("2025-06-18");
    session.version.clear();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", 1, 1000)));
    auto const first = stream.next_event();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->type, "belay");
    auto newer = open_session("2025-11-25");
    newer.version.clear();
    auto other = open_post(newer, tool_call("1", "utility-notifications", utility_arguments("t", 1, 1000)));
    auto const its_first = other.next_event();
    ASSERT_TRUE(its_first);
    EXPECT_EQ(its_first->data, "");
}

TEST_F(Acceptance, AS08_SeveralCallsInFlight)
{
    start();
    auto const session = open_session();
    std::vector<std::string> const bodies{
        tool_call("1", "utility-notifications", utility_arguments("six", 6, 500)),
        tool_call("2", "utility-notifications", utility_arguments("eight", 8, 500)),
        tool_call("3", "longRunningOperation", R"({"duration":7,"steps":7})", R"({"progressToken":"three"})")};
    std::vector<http_client> streams;
    std::vector<seen> parts(3);
    for (auto const& body : bodies)
        streams.push_back(open_post(session, body));
    for (std::size_t i = 0; i < 3; ++i)
        read_until(streams[i], parts[i], [](seen const& so_far) { return so_far.events.size() >= 2; });
    for (auto& stream : streams)
        stream.close();
    advance_in_steps(2s, 100ms);
    streams.clear();
    for (auto const& part : parts)
        streams.push_back(get(session, part.cursor));
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(streams[i].head().status, 200u);
        auto const rest = read_to_end(streams[i]);
        auto const all = parts[i].events + rest.events;
        expect_consecutive(all);
        for (auto const& event : all)
            EXPECT_EQ(stream_of(event.id), stream_of(parts[i].cursor));
        EXPECT_EQ(at(rest.response(), "id"), static_cast<int>(i) + 1);
        auto const logs = parts[i].logs() + rest.logs();
        if (i == 0) {
            EXPECT_EQ(logs, utility_texts("six", 6, 500));
        }
        if (i == 1) {
            EXPECT_EQ(logs, utility_texts("eight", 8, 500));
        }
        if (i == 2) {
            ASSERT_EQ(all.size(), 8u);
            for (std::size_t step = 0; step < 7; ++step) {
                EXPECT_EQ(at(message_of(all[step]), "params/progressToken"), "three");
                EXPECT_EQ(at(message_of(all[step]), "params/progress"), step + 1);
                EXPECT_EQ(at(message_of(all[step]), "params/total"), 7);
            }
        }
    }
}

TEST_F(Acceptance, AS09_ResumeOfAFinishedCall)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "burst", R"({"count":5})"));
    auto const all = read_to_end(stream);
    ASSERT_EQ(all.events.size(), 6u);
    // Before the last event: the rest, then the end. As often as one likes.
    for (int time = 0; time < 2; ++time)
        for (std::size_t from = 0; from < 5; ++from) {
            auto resumed = get(session, all.events[from].id);
            ASSERT_EQ(resumed.head().status, 200u);
            auto const rest = read_to_end(resumed);
            ASSERT_EQ(rest.events.size(), 5 - from);
            for (std::size_t i = 0; i < rest.events.size(); ++i) {
                EXPECT_EQ(rest.events[i].id, all.events[from + 1 + i].id);
                EXPECT_EQ(rest.events[i].data, all.events[from + 1 + i].data);
            }
        }
    // At the last event.
    auto at_end = get(session, all.events.back().id);
    EXPECT_EQ(at_end.head().status, 204u);
    EXPECT_FALSE(at_end.head().header("Content-Type"));
    // Its events are dropped at their age while the session lives.
    advance_in_steps(16min, 1min); // and a sweep
    auto const gone = get(open_session(), all.events[0].id).head().status;
    EXPECT_EQ(gone, 400u) << "another session's stream is no stream of this one";
}

TEST_F(Acceptance, AS09_StreamNoLongerKept)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "burst", R"({"count":5})"));
    auto const all = read_to_end(stream);
    auto listener = get(session); // keeps the session
    ASSERT_EQ(listener.head().status, 200u);
    advance_in_steps(16min, 1min);
    ASSERT_TRUE(is_alive(session));
    for (auto const& cursor : {all.primings[0].id, all.events[0].id, all.events.back().id}) {
        auto resumed = get(session, cursor);
        auto const answer = resumed.head().status;
        EXPECT_EQ(answer, 400u);
    }
}

class AcceptanceCuts : public Acceptance, public testing::WithParamInterface<unsigned> {};

TEST_P(AcceptanceCuts, AS10_RandomCuts)
{
    settings_.threads = GetParam();
    start();
    constexpr int burst = 12;
    auto const body = tool_call("1", "burst", fmt::format(R"({{"count":{},"bytes":40}})", burst));
    auto session = open_session();
    // A whole answer, to know its length and its log.
    auto whole = open_post(session, body);
    auto const expected = read_to_end(whole);
    ASSERT_EQ(expected.events.size(), burst + 1u);
    auto const length = whole.bytes_read();

    auto const seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    auto const below = [&](std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound)(random); };
    int without_cursor = 0;
    int resumes = 0;
    for (int run = 0; run < 1000; ++run) {
        SCOPED_TRACE(fmt::format("run {}", run));
        if (run % 100 == 99)
            session = open_session(run % 200 == 99 ? "2025-06-18" : "2025-11-25");
        seen all;
        bool is_first = true;
        for (;;) {
            auto client = connect();
            client.cut_after(below(is_first ? length : 2 * length));
            auto headers = headers_of(session, {{"Accept", "application/json, text/event-stream"}});
            if (is_first) {
                headers.emplace_back("Content-Type", "application/json");
                client.send_request("POST", "/mcp", headers, body);
            } else {
                headers.emplace_back("Last-Event-ID", all.cursor);
                client.send_request("GET", "/mcp", headers);
                ++resumes;
            }
            if (client.read_head()) {
                ASSERT_EQ(client.head().status, 200u);
                while (auto const event = client.next_event())
                    all.add(*event);
            }
            ASSERT_NE(client.how_it_ended(), http_client::ending::timed_out);
            if (random() % 2)
                client.reset();
            else
                client.close();
            is_first = false;
            if (all.cursor.empty() || all.has_response())
                break;
        }
        if (all.cursor.empty()) { // died before anything arrived; there is nothing to come back with
            EXPECT_TRUE(all.events.empty());
            ++without_cursor;
            continue;
        }
        ASSERT_EQ(all.events.size(), expected.events.size());
        expect_consecutive(all.events);
        for (std::size_t i = 0; i < all.events.size(); ++i)
            ASSERT_EQ(all.events[i].data, expected.events[i].data);
    }
    EXPECT_GT(resumes, 300);
    EXPECT_LT(without_cursor, 700);
}

INSTANTIATE_TEST_SUITE_P(Loops, AcceptanceCuts, testing::Values(1u, 2u));

namespace {

struct cancelled_tool {
    std::atomic<bool> started{false};
    std::atomic<bool> unwound{false};
};

}

TEST_F(Acceptance, AS12_CancelAfterRefresh)
{
    auto const state = std::make_shared<cancelled_tool>();
    server_.tool("stuck", [state](call& call) -> task<std::string> {
        struct on_exit {
            std::shared_ptr<cancelled_tool> of;
            ~on_exit() { of->unwound = true; }
        } const guard{state};
        state->started = true;
        co_await call.log(log_level::info, "stuck", std::string("waiting"));
        co_await call.sleep(24h);
        co_return std::string("never");
    });
    start();
    auto const session = open_session();
    seen before;
    auto stream = open_post(session, tool_call("42", "stuck"));
    read_until(stream, before, [](seen const& so_far) { return so_far.events.size() == 1; });
    stream.close();

    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    EXPECT_EQ(
        post(session, notification("notifications/cancelled", R"({"requestId":42,"reason":"page"})")).status, 202u);
    EXPECT_TRUE(eventually([&] { return state->unwound.load(); })) << "the handler is told at once";
    ASSERT_TRUE(resumed.wait_ended());
    auto const after = read_to_end(resumed);
    ASSERT_EQ(after.events.size(), 1u);
    auto const last = message_of(after.events[0]);
    EXPECT_EQ(at(last, "id"), 42);
    EXPECT_EQ(at(last, "error/code"), -32800);
    EXPECT_EQ(at(last, "error/data/reason"), "cancelled");
    EXPECT_TRUE(at(last, "result").is_null());
    EXPECT_EQ(appended(), 2);
    EXPECT_EQ(host().node().departures().calls(), 0u);
    // Another cancel of the same call is ignored.
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":42})")).status, 202u);
    settle();
    EXPECT_EQ(appended(), 2);
    EXPECT_EQ(get(session, after.cursor).head().status, 204u);
}

TEST_F(Acceptance, AS12_CancelWithNobodyAttached)
{
    start();
    auto const session = open_session();
    seen before;
    auto stream = begin_utility(session, R"("a-7")", "t", 60, 1000, 1, before);
    stream.close();
    settle();
    // An id of another type is another id.
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":7})")).status, 202u);
    settle();
    EXPECT_EQ(host().node().departures().calls(), 1u);
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":"a-7"})")).status, 202u);
    ASSERT_TRUE(eventually([&] { return host().node().departures().calls() == 0; }));
    auto resumed = get(session, before.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const after = read_to_end(resumed);
    ASSERT_EQ(after.events.size(), 1u);
    EXPECT_EQ(at(after.response(), "error/data/reason"), "cancelled");
    EXPECT_EQ(at(after.response(), "id"), "a-7");
}

TEST_F(Acceptance, AS12_CancelOfAnotherSessionsCallIsIgnored)
{
    start();
    auto const session = open_session();
    auto const other = open_session();
    seen before;
    auto stream = begin_utility(session, "1", "t", 3, 1000, 1, before);
    EXPECT_EQ(post(other, notification("notifications/cancelled", R"({"requestId":1})")).status, 202u);
    auto const after = read_to_end(stream);
    EXPECT_EQ(before.logs() + after.logs(), utility_texts("t", 3, 1000));
    EXPECT_FALSE(at(after.response(), "result").is_null());
}

}
