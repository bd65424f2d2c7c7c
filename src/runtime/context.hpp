// What the parts of a node share: its settings, its store, its name there, chance, and the loop of its own work.
// From any thread.
#pragma once

#include "base/ids.hpp"
#include "base/log.hpp"
#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "observe/metrics.hpp"
#include "runtime/departures.hpp"
#include "runtime/settings.hpp"
#include "store/ports.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

namespace belay::runtime {

class node_context {
public:
    node_context(
        runtime::settings settings, store::backend& store, base::random_source& random, observe::metrics& metrics,
        base::logger log);

    [[nodiscard]] runtime::settings const& settings() const noexcept { return settings_; }
    [[nodiscard]] store::backend& store() noexcept { return store_; }
    [[nodiscard]] observe::metrics& metrics() noexcept { return metrics_; }
    [[nodiscard]] base::logger const& log() const noexcept { return log_; }
    [[nodiscard]] runtime::departures& departures() noexcept { return departures_; }
    /// Whether others, or another process in this one's place, can go on with what is here.
    [[nodiscard]] bool has_successors() const noexcept { return store_.promise() != store::durability::process; }
    /// This incarnation of the node, as the store knows it.
    [[nodiscard]] std::string const& owner() const noexcept { return owner_; }

    [[nodiscard]] std::uint64_t random();
    [[nodiscard]] base::id128 random_id();
    /// The delay with its jitter of up to a quarter.
    [[nodiscard]] std::chrono::milliseconds retry_delay(std::chrono::milliseconds base);
    [[nodiscard]] std::chrono::milliseconds retry_delay() { return retry_delay(settings_.retry); }
    [[nodiscard]] std::uint64_t next_nonce() { return nonce_.fetch_add(1, std::memory_order_relaxed); }
    /// The name of a connection's reader in the store.
    [[nodiscard]] store::reader_id next_reader();

    /// The loop of the node's own work, from start to stop.
    void set_own_loop(base::loop* loop) noexcept { own_loop_.store(loop); }
    [[nodiscard]] base::loop* own_loop() const noexcept { return own_loop_.load(); }
    /// Runs on the node's own loop, soon. Nothing happens while the node is not started.
    void later(std::move_only_function<void()> work);

private:
    runtime::settings settings_;
    store::backend& store_;
    base::mutex random_mutex_;
    base::random_source& random_ BELAY_GUARDED_BY(random_mutex_);
    observe::metrics& metrics_;
    base::logger log_;
    std::string owner_;
    runtime::departures departures_;
    std::atomic<std::uint64_t> next_connection_{1};
    std::atomic<std::uint64_t> nonce_{1};
    std::atomic<base::loop*> own_loop_{nullptr};
};

}
