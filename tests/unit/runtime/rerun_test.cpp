// Calls whose owner is lost, or gives them up: another node runs them again.
#include "protocol/message.hpp"
#include "runtime/call_notes.hpp"
#include "runtime/node.hpp"
#include "sim/sim_loop.hpp"
#include "store/memory_store.hpp"
#include "support/forwarding_store.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace belay::runtime {

namespace {

using namespace std::chrono_literals;

using texts = std::vector<std::string>;

/// A memory that several processes share.
class shared_store final : public forwarding_store {
public:
    using forwarding_store::forwarding_store;
    [[nodiscard]] store::durability promise() const noexcept override { return store::durability::shared; }
    void claim(
        store::stream_key const& key, store::fence seen, std::string const& owner,
        store::completion<store::claimed_call> done) override
    {
        if (auto const claimed = std::exchange(at_claim, nullptr))
            claimed();
        forwarding_store::claim(key, seen, owner, std::move(done));
    }
    std::function<void()> at_claim; // once, while a claim is under way
};

/// Has one kind of work, or none. A run is what the test makes of its call.
class fake_service final : public service {
public:
    std::uint64_t has = 7;
    std::deque<std::shared_ptr<call>> runs;
    std::string last_message;

    [[nodiscard]] std::uint32_t features() const override { return 0; }
    [[nodiscard]] std::string initialize_result(protocol::revision, session_mode, std::uint32_t) const override
    {
        return "{}";
    }
    [[nodiscard]] route find(protocol::message const& request) override
    {
        last_message = request.method;
        route found;
        found.is_instant = false;
        found.run = [this](incoming const&) -> outcome {
            start_call start;
            start.run = [this](std::shared_ptr<call> on) { runs.push_back(std::move(on)); };
            return start;
        };
        return found;
    }
    [[nodiscard]] bool can_run(std::uint64_t work) const override { return work == has; }
};

class Rerun : public testing::Test {
protected:
    struct process {
        process(Rerun& of, bool is_shared)
            : loop(of.world_.clock()),
              here({}, is_shared ? static_cast<store::backend&>(of.shared_) : of.memory_, of.random_, of.metrics_, {})
        {
            of.world_.add(loop);
            here.run_with(serves);
            here.start(loop);
        }
        ~process() { here.stop(); }
        sim::sim_loop loop;
        fake_service serves;
        node here;
    };

    base::seeded_random random_{1};
    sim::scheduler world_{random_};
    store::memory_store memory_{{}, world_.clock(), 1};
    shared_store shared_{memory_};
    observe::metrics metrics_;
    std::unique_ptr<process> first_ = start();
    std::unique_ptr<process> second_ = start();
    std::string message_ = protocol::request_text("1", "work", R"({"a":1})");

    std::unique_ptr<process> start(bool is_shared = true) { return std::make_unique<process>(*this, is_shared); }
    void kill(std::unique_ptr<process>& which)
    {
        world_.remove(which->loop);
        which.reset();
    }
    void pass(base::duration time)
    {
        for (; time > base::duration::zero(); time -= 500ms) {
            world_.advance(500ms);
            world_.run_all();
        }
    }
    std::shared_ptr<call> begin(process& at, bool may_run_again = true, std::optional<base::duration> limit = {})
    {
        std::shared_ptr<call> made;
        at.here.sessions().open({}, [&](result<session_use> use) {
            ASSERT_TRUE(use);
            call_request request;
            request.ids = {"1"};
            request.traits.max_duration = limit;
            request.who = {"alice", {"read"}, R"({"sub":"a"})"};
            if (may_run_again)
                request.again = rerun_request{7, message_};
            at.here.calls().begin(*use, at.loop, std::move(request), [&](result<begun_call> begun) {
                ASSERT_TRUE(begun);
                made = begun->call;
            });
        });
        made->on_interrupt([] {});
        stream_ = made->stream();
        return made;
    }
    texts log()
    {
        texts all;
        memory_.read_after(stream_, 0, {}, std::nullopt, [&](result<store::page> page) {
            ASSERT_TRUE(page);
            for (auto const& each : page->events)
                all.push_back(*each.payload);
        });
        return all;
    }
    store::stream_key stream_;
};

constexpr auto lost_notice
    = R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"belay","data":{"rerun":2,"reason":"owner_lost"}}})";

}

TEST_F(Rerun, ACallOfALostNodeGoesOnOnItsStreamWhereAnotherHasItsWork)
{
    auto running = begin(*first_);
    (void)running->emit("a", [](std::error_code) {});
    running.reset();
    kill(first_);
    pass(20s);
    ASSERT_EQ(second_->serves.runs.size(), 1u);
    EXPECT_EQ(second_->serves.last_message, "work");
    auto const& again = second_->serves.runs.front();
    EXPECT_EQ(again->caller(), (store::identity{"alice", {"read"}, R"({"sub":"a"})"}));
    again->answer("done");
    EXPECT_EQ(log(), (texts{"a", lost_notice, "done"}));
    EXPECT_EQ(metrics_.calls_run_again.Value(), 1);
}

TEST_F(Rerun, ItIsRunTwiceAtMost)
{
    begin(*first_).reset();
    kill(first_);
    pass(20s);
    ASSERT_EQ(second_->serves.runs.size(), 1u);
    second_->serves.runs.clear();
    auto const third = start();
    kill(second_);
    pass(20s);
    EXPECT_TRUE(third->serves.runs.empty());
    EXPECT_NE(log().back().find("owner_lost"), std::string::npos);
}

TEST_F(Rerun, AProcessThatDrainsWhileItTakesACallLeavesItToOthers)
{
    begin(*first_).reset();
    kill(first_);
    auto const third = start();
    int drained = 0;
    shared_.at_claim = [&] {
        for (auto* const each : {second_.get(), third.get()})
            each->here.departures().drain();
        ++drained;
    };
    pass(20s);
    EXPECT_EQ(drained, 1);
    EXPECT_TRUE(second_->serves.runs.empty());
    EXPECT_TRUE(third->serves.runs.empty());
    EXPECT_TRUE(log().empty());
    auto const fourth = start();
    pass(20s);
    ASSERT_EQ(fourth->serves.runs.size(), 1u);
    fourth->serves.runs.front()->answer("done");
    ASSERT_EQ(log().size(), 2u);
    EXPECT_NE(log().front().find(R"("rerun":2)"), std::string::npos);
    EXPECT_EQ(log().back(), "done");
}

TEST_F(Rerun, AnyOtherCallEndsWithItsOwner)
{
    begin(*first_, false).reset();
    kill(first_);
    pass(20s);
    EXPECT_TRUE(second_->serves.runs.empty());
    EXPECT_NE(log().back().find("owner_lost"), std::string::npos);
}

TEST_F(Rerun, EachRequestOfABatchEndsAsWhatItIs)
{
    first_->here.sessions().open({}, [&](result<session_use> use) {
        ASSERT_TRUE(use);
        call_request request;
        request.ids = {"1", "2"};
        request.kinds = {{true, false}, {false, true}};
        first_->here.calls().begin_batch(*use, first_->loop, std::move(request), [&](result<begun_batch> begun) {
            ASSERT_TRUE(begun);
            stream_ = {begun->batch->session().key, begun->batch->output()->stream().value()};
        });
    });
    kill(first_);
    pass(20s);
    auto const said = log();
    ASSERT_EQ(said.size(), 2u);
    auto const reason = protocol::end_reason::owner_lost;
    EXPECT_EQ(said[0], protocol::ended_answer({"1", true, false}, reason));
    EXPECT_EQ(said[1], protocol::ended_answer({"2", false, true}, reason));
}

TEST_F(Rerun, TheTimeOfACallIsKeptWhetherItMayRunAgainOrNot)
{
    begin(*first_, false, 30s).reset();
    store::fence fence = 0;
    memory_.find(stream_.session, "1", [&](result<store::call_ref> found) { fence = found.value().fence; });
    memory_.claim(stream_, fence, "another", [](result<store::claimed_call> claimed) {
        EXPECT_EQ(read_call_notes(claimed.value().meta.call_notes).time, 30s);
    });
}

TEST_F(Rerun, ARequestThatIsTooLargeToBeKeptIsNotRunAgain)
{
    message_ = protocol::request_text("1", "work", '"' + std::string(64 * 1024, 'x') + '"');
    begin(*first_).reset();
    kill(first_);
    pass(20s);
    EXPECT_TRUE(second_->serves.runs.empty());
    EXPECT_NE(log().back().find("owner_lost"), std::string::npos);
}

TEST_F(Rerun, WhoDoesNotHaveTheWorkLeavesItToOthersAndThenEndsIt)
{
    second_->serves.has = 8;
    auto running = begin(*first_);
    bool is_released = false;
    memory_.find(stream_.session, "1", [&](result<store::call_ref> found) {
        ASSERT_TRUE(found);
        EXPECT_EQ(found->work, 7u);
        memory_.release(
            stream_, found->fence, true, [&](result<void> released) { is_released = released.has_value(); });
    });
    ASSERT_TRUE(is_released);
    first_->serves.has = 8;
    first_->here.departures().drain();
    pass(1s);
    EXPECT_TRUE(log().empty());
    pass(2s);
    ASSERT_EQ(log().size(), 1u);
    EXPECT_NE(log().back().find("owner_lost"), std::string::npos);
}

TEST_F(Rerun, OnlyWhatIsLeftOfItsTimeIsItsTime)
{
    begin(*first_, true, 30s).reset();
    kill(first_);
    pass(20s);
    ASSERT_EQ(second_->serves.runs.size(), 1u);
    EXPECT_FALSE(second_->serves.runs.front()->is_ended());
    pass(11s);
    EXPECT_EQ(second_->serves.runs.front()->end_reason(), protocol::end_reason::timed_out);
}

TEST_F(Rerun, ProgressDoesNotGoBack)
{
    auto running = begin(*first_);
    running->progress(5, "five");
    running.reset();
    kill(first_);
    pass(20s);
    auto const& again = second_->serves.runs.front();
    again->progress(4, "four");
    again->progress(5, "five again");
    again->progress(6, "six");
    again->answer("done");
    EXPECT_EQ(log(), (texts{"five", lost_notice, "six", "done"}));
}

TEST_F(Rerun, NobodyIsAskedTwiceUnderOneKeyAndOpenQuestionsAreWithdrawn)
{
    auto running = begin(*first_);
    std::string heard;
    (void)running->ask("ask", "{}", "name", [&](result<std::string> answer) { heard = answer.value(); });
    (void)running->ask("ask", "{}", "age", [](result<std::string>) { FAIL(); });
    memory_.post(stream_, {store::letter::kind::answer, 1, "bob"}, [](result<void> posted) { ASSERT_TRUE(posted); });
    world_.run_all();
    EXPECT_EQ(heard, "bob");
    running.reset();
    kill(first_);
    pass(20s);
    auto const& again = second_->serves.runs.front();
    heard.clear();
    std::string age;
    EXPECT_EQ(again->ask("ask", "{}", "name", [&](result<std::string> answer) { heard = answer.value(); }), 3u);
    EXPECT_EQ(again->ask("ask", "{}", "age", [&](result<std::string> answer) { age = answer.value(); }), 4u);
    world_.run_all();
    EXPECT_EQ(heard, "bob");
    EXPECT_TRUE(age.empty());
    auto const said = log();
    ASSERT_EQ(said.size(), 5u); // two blank places, the withdrawal, the notice, the new question
    EXPECT_TRUE(said[0].empty() && said[1].empty());
    EXPECT_NE(said[2].find("notifications/cancelled"), std::string::npos);
    EXPECT_EQ(said[3], lost_notice);
    EXPECT_NE(said[4].find(R"("method":"ask")"), std::string::npos);
}

TEST_F(Rerun, AnAnswerThatNobodyHasHeardIsNotAskedForAgain)
{
    auto running = begin(*first_);
    (void)running->ask("ask", "{}", "name", [](result<std::string>) { FAIL(); });
    running.reset();
    kill(first_);
    memory_.post(stream_, {store::letter::kind::answer, 1, "bob"}, [](result<void> posted) { ASSERT_TRUE(posted); });
    pass(20s);
    std::string heard;
    (void)second_->serves.runs.front()->ask(
        "ask", "{}", "name", [&](result<std::string> answer) { heard = answer.value(); });
    world_.run_all();
    EXPECT_EQ(heard, "bob");
}

TEST_F(Rerun, ACancelIsHeardByWhoeverGoesOn)
{
    begin(*first_).reset();
    kill(first_);
    memory_.post(stream_, {store::letter::kind::cancel, 0}, [](result<void> posted) { ASSERT_TRUE(posted); });
    pass(20s);
    EXPECT_TRUE(second_->serves.runs.empty());
    EXPECT_NE(log().back().find("-32800"), std::string::npos);
}

TEST_F(Rerun, AProcessThatStopsGivesItsCallsUpOnceTheirHandlersAreGone)
{
    auto const running = begin(*first_);
    int told = 0;
    running->on_interrupt([&] { ++told; });
    first_->here.departures().drain();
    first_->here.calls().interrupt_all();
    world_.run_all();
    EXPECT_EQ(told, 1);
    EXPECT_TRUE(running->is_ended());
    EXPECT_EQ(first_->here.departures().calls(), 1u);
    EXPECT_TRUE(second_->serves.runs.empty());
    running->handler_left();
    world_.run_all(); // without waiting for a look: it was published
    EXPECT_EQ(first_->here.departures().calls(), 0u);
    ASSERT_EQ(second_->serves.runs.size(), 1u);
    ASSERT_EQ(log().size(), 1u);
    EXPECT_NE(log().front().find(R"("rerun":2,"reason":"interrupted")"), std::string::npos);
}

TEST_F(Rerun, ACallThatNeverStartedIsGivenUpAtOnce)
{
    auto const running = begin(*first_);
    running->on_interrupt(nullptr);
    running->on_give_up([] { return true; });
    first_->here.departures().drain();
    first_->here.calls().interrupt_all();
    world_.run_all();
    EXPECT_EQ(first_->here.departures().calls(), 0u);
    EXPECT_EQ(second_->serves.runs.size(), 1u);
}

TEST_F(Rerun, AHandlerThatDoesNotStopIsNotWaitedForTwice)
{
    auto const running = begin(*first_);
    first_->here.departures().drain();
    first_->here.calls().interrupt_all();
    world_.run_all();
    first_->here.calls().interrupt_all();
    world_.run_all();
    EXPECT_EQ(first_->here.departures().calls(), 0u);
    EXPECT_TRUE(second_->serves.runs.empty());
    EXPECT_NE(log().back().find("interrupted"), std::string::npos);
}

TEST_F(Rerun, AnAnswerThatComesWhileTheHandlerLeavesCounts)
{
    auto const running = begin(*first_);
    first_->here.departures().drain();
    first_->here.calls().interrupt_all();
    world_.run_all();
    running->answer("done after all");
    running->handler_left();
    world_.run_all();
    EXPECT_EQ(log(), texts{"done after all"});
    EXPECT_TRUE(second_->serves.runs.empty());
}

TEST_F(Rerun, WithoutSuccessorsCallsEnd)
{
    auto const alone = start(false);
    auto const running = begin(*alone);
    alone->here.departures().drain();
    alone->here.calls().interrupt_all();
    world_.run_all();
    EXPECT_NE(log().back().find("interrupted"), std::string::npos);
}

TEST_F(Rerun, AnIdentityThatIsTooLargeIsRefused)
{
    first_->here.sessions().open({}, [&](result<session_use> use) {
        call_request request;
        request.ids = {"1"};
        request.who.claims = std::string(first_->here.settings().max_identity_bytes + 1, 'x');
        first_->here.calls().begin(*use, first_->loop, std::move(request), [](result<begun_call> begun) {
            ASSERT_FALSE(begun);
            EXPECT_EQ(begun.error(), errc::too_large);
        });
    });
}

}
