// Who follows a stream: takeovers, those who have to leave, and the budget of a session.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

// --- takeover

TEST_P(StoreContract, DismissesTheReaderThatIsTakenOverFrom)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    auto const fence = open_read(key, one)->fence;
    ASSERT_TRUE(append(key, fence, {event("a")}));
    EXPECT_EQ(why_dismissed(one, key), std::nullopt);
    auto const dismissed = watch(key, event_store::interest::dismissal);
    auto const two = attach(key, from_start(reader_of(1, node_2))); // the same number on another node
    ASSERT_TRUE(two);
    EXPECT_TRUE(two->took_over);
    EXPECT_TRUE(is_woken(dismissed));
    auto const last = read_as(one, key);
    ASSERT_TRUE(last);
    ASSERT_TRUE(last->dismissed);
    EXPECT_EQ(last->dismissed->why, dismissal::taken_over);
    EXPECT_EQ(texts(last), strings{"a"}); // it leaves after these
    EXPECT_EQ(why_dismissed(reader_of(1, node_2), key), std::nullopt);
}

TEST_P(StoreContract, LetsANewReaderWaitUntilItsPredecessorHasLeft)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    auto const two = reader_of(2);
    ASSERT_TRUE(append(key, open_read(key, one)->fence, {event("a")}));
    auto const first_try = attach(key, from_start(two));
    ASSERT_TRUE(first_try);
    EXPECT_TRUE(first_try->waits);
    EXPECT_TRUE(first_try->first.events.empty());
    auto const second_try = attach(key, from_start(two));
    ASSERT_TRUE(second_try);
    EXPECT_TRUE(second_try->waits);
    auto const moves = watch(key, event_store::interest::reader);
    leave(key, one);
    EXPECT_TRUE(is_woken(moves));
    auto const third_try = attach(key, from_start(two));
    ASSERT_TRUE(third_try);
    EXPECT_FALSE(third_try->waits);
    EXPECT_EQ(texts(third_try->first), strings{"a"});
    EXPECT_TRUE(is_followed(key));
}

TEST_P(StoreContract, LetsAReaderInsistThatHasWaitedLongEnough)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    ASSERT_TRUE(append(key, open_read(key, one)->fence, {event("a")}));
    auto request = from_start(reader_of(2));
    ASSERT_TRUE(attach(key, request)->waits);
    request.insists = true;
    auto const attached = attach(key, request);
    ASSERT_TRUE(attached);
    EXPECT_FALSE(attached->waits);
    EXPECT_EQ(texts(attached->first), strings{"a"});
    // When the other leaves at last, nothing changes.
    leave(key, one);
    EXPECT_TRUE(is_followed(key));
    EXPECT_EQ(why_dismissed(reader_of(2), key), std::nullopt);
}

TEST_P(StoreContract, DoesNotWaitForAReaderThatHasLeft)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    ASSERT_TRUE(open_read(key, one));
    leave(key, one);
    ASSERT_TRUE(is_left(key));
    auto const attached = attach(key, from_start(reader_of(2)));
    ASSERT_TRUE(attached);
    EXPECT_FALSE(attached->waits);
    EXPECT_FALSE(attached->took_over);
}

TEST_P(StoreContract, DoesNotLetALateDetachPutTheNextReaderOut)
{
    stream_key const key{made(), standalone};
    auto const one = follow(key, reader_of(1));
    leave(key, one);
    follow(key, reader_of(2));
    leave(key, one); // again
    EXPECT_TRUE(reader(key)->attached);
    EXPECT_EQ(why_dismissed(reader_of(2), key), std::nullopt);
}

TEST_P(StoreContract, TellsAReaderThatItDoesNotKnowToLeave)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a")}));
    auto const page = read_as(reader_of(1), key);
    ASSERT_TRUE(page);
    EXPECT_TRUE(page->dismissed);
    EXPECT_FALSE(read(key)->dismissed); // who is no reader has nothing to leave
}

TEST_P(StoreContract, TakesFromADismissedReaderOnlyWhatWasDelivered)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    ASSERT_TRUE(append(key, open_read(key, one)->fence, {event("a"), event("b"), event("c")}));
    store().note_reader(key, one.id, mark_at(1, 1, 0));
    auto request = from_cursor(reader_of(2), 1);
    request.insists = true;
    ASSERT_TRUE(attach(key, request));
    store().note_reader(key, reader_of(2).id, mark_at(2, 2, 0));
    store().note_reader(key, one.id, mark_at(3, 3, 1));
    auto mark = reader_once(key, [](reader_mark const& now) { return now.delivered == 1; });
    EXPECT_EQ(mark.delivered, 1u);
    EXPECT_EQ(mark.position, 2u);
    EXPECT_EQ(mark.offset, 2u);
    EXPECT_TRUE(mark.attached);
    auto last = mark_at(3, 3, 2);
    last.attached = false;
    store().detach(key, one.id, last);
    mark = reader_once(key, [](reader_mark const& now) { return now.delivered == 2; });
    EXPECT_EQ(mark.delivered, 2u);
    EXPECT_EQ(mark.position, 2u);
    EXPECT_TRUE(mark.attached);
}

TEST_P(StoreContract, KeepsTheLastMarkOfAReaderThatLeaves)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    ASSERT_TRUE(append(key, open_read(key, one)->fence, {event("a"), event("b")}));
    auto last = mark_at(2, 2, 1);
    last.attached = false;
    store().detach(key, one.id, last);
    ASSERT_TRUE(is_left(key));
    EXPECT_EQ(reader(key)->position, 2u);
    EXPECT_EQ(reader(key)->sent, 2u);
    EXPECT_EQ(reader(key)->delivered, 1u);
    // What arrives after that is told by who served it.
    store().note_delivered(key, 2);
    EXPECT_EQ(delivered(key, 2), 2u);
}

// --- the standalone stream: a fight of two tabs, and policies

TEST_P(StoreContract, RefusesTheFourthTakeoverWithinTheWindow)
{
    stream_key const key{made(), standalone};
    follow(key, reader_of(1));
    for (std::uint64_t n = 2; n <= 1 + takeovers_per_window; ++n)
        for (int i = 0; i < 3; ++i) // asking again is no takeover
            ASSERT_TRUE(attach(key, from_start(reader_of(n)))) << n;
    EXPECT_EQ(error_of(attach(key, from_start(reader_of(5)))), errc::conflict);
    EXPECT_EQ(why_dismissed(reader_of(4), key), std::nullopt); // it stays
    auto by_broken = from_start(reader_of(6));
    by_broken.broken = reader_of(3).id; // not the one that is there
    EXPECT_EQ(error_of(attach(key, by_broken)), errc::conflict);
    advance(takeover_window + moment);
    EXPECT_TRUE(attach(key, from_start(reader_of(5))));
    EXPECT_EQ(why_dismissed(reader_of(4), key), dismissal::taken_over);
}

TEST_P(StoreContract, TakesOverFromABrokenReaderHoweverOften)
{
    stream_key const key{made(), standalone};
    follow(key, reader_of(1));
    for (std::uint64_t n = 2; n <= 9; ++n) {
        auto request = from_start(reader_of(n));
        request.broken = reader_of(n - 1).id;
        ASSERT_TRUE(attach(key, request)) << n;
        EXPECT_EQ(why_dismissed(reader_of(n - 1), key), dismissal::taken_over);
    }
    // None of them counted.
    EXPECT_TRUE(attach(key, from_start(reader_of(10))));
}

TEST_P(StoreContract, TakesOverAStreamThatNobodyReadsHoweverOften)
{
    stream_key const key{made(), standalone};
    for (std::uint64_t n = 1; n <= 9; ++n) {
        leave(key, follow(key, reader_of(n)));
        ASSERT_TRUE(is_left(key));
    }
}

TEST_P(StoreContract, TakesARequestStreamOverHoweverOften)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(open_read(key, reader_of(1)));
    for (std::uint64_t n = 2; n <= 9; ++n)
        EXPECT_TRUE(attach(key, from_start(reader_of(n)))) << n;
}

TEST_P(StoreContract, TellsAReaderWhoseNumberIsOldThatItIs)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(open_read(key, reader_of(1)));
    ASSERT_TRUE(attach(key, from_start(reader_of(3))));
    EXPECT_EQ(error_of(attach(key, from_start(reader_of(2)))), errc::fenced);
    EXPECT_EQ(why_dismissed(reader_of(3), key), std::nullopt); // it stays
}

TEST_P(StoreContract, RefusesASecondReaderWhereThePolicyIsAgainstIt)
{
    stream_key const key{made(), standalone};
    auto request = from_start(reader_of(1));
    request.policy = standalone_policy::conflict;
    ASSERT_TRUE(attach(key, request));
    ASSERT_TRUE(attach(key, request)); // the same reader
    request.reader = reader_of(2);
    EXPECT_EQ(error_of(attach(key, request)), errc::conflict);
    EXPECT_EQ(why_dismissed(reader_of(1), key), std::nullopt);
    request.broken = reader_of(1).id;
    EXPECT_TRUE(attach(key, request));
    leave(key, reader_of(1));
    leave(key, reader_of(2));
    ASSERT_TRUE(is_left(key));
    request.broken.reset();
    request.reader = reader_of(3);
    EXPECT_TRUE(attach(key, request));
}

// --- readers of the dead

TEST_P(StoreContract, DoesNotWaitForTheReaderOfADeadOwner)
{
    stream_key const key{made(), 1};
    auto const owner = mortal();
    ASSERT_TRUE(append(key, open_read(key, reader_of(1, owner))->fence, {event("a")}));
    advance(lease + moment);
    auto const attached = attach(key, from_start(reader_of(2)));
    ASSERT_TRUE(attached);
    EXPECT_FALSE(attached->waits);
    EXPECT_EQ(texts(attached->first), strings{"a"});
}

TEST_P(StoreContract, DoesNotFightWithTheDead)
{
    stream_key const key{made(), standalone};
    for (std::uint64_t n = 1; n <= 9; ++n)
        ASSERT_TRUE(attach(key, from_start(reader_of(1, "stranger/" + std::to_string(n))))) << n;
    auto request = from_start(reader_of(1));
    request.policy = standalone_policy::conflict;
    EXPECT_TRUE(attach(key, request));
}

TEST_P(StoreContract, ForgetsTheReadersOfADeadOwner)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(open_read(key, reader_of(1, mortal())));
    ASSERT_TRUE(is_followed(key));
    advance(lease + moment);
    ASSERT_EQ(lapsed(), ids{}); // its call lives elsewhere
    EXPECT_FALSE(reader(key)->attached);
    EXPECT_EQ(list()->sessions.at(0).readers, 0u);
}

// --- the budget of a session

TEST_P(StoreContract, DismissesTheOneThatHasReadLongestForTheBudget)
{
    auto const session = made();
    for (std::uint64_t n = 1; n <= 2; ++n)
        ASSERT_TRUE(open_read({session, n}, reader_within(2, n)));
    auto const dismissed = watch({session, 1}, event_store::interest::dismissal);
    ASSERT_TRUE(open_read({session, 3}, reader_within(2, 3)));
    EXPECT_TRUE(is_woken(dismissed));
    EXPECT_EQ(why_dismissed(reader_of(1), {session, 1}), dismissal::over_budget);
    EXPECT_EQ(why_dismissed(reader_of(2), {session, 2}), std::nullopt);
    EXPECT_EQ(why_dismissed(reader_of(3), {session, 3}), std::nullopt);
    // It does not count any more, though it has not left yet.
    ASSERT_TRUE(open_read({session, 4}, reader_within(3, 4)));
    EXPECT_EQ(why_dismissed(reader_of(2), {session, 2}), std::nullopt);
    // Who comes back is the youngest.
    leave({session, 1}, reader_of(1));
    ASSERT_TRUE(attach({session, 1}, from_start(reader_within(3, 5))));
    EXPECT_EQ(why_dismissed(reader_of(2), {session, 2}), dismissal::over_budget);
    EXPECT_EQ(why_dismissed(reader_of(3), {session, 3}), std::nullopt);
}

TEST_P(StoreContract, CountsReadersOfAllNodesForTheBudget)
{
    auto const session = made();
    auto const within_2 = [](std::uint64_t connection, std::string const& owner) {
        auto reader = reader_of(connection, owner);
        reader.budget = 2;
        return reader;
    };
    ASSERT_TRUE(open_read({session, 1}, within_2(1, node_1)));
    ASSERT_TRUE(open_read({session, 2}, within_2(1, node_2)));
    ASSERT_TRUE(open_read({session, 3}, within_2(2, node_2)));
    EXPECT_EQ(why_dismissed(reader_of(1, node_1), {session, 1}), dismissal::over_budget);
    EXPECT_EQ(why_dismissed(reader_of(1, node_2), {session, 2}), std::nullopt);
}

TEST_P(StoreContract, DoesNotCountTheReaderThatIsTakenOverFrom)
{
    auto const session = made();
    ASSERT_TRUE(open_read({session, 1}, reader_within(2, 1)));
    ASSERT_TRUE(open_read({session, 2}, reader_within(2, 2)));
    ASSERT_TRUE(attach({session, 2}, from_start(reader_within(2, 3))));
    EXPECT_EQ(why_dismissed(reader_of(1), {session, 1}), std::nullopt);
    EXPECT_EQ(why_dismissed(reader_of(2), {session, 2}), dismissal::taken_over);
}

TEST_P(StoreContract, DoesNotDismissWhoCannotReturn)
{
    auto const session = made();
    ASSERT_TRUE(open_read({session, 1}, reader_within(2, 1, false)));
    ASSERT_TRUE(open_read({session, 2}, reader_within(2, 2, true)));
    ASSERT_TRUE(open_read({session, 3}, reader_within(2, 3, false)));
    EXPECT_EQ(why_dismissed(reader_of(1), {session, 1}), std::nullopt);
    EXPECT_EQ(why_dismissed(reader_of(2), {session, 2}), dismissal::over_budget);
}

TEST_P(StoreContract, RefusesANewCallWhereNobodyCanBeDismissed)
{
    auto const session = made();
    ASSERT_TRUE(open_read({session, 1}, reader_within(2, 1, false)));
    ASSERT_TRUE(open_read({session, 2}, reader_within(2, 2, false)));
    finished_and_delivered({session, 3}, {"3"});
    auto const before = bytes();
    EXPECT_EQ(error_of(open_read({session, 4}, reader_within(2, 3))), errc::too_many_streams);
    EXPECT_FALSE(exists({session, 4}));
    EXPECT_TRUE(exists({session, 3}));
    EXPECT_TRUE(uses_bytes(before));
    EXPECT_EQ(list()->sessions.at(0).readers, 2u);
    // A call that nobody reads is no matter of the budget, and who comes back is not refused.
    EXPECT_TRUE(try_open({session, 5}, {"5"}));
    EXPECT_TRUE(attach({session, 5}, from_start(reader_within(2, 4))));
    EXPECT_EQ(list()->sessions.at(0).readers, 3u);
}

TEST_P(StoreContract, DismissesNobodyForACallThatIsRefused)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    ASSERT_TRUE(open_read({session, 1}, reader_within(1, 1)));
    EXPECT_EQ(error_of(open_read({session, 2}, reader_within(1, 2))), errc::too_many_streams);
    EXPECT_EQ(why_dismissed(reader_of(1), {session, 1}), std::nullopt);
    auto meta = meta_of({"0"});
    meta.held_bytes = limit_.bytes_per_session * 2;
    EXPECT_FALSE(open_as({session, 2}, meta, node_1, reader_within(1, 2)));
    EXPECT_EQ(why_dismissed(reader_of(1), {session, 1}), std::nullopt);
}

TEST_P(StoreContract, DropsNothingForACallThatIsRefused)
{
    limit_.streams_per_session = 2;
    auto const session = made();
    ASSERT_TRUE(open_read({session, 1}, reader_within(1, 1, false)));
    finished_and_delivered({session, 2}, {"2"});
    EXPECT_EQ(error_of(open_read({session, 3}, reader_within(1, 2))), errc::too_many_streams);
    EXPECT_TRUE(exists({session, 2}));
}

TEST_P(StoreContract, RemembersThatAPageUsesTheSession)
{
    auto const session = made();
    auto of_page = reader_of(1);
    of_page.is_of_page = true;
    of_page.budget_of_page = 2;
    ASSERT_TRUE(open_read({session, 1}, of_page));
    leave({session, 1}, of_page);
    ASSERT_TRUE(is_left({session, 1}));
    for (std::uint64_t n = 2; n <= 4; ++n) {
        auto other = reader_of(n);
        other.budget_of_page = 2;
        ASSERT_TRUE(open_read({session, n}, other));
    }
    EXPECT_EQ(why_dismissed(reader_of(2), {session, 2}), dismissal::over_budget);
    EXPECT_EQ(why_dismissed(reader_of(3), {session, 3}), std::nullopt);
    // Another session is not the page's.
    auto const own = made(2);
    for (std::uint64_t n = 2; n <= 4; ++n) {
        auto other = reader_of(n);
        other.budget_of_page = 2;
        ASSERT_TRUE(open_read({own, n}, other));
    }
    EXPECT_EQ(why_dismissed(reader_of(2), {own, 2}), std::nullopt);
}

TEST_P(StoreContract, DoesNotCountTheReadersOfTheDead)
{
    auto const session = made();
    auto dead = reader_within(1, 1, false);
    dead.id.owner = mortal();
    ASSERT_TRUE(open_read({session, 1}, dead));
    EXPECT_EQ(error_of(open_read({session, 2}, reader_within(1, 2))), errc::too_many_streams);
    advance(lease + moment);
    EXPECT_TRUE(open_read({session, 2}, reader_within(1, 2)));
}

// --- dismissed by its call

TEST_P(StoreContract, TellsAReaderWhyItIsDismissedAndWhenToReturn)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    ASSERT_TRUE(open_read(key, one));
    auto const dismissed = watch(key, event_store::interest::dismissal);
    store().dismiss(key, {dismissal::asked, std::chrono::milliseconds(1500)});
    EXPECT_TRUE(is_woken(dismissed));
    auto const page = read_as(one, key);
    ASSERT_TRUE(page);
    ASSERT_TRUE(page->dismissed);
    EXPECT_EQ(page->dismissed->why, dismissal::asked);
    EXPECT_EQ(page->dismissed->retry, std::chrono::milliseconds(1500));
    leave(key, one);
    ASSERT_TRUE(is_left(key));
    // The next one is another.
    follow(key, reader_of(2));
    EXPECT_EQ(why_dismissed(reader_of(2), key), std::nullopt);
    store().dismiss(key, {dismissal::stalled, {}});
    auto const stalled = read_as(reader_of(2), key);
    ASSERT_TRUE(stalled && stalled->dismissed);
    EXPECT_EQ(stalled->dismissed->why, dismissal::stalled);
    EXPECT_EQ(stalled->dismissed->retry, std::nullopt);
}

TEST_P(StoreContract, AsksNobodyToLeaveWhoCannotReturn)
{
    stream_key const key{made(), 1};
    auto one = reader_of(1);
    one.can_return = false;
    ASSERT_TRUE(open_read(key, one));
    store().dismiss(key, {dismissal::asked, {}});
    EXPECT_EQ(why_dismissed(one, key), std::nullopt);
    store().dismiss(key, {dismissal::stalled, {}}); // that is no favour
    EXPECT_EQ(why_dismissed(one, key), dismissal::stalled);
}

TEST_P(StoreContract, DismissesNobodyWhereNobodyReads)
{
    stream_key const key{made(), 1};
    opened(key);
    store().dismiss(key, {dismissal::asked, {}});
    follow(key, reader_of(1));
    EXPECT_EQ(why_dismissed(reader_of(1), key), std::nullopt);
}

}

}
