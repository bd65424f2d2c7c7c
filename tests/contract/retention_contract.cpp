// What is kept, for how long, and within which limits.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

// --- retention

TEST_P(StoreContract, KeepsTheNewestEventsByCount)
{
    limit_.events_per_stream = 3;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(append(key, fence, {event("x")}));
    auto const page = read(key);
    EXPECT_EQ(sequences(page), (numbers{8, 9, 10}));
    EXPECT_EQ(page->state.first_kept, 8u);
    EXPECT_EQ(page->state.top.sequence, 10u);
}

TEST_P(StoreContract, TrimsWithinABatch)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c"), event("d")}));
    EXPECT_EQ(texts(read(key)), (strings{"c", "d"}));
}

TEST_P(StoreContract, KeepsTheNewestEventsByBytes)
{
    limit_.bytes_per_stream = 64 * 1024;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    for (int i = 0; i < 50; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(8 * 1024, 'x'))}));
    auto const kept = sequences(read(key));
    EXPECT_LE(kept.size(), 8u);
    EXPECT_GE(kept.size(), 6u);
    EXPECT_EQ(kept.back(), 50u);
}

TEST_P(StoreContract, ReadsOnFromATrimmedAnchor)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c"), event("d")}));
    EXPECT_EQ(sequences(read(key, 1)), (numbers{3, 4}));
}

TEST_P(StoreContract, KeepsAnUndeliveredResponseThatTheCountHasPassedBy)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a"), response("answer"), event("c"), event("d"), event("e")}));
    auto const page = read(key);
    EXPECT_EQ(sequences(page), (numbers{2, 4, 5}));
    EXPECT_EQ(page->state.first_kept, 2u);
}

TEST_P(StoreContract, KeepsAnUndeliveredResponseThatBytesHavePassedBy)
{
    limit_.bytes_per_stream = 64 * 1024;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {response("answer")}));
    for (int i = 0; i < 30; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(8 * 1024, 'x'))}));
    EXPECT_EQ(sequences(read(key)).front(), 1u);
}

TEST_P(StoreContract, PagesThroughPinnedResponses)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    ASSERT_TRUE(
        append(key, opened(key), {response("a"), event("b"), response("c"), event("d"), event("e"), event("f")}));
    EXPECT_EQ(sequences(read(key, 0, {2, 1000})), (numbers{1, 3}));
    EXPECT_EQ(sequences(read(key, 1, {2, 1000})), (numbers{3, 5}));
    EXPECT_EQ(sequences(read(key, 3, {2, 1000})), (numbers{5, 6}));
}

TEST_P(StoreContract, KeepsADeliveredAnswerWhileOthersAreToCome)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {response("answer")}));
    deliver(key);
    ASSERT_TRUE(append(key, fence, {event("b"), event("c"), event("d")}));
    EXPECT_EQ(sequences(read(key)), (numbers{1, 3, 4}));
}

TEST_P(StoreContract, KeepsWhatTheCountHasPassedByAlsoOnceItIsDelivered)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"1", "2"});
    ASSERT_TRUE(append(key, fence, {response("answer"), question("q", 1), event("c"), event("d")}));
    ASSERT_EQ(sequences(read(key)), (numbers{1, 2, 3, 4}));
    deliver(key);
    ASSERT_TRUE(append(key, fence, {event("e")}));
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2, 4, 5}));
    EXPECT_EQ(state_of(key).first_kept, 1u);
}

TEST_P(StoreContract, TrimsAQuestionThatTheCountHadPassedByOnceItIsBlank)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1), event("b"), event("c")}));
    ASSERT_EQ(sequences(read(key)), (numbers{1, 2, 3}));
    ASSERT_TRUE(blank(key, fence, 1));
    ASSERT_TRUE(append(key, fence, {event("d")}));
    EXPECT_EQ(sequences(read(key)), (numbers{3, 4}));
}

TEST_P(StoreContract, AgesARequestStreamFromItsFinish)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    advance(limit_.event_age * 2);
    finish(key, fence);
    deliver(key);
    sweep_after(limit_.event_age - moment);
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2}));
    sweep_after(2 * moment);
    EXPECT_FALSE(exists(key));
}

TEST_P(StoreContract, NeverAgesAnOpenRequestStream)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a")}));
    sweep_after(limit_.event_age * 100);
    EXPECT_EQ(sequences(read(key)), numbers{1});
}

TEST_P(StoreContract, KeepsAnUndeliveredResponseBeyondItsAge)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    finish(key, fence);
    sweep_after(limit_.event_age * 10);
    auto const page = read(key);
    EXPECT_EQ(sequences(page), numbers{2});
    EXPECT_TRUE(page->state.finished);
}

TEST_P(StoreContract, DropsAnAgedStreamOnceItsResponseIsDelivered)
{
    stream_key const key{made(), 1};
    finish(key, opened(key));
    sweep_after(limit_.event_age * 2);
    ASSERT_TRUE(exists(key));
    deliver(key);
    sweep_after(limit_.event_age * 2);
    EXPECT_FALSE(exists(key));
}

TEST_P(StoreContract, DoesNotAgeAStreamThatIsBeingRead)
{
    stream_key const key{made(), 1};
    finish(key, opened(key));
    auto const one = follow(key, reader_of(1));
    store().note_reader(key, one.id, mark_at(1, 6, 1));
    ASSERT_EQ(delivered(key, 1), 1u);
    sweep_after(limit_.event_age * 2);
    EXPECT_EQ(sequences(read(key)), numbers{1});
}

TEST_P(StoreContract, AgesTheStandaloneStreamEventByEvent)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a")}));
    advance(limit_.event_age / 2);
    ASSERT_TRUE(announce(key.session, {event("b")}));
    sweep_after(limit_.event_age / 2 + moment);
    EXPECT_EQ(sequences(read(key)), numbers{2});
    sweep_after(limit_.event_age / 2);
    auto const page = read(key);
    EXPECT_EQ(sequences(page), numbers{});
    EXPECT_EQ(page->state.top.sequence, 2u);
    EXPECT_EQ(page->state.first_kept, 3u);
}

TEST_P(StoreContract, GoesOnNumberingAfterEverythingHasAged)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a"), event("b")}));
    sweep_after(limit_.event_age + moment);
    EXPECT_EQ(announce(key.session, {event("c")})->sequence, 3u);
    sweep_after(limit_.event_age + moment);
    EXPECT_EQ(sequences(read(key)), numbers{});
}

TEST_P(StoreContract, BoundsTheBytesOfASession)
{
    limit_.bytes_per_session = 128 * 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(8 * 1024, 'x'))}));
    EXPECT_TRUE(uses_bytes_between(0, limit_.bytes_per_session));
    EXPECT_EQ(sequences(read(key)).back(), 100u);
}

TEST_P(StoreContract, TrimsTheAppendingStreamNotAnother)
{
    limit_.bytes_per_session = 128 * 1024;
    auto const session = made();
    stream_key const quiet{session, 1};
    stream_key const loud{session, 2};
    ASSERT_TRUE(append(quiet, opened(quiet), {event(std::string(32 * 1024, 'q'))}));
    auto const fence = opened(loud, {"2"});
    for (int i = 0; i < 50; ++i)
        ASSERT_TRUE(append(loud, fence, {event(std::string(8 * 1024, 'x'))}));
    EXPECT_EQ(sequences(read(quiet)), numbers{1});
}

TEST_P(StoreContract, RefusesNewCallsOfAFullSession)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    std::error_code why;
    for (int i = 0; i < 1000 && !why; ++i)
        why = error_of(append(key, fence, {response(std::string(1024, 'x'))}));
    EXPECT_EQ(why, errc::no_space);
    std::error_code refused;
    for (stream_id id = 2; id < 200 && !refused; ++id)
        refused = error_of(try_open({session, id}));
    EXPECT_EQ(refused, errc::no_space);
}

TEST_P(StoreContract, DropsFinishedAndDeliveredStreamsForBytes)
{
    limit_.bytes_per_session = 128 * 1024;
    auto const session = made();
    stream_key const old{session, 1};
    auto const old_fence = opened(old);
    ASSERT_TRUE(append(old, old_fence, {event(std::string(60 * 1024, 'o'))}));
    finish(old, old_fence);
    deliver(old);
    stream_key const key{session, 2};
    auto const fence = opened(key, {"2"});
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(10 * 1024, 'x'))}));
    EXPECT_FALSE(exists(old));
    EXPECT_EQ(sequences(read(key)).size(), 10u);
}

TEST_P(StoreContract, BoundsTheBytesOfAllSessions)
{
    limit_.bytes_total = 256 * 1024;
    limit_.bytes_per_session = 256 * 1024;
    for (std::uint64_t n = 1; n <= 10; ++n) {
        if (!create(key_of(n)))
            continue;
        stream_key const key{key_of(n), 1};
        if (auto const stream = try_open(key))
            for (int i = 0; i < 20; ++i)
                (void)append(key, stream->fence, {event(std::string(8 * 1024, 'x'))});
    }
    EXPECT_TRUE(uses_bytes_between(limit_.bytes_total / 2, limit_.bytes_total));
}

TEST_P(StoreContract, BoundsTheBytesOfAPrincipal)
{
    limit_.bytes_per_principal = 128 * 1024;
    auto const fill = [&](session_key const& session) {
        stream_key const key{session, 1};
        auto const stream = try_open(key);
        for (std::size_t size = stream ? 8 * 1024 : 0; size > 100; size /= 2)
            while (append(key, stream->fence, {response(std::string(size, 'x'))})) {
            }
    };
    made(1, "ann");
    made(2, "ann");
    made(3, "ann");
    fill(key_of(1, "ann"));
    fill(key_of(2, "ann"));
    EXPECT_TRUE(uses_bytes_between(0, limit_.bytes_per_principal));
    EXPECT_EQ(error_of(try_open({key_of(3, "ann"), 1})), errc::no_space);
    EXPECT_EQ(error_of(create(key_of(5, "ann"))), errc::no_space);
    // Another's room is not touched, and an ended session gives its own back.
    EXPECT_TRUE(try_open({made(4, "bob"), 1}));
    ASSERT_TRUE(remove(key_of(1, "ann")));
    EXPECT_TRUE(try_open({key_of(3, "ann"), 1}));
}

TEST_P(StoreContract, KeepsRoomForTheAnswerOfEveryCall)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    stream_key const greedy{session, 1};
    stream_key const modest{session, 2};
    auto const greedy_fence = opened(greedy, {"1"});
    auto const modest_fence = opened(modest, {"2"});
    std::uint32_t asked = 0;
    while (append(greedy, greedy_fence, {question(std::string(512, 'x'), ++asked)})) {
    }
    // The reserve beyond the limit goes to an answer as large as it takes.
    std::size_t size = 32 * 1024;
    while (size > 100 && !append(greedy, greedy_fence, {response(std::string(size, 'y'))}, true))
        size -= 100;
    ASSERT_GT(size, 100u);
    EXPECT_TRUE(append(modest, modest_fence, {response(std::string(300, 'z'))}, true));
}

// --- use

TEST_P(StoreContract, CountsWhatItUses)
{
    EXPECT_TRUE(uses_bytes(0));
    auto const session = made();
    opened({session, 1});
    ASSERT_TRUE(announce(session, {event(std::string(1000, 'x'))}));
    EXPECT_TRUE(has_sessions(1));
    EXPECT_TRUE(has_streams(2));
    EXPECT_TRUE(uses_bytes_between(1000, 8000));
}

}

}
