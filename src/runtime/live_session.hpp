// A session as this node serves it: the cached record, the machine that decides about its connections, and
// the calls that run here. Reached from every loop, under its own lock. Called while it is held: the machine,
// `peer_gone`, and the store's `touch` (a hint whose order must be that of the decisions; it takes the store's
// own lock, under which nothing is called).
#pragma once

#include "base/ids.hpp"
#include "base/loop.hpp"
#include "base/receipt.hpp"
#include "engine/session.hpp"
#include "store/ports.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace belay::runtime {

class call;
class following;

/// What logs show of a stream: its id is part of what clients resume with.
[[nodiscard]] inline std::string stream_log_name(store::stream_id stream)
{
    return base::log_name({0, stream});
}

class live_session {
public:
    explicit live_session(store::session_key key) : key(std::move(key)), name(base::log_name(this->key.id)) {}

    store::session_key const key;
    std::string const name; ///< what logs and operators see instead of the id

    std::mutex mutex;
    // All below: under the mutex.
    engine::session machine;
    std::shared_ptr<store::session_record const> record;
    bool is_kept = true; ///< in the store; false: stands in for a session where there is none
    base::time_point known_since{};
    base::time_point loaded_at{};
    base::time_point written_activity{};
    bool written_held = false;
    bool is_of_page = false;    ///< a web page uses it
    std::vector<std::shared_ptr<following>> followers;
    std::vector<std::shared_ptr<call>> calls;
    /// Mail for calls whose streams are being opened: the store may know of them before the node does.
    std::map<store::stream_id, std::vector<store::owner_message>> early_mail;
    /// Answers that were given to connections and are not known to have arrived.
    struct awaited_receipt {
        base::loop* loop;
        std::weak_ptr<base::receipt> receipt;
    };
    std::vector<awaited_receipt> receipts;
    std::move_only_function<void()> on_quiet; ///< ending: called when the last connection and call have gone

    void expect(base::loop& loop, std::shared_ptr<base::receipt> const& receipt)
    {
        // Most are answered by the time that there are this many.
        constexpr std::size_t many = 32;
        if (receipts.size() >= many)
            std::erase_if(receipts, [](awaited_receipt const& each) { return each.receipt.expired(); });
        receipts.push_back({&loop, receipt});
    }
    [[nodiscard]] std::shared_ptr<store::session_record const> current_record()
    {
        std::lock_guard const lock(mutex);
        return record;
    }
};

}
