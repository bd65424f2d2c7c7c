// Sessions: made, changed, expired, ended.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

TEST_P(StoreContract, LoadsWhatWasCreated)
{
    auto record = record_of(key_of(1, "someone"));
    record.client_info = R"({"name":"x"})";
    record.client_capabilities = R"({"roots":{}})";
    record.log_level = 3;
    record.subscriptions = {"a", "b"};
    ASSERT_TRUE(await<void>([&](auto done) { store().create(record, now_, std::move(done)); }));
    auto const loaded = load(record.key);
    ASSERT_TRUE(loaded);
    EXPECT_EQ((*loaded)->key, record.key);
    EXPECT_EQ((*loaded)->standalone, record.standalone);
    EXPECT_EQ((*loaded)->version, record.version);
    EXPECT_EQ((*loaded)->client_info, record.client_info);
    EXPECT_EQ((*loaded)->client_capabilities, record.client_capabilities);
    EXPECT_EQ((*loaded)->log_level, 3);
    EXPECT_EQ((*loaded)->subscriptions, record.subscriptions);
    EXPECT_FALSE((*loaded)->initialized);
}

TEST_P(StoreContract, RefusesToCreateASessionTwice)
{
    auto const key = made();
    EXPECT_EQ(error_of(create(key)), errc::conflict);
    EXPECT_EQ(store().used().sessions, 1u);
}

// A store that called it under a lock would wait for itself.
TEST_P(StoreContract, MayBeAskedAgainInACompletion)
{
    auto const key = made();
    auto const loaded = await<std::shared_ptr<session_record const>>([&](auto done) {
        store().create(record_of(key), now_, [this, key, done = std::move(done)](result<void> refused) mutable {
            EXPECT_EQ(error_of(refused), errc::conflict);
            store().load(key, std::move(done));
        });
    });
    EXPECT_TRUE(loaded);
}

TEST_P(StoreContract, BoundsTheNumberOfSessions)
{
    limit_.sessions = 2;
    made(1);
    made(2);
    EXPECT_EQ(error_of(create(key_of(3))), errc::too_many_sessions);
    ASSERT_TRUE(end(key_of(1)));
    EXPECT_TRUE(create(key_of(3)));
}

TEST_P(StoreContract, UpdatesARecordAndGivesItTheNextRevision)
{
    auto record = *load(made()).value();
    record.initialized = true;
    auto const stored = update(record);
    ASSERT_TRUE(stored);
    EXPECT_EQ((*stored)->revision, record.revision + 1);
    EXPECT_TRUE((*load(record.key))->initialized);
}

TEST_P(StoreContract, RefusesAnUpdateOfAnOlderRevision)
{
    auto record = *load(made()).value();
    record.log_level = 1;
    ASSERT_TRUE(update(record));
    record.log_level = 2;
    EXPECT_EQ(error_of(update(record)), errc::conflict);
    EXPECT_EQ((*load(record.key))->log_level, 1);
}

TEST_P(StoreContract, RefusesAnUpdateOfASessionThatIsNotThere)
{
    EXPECT_EQ(error_of(update(record_of(key_of(1)))), errc::not_found);
}

TEST_P(StoreContract, KeepsALoadedRecordAsItWas)
{
    auto const before = load(made()).value();
    auto record = *before;
    record.log_level = 5;
    ASSERT_TRUE(update(record));
    EXPECT_EQ(before->log_level, 0);
}

TEST_P(StoreContract, ExpiresASessionThatWasNeverTouched)
{
    auto const key = made();
    now_ += limit_.session_idle - std::chrono::milliseconds(1);
    EXPECT_TRUE(expired().empty());
    now_ += std::chrono::milliseconds(1);
    EXPECT_EQ(expired(), std::vector{key});
}

TEST_P(StoreContract, CountsIdlenessFromTheLastTouch)
{
    auto const key = made();
    now_ += limit_.session_idle / 2;
    store().touch(key, now_, presence::idle);
    now_ += limit_.session_idle / 2;
    EXPECT_TRUE(expired().empty());
    now_ += limit_.session_idle / 2;
    EXPECT_EQ(expired(), std::vector{key});
}

TEST_P(StoreContract, NeverExpiresAHeldSession)
{
    auto const key = made();
    store().touch(key, now_, presence::held);
    now_ += limit_.session_idle * 100;
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, ExpiresASessionThatIsNoLongerHeld)
{
    auto const key = made();
    store().touch(key, now_, presence::held);
    now_ += limit_.session_idle * 3;
    store().touch(key, now_, presence::idle);
    EXPECT_TRUE(expired().empty());
    now_ += limit_.session_idle;
    EXPECT_EQ(expired(), std::vector{key});
}

TEST_P(StoreContract, IsNotSetBackByALateTouch)
{
    auto const key = made();
    now_ += limit_.session_idle / 2;
    store().touch(key, now_, presence::idle);
    store().touch(key, now_ - limit_.session_idle / 2, presence::idle);
    now_ += limit_.session_idle / 2;
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, GivesAtMostAsManyExpiredSessionsAsAskedAndAllInTheEnd)
{
    for (std::uint64_t n = 1; n <= 25; ++n)
        made(n);
    now_ += limit_.session_idle;
    std::size_t ended = 0;
    for (int round = 0; round < 3; ++round) {
        auto const some = expired(10);
        EXPECT_LE(some.size(), 10u);
        for (auto const& key : some)
            ended += end(key).has_value();
    }
    EXPECT_EQ(ended, 25u);
}

TEST_P(StoreContract, KeepsAnExpiredSessionUntilItIsEnded)
{
    auto const key = made();
    now_ += limit_.session_idle;
    ASSERT_FALSE(expired().empty());
    EXPECT_TRUE(load(key));
    store().touch(key, now_, presence::held);
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, RemovesEverythingOfASessionAtItsEnd)
{
    limit_.events_per_stream = 2;
    auto const key = made();
    auto const fence = opened({key, 1});
    ASSERT_TRUE(append({key, 1}, fence, {response("pinned"), event("b"), event("c"), event("d")}));
    finished_and_delivered({key, 2}, "2");
    ASSERT_TRUE(append({key, standalone}, 0, {event("x")}));
    opened({key, 3});
    ASSERT_TRUE(end(key));
    auto const left = store().used();
    EXPECT_EQ(left.sessions, 0u);
    EXPECT_EQ(left.streams, 0u);
    EXPECT_EQ(left.bytes, 0u);
    EXPECT_EQ(error_of(load(key)), errc::not_found);
    for (stream_id const id : {stream_id(1), stream_id(2), stream_id(3), standalone})
        EXPECT_FALSE(exists({key, id})) << id;
    EXPECT_EQ(error_of(append({key, 1}, fence, {event("late")})), errc::not_found);
    EXPECT_EQ(running(key), ids{});
    sweep_after(limit_.event_age * 3);
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, DoesNotFindASessionToEndTwice)
{
    auto const key = made();
    ASSERT_TRUE(end(key));
    EXPECT_EQ(error_of(end(key)), errc::not_found);
}

TEST_P(StoreContract, StartsAnewUnderAnEndedId)
{
    auto const key = made();
    ASSERT_TRUE(append({key, standalone}, 0, {event("old")}));
    ASSERT_TRUE(end(key));
    ASSERT_TRUE(create(key));
    EXPECT_EQ(read({key, standalone})->state.top.sequence, 0u);
}

TEST_P(StoreContract, DoesNotFindASessionUnderAnotherPrincipal)
{
    auto const own = made(1, "alice");
    auto const foreign = key_of(1, "bob");
    auto const fence = opened({own, 1});
    EXPECT_EQ(error_of(load(foreign)), errc::not_found);
    EXPECT_EQ(error_of(update(record_of(foreign))), errc::not_found);
    EXPECT_EQ(error_of(end(foreign)), errc::not_found);
    EXPECT_EQ(error_of(try_open({foreign, 2})), errc::not_found);
    EXPECT_EQ(error_of(append({foreign, 1}, fence, {event("x")})), errc::not_found);
    EXPECT_EQ(error_of(read({foreign, 1})), errc::not_found);
    EXPECT_EQ(error_of(read({foreign, standalone})), errc::not_found);
    EXPECT_EQ(error_of(claim({foreign, 1}, "node/2")), errc::not_found);
    EXPECT_EQ(error_of(find(foreign, "1")), errc::not_found);
    EXPECT_EQ(running(foreign), ids{});
    store().touch(foreign, now_, presence::held);
    store().note_reader({foreign, 1}, {true, 1, 1, 1, 1, 1});
    EXPECT_FALSE(reader({own, 1})->attached);
    now_ += limit_.session_idle;
    EXPECT_EQ(expired(), std::vector{own});
}

TEST_P(StoreContract, KeepsTheSameIdOfTwoPrincipalsApart)
{
    auto const alice = made(1, "alice");
    auto const bob = made(1, "bob");
    ASSERT_TRUE(append({alice, standalone}, 0, {event("for alice")}));
    EXPECT_EQ(texts(read({bob, standalone})), strings{});
    ASSERT_TRUE(end(bob));
    EXPECT_EQ(texts(read({alice, standalone})), strings{"for alice"});
}

}

}
