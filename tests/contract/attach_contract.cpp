// Where a connection begins to read: cursors, backlog, questions, and the first page.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

strings texts_of(std::vector<bytes> const& payloads)
{
    strings all;
    for (auto const& each : payloads)
        all.push_back(*each);
    return all;
}

// --- cursors on a request stream

TEST_P(StoreContract, GivesTheFirstPageWhenItAttaches)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c")}));
    auto const attached = attach(key, from_cursor(reader_of(1), 1));
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->kind, stream_kind::request);
    EXPECT_FALSE(attached->waits);
    EXPECT_FALSE(attached->took_over);
    EXPECT_FALSE(attached->is_other_epoch);
    EXPECT_EQ(attached->start, 1u);
    EXPECT_EQ(texts(attached->first), (strings{"b", "c"}));
    EXPECT_EQ(attached->first.state.top.sequence, 3u);
    EXPECT_EQ(attached->first.state.top.epoch, epoch);
    EXPECT_FALSE(attached->first.state.finished);
    EXPECT_FALSE(attached->first.dismissed);
    EXPECT_TRUE(is_followed(key));
}

TEST_P(StoreContract, GivesNoMoreInTheFirstPageThanAsked)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("1234"), event("1234"), event("1234"), event("1234")}));
    auto request = from_start(reader_of(1));
    request.limit = {2, 1000};
    EXPECT_EQ(sequences(attach(key, request)->first), (numbers{1, 2}));
    request.limit = {100, 13};
    EXPECT_EQ(sequences(attach(key, request)->first), (numbers{1, 2, 3}));
}

TEST_P(StoreContract, AttachesAtTheEndOfAnUnfinishedStream)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a")}));
    auto const attached = attach(key, from_cursor(reader_of(1), 1));
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->start, 1u);
    EXPECT_TRUE(attached->first.events.empty());
    EXPECT_TRUE(is_followed(key));
}

TEST_P(StoreContract, AttachesToAFinishedStreamForWhatIsLeft)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    finish(key, fence);
    auto const attached = attach(key, from_cursor(reader_of(1), 1));
    ASSERT_TRUE(attached);
    EXPECT_EQ(texts(attached->first), strings{"answer"});
    EXPECT_TRUE(attached->first.state.finished);
}

TEST_P(StoreContract, TellsThatNothingIsLeftAndKnowsThatAllHasArrived)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    finish(key, fence);
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(1), 2))), errc::finished);
    EXPECT_EQ(delivered(key, 2), 2u);
    EXPECT_FALSE(reader(key)->attached);
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(1), 2))), errc::finished);
}

TEST_P(StoreContract, RefusesAPlaceThatARequestStreamDoesNotHave)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    auto other_life = from_start(reader_of(1));
    other_life.from->epoch = epoch + 1;
    EXPECT_EQ(error_of(attach(key, other_life)), errc::bad_cursor);
    auto const beyond = 2 + limit_.window_events(); // further than any client can be
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(1), beyond))), errc::bad_cursor);
    EXPECT_EQ(state_of(key).top.sequence, 1u);
    EXPECT_FALSE(reader(key)->attached);
    finish(key, fence);
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(1), 3))), errc::bad_cursor);
    EXPECT_EQ(reader(key)->delivered, 0u);
}

// Its client has seen what the store has lost.
TEST_P(StoreContract, RaisesTheEndOfARunningCallToACursorAhead)
{
    limit_.events_per_stream = 10;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append_batch(key, fence, 1, {event("a")}));
    auto const growth = watch(key, event_store::interest::growth);
    auto const attached = attach(key, from_cursor(reader_of(1), 6));
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->start, 6u);
    EXPECT_FALSE(attached->is_other_epoch);
    EXPECT_TRUE(attached->first.events.empty());
    EXPECT_EQ(attached->first.state.top.sequence, 6u);
    EXPECT_EQ(attached->first.state.top.epoch, epoch);
    EXPECT_TRUE(is_woken(growth)); // whoever has not seen it is told of the hole
    EXPECT_EQ(reader(key)->delivered, 6u);
    EXPECT_EQ(append_batch(key, fence, 2, {event("b")}, false, 1)->sequence, 7u);
    EXPECT_EQ(sequences(read(key)), (numbers{1, 7}));
    EXPECT_EQ(texts(read_as(reader_of(1), key, 6)), strings{"b"});
}

TEST_P(StoreContract, LeavesTheEndWhereItIsWhileACursorAheadWaitsForItsPredecessor)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append_batch(key, fence, 1, {event("a")}));
    auto const one = follow(key, reader_of(1));
    ASSERT_TRUE(attach(key, from_cursor(reader_of(2), 3))->waits);
    EXPECT_EQ(state_of(key).top.sequence, 1u);
    leave(key, one);
    result<attached_stream> attached;
    ASSERT_TRUE(eventually([&] {
        attached = attach(key, from_cursor(reader_of(2), 3));
        return attached && !attached->waits;
    }));
    EXPECT_EQ(attached->start, 3u);
    EXPECT_EQ(state_of(key).top.sequence, 3u);
}

TEST_P(StoreContract, DismissesNobodyForACursorThatIsRefused)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(open_read(key, reader_of(1)));
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(2), 1 + limit_.window_events()))), errc::bad_cursor);
    EXPECT_EQ(why_dismissed(reader_of(1), key), std::nullopt);
}

TEST_P(StoreContract, ReadsOnFromACursorThatIsNoLongerKept)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c"), event("d")}));
    auto const attached = attach(key, from_cursor(reader_of(1), 1));
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->start, 1u); // so that the hole can be told
    EXPECT_EQ(sequences(attached->first), (numbers{3, 4}));
    EXPECT_EQ(attached->first.state.first_kept, 3u);
}

TEST_P(StoreContract, TellsAStreamThatIsGoneFromASessionThatIsGone)
{
    auto const session = made();
    finished_and_delivered({session, 1});
    sweep_after(limit_.event_age + moment);
    EXPECT_EQ(error_of(attach({session, 1}, from_start(reader_of(1)))), errc::stream_gone);
    ASSERT_TRUE(remove(session));
    EXPECT_EQ(error_of(attach({session, 1}, from_start(reader_of(1)))), errc::not_found);
    EXPECT_EQ(error_of(attach({session, standalone}, from_start(reader_of(1)))), errc::not_found);
}

// --- cursors on the standalone stream

TEST_P(StoreContract, BeginsAnewAfterAnEarlierLifeOfTheStandaloneStream)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a"), event("b")}));
    auto request = from_cursor(reader_of(1), 1);
    request.from->epoch = epoch - 1;
    auto const attached = attach(key, request);
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->kind, stream_kind::standalone);
    EXPECT_TRUE(attached->is_other_epoch);
    EXPECT_EQ(attached->start, 0u);
    EXPECT_EQ(texts(attached->first), (strings{"a", "b"}));
}

TEST_P(StoreContract, ResumesTheStandaloneStream)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a"), event("b")}));
    auto const attached = attach(key, from_cursor(reader_of(1), 1));
    ASSERT_TRUE(attached);
    EXPECT_FALSE(attached->is_other_epoch);
    EXPECT_EQ(texts(attached->first), strings{"b"});
}

TEST_P(StoreContract, BeginsANewEpochForACursorAheadOfTheStandaloneStream)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a")}));
    auto const attached = attach(key, from_cursor(reader_of(1), 50));
    ASSERT_TRUE(attached);
    EXPECT_TRUE(attached->is_other_epoch);
    EXPECT_EQ(attached->start, 0u);
    EXPECT_EQ(texts(attached->first), strings{"a"});
    auto const fresh = attached->first.state.top.epoch;
    EXPECT_NE(fresh, epoch);
    // Asked once more it is the same.
    auto const again = attach(key, from_cursor(reader_of(1), 50));
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->is_other_epoch);
    EXPECT_EQ(again->first.state.top.epoch, fresh);
    ASSERT_TRUE(announce(key.session, {event("b")}));
    EXPECT_EQ(texts(read_as(reader_of(1), key, 1)), strings{"b"});
    // Ids of the new epoch are places in it; those of the old one are not.
    leave(key, reader_of(1));
    ASSERT_TRUE(is_left(key));
    auto of_new = from_cursor(reader_of(2), 1);
    of_new.from->epoch = fresh;
    EXPECT_EQ(texts(attach(key, of_new)->first), strings{"b"});
    leave(key, reader_of(2));
    ASSERT_TRUE(is_left(key));
    EXPECT_TRUE(attach(key, from_cursor(reader_of(3), 2))->is_other_epoch);
}

TEST_P(StoreContract, HasTheStandaloneStreamForItsFirstReader)
{
    stream_key const key{made(), standalone};
    auto const attached = attach(key, without_cursor(reader_of(1)));
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->kind, stream_kind::standalone);
    EXPECT_EQ(attached->start, 0u);
    EXPECT_EQ(attached->first.state.top.sequence, 0u);
    EXPECT_EQ(attached->first.state.top.epoch, epoch);
}

// --- without a cursor

TEST_P(StoreContract, BeginsWithTheBacklogWithoutACursor)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a"), event("b")}));
    auto const first = attach(key, without_cursor(reader_of(1)));
    ASSERT_TRUE(first);
    EXPECT_EQ(first->start, 0u);
    EXPECT_EQ(texts(first->first), (strings{"a", "b"}));
    auto last = mark_at(2, 2, 2);
    last.attached = false;
    store().detach(key, reader_of(1).id, last);
    ASSERT_EQ(delivered(key, 2), 2u);
    ASSERT_TRUE(announce(key.session, {event("c")}));
    auto const second = attach(key, without_cursor(reader_of(2)));
    ASSERT_TRUE(second);
    EXPECT_EQ(second->start, 2u);
    EXPECT_EQ(texts(second->first), strings{"c"});
}

TEST_P(StoreContract, BeginsAtTheEndWhereTheBacklogIsSkipped)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a"), event("b")}));
    auto const attached = attach(key, without_cursor(reader_of(1), true));
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->start, 2u);
    EXPECT_TRUE(attached->first.events.empty());
    // A cursor is a cursor, whatever else is wanted.
    auto request = from_cursor(reader_of(2), 1);
    request.skips_backlog = true;
    leave(key, reader_of(1));
    ASSERT_TRUE(is_left(key));
    EXPECT_EQ(texts(attach(key, request)->first), strings{"b"});
}

// --- questions

TEST_P(StoreContract, RepeatsOpenQuestionsFromBeforeTheCursor)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(
        key, fence,
        {question("first", 1), event("x"), question("second", 2), question("third", 3), question("4th", 4)}));
    ASSERT_TRUE(blank(key, fence, 3));
    auto request = from_cursor(reader_of(1), 4);
    request.wants_questions = true;
    auto const attached = attach(key, request);
    ASSERT_TRUE(attached);
    EXPECT_EQ(texts_of(attached->questions), (strings{"first", "third"}));
    EXPECT_EQ(texts(attached->first), strings{"4th"});
}

TEST_P(StoreContract, RepeatsNoQuestionsWhereNoneAreWanted)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {question("first", 1)}));
    EXPECT_TRUE(attach(key, from_cursor(reader_of(1), 1))->questions.empty());
    leave(key, reader_of(1));
    ASSERT_TRUE(is_left(key));
    auto request = from_start(reader_of(2));
    request.wants_questions = true;
    auto const attached = attach(key, request);
    ASSERT_TRUE(attached);
    EXPECT_TRUE(attached->questions.empty()); // it is in the page
    EXPECT_EQ(texts(attached->first), strings{"first"});
}

// --- opened with a reader

TEST_P(StoreContract, FollowsAStreamFromTheMomentItIsOpened)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    auto const stream = open_read(key, one);
    ASSERT_TRUE(stream);
    EXPECT_TRUE(is_followed(key));
    ASSERT_TRUE(append(key, stream->fence, {event("a")}));
    auto const page = read_as(one, key);
    EXPECT_EQ(texts(page), strings{"a"});
    EXPECT_FALSE(page->dismissed);
    store().note_reader(key, one.id, mark_at(1, 1, 1));
    EXPECT_EQ(delivered(key, 1), 1u);
}

TEST_P(StoreContract, FollowsNothingWhereAStreamIsOpenedWithoutAReader)
{
    stream_key const key{made(), 1};
    opened(key);
    EXPECT_FALSE(reader(key)->attached);
    auto const attached = attach(key, from_start(reader_of(1)));
    ASSERT_TRUE(attached);
    EXPECT_FALSE(attached->waits);
    EXPECT_FALSE(attached->took_over);
}

}

}
