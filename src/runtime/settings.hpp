// The numbers of the runtime, with the defaults that the settings reference documents.
#pragma once

#include "engine/follower.hpp"
#include "engine/producer.hpp"
#include "engine/session.hpp"
#include "store/types.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace belay::runtime {

enum class backlog_policy { undelivered, none };
enum class legacy_priming { typed, off };
enum class duplicate_policy { isolate, reject };

struct settings {
    std::string node_name = "belay";
    store::limits limits;
    engine::flow_settings flow;
    engine::follower_settings follower;

    base::duration reaper_interval = std::chrono::seconds(60);
    base::duration sweep_interval = std::chrono::minutes(5);
    base::duration session_max_lifetime = base::duration::zero(); ///< zero: off
    base::duration call_max = std::chrono::hours(1);
    base::duration lease = std::chrono::seconds(15);
    std::chrono::milliseconds retry{3000};
    std::size_t max_subscriptions = 1000; ///< per session
    std::size_t open_with_origin = 4;
    std::size_t open_without_origin = 64;
    engine::standalone_policy standalone = engine::standalone_policy::takeover;
    backlog_policy backlog = backlog_policy::undelivered;
    bool redeliver_requests = false; ///< a resume gets unanswered questions from before its cursor again
    legacy_priming priming_legacy = legacy_priming::typed;
    duplicate_policy duplicate_ids = duplicate_policy::isolate;
};

/// Activity is written to the store at most this often per session.
constexpr base::duration activity_write_interval = std::chrono::seconds(30);
/// A node may answer from a session record that is this old.
constexpr base::duration record_cache_age = std::chrono::seconds(1);
/// How long the end of a session waits for its last events to be written.
constexpr base::duration end_flush_limit = std::chrono::seconds(1);

}
