// A call with an idempotency key is made once; whoever asks again gets its outcome.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

namespace belay::test {

class Idempotency : public Server {
protected:
    Idempotency()
    {
        server_.tool("count", [this](call& call) -> task<std::string> {
            int const run = ++runs_;
            auto progress = call.progress(3);
            for (int i = 1; i <= 3; ++i) {
                co_await call.sleep(1s);
                co_await call.log(log_level::info, "count", fmt::format("step {}", i));
                co_await progress.step();
            }
            co_return fmt::format("run {}", run);
        });
        server_.tool("quick", [this] { return fmt::format("quick {}", ++quick_runs_); });
    }

    static std::string
    keyed(std::string_view id, std::string_view tool, std::string_view key, std::string_view token = {})
    {
        auto meta = fmt::format(R"({{"belay/idempotencyKey":"{}")", key);
        if (!token.empty())
            meta += fmt::format(R"(,"progressToken":{})", token);
        return tool_call(id, tool, "{}", meta + "}");
    }
    static std::string answer_text(json::value const& answer) { return text_at(answer, "result/content/0/text"); }

    std::atomic<int> runs_{0};
    std::atomic<int> quick_runs_{0};
};

TEST_F(Idempotency, TheSecondCallFollowsTheFirst)
{
    start();
    auto const session = open_session();
    seen first;
    auto stream = open_post(session, keyed("7", "count", "k"));
    read_until(stream, first, [](seen const& so_far) { return so_far.logs().size() == 1; });
    stream.close(); // the page dies, and its successor has nothing but the key
    auto again = open_post(session, keyed(R"("other")", "count", "k", R"("mine")"));
    EXPECT_NE(stream_of(again.next_event()->id), stream_of(first.cursor));
    auto const second = read_to_end(again);
    EXPECT_EQ(second.logs(), (std::vector<std::string>{"step 1", "step 2", "step 3"}));
    EXPECT_EQ(at(second.response(), "id"), json::value("other"));
    EXPECT_EQ(answer_text(second.response()), "run 1");
    EXPECT_EQ(runs_, 1);
    EXPECT_EQ(metric("belay_calls_started_total"), 2);
    EXPECT_EQ(metric("belay_calls_repeated_total"), 1);
    // The first call's own stream has its answer too.
    auto resumed = get(session, first.cursor);
    EXPECT_EQ(at(read_to_end(resumed).response(), "id"), json::value(7));
}

TEST_F(Idempotency, RepeatsProgressUnderTheNewToken)
{
    start();
    auto const session = open_session();
    auto first = open_post(session, keyed("1", "count", "k", "1"));
    read_to_end(first);
    auto with_token = open_post(session, keyed("2", "count", "k", R"("two")"));
    auto const repeated = read_to_end(with_token);
    int reports = 0;
    for (auto const& event : repeated.events)
        if (text_at(message_of(event), "method") == "notifications/progress") {
            ++reports;
            EXPECT_EQ(text_at(message_of(event), "params/progressToken"), "two");
        }
    EXPECT_GE(reports, 1);
    auto without = open_post(session, keyed("3", "count", "k"));
    for (auto const& event : read_to_end(without).events)
        EXPECT_NE(text_at(message_of(event), "method"), "notifications/progress");
    EXPECT_EQ(runs_, 1);
}

TEST_F(Idempotency, ARepeatedCallCanBeResumed)
{
    start();
    auto const session = open_session();
    auto first = open_post(session, keyed("1", "count", "k"));
    (void)first.next_event();
    seen got;
    auto second = open_post(session, keyed("2", "count", "k"));
    read_until(second, got, [](seen const& so_far) { return so_far.logs().size() == 2; });
    second.close();
    auto resumed = get(session, got.cursor);
    auto const rest = read_to_end(resumed);
    EXPECT_EQ(rest.logs(), std::vector<std::string>{"step 3"});
    EXPECT_EQ(at(rest.response(), "id"), json::value(2));
}

TEST_F(Idempotency, QuickToolsAreMadeOnceToo)
{
    start();
    auto const session = open_session();
    for (int id = 1; id <= 3; ++id) {
        auto stream = open_post(session, keyed(std::to_string(id), "quick", "k"));
        auto const got = read_to_end(stream);
        EXPECT_EQ(answer_text(got.response()), "quick 1");
        EXPECT_EQ(at(got.response(), "id"), json::value(id));
    }
    EXPECT_EQ(quick_runs_, 1);
}

TEST_F(Idempotency, TheOrderOfMembersSaysNothing)
{
    server_.tool("pair", [this](json::object const&) { return fmt::format("pair {}", ++quick_runs_); });
    start();
    auto const session = open_session();
    std::string const meta = R"({"belay/idempotencyKey":"k"})";
    auto const outcome = [&](std::string_view id, std::string_view arguments) {
        auto stream = open_post(session, tool_call(id, "pair", arguments, meta));
        return read_to_end(stream).response();
    };
    EXPECT_EQ(answer_text(outcome("1", R"({"a":1,"b":[{"c":2,"d":3}]})")), "pair 1");
    EXPECT_EQ(answer_text(outcome("2", R"({"b":[{"d":3,"c":2}],"a":1})")), "pair 1");
}

TEST_F(Idempotency, CancellingTheRepetitionCancelsTheWork)
{
    start();
    auto const session = open_session();
    auto first = open_post(session, keyed("1", "count", "k"));
    (void)first.next_event();
    auto second = open_post(session, keyed("2", "count", "k"));
    (void)second.next_event();
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":2})")).status, 202u);
    EXPECT_EQ(at(read_to_end(second).response(), "error/code"), json::value(-32800));
    EXPECT_EQ(at(read_to_end(first).response(), "error/code"), json::value(-32800));
}

TEST_F(Idempotency, KeysAreOfOneSession)
{
    start();
    for (int i = 1; i <= 2; ++i) {
        auto stream = open_post(open_session(), keyed("1", "quick", "k"));
        EXPECT_EQ(answer_text(read_to_end(stream).response()), fmt::format("quick {}", i));
    }
}

TEST_F(Idempotency, WrongKeysAreRefused)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, keyed("1", "quick", "k"));
    read_to_end(stream);
    auto const refused = post(session, keyed("2", "count", "k"));
    EXPECT_EQ(refused.status, 200u);
    EXPECT_EQ(refused.error_code(), -32602);
    EXPECT_EQ(at(refused.json(), "id"), json::value(2));
    for (std::string_view const bad : {R"(1)", R"("")", R"(null)", R"({})"})
        EXPECT_EQ(
            post(session, tool_call("3", "quick", "{}", fmt::format(R"({{"belay/idempotencyKey":{}}})", bad)))
                .error_code(),
            -32602)
            << bad;
    EXPECT_EQ(post(session, keyed("4", "quick", std::string(129, 'k'))).error_code(), -32602);
    EXPECT_EQ(runs_, 0);
}

TEST_F(Idempotency, ASpentKeyNeverRunsAgain)
{
    settings_.runtime.limits.streams_per_session = 1;
    start();
    auto const session = open_session();
    for (std::string_view const key : {"a", "b"}) {
        auto stream = open_post(session, keyed("1", "quick", key));
        read_to_end(stream);
        settle();
    }
    auto const refused = post(session, keyed("2", "quick", "a"));
    EXPECT_EQ(refused.error_code(), -32602);
    EXPECT_NE(text_at(refused.json(), "error/message").find("no longer kept"), std::string::npos);
    EXPECT_EQ(quick_runs_, 2);
}

TEST_F(Idempotency, WithoutStreamsThereAreNoKeys)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const session = open_session();
    EXPECT_EQ(post(session, keyed("1", "quick", "k")).error_code(), -32602);
    EXPECT_EQ(quick_runs_, 0);
}

}
