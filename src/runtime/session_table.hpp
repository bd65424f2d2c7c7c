// The sessions that this node serves now. It grows with what is in use: a session that nobody uses is forgotten at the
// next look, and found again in the store. From any thread.
#pragma once

#include "base/mutex.hpp"
#include "protocol/revision.hpp"
#include "runtime/live_session.hpp"

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

namespace belay::runtime {

class session_table {
public:
    ~session_table();

    /// The session as it is served here. It may have seen another record: see session_use.
    [[nodiscard]] std::shared_ptr<live_session> enter(store::record_ptr const& record);
    /// Null: not served here.
    [[nodiscard]] std::shared_ptr<live_session> find(store::session_key const& key);
    /// It is not served any more. Calls that still run in it are among all(), until they have ended.
    void forget(store::session_key const& key);
    /// Stands in for the session of a call that has none: in no store, gone with the call.
    [[nodiscard]] std::shared_ptr<live_session> stand_in(protocol::revision revision);
    /// All of them, those that stand in and those that are forgotten but still used too.
    [[nodiscard]] std::vector<std::shared_ptr<live_session>> all();

    /// How many sessions of the store are served here.
    [[nodiscard]] std::size_t count();

    /// Forgets the sessions that nobody uses. Gives those in use of which the store does not know.
    [[nodiscard]] std::vector<store::session_key> look_round();

private:
    struct stripe {
        base::mutex mutex;
        std::unordered_map<store::session_key, std::shared_ptr<live_session>, store::session_key_hash>
            sessions BELAY_GUARDED_BY(mutex);
    };
    [[nodiscard]] stripe& stripe_of(store::session_key const& key) noexcept;
    [[nodiscard]] std::shared_ptr<live_session> make(store::record_ptr record);
    void list_keyless(std::shared_ptr<live_session> const& session);

    static constexpr std::size_t stripe_count = 64;
    std::array<stripe, stripe_count> stripes_;

    // Those in no stripe, and alive. Sessions may outlive the table, in what is posted and never run.
    struct keyless_sessions {
        base::mutex mutex;
        std::unordered_map<live_session const*, std::weak_ptr<live_session>> all BELAY_GUARDED_BY(mutex);
    };
    std::shared_ptr<keyless_sessions> keyless_ = std::make_shared<keyless_sessions>();
};

}
