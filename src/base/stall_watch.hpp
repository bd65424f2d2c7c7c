// Finds loops that do not get to their work: it gives each of them a small task and looks whether it was done. That
// costs a loop nothing while it works, and sees whatever holds it, known or not.
#pragma once

#include "base/loop.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace belay::base {

struct stall {
    std::size_t loop = 0;
    duration held{};             ///< so far, or in all; at least
    bool is_over = false;
    bool is_told = false;        ///< it was told before
    last_handler::state handler; ///< the last that was started
    std::uint64_t started = 0;   ///< handlers started meanwhile: more than one means a loop with much to do
};

/// Used by one thread, which calls look() several times within the limit.
class stall_watch {
public:
    using function = std::function<void(stall const&)>;

    /// The loops must outlive it, or be left alone after they have stopped.
    stall_watch(std::vector<loop*> loops, clock const& clock, duration limit, function tell);

    /// Tells of loops that are held up, once when that is seen and once when it is over.
    void look();

private:
    struct errand {
        std::atomic<bool> is_done{false};
        std::atomic<duration::rep> done_at{0};
    };
    struct watched {
        base::loop* loop;
        std::shared_ptr<errand> sent; // null: none is under way
        time_point sent_at;
        std::uint64_t started_before = 0;
        last_handler::state handler; // as it was seen last while the loop did not answer
        bool is_told = false;
    };

    void send(watched& to);

    clock const& clock_;
    duration limit_;
    function tell_;
    std::vector<watched> loops_;
};

}
