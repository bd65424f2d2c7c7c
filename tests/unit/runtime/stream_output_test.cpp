#include "runtime/stream_output.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

using namespace std::chrono_literals;
using question = troubled_store::question;

class StreamOutput : public NodeFixture {};

TEST_F(StreamOutput, ALateWordOfItsReaderDoesNotUndoANewerOne)
{
    call_request request;
    request.ids = {"1"};
    request.traits.orphan_limit = 5s;
    auto const begun = begin_with(std::move(request));
    auto const first = read_from(begun.following);
    auto const cursor = first->read_events().back().id;
    between_.hold(question::reader);
    first->wire->cut();
    world_.run_all();
    auto const connection = follow(cursor);
    ASSERT_TRUE(connection);
    auto const second = read_from(*connection);
    (void)second->read();
    while (between_.held() > 0) { // the newest first
        between_.reply(between_.held() - 1);
        world_.run_all();
    }
    between_.hold_no_more(question::reader);
    for (int i = 0; i < 10; ++i) {
        world_.advance(1s);
        world_.run_all();
    }
    EXPECT_FALSE(begun.call->is_ended());
}

}

}
