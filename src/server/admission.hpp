// How many calls of one tool run at once in this process; the others wait in the order of their arrival. Loops
// share it, under its own lock; nothing is called while it is held.
#pragma once

#include "base/mutex.hpp"
#include "runtime/call.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

namespace belay::inline v0::detail {

class admission : public std::enable_shared_from_this<admission> {
public:
    /// One call's right to run. Whoever waits next gets it when this goes, on whatever thread.
    class place {
    public:
        place() = default;
        explicit place(std::shared_ptr<admission> in) : in_(std::move(in)) {}
        place(place&&) noexcept = default;
        place& operator=(place&&) = delete;
        ~place();

    private:
        std::shared_ptr<admission> in_; // none: a tool without a limit
    };
    using begin = std::move_only_function<void(std::shared_ptr<runtime::call>, place)>;

    explicit admission(std::size_t limit) : limit_(limit) {}

    /// Begins the call when there is a place: before this returns, or later on the call's loop. On that loop. A call
    /// that ends while it waits never begins.
    void enter(std::shared_ptr<runtime::call> const& on, begin begin);

private:
    struct waiting {
        base::loop& loop;
        std::weak_ptr<runtime::call> on;
        admission::begin begin;
    };
    class queued; // a waiting call's hold on its place in the queue

    void leave() noexcept;
    void forget(waiting const& who);

    std::size_t const limit_;
    base::mutex mutex_;
    // While somebody waits, all places are taken.
    std::size_t inside_ BELAY_GUARDED_BY(mutex_) = 0;
    std::deque<std::shared_ptr<waiting>> queue_ BELAY_GUARDED_BY(mutex_);
};

/// What starts a call of a tool: through its admission, if it has one.
[[nodiscard]] std::move_only_function<void(std::shared_ptr<runtime::call>)>
in_turn(std::shared_ptr<admission> through, admission::begin begin);

}
