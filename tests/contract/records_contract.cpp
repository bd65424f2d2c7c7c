// Small records, which belong to no session, and words to all nodes.
#include "contract/store_contract.hpp"

#include <mutex>

namespace belay::store {

namespace {

// --- small records

TEST_P(StoreContract, GivesBackWhatWasPut)
{
    EXPECT_EQ(error_of(get("a")), errc::not_found);
    EXPECT_EQ(put("a", 0, "one"), 1u);
    ASSERT_TRUE(get("a"));
    EXPECT_EQ(get("a")->value, "one");
    EXPECT_EQ(get("a")->revision, 1u);
    EXPECT_EQ(error_of(get("b")), errc::not_found);
    std::string const odd("\0 {}*\n\xff", 7);
    ASSERT_TRUE(put(odd, 0, odd));
    EXPECT_EQ(get(odd)->value, odd);
    ASSERT_TRUE(put("empty", 0, ""));
    EXPECT_EQ(get("empty")->value, "");
}

TEST_P(StoreContract, ReplacesASmallRecordOnlyIfItIsAsItWasSeen)
{
    ASSERT_EQ(put("a", 0, "one"), 1u);
    EXPECT_EQ(error_of(put("a", 0, "other")), errc::conflict);
    EXPECT_EQ(error_of(put("a", 2, "other")), errc::conflict);
    EXPECT_EQ(put("a", 1, "two"), 2u);
    EXPECT_EQ(error_of(put("a", 1, "other")), errc::conflict);
    EXPECT_EQ(error_of(put("b", 1, "other")), errc::conflict); // there is none
    EXPECT_EQ(get("a")->value, "two");
    EXPECT_EQ(get("a")->revision, 2u);
    EXPECT_EQ(error_of(get("b")), errc::not_found);
}

TEST_P(StoreContract, ForgetsASmallRecordAfterItsLifetime)
{
    ASSERT_TRUE(put("short", 0, "x", std::chrono::minutes(1)));
    ASSERT_TRUE(put("long", 0, "x", std::chrono::minutes(10)));
    advance(std::chrono::minutes(1) - moment);
    EXPECT_TRUE(get("short"));
    advance(2 * moment);
    EXPECT_EQ(error_of(get("short")), errc::not_found);
    EXPECT_EQ(error_of(take("short", 1)), errc::not_found);
    EXPECT_EQ(error_of(put("short", 1, "y")), errc::conflict);
    EXPECT_TRUE(get("long"));
    EXPECT_TRUE(put("short", 0, "new"));
    EXPECT_EQ(get("short")->value, "new");
}

TEST_P(StoreContract, CountsALifetimeFromTheLastChange)
{
    ASSERT_TRUE(put("a", 0, "one", std::chrono::minutes(1)));
    advance(std::chrono::seconds(40));
    ASSERT_TRUE(put("a", 1, "two", std::chrono::minutes(1)));
    advance(std::chrono::seconds(40));
    EXPECT_TRUE(get("a"));
    advance(std::chrono::seconds(40));
    EXPECT_EQ(error_of(get("a")), errc::not_found);
}

TEST_P(StoreContract, LetsOneOfSeveralTakeASmallRecord)
{
    ASSERT_TRUE(put("a", 0, "one"));
    ASSERT_TRUE(put("a", 1, "two"));
    EXPECT_EQ(error_of(take("a", 1, "x")), errc::conflict);
    EXPECT_TRUE(get("a"));
    EXPECT_TRUE(take("a", 2, "y"));
    EXPECT_EQ(error_of(take("a", 2, "x")), errc::not_found);
    EXPECT_EQ(error_of(take("a", 2, "")), errc::not_found);
    EXPECT_EQ(error_of(get("a")), errc::not_found);
    EXPECT_EQ(error_of(put("a", 2, "three")), errc::conflict);
    EXPECT_EQ(error_of(take("b", 1)), errc::not_found); // there is none
}

// Whoever does not know whether it was the one asks again.
TEST_P(StoreContract, TellsWhoTookASmallRecordAgain)
{
    ASSERT_EQ(put("code", 0, "secret"), 1u);
    ASSERT_TRUE(take("code", 1, "x"));
    auto const used = bytes();
    EXPECT_TRUE(take("code", 1, "x"));
    EXPECT_EQ(error_of(take("code", 1, "y")), errc::not_found);
    // Nor does it come back with what is repeated of the time before.
    EXPECT_EQ(put("code", 0, "secret"), 1u);
    EXPECT_EQ(error_of(get("code")), errc::not_found);
    EXPECT_TRUE(uses_bytes(used));
    advance(late_command_limit - moment);
    EXPECT_TRUE(take("code", 1, "x"));
    sweep_after(2 * moment);
    EXPECT_EQ(error_of(take("code", 1, "x")), errc::not_found);
    EXPECT_TRUE(uses_bytes(0));
}

TEST_P(StoreContract, PutsASmallRecordWhereOneWasTaken)
{
    ASSERT_EQ(put("a", 0, "one"), 1u);
    ASSERT_TRUE(take("a", 1, "x"));
    auto const anew = put("a", 0, "anew");
    ASSERT_TRUE(anew);
    EXPECT_GT(*anew, 1u); // or who has seen the one before would take this one
    EXPECT_EQ(get("a")->revision, *anew);
    EXPECT_EQ(put("a", 0, "anew"), *anew);
    EXPECT_TRUE(take("a", 1, "x")); // of that time
    EXPECT_EQ(error_of(take("a", 1, "y")), errc::conflict);
    EXPECT_EQ(get("a")->value, "anew");
    EXPECT_TRUE(take("a", *anew, "y"));
    EXPECT_EQ(error_of(get("a")), errc::not_found);
}

TEST_P(StoreContract, BoundsTheNumberOfSmallRecords)
{
    limit_.small_records = 3;
    for (auto const* name : {"a", "b", "c"})
        ASSERT_TRUE(put(name, 0, "x", std::chrono::minutes(1)));
    EXPECT_EQ(error_of(put("d", 0, "x")), errc::no_space);
    EXPECT_EQ(error_of(get("d")), errc::not_found);
    EXPECT_TRUE(put("a", 1, "y", std::chrono::minutes(10))); // no more of them than before
    ASSERT_TRUE(take("b", 1));
    EXPECT_TRUE(put("d", 0, "x"));
    EXPECT_EQ(error_of(put("e", 0, "x")), errc::no_space);
    sweep_after(std::chrono::minutes(1) + moment);
    EXPECT_TRUE(put("e", 0, "x"));
}

TEST_P(StoreContract, BoundsTheBytesOfSmallRecords)
{
    limit_.bytes_total = 64 * 1024;
    EXPECT_EQ(error_of(put("a", 0, std::string(80 * 1024, 'x'))), errc::no_space);
    EXPECT_TRUE(uses_bytes(0));
    ASSERT_TRUE(put("a", 0, std::string(40 * 1024, 'x')));
    EXPECT_TRUE(uses_bytes_between(40 * 1024, 42 * 1024));
    EXPECT_EQ(error_of(put("a", 1, std::string(80 * 1024, 'x'))), errc::no_space);
    EXPECT_EQ(get("a")->revision, 1u);
    EXPECT_EQ(error_of(put("b", 0, std::string(40 * 1024, 'x'))), errc::no_space);
    auto large = record_of(key_of(1));
    large.client_info = std::string(40 * 1024, 'i');
    EXPECT_EQ(error_of(create(large)), errc::no_space); // all share the same room
    ASSERT_TRUE(put("a", 1, "small"));
    EXPECT_TRUE(uses_bytes_between(5, 2 * 1024));
    EXPECT_TRUE(create(large));
    ASSERT_TRUE(remove(large.key));
    ASSERT_TRUE(take("a", 2));
    EXPECT_TRUE(uses_bytes_between(1, 2 * 1024)); // it is remembered
    sweep_after(late_command_limit + moment);
    EXPECT_TRUE(uses_bytes(0));
}

TEST_P(StoreContract, GivesTheRoomOfADeadSmallRecordBack)
{
    ASSERT_TRUE(put("a", 0, std::string(1000, 'x'), std::chrono::minutes(1)));
    sweep_after(std::chrono::minutes(1) + moment);
    EXPECT_TRUE(uses_bytes(0));
}

TEST_P(StoreContract, KeepsSmallRecordsWhateverBecomesOfSessions)
{
    auto const key = made();
    ASSERT_TRUE(put("a", 0, "x"));
    ASSERT_TRUE(remove(key));
    EXPECT_TRUE(get("a"));
    EXPECT_TRUE(has_sessions(0));
}

// --- the bulletin

class listener {
public:
    explicit listener(backend& store)
        : handle_(store.listen([heard = heard_](std::string const& text) {
              std::lock_guard const lock(heard->mutex);
              heard->texts.push_back(text);
          }))
    {
    }
    [[nodiscard]] strings heard() const
    {
        std::lock_guard const lock(heard_->mutex);
        return heard_->texts;
    }
    void stop() { handle_.reset(); }

private:
    struct shared {
        std::mutex mutex;
        strings texts;
    };
    std::shared_ptr<shared> heard_ = std::make_shared<shared>();
    std::unique_ptr<watch_handle> handle_;
};

TEST_P(StoreContract, LetsAllListenersHear)
{
    listener const one(store());
    listener const two(store());
    store().publish("hello\n{}");
    for (auto const* each : {&one, &two}) {
        EXPECT_TRUE(eventually([&] { return !each->heard().empty(); }));
        EXPECT_EQ(each->heard(), strings{"hello\n{}"});
    }
}

TEST_P(StoreContract, LetsNobodyHearWhoDoesNotListenAnyMore)
{
    listener one(store());
    listener const two(store());
    one.stop();
    store().publish("hello");
    EXPECT_TRUE(eventually([&] { return !two.heard().empty(); }));
    EXPECT_EQ(one.heard(), strings{});
    listener const late(store());
    EXPECT_EQ(late.heard(), strings{});
}

}

}
