// Calls and their owners: leases, claims, mail.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

// --- calls

TEST_P(StoreContract, LapsesTheCallsOfAnOwnerThatDoesNotRenew)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    opened({session, 1}, "1", "node/1");
    EXPECT_EQ(lapsed(), ids{});
    now_ += std::chrono::seconds(15);
    EXPECT_EQ(lapsed(), ids{1});
}

TEST_P(StoreContract, DoesNotLapseTheCallsOfAnOwnerThatRenews)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    store().renew("node/2", now_ + std::chrono::seconds(15));
    opened({session, 1}, "1", "node/1");
    opened({session, 2}, "2", "node/2");
    now_ += std::chrono::seconds(10);
    store().renew("node/1", now_ + std::chrono::seconds(15));
    now_ += std::chrono::seconds(10);
    EXPECT_EQ(lapsed(), ids{2});
}

TEST_P(StoreContract, DoesNotLapseAFinishedCall)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    finish({session, 1}, opened({session, 1}));
    now_ += std::chrono::hours(1);
    EXPECT_EQ(lapsed(), ids{});
}

TEST_P(StoreContract, GivesAtMostAsManyLapsedCallsAsAsked)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    for (stream_id id = 1; id <= 5; ++id)
        opened({session, id}, std::to_string(id));
    now_ += std::chrono::hours(1);
    EXPECT_EQ(lapsed(3).size(), 3u);
}

TEST_P(StoreContract, HandsAClaimedCallToItsNewOwner)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    opened({session, 1}, "1", "node/1");
    now_ += std::chrono::seconds(20);
    store().renew("node/2", now_ + std::chrono::seconds(15));
    ASSERT_TRUE(claim({session, 1}, "node/2"));
    EXPECT_EQ(lapsed(), ids{});
    EXPECT_EQ(find(session, "1")->owner, "node/2");
}

TEST_P(StoreContract, FindsTheNewestCallWithALabel)
{
    auto const session = made();
    opened({session, 50}, "0");
    opened({session, 10}, "0", "node/2");
    opened({session, 90}, "1");
    auto const found = find(session, "0");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->stream, (stream_key{session, 10}));
    EXPECT_EQ(found->owner, "node/2");
    EXPECT_EQ(found->label, "0");
}

TEST_P(StoreContract, TellsTheLabelsOfANumberAndAStringApart)
{
    auto const session = made();
    opened({session, 1}, "1");
    opened({session, 2}, "\"1\"");
    EXPECT_EQ(find(session, "1")->stream.stream, 1u);
    EXPECT_EQ(find(session, "\"1\"")->stream.stream, 2u);
}

TEST_P(StoreContract, FindsNoOlderCallBehindAnAnswerThatHasNotArrived)
{
    auto const session = made();
    opened({session, 1}, "0");
    finish({session, 2}, opened({session, 2}, "0"));
    EXPECT_EQ(error_of(find(session, "0")), errc::finished);
    // Once it has, whoever names the id cannot mean the call that it belongs to.
    store().note_delivered({session, 2}, 1);
    EXPECT_EQ(find(session, "0")->stream.stream, 1u);
}

TEST_P(StoreContract, FindsTheNewestRunningCallWhateverBecameOfOlderOnes)
{
    auto const session = made();
    finish({session, 1}, opened({session, 1}, "0"));
    opened({session, 2}, "0");
    EXPECT_EQ(find(session, "0")->stream.stream, 2u);
}

TEST_P(StoreContract, FindsNoRequestOfABatchThatHasItsAnswer)
{
    auto const session = made();
    opened({session, 1}, "7");
    stream_key const batch{session, 2};
    auto const fence = opened(batch, "6\n7");
    EXPECT_EQ(find(session, "7")->stream.stream, 2u);
    ASSERT_TRUE(append(batch, fence, {{response("answer to 7").payload, event_kind::response, 1}}));
    EXPECT_EQ(error_of(find(session, "7")), errc::finished);
    store().note_delivered(batch, 1);
    EXPECT_EQ(find(session, "7")->stream.stream, 1u);
    EXPECT_EQ(find(session, "6")->stream.stream, 2u);
}

TEST_P(StoreContract, RefusesAnIdInUseWhereIdsAreUnique)
{
    auto const session = made();
    auto const open_unique = [&](stream_id id, std::string label) {
        stream_meta meta{stream_kind::request, "tag", std::move(label)};
        meta.has_unique_ids = true;
        return await<opened_stream>(
            [&](auto done) { store().open({session, id}, meta, "node/1", now_, std::move(done)); });
    };
    auto const first = open_unique(1, "0");
    ASSERT_TRUE(first);
    EXPECT_EQ(error_of(open_unique(2, "0")), errc::duplicate_id);
    EXPECT_EQ(error_of(open_unique(2, "5\n0")), errc::duplicate_id);
    EXPECT_EQ(error_of(open_unique(2, "6\n7\n6")), errc::duplicate_id); // in one batch
    EXPECT_FALSE(exists({session, 2}));
    EXPECT_TRUE(open_unique(3, "\"0\"")); // another id
    EXPECT_TRUE(try_open({session, 4}, "0")); // who does not ask for it
    finish({session, 1}, first->fence);
    EXPECT_EQ(error_of(open_unique(5, "0")), errc::duplicate_id); // of the fourth
    EXPECT_TRUE(await<opened_stream>([&](auto done) {
        stream_meta meta{stream_kind::request, "tag", "0"};
        meta.has_unique_ids = true;
        store().open({made(2), 1}, std::move(meta), "node/1", now_, std::move(done)); // another session
    }));
}

TEST_P(StoreContract, TellsWhichRequestsOfAClaimedCallHaveNoAnswer)
{
    auto const session = made();
    stream_key const batch{session, 1};
    auto const fence = opened(batch, "1\n2\n3");
    ASSERT_TRUE(append(batch, fence, {{response("two").payload, event_kind::response, 1}}));
    auto const claimed = claim(batch, "node/2");
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->unanswered, (std::vector<std::uint32_t>{0, 2}));
}

TEST_P(StoreContract, FindsNothingForAnUnusedLabel)
{
    auto const session = made();
    ASSERT_TRUE(append({session, standalone}, 0, {event("a")}));
    EXPECT_EQ(error_of(find(session, "0")), errc::not_found);
    EXPECT_EQ(error_of(find(session, "")), errc::not_found);
    EXPECT_EQ(error_of(find(key_of(2), "0")), errc::not_found);
}

TEST_P(StoreContract, ListsTheRunningCallsOfASession)
{
    auto const session = made();
    opened({session, 1});
    finish({session, 2}, opened({session, 2}));
    opened({session, 3});
    ASSERT_TRUE(append({session, standalone}, 0, {event("a")}));
    opened({made(2), 4});
    EXPECT_EQ(running(session), (ids{1, 3}));
}

// --- mail

TEST_P(StoreContract, BringsAMessageToTheOwner)
{
    auto const session = made();
    std::vector<owner_message> got;
    auto const mine = store().listen("node/1", [&](owner_message message) { got.push_back(std::move(message)); });
    auto const other = store().listen("node/2", [](owner_message) { FAIL() << "a message for another owner"; });
    ASSERT_TRUE(send("node/1", {{session, 5}, "cancel", "body"}));
    GetParam().wait([&] { return !got.empty(); });
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].stream, (stream_key{session, 5}));
    EXPECT_EQ(got[0].kind, "cancel");
    EXPECT_EQ(got[0].body, "body");
}

TEST_P(StoreContract, TellsThatAnOwnerDoesNotListen)
{
    auto const session = made();
    EXPECT_EQ(error_of(send("node/1", {{session, 5}, "cancel", ""})), errc::not_found);
    auto handle = store().listen("node/1", [](owner_message) { FAIL() << "nobody listens any more"; });
    handle.reset();
    EXPECT_EQ(error_of(send("node/1", {{session, 5}, "cancel", ""})), errc::not_found);
}

}

}
