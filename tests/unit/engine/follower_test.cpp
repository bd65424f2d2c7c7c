#include "engine/follower.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>

namespace belay::engine {

namespace {

using namespace std::chrono_literals;

// --- actions as text

std::string say(send_priming const& action)
{
    return fmt::format("priming {}", action.sequence);
}
std::string say(send_event const& action)
{
    return fmt::format("event {} {}", action.sequence, action.payload->size() > 20 ? "(large)" : *action.payload);
}
std::string say(send_gap const& action)
{
    return fmt::format("gap {}-{}{}", action.from, action.to, action.restarted ? " restarted" : "");
}
std::string say(send_comment const& action)
{
    return fmt::format("comment {}", action.text);
}
std::string say(send_retry const& action)
{
    return fmt::format("retry {}", action.delay.count());
}
std::string say(flush_output)
{
    return "flush";
}
std::string say(read_log const& action)
{
    return fmt::format("read {}", action.after);
}
std::string say(note_mark const& action)
{
    auto const& mark = action.mark;
    return fmt::format(
        "mark {} at {} offset {} sent {} given {} delivered {}", mark.attached ? "attached" : "detached", mark.position,
        mark.offset, mark.sent, mark.given, mark.delivered);
}
std::string say(ask_arrived)
{
    return "ask arrived";
}
std::string say(end_output const& action)
{
    return fmt::format("end {}", to_string(action.reason));
}
std::string say(abort_output const& action)
{
    return fmt::format("abort {}", to_string(action.reason));
}

std::string say(follower_actions const& actions)
{
    std::string text;
    for (auto const& each : actions) {
        if (!text.empty())
            text += "; ";
        text += std::visit([](auto const& action) { return say(action); }, each);
    }
    return text;
}

store::stored_event event(std::uint64_t sequence, std::string text)
{
    // Events of one byte: the offset is the sequence, unless a test says otherwise.
    return {sequence, sequence, std::make_shared<std::string const>(std::move(text)), store::event_kind::ordinary};
}

/// A page of events named after their sequences, of a stream that ends at `top`.
store::page page(
    std::initializer_list<std::uint64_t> sequences, std::uint64_t top, bool finished = false,
    store::reader_mark reader = {})
{
    store::page made;
    for (auto const each : sequences)
        made.events.push_back(event(each, std::to_string(each)));
    made.state.top = {1, top, top};
    made.state.finished = finished;
    made.state.reader = reader;
    return made;
}

class Follower : public testing::Test {
protected:
    Follower() { settings_.mark_gap = 0s; }

    follower_settings settings_;
    base::time_point now_{1h};
    std::unique_ptr<follower> machine_;

    follower& make(std::uint64_t position = 0, bool primes = true, bool restarted = false)
    {
        machine_ = std::make_unique<follower>(
            position, primes ? follower::priming::yes : follower::priming::no, restarted, settings_, now_);
        return *machine_;
    }
    /// Opened, with an empty first page written: waits for news.
    void make_waiting(std::uint64_t position = 0)
    {
        make(position);
        open();
        read(page({}, position));
        drained();
    }

    std::string open()
    {
        return told([&](follower_actions& out) { machine_->open(out); });
    }
    std::string woken()
    {
        return told([&](follower_actions& out) { machine_->woken(out); });
    }
    std::string read(store::page const& page)
    {
        return told([&](follower_actions& out) { machine_->page_read(page, now_, out); });
    }
    std::string read_failed(errc why)
    {
        return told([&](follower_actions& out) { machine_->read_failed(why, now_, out); });
    }
    std::string dismissed(close_reason reason, std::optional<std::chrono::milliseconds> retry)
    {
        return told([&](follower_actions& out) { machine_->dismissed(reason, retry, out); });
    }
    std::string drained(std::uint64_t written = 0)
    {
        return told([&](follower_actions& out) { machine_->drained(written, now_, out); });
    }
    std::string arrived(std::uint64_t written, std::uint64_t unacknowledged)
    {
        return told([&](follower_actions& out) { machine_->arrived(written, unacknowledged, now_, out); });
    }
    std::string tick(base::duration after = 0s)
    {
        now_ += after;
        return told([&](follower_actions& out) { machine_->tick(now_, out); });
    }
    std::string close(close_reason reason, std::optional<std::chrono::milliseconds> retry = {})
    {
        return told([&](follower_actions& out) { machine_->close(reason, retry, out); });
    }
    std::string detach(std::uint64_t written = 0, std::uint64_t unacknowledged = 0)
    {
        return told([&](follower_actions& out) { machine_->detach(written, unacknowledged, out); });
    }

private:
    template<class F>
    std::string told(F const& act)
    {
        follower_actions out;
        act(out);
        return say(out);
    }
};

// --- the first page

TEST_F(Follower, PrimesAndReadsWhenOpened)
{
    make(5);
    EXPECT_EQ(open(), "priming 5; read 5");
}

TEST_F(Follower, SaysWhenItHasCaughtUp)
{
    make(2).announce_catching_up(4);
    open();
    EXPECT_EQ(
        read(page({3, 4, 5}, 5)),
        "event 3 3; event 4 4; comment caught up; event 5 5; "
        "flush");
    drained();
    woken();
    EXPECT_EQ(read(page({6}, 6)), "event 6 6; flush");
}

TEST_F(Follower, SaysAtOnceThatNothingWasMissed)
{
    make(2).announce_catching_up(2);
    open();
    EXPECT_EQ(read(page({}, 2)), "comment caught up; flush");
}

TEST_F(Follower, HasCaughtUpAfterAGapToo)
{
    make(2).announce_catching_up(9);
    open();
    EXPECT_EQ(read(page({}, 9)), "gap 3-9; comment caught up; flush");
}

TEST_F(Follower, OnlyReadsWhereThereIsNoPriming)
{
    make(0, false);
    EXPECT_EQ(open(), "read 0");
}

TEST_F(Follower, WritesPrimingAndFirstPageTogether)
{
    make();
    open();
    EXPECT_EQ(read(page({1, 2}, 2)), "event 1 1; event 2 2; flush");
}

TEST_F(Follower, WritesTheHeadEvenIfTheStreamIsEmpty)
{
    make(0, false);
    open();
    EXPECT_EQ(read(page({}, 0)), "flush");
}

TEST_F(Follower, TakesAResumeAsProofOfDelivery)
{
    make(3);
    open();
    EXPECT_EQ(read(page({4}, 4, false, {false, 4, 4, 4, 4, 1})), "event 4 4; flush");
}

TEST_F(Follower, DoesNotLowerTheDeliveredMark)
{
    make(1);
    open();
    EXPECT_EQ(read(page({2}, 2, false, {false, 2, 2, 2, 2, 2})), "event 2 2; flush");
}

TEST_F(Follower, MarksWhatIsWithTheKernelAndWaits)
{
    make();
    open();
    read(page({1, 2}, 2));
    EXPECT_EQ(drained(100), "mark attached at 2 offset 2 sent 2 given 2 delivered 0");
}

TEST_F(Follower, ReadsOnWhereAPageDidNotHoldAll)
{
    make();
    open();
    read(page({1, 2}, 4));
    EXPECT_EQ(drained(100), "mark attached at 2 offset 2 sent 2 given 2 delivered 0; read 2");
    EXPECT_EQ(read(page({3, 4}, 4)), "event 3 3; event 4 4; flush");
    EXPECT_EQ(drained(200), "mark attached at 4 offset 4 sent 4 given 2 delivered 0");
}

// --- the loop

TEST_F(Follower, ReadsWhenWoken)
{
    make_waiting();
    EXPECT_EQ(woken(), "read 0");
    EXPECT_EQ(read(page({1}, 1)), "event 1 1; flush");
}

TEST_F(Follower, WritesNothingWhenWokenForNothing)
{
    make_waiting();
    woken();
    EXPECT_EQ(read(page({}, 0)), "");
    EXPECT_EQ(woken(), "read 0");
}

TEST_F(Follower, DoesNotLoseAWakeWhileReading)
{
    make_waiting();
    woken();
    EXPECT_EQ(woken(), "");
    EXPECT_EQ(read(page({}, 0)), "read 0");
}

TEST_F(Follower, DoesNotLoseAWakeWhileTheFirstPageIsRead)
{
    make();
    open();
    EXPECT_EQ(woken(), "");
    read(page({}, 0));
    EXPECT_EQ(drained(), "read 0");
}

TEST_F(Follower, DoesNotLoseAWakeWhileWriting)
{
    make_waiting();
    woken();
    read(page({1}, 1));
    EXPECT_EQ(woken(), "");
    EXPECT_EQ(drained(10), "mark attached at 1 offset 1 sent 1 given 1 delivered 0; read 1");
}

TEST_F(Follower, ReadsOnceForManyWakes)
{
    make_waiting();
    EXPECT_EQ(woken(), "read 0");
    woken();
    woken();
    EXPECT_EQ(read(page({}, 0)), "read 0");
    EXPECT_EQ(read(page({}, 0)), "");
}

TEST_F(Follower, SkipsEventsItHasSeen)
{
    make(2);
    open();
    EXPECT_EQ(read(page({1, 2, 3}, 3)), "event 3 3; flush");
}

TEST_F(Follower, IgnoresADrainItDidNotAskFor)
{
    make_waiting();
    EXPECT_EQ(drained(50), "");
}

// --- gaps

TEST_F(Follower, TellsAGapInFront)
{
    make_waiting(2);
    woken();
    EXPECT_EQ(read(page({6, 7}, 7)), "gap 3-5; event 6 6; event 7 7; flush");
}

TEST_F(Follower, TellsAGapInTheMiddle)
{
    make_waiting();
    woken();
    EXPECT_EQ(read(page({1, 5}, 5)), "event 1 1; gap 2-4; event 5 5; flush");
}

TEST_F(Follower, TellsAGapAtTheTail)
{
    make_waiting(2);
    woken();
    EXPECT_EQ(read(page({}, 9)), "gap 3-9; flush");
    EXPECT_EQ(machine_->position(), 9u);
}

TEST_F(Follower, TellsAGapOnce)
{
    make_waiting(2);
    woken();
    read(page({}, 9));
    drained(10);
    woken();
    EXPECT_EQ(read(page({10}, 10)), "event 10 10; flush");
}

TEST_F(Follower, CountsAGapAsReadButNotAsGiven)
{
    make_waiting(2);
    woken();
    read(page({6}, 6));
    EXPECT_EQ(drained(10), "mark attached at 6 offset 6 sent 6 given 1 delivered 2");
}

TEST_F(Follower, TellsARestartBeforeTheNewLog)
{
    make(0, true, true);
    open();
    EXPECT_EQ(read(page({1, 2}, 2)), "gap 1-0 restarted; event 1 1; event 2 2; flush");
}

TEST_F(Follower, TellsARestartWithTheGapOfTheNewLog)
{
    make(0, true, true);
    open();
    EXPECT_EQ(
        read(page({4, 7}, 7)),
        "gap 1-3 restarted; event 4 4; gap 5-6; event 7 7; "
        "flush");
}

TEST_F(Follower, TellsARestartOfAnEmptyLogOnce)
{
    make(0, true, true);
    open();
    EXPECT_EQ(read(page({}, 0)), "gap 1-0 restarted; flush");
    drained();
    woken();
    EXPECT_EQ(read(page({1}, 1)), "event 1 1; flush");
}

TEST_F(Follower, TellsARestartOfALogThatIsAllGone)
{
    make(0, true, true);
    open();
    EXPECT_EQ(read(page({}, 4)), "gap 1-4 restarted; flush");
}

// --- the end of the stream

TEST_F(Follower, EndsInTheStepThatBringsTheAnswer)
{
    make();
    open();
    EXPECT_EQ(
        read(page({1, 2}, 2, true)),
        "event 1 1; event 2 2; "
        "mark detached at 2 offset 2 sent 2 given 2 delivered 0; end finished");
    EXPECT_TRUE(machine_->is_done());
}

TEST_F(Follower, EndsAtTheEndOfAFinishedStream)
{
    make_waiting(3);
    woken();
    EXPECT_EQ(read(page({}, 3, true)), "mark detached at 3 offset 0 sent 3 given 0 delivered 3; end finished");
}

TEST_F(Follower, DrainsALargeLastPageBeforeItEnds)
{
    make_waiting();
    woken();
    auto last = page({1}, 1, true);
    last.events[0].payload = std::make_shared<std::string const>(64 * 1024 + 1, 'x');
    EXPECT_EQ(read(last), "event 1 (large); flush");
    EXPECT_EQ(
        drained(70'000),
        "mark attached at 1 offset 1 sent 1 given 1 delivered 0; "
        "mark detached at 1 offset 1 sent 1 given 0 delivered 0; end finished");
}

TEST_F(Follower, EndsAtOnceWithALastPageOfTheLimit)
{
    make_waiting();
    woken();
    auto last = page({1}, 1, true);
    last.events[0].payload = std::make_shared<std::string const>(64 * 1024, 'x');
    EXPECT_TRUE(read(last).ends_with("end finished"));
}

TEST_F(Follower, DoesNotEndBeforeTheLastPage)
{
    make();
    open();
    read(page({1}, 2, true));
    EXPECT_FALSE(machine_->is_done());
    EXPECT_EQ(drained(10), "mark attached at 1 offset 1 sent 1 given 1 delivered 0; read 1");
    EXPECT_TRUE(read(page({2}, 2, true)).ends_with("end finished"));
}

TEST_F(Follower, EndsAfterAGapThatHidTheRest)
{
    make_waiting(1);
    woken();
    EXPECT_EQ(read(page({}, 5, true)), "gap 2-5; mark detached at 5 offset 5 sent 5 given 0 delivered 1; end finished");
}

// --- failures

struct failed_read {
    errc why;
    char const* actions;
};

TEST_F(Follower, EndsWhenTheStreamCannotBeRead)
{
    for (auto const& [why, actions] : {
             failed_read{errc::not_found, "end session_ended"},
             failed_read{errc::stream_gone, "end failed"},
         }) {
        make_waiting();
        woken();
        EXPECT_EQ(read_failed(why), actions);
        EXPECT_TRUE(machine_->is_done());
    }
}

TEST_F(Follower, AsksAgainWhenTheStoreCannotSay)
{
    make_waiting(3);
    woken();
    EXPECT_EQ(read_failed(errc::unavailable), "");
    EXPECT_FALSE(machine_->is_done());
    EXPECT_EQ(machine_->next_tick(), now_ + 1s);
    now_ += 1s;
    EXPECT_EQ(tick(), "read 3");
}

TEST_F(Follower, GoesWithoutTheStoreWhenItIsToGo)
{
    make_waiting();
    woken();
    close(close_reason::over_budget);
    EXPECT_EQ(read_failed(errc::unavailable), "end over_budget");
}

TEST_F(Follower, LeavesWhatItReadToItsSuccessor)
{
    make_waiting();
    woken();
    EXPECT_EQ(dismissed(close_reason::over_budget, 500ms), "retry 500; end over_budget");
    EXPECT_TRUE(machine_->is_done());
}

// --- time

TEST_F(Follower, CommentsWhenItWasQuietForTheKeepalive)
{
    make_waiting();
    EXPECT_EQ(tick(15s - 1ms), "");
    EXPECT_EQ(tick(1ms), "comment keepalive; flush");
}

TEST_F(Follower, CountsTheKeepaliveFromTheLastOutput)
{
    make_waiting();
    now_ += 10s;
    woken();
    read(page({1}, 1));
    drained(10);
    arrived(10, 0);
    EXPECT_EQ(tick(10s), "");
    EXPECT_EQ(tick(5s), "comment keepalive; flush");
    drained(20);
    EXPECT_EQ(machine_->next_tick(), now_ + 15s);
}

TEST_F(Follower, MarksNothingForAComment)
{
    make_waiting();
    tick(15s);
    EXPECT_EQ(drained(20), "");
}

TEST_F(Follower, DoesNotCommentInAWrite)
{
    make_waiting();
    woken();
    read(page({1}, 1));
    EXPECT_EQ(tick(1min), "");
}

TEST_F(Follower, DoesNotLoseAWakeBehindAComment)
{
    make_waiting();
    tick(15s);
    EXPECT_EQ(woken(), "");
    EXPECT_EQ(drained(20), "read 0");
}

TEST_F(Follower, EndsAtItsGreatestAge)
{
    settings_.max_age = 20s;
    make_waiting();
    EXPECT_EQ(tick(15s), "comment keepalive; flush");
    drained(20);
    EXPECT_EQ(machine_->next_tick(), now_ + 5s);
    EXPECT_EQ(tick(5s), "end aged");
}

TEST_F(Follower, HasNoGreatestAgeUnlessOneIsSet)
{
    make_waiting();
    for (int i = 0; i < 10'000; ++i) {
        ASSERT_EQ(tick(15s), "comment keepalive; flush");
        drained(20);
    }
}

// --- closing

TEST_F(Follower, ClosesAtOnceWhenItWaits)
{
    for (auto const& [reason, actions] : {
             std::pair{close_reason::over_budget, "end over_budget"},
             std::pair{close_reason::asked, "end asked"},
             std::pair{close_reason::aged, "end aged"},
             std::pair{close_reason::stalled, "end stalled"},
             std::pair{close_reason::session_ended, "end session_ended"},
             std::pair{close_reason::taken_over, "comment taken over by a newer connection; end taken_over"},
         }) {
        make_waiting();
        EXPECT_EQ(close(reason), actions);
        EXPECT_TRUE(machine_->is_done());
    }
}

TEST_F(Follower, ReadsOnceMoreBeforeItLeavesADrainingServer)
{
    make_waiting();
    EXPECT_EQ(close(close_reason::draining, 5s), "read 0");
    EXPECT_EQ(read(page({}, 0)), "retry 5000; end draining");
}

TEST_F(Follower, DeliversTheAnswerWhoseWakeUpComesAfterTheDrain)
{
    make_waiting();
    close(close_reason::draining, 5s);
    EXPECT_EQ(
        read(page({1}, 1, true)), "event 1 1; mark detached at 1 offset 1 sent 1 given 1 delivered 0; end finished");
}

TEST_F(Follower, IsCutOffWhenItsEndDoesNotGetThrough)
{
    make_waiting();
    tick(15s); // a comment that the socket does not take
    EXPECT_EQ(close(close_reason::session_ended), "");
    EXPECT_FALSE(machine_->is_done());
    EXPECT_EQ(close(close_reason::cut_off), "abort cut_off");
    EXPECT_TRUE(machine_->is_done());
}

TEST_F(Follower, TellsWhenToReturn)
{
    make_waiting();
    EXPECT_EQ(close(close_reason::asked, 250ms), "retry 250; end asked");
}

TEST_F(Follower, FinishesTheWriteBeforeItCloses)
{
    make_waiting();
    woken();
    read(page({1}, 1));
    EXPECT_EQ(close(close_reason::over_budget, 1s), "");
    EXPECT_EQ(drained(10), "mark attached at 1 offset 1 sent 1 given 1 delivered 0; retry 1000; end over_budget");
}

TEST_F(Follower, WritesThePageItIsReadingBeforeItCloses)
{
    make_waiting();
    woken();
    EXPECT_EQ(close(close_reason::asked), "");
    EXPECT_EQ(read(page({1}, 1)), "event 1 1; flush");
    EXPECT_EQ(drained(10), "mark attached at 1 offset 1 sent 1 given 1 delivered 0; end asked");
}

TEST_F(Follower, ClosesAfterAnEmptyPage)
{
    make_waiting();
    woken();
    close(close_reason::asked);
    EXPECT_EQ(read(page({}, 0)), "end asked");
}

TEST_F(Follower, PrefersTheStreamsEndToClosing)
{
    make_waiting();
    woken();
    close(close_reason::asked, 1s);
    EXPECT_EQ(
        read(page({1}, 1, true)), "event 1 1; mark detached at 1 offset 1 sent 1 given 1 delivered 0; end finished");
}

TEST_F(Follower, AbortsAWriteThatNobodyWants)
{
    for (auto const& [reason, actions] : {
             std::pair{close_reason::taken_over, "abort taken_over"},
             std::pair{close_reason::stalled, "abort stalled"},
         }) {
        make_waiting();
        woken();
        read(page({1}, 1));
        EXPECT_EQ(close(reason, 1s), actions);
        EXPECT_EQ(drained(10), "");
        EXPECT_EQ(woken(), "");
    }
}

TEST_F(Follower, ClosesForTheFirstReason)
{
    make_waiting();
    woken();
    close(close_reason::asked, 1s);
    EXPECT_EQ(close(close_reason::draining, 5s), "");
    EXPECT_EQ(read(page({}, 0)), "retry 1000; end asked");
}

TEST_F(Follower, DoesNothingOnceItIsDone)
{
    make_waiting();
    close(close_reason::asked);
    EXPECT_EQ(woken(), "");
    EXPECT_EQ(read(page({1}, 1)), "");
    EXPECT_EQ(read_failed(errc::not_found), "");
    EXPECT_EQ(drained(10), "");
    EXPECT_EQ(tick(1h), "");
    EXPECT_EQ(close(close_reason::draining), "");
}

// --- the delivered mark

class Delivered : public Follower {
protected:
    /// Three writes that end at 100, 200 and 300 bytes, each with one event.
    void write_three()
    {
        make();
        open();
        std::uint64_t written = 0;
        for (std::uint64_t n = 1; n <= 3; ++n) {
            read(page({n}, n));
            drained(written += 100);
            woken();
        }
    }
};

TEST_F(Delivered, IsEverythingIfNothingIsUnacknowledged)
{
    write_three();
    EXPECT_EQ(detach(300, 0), "mark detached at 3 offset 3 sent 3 given 0 delivered 3");
}

TEST_F(Delivered, IsReducedToTheLastWriteThatArrived)
{
    for (auto const& [unacknowledged, delivered] :
         {std::pair{1u, 2u}, std::pair{100u, 2u}, std::pair{101u, 1u}, std::pair{299u, 0u}, std::pair{1000u, 0u}}) {
        write_three();
        EXPECT_EQ(
            detach(300, unacknowledged),
            fmt::format("mark detached at 3 offset 3 sent 3 given 0 delivered {}", delivered));
    }
}

TEST_F(Delivered, DoesNotIncludeAWriteThatIsUnderWay)
{
    write_three();
    read(page({4}, 4));
    EXPECT_EQ(detach(300, 0), "mark detached at 4 offset 4 sent 4 given 1 delivered 3");
}

TEST_F(Delivered, IsNeverBelowWhereTheConnectionBegan)
{
    make(7);
    open();
    read(page({8}, 8));
    drained(100);
    EXPECT_EQ(detach(100, 100), "mark detached at 8 offset 8 sent 8 given 0 delivered 7");
}

TEST_F(Delivered, IsNotKnownToAConnectionThatNeverRead)
{
    make(7);
    open();
    EXPECT_FALSE(machine_->has_read());
    EXPECT_EQ(detach(0, 0), "");
    EXPECT_TRUE(machine_->is_done());
}

TEST_F(Delivered, IsToldWhileTheConnectionLives)
{
    write_three();
    EXPECT_EQ(machine_->next_tick(), now_ + 1s);
    EXPECT_EQ(tick(1s), "ask arrived");
    EXPECT_EQ(arrived(300, 100), "mark attached at 3 offset 3 sent 3 given 0 delivered 2");
    EXPECT_EQ(arrived(300, 100), "") << "nothing new";
    EXPECT_EQ(tick(1s), "ask arrived");
    EXPECT_EQ(arrived(300, 0), "mark attached at 3 offset 3 sent 3 given 0 delivered 3");
    EXPECT_EQ(tick(1s), "") << "all is known";
    EXPECT_EQ(machine_->next_tick(), now_ - 3s + settings_.keepalive);
    EXPECT_EQ(detach(300, 0), "mark detached at 3 offset 3 sent 3 given 0 delivered 3");
}

TEST_F(Delivered, IsNotAskedForWithoutEvents)
{
    make_waiting(5);
    EXPECT_EQ(tick(1s), "");
    EXPECT_EQ(machine_->next_tick(), now_ - 1s + settings_.keepalive);
}

TEST_F(Delivered, IsNotToldAfterTheEnd)
{
    write_three();
    detach(300, 100);
    EXPECT_EQ(arrived(300, 0), "");
    EXPECT_EQ(tick(1s), "");
}

TEST_F(Delivered, IsUnderstatedNotOverstatedAfterManyWrites)
{
    make();
    open();
    std::uint64_t written = 0;
    bool has_asked = false;
    for (std::uint64_t n = 1; n <= 100; ++n) {
        read(page({n}, n));
        bool const asks = drained(written += 100).contains("ask arrived");
        has_asked = has_asked || asks;
        if (asks)
            arrived(written, written); // nothing so far
        woken();
    }
    EXPECT_TRUE(has_asked);
    // Some writes were forgotten, never the newest.
    auto const told = detach(written, 9'000);
    auto const delivered = std::stoul(told.substr(told.rfind(' ')));
    EXPECT_LE(delivered, 10u);
    EXPECT_TRUE(told.starts_with("mark detached at 100 offset 100 sent 100 given 0 delivered ")) << told;
}

TEST_F(Delivered, IsExactAgainWhenASlowPeerHasCaughtUp)
{
    make();
    open();
    std::uint64_t written = 0;
    for (std::uint64_t n = 1; n <= 101; ++n) {
        read(page({n}, n));
        if (drained(written += 100).contains("ask arrived"))
            arrived(written, written);
        woken();
    }
    EXPECT_EQ(arrived(written, 0), "mark attached at 101 offset 101 sent 101 given 0 delivered 101");
}

// --- marks that are held back

class HeldMark : public Follower {
protected:
    HeldMark()
    {
        settings_.mark_gap = 20ms;
        settings_.mark_events = 3;
        settings_.mark_bytes = 1000;
    }
    /// One event, written at once; what was done then.
    std::string write(std::uint64_t n)
    {
        woken();
        read(page({n}, n));
        return drained(written_ += 100);
    }
    std::uint64_t written_ = 0;
};

TEST_F(HeldMark, IsToldTogetherWithTheNext)
{
    make_waiting();
    EXPECT_EQ(write(1), "mark attached at 1 offset 1 sent 1 given 1 delivered 0");
    EXPECT_EQ(write(2), "");
    EXPECT_EQ(machine_->mark_due(), now_ + 20ms);
    EXPECT_EQ(machine_->next_tick(), now_ + 20ms);
    EXPECT_EQ(write(3), "");
    now_ += 20ms;
    EXPECT_EQ(write(4), "mark attached at 4 offset 4 sent 4 given 3 delivered 0");
    EXPECT_EQ(machine_->mark_due(), std::nullopt);
}

TEST_F(HeldMark, IsToldInTime)
{
    make_waiting();
    write(1);
    write(2);
    EXPECT_EQ(tick(19ms), "ask arrived");
    EXPECT_EQ(tick(1ms), "ask arrived; mark attached at 2 offset 2 sent 2 given 1 delivered 0");
    EXPECT_EQ(machine_->mark_due(), std::nullopt);
    EXPECT_EQ(tick(20ms), "ask arrived");
}

TEST_F(HeldMark, IsToldAtOnceAfterMuch)
{
    make_waiting();
    write(1);
    EXPECT_EQ(write(2), "");
    EXPECT_EQ(write(3), "");
    EXPECT_EQ(write(4), "mark attached at 4 offset 4 sent 4 given 3 delivered 0");
    EXPECT_EQ(write(5), "");
    woken();
    auto large = page({6}, 6);
    large.events[0].end_offset = 1004;
    read(large);
    EXPECT_EQ(drained(written_ += 1000), "mark attached at 6 offset 1004 sent 6 given 2 delivered 0");
}

TEST_F(HeldMark, IsToldWhenTheConnectionEnds)
{
    make_waiting();
    write(1);
    write(2);
    EXPECT_EQ(detach(written_, 0), "mark detached at 2 offset 2 sent 2 given 1 delivered 2");
    EXPECT_EQ(tick(1s), "");
}

TEST_F(HeldMark, HoldsWhatHasArrivedToo)
{
    make_waiting();
    write(1);
    EXPECT_EQ(arrived(written_, 0), "");
    EXPECT_EQ(tick(20ms), "mark attached at 1 offset 1 sent 1 given 0 delivered 1");
}

TEST(CloseReason, HasANameOfItsOwn)
{
    std::set<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(close_reason::failed); ++i)
        EXPECT_TRUE(names.insert(to_string(static_cast<close_reason>(i))).second);
    EXPECT_FALSE(names.contains("?"));
}

}

}
