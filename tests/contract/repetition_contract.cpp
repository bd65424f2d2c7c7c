// An operation whose outcome was lost is made again: it changes nothing more and has the outcome of the first.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

// --- sessions

TEST_P(StoreContract, RepeatsACreate)
{
    auto record = record_of(key_of(1));
    record.client_info = "somebody";
    auto const first = create(record);
    ASSERT_TRUE(first);
    auto const used = bytes();
    auto const second = create(record);
    ASSERT_TRUE(second);
    EXPECT_EQ(**second, **first);
    EXPECT_TRUE(has_sessions(1));
    EXPECT_TRUE(uses_bytes(used));
}

TEST_P(StoreContract, RepeatsACreateOfAFullStore)
{
    limit_.sessions = 1;
    auto const key = made();
    EXPECT_TRUE(create(key));
    EXPECT_EQ(error_of(create(key_of(2))), errc::too_many_sessions);
}

TEST_P(StoreContract, RepeatsAnUpdate)
{
    auto record = *load(made()).value();
    record.log_level = 3;
    record.client_info = std::string(500, 'i');
    auto const first = update(record);
    ASSERT_TRUE(first);
    auto const used = bytes();
    auto const second = update(record);
    ASSERT_TRUE(second);
    EXPECT_EQ(**second, **first);
    EXPECT_EQ((*load(record.key))->revision, record.revision + 1);
    EXPECT_TRUE(uses_bytes(used));
    // Behind another change it is not recognised, and not made either.
    auto next = **second;
    next.log_level = 4;
    ASSERT_TRUE(update(next));
    EXPECT_EQ(error_of(update(record)), errc::conflict);
    EXPECT_EQ((*load(record.key))->log_level, 4);
}

TEST_P(StoreContract, RepeatsAClose)
{
    auto const key = made();
    auto const fence = opened({key, 1});
    opened({key, 2}, {"2"}, "stranger/1");
    auto const first = close(key);
    ASSERT_TRUE(first);
    auto const used = bytes();
    auto const second = close(key);
    ASSERT_TRUE(second);
    EXPECT_EQ(streams_of(*second), streams_of(*first));
    EXPECT_EQ(mail({key, 1}, fence).size(), 1u);
    EXPECT_TRUE(uses_bytes(used));
}

TEST_P(StoreContract, RepeatsARemove)
{
    auto const key = made();
    made(2);
    ASSERT_TRUE(close(key));
    ASSERT_TRUE(remove(key));
    auto const used = bytes();
    EXPECT_TRUE(remove(key));
    EXPECT_TRUE(has_sessions(1));
    EXPECT_TRUE(uses_bytes(used));
}

TEST_P(StoreContract, RepeatsASubscription)
{
    auto const key = made();
    auto const before = bytes();
    ASSERT_TRUE(subscribe(key, "a", 1));
    auto const used = bytes();
    EXPECT_TRUE(subscribe(key, "a", 1));
    EXPECT_EQ(subscribers("a").size(), 1u);
    EXPECT_TRUE(uses_bytes(used));
    ASSERT_TRUE(unsubscribe(key, "a"));
    EXPECT_TRUE(unsubscribe(key, "a"));
    EXPECT_TRUE(uses_bytes(before));
}

// --- open

TEST_P(StoreContract, RepeatsAnOpen)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    stream_key const key{session, 1};
    auto meta = meta_of({"1", "2"});
    meta.has_unique_ids = true; // it does not stand in its own way
    meta.held_bytes = 1000;
    auto const first = open_as(key, meta);
    ASSERT_TRUE(first);
    auto const used = bytes();
    auto const second = open_as(key, meta);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->fence, first->fence);
    EXPECT_EQ(second->epoch, first->epoch);
    EXPECT_EQ(second->repeats, std::nullopt);
    EXPECT_TRUE(has_streams(1));
    EXPECT_TRUE(uses_bytes(used));
    ASSERT_TRUE(append(key, first->fence, {event("a")}));
    EXPECT_EQ(open_as(key, meta)->fence, first->fence);
    EXPECT_EQ(texts(read(key)), strings{"a"});
}

TEST_P(StoreContract, DoesNotOpenAStreamAgainThatItHasDropped)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    finished_and_delivered({session, 1});
    opened({session, 2}); // makes room
    EXPECT_FALSE(exists({session, 1}));
    finish({session, 2}, open_as({session, 2}, meta_of())->fence);
    deliver({session, 2});
    EXPECT_EQ(error_of(try_open({session, 1})), errc::finished);
    EXPECT_FALSE(exists({session, 1}));
    EXPECT_TRUE(exists({session, 2}));
}

TEST_P(StoreContract, RepeatsAnOpenWithAReader)
{
    auto const session = made();
    stream_key const key{session, 1};
    auto const one = reader_within(1, 1, false);
    auto const first = open_read(key, one);
    ASSERT_TRUE(first);
    auto const second = open_read(key, one);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->fence, first->fence);
    EXPECT_EQ(why_dismissed(one, key), std::nullopt);
    EXPECT_EQ(list()->sessions.at(0).readers, 1u);
}

TEST_P(StoreContract, RepeatsAnOpenWithAKey)
{
    auto const session = made();
    auto const first = open_once({session, 1}, "k");
    ASSERT_TRUE(first);
    auto const second = open_once({session, 2}, "k");
    ASSERT_TRUE(second);
    auto const used = bytes();
    // The first repeats nothing, however often it is made.
    auto const first_again = open_once({session, 1}, "k");
    ASSERT_TRUE(first_again);
    EXPECT_EQ(first_again->repeats, std::nullopt);
    EXPECT_EQ(first_again->fence, first->fence);
    auto const second_again = open_once({session, 2}, "k");
    ASSERT_TRUE(second_again);
    EXPECT_EQ(second_again->repeats, stream_id(1));
    EXPECT_EQ(second_again->fence, second->fence);
    EXPECT_TRUE(uses_bytes(used));
}

// --- append

TEST_P(StoreContract, RepeatsAnAppend)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append_batch(key, fence, 1, {event("a")}));
    auto const first = append_batch(key, fence, 2, {event("b"), event("c")});
    ASSERT_TRUE(first);
    auto const used = bytes();
    auto const second = append_batch(key, fence, 2, {event("b"), event("c")});
    ASSERT_TRUE(second);
    EXPECT_EQ(second->sequence, first->sequence);
    EXPECT_EQ(second->offset, first->offset);
    EXPECT_EQ(second->epoch, first->epoch);
    EXPECT_EQ(texts(read(key)), (strings{"a", "b", "c"}));
    EXPECT_TRUE(uses_bytes(used));
    EXPECT_EQ(append_batch(key, fence, 3, {event("d")})->sequence, 4u);
}

// A command of a connection that was given up can arrive behind its repetition and what followed.
TEST_P(StoreContract, KnowsALateAppendByItsNumber)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    for (std::uint64_t batch = 1; batch <= 3; ++batch)
        ASSERT_TRUE(append_batch(key, fence, batch, {event(std::to_string(batch))}));
    for (std::uint64_t const late : {1u, 2u}) {
        auto const top = append_batch(key, fence, late, {event(std::to_string(late))});
        ASSERT_TRUE(top);
        EXPECT_EQ(top->sequence, 3u);
    }
    EXPECT_EQ(texts(read(key)), (strings{"1", "2", "3"}));
    EXPECT_EQ(append_batch(key, fence, 4, {event("4")})->sequence, 4u);
}

TEST_P(StoreContract, RepeatsTheAppendThatFinished)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append_batch(key, fence, 1, {event("a")}));
    ASSERT_TRUE(append_batch(key, fence, 2, {response("answer")}, true));
    auto const used = bytes();
    for (std::uint64_t const batch : {2u, 1u}) {
        auto const top = append_batch(key, fence, batch, {response("answer")}, batch == 2);
        ASSERT_TRUE(top) << batch;
        EXPECT_EQ(top->sequence, 2u);
    }
    EXPECT_EQ(texts(read(key)), (strings{"a", "answer"}));
    EXPECT_TRUE(uses_bytes(used));
    EXPECT_EQ(error_of(append_batch(key, fence, 3, {event("late")})), errc::finished);
}

TEST_P(StoreContract, RepeatsAnAppendWhoseEventsAreGone)
{
    limit_.events_per_stream = 1;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append_batch(key, fence, 1, {event("a"), event("b")}));
    EXPECT_EQ(append_batch(key, fence, 1, {event("a"), event("b")})->sequence, 2u);
    EXPECT_EQ(texts(read(key)), strings{"b"});
}

TEST_P(StoreContract, AnswersARequestOnceHoweverOftenItIsAppended)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"1", "2"});
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(append_batch(key, fence, 1, {response("one", 0)}));
    EXPECT_EQ(claim(key, fence, node_2)->unanswered, std::vector<std::uint32_t>{1});
    EXPECT_EQ(texts(read(key)), strings{"one"});
}

TEST_P(StoreContract, RepeatsAnAppendToTheStandaloneStreamOfEachOwner)
{
    stream_key const key{made(), standalone};
    auto const first = append_standalone(key, node_1, 1, {event("a")});
    ASSERT_TRUE(first);
    EXPECT_EQ(append_standalone(key, node_1, 1, {event("a")})->sequence, first->sequence);
    ASSERT_TRUE(append_standalone(key, node_2, 1, {event("b")}));
    ASSERT_TRUE(append_standalone(key, node_1, 2, {event("c")}));
    ASSERT_TRUE(append_standalone(key, node_2, 2, {event("d")}));
    auto const used = bytes();
    for (auto const& owner : {node_1, node_2})
        for (std::uint64_t const batch : {2u, 1u})
            EXPECT_TRUE(append_standalone(key, owner, batch, {event("again")})) << owner << ' ' << batch;
    EXPECT_EQ(texts(read(key)), (strings{"a", "b", "c", "d"}));
    EXPECT_TRUE(uses_bytes(used));
    EXPECT_EQ(append_standalone(key, node_2, 3, {event("e")})->sequence, 5u);
    EXPECT_EQ(append_standalone(key, node_1, 3, {event("f")})->sequence, 6u);
}

// Each stream has its own numbers.
TEST_P(StoreContract, NumbersTheAppendsOfAnOwnerForEachStream)
{
    stream_key const one{made(1), standalone};
    stream_key const two{made(2), standalone};
    ASSERT_TRUE(append_standalone(one, node_1, 1, {event("a")}));
    ASSERT_TRUE(append_standalone(one, node_1, 2, {event("b")}));
    EXPECT_EQ(append_standalone(two, node_1, 1, {event("c")})->sequence, 1u);
    EXPECT_EQ(texts(read(two)), strings{"c"});
}

TEST_P(StoreContract, RepeatsABlank)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1), question("r", 2)}));
    ASSERT_TRUE(blank(key, fence, 1));
    auto const used = bytes();
    EXPECT_TRUE(blank(key, fence, 1));
    EXPECT_EQ(texts(read(key)), (strings{"", "r"}));
    EXPECT_EQ(state_of(key).top.sequence, 2u);
    EXPECT_TRUE(uses_bytes(used));
}

// --- readers

TEST_P(StoreContract, RepeatsAnAttach)
{
    auto const session = made();
    stream_key const key{session, standalone};
    ASSERT_TRUE(announce(session, {event("a")}));
    ASSERT_TRUE(open_read({session, 1}, reader_within(2, 7)));
    auto const request = from_start(reader_within(2, 1));
    for (int i = 0; i < 5; ++i) {
        auto const attached = attach(key, request);
        ASSERT_TRUE(attached);
        EXPECT_FALSE(attached->waits);
        EXPECT_FALSE(attached->took_over);
        EXPECT_EQ(attached->start, 0u);
        EXPECT_EQ(texts(attached->first), strings{"a"});
    }
    EXPECT_EQ(why_dismissed(reader_of(1), key), std::nullopt);
    EXPECT_EQ(why_dismissed(reader_of(7), {session, 1}), std::nullopt); // it needs no second place
    EXPECT_EQ(list()->sessions.at(0).readers, 2u);
}

TEST_P(StoreContract, RepeatsADetach)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, open_read(key, reader_of(1))->fence, {event("a"), event("b")}));
    auto last = mark_at(2, 2, 1);
    last.attached = false;
    store().detach(key, reader_of(1).id, last);
    ASSERT_TRUE(is_left(key));
    auto const before = *reader(key);
    store().detach(key, reader_of(1).id, last);
    auto const after = *reader(key);
    EXPECT_FALSE(after.attached);
    EXPECT_EQ(after.position, before.position);
    EXPECT_EQ(after.sent, before.sent);
    EXPECT_EQ(after.delivered, before.delivered);
}

// --- calls

TEST_P(StoreContract, RepeatsAClaim)
{
    stream_key const key{made(), 1};
    auto const seen = opened(key, {"1"}, "stranger/1");
    auto const first = claim(key, seen, node_1);
    ASSERT_TRUE(first);
    auto const used = bytes();
    auto const second = claim(key, seen, node_1);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->fence, first->fence);
    EXPECT_EQ(second->attempt, first->attempt);
    EXPECT_TRUE(uses_bytes(used));
    EXPECT_TRUE(append(key, first->fence, {event("a")}));
    // Once a rival has it, the same claim is too late.
    ASSERT_TRUE(claim(key, first->fence, node_2));
    EXPECT_EQ(error_of(claim(key, seen, node_1)), errc::conflict);
}

TEST_P(StoreContract, RepeatsARelease)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(release(key, fence));
    EXPECT_TRUE(release(key, fence));
    auto const calls = lapsed_calls();
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].owner, "");
}

TEST_P(StoreContract, RepeatsARenewal)
{
    auto const session = made();
    opened({session, 1}, {"1"}, mortal());
    EXPECT_TRUE(renew("mortal/1", lease));
    advance(lease - moment);
    EXPECT_EQ(lapsed(), ids{});
    advance(2 * moment);
    EXPECT_EQ(lapsed(), ids{1});
}

TEST_P(StoreContract, RepeatsAPost)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1)}));
    ASSERT_TRUE(post(key, answer_to(1)));
    ASSERT_TRUE(post(key, cancel_of(0)));
    auto const used = bytes();
    EXPECT_TRUE(post(key, answer_to(1)));
    EXPECT_TRUE(post(key, cancel_of(0)));
    EXPECT_EQ(mail(key, fence), (strings{"answer 1 yes", "cancel 0 reason"}));
    EXPECT_TRUE(uses_bytes(used));
    // Also when what it led to is done.
    ASSERT_TRUE(blank(key, fence, 1));
    ASSERT_TRUE(append(key, fence, {response("cancelled")}));
    EXPECT_TRUE(post(key, answer_to(1)));
    EXPECT_TRUE(post(key, cancel_of(0)));
    EXPECT_EQ(mail(key, fence), strings{});
}

// What is given again is not where the stream ends now, but where it ended then.
TEST_P(StoreContract, RepeatsAnAppendBehindWhichTheEndWasRaised)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_EQ(append_batch(key, fence, 1, {event("a"), event("b")})->sequence, 2u);
    ASSERT_TRUE(attach(key, from_cursor(reader_of(1), 5)));
    EXPECT_EQ(append_batch(key, fence, 1, {event("a"), event("b")})->sequence, 2u);
    EXPECT_EQ(append_batch(key, fence, 2, {event("c")}, false, 2)->sequence, 6u);
    EXPECT_EQ(texts(read(key)), (strings{"a", "b", "c"}));
}

// --- small records

TEST_P(StoreContract, RepeatsAPutOfASmallRecord)
{
    ASSERT_EQ(put("a", 0, "one"), 1u);
    EXPECT_EQ(put("a", 0, "one"), 1u);
    ASSERT_EQ(put("a", 1, "two"), 2u);
    auto const used = bytes();
    EXPECT_EQ(put("a", 1, "two"), 2u);
    EXPECT_EQ(get("a")->revision, 2u);
    EXPECT_TRUE(uses_bytes(used));
    EXPECT_EQ(error_of(put("a", 0, "one")), errc::conflict); // behind another change
}

// --- what nobody waits for

TEST_P(StoreContract, RepeatsAMark)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    auto const fence = open_read(key, one)->fence;
    ASSERT_TRUE(append(key, fence, {event("a"), event("b"), event("c")}));
    store().note_reader(key, one.id, mark_at(1, 1, 1));
    store().note_reader(key, one.id, mark_at(2, 2, 2));
    ASSERT_EQ(delivered(key, 2), 2u);
    store().note_reader(key, one.id, mark_at(2, 2, 2));
    store().note_reader(key, one.id, mark_at(1, 1, 1)); // late: what has arrived has arrived
    auto const mark = reader(key);
    ASSERT_TRUE(mark);
    EXPECT_EQ(mark->delivered, 2u);
    EXPECT_EQ(mark->sent, 2u);
    EXPECT_TRUE(mark->attached);
    // When the reader has left, and when another has come.
    auto last = mark_at(3, 3, 3);
    last.attached = false;
    store().detach(key, one.id, last);
    ASSERT_TRUE(is_left(key));
    store().note_reader(key, one.id, mark_at(2, 2, 2));
    EXPECT_FALSE(reader(key)->attached);
    EXPECT_EQ(reader(key)->delivered, 3u);
    follow(key, reader_of(2));
    store().note_reader(key, one.id, mark_at(1, 1, 1));
    store().detach(key, one.id, last);
    EXPECT_TRUE(reader(key)->attached);
    EXPECT_EQ(reader(key)->position, 0u);
}

TEST_P(StoreContract, RepeatsWhatHasArrived)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    store().note_delivered(key, 1);
    ASSERT_EQ(delivered(key, 1), 1u);
    finish(key, fence);
    store().note_delivered(key, 2);
    ASSERT_EQ(delivered(key, 2), 2u);
    auto const used = bytes();
    store().note_delivered(key, 2);
    store().note_delivered(key, 1);
    EXPECT_EQ(delivered(key, 2), 2u);
    EXPECT_TRUE(uses_bytes(used));
}

TEST_P(StoreContract, RepeatsADismissal)
{
    stream_key const key{made(), 1};
    auto const one = reader_of(1);
    ASSERT_TRUE(open_read(key, one));
    store().dismiss(key, {dismissal::stalled, {}});
    ASSERT_TRUE(eventually([&] { return why_dismissed(one, key) == dismissal::stalled; }));
    store().dismiss(key, {dismissal::stalled, {}});
    EXPECT_EQ(why_dismissed(one, key), dismissal::stalled);
    leave(key, one);
    ASSERT_TRUE(is_left(key));
    store().dismiss(key, {dismissal::stalled, {}}); // there is nobody to hear it
    EXPECT_FALSE(reader(key)->attached);
}

TEST_P(StoreContract, RepeatsATouchAndAnExpiry)
{
    auto const key = made();
    advance(limit_.session_idle / 2);
    touch(key);
    touch(key);
    advance(limit_.session_idle / 2 + overdue());
    EXPECT_TRUE(expire().removed.empty());
    EXPECT_TRUE(expire().removed.empty());
    advance(limit_.session_idle / 2);
    EXPECT_EQ(expire().removed.size(), 1u);
    // What the first one has removed it does not name again, and a touch does not bring it back.
    EXPECT_TRUE(expire().removed.empty());
    touch(key);
    EXPECT_TRUE(has_sessions(0));
    EXPECT_EQ(error_of(load(key)), errc::not_found);
}

TEST_P(StoreContract, SaysAWordAsOftenAsItIsSaid)
{
    auto const heard = std::make_shared<std::atomic<int>>(0);
    auto const listening = store().listen([heard](std::string const& text) {
        EXPECT_EQ(text, "word");
        ++*heard;
    });
    store().publish("word");
    store().publish("word");
    EXPECT_TRUE(eventually([&] { return *heard >= 2; }));
    EXPECT_EQ(*heard, 2);
}

}

}
