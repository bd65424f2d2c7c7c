// What Belay needs of a Redis, looked at once before it is used: what is wrong, in one sentence each.
#pragma once

#include "store/redis_store.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace belay::store {

struct redis_finding {
    enum class weight {
        note, ///< it works, and something may be lost
        fault, ///< it does not work, or not for long
    };
    redis_finding::weight how = weight::fault;
    std::string sentence;
    friend bool operator==(redis_finding const&, redis_finding const&) = default;
};

/// What Redis says of itself.
struct redis_facts {
    std::string info; ///< the reply to INFO
    std::string save_points{}; ///< CONFIG GET save; "?" if that is not allowed
    std::vector<std::string> refused{}; ///< commands that the user has no right to
};
[[nodiscard]] std::vector<redis_finding> judge_redis(redis_facts const& facts, redis_place const& place);

/// Asks the store's first address, or its master; a Redis that cannot be reached is a fault. The completion is called
/// once, on the loop.
void check_redis(
    base::io_loop& loop, redis_options const& options, std::move_only_function<void(std::vector<redis_finding>)> done);

}
