// Requests: keys under which a call is made once, questions, several on one stream.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

// --- calls that are to be made once

TEST_P(StoreContract, TellsWhichCallTheSecondWithAKeyRepeats)
{
    auto const session = made();
    auto const first = open_once({session, 1}, "k");
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->repeats);
    auto const second = open_once({session, 2}, "k");
    ASSERT_TRUE(second);
    EXPECT_EQ(second->repeats, stream_id(1));
    finish({session, 1}, first->fence);
    auto const third = open_once({session, 3}, "k");
    ASSERT_TRUE(third);
    EXPECT_EQ(third->repeats, stream_id(1)); // the first, not the newest
    // Other keys and other sessions have nothing to do with it.
    EXPECT_FALSE(open_once({session, 4}, "other")->repeats);
    EXPECT_FALSE(open_once({made(2), 5}, "k")->repeats);
    EXPECT_FALSE(try_open({session, 6})->repeats);
}

TEST_P(StoreContract, RefusesAKeyOfAnotherCall)
{
    auto const session = made();
    ASSERT_TRUE(open_once({session, 1}, "k", 7));
    EXPECT_EQ(error_of(open_once({session, 2}, "k", 8)), errc::key_mismatch);
    EXPECT_FALSE(exists({session, 2}));
}

TEST_P(StoreContract, RemembersAKeyLongerThanItsStream)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    auto const first = open_once({session, 1}, "k");
    ASSERT_TRUE(first);
    finish({session, 1}, first->fence);
    deliver({session, 1});
    opened({session, 2}); // takes its place
    ASSERT_FALSE(exists({session, 1}));
    EXPECT_EQ(error_of(open_once({session, 3}, "k")), errc::key_spent);
}

TEST_P(StoreContract, BoundsTheKeysItRemembers)
{
    limit_.streams_per_session = 1;
    limit_.keys_per_session = 3;
    auto const session = made();
    std::size_t used = 0;
    for (stream_id id = 1; id <= 20; ++id) {
        auto const made_call = open_once({session, id}, "k" + std::to_string(id + 100));
        ASSERT_TRUE(made_call);
        finish({session, id}, made_call->fence);
        deliver({session, id});
        if (id == 10)
            used = bytes();
    }
    EXPECT_TRUE(uses_bytes_between(0, used));
    // Of the twenty the last has its stream, three are remembered.
    for (auto const* key : {"k117", "k118", "k119"})
        EXPECT_EQ(error_of(open_once({session, 100}, key)), errc::key_spent) << key;
    auto const older = open_once({session, 102}, "k116");
    ASSERT_TRUE(older);
    EXPECT_FALSE(older->repeats);
    finish({session, 102}, older->fence);
    deliver({session, 102});
    auto const forgotten = open_once({session, 101}, "k101");
    ASSERT_TRUE(forgotten);
    EXPECT_FALSE(forgotten->repeats);
    ASSERT_TRUE(remove(session));
    EXPECT_TRUE(uses_bytes(0));
}

// --- questions

TEST_P(StoreContract, KeepsAQuestionUntilItIsDeliveredOrBlank)
{
    limit_.events_per_stream = 3;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1), question("r", 2)}));
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(append(key, fence, {event("x")}));
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2, 10, 11, 12}));
    ASSERT_TRUE(blank(key, fence, 1));
    auto const page = read(key);
    ASSERT_TRUE(page);
    EXPECT_EQ(*page->events[0].payload, "");
    EXPECT_EQ(*page->events[1].payload, "r");
    // One that is not kept is no error; one of another owner is.
    EXPECT_TRUE(blank(key, fence, 5));
    EXPECT_TRUE(blank(key, fence, 500));
    EXPECT_EQ(error_of(blank(key, fence + 1, 2)), errc::fenced);
}

TEST_P(StoreContract, GivesBackTheRoomOfABlank)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const before = bytes();
    ASSERT_TRUE(append(key, fence, {question(std::string(5000, 'q'), 1)}));
    ASSERT_TRUE(blank(key, fence, 1));
    EXPECT_TRUE(uses_bytes_between(0, before + 1000));
    ASSERT_TRUE(remove(key.session));
    EXPECT_TRUE(uses_bytes(0));
}

// --- several requests on one stream

TEST_P(StoreContract, FindsACallByEachOfItsRequests)
{
    auto const session = made();
    strings const requests{"1", "\"two\"", "3"};
    opened({session, 1}, requests);
    for (std::uint32_t i = 0; i < requests.size(); ++i) {
        auto const found = find(session, requests[i]);
        ASSERT_TRUE(found) << requests[i];
        EXPECT_EQ(found->stream.stream, 1u);
        EXPECT_EQ(found->request, i);
    }
    EXPECT_EQ(error_of(find(session, "2")), errc::not_found);
    EXPECT_EQ(error_of(find(session, "two")), errc::not_found);
}

TEST_P(StoreContract, KeepsRoomForEachAnswerOfABatch)
{
    limit_.bytes_per_session = 64 * 1024;
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"1", "2", "3"});
    std::uint32_t asked = 0;
    while (append(key, fence, {question(std::string(512, 'x'), ++asked)})) {
    }
    for (std::uint32_t const request : {0u, 1u})
        EXPECT_TRUE(append(key, fence, {response(std::string(500, 'a'), request)}));
    EXPECT_TRUE(append(key, fence, {response(std::string(500, 'a'), 2)}, true));
}

TEST_P(StoreContract, RefusesNewCallsOfAFullStore)
{
    limit_.bytes_total = 64 * 1024;
    stream_key const key{made(1), 1};
    auto const other = made(2);
    auto const fence = opened(key);
    while (append(key, fence, {response(std::string(1024, 'x'))})) {
    }
    std::error_code refused;
    for (stream_id id = 1; id < 200 && !refused; ++id)
        refused = error_of(try_open({other, id}));
    EXPECT_EQ(refused, errc::no_space);
}

TEST_P(StoreContract, TakesAShortAnswerOfEveryOpenCallWhenFull)
{
    limit_.bytes_total = 256 * 1024;
    std::vector<std::pair<stream_key, fence>> calls;
    for (std::uint64_t n = 1; n <= 2; ++n) {
        auto const session = made(n);
        for (stream_id id = 1; id <= 30; ++id)
            calls.emplace_back(stream_key{session, id}, opened({session, id}, {std::to_string(id)}));
    }
    // Undelivered questions cannot be trimmed, so this really fills it.
    std::uint32_t asked = 0;
    while (append(calls[0].first, calls[0].second, {question(std::string(512, 'x'), ++asked)})) {
    }
    for (auto const& [key, fence] : calls)
        EXPECT_TRUE(append(key, fence, {response(std::string(500, 'a'))}, true)) << key.stream;
    for (auto const& [key, fence] : calls)
        EXPECT_EQ(*read(key)->events.back().payload, std::string(500, 'a')) << key.stream;
}

TEST_P(StoreContract, TakesTheAnswerThatRoomWasSetAsideForHoweverLong)
{
    limit_.bytes_per_session = 64 * 1024;
    limit_.event_bytes = 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto meta = meta_of({"1", "2"});
    meta.requests[0].answer_bytes = 3000;
    meta.requests[1].answer_bytes = 5000;
    auto const stream = open_as(key, meta);
    ASSERT_TRUE(stream);
    std::uint32_t asked = 0;
    for (std::size_t size = 1024; size > 1; size /= 2)
        while (append(key, stream->fence, {question(std::string(size, 'x'), ++asked)})) {
        }
    auto const answer
        = [](std::size_t size, std::uint32_t request) { return response(std::string(size, 'a'), request); };
    EXPECT_EQ(error_of(append(key, stream->fence, {answer(3001, 0)})), errc::too_large);
    EXPECT_TRUE(append(key, stream->fence, {answer(3000, 0)}));
    EXPECT_TRUE(append(key, stream->fence, {answer(5000, 1)}, true));
}

TEST_P(StoreContract, ChargesACallForWhatItHoldsUntilItsAnswer)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    auto meta = meta_of();
    meta.held_bytes = 40 * 1024;
    auto const open_holding = [&](stream_id id) { return open_as({session, id}, meta); };
    auto const first = open_holding(1);
    ASSERT_TRUE(first);
    EXPECT_TRUE(uses_bytes_between(40 * 1024, 64 * 1024));
    EXPECT_EQ(error_of(open_holding(2)), errc::no_space);
    finish({session, 1}, first->fence);
    EXPECT_TRUE(uses_bytes_between(0, 8 * 1024));
    EXPECT_TRUE(open_holding(2));
}

TEST_P(StoreContract, ChangesNothingByAnAppendThatDoesNotFit)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("history"), event("more")}));
    EXPECT_EQ(error_of(append(key, fence, {event(std::string(80 * 1024, 'x'))})), errc::no_space);
    EXPECT_EQ(texts(read(key)), (strings{"history", "more"}));
}

TEST_P(StoreContract, DropsTheOldestFinishedAndDeliveredStreamFirst)
{
    limit_.streams_per_session = 3;
    auto const session = made();
    finished_and_delivered({session, 30});
    finished_and_delivered({session, 10});
    finished_and_delivered({session, 20});
    EXPECT_TRUE(try_open({session, 40}));
    EXPECT_FALSE(exists({session, 30}));
    EXPECT_TRUE(exists({session, 10}));
    EXPECT_TRUE(exists({session, 20}));
}

TEST_P(StoreContract, NeverDropsARunningAnUndeliveredOrAnAttachedStreamForAnother)
{
    limit_.streams_per_session = 4;
    auto const session = made();
    opened({session, 1}); // runs
    finish({session, 2}, opened({session, 2})); // undelivered
    finished_and_delivered({session, 3});
    follow({session, 3}, reader_of(2'000'000)); // being read again
    finished_and_delivered({session, 4});
    EXPECT_TRUE(try_open({session, 5}));
    EXPECT_FALSE(exists({session, 4}));
    EXPECT_EQ(error_of(try_open({session, 6})), errc::too_many_streams);
    for (stream_id const id : {1u, 2u, 3u, 5u})
        EXPECT_TRUE(exists({session, id})) << id;
}

TEST_P(StoreContract, DoesNotCountTheStandaloneStream)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    ASSERT_TRUE(announce(session, {event("a")}));
    EXPECT_TRUE(try_open({session, 1}));
    EXPECT_EQ(error_of(try_open({session, 2})), errc::too_many_streams);
}

}

}
