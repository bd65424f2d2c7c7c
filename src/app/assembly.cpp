#include "app/assembly.hpp"

#include "store/memory_store.hpp"

#include <algorithm>
#include <utility>

namespace belay::app {

class assembly::event_counts final : public store::event_counter {
public:
    explicit event_counts(observe::metrics& metrics) : metrics_(metrics) {}
    void delivered(std::size_t events, std::size_t first) override
    {
        metrics_.events_delivered.Increment(static_cast<double>(first));
        metrics_.events_replayed.Increment(static_cast<double>(events - first));
    }
    void trimmed(std::size_t events, std::size_t undelivered) override
    {
        metrics_.events_trimmed.Increment(static_cast<double>(events - undelivered));
        metrics_.events_trimmed_undelivered.Increment(static_cast<double>(undelivered));
    }
    void ended(std::size_t events, std::size_t undelivered) override
    {
        metrics_.events_ended.Increment(static_cast<double>(events - undelivered));
        metrics_.events_ended_undelivered.Increment(static_cast<double>(undelivered));
    }

private:
    observe::metrics& metrics_;
};

std::unique_ptr<store::backend> make_memory_store(
    settings const& with, base::clock const& clock, base::random_source& random, store::event_counter& counter)
{
    // The epoch names this life of the store; 32 bits keep event ids short.
    return std::make_unique<store::memory_store>(with.runtime.limits, clock, random.next() >> 32, &counter);
}

/// A core has workers for as long as this lives.
class assembly::employment {
public:
    employment(std::shared_ptr<detail::server_core> core, base::worker_pool& workers) : core_(std::move(core))
    {
        core_->work_on(workers);
    }
    employment(employment&&) noexcept = default;
    ~employment()
    {
        if (core_)
            core_->stop_working();
    }

private:
    std::shared_ptr<detail::server_core> core_;
};

assembly::assembly(
    std::shared_ptr<detail::server_core> core, settings const& with, mounts which, base::clock const& clock,
    base::random_source& random, base::logger const& log, store_maker const& make_store)
    : cores_{core}, metrics_(std::make_unique<observe::metrics>()),
      event_counts_(std::make_unique<event_counts>(*metrics_)), store_(make_store(with, clock, random, *event_counts_)),
      node_(std::make_unique<runtime::node>(with.runtime, *store_, random, *metrics_, log)),
      workers_(std::make_unique<base::worker_pool>(with.worker_threads, with.worker_queue))
{
    if (which == mounts::served)
        for (auto const& each : core->mounts())
            if (each.core && std::ranges::find(cores_, each.core) == cores_.end())
                cores_.push_back(each.core);
    for (auto const& each : cores_) {
        employments_.emplace_back(each, *workers_);
        each->get_ready(with.schemas);
    }
    node_->run_with(*core);
}

assembly::~assembly() = default;

void assembly::start(base::loop& on)
{
    node_->start(on);
    for (auto const& each : cores_)
        each->start(*node_, on, each == cores_.front() ? runtime::session_mode::kept : runtime::session_mode::none);
}

void assembly::stop()
{
    for (auto const& each : cores_)
        each->stop();
    node_->stop();
}

void assembly::leave()
{
    employments_.clear();
}

}
