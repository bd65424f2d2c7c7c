#include "runtime/repetition.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

std::string response(std::string const& id)
{
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"text":"done"}})";
}

class Repetition : public NodeFixture {
protected:
    begun_call begin_once(std::string id)
    {
        call_request request;
        request.ids = {std::move(id)};
        request.once = store::once_key{"key", 1};
        return begin_with(std::move(request));
    }
    /// A second call with the key of the first.
    std::shared_ptr<call> repeat_first(std::string token = {})
    {
        auto const second = begin_once("2");
        EXPECT_EQ(second.repeats, first_.call->stream().stream);
        repeat(node_, second.call, *second.repeats, std::move(token));
        world_.run_all();
        return second.call;
    }
    begun_call first_ = begin_once("1");
};

TEST_F(Repetition, HasTheSameMessagesAndTheAnswerUnderItsOwnId)
{
    say(*first_.call, "a");
    auto const second = repeat_first();
    EXPECT_EQ(log(*second), texts{"a"});
    say(*first_.call, "b");
    world_.run_all();
    first_.call->answer(response("1"));
    world_.run_all();
    EXPECT_EQ(log(*second), (texts{"a", "b", response("2")}));
    EXPECT_TRUE(second->is_ended());
    EXPECT_EQ(log(*first_.call).back(), response("1"));
}

TEST_F(Repetition, OfACallThatHasEndedIsItsLog)
{
    say(*first_.call, "a");
    first_.call->answer(response("1"));
    EXPECT_EQ(log(*repeat_first()), (texts{"a", response("2")}));
}

TEST_F(Repetition, HasProgressUnderItsOwnTokenOrNone)
{
    first_.call->progress(
        1, R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"first","progress":1}})");
    world_.advance(std::chrono::seconds(1));
    world_.run_all();
    auto const told = log(*repeat_first("\"second\""));
    ASSERT_EQ(told.size(), 1u);
    EXPECT_NE(told.front().find("\"second\""), std::string::npos);
    EXPECT_TRUE(log(*repeat_first()).empty());
}

TEST_F(Repetition, AsksWhatTheFirstAsks)
{
    std::vector<std::string> heard;
    (void)first_.call->ask(
        "ask", "{}", "", [&](result<std::string> text) { heard.push_back(text.value_or("failed")); });
    auto const second = repeat_first();
    EXPECT_EQ(log(*second), log(*first_.call));
}

TEST_F(Repetition, WhoCancelsItMeansTheWork)
{
    auto const second = repeat_first();
    second->end(protocol::end_reason::cancelled);
    world_.run_all();
    EXPECT_EQ(first_.call->end_reason(), protocol::end_reason::cancelled);
}

TEST_F(Repetition, TheEndOfItsTimeIsNotTheEndOfTheWork)
{
    auto const second = repeat_first();
    second->end(protocol::end_reason::timed_out);
    world_.run_all();
    EXPECT_FALSE(first_.call->is_ended());
}

}

}
