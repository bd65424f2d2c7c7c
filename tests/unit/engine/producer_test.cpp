#include "engine/producer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace belay::engine {

namespace {

using namespace std::chrono_literals;

// --- actions as text

std::string say(append_events const& action)
{
    std::string text = action.finish ? "finish" : "append";
    for (auto const& each : action.events)
        text += (each.kind == store::event_kind::response ? " =" : " ") + *each.payload;
    return text;
}
std::string say(resume_emit const& action)
{
    return action.error ? fmt::format("fail {}: {}", action.ticket, action.error.message())
                        : fmt::format("resume {}", action.ticket);
}
std::string say(drop_reader)
{
    return "drop reader";
}
std::string say(asked const& action)
{
    return action.sequence ? fmt::format("asked {} at {}", action.ticket, *action.sequence)
                           : fmt::format("not asked {}", action.ticket);
}
std::string say(answered action)
{
    return action.is_last ? "answered" : "answered one";
}
std::string say(answer_refused const& action)
{
    return fmt::format("refused: {}", action.error.message());
}

std::string say(producer_actions const& actions)
{
    std::string text;
    for (auto const& each : actions) {
        if (!text.empty())
            text += "; ";
        text += std::visit([](auto const& action) { return say(action); }, each);
    }
    return text;
}

store::bytes bytes(std::string text)
{
    return std::make_shared<std::string const>(std::move(text));
}

class Producer : public testing::Test {
protected:
    flow_settings settings_;
    producer machine_{settings_};
    base::time_point now_{1h};
    std::uint64_t last_ticket_ = 0;

    std::string emit(std::string text)
    {
        return told([&](producer_actions& out) { last_ticket_ = machine_.emit(bytes(std::move(text)), now_, out); });
    }
    std::string progress(std::string text, base::duration after = 0s)
    {
        now_ += after;
        return told([&](producer_actions& out) { machine_.progress(bytes(std::move(text)), now_, out); });
    }
    std::string finish(std::string text)
    {
        return told([&](producer_actions& out) { EXPECT_TRUE(machine_.answer(bytes(std::move(text)), true, out)); });
    }
    std::string refinish(std::string text)
    {
        return told([&](producer_actions& out) { machine_.replace_answer(bytes(std::move(text)), out); });
    }
    /// Appended up to that sequence; offsets are ten times the sequence.
    std::string appended(std::uint64_t top)
    {
        return told([&](producer_actions& out) { machine_.appended(store::stream_top{1, top, top * 10}, now_, out); });
    }
    std::string append_failed(errc why)
    {
        return told([&](producer_actions& out) { machine_.appended(failure(why), now_, out); });
    }
    std::string reader(bool attached, std::uint64_t position, base::duration after = 0s)
    {
        now_ += after;
        return told([&](producer_actions& out) {
            machine_.reader_moved({attached, position, position * 10, position, 0, position}, now_, out);
        });
    }
    std::string tick(base::duration after = 0s)
    {
        now_ += after;
        return told([&](producer_actions& out) { machine_.tick(now_, out); });
    }
    /// A reader at the beginning, and one emit more than the window holds.
    void hold_back()
    {
        reader(true, 0);
        emit("a");
        EXPECT_EQ(appended(settings_.window_events + 1), "");
    }

protected:
    template<class F>
    std::string told(F const& act)
    {
        producer_actions out;
        act(out);
        return say(out);
    }
};

// --- batches

TEST_F(Producer, AppendsTheFirstEmitAtOnce)
{
    EXPECT_EQ(emit("a"), "append a");
    EXPECT_EQ(appended(1), "resume 1");
}

TEST_F(Producer, BatchesEmitsBehindAnAppend)
{
    emit("a");
    EXPECT_EQ(emit("b"), "");
    EXPECT_EQ(emit("c"), "");
    EXPECT_EQ(appended(1), "resume 1; append b c");
    EXPECT_EQ(appended(3), "resume 2; resume 3");
}

TEST_F(Producer, GivesEveryEmitATicketOfItsOwn)
{
    emit("a");
    EXPECT_EQ(last_ticket_, 1u);
    emit("b");
    EXPECT_EQ(last_ticket_, 2u);
}

TEST_F(Producer, TellsTheEmitsOfABatchThatItFailed)
{
    emit("a");
    emit("b");
    emit("c");
    EXPECT_EQ(append_failed(errc::unavailable), "fail 1: not available now; append b c");
    EXPECT_EQ(append_failed(errc::no_space), "fail 2: the byte limit is reached; fail 3: the byte limit is reached");
    EXPECT_EQ(emit("d"), "append d");
}

// --- the answer

TEST_F(Producer, EndsWithTheAnswer)
{
    EXPECT_EQ(finish("r"), "finish =r");
    EXPECT_TRUE(machine_.is_finishing());
    EXPECT_FALSE(machine_.is_answered());
    EXPECT_EQ(appended(1), "answered");
    EXPECT_TRUE(machine_.is_answered());
}

TEST_F(Producer, PutsTheAnswerBehindWhatWaits)
{
    emit("a");
    emit("b");
    EXPECT_EQ(finish("r"), "");
    EXPECT_EQ(appended(1), "resume 1; finish b =r");
    EXPECT_EQ(appended(3), "resume 2; answered");
}

TEST_F(Producer, TakesTheFirstAnswerOnly)
{
    finish("r");
    producer_actions out;
    EXPECT_FALSE(machine_.answer(bytes("second"), true, out));
    EXPECT_TRUE(out.empty());
    appended(1);
    EXPECT_FALSE(machine_.answer(bytes("third"), true, out));
    EXPECT_TRUE(out.empty());
}

TEST_F(Producer, RefusesEmitsAfterTheAnswer)
{
    finish("r");
    EXPECT_EQ(emit("late"), "fail 1: the stream has its final answer");
    appended(1);
    EXPECT_EQ(emit("later"), "fail 2: the stream has its final answer");
    EXPECT_EQ(progress("latest", 1s), "");
}

TEST_F(Producer, OffersAnotherAnswerInPlaceOfARefusedOne)
{
    finish("too long");
    EXPECT_EQ(append_failed(errc::too_large), "refused: larger than its limit");
    EXPECT_FALSE(machine_.is_answered());
    EXPECT_EQ(refinish("short"), "finish =short");
    EXPECT_EQ(appended(1), "answered");
}

// What another member of a batch says meanwhile finds no room either, and must not take the answer with it.
TEST_F(Producer, OffersTheOtherAnswerAlone)
{
    auto const answer = [&](std::string text) {
        return told([&](producer_actions& out) { EXPECT_TRUE(machine_.answer(bytes(std::move(text)), false, out)); });
    };
    answer("too long");
    emit("said meanwhile");
    EXPECT_EQ(append_failed(errc::no_space), "refused: the byte limit is reached");
    EXPECT_EQ(refinish("short"), "append =short");
    EXPECT_EQ(appended(1), "answered one; append said meanwhile");
}

TEST_F(Producer, TellsTheEmitsOfARefusedAnswer)
{
    emit("a");
    emit("b");
    finish("r");
    appended(1);
    EXPECT_EQ(append_failed(errc::no_space), "fail 2: the byte limit is reached; refused: the byte limit is reached");
}

// --- the window

TEST_F(Producer, DoesNotWaitWithoutAReader)
{
    emit("a");
    EXPECT_EQ(appended(1'000'000), "resume 1");
}

TEST_F(Producer, DoesNotWaitWithinTheWindow)
{
    reader(true, 0);
    emit("a");
    EXPECT_EQ(appended(settings_.window_events), "resume 1");
}

TEST_F(Producer, WaitsBeyondTheWindow)
{
    reader(true, 0);
    emit("a");
    EXPECT_EQ(appended(settings_.window_events + 1), "");
    EXPECT_EQ(reader(true, 1), "resume 1");
}

TEST_F(Producer, WaitsBeyondTheWindowOfBytes)
{
    settings_.window_bytes = 100;
    reader(true, 0);
    emit("a");
    EXPECT_EQ(appended(10), "resume 1");
    emit("b");
    EXPECT_EQ(appended(11), "");
    EXPECT_EQ(reader(true, 1), "resume 2");
}

TEST_F(Producer, ReleasesAllWhoWaitAtOnce)
{
    reader(true, 0);
    emit("a");
    emit("b");
    appended(501);
    appended(502);
    EXPECT_EQ(reader(true, 2), "resume 1; resume 2");
}

TEST_F(Producer, StaysHeldWhileTheReaderIsTooFarBehind)
{
    reader(true, 0);
    emit("a");
    appended(600);
    EXPECT_EQ(reader(true, 99), "");
    EXPECT_EQ(reader(true, 100), "resume 1");
}

TEST_F(Producer, AppendsOnWhileAnEmitWaits)
{
    hold_back();
    EXPECT_EQ(emit("b"), "append b");
}

TEST_F(Producer, NeverWaitsIfToldNotTo)
{
    settings_.waits = false;
    reader(true, 0);
    emit("a");
    EXPECT_EQ(appended(1'000'000), "resume 1");
}

TEST_F(Producer, ReleasesWhoWaitsWithTheAnswer)
{
    hold_back();
    EXPECT_EQ(finish("r"), "finish =r");
    EXPECT_EQ(appended(502), "resume 1; answered");
}

TEST_F(Producer, TakesAReaderAheadOfTheLogAsCaughtUp)
{
    reader(true, 1000);
    emit("a");
    EXPECT_EQ(appended(1), "resume 1");
}

// --- readers that stall or go

TEST_F(Producer, DropsAReaderThatStalls)
{
    hold_back();
    EXPECT_EQ(machine_.next_tick(), now_ + 5s);
    EXPECT_EQ(tick(5s - 1ms), "");
    EXPECT_EQ(tick(1ms), "drop reader; resume 1");
}

TEST_F(Producer, DoesNotWaitForAReaderItHasDropped)
{
    hold_back();
    tick(5s);
    emit("b");
    EXPECT_EQ(appended(502), "resume 2");
    EXPECT_EQ(reader(false, 0), "");
    emit("c");
    EXPECT_EQ(appended(503), "resume 3");
}

TEST_F(Producer, WaitsForTheNextReaderAgain)
{
    hold_back();
    tick(5s);
    reader(false, 0);
    reader(true, 0);
    emit("b");
    EXPECT_EQ(appended(502), "");
}

TEST_F(Producer, DoesNotDropAReaderThatReadsSlowly)
{
    reader(true, 0);
    emit("a");
    appended(1000);
    for (std::uint64_t position = 1; position < 20; ++position) {
        EXPECT_EQ(reader(true, position, 4s), "");
        EXPECT_EQ(tick(), "");
    }
    EXPECT_EQ(tick(5s), "drop reader; resume 1");
}

TEST_F(Producer, WaitsForTheGraceAfterAReaderHasGone)
{
    hold_back();
    EXPECT_EQ(reader(false, 0), "");
    EXPECT_EQ(machine_.next_tick(), now_ + 3s);
    EXPECT_EQ(tick(3s - 1ms), "");
    EXPECT_EQ(tick(1ms), "resume 1");
}

TEST_F(Producer, GoesOnWhenTheReaderReturnsWithinTheGrace)
{
    hold_back();
    reader(false, 0);
    EXPECT_EQ(reader(true, 0, 2s), "");
    EXPECT_EQ(reader(true, 1), "resume 1");
}

TEST_F(Producer, DoesNotWaitWhenTheGraceIsOver)
{
    reader(true, 0);
    reader(false, 0);
    now_ += 3s;
    emit("a");
    EXPECT_EQ(appended(501), "resume 1");
}

TEST_F(Producer, DropsNoReaderThatHasGone)
{
    settings_.grace = 10s;
    hold_back();
    reader(false, 0, 1s);
    EXPECT_EQ(tick(4s), "resume 1");
}

TEST_F(Producer, NeedsNoTickWhenNothingWaits)
{
    EXPECT_FALSE(machine_.next_tick());
    emit("a");
    appended(1);
    EXPECT_FALSE(machine_.next_tick());
    hold_back();
    EXPECT_TRUE(machine_.next_tick());
    reader(true, 501);
    EXPECT_FALSE(machine_.next_tick());
}

// --- progress

TEST_F(Producer, SendsTheFirstProgressAtOnce)
{
    EXPECT_EQ(progress("p1"), "append p1");
    EXPECT_EQ(appended(1), "");
}

TEST_F(Producer, CoalescesProgressAndTheNewestWins)
{
    progress("p1");
    appended(1);
    EXPECT_EQ(progress("p2", 5ms), "");
    EXPECT_EQ(progress("p3", 5ms), "");
    EXPECT_EQ(machine_.next_tick(), now_ + 10ms);
    EXPECT_EQ(tick(9ms), "");
    EXPECT_EQ(tick(1ms), "append p3");
}

TEST_F(Producer, SendsProgressAfterTheGapAtOnce)
{
    progress("p1");
    appended(1);
    progress("p2", 5ms);
    EXPECT_EQ(progress("p3", 15ms), "append p3");
    appended(2);
    EXPECT_EQ(tick(1s), "");
}

TEST_F(Producer, SendsTheLastProgressBeforeTheResult)
{
    progress("p1");
    appended(1);
    progress("p2", 1ms);
    EXPECT_EQ(finish("r"), "finish p2 =r");
}

TEST_F(Producer, NeverWaitsForProgress)
{
    reader(true, 0);
    EXPECT_EQ(progress("p1"), "append p1");
    EXPECT_EQ(appended(10'000), "");
    EXPECT_FALSE(machine_.next_tick());
}

TEST_F(Producer, DoesNotReportThatProgressFailed)
{
    progress("p1");
    EXPECT_EQ(append_failed(errc::no_space), "");
}

TEST_F(Producer, KeepsProgressAndMessagesInOrder)
{
    emit("a");
    progress("p1");
    emit("b");
    EXPECT_EQ(appended(1), "resume 1; append p1 b");
}

}

}
