// Calls and their owners: leases, claims, hand-over, and how calls are found.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

// --- leases

TEST_P(StoreContract, LapsesTheCallsOfAnOwnerThatDoesNotRenew)
{
    auto const session = made();
    auto const owner = mortal();
    auto const fence = opened({session, 1}, {"1"}, owner);
    EXPECT_EQ(lapsed(), ids{});
    advance(lease - moment);
    EXPECT_EQ(lapsed(), ids{});
    advance(2 * moment);
    auto const calls = lapsed_calls();
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].stream, (stream_key{session, 1}));
    EXPECT_EQ(calls[0].owner, owner);
    EXPECT_EQ(calls[0].fence, fence);
}

TEST_P(StoreContract, DoesNotLapseTheCallsOfAnOwnerThatRenews)
{
    auto const session = made();
    opened({session, 1}, {"1"}, mortal("mortal/1"));
    opened({session, 2}, {"2"}, mortal("mortal/2"));
    advance(lease - moment);
    ASSERT_TRUE(renew("mortal/1", lease));
    advance(2 * moment);
    EXPECT_EQ(lapsed(), ids{2});
}

TEST_P(StoreContract, TakesAnOwnerThatItHasNeverHeardOfForDead)
{
    auto const session = made();
    opened({session, 1}, {"1"}, "stranger/1");
    EXPECT_EQ(lapsed(), ids{1});
    ASSERT_TRUE(renew("stranger/1", lease));
    EXPECT_EQ(lapsed(), ids{});
}

TEST_P(StoreContract, DoesNotLapseAFinishedCall)
{
    auto const session = made();
    finish({session, 1}, opened({session, 1}, {"1"}, mortal()));
    advance(std::chrono::hours(1));
    EXPECT_EQ(lapsed(), ids{});
}

TEST_P(StoreContract, GivesAtMostAsManyLapsedCallsAsAsked)
{
    auto const session = made();
    for (stream_id id = 1; id <= 5; ++id)
        opened({session, id}, {std::to_string(id)}, "stranger/1");
    EXPECT_EQ(lapsed(3).size(), 3u);
    EXPECT_EQ(lapsed(), (ids{1, 2, 3, 4, 5}));
}

// --- claims

TEST_P(StoreContract, HandsAClaimedCallToItsNewOwner)
{
    auto const session = made();
    auto const fence = opened({session, 1}, {"1"}, mortal());
    advance(lease + moment);
    ASSERT_EQ(lapsed(), ids{1});
    ASSERT_TRUE(claim({session, 1}, fence, node_2));
    EXPECT_EQ(lapsed(), ids{});
    EXPECT_EQ(find(session, "1")->owner, node_2);
}

TEST_P(StoreContract, LetsOneOfTwoRivalsHaveACall)
{
    stream_key const key{made(), 1};
    auto const seen = opened(key, {"1"}, "stranger/1");
    auto const winner = claim(key, seen, node_1);
    ASSERT_TRUE(winner);
    EXPECT_EQ(error_of(claim(key, seen, node_2)), errc::conflict);
    EXPECT_TRUE(append(key, winner->fence, {event("from the winner")}));
    EXPECT_EQ(find(key.session, "1")->owner, node_1);
}

TEST_P(StoreContract, GivesEveryClaimAHigherFence)
{
    stream_key const key{made(), 1};
    auto last = opened(key, {"1"}, "stranger/1");
    for (int i = 0; i < 3; ++i) {
        auto const claimed = claim(key, last, i % 2 ? node_1 : node_2);
        ASSERT_TRUE(claimed);
        EXPECT_GT(claimed->fence, last);
        last = claimed->fence;
    }
    EXPECT_EQ(error_of(claim(key, last + 1, node_2)), errc::conflict); // one that was never given
}

TEST_P(StoreContract, RefusesTheOldFenceEverywhereAfterAClaim)
{
    stream_key const key{made(), 1};
    auto const old = opened(key);
    ASSERT_TRUE(append_batch(key, old, 1, {question("q", 1)}));
    auto const fresh = claim(key, old, node_2);
    ASSERT_TRUE(fresh);
    EXPECT_EQ(error_of(append_batch(key, old, 2, {event("from the old owner")})), errc::fenced);
    EXPECT_EQ(error_of(append_batch(key, old, 1, {question("q", 1)})), errc::fenced);
    EXPECT_EQ(error_of(append_batch(key, old, 3, {response("answer")}, true)), errc::fenced);
    EXPECT_EQ(error_of(blank(key, old, 1)), errc::fenced);
    EXPECT_EQ(error_of(read_mail(key, old)), errc::fenced);
    EXPECT_EQ(error_of(release(key, old)), errc::fenced);
    EXPECT_EQ(lapsed(), ids{});
    // The new owner numbers its appends from one.
    EXPECT_TRUE(append_batch(key, fresh->fence, 1, {event("from the new owner")}));
    EXPECT_EQ(texts(read(key)), (strings{"q", "from the new owner"}));
}

TEST_P(StoreContract, WakesTheOldOwnerAfterAClaim)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const arrives = watch(key, event_store::interest::mail);
    ASSERT_TRUE(claim(key, fence, node_2));
    EXPECT_TRUE(is_woken(arrives));
}

TEST_P(StoreContract, RefusesAClaimOfAFinishedCall)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    finish(key, fence);
    EXPECT_EQ(error_of(claim(key, fence, node_2)), errc::finished);
}

TEST_P(StoreContract, RefusesAClaimOfWhatIsNoCall)
{
    auto const session = made();
    ASSERT_TRUE(announce(session, {event("a")}));
    EXPECT_FALSE(claim({session, standalone}, 0, node_2));
    EXPECT_EQ(error_of(claim({session, 1}, 1, node_2)), errc::stream_gone);
    EXPECT_EQ(error_of(claim({key_of(2), 1}, 1, node_2)), errc::not_found);
}

TEST_P(StoreContract, TellsWhoClaimsACallWhatIsKnownOfIt)
{
    stream_key const key{made(), 1};
    auto meta = meta_of({"1", "\"two\""});
    meta.call_notes = "what it was";
    meta.requests[1].answer_bytes = 1234;
    auto const first = open_as(key, meta, "stranger/1");
    ASSERT_TRUE(first);
    ASSERT_TRUE(append(key, first->fence, {event("four"), event("5")}));
    advance(std::chrono::minutes(3));
    auto const claimed = claim(key, first->fence, node_1);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->meta.kind, stream_kind::request);
    EXPECT_EQ(claimed->meta.dialect, meta.dialect);
    EXPECT_EQ(claimed->meta.call_notes, "what it was");
    ASSERT_EQ(claimed->meta.requests.size(), 2u);
    EXPECT_EQ(claimed->meta.requests[0].id, "1");
    EXPECT_EQ(claimed->meta.requests[1].id, "\"two\"");
    EXPECT_EQ(claimed->meta.requests[1].answer_bytes, 1234u);
    EXPECT_EQ(claimed->top.epoch, epoch);
    EXPECT_EQ(claimed->top.sequence, 2u);
    EXPECT_EQ(claimed->top.offset, 5u);
    EXPECT_GE(claimed->age, std::chrono::minutes(3));
    EXPECT_LT(claimed->age, std::chrono::minutes(3) + moment);
}

TEST_P(StoreContract, CountsTheOwnersOfACall)
{
    stream_key const key{made(), 1};
    auto const second = claim(key, opened(key, {"1"}, "stranger/1"), node_1);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->attempt, 2u);
    auto const third = claim(key, second->fence, node_2);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->attempt, 3u);
}

TEST_P(StoreContract, TellsWhichRequestsOfAClaimedCallHaveNoAnswer)
{
    limit_.events_per_stream = 1;
    stream_key const batch{made(), 1};
    auto const fence = opened(batch, {"1", "2", "3"});
    ASSERT_TRUE(append(batch, fence, {response("two", 1)}));
    deliver(batch);
    ASSERT_TRUE(append(batch, fence, {event("a"), event("b")}));
    ASSERT_EQ(texts(read(batch)), (strings{"two", "b"}));
    auto const claimed = claim(batch, fence, node_2);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->unanswered, (std::vector<std::uint32_t>{0, 2}));
}

TEST_P(StoreContract, TellsWhichQuestionsOfAClaimedCallAreOpen)
{
    limit_.events_per_stream = 4;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("first", 7), event("x"), question("second", 8), question("third", 9)}));
    ASSERT_TRUE(blank(key, fence, 3));
    // One that was delivered is open until it is blank.
    deliver(key);
    ASSERT_TRUE(append(key, fence, {event("a"), event("b"), event("c"), event("d")}));
    ASSERT_EQ(texts(read(key)), (strings{"first", "third", "a", "b", "c", "d"}));
    auto const claimed = claim(key, fence, node_2);
    ASSERT_TRUE(claimed);
    auto open = claimed->questions;
    std::ranges::sort(open);
    EXPECT_EQ(open, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{7, 1}, {9, 4}}));
}

TEST_P(StoreContract, ListsTheUnfinishedCallsOfAnOwner)
{
    auto const session = made(1);
    auto const other = made(2);
    EXPECT_EQ(owned(node_1), ids{});
    opened({session, 1});
    finish({session, 2}, opened({session, 2}, {"2"}));
    auto const third = opened({session, 3}, {"3"});
    opened({session, 4}, {"4"}, node_2);
    auto const fifth = opened({session, 5}, {"5"});
    for (stream_id id = 11; id <= 15; ++id)
        opened({other, id}, {std::to_string(id)});
    ASSERT_TRUE(announce(session, {event("a")}));
    ASSERT_TRUE(claim({session, 3}, third, node_2));
    ASSERT_TRUE(release({session, 5}, fifth));
    for (std::size_t const size : {1u, 2u, 5u, 100u}) {
        EXPECT_EQ(owned(node_1, size), (ids{1, 11, 12, 13, 14, 15})) << size;
        EXPECT_EQ(owned(node_2, size), (ids{3, 4})) << size;
    }
    ASSERT_TRUE(remove(other));
    EXPECT_EQ(owned(node_1, 1), ids{1});
}

// --- release

TEST_P(StoreContract, OffersAReleasedCallToOthers)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    ASSERT_TRUE(release(key, fence));
    auto const calls = lapsed_calls();
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].stream, key);
    EXPECT_EQ(calls[0].owner, "");
    auto const claimed = claim(key, calls[0].fence, node_2);
    ASSERT_TRUE(claimed);
    EXPECT_GT(claimed->fence, fence);
    EXPECT_EQ(claimed->top.sequence, 1u);
    EXPECT_EQ(lapsed(), ids{});
    EXPECT_EQ(error_of(append(key, fence, {event("late")})), errc::fenced);
}

TEST_P(StoreContract, RefusesToReleaseACallOfSomeoneElse)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(error_of(release(key, fence + 1)), errc::fenced);
    EXPECT_EQ(lapsed(), ids{});
}

// --- found by a request's id

TEST_P(StoreContract, FindsTheNewestCallWithARequest)
{
    auto const session = made();
    opened({session, 50}, {"0"});
    auto const fence = opened({session, 10}, {"0"}, node_2);
    opened({session, 90}, {"1"});
    auto const found = find(session, "0");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->stream, (stream_key{session, 10}));
    EXPECT_EQ(found->owner, node_2);
    EXPECT_EQ(found->fence, fence);
    EXPECT_EQ(found->request, 0u);
}

TEST_P(StoreContract, TellsTheIdsOfANumberAndAStringApart)
{
    auto const session = made();
    opened({session, 1}, {"1"});
    opened({session, 2}, {"\"1\""});
    EXPECT_EQ(find(session, "1")->stream.stream, 1u);
    EXPECT_EQ(find(session, "\"1\"")->stream.stream, 2u);
}

TEST_P(StoreContract, FindsNoOlderCallBehindAnAnswerThatHasNotArrived)
{
    auto const session = made();
    opened({session, 1}, {"0"});
    finish({session, 2}, opened({session, 2}, {"0"}));
    EXPECT_EQ(error_of(find(session, "0")), errc::finished);
    // Once it has, whoever names the id cannot mean the call that it belongs to.
    store().note_delivered({session, 2}, 1);
    ASSERT_EQ(delivered({session, 2}, 1), 1u);
    ASSERT_TRUE(find(session, "0"));
    EXPECT_EQ(find(session, "0")->stream.stream, 1u);
}

TEST_P(StoreContract, FindsTheNewestRunningCallWhateverBecameOfOlderOnes)
{
    auto const session = made();
    finish({session, 1}, opened({session, 1}, {"0"}));
    opened({session, 2}, {"0"});
    EXPECT_EQ(find(session, "0")->stream.stream, 2u);
}

TEST_P(StoreContract, FindsNoRequestOfABatchThatHasItsAnswer)
{
    auto const session = made();
    opened({session, 1}, {"7"});
    stream_key const batch{session, 2};
    auto const fence = opened(batch, {"6", "7"});
    EXPECT_EQ(find(session, "7")->stream.stream, 2u);
    EXPECT_EQ(find(session, "7")->request, 1u);
    ASSERT_TRUE(append(batch, fence, {response("answer to 7", 1)}));
    EXPECT_EQ(error_of(find(session, "7")), errc::finished);
    store().note_delivered(batch, 1);
    ASSERT_EQ(delivered(batch, 1), 1u);
    ASSERT_TRUE(find(session, "7"));
    EXPECT_EQ(find(session, "7")->stream.stream, 1u);
    EXPECT_EQ(find(session, "6")->stream.stream, 2u);
}

TEST_P(StoreContract, FindsNothingForAnUnusedId)
{
    auto const session = made();
    ASSERT_TRUE(announce(session, {event("a")}));
    EXPECT_EQ(error_of(find(session, "0")), errc::not_found);
    EXPECT_EQ(error_of(find(session, "")), errc::not_found);
    EXPECT_EQ(error_of(find(key_of(2), "0")), errc::not_found);
}

TEST_P(StoreContract, RefusesAnIdInUseWhereIdsAreUnique)
{
    auto const session = made();
    auto const open_unique = [&](stream_key const& key, strings const& requests) {
        auto meta = meta_of(requests);
        meta.has_unique_ids = true;
        return open_as(key, meta);
    };
    auto const first = open_unique({session, 1}, {"0"});
    ASSERT_TRUE(first);
    EXPECT_EQ(error_of(open_unique({session, 2}, {"0"})), errc::duplicate_id);
    EXPECT_EQ(error_of(open_unique({session, 2}, {"5", "0"})), errc::duplicate_id);
    EXPECT_EQ(error_of(open_unique({session, 2}, {"6", "7", "6"})), errc::duplicate_id); // in one batch
    EXPECT_FALSE(exists({session, 2}));
    EXPECT_TRUE(open_unique({session, 3}, {"\"0\""})); // another id
    EXPECT_TRUE(try_open({session, 4}, {"0"})); // who does not ask for it
    finish({session, 1}, first->fence);
    EXPECT_EQ(error_of(open_unique({session, 5}, {"0"})), errc::duplicate_id); // of the fourth
    EXPECT_TRUE(open_unique({made(2), 1}, {"0"})); // another session
}

// --- what is kept for whoever runs a call again

TEST_P(StoreContract, GivesWhoeverClaimsACallWhatItNeedsToRunItAgain)
{
    stream_key const key{made(), 1};
    stream_meta meta;
    meta.requests = {{"1"}};
    meta.call_notes = "notes";
    meta.caller = {"alice", {"read", "write"}, R"({"sub":"a"})"};
    meta.work = 7;
    auto const opened = open_as(key, meta);
    ASSERT_TRUE(opened);
    auto far = event("far");
    far.progress = 5;
    auto near = event("near");
    near.progress = 2;
    ASSERT_TRUE(append(key, opened->fence, {far, near, question("q", 3), question("r", 4)}));
    ASSERT_TRUE(blank(key, opened->fence, 4));
    ASSERT_TRUE(release(key, opened->fence));
    auto const found = lapsed_calls();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].work, 7u);
    EXPECT_TRUE(found[0].owner.empty());
    for (int i = 0; i < 2; ++i) { // a repetition is told the same
        auto const claimed = claim(key, opened->fence, node_2);
        ASSERT_TRUE(claimed);
        EXPECT_EQ(claimed->meta.call_notes, "notes");
        EXPECT_EQ(claimed->meta.caller, meta.caller);
        EXPECT_EQ(claimed->meta.work, 7u);
        EXPECT_EQ(claimed->attempt, 2u);
        EXPECT_EQ(claimed->progress, 5.0);
        EXPECT_EQ(claimed->last_question, 4u);
        EXPECT_EQ(claimed->questions, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{3, 3}}));
        EXPECT_FALSE(claimed->repeats);
    }
}

TEST_P(StoreContract, CountsOnlyOwnersThatHaveRunACall)
{
    stream_key const key{made(), 1};
    auto fence = opened(key);
    auto const claim_again = [&] {
        auto const claimed = claim(key, fence, node_2);
        ASSERT_TRUE(claimed);
        EXPECT_EQ(claimed->attempt, 2u);
        fence = claimed->fence;
    };
    ASSERT_TRUE(release(key, fence));
    for (int i = 0; i < 2; ++i) {
        claim_again();
        ASSERT_TRUE(release(key, fence, false));
        ASSERT_TRUE(release(key, fence, false)); // a repetition counts no more than once
    }
    claim_again();
}

TEST_P(StoreContract, TellsWhoeverClaimsARepetitionWhatItRepeats)
{
    auto const session = made();
    stream_meta meta;
    meta.requests = {{"1"}};
    meta.once = once_key{"k", 1};
    ASSERT_TRUE(open_as({session, 1}, meta));
    auto const second = open_as({session, 2}, meta);
    ASSERT_TRUE(second);
    auto const claimed = claim({session, 2}, second->fence, node_2);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->repeats, stream_id(1));
}

TEST_P(StoreContract, ChargesASessionForWhoMakesItsCalls)
{
    auto const session = made();
    auto const before = bytes();
    stream_meta meta;
    meta.requests = {{"1"}};
    meta.caller.claims = std::string(10'000, 'x');
    ASSERT_TRUE(open_as({session, 1}, meta));
    EXPECT_TRUE(uses_bytes_between(before + 10'000, before + 20'000));
}

}

}
