// What serves, without a way in: the store, the node, the workers, and the server's core with those that are mounted
// on it. HTTP, stdio and the test kit put their way in before it; nothing else builds these parts.
#pragma once

#include "app/settings.hpp"
#include "base/loop.hpp"
#include "base/worker_pool.hpp"
#include "observe/metrics.hpp"
#include "runtime/node.hpp"
#include "server/core.hpp"
#include "store/memory_store.hpp"

#include <memory>
#include <vector>

namespace belay::app {

class assembly {
public:
    /// Mounted servers are reached over HTTP only.
    enum class mounts { served, left_out };

    /// The loops must outlive it. Throws std::invalid_argument for what is not ready to be served, and std::logic_error
    /// for a server that is served already.
    assembly(
        std::shared_ptr<detail::server_core> core, settings const& with, mounts which, base::clock const& clock,
        base::random_source& random, base::logger const& log);
    /// Waits for blocking tools that are running, while everything they speak to is still there. No loop may run.
    ~assembly();
    assembly(assembly const&) = delete;
    assembly& operator=(assembly const&) = delete;

    /// On the loop that the node is to live on; stop() too.
    void start(base::loop& on);
    void stop();
    /// After stop(), once nothing of the servers runs here: others may serve them.
    void leave();

    [[nodiscard]] detail::server_core& core() const noexcept { return *cores_.front(); }
    [[nodiscard]] runtime::node& node() noexcept { return *node_; }
    [[nodiscard]] store::memory_store& store() noexcept { return *store_; }
    [[nodiscard]] observe::metrics& metrics() noexcept { return *metrics_; }
    [[nodiscard]] base::worker_pool& workers() noexcept { return *workers_; }
    [[nodiscard]] base::worker_pool const& workers() const noexcept { return *workers_; }

private:
    class event_counts;
    class employment;

    std::vector<std::shared_ptr<detail::server_core>> cores_; // the main one first, each once
    std::unique_ptr<observe::metrics> metrics_;
    std::unique_ptr<event_counts> event_counts_;
    std::unique_ptr<store::memory_store> store_;
    std::unique_ptr<runtime::node> node_;
    std::unique_ptr<base::worker_pool> workers_; // after the node, which its threads use
    std::vector<employment> employments_;
};

}
