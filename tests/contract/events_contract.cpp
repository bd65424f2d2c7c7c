// Events: appended, read, and told of.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

// --- append

TEST_P(StoreContract, GivesConsecutiveSequencesFromOne)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(append(key, fence, {event("a")})->sequence, 1u);
    EXPECT_EQ(append(key, fence, {event("b"), event("c")})->sequence, 3u);
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2, 3}));
}

TEST_P(StoreContract, KeepsABatchInItsOrder)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), response("c")}, true));
    EXPECT_EQ(texts(read(key)), (strings{"a", "b", "c"}));
}

TEST_P(StoreContract, KeepsTheKindOfAnEvent)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), response("b")}));
    auto const page = read(key);
    EXPECT_EQ(page->events[0].kind, event_kind::ordinary);
    EXPECT_EQ(page->events[1].kind, event_kind::response);
}

TEST_P(StoreContract, CountsPayloadBytesInOffsets)
{
    stream_key const key{made(), 1};
    auto const top = append(key, opened(key), {event("four"), event(""), event("sixsix")});
    EXPECT_EQ(top->offset, 10u);
    auto const page = read(key);
    EXPECT_EQ(page->events[0].end_offset, 4u);
    EXPECT_EQ(page->events[1].end_offset, 4u);
    EXPECT_EQ(page->events[2].end_offset, 10u);
}

TEST_P(StoreContract, AppendsNothingOfABatchWithATooLargeEvent)
{
    limit_.event_bytes = 100;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const outcome = append(key, fence, {event("small"), event(std::string(101, 'x')), event("small")});
    EXPECT_EQ(error_of(outcome), errc::too_large);
    EXPECT_EQ(read(key)->state.top.sequence, 0u);
    EXPECT_EQ(append(key, fence, {event("next")})->sequence, 1u);
}

TEST_P(StoreContract, TakesAnEventOfExactlyTheLimit)
{
    limit_.event_bytes = 100;
    stream_key const key{made(), 1};
    EXPECT_TRUE(append(key, opened(key), {event(std::string(100, 'x'))}));
}

TEST_P(StoreContract, DoesNotFinishAStreamByARefusedAppend)
{
    limit_.event_bytes = 100;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_FALSE(append(key, fence, {response(std::string(2000, 'x'))}, true));
    EXPECT_FALSE(read(key)->state.finished);
    EXPECT_TRUE(append(key, fence, {response("shorter")}, true));
}

TEST_P(StoreContract, RefusesAnAppendToAFinishedStream)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    finish(key, fence);
    EXPECT_EQ(error_of(append(key, fence, {event("late")})), errc::finished);
    EXPECT_EQ(error_of(append(key, fence, {response("second answer")}, true)), errc::finished);
    EXPECT_EQ(texts(read(key)), strings{"answer"});
}

TEST_P(StoreContract, RefusesAWrongFence)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(error_of(append(key, fence + 1, {event("a")})), errc::fenced);
    EXPECT_EQ(read(key)->state.top.sequence, 0u);
}

TEST_P(StoreContract, HasTheStandaloneStreamFromItsFirstUse)
{
    auto const page = read({made(), standalone});
    ASSERT_TRUE(page);
    EXPECT_EQ(page->state.top.sequence, 0u);
    EXPECT_EQ(page->state.top.epoch, epoch);
    EXPECT_FALSE(page->state.finished);
}

TEST_P(StoreContract, TakesTheAppendsOfEveryOwnerOnTheStandaloneStream)
{
    stream_key const key{made(), standalone};
    EXPECT_EQ(append_standalone(key, node_1, 1, {event("a")})->sequence, 1u);
    EXPECT_EQ(append_standalone(key, node_2, 1, {event("b"), event("c")})->sequence, 3u);
    EXPECT_EQ(append_standalone(key, node_1, 2, {event("d")})->sequence, 4u);
    EXPECT_EQ(texts(read(key)), (strings{"a", "b", "c", "d"}));
    EXPECT_EQ(state_of(key).top.epoch, epoch);
}

TEST_P(StoreContract, NamesItsEpochEverywhere)
{
    stream_key const key{made(), 1};
    auto const made_stream = try_open(key);
    EXPECT_EQ(made_stream->epoch, epoch);
    EXPECT_EQ(append(key, made_stream->fence, {event("a")})->epoch, epoch);
    EXPECT_EQ(read(key)->state.top.epoch, epoch);
}

TEST_P(StoreContract, DoesNotFindAStreamThatWasNotOpened)
{
    stream_key const key{made(), 1};
    EXPECT_EQ(error_of(append(key, 1, {event("a")})), errc::stream_gone);
    EXPECT_EQ(error_of(read(key)), errc::stream_gone);
    EXPECT_EQ(error_of(reader(key)), errc::stream_gone);
    EXPECT_EQ(error_of(attach(key, from_start(reader_of(1)))), errc::stream_gone);
    EXPECT_FALSE(exists(key));
}

TEST_P(StoreContract, RefusesToOpenAStreamInASessionThatIsNotThere)
{
    EXPECT_EQ(error_of(try_open({key_of(1), 1})), errc::not_found);
}

TEST_P(StoreContract, RefusesToOpenAStreamOfAnotherOwner)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"1"}, node_1);
    EXPECT_EQ(error_of(try_open(key, {"1"}, node_2)), errc::conflict);
    EXPECT_TRUE(append(key, fence, {event("the first one goes on")}));
}

TEST_P(StoreContract, GivesEveryCallAFenceOfItsOwn)
{
    auto const session = made();
    EXPECT_NE(opened({session, 1}), opened({session, 2}));
}

TEST_P(StoreContract, KeepsTheDialectThatAStreamWasOpenedWith)
{
    stream_key const key{made(), 1};
    auto meta = meta_of();
    meta.dialect = "2025-06-18";
    ASSERT_TRUE(open_as(key, meta));
    auto const attached = attach(key, from_start(reader_of(1)));
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->kind, stream_kind::request);
    EXPECT_EQ(attached->dialect, "2025-06-18");
}

// --- where an author knows of more than the store has

TEST_P(StoreContract, AppendsBehindWhatItsAuthorKnowsOf)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_EQ(append_batch(key, fence, 1, {event("a")})->sequence, 1u);
    // Two to four are lost.
    auto const top = append_batch(key, fence, 3, {event("e"), event("f")}, false, 4);
    ASSERT_TRUE(top);
    EXPECT_EQ(top->sequence, 6u);
    EXPECT_EQ(sequences(read(key)), (numbers{1, 5, 6}));
    EXPECT_EQ(sequences(read(key, 1)), (numbers{5, 6}));
    EXPECT_EQ(sequences(read(key, 3)), (numbers{5, 6}));
    EXPECT_EQ(sequences(read(key, 4)), (numbers{5, 6}));
    EXPECT_EQ(sequences(read(key, 5)), (numbers{6}));
    EXPECT_EQ(sequences(read(key, 6)), (numbers{}));
    EXPECT_EQ(state_of(key).top.offset, 3u);
    // What is known to be delivered there makes no difference to what is behind.
    store().note_delivered(key, 3);
    EXPECT_EQ(delivered(key, 3), 3u);
    ASSERT_TRUE(append_batch(key, fence, 4, {response("answer")}, true, 6));
    EXPECT_EQ(sequences(read(key)), (numbers{1, 5, 6, 7}));
}

TEST_P(StoreContract, AppendsBehindItsOwnEndWhereItsAuthorKnowsOfLess)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append_batch(key, fence, 1, {event("a"), event("b")}));
    EXPECT_EQ(append_batch(key, fence, 2, {event("c")}, false, 1)->sequence, 3u);
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2, 3}));
}

TEST_P(StoreContract, ChangesNothingWhereAnAppendBehindALossIsRefused)
{
    limit_.event_bytes = 1000;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(error_of(append_batch(key, fence, 1, {event(std::string(2000, 'x'))}, false, 9)), errc::too_large);
    EXPECT_EQ(state_of(key).top.sequence, 0u);
}

TEST_P(StoreContract, TrimsBehindALossAsBefore)
{
    limit_.events_per_stream = 3;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append_batch(key, fence, 1, {event("a"), question("q", 1)}));
    ASSERT_TRUE(append_batch(key, fence, 2, {event("b"), event("c"), event("d")}, false, 10));
    EXPECT_EQ(sequences(read(key)), (numbers{2, 11, 12, 13})); // the question stays
    ASSERT_TRUE(blank(key, fence, 2));
    ASSERT_TRUE(append_batch(key, fence, 3, {event("e")}, false, 13));
    EXPECT_EQ(sequences(read(key)), (numbers{12, 13, 14}));
}

// --- read

TEST_P(StoreContract, ReadsAfterASequence)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c")}));
    EXPECT_EQ(texts(read(key, 1)), (strings{"b", "c"}));
    EXPECT_EQ(texts(read(key, 2)), strings{"c"});
}

TEST_P(StoreContract, ReadsNothingAtTheEndAndBeyond)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a")}));
    EXPECT_EQ(sequences(read(key, 1)), numbers{});
    EXPECT_EQ(sequences(read(key, 1000)), numbers{});
    EXPECT_EQ(sequences(read(key, ~std::uint64_t(0))), numbers{});
}

TEST_P(StoreContract, ReadsAtMostAsManyEventsAsAsked)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c")}));
    EXPECT_EQ(sequences(read(key, 0, {2, 1u << 20})), (numbers{1, 2}));
}

TEST_P(StoreContract, ReadsAtMostAsManyBytesAsAsked)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("1234"), event("1234"), event("1234")}));
    EXPECT_EQ(sequences(read(key, 0, {100, 8})), (numbers{1, 2}));
    EXPECT_EQ(sequences(read(key, 0, {100, 7})), numbers{1});
}

TEST_P(StoreContract, ReadsAtLeastOneEventHoweverLarge)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event(std::string(1000, 'x')), event("b")}));
    EXPECT_EQ(sequences(read(key, 0, {100, 10})), numbers{1});
}

TEST_P(StoreContract, TellsTheStateOfAStream)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(read(key)->state.first_kept, 1u);
    ASSERT_TRUE(append(key, fence, {event("a"), event("b")}));
    auto const open_state = read(key, 2)->state;
    EXPECT_EQ(open_state.top.sequence, 2u);
    EXPECT_EQ(open_state.top.offset, 2u);
    EXPECT_FALSE(open_state.finished);
    finish(key, fence);
    auto const state = read(key, 3)->state;
    EXPECT_TRUE(state.finished);
    EXPECT_EQ(state.first_kept, 1u);
}

TEST_P(StoreContract, CarriesTheReadersMark)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b")}));
    auto const one = follow(key, reader_of(1));
    store().note_reader(key, one.id, mark_at(2, 2, 1));
    auto const mark = reader_once(key, [](reader_mark const& now) { return now.position == 2; });
    EXPECT_TRUE(mark.attached);
    EXPECT_EQ(mark.position, 2u);
    EXPECT_EQ(mark.offset, 2u);
    EXPECT_EQ(mark.sent, 2u);
    EXPECT_EQ(mark.delivered, 1u);
    EXPECT_EQ(read(key)->state.reader.delivered, 1u);
}

// --- watch

TEST_P(StoreContract, WakesAfterGrowth)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const growth = watch(key, event_store::interest::growth);
    EXPECT_EQ(*growth.count, 0);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    EXPECT_TRUE(is_woken(growth));
}

TEST_P(StoreContract, ShowsTheEventToTheOneItWakes)
{
    stream_key const key{made(), standalone};
    auto const growth = watch(key, event_store::interest::growth);
    bool is_appended = false;
    store().append_standalone(key, node_1, 1, {event("a")}, [&](auto const& top) {
        EXPECT_TRUE(top);
        is_appended = true;
    });
    ASSERT_TRUE(is_woken(growth));
    EXPECT_EQ(state_of(key).top.sequence, 1u);
    EXPECT_TRUE(eventually([&] { return is_appended; }));
}

TEST_P(StoreContract, WakesAfterTheFinish)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const growth = watch(key, event_store::interest::growth);
    ASSERT_TRUE(append(key, fence, {}, true));
    EXPECT_TRUE(is_woken(growth));
}

TEST_P(StoreContract, WakesFollowersWhenTheSessionGoes)
{
    auto const session = made();
    opened({session, 1});
    auto const request = watch({session, 1}, event_store::interest::growth);
    auto const other = watch({session, standalone}, event_store::interest::growth);
    ASSERT_TRUE(remove(session));
    EXPECT_TRUE(is_woken(request));
    EXPECT_TRUE(is_woken(other));
    EXPECT_EQ(error_of(read({session, 1})), errc::not_found);
}

TEST_P(StoreContract, WakesFollowersWhenTheStreamGoes)
{
    auto const session = made();
    finished_and_delivered({session, 1});
    auto const growth = watch({session, 1}, event_store::interest::growth);
    sweep_after(limit_.event_age + moment);
    EXPECT_TRUE(is_woken(growth));
    EXPECT_EQ(error_of(read({session, 1})), errc::stream_gone);
}

TEST_P(StoreContract, DoesNotWakeWhenTheHandleHasGone)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto growth = watch(key, event_store::interest::growth);
    growth.handle.reset();
    ASSERT_TRUE(append(key, fence, {event("a")}));
    ASSERT_TRUE(remove(key.session));
    EXPECT_EQ(*growth.count, 0);
}

TEST_P(StoreContract, LetsAHandleOutliveItsSession)
{
    stream_key const key{made(), 1};
    opened(key);
    auto growth = watch(key, event_store::interest::growth);
    ASSERT_TRUE(remove(key.session));
    growth.handle.reset();
}

TEST_P(StoreContract, WakesTheWriterWhenTheReaderMovesAndWhenItLeaves)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a")}));
    auto const one = follow(key, reader_of(1));
    auto const moves = watch(key, event_store::interest::reader);
    store().note_reader(key, one.id, mark_at(1, 1, 1));
    EXPECT_TRUE(is_woken(moves));
    auto const leaves = watch(key, event_store::interest::reader);
    leave(key, one);
    EXPECT_TRUE(is_woken(leaves));
}

TEST_P(StoreContract, IgnoresAMarkOnAStreamThatIsNotThere)
{
    auto const session = made();
    store().note_reader({session, 5}, reader_of(1).id, mark_at(1, 1, 1));
    store().detach({session, 5}, reader_of(1).id, mark_at(1, 1, 1));
    store().dismiss({session, 5}, {});
    EXPECT_FALSE(exists({session, 5}));
}

TEST_P(StoreContract, NeverTakesBackWhatWasDelivered)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    stream_key const key{session, 1};
    finish(key, opened(key));
    EXPECT_EQ(error_of(try_open({session, 2})), errc::too_many_streams);
    store().note_delivered(key, 1);
    EXPECT_EQ(delivered(key, 1), 1u);
    // A late mark of a reader, and one of who never came.
    auto const one = follow(key, reader_of(1));
    store().note_reader(key, one.id, mark_at(0, 0, 0));
    store().note_reader(key, reader_of(2).id, {});
    store().note_delivered(key, 0);
    EXPECT_EQ(reader(key)->delivered, 1u);
    store().note_delivered(key, 100); // what is not there cannot have arrived
    EXPECT_EQ(reader(key)->delivered, 1u);
    store().note_delivered({session, 77}, 1);
    EXPECT_FALSE(exists({session, 77}));
    leave(key, one);
    ASSERT_TRUE(is_left(key));
    EXPECT_TRUE(try_open({session, 2}));
}

}

}
