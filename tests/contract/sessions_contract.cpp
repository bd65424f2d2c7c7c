// Sessions: made, changed, removed.
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

TEST_P(StoreContract, RefusesAnotherRecordUnderTheSameKey)
{
    auto const key = made();
    auto other = record_of(key);
    other.client_info = R"({"name":"another"})";
    EXPECT_EQ(error_of(create(other)), errc::conflict);
    EXPECT_EQ((*load(key))->client_info, "");
    EXPECT_TRUE(has_sessions(1));
}

// A store that called it under a lock would wait for itself.
TEST_P(StoreContract, MayBeAskedAgainInACompletion)
{
    auto const key = made();
    auto const loaded = await<record_ptr>([&](auto done) {
        store().create(record_of(key), [this, key, done = std::move(done)](auto const& again) mutable {
            EXPECT_TRUE(again);
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
    ASSERT_TRUE(remove(key_of(1)));
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
    EXPECT_TRUE(uses_bytes_between(16 * 1024, 20 * 1024));
    // A record that grows is charged for it, one that shrinks gives it back.
    auto grown = **created;
    grown.client_info = std::string(64 * 1024, 'i');
    EXPECT_EQ(error_of(update(grown)), errc::no_space);
    EXPECT_EQ((*load(record.key))->client_info, record.client_info);
    auto shrunk = **created;
    shrunk.client_info = "";
    ASSERT_TRUE(update(shrunk));
    EXPECT_TRUE(uses_bytes_between(8 * 1024, 12 * 1024));
    ASSERT_TRUE(remove(record.key));
    EXPECT_TRUE(uses_bytes(0));
}

TEST_P(StoreContract, RefusesASessionThatDoesNotFit)
{
    limit_.bytes_total = 64 * 1024;
    auto record = record_of(key_of(1));
    record.client_info = std::string(80 * 1024, 'i');
    EXPECT_EQ(error_of(create(record)), errc::no_space);
    EXPECT_TRUE(has_sessions(0));
    EXPECT_TRUE(uses_bytes(0));
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
    EXPECT_TRUE(eventually([&] { return store().subscribed_uris().size() == 2; }));
    ASSERT_TRUE(unsubscribe(key_of(3), "odd"));
    ASSERT_TRUE(unsubscribe(key_of(3), "odd")); // again
    ASSERT_TRUE(remove(key_of(5)));
    EXPECT_EQ(subscribers("odd", 1).size(), 3u);
}

TEST_P(StoreContract, SubscribesOnceHoweverOften)
{
    auto const key = made();
    ASSERT_TRUE(subscribe(key, "a", 1));
    auto const used = bytes();
    ASSERT_TRUE(subscribe(key, "a", 1));
    EXPECT_TRUE(uses_bytes(used));
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
    auto const before = bytes();
    std::size_t count = 0;
    while (count < 1000 && subscribe(key, std::string(1024, 'a') + std::to_string(count), 1000))
        ++count;
    EXPECT_GT(count, 10u);
    EXPECT_LT(count, 64u);
    EXPECT_EQ(error_of(subscribe(key, std::string(1024, 'b'), 1000)), errc::no_space);
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(unsubscribe(key, std::string(1024, 'a') + std::to_string(i)));
    EXPECT_TRUE(uses_bytes(before));
    EXPECT_TRUE(eventually([&] { return store().subscribed_uris().empty(); }));
}

TEST_P(StoreContract, ForgetsSubscriptionsWithTheirSession)
{
    auto const key = made();
    ASSERT_TRUE(subscribe(key, "a"));
    ASSERT_TRUE(remove(key));
    EXPECT_TRUE(subscribers("a").empty());
    EXPECT_TRUE(eventually([&] { return store().subscribed_uris().empty(); }));
    EXPECT_TRUE(uses_bytes(0));
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

TEST_P(StoreContract, WakesWhoWatchesASessionAfterAChange)
{
    auto const key = made();
    auto const watch = watch_session(key);
    auto const other = watch_session(made(2));
    auto record = *load(key).value();
    record.log_level = 5;
    ASSERT_TRUE(update(record));
    EXPECT_TRUE(is_woken(watch));
    EXPECT_EQ(*other.count, 0);
}

TEST_P(StoreContract, DoesNotWakeForASessionWhenTheHandleHasGone)
{
    auto const key = made();
    auto watch = watch_session(key);
    watch.handle.reset();
    auto record = *load(key).value();
    record.log_level = 5;
    ASSERT_TRUE(update(record));
    ASSERT_TRUE(remove(key));
    EXPECT_EQ(*watch.count, 0);
}

// --- the end

TEST_P(StoreContract, RemovesEverythingOfASessionAtItsEnd)
{
    limit_.events_per_stream = 2;
    auto const key = made();
    auto const fence = opened({key, 1});
    ASSERT_TRUE(append({key, 1}, fence, {response("pinned"), event("b"), event("c"), event("d")}));
    finished_and_delivered({key, 2}, {"2"});
    ASSERT_TRUE(announce(key, {event("x")}));
    ASSERT_TRUE(open_read({key, 3}, reader_of(1)));
    ASSERT_TRUE(post({key, 3}, cancel_of(0)));
    opened({key, 4}, {"4"}, "nobody/1");
    ASSERT_TRUE(remove(key));
    EXPECT_TRUE(has_sessions(0));
    EXPECT_TRUE(has_streams(0));
    EXPECT_TRUE(uses_bytes(0));
    EXPECT_EQ(error_of(load(key)), errc::not_found);
    for (stream_id const id : {stream_id(1), stream_id(2), stream_id(3), stream_id(4), standalone})
        EXPECT_EQ(error_of(read({key, id})), errc::not_found) << id;
    EXPECT_EQ(error_of(append({key, 1}, fence, {event("late")})), errc::not_found);
    EXPECT_EQ(lapsed(), ids{});
    sweep_after(limit_.event_age + limit_.session_idle * 3);
    EXPECT_TRUE(expire().removed.empty());
}

TEST_P(StoreContract, RemovesASessionThatIsGoneWithoutError)
{
    auto const key = made();
    ASSERT_TRUE(remove(key));
    EXPECT_TRUE(remove(key));
    EXPECT_TRUE(remove(key_of(2)));
    EXPECT_TRUE(has_sessions(0));
}

TEST_P(StoreContract, WakesWhoWatchesASessionThatGoes)
{
    auto const key = made();
    auto const watch = watch_session(key);
    ASSERT_TRUE(remove(key));
    EXPECT_TRUE(is_woken(watch));
}

TEST_P(StoreContract, StartsAnewUnderTheIdOfASessionThatIsGone)
{
    auto const key = made();
    ASSERT_TRUE(announce(key, {event("old")}));
    ASSERT_TRUE(close(key));
    ASSERT_TRUE(remove(key));
    ASSERT_TRUE(create(key));
    EXPECT_TRUE(load(key));
    EXPECT_EQ(read({key, standalone})->state.top.sequence, 0u);
    EXPECT_FALSE(read({key, standalone})->state.session_closed);
}

// --- principals

TEST_P(StoreContract, FindsNothingOfAnotherPrincipal)
{
    auto const own = made(1, "alice");
    auto const foreign = key_of(1, "bob");
    auto const fence = opened({own, 1});
    ASSERT_TRUE(append({own, 1}, fence, {question("q", 1)}));
    ASSERT_TRUE(subscribe(own, "a"));
    auto const used = bytes();

    EXPECT_EQ(error_of(load(foreign)), errc::not_found);
    EXPECT_EQ(error_of(update(record_of(foreign))), errc::not_found);
    EXPECT_EQ(error_of(close(foreign)), errc::not_found);
    EXPECT_TRUE(remove(foreign)); // as of any that is gone
    EXPECT_FALSE(subscribe(foreign, "b"));
    EXPECT_FALSE(unsubscribe(foreign, "a"));
    EXPECT_EQ(error_of(try_open({foreign, 2})), errc::not_found);
    EXPECT_EQ(error_of(append({foreign, 1}, fence, {event("x")})), errc::not_found);
    EXPECT_EQ(error_of(append_standalone({foreign, standalone}, node_1, 1, {event("x")})), errc::not_found);
    EXPECT_FALSE(blank({foreign, 1}, fence, 1));
    EXPECT_EQ(error_of(read({foreign, 1})), errc::not_found);
    EXPECT_EQ(error_of(read({foreign, standalone})), errc::not_found);
    EXPECT_EQ(error_of(attach({foreign, 1}, from_start(reader_of(1)))), errc::not_found);
    EXPECT_EQ(error_of(attach({foreign, standalone}, from_start(reader_of(1)))), errc::not_found);
    EXPECT_EQ(error_of(reader({foreign, 1})), errc::not_found);
    EXPECT_EQ(error_of(claim({foreign, 1}, fence, node_2)), errc::not_found);
    EXPECT_FALSE(release({foreign, 1}, fence));
    EXPECT_EQ(error_of(find(foreign, "1")), errc::not_found);
    EXPECT_EQ(error_of(post({foreign, 1}, cancel_of(0))), errc::not_found);
    EXPECT_FALSE(read_mail({foreign, 1}, fence));
    touch(foreign);
    store().note_delivered({foreign, 1}, 1);
    store().dismiss({foreign, 1}, {});

    EXPECT_TRUE(uses_bytes(used));
    EXPECT_TRUE(has_sessions(1));
    EXPECT_TRUE(load(own));
    EXPECT_EQ(texts(read({own, 1})), strings{"q"});
    EXPECT_EQ(reader({own, 1})->delivered, 0u);
    EXPECT_FALSE(reader({own, 1})->attached);
    EXPECT_EQ(mail({own, 1}, fence), strings{});
    EXPECT_EQ(subscribers("a").size(), 1u);
    EXPECT_TRUE(subscribers("b").empty());
    EXPECT_EQ(find(own, "1")->owner, node_1);
}

TEST_P(StoreContract, IsNotKeptByTheTouchOfAnotherPrincipal)
{
    auto const own = made(1, "alice");
    advance(limit_.session_idle / 2);
    touch(key_of(1, "bob"));
    advance(limit_.session_idle / 2 + overdue());
    EXPECT_EQ(expire().removed, std::vector{own});
}

TEST_P(StoreContract, KeepsTheSameIdOfTwoPrincipalsApart)
{
    auto const alice = made(1, "alice");
    auto const bob = made(1, "bob");
    ASSERT_TRUE(announce(alice, {event("for alice")}));
    EXPECT_EQ(texts(read({bob, standalone})), strings{});
    ASSERT_TRUE(remove(bob));
    EXPECT_EQ(texts(read({alice, standalone})), strings{"for alice"});
}

}

}
