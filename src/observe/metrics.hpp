// The program's metrics, by name. Counting may happen on any thread, and takes no lock but for what ends by a reason;
// gauges that belong to someone else are asked for when the text is made.
#pragma once

#include "base/mutex.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace belay::observe {

class metrics {
private:
    prometheus::Registry registry_; // before the references into it

    prometheus::Counter& counter(std::string name, std::string help, std::map<std::string, std::string> labels = {});
    prometheus::Gauge& gauge(std::string name, std::string help);
    prometheus::Histogram& histogram(std::string name, std::string help);

public:
    metrics();

    prometheus::Gauge& sessions;
    prometheus::Gauge& sessions_served;
    prometheus::Gauge& streams;
    prometheus::Gauge& connections;
    prometheus::Gauge& calls_running;
    prometheus::Gauge& store_bytes;
    prometheus::Gauge& workers_running;
    prometheus::Gauge& workers_queued;
    prometheus::Counter& events_appended;
    prometheus::Counter& events_delivered;
    prometheus::Counter& events_replayed;
    prometheus::Counter& events_trimmed;             ///< by retention, after a first delivery
    prometheus::Counter& events_trimmed_undelivered; ///< by retention, before any delivery
    prometheus::Counter& events_ended;               ///< with their session, after a first delivery
    prometheus::Counter& events_ended_undelivered;   ///< with their session, before any delivery
    prometheus::Counter& gaps_told;
    prometheus::Counter& takeovers;
    prometheus::Counter& calls_started;
    prometheus::Counter& calls_repeated;
    prometheus::Counter& calls_run_again;
    prometheus::Counter& calls_interrupted;
    prometheus::Counter& late_answers;
    prometheus::Counter& sessions_opened;
    prometheus::Counter& sessions_expired;
    prometheus::Counter& task_failures;
    prometheus::Counter& log_lines_dropped;
    prometheus::Counter& loop_stalls;
    prometheus::Histogram& loop_stall_seconds;
    prometheus::Gauge& http_bytes_in;
    prometheus::Gauge& http_bytes_out;
    prometheus::Counter& http_bodies_refused;
    prometheus::Counter& http_readers_closed;
    prometheus::Histogram& request_seconds;
    prometheus::Histogram& append_seconds;

    /// Connections and calls that ended, by reason.
    void connection_closed(std::string_view reason);
    void call_ended(std::string_view reason);

    /// Prometheus' text format.
    [[nodiscard]] std::string text();

private:
    /// Counters that differ in one label. The library makes and compares a map for every look at one.
    class by_reason {
    public:
        explicit by_reason(prometheus::Family<prometheus::Counter>& family) : family_(family) {}
        void count(std::string_view reason);

    private:
        prometheus::Family<prometheus::Counter>& family_;
        base::mutex mutex_;
        std::map<std::string, prometheus::Counter*, std::less<>> counters_ BELAY_GUARDED_BY(mutex_);
    };

    by_reason connections_closed_;
    by_reason calls_ended_;
};

/// Brings a counter up to a count that is kept elsewhere. By one thread at a time.
void catch_up(prometheus::Counter& counter, std::uint64_t count);

}
