#include "server/call_state.hpp"

#include "base/io_loop.hpp"
#include "base/worker_pool.hpp"
#include "runtime/node.hpp"
#include "server/access.hpp"
#include "server/core.hpp"
#include "unit/server/late_store.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <semaphore>
#include <string>
#include <vector>

namespace belay::inline v0 {

namespace {

using namespace std::chrono_literals;
using namespace boost::asio::experimental::awaitable_operators;
namespace asio = boost::asio;

/// How many frames of the test's coroutines are there.
int frames = 0;

struct in_frame {
    in_frame() { ++frames; }
    in_frame(in_frame const&) = delete;
    in_frame& operator=(in_frame const&) = delete;
    ~in_frame() { --frames; }
};

task<std::string> slept(call& on, std::chrono::nanoseconds time)
{
    in_frame const here;
    co_await on.sleep(time);
    co_return "slept";
}

task<std::string> answered(call& on)
{
    in_frame const here;
    co_await on.ping();
    co_return "answered";
}

task<std::string> counted(call& on, int count)
{
    in_frame const here;
    for (int i = 0; i < count; ++i)
        co_await on.log(log_level::info, "count", std::to_string(i));
    co_return "counted";
}

task<std::string> first_of(call& on)
{
    in_frame const here;
    auto both = answered(on) || slept(on, 10s);
    auto const first = co_await std::move(both);
    co_return first.index() == 0 ? std::get<0>(first) : std::get<1>(first);
}

task<std::string> all_of(call& on)
{
    in_frame const here;
    auto all = answered(on) && slept(on, 10s) && counted(on, 3);
    auto const three = co_await std::move(all);
    co_return std::get<0>(three) + ' ' + std::get<1>(three) + ' ' + std::get<2>(three);
}

// By value: it goes on longer than its tool.
task<void> left_behind(call on, bool& has_gone_on)
{
    in_frame const here;
    auto both = slept(on, 10s) || answered(on);
    (void)co_await std::move(both);
    has_gone_on = true;
}

/// Nobody is waited for once they have gone, and little may be said that was not read.
runtime::settings short_of_patience()
{
    runtime::settings settings;
    settings.flow.grace = 0s;
    settings.limits.events_per_stream = 200;
    return settings;
}

class CallWaits : public testing::Test {
protected:
    base::manual_clock clock_;
    base::io_loop loop_{clock_};
    base::seeded_random random_{1};
    late_store store_{clock_};
    observe::metrics metrics_;
    runtime::node node_{short_of_patience(), store_, random_, metrics_, base::logger()};
    server server_{"s", "1"};
    std::shared_ptr<runtime::session_use> use_;

    CallWaits()
    {
        frames = 0;
        node_.sessions().open(
            {{}, protocol::newest_revision, {}, R"({"sampling":{}})"},
            [&](result<runtime::session_use> use) { use_ = std::make_shared<runtime::session_use>(std::move(*use)); });
    }
    ~CallWaits() override
    {
        // A call that is left over holds its loop's timers.
        node_.calls().interrupt_all();
        run();
        EXPECT_EQ(frames, 0);
    }

    void run()
    {
        loop_.context().restart();
        loop_.poke();
        loop_.context().poll();
    }
    void advance(base::duration by)
    {
        clock_.advance(by);
        run();
    }
    /// Begins a call of the one tool, with nobody connected.
    template<class F>
    std::shared_ptr<runtime::call> begin(F function)
    {
        server_.tool("tool", std::move(function));
        return begin_again();
    }
    std::shared_ptr<runtime::call> begin_again()
    {
        auto const request = json::parse(
            R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"tool","_meta":{"progressToken":1}}})");
        auto const message = protocol::read_message(request);
        auto outcome = detail::access::core(server_)->find(*message).run(
            {node_, use_->session(), protocol::newest_revision, *message});
        auto& start = std::get<runtime::start_call>(outcome);
        std::shared_ptr<runtime::call> made;
        node_.calls().begin(
            *use_, loop_, {{"7"}, protocol::newest_revision, start.traits}, [&](result<runtime::begun_call> begun) {
                ASSERT_TRUE(begun);
                made = begun->call;
                begun->following->peer_gone(); // nobody is connected
            });
        start.run(made);
        return made;
    }
    std::vector<json::value> stream_of(runtime::call const& of)
    {
        std::vector<json::value> messages;
        store_.read_after(
            of.stream(), 0, {~std::size_t(0), ~std::size_t(0)}, std::nullopt, [&](result<store::page> page) {
                ASSERT_TRUE(page);
                for (auto const& each : page->events)
                    if (!each.payload->empty()) // a question that is not open any more
                        messages.push_back(json::parse(*each.payload));
            });
        return messages;
    }
    std::size_t count_of(runtime::call const& of, std::string_view method)
    {
        auto const is_it = [&](json::value const& message) {
            auto const* name = message.as_object().if_contains("method");
            return name && name->as_string() == method;
        };
        return static_cast<std::size_t>(std::ranges::count_if(stream_of(of), is_it));
    }
    /// The text of the call's result.
    std::string result_of(runtime::call const& of)
    {
        auto const last = stream_of(of).back();
        auto const* result = last.as_object().if_contains("result");
        return result ? std::string(result->at("content").at(0).at("text").as_string()) : json::serialize(last);
    }
    void answer(runtime::call const& of, std::uint32_t question)
    {
        store_.post(
            of.stream(), {store::letter::kind::answer, question, R"({"jsonrpc":"2.0","id":"x","result":{}})"},
            [](result<void> kept) { EXPECT_TRUE(kept); });
    }
};

TEST_F(CallWaits, AnAnswerComesBeforeASleepEnds)
{
    auto const on = begin(first_of);
    run();
    answer(*on, 1);
    run();
    EXPECT_EQ(result_of(*on), "answered");
    EXPECT_EQ(frames, 0);
    clock_.advance(10s);
    EXPECT_EQ(loop_.timers().advance(), 0u); // the sleep's timer has gone with it
}

TEST_F(CallWaits, ASleepEndsBeforeTheAnswerComes)
{
    auto const on = begin(first_of);
    run();
    advance(10s);
    EXPECT_EQ(result_of(*on), "slept");
    EXPECT_EQ(frames, 0);
    EXPECT_EQ(count_of(*on, "notifications/cancelled"), 1u); // the client need not answer any more
    answer(*on, 1); // crossed it
    run();
}

TEST_F(CallWaits, AQuestionASleepAndAChildAreAwaitedTogether)
{
    auto const on = begin(all_of);
    run();
    EXPECT_EQ(frames, 3); // the child has counted
    answer(*on, 1);
    run();
    EXPECT_FALSE(on->is_ended());
    advance(10s);
    EXPECT_EQ(result_of(*on), "answered slept counted");
    EXPECT_EQ(count_of(*on, "notifications/message"), 3u);
}

TEST_F(CallWaits, TwoQuestionsAreAnsweredInAnyOrder)
{
    auto const on = begin([](call& of) -> task<std::string> {
        auto both = answered(of) && answered(of);
        auto const two = co_await std::move(both);
        co_return std::get<0>(two) + std::get<1>(two);
    });
    run();
    answer(*on, 2);
    run();
    answer(*on, 1);
    run();
    EXPECT_EQ(result_of(*on), "answeredanswered");
}

TEST_F(CallWaits, ThreeSleepsEndInTheirOrder)
{
    auto const on = begin([](call& of) -> task<std::string> {
        auto three = slept(of, 30s) || slept(of, 10s) || slept(of, 20s);
        (void)co_await std::move(three);
        co_return "over";
    });
    run();
    advance(10s);
    EXPECT_EQ(result_of(*on), "over");
    clock_.advance(30s);
    EXPECT_EQ(loop_.timers().advance(), 0u);
}

TEST_F(CallWaits, AGroupOfOperationsEndsWithTheFirst)
{
    auto const on = begin([](call& of) -> task<std::string> {
        auto const executor = co_await asio::this_coro::executor;
        auto group = asio::experimental::make_parallel_group(
            asio::co_spawn(executor, answered(of), asio::deferred),
            asio::co_spawn(executor, slept(of, 10s), asio::deferred),
            asio::co_spawn(executor, slept(of, 20s), asio::deferred));
        auto operation = group.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
        auto const all = co_await std::move(operation);
        auto const& [order, failed1, text1, failed2, text2, failed3, text3] = all;
        co_return std::to_string(order[0]) + (failed1 ? "f" : "") + text2 + (failed3 ? "f" : "");
    });
    run();
    advance(10s);
    EXPECT_EQ(result_of(*on), "1fsleptf");
    EXPECT_EQ(count_of(*on, "notifications/cancelled"), 1u);
}

TEST_F(CallWaits, ACancelledWaitIsAborted)
{
    asio::cancellation_signal signal;
    bool is_aborted = false;
    auto const on = begin([&](call& of) -> task<std::string> {
        auto const executor = co_await asio::this_coro::executor;
        auto child
            = asio::co_spawn(executor, answered(of), asio::bind_cancellation_slot(signal.slot(), asio::use_awaitable));
        try {
            (void)co_await std::move(child);
        } catch (boost::system::system_error const& error) {
            is_aborted = error.code() == asio::error::operation_aborted;
        }
        co_await of.sleep(1s); // the call goes on
        co_return "went on";
    });
    run();
    signal.emit(asio::cancellation_type::terminal);
    run();
    EXPECT_TRUE(is_aborted);
    EXPECT_EQ(count_of(*on, "notifications/cancelled"), 1u);
    advance(1s);
    EXPECT_EQ(result_of(*on), "went on");
}

TEST_F(CallWaits, AMessageIsKeptWhoeverStopsWaitingForItsReader)
{
    store_.hold(); // until then nothing that is said may go on
    auto const on = begin([](call& of) -> task<std::string> {
        auto both = counted(of, 1) || slept(of, 1s);
        auto const first = co_await std::move(both);
        co_return first.index() == 0 ? "counted" : "slept";
    });
    run();
    ASSERT_EQ(store_.held(), 1u);
    advance(1s);
    store_.go_on();
    run();
    EXPECT_EQ(result_of(*on), "slept");
    EXPECT_EQ(count_of(*on, "notifications/message"), 1u);
}

TEST_F(CallWaits, TheEndOfTheCallEndsAllOfThem)
{
    auto const on = begin(all_of);
    run();
    EXPECT_EQ(frames, 3);
    on->end(protocol::end_reason::cancelled);
    run();
    EXPECT_EQ(frames, 0);
    EXPECT_TRUE(stream_of(*on).back().as_object().contains("error"));
    clock_.advance(10s);
    EXPECT_EQ(loop_.timers().advance(), 0u);
}

TEST_F(CallWaits, TheEndOfTheCallEndsOperationsThatAreNotItsOwn)
{
    auto const on = begin([](call& of) -> task<std::string> {
        in_frame const here;
        auto const executor = co_await asio::this_coro::executor;
        asio::steady_timer timer(executor, 1h);
        auto both = timer.async_wait(asio::use_awaitable) && of.sleep(10s);
        co_await std::move(both);
        co_return "never";
    });
    run();
    EXPECT_EQ(frames, 1);
    on->end(protocol::end_reason::timed_out);
    run();
    EXPECT_EQ(frames, 0);
}

TEST_F(CallWaits, WhatTheToolLeavesWaitingEndsWithIt)
{
    bool has_gone_on = false;
    auto const on = begin([&](call& of) -> task<std::string> {
        auto const executor = co_await asio::this_coro::executor;
        asio::co_spawn(executor, left_behind(of, has_gone_on), asio::detached);
        co_await of.sleep(1s);
        co_return "done";
    });
    run();
    EXPECT_EQ(frames, 3);
    advance(1s);
    EXPECT_EQ(result_of(*on), "done");
    EXPECT_EQ(frames, 0);
    EXPECT_FALSE(has_gone_on);
}

TEST_F(CallWaits, AQuestionThatWasWithdrawnIsNotToldThatItCouldNotBeKept)
{
    store_.hold();
    auto const on = begin(first_of);
    run();
    ASSERT_EQ(store_.held(), 1u); // the question
    advance(10s);                 // withdraws it
    EXPECT_EQ(frames, 0);         // nobody is there to be told
    store_.fail(errc::no_space);
    run();
    EXPECT_TRUE(on->is_ended());
    EXPECT_EQ(result_of(*on), "slept");
}

TEST_F(CallWaits, AQuestionOfWhichTheTimeIsOverIsNotToldThatItCouldNotBeKept)
{
    store_.hold();
    auto const on = begin([](call& of) -> task<std::string> {
        std::string text;
        sampling_request words;
        try {
            (void)co_await of.sample(std::move(words), 5s);
        } catch (client_error const& error) {
            text = error.what();
        }
        co_await of.sleep(5s); // another wait, which is not the question's
        co_return text;
    });
    run();
    ASSERT_EQ(store_.held(), 1u);
    advance(5s);
    store_.fail(errc::no_space);
    run();
    EXPECT_FALSE(on->is_ended());
    advance(5s);
    EXPECT_EQ(result_of(*on), "The client did not answer in time.");
}

// --- turns on the loop

constexpr int many = 10'000;

/// Runs on the loop again and again, and notes how much was said since it last ran.
struct probe {
    base::io_loop& loop;
    int const& said;
    int last = 0;
    int largest = 0;

    void run()
    {
        largest = std::max(largest, said - last);
        last = said;
        if (said < many)
            loop.post([this] { run(); });
    }
};

struct way_to_speak {
    char const* name;
    task<void> (*say)(call&, progress_meter&);
};

void PrintTo(way_to_speak const& way, std::ostream* out)
{
    *out << way.name;
}

task<void> say_little(call& on, progress_meter&)
{
    return on.log(log_level::info, "much", "x");
}
task<void> say_nothing_wanted(call& on, progress_meter&)
{
    return on.log(log_level::debug, "much", json::value(1));
}
task<void> say_progress(call&, progress_meter& meter)
{
    return meter.step();
}

class CallTurns : public CallWaits, public testing::WithParamInterface<way_to_speak> {
protected:
    int said_ = 0;
    probe probe_{loop_, said_};

    CallTurns()
    {
        node_.sessions().change(
            use_->session(),
            [](store::session_record& record) { record.log_level = static_cast<int>(log_level::info); },
            [](result<void> changed) { ASSERT_TRUE(changed); });
    }
    std::shared_ptr<runtime::call> begin_speaking()
    {
        return begin([&](call& on) -> task<std::string> {
            auto meter = on.progress();
            for (; said_ < many; ++said_)
                co_await GetParam().say(on, meter);
            co_return "said";
        });
    }
};

TEST_P(CallTurns, OthersRunWhileAToolSaysMuchThatNobodyReads)
{
    auto const on = begin_speaking();
    probe_.run();
    run();
    EXPECT_EQ(result_of(*on), "said");
    EXPECT_EQ(said_, many);
    EXPECT_GT(probe_.largest, 0);
    EXPECT_LE(probe_.largest, 256);
}

TEST_P(CallTurns, TwoToolsThatSayMuchTakeTurns)
{
    auto const on = begin_speaking();
    auto const other = begin_again();
    probe_.run();
    run();
    EXPECT_TRUE(on->is_ended() && other->is_ended());
    EXPECT_LE(probe_.largest, 2 * 256);
}

TEST_P(CallTurns, ACancelGetsInWhileAToolSaysMuch)
{
    auto const on = begin_speaking();
    int before = -1;
    loop_.post([&] {
        before = said_;
        on->end(protocol::end_reason::cancelled);
    });
    run();
    EXPECT_TRUE(on->is_ended());
    EXPECT_LE(before, 256);
    EXPECT_EQ(said_, before); // not one more
}

TEST_P(CallTurns, ATimeLimitGetsInWhileAToolSaysMuch)
{
    auto const on = begin_speaking();
    advance(node_.settings().call_max);
    EXPECT_EQ(on->end_reason(), protocol::end_reason::timed_out);
    EXPECT_LT(said_, many);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, CallTurns,
    testing::Values(
        way_to_speak{"logged", say_little}, way_to_speak{"below_the_level", say_nothing_wanted},
        way_to_speak{"progress", say_progress}),
    [](auto const& each) { return each.param.name; });

TEST_F(CallWaits, OthersRunAfterAFewLargeMessages)
{
    int said = 0;
    int largest = 0;
    int last = 0;
    auto const on = begin([&](call& of) -> task<std::string> {
        std::string const large(100'000, 'x');
        for (; said < 100; ++said)
            co_await of.log(log_level::info, "much", large);
        co_return "said";
    });
    std::function<void()> const look = [&] {
        largest = std::max(largest, said - std::exchange(last, said));
        if (said < 100)
            loop_.post([&] { look(); });
    };
    look();
    run();
    EXPECT_TRUE(on->is_ended());
    EXPECT_LE(largest, 3);
}

TEST_F(CallWaits, WhatABlockingToolSaysIsBoundedWhileTheStoreIsSlow)
{
    base::worker_pool workers(1, 1);
    detail::access::core(server_)->work_on(workers);
    constexpr int rounds = 5;
    constexpr int each_round = 1000;
    std::binary_semaphore has_spoken(0);
    std::binary_semaphore may_speak(0);
    store_.hold();
    auto const on = begin([&](blocking_call& of) {
        for (int round = 0; round < rounds; ++round) {
            for (int i = 0; i < each_round; ++i)
                of.log(log_level::info, "much", "x");
            has_spoken.release();
            may_speak.acquire();
        }
        return std::string("said");
    });
    for (int round = 0; round < rounds; ++round) {
        has_spoken.acquire();
        run();
        may_speak.release();
    }
    workers.stop();
    store_.go_on();
    while (!on->is_ended())
        run();
    EXPECT_EQ(result_of(*on), "said");
    EXPECT_LE(
        store_.largest(), node_.settings().flow.window_events + 2); // with what tells of the others, and the answer
    std::size_t told = 0;
    for (auto const& each : stream_of(*on))
        if (auto const* params = each.as_object().if_contains("params")) {
            auto const& data = params->at("data");
            told += data.is_object() ? data.at("dropped").to_number<std::size_t>() : 1;
        }
    EXPECT_EQ(told, std::size_t(rounds * each_round)); // said, or counted as dropped
    detail::access::core(server_)->stop_working();
}

}

}
