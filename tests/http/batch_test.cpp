// Batches of revision 2025-03-26: several messages in one POST.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

namespace belay::test {

class Batch : public Server {
protected:
    Batch()
    {
        server_.tool("quick", [] { return std::string("at once"); });
        server_.tool("slow", [](call& call, json::object args) -> task<std::string> {
            auto const seconds = args.at("seconds").to_number<int>();
            for (int i = 1; i <= seconds; ++i) {
                co_await call.sleep(1s);
                co_await call.log(log_level::info, "slow", fmt::format("{} of {}", i, seconds));
            }
            co_return fmt::format("slept {}", seconds);
        });
    }
    static std::string slow(std::string_view id, int seconds)
    {
        return tool_call(id, "slow", fmt::format(R"({{"seconds":{}}})", seconds));
    }
    static std::vector<json::value> responses(seen const& got)
    {
        std::vector<json::value> all;
        for (auto const& event : got.events)
            if (is_response(event))
                all.push_back(message_of(event));
        return all;
    }
};

TEST_F(Batch, InstantAnswersAreOneArray)
{
    start();
    auto const session = open_session("2025-03-26");
    auto const answer = post(
        session,
        "[" + rpc("1", "ping") + "," + notification("notifications/initialized") + "," + tool_call(R"("b")", "quick")
            + "," + rpc("3", "no/such") + "," + rpc("4", "logging/setLevel", R"({"level":"error"})") + "]");
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.header("Content-Type").value_or(""), "application/json");
    auto const body = answer.json();
    ASSERT_TRUE(body.is_array());
    ASSERT_EQ(body.get_array().size(), 4u);
    EXPECT_EQ(at(body, "0/id"), json::value(1));
    EXPECT_EQ(text_at(body, "1/result/content/0/text"), "at once");
    EXPECT_EQ(at(body, "1/id"), json::value("b"));
    EXPECT_EQ(at(body, "2/error/code"), json::value(-32601));
    EXPECT_EQ(at(body, "3/id"), json::value(4));
}

TEST_F(Batch, OnlyNotificationsAndAnswersAreAccepted)
{
    start();
    auto const session = open_session("2025-03-26");
    auto const answer = post(
        session,
        "[" + notification("notifications/initialized") + R"(,{"jsonrpc":"2.0","id":"unknown-1","result":{}}])");
    EXPECT_EQ(answer.status, 202u);
    EXPECT_EQ(answer.body, "");
}

TEST_F(Batch, CallsShareOneStream)
{
    start();
    auto const session = open_session("2025-03-26");
    auto stream = open_post(session, "[" + slow("1", 3) + "," + tool_call("2", "quick") + "," + slow("3", 1) + "]");
    auto const got = read_to_end(stream);
    auto const all = responses(got);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(text_at(all[0], "result/content/0/text"), "at once");
    EXPECT_EQ(at(all[0], "id"), json::value(2));
    EXPECT_EQ(text_at(all[1], "result/content/0/text"), "slept 1");
    EXPECT_EQ(at(all[1], "id"), json::value(3));
    EXPECT_EQ(text_at(all[2], "result/content/0/text"), "slept 3");
    EXPECT_EQ(got.logs().size(), 4u);
    EXPECT_TRUE(eventually([&] { return host().node().departures().calls() == 0; }));
}

TEST_F(Batch, SurvivesACutBetweenItsAnswers)
{
    start();
    auto const session = open_session("2025-03-26");
    seen got;
    auto stream = open_post(session, "[" + slow("1", 4) + "," + slow("2", 1) + "]");
    read_until(stream, got, [](seen const& so_far) { return so_far.has_response(); });
    stream.close();
    advance_in_steps(10s, 1s); // the other ends with nobody there
    auto resumed = get(session, got.cursor);
    auto const rest = read_to_end(resumed);
    auto const all = responses(rest);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(at(all[0], "id"), json::value(1));
    EXPECT_EQ(get(session, rest.cursor).head().status, 204u);
}

TEST_F(Batch, OneOfThemCanBeCancelled)
{
    start();
    auto const session = open_session("2025-03-26");
    auto stream = open_post(session, "[" + slow("1", 3) + "," + slow("2", 3600) + "]");
    (void)next(stream);
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":2})")).status, 202u);
    auto const all = responses(read_to_end(stream));
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(at(all[0], "id"), json::value(2));
    EXPECT_EQ(at(all[0], "error/code"), json::value(-32800));
    EXPECT_EQ(text_at(all[1], "result/content/0/text"), "slept 3");
}

TEST_F(Batch, CancelsWhatItBegins)
{
    start();
    auto const session = open_session("2025-03-26");
    auto stream = open_post(
        session,
        "[" + notification("notifications/cancelled", R"({"requestId":1})") + "," + slow("1", 50) + "," + slow("2", 1)
            + "]");
    auto const all = responses(read_to_end(stream));
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(at(all[0], "error/code"), json::value(-32800));
    EXPECT_EQ(text_at(all[1], "result/content/0/text"), "slept 1");
}

TEST_F(Batch, CancelsAlsoWhereItIsRefused)
{
    settings_.runtime.limits.streams_per_session = 1;
    start();
    auto const session = open_session("2025-03-26");
    auto running = open_post(session, slow("1", 500));
    ASSERT_EQ(running.head().status, 200u);
    auto const refused
        = post(session, "[" + slow("2", 1) + "," + notification("notifications/cancelled", R"({"requestId":1})") + "]");
    EXPECT_EQ(refused.status, 429u);
    EXPECT_EQ(at(read_to_end(running).response(), "error/code"), json::value(-32800));
}

TEST_F(Batch, EndsWithItsSession)
{
    start();
    auto const session = open_session("2025-03-26");
    auto stream = open_post(session, "[" + slow("1", 3600) + "," + slow("2", 3600) + "]");
    (void)next(stream);
    EXPECT_EQ(remove(session).status, 200u);
    auto const all = responses(read_to_end(stream));
    ASSERT_EQ(all.size(), 2u);
    for (auto const& each : all)
        EXPECT_EQ(text_at(each, "error/data/reason"), "session_ended");
}

TEST_F(Batch, HeldToTheEndWithoutStreams)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const session = open_session("2025-03-26");
    auto client = send_post(session, "[" + slow("1", 2) + "," + tool_call("2", "quick") + "]");
    ASSERT_TRUE(eventually([&] { return host().node().departures().calls() == 1; }));
    advance_in_steps(3s, 1s);
    auto const body = client.read_response().json();
    EXPECT_EQ(text_at(body, "0/result/content/0/text"), "slept 2");
    EXPECT_EQ(text_at(body, "1/result/content/0/text"), "at once");
}

TEST_F(Batch, TakesNoIdempotencyKeys)
{
    start();
    auto const session = open_session("2025-03-26");
    auto const keyed = tool_call("1", "quick", "{}", R"({"belay/idempotencyKey":"k"})");
    auto const at_once = post(session, "[" + keyed + "," + rpc("2", "ping") + "]").json();
    EXPECT_EQ(at(at_once, "0/error/code"), json::value(-32602));
    auto stream = open_post(session, "[" + keyed + "," + slow("2", 1) + "]");
    auto const all = responses(read_to_end(stream));
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(at(all[0], "error/code"), json::value(-32602));
}

TEST_F(Batch, IsBoundedAndReadWhole)
{
    settings_.transport.batch_max = 3;
    start();
    auto const session = open_session("2025-03-26");
    auto const ping = rpc("1", "ping");
    EXPECT_EQ(post(session, "[" + ping + "," + ping + "," + ping + "]").status, 200u);
    for (auto const& bad :
         {std::string("[]"), "[" + ping + "," + ping + "," + ping + "," + ping + "]", "[" + ping + ",1]",
          "[" + hello() + "]"}) {
        auto const refused = post(session, bad);
        EXPECT_EQ(refused.status, 400u) << bad;
        EXPECT_TRUE(refused.error_code() == -32600 || refused.error_code() == -32700) << bad;
    }
    for (auto const* version : {"2024-11-05", "2025-06-18", "2025-11-25"})
        EXPECT_EQ(post(open_session(version), "[" + ping + "]").error_code(), -32600) << version;
}

}
