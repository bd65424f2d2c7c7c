// When an answer counts as delivered: when its caller's machine has it, not when the kernel has taken it.
#include "support/server_fixture.hpp"

#include <deque>

namespace belay::test {

namespace {

class Delivery : public Server {
protected:
    /// Begins a call whose answer comes behind more than its caller's machine takes: the kernel here has it all, and
    /// none of the end arrives. Gives its cursor.
    std::string lose_the_network_as_a_call_ends(client_session const& session)
    {
        auto& stream = lost_.emplace_back(port(), http_client::options{.receive_buffer = 4096, .source = {}});
        send_post(stream, session, tool_call("1", "slow_answer"));
        EXPECT_TRUE(stream.read_head());
        EXPECT_EQ(stream.head().status, 200u);
        auto const priming = stream.next_event();
        EXPECT_TRUE(priming);
        EXPECT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
        return priming ? priming->id : "";
    }
    void make_further_calls(client_session const& session, int count)
    {
        for (int i = 0; i < count; ++i) {
            auto stream = open_post(session, tool_call(std::to_string(100 + i), "burst", R"({"count":1})"));
            ASSERT_EQ(stream.head().status, 200u);
            ASSERT_TRUE(read_to_end(stream).has_response());
        }
    }
    Delivery()
    {
        server_.tool("slow_answer", [](call& call) -> task<std::string> {
            co_await call.sleep(1s);
            co_await call.log(log_level::info, "slow_answer", std::string(40'000, 'x'));
            co_return std::string("the answer");
        });
    }
    void expect_the_answer(client_session const& session, std::string const& cursor)
    {
        auto resumed = get(session, cursor);
        ASSERT_EQ(resumed.head().status, 200u);
        EXPECT_EQ(text_at(read_to_end(resumed).response(), "result/content/0/text"), "the answer");
    }

private:
    std::deque<http_client> lost_; // open, and never read again
};

TEST_F(Delivery, AnAnswerThatNeverArrivedOutlivesFurtherCalls)
{
    settings_.runtime.limits.streams_per_session = 4;
    start();
    auto const session = open_session();
    auto const cursor = lose_the_network_as_a_call_ends(session);
    make_further_calls(session, 10);
    expect_the_answer(session, cursor);
}

TEST_F(Delivery, AnAnswerThatNeverArrivedOutlivesItsAge)
{
    settings_.runtime.limits.event_age = 10s;
    settings_.runtime.sweep_interval = 1s;
    start();
    auto const session = open_session();
    auto const cursor = lose_the_network_as_a_call_ends(session);
    advance_in_steps(1min, 1s);
    expect_the_answer(session, cursor);
}

TEST_F(Delivery, AnAnswerThatArrivedMakesRoomAtOnce)
{
    settings_.runtime.limits.streams_per_session = 1;
    start();
    auto const session = open_session();
    make_further_calls(session, 20);
}

TEST_F(Delivery, ACursorAtTheEndSaysThatTheAnswerArrived)
{
    settings_.runtime.limits.streams_per_session = 1;
    start();
    auto const session = open_session();
    auto const cursor = lose_the_network_as_a_call_ends(session);
    EXPECT_EQ(post(session, tool_call("2", "burst", R"({"count":1})")).status, 429u);
    auto resumed = get(session, cursor);
    auto const log = read_to_end(resumed);
    ASSERT_TRUE(log.has_response());
    EXPECT_EQ(get(session, log.cursor).head().status, 204u);
    make_further_calls(session, 2);
}

}

}
