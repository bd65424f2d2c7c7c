#include "runtime/call_directory.hpp"

#include "node_fixture.hpp"
#include "runtime/bulletins.hpp"

#include <boost/json/parse.hpp>

namespace belay::runtime {

namespace {

class CallDirectory : public NodeFixture {
protected:
    void cancel(std::string_view id)
    {
        bool is_done = false;
        node_.calls().cancel(use_->session(), id, loop_, [&](result<void>) { is_done = true; });
        world_.run_all();
        EXPECT_TRUE(is_done);
    }
    result<void> answer(std::string const& id, session_use const& from)
    {
        auto const value = json::parse(R"({"jsonrpc":"2.0","id":")" + id + R"(","result":{"a":1}})");
        auto const message = protocol::read_message(value);
        result<void> outcome = failure(errc::unavailable);
        node_.calls().take_answer(*from.session(), *message, [&](result<void> taken) { outcome = taken; });
        world_.run_all();
        return outcome;
    }
    static std::string question_id(std::string const& question)
    {
        return std::string(json::parse(question).at("id").as_string());
    }
};

TEST_F(CallDirectory, KnowsWhichStreamsRunHere)
{
    auto const running = begin();
    auto const stream = running->stream();
    EXPECT_TRUE(node_.calls().runs(stream));
    running->answer("done");
    EXPECT_FALSE(node_.calls().runs(stream));
}

TEST_F(CallDirectory, BeginsNothingWhileTheNodeDrains)
{
    node_.departures().drain();
    call_request request;
    request.ids = {"1"};
    std::error_code refused;
    node_.calls().begin(*use_, loop_, request, [&](result<begun_call> begun) { refused = begun.error(); });
    EXPECT_EQ(refused, make_error_code(errc::unavailable));
    EXPECT_EQ(
        node_.calls().begin_held(use_->session(), loop_, request, [](std::string) {}).error(),
        make_error_code(errc::unavailable));
    EXPECT_EQ(node_.departures().calls(), 0u);
}

TEST_F(CallDirectory, CancelsHeldCallsToo)
{
    call_request request;
    request.ids = {"7"};
    auto const held = node_.calls().begin_held(use_->session(), loop_, std::move(request), [](std::string) {});
    ASSERT_TRUE(held);
    cancel("8");
    EXPECT_FALSE((*held)->is_ended());
    cancel("7");
    EXPECT_EQ((*held)->end_reason(), protocol::end_reason::cancelled);
}

TEST_F(CallDirectory, CancelsOneRequestOfABatch)
{
    call_request request;
    request.ids = {"1", "2"};
    std::shared_ptr<batch> both;
    node_.calls().begin_batch(
        *use_, loop_, std::move(request), [&](result<begun_batch> begun) { both = begun->batch; });
    auto const first = node_.calls().begin_member(both, 0, "1", {});
    auto const second = node_.calls().begin_member(both, 1, "2", {});
    cancel("2");
    EXPECT_FALSE(first->is_ended());
    EXPECT_EQ(second->end_reason(), protocol::end_reason::cancelled);
    EXPECT_TRUE(node_.calls().runs(first->stream()));
}

TEST_F(CallDirectory, TakesAnAnswerFromTheSessionThatWasAsked)
{
    auto const running = begin();
    std::vector<std::string> heard;
    (void)running->ask("ask", "{}", "", [&](result<std::string> text) { heard.push_back(text.value_or("failed")); });
    auto const id = question_id(log(*running).front());
    auto const stranger = session();
    EXPECT_TRUE(answer(id, *stranger)); // as any answer that is of no use
    EXPECT_TRUE(heard.empty());
    EXPECT_TRUE(answer(id, *use_));
    EXPECT_EQ(heard.size(), 1u);
    EXPECT_TRUE(answer(id, *use_));
    EXPECT_TRUE(answer("never-asked", *use_));
    EXPECT_EQ(heard.size(), 1u);
}

TEST_F(CallDirectory, HeldCallsEndWithTheirSession)
{
    call_request request;
    request.ids = {"1"};
    auto const held = node_.calls().begin_held(use_->session(), loop_, request, [](std::string) {});
    node_.sessions().end(use_->session()->key, loop_, [](result<void> ended) { EXPECT_TRUE(ended); });
    world_.run_all();
    EXPECT_EQ((*held)->end_reason(), protocol::end_reason::session_ended);
}

TEST_F(CallDirectory, HearsOfTheEndOfASessionFromOtherNodes)
{
    call_request request;
    request.ids = {"1"};
    auto const held = node_.calls().begin_held(use_->session(), loop_, request, [](std::string) {});
    auto const other = session();
    store_.publish(session_ended_bulletin(other->session()->key));
    world_.run_all();
    EXPECT_FALSE((*held)->is_ended());
    store_.publish(session_ended_bulletin(use_->session()->key));
    world_.run_all();
    EXPECT_TRUE((*held)->is_ended());
}

TEST_F(CallDirectory, CountsEachRequestOfABatchOnce)
{
    call_request request;
    request.ids = {"1", "2"};
    std::shared_ptr<batch> both;
    node_.calls().begin_batch(
        *use_, loop_, std::move(request), [&](result<begun_batch> begun) { both = begun->batch; });
    auto const first = node_.calls().begin_member(both, 0, "1", {});
    auto const second = node_.calls().begin_member(both, 1, "2", {});
    EXPECT_EQ(node_.departures().running_calls(), 2u);
    first->answer("one");
    EXPECT_EQ(node_.departures().running_calls(), 1u);
    second->answer("two");
    world_.run_all();
    EXPECT_EQ(node_.departures().running_calls(), 0u);
    EXPECT_EQ(node_.departures().calls(), 0u);
}

TEST_F(CallDirectory, AsksAgainForAStreamThatMayBeThere)
{
    between_.fail(troubled_store::question::open, 2, troubled_store::effect::taken);
    call_request request;
    request.ids = {"1"};
    request.once = store::once_key{"key", 1};
    std::vector<result<begun_call>> outcomes;
    node_.calls().begin(
        *use_, loop_, std::move(request), [&](result<begun_call> begun) { outcomes.push_back(std::move(begun)); });
    EXPECT_TRUE(outcomes.empty());
    for (int i = 0; i < 4; ++i) {
        world_.advance(std::chrono::milliseconds(500));
        world_.run_all();
    }
    ASSERT_EQ(outcomes.size(), 1u);
    ASSERT_TRUE(outcomes.front());
    EXPECT_FALSE(outcomes.front()->repeats);
    outcomes.front()->call->answer("done");
    EXPECT_EQ(log(*outcomes.front()->call), texts{"done"});
}

TEST_F(CallDirectory, DoesNotKnowWhatBecameOfAStreamThatAnotherHasClaimedMeanwhile)
{
    between_.fail(troubled_store::question::open, 1, troubled_store::effect::taken);
    call_request request;
    request.ids = {"1"};
    std::error_code refused;
    node_.calls().begin(*use_, loop_, std::move(request), [&](result<begun_call> begun) { refused = begun.error(); });
    store_.find(use_->session()->key, "1", [&](result<store::call_ref> found) {
        ASSERT_TRUE(found);
        store_.claim(
            found->stream, found->fence, "another", [](result<store::claimed_call> claimed) { EXPECT_TRUE(claimed); });
    });
    world_.advance(std::chrono::milliseconds(500));
    world_.run_all();
    EXPECT_EQ(refused, make_error_code(errc::unavailable));
}

TEST_F(CallDirectory, DoesNotAskForAStreamForEver)
{
    between_.fail(troubled_store::question::open, 100);
    call_request request;
    request.ids = {"1"};
    std::error_code refused;
    node_.calls().begin(*use_, loop_, std::move(request), [&](result<begun_call> begun) { refused = begun.error(); });
    for (int i = 0; i < 6; ++i) {
        world_.advance(std::chrono::milliseconds(500));
        world_.run_all();
    }
    EXPECT_EQ(refused, make_error_code(errc::unavailable));
    EXPECT_EQ(node_.departures().calls(), 0u);
}

class ShortLivedSessions : public NodeFixture {
protected:
    ShortLivedSessions() : NodeFixture(with_short_idle()) {}
    static settings with_short_idle()
    {
        settings with;
        with.limits.session_idle = std::chrono::seconds(4);
        with.reaper_interval = std::chrono::seconds(1);
        return with;
    }
    void live_for(base::duration time)
    {
        for (base::duration passed{}; passed < time; passed += std::chrono::milliseconds(500)) {
            world_.advance(std::chrono::milliseconds(500));
            world_.run_all();
        }
    }
    bool is_there(store::session_key const& key)
    {
        bool found = false;
        node_.sessions().use(
            key.principal, base::to_string(key.id), [&](result<session_use> used) { found = used.has_value(); });
        world_.run_all();
        return found;
    }
};

TEST_F(ShortLivedSessions, AreHeldByCallsThatTheStoreDoesNotKnow)
{
    call_request request;
    request.ids = {"1"};
    auto use = session();
    auto const key = use->session()->key;
    auto const held = node_.calls().begin_held(use->session(), loop_, request, [](std::string) {});
    use.reset();
    live_for(std::chrono::seconds(20));
    EXPECT_TRUE(is_there(key));
    (*held)->answer("done");
    live_for(std::chrono::seconds(20));
    EXPECT_FALSE(is_there(key));
}

TEST_F(CallDirectory, InterruptsAllAndWhatBeginsAfterwards)
{
    auto const streamed = begin();
    call_request request;
    request.ids = {"2"};
    auto const held = node_.calls().begin_held(use_->session(), loop_, request, [](std::string) {});
    node_.calls().interrupt_all();
    world_.run_all();
    EXPECT_EQ(streamed->end_reason(), protocol::end_reason::interrupted);
    EXPECT_EQ((*held)->end_reason(), protocol::end_reason::interrupted);
    auto const late = begin_with("3").call;
    world_.run_all();
    EXPECT_EQ(late->end_reason(), protocol::end_reason::interrupted);
}

}

}
