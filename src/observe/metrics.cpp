#include "observe/metrics.hpp"

#include <prometheus/text_serializer.h>

namespace belay::observe {

namespace {

// From 50 µs, a small call, to 10 s.
prometheus::Histogram::BucketBoundaries const second_buckets{
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

}

prometheus::Counter& metrics::counter(std::string name, std::string help, std::map<std::string, std::string> labels)
{
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(labels);
}

prometheus::Gauge& metrics::gauge(std::string name, std::string help)
{
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add({});
}

prometheus::Histogram& metrics::histogram(std::string name, std::string help)
{
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add({}, second_buckets);
}

metrics::metrics()
    : registry_(prometheus::Registry::InsertBehavior::Merge),
      sessions(gauge("belay_sessions", "Sessions that live in the store, which nodes may share: the same on each.")),
      sessions_served(gauge("belay_sessions_served", "Sessions that this node has in use.")),
      streams(gauge("belay_streams", "Streams that are kept in the store, the same on each node.")),
      connections(gauge("belay_connections", "Open HTTP connections.")),
      calls_running(gauge("belay_calls_running", "Calls whose tool is running.")),
      store_bytes(gauge("belay_store_bytes", "Bytes that the store keeps, the same on each node.")),
      workers_running(gauge("belay_workers_running", "Blocking tools that run.")),
      workers_queued(gauge("belay_workers_queued", "Calls of blocking tools that wait for a thread.")),
      events_appended(counter("belay_events_appended_total", "Events appended to streams.")),
      events_delivered(counter("belay_events_delivered_total", "First deliveries of an event.")),
      events_replayed(counter("belay_events_replayed_total", "Further deliveries of an event.")),
      events_trimmed(
          counter("belay_events_trimmed_total", "Events that retention has removed.", {{"delivered", "yes"}})),
      events_trimmed_undelivered(
          counter("belay_events_trimmed_total", "Events that retention has removed.", {{"delivered", "no"}})),
      events_ended(counter("belay_events_ended_total", "Events removed with their session.", {{"delivered", "yes"}})),
      events_ended_undelivered(
          counter("belay_events_ended_total", "Events removed with their session.", {{"delivered", "no"}})),
      gaps_told(counter("belay_gaps_told_total", "Gap notices sent.")),
      takeovers(counter("belay_takeovers_total", "Connections that took a stream over from another.")),
      calls_started(counter("belay_calls_started_total", "Calls accepted.")),
      calls_repeated(counter("belay_calls_repeated_total", "Calls that repeat an earlier one with the same key.")),
      calls_run_again(counter("belay_calls_run_again_total", "Calls run again because their run was lost.")),
      calls_interrupted(counter("belay_calls_interrupted_total", "Calls ended because their server stopped.")),
      late_answers(counter("belay_late_answers_total", "Answers refused because the call had ended.")),
      sessions_opened(counter("belay_sessions_opened_total", "Sessions opened.")),
      sessions_expired(counter("belay_sessions_expired_total", "Sessions ended for being idle.")),
      task_failures(counter("belay_task_failures_total", "Failures that nobody was left to hear of.")),
      log_lines_dropped(counter("belay_log_lines_dropped_total", "Log lines that nobody has taken.")),
      loop_stalls(counter("belay_loop_stalls_total", "Times that an event loop was held up.")),
      loop_stall_seconds(histogram("belay_loop_stall_seconds", "How long event loops were held up.")),
      http_bytes_in(gauge("belay_http_bytes_in", "Bytes of request bodies that are being read or answered.")),
      http_bytes_out(gauge("belay_http_bytes_out", "Bytes of answers that their readers have not taken.")),
      http_bodies_refused(counter("belay_http_bodies_refused_total", "Bodies refused because there were too many.")),
      http_readers_closed(counter(
          "belay_http_readers_closed_total", "Connections closed because answers to slow readers were too many.")),
      request_seconds(histogram("belay_request_seconds", "From a whole request to the end of its answer.")),
      append_seconds(histogram("belay_append_seconds", "Duration of appends to the store.")),
      connections_closed_(prometheus::BuildCounter()
                              .Name("belay_stream_connections_closed_total")
                              .Help("Connections that followed a stream, by why they ended.")
                              .Register(registry_)),
      calls_ended_(prometheus::BuildCounter()
                       .Name("belay_calls_ended_total")
                       .Help("Calls by how they ended.")
                       .Register(registry_))
{
}

void metrics::by_reason::count(std::string_view reason)
{
    base::lock const lock(mutex_);
    auto known = counters_.find(reason);
    if (known == counters_.end())
        known = counters_.emplace(reason, &family_.Add({{"reason", std::string(reason)}})).first;
    known->second->Increment();
}

void metrics::connection_closed(std::string_view reason)
{
    connections_closed_.count(reason);
}

void metrics::call_ended(std::string_view reason)
{
    calls_ended_.count(reason);
}

void catch_up(prometheus::Counter& counter, std::uint64_t count)
{
    if (auto const more = static_cast<double>(count) - counter.Value(); more > 0)
        counter.Increment(more);
}

std::string metrics::text()
{
    return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}
