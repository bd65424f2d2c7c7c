// A memory store whose appends can be held back, and then go through or fail.
#pragma once

#include "store/memory_store.hpp"
#include "support/forwarding_store.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace belay::inline v0 {

class late_store final : public forwarding_store {
public:
    explicit late_store(base::clock const& clock) : forwarding_store(memory_), memory_({}, clock, 1) {}

    /// From now on appends wait for go_on() or fail().
    void hold() { is_holding_ = true; }
    /// Lets everything through that was held, and is in time again.
    void go_on()
    {
        is_holding_ = false;
        for (auto& each : std::exchange(held_, {}))
            each.go_on();
    }
    /// Fails everything that was held, and is in time again.
    void fail(errc why)
    {
        is_holding_ = false;
        for (auto& each : std::exchange(held_, {}))
            each.fail(why);
    }
    [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }
    /// The most events that came in one append.
    [[nodiscard]] std::size_t largest() const noexcept { return largest_; }

    void append(
        store::stream_key const& key, store::fence fence, std::uint64_t batch, std::uint64_t after,
        std::vector<store::event_data> events, bool finish, store::completion<store::stream_top> done) override
    {
        largest_ = std::max(largest_, events.size());
        if (!is_holding_)
            return memory_.append(key, fence, batch, after, std::move(events), finish, std::move(done));
        auto const shared = std::make_shared<store::completion<store::stream_top>>(std::move(done));
        held_.push_back(
            {[this, key, fence, batch, after, events = std::move(events), finish, shared]() mutable {
                 memory_.append(key, fence, batch, after, std::move(events), finish, std::move(*shared));
             },
             [shared](errc why) { (*shared)(failure(why)); }});
    }

private:
    struct late_append {
        std::move_only_function<void()> go_on;
        std::move_only_function<void(errc)> fail;
    };

    store::memory_store memory_;
    bool is_holding_ = false;
    std::size_t largest_ = 0;
    std::deque<late_append> held_;
};

}
