// A process: a node with loops, a clock and a link to the store of its own. It can stand still and it can be killed.
#pragma once

#include "link.hpp"
#include "observe/metrics.hpp"
#include "runtime/node.hpp"
#include "sim_loop.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace belay::sim {

/// A clock that is not quite right: it began at some time, goes too fast or too slow, and may stand still.
class skewed_clock final : public base::clock {
public:
    skewed_clock(base::clock const& truth, base::duration ahead, std::int64_t rate)
        : truth_(truth), shown_(base::time_point{} + ahead), since_(truth.now()), rate_(rate)
    {
    }
    [[nodiscard]] base::time_point now() const noexcept override
    {
        return is_frozen_ ? shown_ : shown_ + (truth_.now() - since_) / unit * rate_;
    }
    void freeze()
    {
        shown_ = now();
        is_frozen_ = true;
    }
    void thaw()
    {
        shown_ = now();
        since_ = truth_.now();
        is_frozen_ = false;
    }
    /// The rate of a clock that is right.
    static constexpr std::int64_t unit = 1000;

private:
    base::clock const& truth_;
    base::time_point shown_;
    base::time_point since_;
    std::int64_t rate_;
    bool is_frozen_ = false;
};

class process {
public:
    struct skew {
        base::duration ahead{};
        std::int64_t rate = skewed_clock::unit;
    };

    process(
        scheduler& scheduler, std::shared_ptr<link> way, runtime::settings const& settings, observe::metrics& metrics,
        std::uint64_t seed, std::size_t loop_count, skew skew, runtime::service& service)
        : scheduler_(scheduler), clock_(scheduler.clock(), skew.ahead, skew.rate), random_(seed), way_(std::move(way))
    {
        for (std::size_t i = 0; i < loop_count; ++i) {
            loops_.push_back(std::make_unique<sim_loop>(clock_));
            scheduler_.add(*loops_.back());
        }
        way_->set_home(*loops_.front());
        trouble(); // it has no lease yet
        node_ = std::make_unique<runtime::node>(settings, *way_, random_, metrics, base::logger());
        node_->run_with(service);
        scheduler_.on(*loops_.front(), [&] { node_->start(*loops_.front()); });
    }
    process(process const&) = delete;
    process& operator=(process const&) = delete;
    /// A kill. What its objects do while they go reaches nobody: there was nobody to do it.
    ~process()
    {
        way_->die();
        for (auto const& each : loops_)
            each->drop_work();
        node_.reset();
        for (auto const& each : loops_) {
            each->drop_work();
            scheduler_.remove(*each);
        }
    }

    [[nodiscard]] runtime::node& node() noexcept { return *node_; }
    [[nodiscard]] link& way() noexcept { return *way_; }
    [[nodiscard]] link const& way() const noexcept { return *way_; }
    [[nodiscard]] sim_loop& loop(std::size_t index) noexcept { return *loops_[index]; }
    [[nodiscard]] sim_loop& any_loop() { return *loops_[scheduler_.random().below(loops_.size())]; }

    [[nodiscard]] bool has(sim_loop const* loop) const
    {
        return std::ranges::any_of(loops_, [&](auto const& each) { return each.get() == loop; });
    }
    [[nodiscard]] bool has(base::loop const& loop) const
    {
        return std::ranges::any_of(loops_, [&](auto const& each) { return each.get() == &loop; });
    }

    void pause(bool clock_stands_still)
    {
        is_paused_ = true;
        if (clock_stands_still)
            clock_.freeze();
        for (auto const& each : loops_)
            each->pause(true);
    }
    void resume()
    {
        is_paused_ = false;
        trouble();
        clock_.thaw();
        for (auto const& each : loops_)
            each->pause(false);
    }
    [[nodiscard]] bool is_paused() const noexcept { return is_paused_; }

    /// Something has happened to it that may cost it its lease.
    void trouble() { troubled_at_ = scheduler_.now(); }
    /// Whether it could not be expected to reach the store all the time since then.
    [[nodiscard]] bool was_troubled_since(base::time_point when) const
    {
        return is_paused_ || way_->is_cut() || (troubled_at_ && *troubled_at_ >= when)
            || (way_->failed_at() && *way_->failed_at() >= when);
    }

    /// Since when nothing has happened to it; nothing if something does.
    [[nodiscard]] std::optional<base::time_point> well_since() const
    {
        if (is_paused_ || way_->is_cut())
            return std::nullopt;
        return std::max(troubled_at_.value_or(base::time_point{}), way_->failed_at().value_or(base::time_point{}));
    }

    bool is_interrupted = false; ///< its calls were ended with that reason
    bool is_drained = false;     ///< counted no running call: it would close its connections and exit

private:
    scheduler& scheduler_;
    skewed_clock clock_;
    base::seeded_random random_;
    std::shared_ptr<link> way_;
    std::vector<std::unique_ptr<sim_loop>> loops_;
    std::unique_ptr<runtime::node> node_;
    bool is_paused_ = false;
    std::optional<base::time_point> troubled_at_;
};

}
