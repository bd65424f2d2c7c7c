#include "runtime/following.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

class Following : public NodeFixture {};

TEST_F(Following, FirstGivesAnIdToComeBackWith)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    auto const events = reader->read_events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_TRUE(events.front().data.empty());
    EXPECT_FALSE(events.front().id.empty());
    EXPECT_TRUE(reader->retry_ms());
}

TEST_F(Following, WritesTheLogAndEndsWithItsAnswer)
{
    auto const begun = begin_with("1");
    say(*begun.call, "before it begins");
    auto const reader = read_from(begun.following);
    say(*begun.call, "after");
    begun.call->answer("done");
    EXPECT_EQ(reader->read(), (texts{"", "before it begins", "after", "done"}));
    EXPECT_TRUE(reader->wire->is_drained_to_end());
    EXPECT_FALSE(reader->wire->is_aborted());
}

TEST_F(Following, GoesOnAfterTheCursorAndNowhereElse)
{
    auto const begun = begin_with("1");
    auto const first = read_from(begun.following);
    say(*begun.call, "a");
    auto const seen = first->read_events();
    say(*begun.call, "b");
    world_.run_all();
    first->wire->cut(); // it has not read b
    world_.run_all();
    say(*begun.call, "c");
    auto const connection = follow(seen.back().id);
    ASSERT_TRUE(connection);
    auto const second = read_from(*connection);
    EXPECT_EQ(second->read(), (texts{"", "b", "c"}));
}

TEST_F(Following, TheEndOfAConnectionIsNotTheEndOfTheCall)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    (void)reader->read();
    reader->wire->cut();
    world_.run_all();
    EXPECT_EQ(node_.departures().connections(), 0u);
    EXPECT_FALSE(begun.call->is_ended());
    say(*begun.call, "a");
    EXPECT_EQ(log(*begun.call), texts{"a"});
}

TEST_F(Following, ASlowReaderGetsAllOfItInPieces)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following, 64);
    texts said{""};
    for (int i = 0; i < 20; ++i) {
        said.push_back("message " + std::to_string(i) + std::string(50, 'x'));
        say(*begun.call, said.back());
    }
    EXPECT_EQ(reader->read(), said);
}

TEST_F(Following, AClosedConnectionWritesWhatItHasAndWhenToComeBack)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    say(*begun.call, "a");
    begun.following->close(engine::close_reason::draining, std::chrono::milliseconds(1234));
    EXPECT_EQ(reader->read().back(), "a");
    EXPECT_EQ(reader->retry_ms(), 1234u);
    EXPECT_TRUE(reader->wire->is_over());
    EXPECT_FALSE(begun.call->is_ended());
}

TEST_F(Following, OneThatIsClosedBeforeItBeginsEndsAtOnce)
{
    auto const begun = begin_with("1");
    begun.following->close(engine::close_reason::draining, std::chrono::milliseconds(10));
    world_.run_all();
    auto const reader = read_from(begun.following);
    (void)reader->read();
    EXPECT_TRUE(reader->wire->is_over());
}

TEST_F(Following, ToldOnceOfWhatIsMissing)
{
    // More than is kept, while nobody reads.
    auto const most = node_.settings().limits.events_per_stream;
    auto const begun = begin_with("1");
    auto const first = read_from(begun.following);
    auto const cursor = first->read_events().back().id;
    first->wire->cut();
    world_.run_all();
    world_.advance(std::chrono::minutes(1)); // nobody waits for it any more
    world_.run_all();
    for (std::size_t i = 0; i < most + 10; ++i)
        say(*begun.call, std::to_string(i));
    world_.run_all();
    auto const connection = follow(cursor);
    ASSERT_TRUE(connection);
    auto const second = read_from(*connection);
    auto const messages = second->read();
    ASSERT_EQ(messages.size(), 2 + most);
    EXPECT_NE(messages[1].find("\"missed\":10"), std::string::npos);
    EXPECT_EQ(messages[2], "10");
    EXPECT_EQ(messages.back(), std::to_string(most + 9));
    auto const third = read_from(*follow(second->last_id()));
    EXPECT_EQ(third->read(), texts{""});
}

TEST_F(Following, AsksAgainWhetherItIsDismissedIfTheStoreCouldNotSay)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    (void)reader->read();
    between_.fail(troubled_store::question::read_after, 2);
    store_.dismiss(begun.call->stream(), {store::dismissal::over_budget, std::chrono::milliseconds(77)});
    (void)reader->read();
    EXPECT_FALSE(reader->wire->is_over());
    for (int i = 0; i < 3; ++i) {
        world_.advance(std::chrono::seconds(1));
        (void)reader->read();
    }
    EXPECT_TRUE(reader->wire->is_over());
    EXPECT_EQ(reader->retry_ms(), 77u);
}

}

}
