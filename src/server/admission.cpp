#include "server/admission.hpp"

#include <belay/server.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace belay::inline v0 {

tool_entry& tool_entry::at_most(std::size_t calls)
{
    if (calls == 0)
        throw std::invalid_argument("tool " + definition_.name + ": at_most(0) would never run it; use 1 or more");
    definition_.needs_waiting = "its calls cannot take turns";
    definition_.admission = std::make_shared<detail::admission>(calls);
    return *this;
}

}

namespace belay::inline v0::detail {

// Owned by the waiting call: it leaves the queue with it.
class admission::queued {
public:
    queued(std::shared_ptr<admission> in, std::shared_ptr<waiting> who) : in_(std::move(in)), who_(std::move(who)) {}
    queued(queued&&) noexcept = default;
    queued& operator=(queued&&) = delete;
    ~queued()
    {
        if (in_)
            in_->forget(*who_);
    }

private:
    std::shared_ptr<admission> in_;
    std::shared_ptr<waiting> who_;
};

admission::place::~place()
{
    if (in_)
        in_->leave();
}

void admission::enter(std::shared_ptr<runtime::call> const& on, begin begin)
{
    base::lock lock(mutex_);
    if (inside_ < limit_) {
        ++inside_;
        lock.unlock();
        return begin(on, place(shared_from_this()));
    }
    auto const who = std::make_shared<waiting>(on->loop(), on, std::move(begin));
    queue_.push_back(who);
    lock.unlock();
    // It cannot have begun while it can still be asked: both happen on the call's loop.
    on->on_give_up([hold = queued(shared_from_this(), who)] { return true; });
}

void admission::leave() noexcept
{
    std::shared_ptr<waiting> next;
    {
        base::lock const lock(mutex_);
        if (queue_.empty()) {
            --inside_;
            return;
        }
        next = std::move(queue_.front());
        queue_.pop_front();
    }
    auto& loop = next->loop;
    loop.post([next = std::move(next), mine = place(shared_from_this())]() mutable {
        auto const on = next->on.lock();
        if (!on || on->is_ended())
            return; // the place goes on to the next one
        on->on_give_up(nullptr);
        auto begin = std::exchange(next->begin, nullptr);
        begin(on, std::move(mine));
    });
}

void admission::forget(waiting const& who)
{
    std::shared_ptr<waiting> gone; // what it holds is destroyed without the lock
    base::lock const lock(mutex_);
    auto const found = std::ranges::find(queue_, &who, &std::shared_ptr<waiting>::get);
    if (found == queue_.end())
        return;
    gone = std::move(*found);
    queue_.erase(found);
}

std::move_only_function<void(std::shared_ptr<runtime::call>)>
in_turn(std::shared_ptr<admission> through, admission::begin begin)
{
    return [through = std::move(through), begin = std::move(begin)](std::shared_ptr<runtime::call> on) mutable {
        if (through)
            through->enter(on, std::move(begin));
        else
            begin(std::move(on), {});
    };
}

}
