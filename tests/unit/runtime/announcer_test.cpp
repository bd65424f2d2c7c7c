#include "runtime/announcer.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

class Announcer : public NodeFixture {
protected:
    void initialize(session_use const& use)
    {
        node_.sessions().change(
            use.session(), [](store::session_record& record) { record.initialized = true; },
            [](result<void> changed) { EXPECT_TRUE(changed); });
        world_.run_all();
    }
    void subscribe(session_use const& use, std::string uri)
    {
        node_.sessions().subscribe(
            *use.session(), std::move(uri), [](result<void> subscribed) { EXPECT_TRUE(subscribed); });
        world_.run_all();
    }
};

TEST_F(Announcer, TellsOneSessionInOrder)
{
    auto const other = session();
    node_.announcer().notify(use_->session(), "a");
    node_.announcer().notify(use_->session(), "b");
    EXPECT_EQ(announced_to(*use_), (texts{"a", "b"}));
    EXPECT_TRUE(announced_to(*other).empty());
}

TEST_F(Announcer, TellsAllThatAreReadyAndThatTheFilterTakes)
{
    auto const ready = session();
    auto const not_ready = session();
    initialize(*use_);
    initialize(*ready);
    node_.announcer().broadcast("all", [](auto const&) { return true; });
    node_.announcer().broadcast("one", [&](auto const& record) { return record.key == ready->session()->key; });
    EXPECT_EQ(announced_to(*use_), texts{"all"});
    EXPECT_EQ(announced_to(*ready), (texts{"all", "one"}));
    EXPECT_TRUE(announced_to(*not_ready).empty());
}

TEST_F(Announcer, TellsMoreSessionsThanItListsAtATime)
{
    std::vector<std::shared_ptr<session_use>> many;
    for (int i = 0; i < 300; ++i) {
        many.push_back(session());
        initialize(*many.back());
    }
    node_.announcer().broadcast("all", [](auto const&) { return true; });
    for (auto const& each : many)
        EXPECT_EQ(announced_to(*each), texts{"all"});
}

TEST_F(Announcer, TellsSubscribersOnly)
{
    auto const other = session();
    subscribe(*use_, "r://1");
    subscribe(*other, "r://2");
    node_.announcer().notify_subscribers("r://1", "changed");
    EXPECT_EQ(announced_to(*use_), texts{"changed"});
    EXPECT_TRUE(announced_to(*other).empty());
    EXPECT_EQ(node_.announcer().subscriptions().size(), 2u);
}

TEST_F(Announcer, ASessionThatIsGoneIsNoFailureOfTheOthers)
{
    auto const other = session();
    initialize(*use_);
    initialize(*other);
    node_.sessions().end(other->session()->key, loop_, [](result<void> ended) { EXPECT_TRUE(ended); });
    world_.run_all();
    node_.announcer().notify(other->session(), "nobody hears it");
    node_.announcer().notify(use_->session(), "a");
    EXPECT_EQ(announced_to(*use_), texts{"a"});
}

using question = troubled_store::question;

TEST_F(Announcer, TellsEverybodyOnceTheStoreCanBeAsked)
{
    initialize(*use_);
    between_.fail(question::list, 2);
    node_.announcer().broadcast("first", [](auto const&) { return true; });
    node_.announcer().broadcast("second", [](auto const&) { return true; });
    EXPECT_TRUE(announced_to(*use_).empty());
    for (int i = 0; i < 3; ++i) {
        world_.advance(std::chrono::seconds(1));
        world_.run_all();
    }
    EXPECT_EQ(announced_to(*use_), (texts{"first", "second"}));
}

TEST_F(Announcer, TellsSubscribersOnceTheStoreCanBeAsked)
{
    subscribe(*use_, "r://1");
    between_.fail(question::subscribers, 2);
    node_.announcer().notify_subscribers("r://1", "changed");
    EXPECT_TRUE(announced_to(*use_).empty());
    for (int i = 0; i < 3; ++i) {
        world_.advance(std::chrono::seconds(1));
        world_.run_all();
    }
    EXPECT_EQ(announced_to(*use_), texts{"changed"});
}

TEST_F(Announcer, TellsMoreSubscribersThanItFindsAtATime)
{
    std::vector<std::shared_ptr<session_use>> many;
    for (int i = 0; i < 200; ++i) {
        many.push_back(session());
        subscribe(*many.back(), "r://1");
    }
    node_.announcer().notify_subscribers("r://1", "changed");
    for (auto const& each : many)
        EXPECT_EQ(announced_to(*each), texts{"changed"});
}

TEST_F(Announcer, KeepsNoMoreForAStoreThatIsAwayThanAStreamWould)
{
    initialize(*use_);
    auto const most = node_.settings().limits.events_per_stream;
    between_.fail(question::list, 1);
    for (std::size_t i = 0; i < most + 5; ++i)
        node_.announcer().broadcast(std::to_string(i), [](auto const&) { return true; });
    world_.run_all();
    world_.advance(std::chrono::seconds(1));
    world_.run_all();
    // The first, which was under way, and the newest.
    EXPECT_EQ(read({use_->session()->key, use_->record()->standalone}).state.top.sequence, most + 1);
    EXPECT_EQ(between_.asked(question::list), most + 2); // once for each that was kept, and once in vain
}

}

}
