// What serves, without a way in: the store, the node, the workers, and the server's core with those that are mounted
// on it. HTTP, stdio and the test kit put their way in before it; nothing else builds these parts.
#pragma once

#include "app/settings.hpp"
#include "base/loop.hpp"
#include "base/worker_pool.hpp"
#include "observe/metrics.hpp"
#include "runtime/node.hpp"
#include "server/core.hpp"
#include "store/ports.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace belay::store {
class event_counter;
}

namespace belay::app {

/// Makes the store that an assembly keeps everything in. What becomes of events is counted.
using store_maker = std::function<std::unique_ptr<store::backend>(
    settings const& with, base::clock const& clock, base::random_source& random, store::event_counter& counter)>;
std::unique_ptr<store::backend> make_memory_store(
    settings const& with, base::clock const& clock, base::random_source& random, store::event_counter& counter);

class assembly {
public:
    /// Mounted servers are reached over HTTP only.
    enum class mounts { served, left_out };

    /// The loops must outlive it. Throws std::invalid_argument for what is not ready to be served, and std::logic_error
    /// for a server that is served already.
    assembly(
        std::shared_ptr<detail::server_core> core, settings const& with, mounts which, base::clock const& clock,
        base::random_source& random, base::logger const& log, store_maker const& make_store = make_memory_store);
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
    [[nodiscard]] store::backend& store() noexcept { return *store_; }
    [[nodiscard]] observe::metrics& metrics() noexcept { return *metrics_; }
    [[nodiscard]] base::worker_pool& workers() noexcept { return *workers_; }
    [[nodiscard]] base::worker_pool const& workers() const noexcept { return *workers_; }

private:
    class event_counts;
    class employment;

    std::vector<std::shared_ptr<detail::server_core>> cores_; // the main one first, each once
    std::unique_ptr<observe::metrics> metrics_;
    std::unique_ptr<event_counts> event_counts_;
    std::unique_ptr<store::backend> store_;
    std::unique_ptr<runtime::node> node_;
    std::unique_ptr<base::worker_pool> workers_; // after the node, which its threads use
    std::vector<employment> employments_;
};

}
