#include "runtime/call_notes.hpp"

#include <gtest/gtest.h>

namespace belay::runtime {

namespace {

using namespace std::chrono_literals;

TEST(CallNotes, AreReadAsTheyWereWritten)
{
    for (auto const& notes :
         {call_notes{}, call_notes{{{true, false}}, 0s, ""}, call_notes{{{false, true}, {true, true}, {}}, 30s, ""},
          call_notes{{{true, true}}, 1500ms, R"({"jsonrpc":"2.0","id":1,"method":"m,s"})"}})
        EXPECT_EQ(read_call_notes(to_text(notes)), notes);
}

TEST(CallNotes, SayTheCarefulDefaultsOfWhatIsNotThere)
{
    for (auto const* const text : {"", "x", "s,", "\n", "s,\n12", "s,\nx\n{}"}) {
        auto const notes = read_call_notes(text);
        EXPECT_EQ(notes.kind_of(1), request_kind());
        EXPECT_EQ(notes.time, base::duration::zero());
        EXPECT_TRUE(notes.request.empty());
    }
    EXPECT_TRUE(read_call_notes("s,").kind_of(0).is_retry_safe);
}

}

}
