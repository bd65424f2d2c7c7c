#include "base/timer_wheel.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace belay::base {

using std::chrono::milliseconds;

timer::timer(timer_wheel& wheel, std::move_only_function<void()> expired) : wheel_(wheel), expired_(std::move(expired))
{
}

timer::~timer()
{
    cancel();
    if (is_gone_)
        *is_gone_ = true;
}

void timer::at(time_point when)
{
    cancel();
    tick_ = wheel_.tick_of(when);
    wheel_.insert(*this);
    if (wheel_.armed_)
        wheel_.armed_(wheel_.start_ + milliseconds(tick_));
}

void timer::after(duration delay)
{
    at(wheel_.now() + delay);
}

void timer::cancel() noexcept
{
    if (slot_)
        wheel_.remove(*this);
}

timer_wheel::timer_wheel(clock const& clock) : clock_(clock), start_(clock.now())
{
}

timer_wheel::~timer_wheel()
{
    // Timers may outlive the wheel during shutdown; none of them may touch it afterwards.
    auto const forget = [](timer* entry) {
        while (entry) {
            timer* const next = entry->next_;
            entry->slot_ = nullptr;
            entry->previous_ = entry->next_ = nullptr;
            entry = next;
        }
    };
    for (auto& level : slots_)
        for (auto* head : level)
            forget(head);
    forget(due_);
    forget(running_);
}

std::uint64_t timer_wheel::tick_of(time_point when) const noexcept
{
    if (when <= start_)
        return 0;
    // Rounded up: a timer never fires before its time.
    return static_cast<std::uint64_t>(std::chrono::ceil<milliseconds>(when - start_).count());
}

void timer_wheel::insert(timer& entry) noexcept
{
    timer** slot = &due_;
    if (entry.tick_ > elapsed_) {
        // Beyond the wheel's reach a timer waits in the farthest slot and is placed again when that comes round.
        constexpr auto reach = std::uint64_t(slot_count - 1) << ((level_count - 1) * slot_bits);
        auto const tick = std::min(entry.tick_, elapsed_ + reach);
        auto const differing = tick ^ elapsed_;
        int const level = std::min((63 - std::countl_zero(differing)) / slot_bits, level_count - 1);
        auto const index = (tick >> (level * slot_bits)) & (slot_count - 1);
        slot = &slots_[level][index];
        occupied_[level] |= std::uint64_t(1) << index;
    }
    // Behind those that are there. A timer of a higher level comes down before one can be armed here for its tick, so
    // this keeps the order of arming on all levels.
    entry.slot_ = slot;
    entry.next_ = nullptr;
    if (timer* const first = *slot) {
        entry.previous_ = std::exchange(first->previous_, &entry);
        entry.previous_->next_ = &entry;
    } else {
        entry.previous_ = &entry;
        *slot = &entry;
    }
}

void timer_wheel::remove(timer& entry) noexcept
{
    timer* const head = *entry.slot_;
    if (entry.next_)
        entry.next_->previous_ = entry.previous_;
    else
        head->previous_ = entry.previous_;
    if (head == &entry)
        *entry.slot_ = entry.next_;
    else
        entry.previous_->next_ = entry.next_;
    timer** const first = slots_[0].data();
    bool const is_wheel_slot
        = !std::less<>()(entry.slot_, first) && std::less<>()(entry.slot_, first + level_count * slot_count);
    if (!*entry.slot_ && is_wheel_slot) {
        auto const flat = static_cast<std::size_t>(entry.slot_ - first);
        occupied_[flat / slot_count] &= ~(std::uint64_t(1) << (flat % slot_count));
    }
    entry.slot_ = nullptr;
    entry.previous_ = entry.next_ = nullptr;
}

std::optional<std::uint64_t> timer_wheel::next_tick() const noexcept
{
    if (due_ || running_)
        return elapsed_;
    for (int level = 0; level < level_count; ++level) {
        if (!occupied_[level])
            continue;
        int const shift = level * slot_bits;
        auto const current = (elapsed_ >> shift) & (slot_count - 1);
        auto const rotated = std::rotr(occupied_[level], static_cast<int>(current));
        auto const ahead = static_cast<std::uint64_t>(std::countr_zero(rotated));
        auto const block = (elapsed_ >> shift) + ahead;
        return std::max(block << shift, elapsed_);
    }
    return std::nullopt;
}

std::size_t timer_wheel::advance(std::size_t most)
{
    auto const now = clock_.now();
    auto const target
        = now <= start_ ? 0 : static_cast<std::uint64_t>(std::chrono::floor<milliseconds>(now - start_).count());
    std::size_t ran = 0;
    auto const run_due = [&] {
        // Timers armed for now by the functions run at the next advance, so this ends.
        if (!running_) {
            running_ = std::exchange(due_, nullptr);
            for (timer* entry = running_; entry; entry = entry->next_)
                entry->slot_ = &running_;
        }
        while (running_ && ran < most) {
            timer& entry = *running_;
            remove(entry);
            ++ran;
            // The function may destroy the timer it belongs to, so it runs from here.
            bool is_gone = false;
            entry.is_gone_ = &is_gone;
            auto run = std::move(entry.expired_);
            run();
            if (!is_gone) {
                entry.is_gone_ = nullptr;
                entry.expired_ = std::move(run);
            }
        }
    };
    run_due();
    for (;;) {
        auto const next = next_tick();
        if (!next || *next > target)
            break;
        if (due_ || running_) // armed for a time that has passed, by a function that just ran; or too many
            break;
        elapsed_ = *next;
        // Timers of higher levels whose slot begins now move down; those of this very tick become due.
        for (int level = level_count - 1; level >= 0; --level) {
            int const shift = level * slot_bits;
            auto const index = (elapsed_ >> shift) & (slot_count - 1);
            if (level > 0 && (elapsed_ & ((std::uint64_t(1) << shift) - 1)) != 0)
                continue;
            timer* entry = slots_[level][index];
            while (entry) {
                timer* const following = entry->next_;
                remove(*entry);
                insert(*entry);
                entry = following;
            }
        }
        run_due();
    }
    if (!due_ && !running_)
        elapsed_ = std::max(elapsed_, target);
    return ran;
}

std::optional<time_point> timer_wheel::next_deadline() const noexcept
{
    auto const tick = next_tick();
    if (!tick)
        return std::nullopt;
    return start_ + milliseconds(*tick);
}

}
