#include "runtime/attachments.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

class Attachments : public NodeFixture {};

TEST_F(Attachments, WithoutACursorFollowTheStandaloneStream)
{
    auto const connection = follow();
    ASSERT_TRUE(connection);
    EXPECT_EQ((*connection)->stream(), use_->record()->standalone);
}

TEST_F(Attachments, RefuseACursorThatCannotBeRead)
{
    EXPECT_EQ(follow("not one").error(), follow_refusal::bad_cursor);
}

TEST_F(Attachments, RefuseACursorOfAnotherSession)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    (void)reader->read();
    auto const stranger = session();
    std::optional<follow_refusal> refused;
    follow_request request;
    request.last_event_id = reader->last_id();
    node_.attachments().follow(*stranger, loop_, request, [&](followed done) { refused = done.error(); });
    world_.run_all();
    EXPECT_EQ(refused, follow_refusal::bad_cursor);
}

TEST_F(Attachments, HaveNothingForWhoHasItAll)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    begun.call->answer("done");
    EXPECT_EQ(reader->read().back(), "done");
    EXPECT_EQ(follow(reader->last_id()).error(), follow_refusal::nothing_left);
}

TEST_F(Attachments, TheNewestTakesAStreamOver)
{
    auto const begun = begin_with("1");
    auto const first = read_from(begun.following);
    say(*begun.call, "a");
    EXPECT_EQ(first->read().back(), "a");
    auto const connection = follow(first->last_id());
    ASSERT_TRUE(connection);
    auto const second = read_from(*connection);
    (void)second->read();
    say(*begun.call, "b");
    EXPECT_EQ(second->read(), texts{"b"});
    EXPECT_TRUE(first->read().empty());
    EXPECT_TRUE(first->wire->is_over());
    EXPECT_EQ(metrics_.takeovers.Value(), 1);
}

TEST_F(Attachments, OneWhoseNumberWasOvertakenComesAgainAsTheNewest)
{
    auto const begun = begin_with("1");
    auto const first = read_from(begun.following);
    (void)first->read();
    // Another loop was faster with a later number.
    store::attach_request faster;
    faster.reader.id = begun.following->reader();
    faster.reader.id.connection += 3;
    store_.attach(begun.call->stream(), faster, [](result<store::attached_stream> attached) { EXPECT_TRUE(attached); });
    store_.detach(begun.call->stream(), faster.reader.id, std::nullopt);
    auto const connection = follow(first->last_id());
    ASSERT_TRUE(connection);
    auto const second = read_from(*connection);
    say(*begun.call, "a");
    EXPECT_EQ(second->read().back(), "a");
}

TEST_F(Attachments, APageHasRoomForFewAndTheOldestIsClosed)
{
    std::vector<std::shared_ptr<reading_client>> readers;
    std::vector<begun_call> calls;
    for (int i = 0; i < 5; ++i) {
        call_request request;
        request.ids = {std::to_string(i)};
        request.from = caller::browser;
        calls.push_back(begin_with(std::move(request)));
        readers.push_back(read_from(calls.back().following));
        world_.run_all();
    }
    EXPECT_TRUE(readers[0]->wire->is_over());
    for (std::size_t i = 1; i < readers.size(); ++i)
        EXPECT_FALSE(readers[i]->wire->is_over()) << i;
    (void)readers[0]->read();
    EXPECT_TRUE(readers[0]->retry_ms());
    EXPECT_FALSE(calls[0].call->is_ended());
}

TEST_F(Attachments, AllAreClosedWithATimeToComeBack)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    (void)reader->read();
    node_.attachments().close_all(engine::close_reason::draining);
    (void)reader->read();
    EXPECT_TRUE(reader->wire->is_over());
    EXPECT_GE(reader->retry_ms().value_or(0), 5000u);
    EXPECT_FALSE(begun.call->is_ended());
    EXPECT_EQ(node_.departures().connections(), 0u);
}

}

}
