#include "http/sse.hpp"

#include <gtest/gtest.h>

#include <random>

namespace belay::http {

namespace {

std::string written(sse_event_view const& event)
{
    std::string out;
    append_event(out, event);
    return out;
}

std::vector<sse_event> read_pieces(std::vector<std::string_view> const& pieces)
{
    sse_reader reader;
    std::vector<sse_event> events;
    for (auto const piece : pieces) {
        EXPECT_TRUE(reader.feed(piece));
        while (auto event = reader.next())
            events.push_back(std::move(*event));
    }
    return events;
}

std::vector<sse_event> events_in(std::string_view bytes)
{
    auto const whole = read_pieces({bytes});
    for (std::size_t cut = 1; cut < bytes.size(); ++cut)
        EXPECT_EQ(read_pieces({bytes.substr(0, cut), bytes.substr(cut)}), whole) << "cut at " << cut;
    return whole;
}

sse_event event(std::string data, std::string id = {}, std::string type = "message")
{
    sse_event e;
    e.type = std::move(type);
    e.id = std::move(id);
    e.data = std::move(data);
    return e;
}

}

TEST(SseWriter, WritesTheFieldsInOrder)
{
    EXPECT_EQ(written({"message", "7", 1500, "{}"}), "event: message\nid: 7\nretry: 1500\ndata: {}\n\n");
    EXPECT_EQ(written({{}, {}, {}, "x"}), "data: x\n\n");
    EXPECT_EQ(written({{}, "7", {}, ""}), "id: 7\ndata: \n\n");
}

TEST(SseWriter, SplitsDataAtEveryKindOfLineEnd)
{
    EXPECT_EQ(written({{}, {}, {}, "a\nb\rc\r\nd\n"}), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
}

TEST(SseWriter, LeavesOutATypeOrIdThatWouldBreakTheStream)
{
    EXPECT_EQ(written({"a\nb", "c\rd", {}, "x"}), "data: x\n\n");
    EXPECT_EQ(written({{}, std::string_view("c\0d", 3), {}, "x"}), "data: x\n\n");
}

TEST(SseWriter, WritesCommentsAndRetry)
{
    std::string out;
    append_comment(out, "keep-alive");
    append_comment(out, "a\ndata: b");
    append_retry(out, 3000);
    EXPECT_EQ(out, ": keep-alive\n\n: a\n: data: b\n\nretry: 3000\n\n");
    sse_reader reader;
    reader.feed(out);
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.comment_count(), 3u);
    EXPECT_EQ(reader.retry_ms(), 3000u);
}

TEST(SseReader, ReadsEventsWithAllLineEnds)
{
    EXPECT_EQ(events_in("data: a\n\ndata: b\r\rdata: c\r\n\r\n"), (std::vector{event("a"), event("b"), event("c")}));
}

TEST(SseReader, FollowsTheExamplesOfTheStandard)
{
    EXPECT_EQ(events_in("data: YHOO\ndata: +2\ndata: 10\n\n"), std::vector{event("YHOO\n+2\n10")});
    EXPECT_EQ(
        events_in(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"),
        (std::vector{event("first event", "1"), event("second event"), event(" third event")}));
    EXPECT_EQ(events_in("data\n\ndata\ndata\n\ndata:"), (std::vector{event(""), event("\n")}));
    EXPECT_EQ(events_in("data:test\n\ndata: test\n\n"), (std::vector{event("test"), event("test")}));
}

TEST(SseReader, KeepsTheLastIdAndDropsTheType)
{
    EXPECT_EQ(
        events_in("event: e\nid: 1\ndata: a\n\ndata: b\n\n"), (std::vector{event("a", "1", "e"), event("b", "1")}));
}

TEST(SseReader, RemembersAnIdWithoutData)
{
    sse_reader reader;
    reader.feed("id: 9\n\n");
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.last_id(), "9");
}

TEST(SseReader, IgnoresAnIdWithNulAndARetryThatIsNoNumber)
{
    EXPECT_EQ(
        events_in(std::string_view("id: 1\nid: a\0b\nretry: 1x\nretry: -1\nretry:\ndata: d\n\n", 50)),
        std::vector{event("d", "1")});
}

TEST(SseReader, SkipsAByteOrderMarkAtTheStartOnly)
{
    EXPECT_EQ(
        events_in("\xEF\xBB\xBF"
                  "data: a\n\n\xEF\xBB\xBF"
                  "data: b\n\n"),
        std::vector{event("a")});
}

TEST(SseReader, DropsAnUnfinishedEvent)
{
    EXPECT_TRUE(events_in("data: a\n").empty());
    EXPECT_TRUE(events_in("data: a").empty());
}

TEST(SseReader, GivesUpAtItsLimits)
{
    sse_reader lines({10, 100});
    EXPECT_TRUE(lines.feed("data: 6789\n"));
    EXPECT_FALSE(lines.feed("data: 67890\n"));
    EXPECT_FALSE(lines.feed("\n"));
    EXPECT_TRUE(lines.has_failed());
    sse_reader events({100, 10});
    EXPECT_TRUE(events.feed("data: 0123\ndata: 456\n"));
    EXPECT_FALSE(events.feed("data: 789\n"));
}

TEST(Sse, GivesBackWhatWasWritten)
{
    std::mt19937 random(7);
    std::string_view const alphabet = "ab: \n\r{}\"\xC3\xA9";
    for (int round = 0; round < 300; ++round) {
        std::string stream;
        std::vector<sse_event> expected;
        std::string last_id;
        for (auto n = random() % 5; n > 0; --n) {
            std::string data;
            for (auto size = random() % 12; size > 0; --size)
                data += alphabet[random() % alphabet.size()];
            std::string const id = "id" + std::to_string(random() % 100);
            sse_event_view view{{}, {}, {}, data};
            sse_event seen;
            if (random() % 2) {
                view.id = id;
                last_id = id;
            }
            if (random() % 2)
                view.type = seen.type = "tick";
            if (random() % 2)
                view.retry_ms = seen.retry_ms = static_cast<std::uint32_t>(random());
            append_event(stream, view);
            if (random() % 3 == 0)
                append_comment(stream, data);
            // Readers see every line end as LF.
            for (std::size_t i = 0; i < data.size(); ++i) {
                if (data[i] == '\r' && i + 1 < data.size() && data[i + 1] == '\n')
                    continue;
                seen.data += data[i] == '\r' ? '\n' : data[i];
            }
            seen.id = last_id;
            expected.push_back(seen);
        }
        ASSERT_EQ(events_in(stream), expected) << stream;
    }
}

}
