// How sessions end: idle for too long, too old, closed. And how they are listed.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

using keys = std::vector<session_key>;

// --- idle sessions

TEST_P(StoreContract, RemovesASessionThatWasNeverUsed)
{
    auto const key = made();
    advance(limit_.session_idle - moment);
    EXPECT_EQ(expire().removed, keys{});
    advance(moment + overdue());
    EXPECT_EQ(expire().removed, keys{key});
    EXPECT_EQ(error_of(load(key)), errc::not_found);
    EXPECT_TRUE(has_sessions(0));
    EXPECT_TRUE(uses_bytes(0));
}

TEST_P(StoreContract, CountsIdlenessFromTheLastTouch)
{
    auto const key = made();
    made(2);
    advance(limit_.session_idle / 2);
    touch(key);
    advance(limit_.session_idle / 2 + overdue());
    EXPECT_EQ(expire().removed, keys{key_of(2)});
    advance(limit_.session_idle / 2);
    EXPECT_EQ(expire().removed, keys{key});
}

TEST_P(StoreContract, TouchesSeveralSessionsAtOnce)
{
    keys const all{made(1), made(2), key_of(7)};
    made(3);
    advance(limit_.session_idle / 2);
    store().touch(all);
    advance(limit_.session_idle / 2 + overdue());
    EXPECT_EQ(expire().removed, keys{key_of(3)});
}

TEST_P(StoreContract, CountsIdlenessFromTheLastLoad)
{
    auto const key = made();
    advance(limit_.session_idle / 2);
    ASSERT_TRUE(load(key));
    advance(limit_.session_idle / 2 + moment);
    EXPECT_EQ(expire().removed, keys{});
    advance(limit_.session_idle / 2 + overdue());
    EXPECT_EQ(expire().removed, keys{key});
}

TEST_P(StoreContract, KeepsASessionThatIsRead)
{
    auto const key = made();
    auto const one = follow({key, standalone}, reader_of(1));
    advance(limit_.session_idle * 10);
    EXPECT_EQ(expire().removed, keys{});
    leave({key, standalone}, one);
    ASSERT_TRUE(is_left({key, standalone}));
    EXPECT_EQ(expire().removed, keys{}); // idle from now on
    advance(limit_.session_idle - moment);
    EXPECT_EQ(expire().removed, keys{});
    advance(moment + overdue());
    EXPECT_EQ(expire().removed, keys{key});
}

TEST_P(StoreContract, KeepsASessionWithACall)
{
    auto const key = made();
    auto const fence = opened({key, 1});
    advance(limit_.session_idle * 10);
    EXPECT_EQ(expire().removed, keys{});
    finish({key, 1}, fence);
    EXPECT_EQ(expire().removed, keys{}); // idle from now on
    advance(limit_.session_idle - moment);
    EXPECT_EQ(expire().removed, keys{});
    advance(moment + overdue());
    EXPECT_EQ(expire().removed, keys{key});
}

// One node's reader that leaves says nothing of another's.
TEST_P(StoreContract, KeepsASessionUntilTheLastOfItsReadersHasLeft)
{
    auto const key = made();
    auto const one = follow({key, standalone}, reader_of(1, node_1));
    opened({key, 1}, {"1"}, "stranger/1");
    follow({key, 1}, reader_of(1, node_2));
    leave({key, standalone}, one);
    advance(limit_.session_idle * 2);
    EXPECT_EQ(expire().removed, keys{});
}

TEST_P(StoreContract, IsNotKeptByTheDead)
{
    auto const owner = mortal();
    auto const read = made(1);
    follow({read, standalone}, reader_of(1, owner));
    auto const called = made(2);
    opened({called, 1}, {"1"}, owner);
    advance(lease - moment);
    ASSERT_TRUE(renew(owner, limit_.session_idle * 2));
    advance(limit_.session_idle * 2 - moment);
    EXPECT_EQ(expire().removed, keys{});
    // Dead from here on, and held until here.
    advance(2 * moment);
    EXPECT_EQ(expire().removed, keys{});
    advance(limit_.session_idle + overdue());
    auto removed = expire().removed;
    std::ranges::sort(removed, {}, [](session_key const& each) { return each.id.low; });
    EXPECT_EQ(removed, (keys{read, called}));
}

TEST_P(StoreContract, RemovesAtMostAsManySessionsAsAskedAndAllInTheEnd)
{
    for (std::uint64_t n = 1; n <= 25; ++n)
        made(n);
    advance(limit_.session_idle + overdue());
    std::size_t removed = 0;
    for (int round = 0; round < 3; ++round) {
        auto const some = expire(10).removed;
        EXPECT_LE(some.size(), 10u);
        removed += some.size();
    }
    EXPECT_EQ(removed, 25u);
    EXPECT_TRUE(has_sessions(0));
}

TEST_P(StoreContract, WakesWhoWatchesASessionThatExpires)
{
    auto const key = made();
    auto const watch = watch_session(key);
    advance(limit_.session_idle + overdue());
    ASSERT_EQ(expire().removed, keys{key});
    EXPECT_TRUE(is_woken(watch));
}

// --- old sessions

TEST_P(StoreContract, NamesASessionThatIsOlderThanItMayGet)
{
    limit_.session_lifetime = std::chrono::hours(2);
    auto const key = made();
    opened({key, 1}); // holds it
    advance(limit_.session_lifetime - moment);
    EXPECT_EQ(expire().overdue, keys{});
    made(2);
    advance(2 * moment);
    auto const found = expire();
    EXPECT_EQ(found.overdue, keys{key});
    EXPECT_EQ(found.removed, keys{});
    EXPECT_TRUE(load(key)); // somebody has to close it
    ASSERT_TRUE(close(key));
    EXPECT_EQ(expire().overdue, keys{});
}

TEST_P(StoreContract, LetsASessionGetAsOldAsItLikesWithoutALimit)
{
    auto const key = made();
    opened({key, 1});
    advance(std::chrono::hours(10'000));
    auto const found = expire();
    EXPECT_EQ(found.overdue, keys{});
    EXPECT_EQ(found.removed, keys{});
}

// --- closed sessions

TEST_P(StoreContract, RefusesWhatIsNewInAClosedSession)
{
    auto const key = made();
    auto const fence = opened({key, 1});
    ASSERT_TRUE(close(key));
    EXPECT_EQ(error_of(load(key)), errc::not_found);
    EXPECT_EQ(error_of(try_open({key, 2}, {"2"})), errc::not_found);
    EXPECT_EQ(error_of(attach({key, 1}, from_start(reader_of(1)))), errc::not_found);
    EXPECT_EQ(error_of(attach({key, standalone}, from_start(reader_of(1)))), errc::not_found);
    EXPECT_TRUE(list()->sessions.empty());
    // Its calls end properly, and who reads them reads the end.
    EXPECT_TRUE(append({key, 1}, fence, {response("the session has ended")}, true));
    auto const page = read({key, 1});
    EXPECT_EQ(texts(page), strings{"the session has ended"});
    EXPECT_TRUE(page->state.session_closed);
    EXPECT_TRUE(page->state.finished);
}

TEST_P(StoreContract, TellsEveryCallOfAClosedSession)
{
    auto const key = made();
    auto const one = opened({key, 1});
    finish({key, 2}, opened({key, 2}, {"2"}));
    auto const three = opened({key, 3}, {"3"}, "stranger/1");
    ASSERT_TRUE(announce(key, {event("a")}));
    auto const other = opened({made(2), 4});
    auto const arrives = watch({key, 1}, event_store::interest::mail);
    auto const told = close(key);
    ASSERT_TRUE(told);
    EXPECT_EQ(streams_of(*told), (ids{1, 3}));
    for (auto const& call : *told) {
        EXPECT_EQ(call.owner, call.stream.stream == 1 ? node_1 : "stranger/1");
        EXPECT_EQ(call.fence, call.stream.stream == 1 ? one : three);
    }
    EXPECT_TRUE(is_woken(arrives));
    EXPECT_EQ(mail({key, 1}, one), strings{"session_ended 0 "});
    EXPECT_EQ(mail({key, 3}, three), strings{"session_ended 0 "});
    EXPECT_EQ(mail({key_of(2), 4}, other), strings{});
}

TEST_P(StoreContract, WakesTheReadersOfAClosedSession)
{
    auto const key = made();
    ASSERT_TRUE(open_read({key, 1}, reader_of(1)));
    follow({key, standalone}, reader_of(2));
    auto const request = watch({key, 1}, event_store::interest::growth);
    auto const announcements = watch({key, standalone}, event_store::interest::growth);
    ASSERT_TRUE(close(key));
    EXPECT_TRUE(is_woken(request));
    EXPECT_TRUE(is_woken(announcements));
    EXPECT_TRUE(read({key, standalone})->state.session_closed);
}

TEST_P(StoreContract, DoesNotFindASessionToCloseThatIsGone)
{
    EXPECT_EQ(error_of(close(key_of(1))), errc::not_found);
    auto const key = made();
    ASSERT_TRUE(remove(key));
    EXPECT_EQ(error_of(close(key)), errc::not_found);
}

TEST_P(StoreContract, IsQuietWhenTheLastCallAndTheLastReaderHaveGone)
{
    auto const key = made();
    auto const fence = opened({key, 1});
    auto const one = follow({key, standalone}, reader_of(1));
    ASSERT_TRUE(close(key));
    EXPECT_FALSE(is_quiet(key).value());
    finish({key, 1}, fence);
    EXPECT_FALSE(is_quiet(key).value());
    auto const watch = watch_session(key);
    leave({key, standalone}, one);
    EXPECT_TRUE(is_woken(watch));
    EXPECT_TRUE(eventually([&] { return is_quiet(key).value(); }));
}

TEST_P(StoreContract, IsQuietWhenTheLastReaderHasLeftBeforeTheLastCall)
{
    auto const key = made();
    auto const fence = opened({key, 1});
    auto const one = follow({key, standalone}, reader_of(1));
    ASSERT_TRUE(close(key));
    leave({key, standalone}, one);
    EXPECT_FALSE(is_quiet(key).value());
    auto const watch = watch_session(key);
    finish({key, 1}, fence);
    EXPECT_TRUE(is_woken(watch));
    EXPECT_TRUE(is_quiet(key).value());
}

TEST_P(StoreContract, IsQuietWhateverTheDeadHaveLeftBehind)
{
    auto const key = made();
    auto const owner = mortal();
    opened({key, 1}, {"1"}, owner);
    follow({key, standalone}, reader_of(1, owner));
    ASSERT_TRUE(close(key));
    EXPECT_FALSE(is_quiet(key).value());
    advance(lease + moment);
    EXPECT_TRUE(is_quiet(key).value());
}

TEST_P(StoreContract, IsQuietAtOnceWithoutCallsAndReaders)
{
    auto const key = made();
    finish({key, 1}, opened({key, 1}));
    ASSERT_TRUE(close(key));
    EXPECT_TRUE(is_quiet(key).value());
    ASSERT_TRUE(remove(key));
    EXPECT_TRUE(is_quiet(key).value());
}

TEST_P(StoreContract, RemovesAClosedSessionThatWasForgotten)
{
    auto const key = made();
    made(2);
    ASSERT_TRUE(announce(key, {event("a")}));
    ASSERT_TRUE(close(key));
    advance(closed_session_limit / 2);
    (void)expire();
    EXPECT_TRUE(has_sessions(2));
    advance(closed_session_limit / 2 + moment);
    (void)expire();
    EXPECT_TRUE(has_sessions(1));
    EXPECT_EQ(error_of(read({key, standalone})), errc::not_found);
    EXPECT_TRUE(load(key_of(2)));
}

// --- the listing

TEST_P(StoreContract, ListsSessionsInTheOrderOfTheirNames)
{
    std::vector<std::string> expected;
    for (std::uint64_t n = 1; n <= 9; ++n) {
        session_key const key{n % 2 ? "ann" : "bob", {n << 32, n * n}};
        ASSERT_TRUE(create(key));
        expected.push_back(base::log_name(key.id));
    }
    std::ranges::sort(expected);
    auto const name_of = [](listed_session const& session) { return base::log_name(session.record->key.id); };
    for (std::size_t const size : {1u, 2u, 3u, 9u, 100u}) {
        strings found;
        for (bool has_more = true; has_more && found.size() < 100;) {
            auto const page = list(found.empty() ? "" : found.back(), size);
            ASSERT_TRUE(page);
            EXPECT_LE(page->sessions.size(), size);
            EXPECT_EQ(page->total, 9u);
            for (auto const& each : page->sessions)
                found.push_back(name_of(each));
            has_more = page->has_more;
        }
        EXPECT_EQ(found, expected) << size;
    }
    // From a session that is gone, too.
    auto const gone = named(expected[6]);
    ASSERT_EQ(gone.size(), 1u);
    ASSERT_TRUE(remove(gone[0]));
    auto const rest = list(expected[6]);
    ASSERT_EQ(rest->sessions.size(), 2u);
    EXPECT_EQ(name_of(rest->sessions[0]), expected[7]);
    EXPECT_FALSE(rest->has_more);
}

TEST_P(StoreContract, ListsAllSessionsOfOneName)
{
    for (auto const* principal : {"ann", "bob", "eve"})
        made(1, principal);
    made(2);
    std::size_t found = 0;
    std::string after;
    for (bool has_more = true; has_more && found < 100;) {
        auto const page = list(after, 1);
        ASSERT_TRUE(page);
        ASSERT_FALSE(page->sessions.empty());
        found += page->sessions.size();
        after = base::log_name(page->sessions.back().record->key.id);
        has_more = page->has_more;
    }
    EXPECT_EQ(found, 4u);
}

TEST_P(StoreContract, FindsSessionsByTheirNames)
{
    auto const key = made(1, "ann");
    auto const name = base::log_name(key.id);
    EXPECT_EQ(named(name), keys{key});
    EXPECT_EQ(named(""), keys{});
    EXPECT_EQ(named("no such name"), keys{});
    auto const twin = made(1, "bob");
    auto both = named(name);
    std::ranges::sort(both, {}, &session_key::principal);
    EXPECT_EQ(both, (keys{key, twin}));
    ASSERT_TRUE(remove(key));
    EXPECT_EQ(named(name), keys{twin});
}

TEST_P(StoreContract, ListsWhatASessionDoes)
{
    auto record = record_of(key_of(1));
    record.client_info = "somebody";
    ASSERT_TRUE(create(record));
    auto const key = record.key;
    advance(std::chrono::minutes(2));
    auto const idle = list();
    ASSERT_EQ(idle->sessions.size(), 1u);
    EXPECT_EQ(idle->sessions[0].record->client_info, "somebody");
    EXPECT_GE(idle->sessions[0].age, std::chrono::minutes(2));
    EXPECT_LT(idle->sessions[0].age, std::chrono::minutes(2) + moment);
    EXPECT_GE(idle->sessions[0].idle, std::chrono::minutes(2));
    EXPECT_LT(idle->sessions[0].idle, std::chrono::minutes(2) + moment);
    EXPECT_EQ(idle->sessions[0].readers, 0u);
    EXPECT_EQ(idle->sessions[0].running_calls, 0u);

    ASSERT_TRUE(open_read({key, 1}, reader_of(1)));
    opened({key, 2}, {"2"}, node_2);
    opened({key, 3}, {"3"}, node_2);
    finish({key, 4}, opened({key, 4}, {"4"}, "other/1"));
    follow({key, standalone}, reader_of(2, node_2));
    auto const busy = list();
    ASSERT_EQ(busy->sessions.size(), 1u);
    auto const& found = busy->sessions[0];
    EXPECT_EQ(found.idle, base::duration::zero());
    EXPECT_EQ(found.readers, 2u);
    EXPECT_EQ(found.running_calls, 3u);
    auto owners = found.call_owners;
    std::ranges::sort(owners);
    EXPECT_EQ(owners, (strings{node_1, node_2}));
}

}

}
