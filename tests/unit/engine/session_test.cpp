#include "engine/session.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <set>

namespace belay::engine {

void PrintTo(attach_verdict verdict, std::ostream* out)
{
    static constexpr char const* names[] = {"accepted", "conflict", "over_budget", "ended"};
    *out << names[static_cast<int>(verdict)];
}

namespace {

using namespace std::chrono_literals;
using optional_connection = std::optional<connection_id>;

constexpr store::stream_id standalone = 1000;

class Session : public testing::Test {
protected:
    session session_;
    base::time_point now_{1h};
    std::set<connection_id> gone_; // peers that have closed, unread so far
    std::size_t budget_ = 64;
    standalone_policy policy_ = standalone_policy::takeover;

    attach_decision
    attach(connection_id connection, store::stream_id stream, bool can_return = true, bool is_new_call = false)
    {
        attach_request request;
        request.connection = connection;
        request.stream = stream;
        request.kind = stream == standalone ? store::stream_kind::standalone : store::stream_kind::request;
        request.can_return = can_return;
        request.is_new_call = is_new_call;
        request.budget = budget_;
        request.policy = policy_;
        return session_.attach(request, now_, [&](connection_id each) { return gone_.contains(each); });
    }
    attach_verdict verdict(connection_id connection, store::stream_id stream)
    {
        return attach(connection, stream).verdict;
    }
};

// --- takeover

TEST_F(Session, AcceptsTheFirstConnection)
{
    auto const decision = attach(1, 10);
    EXPECT_EQ(decision.verdict, attach_verdict::accepted);
    EXPECT_EQ(decision.displaced, std::nullopt);
    EXPECT_EQ(decision.closed, std::nullopt);
    EXPECT_FALSE(decision.waits);
    EXPECT_EQ(session_.follower_of(10), 1u);
}

TEST_F(Session, GivesAStreamToTheNewestConnection)
{
    attach(1, 10);
    auto const decision = attach(2, 10);
    EXPECT_EQ(decision.displaced, 1u);
    EXPECT_TRUE(decision.waits);
    EXPECT_EQ(session_.follower_of(10), 2u);
}

TEST_F(Session, KeepsStreamsApart)
{
    attach(1, 10);
    EXPECT_EQ(attach(2, 20).displaced, std::nullopt);
    EXPECT_EQ(session_.follower_of(10), 1u);
    EXPECT_EQ(session_.follower_of(30), std::nullopt);
}

TEST_F(Session, StartsTheSuccessorWhenItsPredecessorHasLeft)
{
    attach(1, 10);
    attach(2, 10);
    EXPECT_EQ(session_.detach(1), 2u);
    EXPECT_EQ(session_.detach(2), std::nullopt);
}

TEST_F(Session, StartsAChainOfSuccessorsOneByOne)
{
    attach(1, 10);
    attach(2, 10);
    auto const third = attach(3, 10);
    EXPECT_EQ(third.displaced, 2u);
    EXPECT_TRUE(third.waits);
    EXPECT_EQ(session_.detach(1), 2u);
    EXPECT_EQ(session_.detach(2), 3u);
}

TEST_F(Session, SkipsASuccessorThatHasLeftBefore)
{
    attach(1, 10);
    attach(2, 10);
    attach(3, 10);
    EXPECT_EQ(session_.detach(2), std::nullopt);
    EXPECT_EQ(session_.detach(1), 3u);
}

TEST_F(Session, StartsNobodyOnOtherStreams)
{
    attach(1, 10);
    attach(2, 20);
    EXPECT_EQ(session_.detach(1), std::nullopt);
}

TEST_F(Session, IgnoresADetachItDoesNotKnow)
{
    EXPECT_EQ(session_.detach(5), std::nullopt);
    attach(1, 10);
    session_.detach(1);
    EXPECT_EQ(session_.detach(1), std::nullopt);
}

TEST_F(Session, ListsAllItsConnections)
{
    attach(1, 10);
    attach(2, 10);
    attach(3, standalone);
    EXPECT_EQ(session_.connection_count(), 3u);
    EXPECT_EQ(session_.connection_count(), 3u);
}

// --- the storm guard

TEST_F(Session, RefusesTheFourthTakeoverWithinTenSeconds)
{
    attach(1, standalone);
    EXPECT_EQ(verdict(2, standalone), attach_verdict::accepted);
    now_ += 3s;
    EXPECT_EQ(verdict(3, standalone), attach_verdict::accepted);
    now_ += 3s;
    EXPECT_EQ(verdict(4, standalone), attach_verdict::accepted);
    now_ += 4s - 1ms;
    EXPECT_EQ(verdict(5, standalone), attach_verdict::conflict);
    EXPECT_EQ(session_.follower_of(standalone), 4u);
}

TEST_F(Session, ForgetsATakeoverAfterTenSeconds)
{
    attach(1, standalone);
    for (connection_id id = 2; id <= 4; ++id)
        attach(id, standalone);
    now_ += 10s - 1ms;
    EXPECT_EQ(verdict(5, standalone), attach_verdict::conflict);
    now_ += 1ms;
    EXPECT_EQ(verdict(6, standalone), attach_verdict::accepted);
}

TEST_F(Session, DoesNotCountRefusals)
{
    attach(1, standalone);
    for (connection_id id = 2; id <= 4; ++id)
        attach(id, standalone);
    for (connection_id id = 5; id <= 20; ++id) {
        now_ += 500ms;
        attach(id, standalone);
    }
    now_ += 3s;
    EXPECT_EQ(verdict(30, standalone), attach_verdict::accepted);
}

TEST_F(Session, DoesNotCountATakeoverOfADeadConnection)
{
    attach(1, standalone);
    for (connection_id id = 2; id <= 20; ++id) {
        gone_.insert(id - 1);
        EXPECT_EQ(verdict(id, standalone), attach_verdict::accepted) << id;
    }
}

TEST_F(Session, DoesNotCountAnAttachToAFreeStream)
{
    for (connection_id id = 1; id <= 20; ++id) {
        EXPECT_EQ(verdict(id, standalone), attach_verdict::accepted) << id;
        session_.detach(id);
    }
}

TEST_F(Session, NeverRefusesAResumeOfARequestStream)
{
    for (connection_id id = 1; id <= 50; ++id)
        EXPECT_EQ(verdict(id, 10), attach_verdict::accepted) << id;
}

TEST_F(Session, RefusesASecondReaderIfToldTo)
{
    policy_ = standalone_policy::conflict;
    attach(1, standalone);
    EXPECT_EQ(verdict(2, standalone), attach_verdict::conflict);
    EXPECT_EQ(session_.follower_of(standalone), 1u);
    EXPECT_EQ(session_.connection_count(), 1u);
}

TEST_F(Session, ReplacesADeadReaderEvenIfToldToRefuse)
{
    policy_ = standalone_policy::conflict;
    attach(1, standalone);
    gone_.insert(1);
    EXPECT_EQ(attach(2, standalone).displaced, 1u);
}

// --- the budget

TEST_F(Session, ClosesTheLongestAttachedRequestStreamBeyondTheBudget)
{
    budget_ = 3;
    attach(1, standalone);
    attach(2, 20);
    attach(3, 30);
    auto const decision = attach(4, 40);
    EXPECT_EQ(decision.verdict, attach_verdict::accepted);
    EXPECT_EQ(decision.closed, 2u);
    EXPECT_EQ(decision.displaced, std::nullopt);
    EXPECT_EQ(attach(5, 50).closed, 3u);
}

TEST_F(Session, ClosesNoneThatCouldNotReturn)
{
    budget_ = 2;
    attach(1, 10, false);
    attach(2, 20);
    EXPECT_EQ(attach(3, 30).closed, 2u);
}

TEST_F(Session, RefusesANewCallWhereNothingCanBeClosed)
{
    budget_ = 2;
    attach(1, standalone);
    attach(2, 20, false);
    EXPECT_EQ(attach(3, 30, true, true).verdict, attach_verdict::over_budget);
    EXPECT_EQ(session_.connection_count(), 2u);
}

TEST_F(Session, NeverRefusesWhoComesBackForAStream)
{
    attach(1, standalone);
    attach(2, 20, false);
    attach(3, 30, false);
    budget_ = 2;
    auto const decision = attach(4, 20);
    EXPECT_EQ(decision.verdict, attach_verdict::accepted);
    EXPECT_EQ(decision.displaced, 2u);
    EXPECT_EQ(decision.closed, std::nullopt);
}

TEST_F(Session, CountsNoTakeoverThatItRefuses)
{
    policy_ = standalone_policy::conflict;
    attach(1, standalone);
    for (connection_id id = 2; id < 8; ++id)
        EXPECT_EQ(verdict(id, standalone), attach_verdict::conflict);
    policy_ = standalone_policy::takeover;
    EXPECT_EQ(verdict(8, standalone), attach_verdict::accepted);
}

TEST_F(Session, DoesNotCountATakeoverAgainstTheBudget)
{
    budget_ = 2;
    attach(1, 10);
    attach(2, 20);
    auto const decision = attach(3, 10);
    EXPECT_EQ(decision.displaced, 1u);
    EXPECT_EQ(decision.closed, std::nullopt);
}

TEST_F(Session, DoesNotCountConnectionsThatAreLeaving)
{
    budget_ = 2;
    attach(1, 10);
    attach(2, 20);
    EXPECT_EQ(attach(3, 30).closed, 1u);
    session_.detach(2);
    EXPECT_EQ(attach(4, 40).closed, std::nullopt);
}

TEST_F(Session, WaitsForOneThatWasClosedForTheBudget)
{
    budget_ = 2;
    attach(1, 10);
    attach(2, 20);
    attach(3, 30); // closes 1, which has not left yet
    EXPECT_EQ(session_.follower_of(10), std::nullopt);
    auto const back = attach(4, 10);
    EXPECT_EQ(back.displaced, std::nullopt);
    EXPECT_TRUE(back.waits);
    EXPECT_EQ(session_.detach(1), 4u);
}

// --- expiry

TEST_F(Session, EndsWhenItWasIdleForTheLimit)
{
    session_.note_activity(now_);
    EXPECT_FALSE(session_.end_if_idle(now_ + 10min - 1ms, 10min));
    EXPECT_TRUE(session_.end_if_idle(now_ + 10min, 10min));
    EXPECT_TRUE(session_.is_ended());
}

TEST_F(Session, EndsOnce)
{
    EXPECT_TRUE(session_.end());
    EXPECT_FALSE(session_.end());
    EXPECT_FALSE(session_.end_if_idle(now_ + 1h, 10min));
}

TEST_F(Session, IsHeldByAConnection)
{
    attach(1, 10);
    EXPECT_FALSE(session_.end_if_idle(now_ + 1h, 10min));
    session_.detach(1);
    EXPECT_TRUE(session_.end_if_idle(now_ + 1h, 10min));
}

TEST_F(Session, IsHeldByARunningCall)
{
    session_.call_began();
    session_.call_began();
    session_.call_ended();
    EXPECT_FALSE(session_.end_if_idle(now_ + 1h, 10min));
    session_.call_ended();
    EXPECT_TRUE(session_.end_if_idle(now_ + 1h, 10min));
}

TEST_F(Session, IsHeldByARequestAndIdleFromItsEnd)
{
    session_.inbound_began(now_);
    EXPECT_FALSE(session_.end_if_idle(now_ + 1h, 10min));
    session_.inbound_ended(now_ + 1h);
    EXPECT_FALSE(session_.end_if_idle(now_ + 1h + 9min, 10min));
    EXPECT_TRUE(session_.end_if_idle(now_ + 1h + 10min, 10min));
}

TEST_F(Session, IsNotSetBackByOldActivity)
{
    session_.note_activity(now_ + 5min);
    session_.note_activity(now_);
    EXPECT_EQ(session_.last_activity(), now_ + 5min);
}

TEST_F(Session, TakesNoConnectionAfterItsEnd)
{
    ASSERT_TRUE(session_.end());
    EXPECT_EQ(verdict(1, 10), attach_verdict::ended);
    EXPECT_EQ(verdict(2, standalone), attach_verdict::ended);
    EXPECT_EQ(session_.connection_count(), 0u);
}

}

}
