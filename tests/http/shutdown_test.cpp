// SIGTERM's meaning (DESIGN.md, section 8) with the memory store: not ready, nothing new, what runs may finish,
// the rest gets a definite answer that is written before the server goes.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <set>

namespace belay::test {

class Shutdown : public Server {
protected:
    void begin_to_stop()
    {
        host().shut_down();
        ASSERT_TRUE(eventually([&] { return host().node().departures().is_draining(); }));
    }
    http_client begin_utility(client_session const& session, double seconds)
    {
        return open_post(session, tool_call("1", "utility-notifications", utility_arguments("t", seconds, 1000)));
    }
    /// To the end, when the server no longer answers the probe that tells that it has settled.
    static seen drain(http_client& stream)
    {
        seen all;
        while (auto const event = stream.next_event())
            all.add(*event);
        EXPECT_EQ(stream.how_it_ended(), http_client::ending::complete);
        return all;
    }
};

TEST_F(Shutdown, NothingNewIsTaken)
{
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 10);
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    EXPECT_EQ(ask("GET", "/readyz").status, 200u);
    begin_to_stop();
    EXPECT_EQ(ask("GET", "/readyz").status, 503u);
    EXPECT_EQ(ask("GET", "/healthz").status, 200u) << "it lives, it is only not ready";
    auto const opened = post_plain(hello());
    EXPECT_EQ(opened.status, 503u);
    EXPECT_TRUE(opened.header("Retry-After"));
    EXPECT_FALSE(opened.header("Mcp-Session-Id"));
    auto const called = post(session, tool_call("2", "longRunningOperation"));
    EXPECT_EQ(called.status, 503u);
    EXPECT_TRUE(called.header("Retry-After"));
    EXPECT_TRUE(at(called.json(), "error").is_object());
    EXPECT_EQ(host().node().departures().calls(), 1u);
    EXPECT_EQ(store().census().sessions, 1u);
}

TEST_F(Shutdown, ResumesAndCancelsAreServed)
{
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 10);
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    begin_to_stop();
    stream.close();
    auto resumed = get(session, priming->id);
    ASSERT_EQ(resumed.head().status, 200u);
    seen all;
    read_until(resumed, all, [](seen const& so_far) { return so_far.logs().size() >= 3; });
    EXPECT_EQ(post(session, R"({"jsonrpc":"2.0","id":"s-1","result":{}})").status, 202u);
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":1})")).status, 202u);
    auto const last = drain(resumed);
    EXPECT_EQ(at(last.response(), "error/data/reason"), "cancelled");
    host().wait(); // it has nothing left to do
}

TEST_F(Shutdown, CallsMayFinish)
{
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 5);
    auto listener = get(session);
    ASSERT_TRUE(listener.next_event());
    begin_to_stop();
    seen all;
    read_until(stream, all, [](seen const& so_far) { return so_far.logs().size() >= 5; });
    EXPECT_EQ(listener.poll_ending(), http_client::ending::open) << "connections stay while calls run";
    advance(1s);
    auto const rest = drain(stream);
    auto logs = all.logs();
    for (auto const& text : rest.logs())
        logs.push_back(text);
    EXPECT_EQ(logs, utility_texts("t", 5, 1000));
    EXPECT_EQ(at(rest.response(), "result/isError") == true, false);
    EXPECT_TRUE(listener.wait_ended());
    host().wait();
    EXPECT_EQ(host().metrics().calls_interrupted.Value(), 0);
}

TEST_F(Shutdown, TheRestIsInterrupted)
{
    server_.tool("careless", [](call& call) -> task<std::string> {
        co_await call.sleep(1h);
        co_return std::string("never");
    });
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 60);
    auto careless = open_post(session, tool_call("\"c\"", "careless"));
    auto detached = open_post(session, tool_call("3", "careless"));
    ASSERT_TRUE(detached.next_event());
    detached.close();
    begin_to_stop();
    seen all;
    read_until(stream, all, [](seen const& so_far) { return so_far.logs().size() >= 15; });
    EXPECT_EQ(host().node().departures().calls(), 3u);
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));

    auto const rest = drain(stream);
    ASSERT_TRUE(rest.has_response());
    auto const answer = rest.response();
    EXPECT_EQ(at(answer, "id"), 1);
    EXPECT_EQ(at(answer, "result/isError"), true);
    auto const ended = at(answer, "result/_meta").get_object().at("belay/ended");
    EXPECT_EQ(at(ended, "reason"), "interrupted");
    EXPECT_EQ(at(ended, "retryable"), true) << "a read-only tool may be called again";
    EXPECT_FALSE(text_at(answer, "result/content/0/text").empty());
    auto const other = drain(careless).response();
    EXPECT_EQ(at(other, "id"), "c");
    auto const its = at(other, "result/_meta").get_object().at("belay/ended");
    EXPECT_EQ(at(its, "reason"), "interrupted");
    EXPECT_EQ(at(its, "retryable"), false);
    host().wait();
    EXPECT_EQ(host().metrics().calls_interrupted.Value(), 3);
    EXPECT_EQ(store().census().pending, 1u) << "the answer nobody was there for";
}

TEST_F(Shutdown, OnTwoLoops)
{
    settings_.threads = 2;
    start();
    std::vector<http_client> streams;
    std::vector<http_client> listeners;
    for (int i = 0; i < 10; ++i) {
        auto const session = open_session();
        listeners.push_back(get(session));
        streams.push_back(begin_utility(session, i % 2 ? 5 : 600));
        ASSERT_EQ(streams.back().head().status, 200u);
    }
    begin_to_stop();
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    for (int i = 0; i < 10; ++i) {
        auto const answer = drain(streams[i]).response();
        ASSERT_TRUE(at(answer, "result").is_object()) << i;
        EXPECT_EQ(at(answer, "result/isError") == true, i % 2 == 0) << i;
        EXPECT_TRUE(listeners[i].wait_ended());
    }
    host().wait();
    EXPECT_EQ(host().metrics().calls_interrupted.Value(), 5);
}

TEST_F(Shutdown, DrainTimeIsASetting)
{
    settings_.drain = 3s;
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 60);
    ASSERT_TRUE(stream.next_event());
    begin_to_stop();
    advance_in_steps(2900ms, 100ms);
    EXPECT_EQ(host().node().departures().calls(), 1u);
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    EXPECT_TRUE(drain(stream).has_response());
    host().wait();
}

TEST_F(Shutdown, NothingRunningStopsAtOnce)
{
    start();
    std::vector<http_client> listeners;
    std::set<std::uint32_t> retries;
    for (int i = 0; i < 8; ++i) {
        listeners.push_back(get(open_session()));
        ASSERT_TRUE(listeners.back().next_event());
    }
    host().shut_down();
    host().wait();
    for (auto& each : listeners) {
        EXPECT_TRUE(each.wait_ended());
        EXPECT_EQ(each.how_it_ended(), http_client::ending::complete) << "ended as HTTP says, not cut";
        ASSERT_TRUE(each.retry_ms());
        EXPECT_GE(*each.retry_ms(), 5000u);
        EXPECT_LE(*each.retry_ms(), 6250u);
        retries.insert(*each.retry_ms());
    }
    EXPECT_GT(retries.size(), 1u) << "all clients would come back at the same moment";
    auto late = connect();
    late.send_request("GET", "/healthz", {});
    EXPECT_FALSE(late.read_head());
}

TEST_F(Shutdown, AReaderThatDoesNotReadDoesNotHoldItUp)
{
    settings_.http.send_buffer_bytes = 4096;
    settings_.drain = 2s;
    start();
    auto const session = open_session();
    http_client stuck(port(), {4096, {}});
    send_post(stuck, session, tool_call("1", "burst", R"({"count":100000,"bytes":4000})"));
    ASSERT_TRUE(stuck.read_head());
    begin_to_stop();
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    // The last answers have a second to be written.
    for (int i = 0; i < 20; ++i) {
        clock_.advance(100ms);
        host().poke();
    }
    host().wait();
}

TEST_F(Shutdown, StoppingNowGivesEveryCallItsAnswer)
{
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 60);
    ASSERT_TRUE(stream.next_event());
    begin_to_stop();
    host().stop_now();
    auto const all = drain(stream);
    ASSERT_TRUE(all.has_response());
    EXPECT_EQ(all.response().at("result").at("_meta").at("belay/ended").at("reason"), "interrupted");
    EXPECT_EQ(stream.how_it_ended(), http_client::ending::complete);
    host().wait();
}

TEST_F(Shutdown, AskingTwiceIsAskingOnce)
{
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 3);
    begin_to_stop();
    host().shut_down();
    host().shut_down();
    seen all;
    read_until(stream, all, [](seen const& so_far) { return so_far.logs().size() >= 3; });
    advance(1s);
    EXPECT_TRUE(drain(stream).has_response());
    host().wait();
}

TEST_F(Shutdown, DestroyedWhileToolsRun)
{
    auto const unwound = std::make_shared<std::atomic<int>>(0);
    server_.tool("stuck", [unwound](call& call) -> task<std::string> {
        struct on_exit {
            std::shared_ptr<std::atomic<int>> count;
            ~on_exit() { ++*count; }
        } const guard{unwound};
        co_await call.sleep(1h);
        co_return std::string("never");
    });
    start();
    auto const session = open_session();
    auto attached = open_post(session, tool_call("1", "stuck"));
    ASSERT_TRUE(attached.next_event());
    auto gone = open_post(session, tool_call("2", "stuck"));
    ASSERT_TRUE(gone.next_event());
    gone.close();
    settle();
    drop();
    EXPECT_EQ(*unwound, 2) << "a tool's frame was leaked";
}

/// A store that outlives the process.
class lasting_store final : public forwarding_store {
public:
    lasting_store(store::backend& inner, store::durability promise) : forwarding_store(inner), promise_(promise) {}
    [[nodiscard]] store::durability promise() const noexcept override { return promise_; }

private:
    store::durability promise_;
};

class ShutdownWithSuccessors : public Shutdown {
protected:
    void keep_in(store::durability promise)
    {
        before_store_ = [promise](store::backend& memory) { return std::make_unique<lasting_store>(memory, promise); };
    }
    bool accepts_connections()
    {
        try {
            return connect().ask("GET", "/healthz", {}).status == 200;
        } catch (std::exception const&) {
            return false;
        }
    }
};

TEST_F(ShutdownWithSuccessors, ConnectionsAreSentAwayAtOnceAndCallsRunOn)
{
    keep_in(store::durability::disk);
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 5);
    auto listener = get(session);
    ASSERT_TRUE(stream.next_event());
    ASSERT_TRUE(listener.next_event());
    begin_to_stop();
    EXPECT_TRUE(listener.wait_ended());
    auto const last = drain(stream);
    EXPECT_FALSE(last.has_response());
    EXPECT_EQ(host().node().departures().calls(), 1u);
    EXPECT_EQ(ask("GET", "/healthz").status, 200u);
}

TEST_F(ShutdownWithSuccessors, OthersWhoShareTheStoreGetTheNewConnections)
{
    keep_in(store::durability::shared);
    start();
    auto const session = open_session();
    auto stream = begin_utility(session, 5);
    ASSERT_TRUE(stream.next_event());
    EXPECT_TRUE(accepts_connections());
    begin_to_stop();
    (void)drain(stream);
    EXPECT_TRUE(eventually([&] { return !accepts_connections(); }));
    EXPECT_EQ(host().node().departures().calls(), 1u);
}

}
