#include "base/timer_wheel.hpp"

#include "base/ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <unistd.h>
#include <vector>

namespace belay::base {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class TimerWheel : public testing::Test {
protected:
    manual_clock clock_;
    timer_wheel wheel_{clock_};
    std::vector<int> fired_;

    std::unique_ptr<timer> timer_of(int name)
    {
        return std::make_unique<timer>(wheel_, [this, name] { fired_.push_back(name); });
    }
    std::size_t advance(duration by)
    {
        clock_.advance(by);
        return wheel_.advance();
    }
};

TEST_F(TimerWheel, FiresAtItsTimeAndNotBefore)
{
    auto const timer = timer_of(1);
    timer->after(100ms);
    EXPECT_EQ(advance(99ms), 0u);
    EXPECT_TRUE(timer->is_armed());
    EXPECT_EQ(advance(1ms), 1u);
    EXPECT_FALSE(timer->is_armed());
    EXPECT_EQ(advance(1h), 0u);
}

TEST_F(TimerWheel, NeverFiresBeforeATimeBetweenTicks)
{
    auto const timer = timer_of(1);
    timer->after(1500us);
    EXPECT_EQ(advance(1499us), 0u);
    EXPECT_EQ(advance(501us), 1u);
}

TEST_F(TimerWheel, FiresATimeThatHasPassedAtTheNextAdvance)
{
    advance(10s);
    auto const timer = timer_of(1);
    timer->at(clock_.now() - 5s);
    EXPECT_EQ(wheel_.next_deadline(), clock_.now());
    EXPECT_EQ(wheel_.advance(), 1u);
}

TEST_F(TimerWheel, FiresInTheOrderOfTimes)
{
    std::vector<std::unique_ptr<timer>> timers;
    for (int const ms : {70'000, 5, 300'000, 64, 63, 4096, 4095, 1, 262'144}) {
        timers.push_back(timer_of(ms));
        timers.back()->after(milliseconds(ms));
    }
    advance(1h);
    EXPECT_EQ(fired_, (std::vector{1, 5, 63, 64, 4095, 4096, 70'000, 262'144, 300'000}));
}

TEST_F(TimerWheel, FiresThoseOfOneInstantInTheOrderOfTheirArming)
{
    // Each delay begins on another level of the wheel; half of the timers are armed when it is nearly over.
    for (auto const delay : {milliseconds(0), 1ms, 63ms, 64ms, 5000ms, 300'000ms, 20'000'000ms}) {
        fired_.clear();
        auto const when = clock_.now() + delay;
        std::vector<std::unique_ptr<timer>> timers;
        std::vector<int> order;
        auto const arm = [&](int count) {
            for (int i = 0; i < count; ++i) {
                order.push_back(static_cast<int>(order.size()));
                timers.push_back(timer_of(order.back()));
                timers.back()->at(when);
            }
        };
        auto const rest = std::min(delay, std::max(1ms, delay / 50));
        arm(4);
        EXPECT_EQ(advance(delay - rest), delay == 0ms ? 4u : 0u);
        arm(4);
        timers[5]->cancel(); // from the middle
        std::erase(order, 5);
        advance(rest);
        EXPECT_EQ(fired_, order) << delay;
    }
}

TEST_F(TimerWheel, LeavesWhatIsTooMuchForOneAdvanceToTheNext)
{
    std::vector<std::unique_ptr<timer>> timers;
    for (int i = 0; i < 5; ++i) {
        timers.push_back(timer_of(i));
        timers.back()->after(i < 3 ? 1ms : 2ms);
    }
    clock_.advance(5ms);
    EXPECT_EQ(wheel_.advance(2), 2u);
    EXPECT_EQ(fired_, (std::vector{0, 1}));
    EXPECT_LE(wheel_.next_deadline(), wheel_.now());
    timers[2].reset(); // it may still go
    timers.push_back(timer_of(5));
    timers.back()->at(clock_.now() - 4ms);
    EXPECT_EQ(wheel_.advance(2), 2u);
    EXPECT_EQ(wheel_.advance(2), 1u);
    EXPECT_EQ(fired_, (std::vector{0, 1, 5, 3, 4}));
    EXPECT_EQ(wheel_.next_deadline(), std::nullopt);
}

TEST_F(TimerWheel, MovesATimerThatIsArmedAgain)
{
    auto const timer = timer_of(1);
    timer->after(10ms);
    timer->after(1h);
    EXPECT_EQ(advance(1min), 0u);
    timer->after(1ms);
    EXPECT_EQ(advance(1ms), 1u);
}

TEST_F(TimerWheel, DoesNotFireACancelledTimer)
{
    auto const timer = timer_of(1);
    timer->after(10ms);
    timer->cancel();
    EXPECT_FALSE(timer->is_armed());
    EXPECT_EQ(wheel_.next_deadline(), std::nullopt);
    EXPECT_EQ(advance(1s), 0u);
}

TEST_F(TimerWheel, DoesNotFireADestroyedTimer)
{
    timer_of(1)->after(10ms);
    EXPECT_EQ(wheel_.next_deadline(), std::nullopt);
    EXPECT_EQ(advance(1s), 0u);
}

TEST_F(TimerWheel, HasNoDeadlineWithoutTimers)
{
    EXPECT_EQ(wheel_.next_deadline(), std::nullopt);
}

TEST_F(TimerWheel, RunsATimerThatIsArmedForNowByItsOwnFunctionAtTheNextAdvance)
{
    int runs = 0;
    timer again(wheel_, [&] {
        ++runs;
        again.after(0s);
    });
    again.after(1ms);
    EXPECT_EQ(advance(1ms), 1u);
    EXPECT_EQ(wheel_.advance(), 1u);
    EXPECT_EQ(runs, 2);
}

TEST_F(TimerWheel, RunsAPeriodicTimerOncePerPeriod)
{
    int runs = 0;
    timer again(wheel_, [&] {
        ++runs;
        again.after(10ms);
    });
    again.after(10ms);
    for (int i = 0; i < 100; ++i)
        advance(10ms);
    EXPECT_EQ(runs, 100);
}

TEST_F(TimerWheel, LetsAFunctionDestroyItsOwnTimer)
{
    std::unique_ptr<timer> own;
    int runs = 0;
    // What it captured is still there after the timer has gone, and may make another.
    own = std::make_unique<timer>(wheel_, [this, &own, &runs, kept = std::string(100, 'x')] {
        own = std::make_unique<timer>(wheel_, [&runs] { ++runs; });
        runs += static_cast<int>(kept.size());
        own->after(1ms);
    });
    own->after(1ms);
    EXPECT_EQ(advance(1ms), 1u);
    EXPECT_EQ(runs, 100);
    EXPECT_EQ(advance(1ms), 1u);
    EXPECT_EQ(runs, 101);
}

TEST_F(TimerWheel, LetsAFunctionDestroyTimersOfTheSameTick)
{
    std::vector<std::unique_ptr<timer>> timers(10);
    int runs = 0;
    for (auto& each : timers)
        each = std::make_unique<timer>(wheel_, [&] {
            ++runs;
            timers.clear(); // the others, and the one that runs
        });
    for (auto const& each : timers)
        each->after(5ms);
    EXPECT_EQ(advance(5ms), 1u);
    EXPECT_EQ(runs, 1);
}

TEST_F(TimerWheel, LetsAFunctionCancelATimerThatIsDueLater)
{
    auto const later = timer_of(2);
    timer first(wheel_, [&] { later->cancel(); });
    first.after(1ms);
    later->after(2ms);
    EXPECT_EQ(advance(10ms), 1u);
    EXPECT_TRUE(fired_.empty());
}

TEST_F(TimerWheel, LetsAFunctionMoveATimerOfTheSameTick)
{
    // Two movers around a victim: whichever order one tick has, one of them comes before it.
    auto const victim = timer_of(1);
    bool is_moved = false;
    auto const move = [&] {
        if (fired_.empty() && !is_moved) {
            victim->after(1h);
            is_moved = true;
        }
    };
    timer before(wheel_, move);
    timer after(wheel_, move);
    before.after(5ms);
    victim->after(5ms);
    after.after(5ms);
    advance(5ms);
    EXPECT_TRUE(is_moved);
    EXPECT_TRUE(fired_.empty());
    advance(1h);
    EXPECT_EQ(fired_, std::vector{1});
}

TEST_F(TimerWheel, MayGoBeforeItsTimers)
{
    auto wheel = std::make_unique<timer_wheel>(clock_);
    timer near(*wheel, [] { FAIL(); });
    timer far(*wheel, [] { FAIL(); });
    near.after(0s);
    far.after(100h);
    wheel.reset();
    EXPECT_FALSE(near.is_armed());
    EXPECT_FALSE(far.is_armed());
}

TEST_F(TimerWheel, TellsItsOwnerOfEveryDeadline)
{
    std::vector<time_point> told;
    wheel_.on_armed([&](time_point when) { told.push_back(when); });
    auto const start = clock_.now();
    auto const a = timer_of(1);
    auto const b = timer_of(2);
    a->after(10ms);
    b->after(5ms);
    EXPECT_EQ(told, (std::vector{start + 10ms, start + 5ms}));
}

// Where the far timer comes down a level is before the near one, and nobody was to wake there.
TEST_F(TimerWheel, TellsOfATimerThatIsDueBeforeTheOwnerWakes)
{
    auto wake = time_point::max();
    wheel_.on_armed([&](time_point when) { wake = std::min(wake, when); });
    auto const far = timer_of(1);
    auto const near = timer_of(2);
    far->after(10s);
    clock_.advance(9s); // the owner sleeps, or does something else
    near->after(50ms);
    EXPECT_EQ(wake, clock_.now() + 50ms);
}

// An owner that sleeps until next_deadline(), or what on_armed told, misses nothing.
TEST_F(TimerWheel, WakesAnOwnerInTimeForEveryTimer)
{
    seeded_random random(7);
    std::optional<time_point> wake;
    wheel_.on_armed([&](time_point when) { wake = wake ? std::min(*wake, when) : when; });
    std::map<int, time_point> due;
    std::vector<std::unique_ptr<timer>> timers;
    for (int name = 0; name < 300; ++name) {
        timers.push_back(std::make_unique<timer>(wheel_, [&, name] {
            EXPECT_EQ(std::chrono::ceil<milliseconds>(due[name].time_since_epoch()), clock_.now().time_since_epoch());
            due.erase(name);
        }));
        due[name] = clock_.now() + std::chrono::microseconds(random.below(std::uint64_t(1) << (10 + name % 30)) + 1000);
        timers.back()->at(due[name]);
        if (name % 3 == 0 && wake && *wake > clock_.now() + 1ms) {
            clock_.advance(1ms); // the owner is woken by something else meanwhile
            wheel_.advance();
            wake = wheel_.next_deadline();
        }
    }
    int wakes = 0;
    while (wake) {
        ASSERT_LT(++wakes, 10'000);
        if (*wake > clock_.now())
            clock_.advance(*wake - clock_.now());
        wake.reset();
        wheel_.advance();
        wake = wheel_.next_deadline();
    }
    EXPECT_TRUE(due.empty());
}

// --- far futures; a wheel that turns for ever is ended by the alarm

class TimerWheelDeathTest : public TimerWheel {};

TEST_F(TimerWheelDeathTest, TakesTimesBeyondItsReach)
{
    constexpr auto reach = milliseconds(std::int64_t(1) << 36);
    for (milliseconds const delay :
         {reach - 1ms, reach, reach + 1ms, reach + 1h, reach + milliseconds(1 << 30), 3 * reach,
          milliseconds(114 * 365 * 24h)})
        EXPECT_EXIT(
            {
                alarm(20);
                advance(12345ms);
                auto const timer = timer_of(1);
                timer->after(delay);
                bool is_good = advance(1ms) == 0 && wheel_.next_deadline() > clock_.now();
                is_good = is_good && advance(delay - 2ms) == 0 && timer->is_armed();
                is_good = is_good && advance(1ms) == 1;
                _exit(is_good ? 0 : 1);
            },
            testing::ExitedWithCode(0), "")
            << delay.count();
}

TEST_F(TimerWheelDeathTest, WakesItsOwnerSeldomForAFarTimer)
{
    EXPECT_EXIT(
        {
            alarm(20);
            auto const timer = timer_of(1);
            timer->after(milliseconds(std::int64_t(5) << 36));
            int wakes = 0;
            while (timer->is_armed() && wakes < 10'000) {
                ++wakes;
                clock_.advance(*wheel_.next_deadline() - clock_.now());
                wheel_.advance();
            }
            _exit(timer->is_armed() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

// --- against a model: a map from timer to time

class TimerWheelModel : public testing::TestWithParam<std::uint64_t> {};

TEST_P(TimerWheelModel, DoesAsTheModelDoes)
{
    seeded_random random(GetParam());
    manual_clock clock;
    timer_wheel wheel(clock);
    struct modelled {
        std::unique_ptr<timer> real;
        std::optional<time_point> due;
    };
    std::map<int, modelled> model;
    std::vector<int> fired;
    int next_name = 0;
    auto last_advance = clock.now();
    auto const random_delay = [&]() -> duration {
        switch (random.below(6)) {
        case 0: return duration::zero();
        case 1: return milliseconds(random.below(64));
        case 2: return milliseconds(random.below(5000));
        case 3: return std::chrono::microseconds(random.below(300'000));
        case 4: return milliseconds(random.below(10'000'000));
        default: return milliseconds(random.next() >> (28 + random.below(20))); // up to two years
        }
    };
    auto const pick = [&]() -> modelled* {
        if (model.empty())
            return nullptr;
        auto at = model.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random.below(model.size())));
        return &at->second;
    };
    for (int step = 0; step < 3000; ++step) {
        auto const earliest = [&] {
            std::optional<time_point> first;
            for (auto const& [name, each] : model)
                if (each.due && (!first || *each.due < *first))
                    first = each.due;
            return first;
        };
        switch (random.below(7)) {
        case 0: {
            int const name = next_name++;
            model[name].real = std::make_unique<timer>(wheel, [&fired, name] { fired.push_back(name); });
            [[fallthrough]];
        }
        case 1:
        case 2:
            if (auto* const each = pick()) {
                each->due = clock.now() + random_delay();
                if (random.below(10) == 0)
                    *each->due -= 1h;
                each->real->at(*each->due);
            }
            break;
        case 3:
            if (auto* const each = pick()) {
                each->due.reset();
                each->real->cancel();
            }
            break;
        case 4:
            if (random.below(4) == 0 && !model.empty())
                model.erase(std::next(model.begin(), static_cast<std::ptrdiff_t>(random.below(model.size()))));
            break;
        default: {
            // Often right to the edge of the next one.
            auto const first = earliest();
            if (first && *first > clock.now() && random.below(2) == 0) {
                auto const gap = *first - clock.now();
                clock.advance(random.below(2) == 0 ? gap : std::max(gap - 1ms, duration::zero()));
            } else {
                clock.advance(random_delay());
            }
            fired.clear();
            auto const ran = wheel.advance();
            auto const advanced = std::exchange(last_advance, clock.now());
            ASSERT_EQ(ran, fired.size());
            std::vector<int> expected;
            std::optional<time_point> last;
            for (auto& [name, each] : model)
                // A timer fires at its tick: the first whole millisecond that is not before its time.
                if (each.due
                    && std::chrono::ceil<milliseconds>(each.due->time_since_epoch()) <= clock.now().time_since_epoch())
                    expected.push_back(name);
            for (int const name : fired) {
                ASSERT_TRUE(model.contains(name) && model[name].due) << "step " << step;
                // Those whose time had passed when they were armed come first, in no order.
                auto const due = std::chrono::ceil<milliseconds>(*model[name].due);
                if (due > advanced) {
                    ASSERT_TRUE(!last || *last <= due) << "out of order in step " << step;
                    last = due;
                }
                model[name].due.reset();
            }
            std::ranges::sort(fired);
            ASSERT_EQ(fired, expected) << "step " << step;
        }
        }
        auto const first = earliest();
        auto const deadline = wheel.next_deadline();
        ASSERT_EQ(first.has_value(), deadline.has_value()) << "step " << step;
        if (first) {
            ASSERT_LE(*deadline, std::max<time_point>(std::chrono::ceil<milliseconds>(*first), clock.now()))
                << "step " << step;
        }
        for (auto const& [name, each] : model)
            ASSERT_EQ(each.real->is_armed(), each.due.has_value()) << "step " << step;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimerWheelModel, testing::Range<std::uint64_t>(1, 21));

// Functions that arm, cancel and destroy other timers. Each armed timer fires once, at its time or later, unless
// it was cancelled or destroyed; and every round of advance() ends.
TEST_P(TimerWheelModel, SurvivesFunctionsThatMeddle)
{
    seeded_random random(GetParam());
    manual_clock clock;
    timer_wheel wheel(clock);
    constexpr int count = 40;
    struct slot {
        std::unique_ptr<timer> real;
        std::optional<time_point> due;
    };
    std::vector<slot> slots(count);
    int fired = 0;
    std::function<void(int)> make;
    auto const arm = [&](slot& each) {
        each.due = clock.now() + milliseconds(random.below(3) == 0 ? random.below(3) : random.below(20'000));
        each.real->at(*each.due);
    };
    make = [&](int at) {
        slots[at].due.reset();
        slots[at].real = std::make_unique<timer>(wheel, [&, at] {
            ++fired;
            auto& own = slots[at];
            ASSERT_TRUE(own.due);
            ASSERT_LE(*own.due, clock.now());
            own.due.reset();
            for (auto left = random.below(4); left > 0; --left) {
                auto const other = static_cast<int>(random.below(count));
                if (other == at) {
                    arm(own);
                    continue;
                }
                switch (random.below(3)) {
                case 0: arm(slots[other]); break;
                case 1:
                    slots[other].real->cancel();
                    slots[other].due.reset();
                    break;
                default: make(other);
                }
            }
        });
    };
    for (int i = 0; i < count; ++i) {
        make(i);
        arm(slots[i]);
    }
    for (int step = 0; step < 1000; ++step) {
        clock.advance(milliseconds(random.below(500)));
        int rounds = 0;
        while (wheel.advance() > 0)
            if (++rounds > 10) // functions may arm for now without end; that is theirs, not the wheel's
                break;
        if (rounds <= 10)
            for (auto const& each : slots) {
                ASSERT_EQ(each.real->is_armed(), each.due.has_value());
                if (each.due) {
                    ASSERT_GT(std::chrono::ceil<milliseconds>(*each.due), clock.now());
                }
            }
        arm(slots[random.below(count)]);
    }
    EXPECT_GT(fired, 500);
}

}

}
