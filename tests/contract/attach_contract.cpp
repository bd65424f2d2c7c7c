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
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(1), 2))), errc::bad_cursor); // ahead
    EXPECT_FALSE(reader(key)->attached);
    finish(key, fence);
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(1), 3))), errc::bad_cursor);
    EXPECT_EQ(reader(key)->delivered, 0u);
}

TEST_P(StoreContract, DismissesNobodyForACursorThatIsRefused)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(open_read(key, reader_of(1)));
    EXPECT_EQ(error_of(attach(key, from_cursor(reader_of(2), 9))), errc::bad_cursor);
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

// A store may refuse the place or begin where it can; what comes next must be read in any case.
TEST_P(StoreContract, SkipsNothingForACursorAheadOfTheStandaloneStream)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(announce(key.session, {event("a")}));
    auto const attached = attach(key, from_cursor(reader_of(1), 50));
    if (!attached) {
        EXPECT_EQ(error_of(attached), errc::bad_cursor);
        return;
    }
    ASSERT_TRUE(announce(key.session, {event("b")}));
    auto const next = read_as(reader_of(1), key, attached->start);
    ASSERT_TRUE(next);
    ASSERT_FALSE(next->events.empty());
    EXPECT_EQ(*next->events.back().payload, "b");
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
