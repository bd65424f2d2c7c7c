// Sessions: made, changed, expired, ended.
#include "contract/store_contract.hpp"

#include <set>

namespace belay::store {

namespace {

TEST_P(StoreContract, LoadsWhatWasCreated)
{
    auto record = record_of(key_of(1, "someone"));
    record.client_info = R"({"name":"x"})";
    record.client_capabilities = R"({"roots":{}})";
    record.log_level = 3;
    ASSERT_TRUE(create(record));
    auto const loaded = load(record.key);
    ASSERT_TRUE(loaded);
    EXPECT_EQ((*loaded)->key, record.key);
    EXPECT_EQ((*loaded)->standalone, record.standalone);
    EXPECT_EQ((*loaded)->version, record.version);
    EXPECT_EQ((*loaded)->client_info, record.client_info);
    EXPECT_EQ((*loaded)->client_capabilities, record.client_capabilities);
    EXPECT_EQ((*loaded)->log_level, 3);
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
        store().create(record_of(key), now_, [this, key, done = std::move(done)](auto const& refused) mutable {
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

TEST_P(StoreContract, ChargesASessionForItsRecord)
{
    limit_.bytes_per_session = 64 * 1024;
    auto record = record_of(key_of(1));
    record.client_info = std::string(8 * 1024, 'i');
    record.client_capabilities = std::string(8 * 1024, 'c');
    auto const created = create(record);
    ASSERT_TRUE(created);
    EXPECT_EQ((*created)->client_info, record.client_info);
    EXPECT_GE(store().used().bytes, 16u * 1024);
    // A record that grows is charged for it, one that shrinks gives it back.
    auto grown = **created;
    grown.client_info = std::string(64 * 1024, 'i');
    EXPECT_EQ(error_of(update(grown)), errc::no_space);
    EXPECT_EQ((*load(record.key))->client_info, record.client_info);
    auto shrunk = **created;
    shrunk.client_info = "";
    ASSERT_TRUE(update(shrunk));
    EXPECT_LT(store().used().bytes, 16u * 1024);
    ASSERT_TRUE(end(record.key));
    EXPECT_EQ(store().used().bytes, 0u);
}

TEST_P(StoreContract, RefusesASessionThatDoesNotFit)
{
    limit_.bytes_total = 64 * 1024;
    auto record = record_of(key_of(1));
    record.client_info = std::string(80 * 1024, 'i');
    EXPECT_EQ(error_of(create(record)), errc::no_space);
    EXPECT_EQ(store().used().sessions, 0u);
    EXPECT_EQ(store().used().bytes, 0u);
}

// --- subscriptions

TEST_P(StoreContract, FindsTheSubscribersOfAUriPageByPage)
{
    EXPECT_TRUE(subscribers("a").empty());
    for (std::uint64_t n = 1; n <= 10; ++n)
        ASSERT_TRUE(subscribe(made(n), n % 2 ? "odd" : "even"));
    for (std::size_t const page : {1u, 2u, 5u, 100u}) {
        auto const odd = subscribers("odd", page);
        ASSERT_EQ(odd.size(), 5u);
        std::set<std::uint64_t> numbers;
        for (auto const& each : odd) {
            EXPECT_EQ(each.standalone, standalone);
            numbers.insert(each.session.id.low);
        }
        EXPECT_EQ(numbers, (std::set<std::uint64_t>{1, 3, 5, 7, 9}));
    }
    EXPECT_EQ(store().subscribed_uris().size(), 2u);
    ASSERT_TRUE(unsubscribe(key_of(3), "odd"));
    ASSERT_TRUE(unsubscribe(key_of(3), "odd")); // again
    ASSERT_TRUE(end(key_of(5)));
    EXPECT_EQ(subscribers("odd", 1).size(), 3u);
}

TEST_P(StoreContract, SubscribesOnceHoweverOften)
{
    auto const key = made();
    ASSERT_TRUE(subscribe(key, "a", 1));
    auto const used = store().used().bytes;
    ASSERT_TRUE(subscribe(key, "a", 1));
    EXPECT_EQ(store().used().bytes, used);
    EXPECT_EQ(subscribers("a").size(), 1u);
    EXPECT_EQ(error_of(subscribe(key, "b", 1)), errc::too_many_subscriptions);
    ASSERT_TRUE(unsubscribe(key, "a"));
    EXPECT_TRUE(subscribe(key, "b", 1));
    EXPECT_EQ(error_of(subscribe(key_of(2), "a")), errc::not_found);
    EXPECT_EQ(error_of(unsubscribe(key_of(2), "a")), errc::not_found);
}

TEST_P(StoreContract, ChargesASessionForItsSubscriptions)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const key = made();
    auto const before = store().used().bytes;
    std::size_t count = 0;
    while (count < 1000 && subscribe(key, std::string(1024, 'a') + std::to_string(count), 1000))
        ++count;
    EXPECT_GT(count, 10u);
    EXPECT_LT(count, 64u);
    EXPECT_EQ(error_of(subscribe(key, std::string(1024, 'b'), 1000)), errc::no_space);
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(unsubscribe(key, std::string(1024, 'a') + std::to_string(i)));
    EXPECT_EQ(store().used().bytes, before);
    EXPECT_TRUE(store().subscribed_uris().empty());
}

TEST_P(StoreContract, ForgetsSubscriptionsWithTheirSession)
{
    auto const key = made();
    ASSERT_TRUE(subscribe(key, "a"));
    ASSERT_TRUE(end(key));
    EXPECT_TRUE(subscribers("a").empty());
    EXPECT_TRUE(store().subscribed_uris().empty());
    EXPECT_EQ(store().used().bytes, 0u);
}

// --- changes

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
