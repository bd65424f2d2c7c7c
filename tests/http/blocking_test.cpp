// Tools on workers, and tools whose calls take turns: what callers see of them over HTTP.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

namespace belay::test {

namespace {

struct number_args {
    int n;
};
BOOST_DESCRIBE_STRUCT(number_args, (), (n))

// A function that runs until it is let go; whatever a test finds, the end of the test lets it go.
class gate {
public:
    ~gate() { open(); }

    /// Called by the function.
    void pass()
    {
        ++begun_;
        opened_.wait();
    }
    void open()
    {
        if (!is_open_.exchange(true))
            open_.set_value();
    }
    [[nodiscard]] int begun() const { return begun_; }

private:
    std::promise<void> open_;
    std::shared_future<void> opened_ = open_.get_future().share();
    std::atomic<bool> is_open_ = false;
    std::atomic<int> begun_ = 0;
};

json::value ended_of(json::value const& answer)
{
    auto const meta = at(answer, "result/_meta");
    return meta.is_object() ? meta.get_object().at("belay/ended") : at(answer, "error/data");
}

}

class Blocking : public Server {
protected:
    ~Blocking() override { gate_->open(); }
    // The gates before the host: it waits for functions that wait for them.
    void TearDown() override
    {
        gate_->open();
        second_gate_->open();
        Server::TearDown();
    }
    /// To the end, without moving the clock.
    static seen read_all(http_client& stream)
    {
        seen all;
        while (auto const event = stream.next_event())
            all.add(*event);
        EXPECT_EQ(stream.how_it_ended(), http_client::ending::complete);
        return all;
    }
    std::string cancel(client_session const& session, std::string_view id)
    {
        auto const params = fmt::format(R"({{"requestId":{}}})", id);
        return std::to_string(post(session, notification("notifications/cancelled", params)).status);
    }
    void add_held(std::string name)
    {
        server_
            .tool(
                std::move(name),
                [gate = gate_] {
                    gate->pass();
                    return std::string("held");
                })
            .blocking();
    }

    std::shared_ptr<gate> gate_ = std::make_shared<gate>();
    std::shared_ptr<gate> second_gate_ = std::make_shared<gate>();
};

// --- on a worker

TEST_F(Blocking, APlainFunctionRunsOffTheLoop)
{
    add_held("held");
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "held"));
    EXPECT_EQ(stream.head().header("Content-Type"), "text/event-stream");
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    EXPECT_EQ(echo(session, "meanwhile"), "Echo: meanwhile") << "its loop goes on";
    EXPECT_EQ(metric("belay_workers_running"), 1);
    gate_->open();
    EXPECT_EQ(text_at(read_all(stream).response(), "result/content/0/text"), "held");
    EXPECT_TRUE(eventually([&] { return metric("belay_workers_running") == 0; }));
}

TEST_F(Blocking, WithoutABlockingCallThereAreNoThreads)
{
    add_held("held");
    start();
    EXPECT_EQ(echo(open_session(), "x"), "Echo: x");
    EXPECT_EQ(host().workers().started(), 0u);
}

TEST_F(Blocking, ItsAnswerIsThereForWhoComesBack)
{
    add_held("held");
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "held"));
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    stream.close();
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    gate_->open();
    ASSERT_TRUE(eventually([&] { return host().node().departures().calls() == 0; }));
    auto resumed = get(session, priming->id);
    EXPECT_EQ(text_at(read_all(resumed).response(), "result/content/0/text"), "held");
}

TEST_F(Blocking, ArgumentsAreReadBeforeItIsQueued)
{
    server_.tool("square", [](number_args args) { return std::to_string(args.n * args.n); }).blocking();
    start();
    auto const session = open_session();
    auto const bad = post(session, tool_call("1", "square", R"({"n":"x"})"));
    EXPECT_EQ(bad.header("Content-Type"), "application/json");
    EXPECT_EQ(at(bad.json(), "result/isError"), true);
    EXPECT_EQ(host().workers().started(), 0u);
    auto good = open_post(session, tool_call("2", "square", R"({"n":7})"));
    EXPECT_EQ(text_at(read_all(good).response(), "result/content/0/text"), "49");
}

TEST_F(Blocking, ItTalksInOrderAndBeforeItsAnswer)
{
    server_.tool("talk", [](blocking_call& call, number_args args) {
        for (int i = 1; i <= args.n; ++i)
            call.log(log_level::info, "talk", std::to_string(i));
        call.log(log_level::warning, "talk", json::value{{"left", 0}});
        return std::string("said");
    });
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "talk", R"({"n":300})"));
    auto const all = read_all(stream);
    ASSERT_EQ(all.events.size(), 302u);
    for (int i = 0; i < 300; ++i)
        ASSERT_EQ(log_text(all.events[i]), std::to_string(i + 1));
    EXPECT_EQ(at(message_of(all.events[300]), "params/data/left"), 0);
    EXPECT_EQ(text_at(all.response(), "result/content/0/text"), "said");
}

TEST_F(Blocking, ItSaysWhatTheSessionWantsToHear)
{
    server_.tool("talk", [](blocking_call& call) {
        call.log(log_level::debug, "", "low");
        call.log(log_level::error, "", "high");
        return std::string("said");
    });
    start();
    auto const session = open_session();
    EXPECT_EQ(post(session, rpc("0", "logging/setLevel", R"({"level":"error"})")).status, 200u);
    auto stream = open_post(session, tool_call("1", "talk"));
    EXPECT_EQ(read_all(stream).logs(), std::vector<std::string>{"high"});
}

TEST_F(Blocking, ProgressIsFreeUnlessAskedFor)
{
    server_.tool("steps", [](blocking_call& call) {
        call.progress(1, 3, "one");
        call.progress(3, 3);
        call.progress(2, 3);
        return std::string("done");
    });
    start();
    auto const session = open_session();
    auto quiet = open_post(session, tool_call("1", "steps"));
    EXPECT_EQ(read_all(quiet).events.size(), 1u);
    auto asked = open_post(session, tool_call("2", "steps", "{}", R"({"progressToken":"p"})"));
    auto const all = read_all(asked);
    // The first may have been overtaken by the last before the loop saw it.
    ASSERT_GE(all.events.size(), 2u);
    ASSERT_LE(all.events.size(), 3u);
    auto const last = message_of(all.events[all.events.size() - 2]);
    EXPECT_EQ(at(last, "params/progressToken"), "p");
    EXPECT_EQ(at(last, "params/progress"), 3);
    EXPECT_EQ(at(last, "params/total"), 3);
}

TEST_F(Blocking, WhatItThrowsIsItsResult)
{
    server_.tool("picky", []() -> std::string { throw tool_error("not today"); }).blocking();
    server_.tool("broken", [](blocking_call&) -> std::string { throw std::runtime_error("secret"); });
    start();
    auto const session = open_session();
    auto picky = open_post(session, tool_call("1", "picky"));
    auto const said = read_all(picky).response();
    EXPECT_EQ(at(said, "result/isError"), true);
    EXPECT_EQ(text_at(said, "result/content/0/text"), "not today");
    auto broken = open_post(session, tool_call("2", "broken"));
    auto const hidden = read_all(broken).response();
    EXPECT_EQ(at(hidden, "result/isError"), true);
    EXPECT_EQ(text_at(hidden, "result/content/0/text").find("secret"), std::string::npos);
}

TEST_F(Blocking, ACancelledFunctionLearnsItAndItsResultIsDropped)
{
    server_.tool("patient", [gate = gate_](blocking_call& call) {
        gate->pass();
        while (!call.is_cancelled())
            std::this_thread::yield();
        call.log(log_level::info, "", "too late");
        return std::string("too late");
    });
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "patient"));
    gate_->open();
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    EXPECT_EQ(cancel(session, "1"), "202");
    auto const all = read_all(stream);
    EXPECT_EQ(at(all.response(), "error/code"), -32800);
    EXPECT_EQ(all.events.size(), 1u);
    EXPECT_TRUE(eventually([&] { return host().metrics().late_answers.Value() == 1; }));
}

TEST_F(Blocking, ATimeoutIsToldToTheFunction)
{
    server_
        .tool(
            "patient",
            [gate = gate_](blocking_call& call) {
                gate->pass();
                while (!call.is_cancelled())
                    std::this_thread::yield();
                return std::string("too late");
            })
        .timeout(5s);
    start();
    auto stream = open_post(open_session(), tool_call("1", "patient"));
    gate_->open();
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    advance(5s);
    auto const answer = read_all(stream).response();
    EXPECT_EQ(at(ended_of(answer), "reason"), "timed_out");
    EXPECT_EQ(at(ended_of(answer), "retryable"), false) << "it had begun";
    EXPECT_TRUE(eventually([&] { return host().metrics().late_answers.Value() == 1; }));
}

TEST_F(Blocking, AFunctionFasterThanTheServerLosesTheOldest)
{
    settings_.runtime.limits.events_per_stream = 10;
    auto const said = std::make_shared<std::latch>(1);
    server_.tool("flood", [gate = gate_, said](blocking_call& call) {
        gate->pass();
        for (int i = 1; i <= 25; ++i)
            call.log(log_level::info, "", std::to_string(i));
        said->count_down();
        return std::string("said");
    });
    // Holds the loop while the function talks.
    server_.tool("busy", [gate = gate_, said] {
        gate->open();
        said->wait();
        return std::string("free");
    });
    start();
    auto const session = open_session();
    auto stream = open_post(session, tool_call("1", "flood"));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    EXPECT_EQ(post(session, tool_call("2", "busy")).status, 200u);
    auto const all = read_all(stream);
    ASSERT_EQ(all.events.size(), 7u);
    EXPECT_EQ(at(message_of(all.events[0]), "params/level"), "warning");
    EXPECT_EQ(at(message_of(all.events[0]), "params/data/dropped"), 20);
    EXPECT_EQ(all.logs(), (std::vector<std::string>{"21", "22", "23", "24", "25"}));
    EXPECT_TRUE(all.has_response());
}

TEST_F(Blocking, KnowsWhoCalls)
{
    server_.tool("who", [](blocking_call& call) {
        return fmt::format(
            "{} {} {} {} {}", call.principal(), call.session().name().empty() ? "unnamed" : "named", call.trace().id,
            call.trace().parent, call.meta().contains("mine"));
    });
    start();
    auto const session = open_session();
    auto stream = open_post(
        session, tool_call("1", "who", "{}", R"({"mine":1})"),
        {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}});
    EXPECT_EQ(
        text_at(read_all(stream).response(), "result/content/0/text"),
        "anonymous named 0af7651916cd43dd8448eb211c80319c b7ad6b7169203331 true");
}

TEST_F(Blocking, WhatNobodyWantsToHearIsNotLost)
{
    settings_.runtime.limits.events_per_stream = 10;
    server_.tool("flood", [](blocking_call& call) {
        for (int i = 1; i <= 1000; ++i)
            call.log(log_level::info, "", std::to_string(i));
        call.log(log_level::error, "", "heard");
        return std::string("said");
    });
    start();
    auto const session = open_session();
    EXPECT_EQ(post(session, rpc("1", "logging/setLevel", R"({"level":"error"})")).status, 200u);
    auto stream = open_post(session, tool_call("2", "flood"));
    auto const all = read_all(stream);
    ASSERT_EQ(all.events.size(), 2u) << "no message about dropped ones";
    EXPECT_EQ(all.logs(), std::vector<std::string>{"heard"});
}

TEST_F(Blocking, MoreThanTheQueueHoldsEndsAtOnce)
{
    settings_.worker_threads = 1;
    settings_.worker_queue = 1;
    add_held("held");
    start();
    auto const session = open_session();
    auto running = open_post(session, tool_call("1", "held"));
    auto queued = open_post(session, tool_call("2", "held"));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    EXPECT_EQ(metric("belay_workers_queued"), 1);
    auto refused = open_post(session, tool_call("3", "held"));
    auto const answer = read_all(refused).response();
    EXPECT_EQ(at(answer, "id"), 3);
    EXPECT_EQ(at(answer, "result/isError"), true);
    EXPECT_EQ(ended_of(answer), (json::value{{"reason", "overloaded"}, {"retryable", true}}));
    EXPECT_NE(text_at(answer, "result/content/0/text").find("busy"), std::string::npos);
    EXPECT_EQ(metric(R"(belay_calls_ended_total{reason="overloaded"})"), 1);
    gate_->open();
    EXPECT_EQ(text_at(read_all(running).response(), "result/content/0/text"), "held");
    EXPECT_EQ(text_at(read_all(queued).response(), "result/content/0/text"), "held");
    EXPECT_EQ(gate_->begun(), 2) << "the refused one never ran";
}

TEST_F(Blocking, ACancelledCallLeavesTheQueue)
{
    settings_.worker_threads = 1;
    settings_.worker_queue = 1;
    add_held("held");
    start();
    auto const session = open_session();
    auto running = open_post(session, tool_call("1", "held"));
    auto queued = open_post(session, tool_call("2", "held"));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    EXPECT_EQ(cancel(session, "2"), "202");
    EXPECT_EQ(at(read_all(queued).response(), "error/code"), -32800);
    auto next = open_post(session, tool_call("3", "held"));
    gate_->open();
    EXPECT_EQ(text_at(read_all(next).response(), "result/content/0/text"), "held");
    EXPECT_EQ(text_at(read_all(running).response(), "result/content/0/text"), "held");
    EXPECT_EQ(gate_->begun(), 2);
    EXPECT_EQ(host().metrics().late_answers.Value(), 0);
}

TEST_F(Blocking, ACallThatTimesOutInTheQueueMayBeMadeAgain)
{
    settings_.worker_threads = 1;
    add_held("held");
    server_.tool("next", [] { return std::string("never"); }).blocking().timeout(5s);
    start();
    auto const session = open_session();
    auto running = open_post(session, tool_call("1", "held"));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    auto queued = open_post(session, tool_call("2", "next"));
    advance(5s);
    auto const answer = read_all(queued).response();
    EXPECT_EQ(ended_of(answer), (json::value{{"reason", "timed_out"}, {"retryable", true}}));
    EXPECT_NE(text_at(answer, "result/content/0/text").find("not started"), std::string::npos);
    gate_->open();
    EXPECT_TRUE(read_all(running).has_response());
}

TEST_F(Blocking, WithoutStreamsItIsAnsweredAsJson)
{
    settings_.transport.answer = transport::answer_form::json;
    server_.tool("talk", [](blocking_call& call) {
        call.log(log_level::info, "", "nowhere");
        return std::string("said");
    });
    start();
    auto const answer = post(open_session(), tool_call("1", "talk"));
    EXPECT_EQ(answer.header("Content-Type"), "application/json");
    EXPECT_EQ(text_at(answer.json(), "result/content/0/text"), "said");
}

TEST_F(Blocking, ManyCallsOnTwoLoops)
{
    settings_.threads = 2;
    settings_.worker_threads = 3;
    server_
        .tool(
            "talk",
            [](blocking_call& call, number_args args) {
                for (int i = 0; i < args.n; ++i) {
                    call.log(log_level::info, "", std::to_string(i));
                    call.progress(i + 1, args.n);
                }
                return std::to_string(args.n);
            })
        .at_most(2);
    start();
    std::vector<http_client> streams;
    for (int i = 0; i < 40; ++i)
        streams.push_back(open_post(
            open_session(),
            tool_call("1", "talk", fmt::format(R"({{"n":{}}})", i), i % 2 ? R"({"progressToken":1})" : "")));
    for (int i = 0; i < 40; ++i) {
        auto const all = read_all(streams[i]);
        EXPECT_EQ(text_at(all.response(), "result/content/0/text"), std::to_string(i));
        auto const logs = all.logs();
        ASSERT_EQ(logs.size(), static_cast<std::size_t>(i));
        for (int n = 0; n < i; ++n)
            ASSERT_EQ(logs[n], std::to_string(n));
    }
}

// --- stopping

TEST_F(Blocking, ItMayFinishWhileTheServerDrains)
{
    settings_.worker_threads = 1;
    add_held("held");
    start();
    auto const session = open_session();
    auto running = open_post(session, tool_call("1", "held"));
    auto queued = open_post(session, tool_call("2", "held"));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    host().shut_down();
    ASSERT_TRUE(eventually([&] { return host().node().departures().is_draining(); }));
    gate_->open();
    EXPECT_EQ(text_at(read_all(running).response(), "result/content/0/text"), "held");
    EXPECT_EQ(text_at(read_all(queued).response(), "result/content/0/text"), "held");
    host().wait();
    EXPECT_FALSE(host().is_held_up());
}

TEST_F(Blocking, AFunctionThatDoesNotListenDoesNotHoldTheStopUp)
{
    settings_.worker_threads = 1;
    add_held("deaf");
    start();
    auto const session = open_session();
    auto running = open_post(session, tool_call("1", "deaf"));
    auto queued = open_post(session, tool_call("2", "deaf"));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    host().shut_down();
    ASSERT_TRUE(eventually([&] { return host().node().departures().is_draining(); }));
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }, 1s));
    auto const begun = ended_of(read_all(running).response());
    EXPECT_EQ(begun, (json::value{{"reason", "interrupted"}, {"retryable", false}}));
    auto const waiting = ended_of(read_all(queued).response());
    EXPECT_EQ(waiting, (json::value{{"reason", "interrupted"}, {"retryable", true}})) << "it never began";
    std::atomic<bool> has_stopped = false;
    std::jthread const clock([&] {
        while (!has_stopped) {
            clock_.advance(100ms);
            host().poke();
            std::this_thread::yield();
        }
    });
    host().wait();
    has_stopped = true;
    EXPECT_TRUE(host().is_held_up());
    EXPECT_EQ(gate_->begun(), 1);
    gate_->open();
}

// --- taking turns

TEST_F(Blocking, AtMostSoManyRunAtOnce)
{
    settings_.worker_threads = 4;
    server_
        .tool(
            "held",
            [gate = gate_] {
                gate->pass();
                return std::string("held");
            })
        .blocking()
        .at_most(2);
    start();
    auto const session = open_session();
    std::vector<http_client> streams;
    for (int i = 0; i < 5; ++i)
        streams.push_back(open_post(session, tool_call(std::to_string(i), "held")));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 2; }));
    settle();
    EXPECT_EQ(gate_->begun(), 2);
    EXPECT_EQ(host().workers().running(), 2u);
    EXPECT_EQ(host().workers().queued(), 0u);
    EXPECT_EQ(host().node().departures().calls(), 5u);
    gate_->open();
    for (auto& each : streams)
        EXPECT_EQ(text_at(read_all(each).response(), "result/content/0/text"), "held");
    EXPECT_EQ(gate_->begun(), 5);
}

// A coroutine that sleeps for a minute, with its turn in `order`.
class Turns : public Blocking {
protected:
    void add_sleeper(std::size_t at_most, std::optional<base::duration> timeout = std::nullopt)
    {
        auto entry = server_.tool("sleeper", [order = order_](call& call, number_args args) -> task<std::string> {
            order->push_back(args.n);
            co_await call.sleep(1min);
            co_return std::to_string(args.n);
        });
        entry.at_most(at_most);
        if (timeout)
            entry.timeout(*timeout);
    }
    http_client begin(client_session const& session, int n)
    {
        auto stream = open_post(session, tool_call(std::to_string(n), "sleeper", fmt::format(R"({{"n":{}}})", n)));
        EXPECT_EQ(stream.head().status, 200u);
        return stream;
    }
    // On the one loop; looked at after settle().
    std::shared_ptr<std::vector<int>> order_ = std::make_shared<std::vector<int>>();
};

TEST_F(Turns, AreTakenInTheOrderOfArrival)
{
    add_sleeper(1);
    start();
    auto const session = open_session();
    std::vector<http_client> streams;
    for (int i = 1; i <= 4; ++i) {
        streams.push_back(begin(session, i));
        settle();
    }
    EXPECT_EQ(*order_, std::vector{1});
    advance(1min);
    EXPECT_EQ(text_at(read_all(streams[0]).response(), "result/content/0/text"), "1");
    EXPECT_EQ(*order_, (std::vector{1, 2}));
    advance(1min);
    advance(1min);
    advance(1min);
    EXPECT_EQ(*order_, (std::vector{1, 2, 3, 4}));
    EXPECT_EQ(text_at(read_all(streams[3]).response(), "result/content/0/text"), "4");
}

TEST_F(Turns, AreNotTakenByWhoWasCancelled)
{
    add_sleeper(1);
    start();
    auto const session = open_session();
    auto first = begin(session, 1);
    auto second = begin(session, 2);
    auto third = begin(session, 3);
    settle();
    EXPECT_EQ(cancel(session, "2"), "202");
    EXPECT_EQ(at(read_all(second).response(), "error/code"), -32800);
    advance(1min);
    advance(1min);
    EXPECT_EQ(*order_, (std::vector{1, 3}));
    EXPECT_EQ(text_at(read_all(third).response(), "result/content/0/text"), "3");
}

TEST_F(Turns, PassOnWhenTheOneThatRunsIsCancelled)
{
    add_sleeper(1);
    start();
    auto const session = open_session();
    auto first = begin(session, 1);
    auto second = begin(session, 2);
    settle();
    EXPECT_EQ(cancel(session, "1"), "202");
    EXPECT_EQ(at(read_all(first).response(), "error/code"), -32800);
    settle();
    EXPECT_EQ(*order_, (std::vector{1, 2}));
}

TEST_F(Turns, AreWaitedForThroughAReload)
{
    add_sleeper(1);
    start();
    auto const session = open_session();
    auto first = begin(session, 1);
    auto second = begin(session, 2);
    auto const priming = second.next_event();
    ASSERT_TRUE(priming) << "it has a stream before its turn";
    second.close();
    settle();
    advance(1min);
    auto resumed = get(session, priming->id);
    advance(1min);
    EXPECT_EQ(text_at(read_all(resumed).response(), "result/content/0/text"), "2");
}

TEST_F(Turns, CountTowardsTheTimeout)
{
    add_sleeper(1, 90s);
    start();
    auto const session = open_session();
    auto first = begin(session, 1);
    auto second = begin(session, 2);
    auto third = begin(session, 3);
    settle();
    advance(1min);
    EXPECT_EQ(*order_, (std::vector{1, 2}));
    advance(30s);
    auto const begun = ended_of(read_all(second).response());
    EXPECT_EQ(begun, (json::value{{"reason", "timed_out"}, {"retryable", false}}));
    auto const waiting = ended_of(read_all(third).response());
    EXPECT_EQ(waiting, (json::value{{"reason", "timed_out"}, {"retryable", true}})) << "it never began";
    advance(1min);
    EXPECT_EQ(*order_, (std::vector{1, 2}));
}

TEST_F(Turns, EndWithTheServer)
{
    add_sleeper(1);
    start();
    auto const session = open_session();
    auto first = begin(session, 1);
    auto second = begin(session, 2);
    settle();
    drop();
    EXPECT_EQ(*order_, std::vector{1});
    start();
    auto again = begin(open_session(), 3);
    settle();
    EXPECT_EQ(*order_, (std::vector{1, 3})) << "no place was lost";
}

TEST_F(Turns, OfACancelledBlockingFunctionPassOnWhenItReturns)
{
    server_
        .tool(
            "deaf",
            [gate = gate_, second = second_gate_](number_args args) {
                (args.n == 1 ? gate : second)->pass();
                return std::string("done");
            })
        .blocking()
        .at_most(1);
    start();
    auto const session = open_session();
    auto first = open_post(session, tool_call("1", "deaf", R"({"n":1})"));
    auto second = open_post(session, tool_call("2", "deaf", R"({"n":2})"));
    ASSERT_TRUE(eventually([&] { return gate_->begun() == 1; }));
    EXPECT_EQ(cancel(session, "1"), "202");
    EXPECT_EQ(at(read_all(first).response(), "error/code"), -32800);
    settle();
    EXPECT_EQ(second_gate_->begun(), 0) << "the first still runs, whatever its caller was told";
    gate_->open();
    ASSERT_TRUE(eventually([&] { return second_gate_->begun() == 1; }));
    second_gate_->open();
    EXPECT_EQ(text_at(read_all(second).response(), "result/content/0/text"), "done");
}

}
