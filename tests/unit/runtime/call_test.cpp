#include "runtime/call.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

class Call : public NodeFixture {};

TEST_F(Call, WhatItSaysIsItsLogAndItsAnswerIsTheLast)
{
    auto const running = begin();
    EXPECT_EQ(running->emit("a", [](std::error_code) {}), std::error_code());
    EXPECT_EQ(running->emit("b", [](std::error_code) {}), std::error_code());
    running->answer("done");
    EXPECT_EQ(log(*running), (std::vector<std::string>{"a", "b", "done"}));
    EXPECT_TRUE(read(*running).state.finished);
    EXPECT_EQ(running->emit("c", [](std::error_code) {}), make_error_code(errc::finished));
    EXPECT_EQ(log(*running).size(), 3u);
}

TEST_F(Call, OnlyTheFirstAnswerCounts)
{
    auto const running = begin();
    running->answer("first");
    running->answer("second");
    running->end(protocol::end_reason::cancelled);
    EXPECT_EQ(log(*running), std::vector<std::string>{"first"});
    EXPECT_EQ(metrics_.late_answers.Value(), 1);
}

TEST_F(Call, ItsHandlerHearsOfAnEndThatIsNotItsOwn)
{
    auto const running = begin();
    int interrupted = 0;
    running->on_interrupt([&] { ++interrupted; });
    running->end(protocol::end_reason::timed_out);
    running->end(protocol::end_reason::cancelled);
    EXPECT_EQ(interrupted, 1);
    EXPECT_EQ(running->end_reason(), protocol::end_reason::timed_out);
    ASSERT_EQ(log(*running).size(), 1u);
    EXPECT_NE(log(*running).front().find("timed_out"), std::string::npos);
}

TEST_F(Call, ItsHandlerIsNotInterruptedByItsOwnAnswer)
{
    auto const running = begin();
    int interrupted = 0;
    running->on_interrupt([&] { ++interrupted; });
    running->answer("done");
    EXPECT_EQ(interrupted, 0);
}

TEST_F(Call, AnAnswerThatIsTooLargeIsReplaced)
{
    auto const running = begin();
    running->answer(std::string(node_.settings().limits.event_bytes + 1, 'x'));
    ASSERT_EQ(log(*running).size(), 1u);
    EXPECT_NE(log(*running).front().find("result_too_large"), std::string::npos);
}

TEST_F(Call, AnAnswerOfTheClientComesOnceAndItsQuestionIsBlank)
{
    auto const running = begin();
    std::vector<std::string> heard;
    auto const number = running->ask("ask", "{}", {}, [&](result<std::string> answer) {
        ASSERT_TRUE(answer);
        heard.push_back(*answer);
    });
    ASSERT_EQ(log(*running).size(), 1u);
    EXPECT_FALSE(log(*running).front().empty());
    for (int i = 0; i < 2; ++i) {
        store_.post(
            running->stream(), {store::letter::kind::answer, static_cast<std::uint32_t>(number), "yes"},
            [](result<void> posted) { EXPECT_TRUE(posted); });
        world_.run_all();
    }
    EXPECT_EQ(heard, std::vector<std::string>{"yes"});
    EXPECT_TRUE(log(*running).front().empty());
}

TEST_F(Call, WhatItStillAsksWhenItEndsIsWithdrawn)
{
    auto const running = begin();
    (void)running->ask("ask", "{}", {}, [](result<std::string>) { FAIL() << "the call has ended"; });
    running->answer("done");
    auto const texts = log(*running);
    ASSERT_EQ(texts.size(), 3u);
    EXPECT_TRUE(texts[0].empty());
    EXPECT_NE(texts[1].find("notifications/cancelled"), std::string::npos);
    EXPECT_EQ(texts[2], "done");
}

TEST_F(Call, ABatchEndsWithTheLastAnswerOfItsMembers)
{
    std::shared_ptr<batch> both;
    call_request request;
    request.ids = {"1", "2"};
    request.who = {"alice", {}, {}};
    node_.calls().begin_batch(*use_, loop_, std::move(request), [&](result<begun_batch> begun) {
        ASSERT_TRUE(begun);
        both = begun->batch;
    });
    auto const first = node_.calls().begin_member(both, 0, "1", {});
    EXPECT_EQ(first->caller().principal, "alice");
    auto const second = node_.calls().begin_member(both, 1, "2", {});
    int withdrawn = 0;
    (void)first->ask("ask", "{}", {}, [&](result<std::string>) { ++withdrawn; });
    second->answer("two");
    EXPECT_FALSE(read(*first).state.finished);
    EXPECT_EQ(log(*first).size(), 2u); // the question of the first is still open
    first->answer("one");
    EXPECT_TRUE(read(*first).state.finished);
    EXPECT_EQ(log(*first).back(), "one");
    EXPECT_EQ(withdrawn, 0);
}

TEST_F(Call, OneThatLostItsStreamIsInterruptedAndSaysNothingMore)
{
    auto const running = begin();
    int interrupted = 0;
    running->on_interrupt([&] { ++interrupted; });
    store::fence seen = 0;
    store_.owned(node_.context().owner(), std::nullopt, 10, [&](result<std::vector<store::call_ref>> found) {
        ASSERT_TRUE(found);
        ASSERT_EQ(found->size(), 1u);
        seen = found->front().fence;
    });
    store_.claim(running->stream(), seen, "another", [](result<store::claimed_call> claimed) { EXPECT_TRUE(claimed); });
    world_.run_all();
    (void)running->emit("late", [](std::error_code) {});
    world_.run_all();
    EXPECT_EQ(interrupted, 1);
    EXPECT_TRUE(running->is_ended());
    EXPECT_TRUE(log(*running).empty());
}

TEST_F(Call, AHeldOneGivesItsAnswerToWhoHoldsIt)
{
    std::vector<std::string> answers;
    call_request request;
    request.ids = {"1"};
    auto const held = node_.calls().begin_held(
        use_->session(), loop_, std::move(request), [&](std::string answer) { answers.push_back(std::move(answer)); });
    ASSERT_TRUE(held);
    EXPECT_FALSE((*held)->has_stream());
    EXPECT_EQ((*held)->emit("goes nowhere", [](std::error_code) {}), std::error_code());
    (*held)->answer("done");
    (*held)->answer("again");
    EXPECT_EQ(answers, std::vector<std::string>{"done"});
}

TEST_F(Call, OneThatTakesTooLongIsEnded)
{
    call_traits traits;
    traits.max_duration = std::chrono::minutes(1);
    auto const running = begin(traits);
    world_.advance(std::chrono::seconds(59));
    EXPECT_FALSE(running->is_ended());
    world_.advance(std::chrono::seconds(2));
    EXPECT_EQ(running->end_reason(), protocol::end_reason::timed_out);
}

TEST_F(Call, OneThatNobodyReadsForTooLongIsEnded)
{
    call_request request;
    request.ids = {"1"};
    request.traits.orphan_limit = std::chrono::minutes(1);
    auto const begun = begin_with(std::move(request));
    auto reader = read_from(begun.following);
    auto const seen = reader->read_events();
    world_.advance(std::chrono::minutes(2));
    EXPECT_FALSE(begun.call->is_ended()); // somebody reads
    reader->wire->cut();
    world_.run_all();
    world_.advance(std::chrono::seconds(59));
    auto const again = follow(seen.back().id);
    ASSERT_TRUE(again);
    reader = read_from(*again);
    (void)reader->read();
    world_.advance(std::chrono::minutes(2));
    EXPECT_FALSE(begun.call->is_ended()); // somebody has come back in time
    reader->wire->cut();
    world_.run_all();
    world_.advance(std::chrono::seconds(61));
    EXPECT_EQ(begun.call->end_reason(), protocol::end_reason::orphaned);
}

}

}
