// What is under way between one process and the store: commands, replies and hints, in any order, some of them late,
// lost or there twice.
#pragma once

#include "sim_loop.hpp"
#include "store/ports.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace belay::sim {

/// One of so many meets that fate; 0: none.
struct network_faults {
    std::uint64_t fails = 0;      ///< the caller hears `unavailable`, whatever became of the command
    std::uint64_t repeats = 0;    ///< the command arrives once more, later
    std::uint64_t slow = 0;       ///< seconds late
    std::uint64_t loses_hint = 0; ///< made good by a look at everything that is watched
};

/// A store that loses hints looks at all that is watched this often.
constexpr base::duration recheck_interval = std::chrono::seconds(15);

/// Whoever waits for a reply.
class caller {
public:
    virtual ~caller() = default;
    /// The outcome is not known. Only the first word counts.
    virtual void fail() = 0;
};

template<class T>
class waiting_caller final : public caller {
public:
    waiting_caller(sim_loop& loop, store::completion<T> done) : loop_(loop), done_(std::move(done)) {}
    void fail() override { give(failure(errc::unavailable)); }
    void give(result<T> outcome)
    {
        if (auto done = std::exchange(done_, nullptr))
            loop_.post([done = std::move(done), outcome = std::move(outcome)]() mutable { done(std::move(outcome)); });
    }

private:
    sim_loop& loop_;
    store::completion<T> done_;
};

class network final : public worker {
public:
    explicit network(scheduler& scheduler) : scheduler_(scheduler) {}

    struct parcel {
        std::move_only_function<void()> arrive;
        std::shared_ptr<caller> from{}; ///< null: nobody waits for it
        std::uint64_t lane = 0;         ///< parcels of one lane arrive in their order; 0: in any
        base::time_point due{};
    };
    void send(parcel sent) { parcels_.push_back(std::move(sent)); }

    [[nodiscard]] bool is_ready() const override
    {
        auto const now = scheduler_.now();
        return std::ranges::any_of(parcels_, [&](parcel const& each) { return each.due <= now; });
    }
    void run_one() override
    {
        auto const now = scheduler_.now();
        auto const ready = static_cast<std::uint64_t>(
            std::ranges::count_if(parcels_, [&](auto const& each) { return each.due <= now; }));
        auto nth = scheduler_.random().below(ready);
        auto picked = std::ranges::find_if(parcels_, [&](auto const& each) { return each.due <= now && nth-- == 0; });
        if (picked->lane != 0) // whoever is first in its lane, even if that one was to be late
            picked = std::ranges::find(parcels_, picked->lane, &parcel::lane);
        auto taken = std::move(*picked);
        parcels_.erase(picked);
        taken.arrive();
    }
    [[nodiscard]] bool is_empty() const noexcept { return parcels_.empty(); }

    /// Whoever waits hears nothing any more. Of what they have asked for some arrives; what nobody waits for is sent
    /// again until it has arrived.
    void cut()
    {
        auto under_way = std::exchange(parcels_, {});
        for (auto& each : under_way) {
            if (each.from)
                each.from->fail();
            if (!each.from || scheduler_.random().below(2) == 0)
                parcels_.push_back(std::move(each));
        }
    }
    /// Whoever waited is no more.
    void forget_callers()
    {
        std::vector<std::shared_ptr<caller>> gone;
        for (auto& each : parcels_)
            gone.push_back(std::move(each.from));
    }

private:
    scheduler& scheduler_;
    std::vector<parcel> parcels_;
};

}
