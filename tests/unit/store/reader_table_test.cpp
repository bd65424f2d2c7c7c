#include "store/reader_table.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <set>

namespace belay::store {

void PrintTo(reader_table::verdict verdict, std::ostream* out)
{
    *out << (verdict == reader_table::verdict::accepted ? "accepted" : "conflict");
}

void PrintTo(reader_table::place const& place, std::ostream* out)
{
    *out << place.reader.owner << ' ' << place.reader.connection << " on " << place.stream;
}

void PrintTo(dismissal why, std::ostream* out)
{
    static constexpr char const* names[] = {"taken_over", "over_budget", "asked", "stalled"};
    *out << names[static_cast<int>(why)];
}

namespace {

using namespace std::chrono_literals;
using verdict = reader_table::verdict;
using places = std::vector<reader_table::place>;

constexpr stream_id standalone = 1000;

class ReaderTable : public testing::Test {
protected:
    reader_table table_;
    base::time_point now_{1h};
    std::set<std::string> dead_; // owners
    std::optional<reader_id> broken_;
    std::size_t budget_ = 64;
    bool can_return_ = true;
    bool is_of_page_ = false;
    bool insists_ = false;
    standalone_policy policy_ = standalone_policy::takeover;

    static reader_id id(std::uint64_t connection, std::string owner = "node") { return {std::move(owner), connection}; }
    static reader_table::place place(std::uint64_t connection, stream_id stream, std::string owner = "node")
    {
        return {id(connection, std::move(owner)), stream};
    }
    reader_request request_of(reader_id reader) const
    {
        reader_request request;
        request.id = std::move(reader);
        request.can_return = can_return_;
        request.is_of_page = is_of_page_;
        request.budget = budget_;
        request.budget_of_page = 1;
        return request;
    }
    auto who_lives() const
    {
        return [this](std::string const& owner) { return !dead_.contains(owner); };
    }
    reader_table::decision attach(reader_id const& reader, stream_id stream)
    {
        auto const request = request_of(reader);
        auto const kind = stream == standalone ? stream_kind::standalone : stream_kind::request;
        return table_.attach({stream, kind, request, policy_, broken_, insists_}, now_, who_lives());
    }
    reader_table::decision attach(std::uint64_t connection, stream_id stream) { return attach(id(connection), stream); }
    verdict verdict_on(std::uint64_t connection, stream_id stream) { return attach(connection, stream).verdict; }
    bool can_take(std::uint64_t connection) const { return table_.can_take(request_of(id(connection)), who_lives()); }
    std::optional<std::uint64_t> follower_of(stream_id stream) const
    {
        auto const* const found = table_.current(stream);
        return found ? std::optional(found->id.connection) : std::nullopt;
    }
    std::optional<dismissal> why_leaving(std::uint64_t connection, stream_id stream)
    {
        auto const* const found = table_.find(stream, id(connection));
        return found && found->leaving ? std::optional(found->leaving->why) : std::nullopt;
    }
    void begin(std::uint64_t connection, stream_id stream) { table_.find(stream, id(connection))->start = 0; }
};

// --- takeover

TEST_F(ReaderTable, TakesTheFirstReader)
{
    auto const decision = attach(1, 10);
    EXPECT_EQ(decision.verdict, verdict::accepted);
    EXPECT_TRUE(decision.is_new);
    EXPECT_FALSE(decision.waits);
    EXPECT_TRUE(decision.dismissed.empty());
    EXPECT_TRUE(decision.removed.empty());
    EXPECT_EQ(follower_of(10), 1u);
    EXPECT_FALSE(table_.find(10, id(1))->took_over);
}

TEST_F(ReaderTable, GivesAStreamToTheNewestReader)
{
    attach(1, 10);
    auto const decision = attach(2, 10);
    EXPECT_EQ(decision.dismissed, places{place(1, 10)});
    EXPECT_TRUE(decision.waits);
    EXPECT_EQ(follower_of(10), 2u);
    EXPECT_TRUE(table_.find(10, id(2))->took_over);
    EXPECT_EQ(why_leaving(1, 10), dismissal::taken_over);
}

TEST_F(ReaderTable, KeepsStreamsApart)
{
    attach(1, 10);
    EXPECT_TRUE(attach(2, 20).dismissed.empty());
    EXPECT_EQ(follower_of(10), 1u);
    EXPECT_EQ(follower_of(30), std::nullopt);
}

TEST_F(ReaderTable, KeepsTheConnectionsOfTwoOwnersApart)
{
    attach(id(1, "a"), 10);
    EXPECT_EQ(attach(id(1, "b"), 10).dismissed, places{place(1, 10, "a")});
    EXPECT_FALSE(table_.detach(10, id(1, "c")));
    EXPECT_TRUE(table_.detach(10, id(1, "a")));
    EXPECT_FALSE(attach(id(1, "b"), 10).waits);
}

TEST_F(ReaderTable, StartsTheSuccessorWhenItsPredecessorHasLeft)
{
    attach(1, 10);
    attach(2, 10);
    EXPECT_TRUE(attach(2, 10).waits);
    EXPECT_TRUE(table_.detach(10, id(1)));
    auto const again = attach(2, 10);
    EXPECT_FALSE(again.waits);
    EXPECT_FALSE(again.is_new);
}

TEST_F(ReaderTable, LetsTheLastOfAChainWaitForAllBeforeIt)
{
    attach(1, 10);
    attach(2, 10);
    EXPECT_EQ(attach(3, 10).dismissed, places{place(2, 10)});
    table_.detach(10, id(1));
    EXPECT_TRUE(attach(3, 10).waits);
    // The one between has nothing to wait for any more.
    EXPECT_FALSE(attach(2, 10).waits);
    EXPECT_EQ(why_leaving(2, 10), dismissal::taken_over);
    table_.detach(10, id(2));
    EXPECT_FALSE(attach(3, 10).waits);
}

TEST_F(ReaderTable, ChangesNothingForAReaderThatIsThere)
{
    attach(1, standalone);
    begin(1, standalone);
    budget_ = 1;
    for (int i = 0; i < 10; ++i) {
        auto const again = attach(1, standalone);
        EXPECT_EQ(again.verdict, verdict::accepted);
        EXPECT_FALSE(again.waits);
        EXPECT_TRUE(again.dismissed.empty());
    }
    EXPECT_EQ(table_.entries().size(), 1u);
}

TEST_F(ReaderTable, RemovesPredecessorsForOneThatInsists)
{
    attach(1, 10);
    attach(2, 10);
    attach(9, 20);
    insists_ = true;
    auto const decision = attach(2, 10);
    EXPECT_EQ(decision.removed, places{place(1, 10)});
    EXPECT_FALSE(decision.waits);
    EXPECT_EQ(follower_of(20), 9u);
}

TEST_F(ReaderTable, RemovesPredecessorsForANewcomerThatInsists)
{
    attach(1, 10);
    insists_ = true;
    auto const decision = attach(2, 10);
    EXPECT_EQ(decision.removed, places{place(1, 10)});
    EXPECT_TRUE(decision.dismissed.empty());
    EXPECT_FALSE(decision.waits);
    EXPECT_TRUE(table_.find(10, id(2))->took_over);
}

TEST_F(ReaderTable, LetsNoOneInsistWhoHasToLeave)
{
    attach(1, 10);
    attach(2, 10);
    attach(3, 10);
    insists_ = true;
    EXPECT_TRUE(attach(2, 10).removed.empty());
    EXPECT_EQ(follower_of(10), 3u);
}

TEST_F(ReaderTable, WaitsForNobodyOfADeadOwner)
{
    attach(id(1, "gone"), 10);
    attach(id(2, "gone"), 20);
    dead_.insert("gone");
    auto const decision = attach(3, 10);
    EXPECT_EQ(decision.removed, (places{place(1, 10, "gone"), place(2, 20, "gone")}));
    EXPECT_TRUE(decision.dismissed.empty());
    EXPECT_FALSE(decision.waits);
    EXPECT_FALSE(table_.find(10, id(3))->took_over);
}

TEST_F(ReaderTable, RemovesAllOfAnOwner)
{
    attach(id(1, "a"), 10);
    attach(id(1, "b"), 20);
    attach(id(2, "a"), 30);
    EXPECT_EQ(table_.remove_all_of("a"), (places{place(1, 10, "a"), place(2, 30, "a")}));
    EXPECT_EQ(table_.entries().size(), 1u);
    EXPECT_TRUE(table_.remove_all_of("a").empty());
}

TEST_F(ReaderTable, KnowsWhoCameLastEvenIfItHasToLeave)
{
    EXPECT_EQ(table_.newest(10), nullptr);
    attach(1, 10);
    attach(2, 10);
    EXPECT_EQ(table_.newest(10)->id, id(2));
    table_.dismiss(10, {dismissal::stalled});
    EXPECT_EQ(table_.newest(10)->id, id(2));
    EXPECT_EQ(table_.current(10), nullptr);
}

// --- being told to leave

TEST_F(ReaderTable, TellsAReaderToLeaveAndWhenToReturn)
{
    attach(1, 10);
    EXPECT_TRUE(table_.dismiss(10, {dismissal::asked, 300ms}));
    EXPECT_EQ(why_leaving(1, 10), dismissal::asked);
    EXPECT_EQ(table_.find(10, id(1))->leaving->retry, 300ms);
    // The first reason stays.
    EXPECT_FALSE(table_.dismiss(10, {dismissal::stalled}));
    EXPECT_TRUE(attach(2, 10).dismissed.empty());
    EXPECT_EQ(why_leaving(1, 10), dismissal::asked);
    EXPECT_FALSE(table_.find(10, id(2))->took_over);
}

TEST_F(ReaderTable, AsksNobodyToLeaveWhoCannotReturn)
{
    can_return_ = false;
    attach(1, 10);
    attach(2, standalone);
    EXPECT_FALSE(table_.dismiss(10, {dismissal::asked}));
    EXPECT_TRUE(table_.dismiss(10, {dismissal::stalled}));
    EXPECT_TRUE(table_.dismiss(standalone, {dismissal::asked})); // no call ends with it
    EXPECT_FALSE(table_.dismiss(99, {dismissal::asked}));
}

// --- the storm guard

TEST_F(ReaderTable, RefusesTheFourthTakeoverWithinTenSeconds)
{
    attach(1, standalone);
    EXPECT_EQ(verdict_on(2, standalone), verdict::accepted);
    now_ += 3s;
    EXPECT_EQ(verdict_on(3, standalone), verdict::accepted);
    now_ += 3s;
    EXPECT_EQ(verdict_on(4, standalone), verdict::accepted);
    now_ += 4s - 1ms;
    EXPECT_EQ(verdict_on(5, standalone), verdict::conflict);
    EXPECT_EQ(follower_of(standalone), 4u);
}

TEST_F(ReaderTable, ForgetsATakeoverAfterTenSeconds)
{
    for (std::uint64_t n = 1; n <= 4; ++n)
        attach(n, standalone);
    now_ += 10s - 1ms;
    EXPECT_EQ(verdict_on(5, standalone), verdict::conflict);
    now_ += 1ms;
    EXPECT_EQ(verdict_on(6, standalone), verdict::accepted);
}

TEST_F(ReaderTable, DoesNotCountRefusals)
{
    for (std::uint64_t n = 1; n <= 4; ++n)
        attach(n, standalone);
    for (std::uint64_t n = 5; n <= 20; ++n) {
        now_ += 500ms;
        attach(n, standalone);
    }
    now_ += 3s;
    EXPECT_EQ(verdict_on(30, standalone), verdict::accepted);
}

TEST_F(ReaderTable, DoesNotCountATakeoverOfABrokenConnection)
{
    attach(1, standalone);
    for (std::uint64_t n = 2; n <= 20; ++n) {
        broken_ = id(n - 1);
        EXPECT_EQ(verdict_on(n, standalone), verdict::accepted) << n;
        EXPECT_FALSE(table_.find(standalone, id(n))->took_over);
        EXPECT_EQ(why_leaving(n - 1, standalone), dismissal::taken_over);
    }
}

TEST_F(ReaderTable, DoesNotCountATakeoverFromADeadOwner)
{
    for (std::uint64_t n = 1; n <= 20; ++n) {
        auto const owner = std::to_string(n);
        EXPECT_EQ(attach(id(1, owner), standalone).verdict, verdict::accepted) << n;
        dead_.insert(owner);
    }
    EXPECT_EQ(table_.entries().size(), 1u);
}

TEST_F(ReaderTable, DoesNotCountAnAttachToAFreeStream)
{
    for (std::uint64_t n = 1; n <= 20; ++n) {
        EXPECT_EQ(verdict_on(n, standalone), verdict::accepted) << n;
        table_.detach(standalone, id(n));
    }
}

TEST_F(ReaderTable, NeverRefusesAResumeOfARequestStream)
{
    for (std::uint64_t n = 1; n <= 50; ++n)
        EXPECT_EQ(verdict_on(n, 10), verdict::accepted) << n;
}

TEST_F(ReaderTable, RefusesASecondReaderIfToldTo)
{
    policy_ = standalone_policy::conflict;
    attach(1, standalone);
    EXPECT_EQ(verdict_on(2, standalone), verdict::conflict);
    EXPECT_EQ(follower_of(standalone), 1u);
    EXPECT_EQ(table_.entries().size(), 1u);
    broken_ = id(1);
    EXPECT_EQ(attach(2, standalone).dismissed, places{place(1, standalone)});
}

TEST_F(ReaderTable, CountsNoTakeoverThatItRefuses)
{
    policy_ = standalone_policy::conflict;
    attach(1, standalone);
    for (std::uint64_t n = 2; n < 8; ++n)
        EXPECT_EQ(verdict_on(n, standalone), verdict::conflict);
    policy_ = standalone_policy::takeover;
    EXPECT_EQ(verdict_on(8, standalone), verdict::accepted);
}

// --- the budget

TEST_F(ReaderTable, DismissesTheLongestAttachedRequestStreamBeyondTheBudget)
{
    budget_ = 3;
    attach(1, standalone);
    attach(2, 20);
    attach(3, 30);
    EXPECT_EQ(attach(4, 40).dismissed, places{place(2, 20)});
    EXPECT_EQ(why_leaving(2, 20), dismissal::over_budget);
    EXPECT_EQ(attach(5, 50).dismissed, places{place(3, 30)});
}

TEST_F(ReaderTable, DismissesNobodyWhoCouldNotReturn)
{
    budget_ = 2;
    can_return_ = false;
    attach(1, 10);
    can_return_ = true;
    attach(2, 20);
    EXPECT_EQ(attach(3, 30).dismissed, places{place(2, 20)});
}

TEST_F(ReaderTable, HasNoRoomForANewCallWhereNobodyCanLeave)
{
    budget_ = 2;
    attach(1, standalone);
    EXPECT_TRUE(can_take(9));
    can_return_ = false;
    attach(2, 20);
    EXPECT_FALSE(can_take(9));
    EXPECT_EQ(table_.entries().size(), 2u);
    can_return_ = true;
    attach(3, 30); // comes back, so it is let in
    EXPECT_TRUE(can_take(9));
}

TEST_F(ReaderTable, NeverRefusesWhoComesBackForAStream)
{
    attach(1, standalone);
    can_return_ = false;
    attach(2, 20);
    attach(3, 30);
    budget_ = 2;
    auto const decision = attach(4, 20);
    EXPECT_EQ(decision.verdict, verdict::accepted);
    EXPECT_EQ(decision.dismissed, places{place(2, 20)});
}

TEST_F(ReaderTable, DoesNotCountATakeoverAgainstTheBudget)
{
    budget_ = 2;
    attach(1, 10);
    attach(2, 20);
    EXPECT_EQ(attach(3, 10).dismissed, places{place(1, 10)});
}

TEST_F(ReaderTable, DoesNotCountReadersThatAreLeaving)
{
    budget_ = 2;
    attach(1, 10);
    attach(2, 20);
    EXPECT_EQ(attach(3, 30).dismissed, places{place(1, 10)});
    table_.detach(20, id(2));
    EXPECT_TRUE(attach(4, 40).dismissed.empty());
}

TEST_F(ReaderTable, DoesNotCountReadersOfDeadOwners)
{
    budget_ = 2;
    can_return_ = false;
    attach(id(1, "gone"), 10);
    attach(2, 20);
    EXPECT_FALSE(can_take(3));
    dead_.insert("gone");
    EXPECT_TRUE(can_take(3));
    EXPECT_TRUE(attach(3, 30).dismissed.empty());
}

TEST_F(ReaderTable, WaitsForOneThatWasDismissedForTheBudget)
{
    budget_ = 2;
    attach(1, 10);
    attach(2, 20);
    attach(3, 30); // dismisses 1, which has not left yet
    EXPECT_EQ(follower_of(10), std::nullopt);
    auto const back = attach(4, 10);
    EXPECT_EQ(back.dismissed, places{place(2, 20)});
    EXPECT_TRUE(back.waits);
    table_.detach(10, id(1));
    EXPECT_FALSE(attach(4, 10).waits);
}

TEST_F(ReaderTable, RemembersThatAPageHasUsedTheSession)
{
    attach(1, 10);
    is_of_page_ = true;
    EXPECT_EQ(attach(2, 20).dismissed, places{place(1, 10)}); // the budget of a page is one
    is_of_page_ = false;
    EXPECT_EQ(attach(3, 30).dismissed, places{place(2, 20)});
}

}

}
