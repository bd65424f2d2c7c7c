// The numbers of the runtime, with the defaults that the settings reference documents.
#pragma once

#include "engine/follower.hpp"
#include "engine/producer.hpp"
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
    base::duration call_max = std::chrono::hours(1);
    base::duration lease = std::chrono::seconds(15);
    std::chrono::milliseconds retry{3000};
    std::size_t max_rerun_bytes = 64 * 1024; ///< of a request that is kept to be run again; larger ones are not
    std::size_t max_identity_bytes = 16 * 1024; ///< of what is kept of a caller with a call
    std::size_t max_subscriptions = 1000; ///< per session
    std::size_t max_subscription_bytes = 8 * 1024; ///< the URI of one
    std::size_t max_client_info = 16 * 1024; ///< bytes of what a client says of itself
    std::size_t max_client_capabilities = 64 * 1024;
    std::size_t open_with_origin = 4;
    std::size_t open_without_origin = 64;
    store::standalone_policy standalone = store::standalone_policy::takeover;
    backlog_policy backlog = backlog_policy::undelivered;
    bool redeliver_requests = false; ///< a resume gets unanswered questions from before its cursor again
    legacy_priming priming_legacy = legacy_priming::typed;
    duplicate_policy duplicate_ids = duplicate_policy::isolate;
};

/// So often the store is told of sessions in use that it does not see.
constexpr base::duration activity_write_interval = std::chrono::seconds(30);
/// How long whoever ends a session waits for its last events to be written.
constexpr base::duration end_flush_limit = std::chrono::seconds(1);

}
