// A server over HTTP as an object with a life: loops and their threads, endpoints and listeners around the assembly.
// Tests build one too, with a clock of their own.
#pragma once

#include "app/admin.hpp"
#include "app/assembly.hpp"
#include "app/settings.hpp"
#include "base/io_loop.hpp"
#include "base/stall_watch.hpp"
#include "http/router.hpp"
#include "observe/access_log.hpp"
#include "transport/stateless_http.hpp"
#include "transport/streamable_http.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace belay::app {

/// What of its surroundings it is given.
struct http_surroundings {
    std::function<std::uint64_t()> dropped_log_lines{}; ///< null: nobody counts
    /// The context to serve on instead of threads of its own; then it is abandoned before it is destroyed.
    boost::asio::io_context* given = nullptr;
    /// What owns all that frames on the given context use.
    std::weak_ptr<void> keeper{};
    store_maker make_store = make_memory_store;
};

class http_host {
public:
    /// Listens at once; serves from start() on. Throws std::runtime_error with a sentence for the operator.
    http_host(
        std::shared_ptr<detail::server_core> core, settings settings, base::clock const& clock,
        base::random_source& random, base::logger log, http_surroundings around = {});
    /// Stops without waiting for calls.
    ~http_host();

    /// Runs the loops on threads of their own, or on the context that it was given. If it throws, because there are no
    /// threads to be had, nothing has been served and nothing runs.
    void start();
    /// Waits until it has stopped. Throws std::logic_error on a thread that would wait for itself, and if the context
    /// that it was given is stopped.
    void wait();
    /// On a given context: stops without waiting for calls, now if nobody else can run the context, and otherwise as
    /// soon as it is run. Waits for that, and for blocking tools.
    void abandon();
    /// Stops as on SIGTERM: calls may finish within the drain time, the rest is interrupted. From any thread.
    void shut_down();
    /// Stops without waiting for calls: they get their `interrupted` answer, which has a second to be written. Once
    /// more: without that second. From any thread.
    void stop_now();
    /// Turns the access log on or off. From any thread.
    void log_access(bool is_on) noexcept { logs_access_.store(is_on, std::memory_order_relaxed); }
    /// Whether a blocking tool is still running, after wait(). Destroying the host waits for it.
    [[nodiscard]] bool is_held_up() const { return whole_->workers().running() > 0; }

    /// `http://127.0.0.1:3000`; `http://localhost` if it listens on unix sockets only.
    [[nodiscard]] std::string url() const;
    /// All addresses it listens on, as in `127.0.0.1:3000` and `unix:/run/belay.sock`.
    [[nodiscard]] std::vector<std::string> addresses() const { return http_->names(); }
    /// The address of the operators' endpoint; empty without one.
    [[nodiscard]] std::string admin_address() const;
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] runtime::node& node() noexcept { return whole_->node(); }
    [[nodiscard]] observe::metrics& metrics() noexcept { return whole_->metrics(); }
    [[nodiscard]] base::worker_pool& workers() noexcept { return whole_->workers(); }
    [[nodiscard]] http::server_statistics http_statistics() const { return http_->statistics(); }
    /// For the owner of a manual clock, after advancing it.
    void poke();

private:
    void add_mounts();
    void add_routes();
    void open_admin();
    [[nodiscard]] std::string metrics_text();
    void watch_loops();
    void tell_stall(base::stall const& stall);
    void write_access(http::access_record const& record) const;
    void answer_ready(http::exchange& exchange);
    void drain_step();
    /// Closes what only waits here, if it can wait elsewhere.
    void send_away();
    void interrupt_calls();
    void close_connections();
    /// Stops without waiting for anything: whoever destroys this may have a clock that stands still.
    void cut_off();
    /// The rest of it, inside of this. On a given context that nobody else runs.
    void stop_here();
    void stop_serving();
    void stop_loops();
    void start_threads();
    void join_threads();
    /// Others may serve the server from now on. Where none of its loops runs it any more.
    void leave_server();
    [[nodiscard]] bool is_on_own_thread() const;

    settings settings_;
    base::clock const& clock_;
    base::logger log_;
    std::vector<std::unique_ptr<base::io_loop>> loops_;
    std::unique_ptr<assembly> whole_; // after the loops, which it uses
    std::shared_ptr<std::atomic<bool>> is_store_well_ = std::make_shared<std::atomic<bool>>(true);
    std::unique_ptr<store::watch_handle> store_health_;
    std::unique_ptr<transport::streamable_http> endpoint_;
    std::vector<std::unique_ptr<transport::stateless_http>> mounts_;
    http::router router_;
    http_surroundings around_;
    observe::access_log access_log_;
    std::atomic<bool> logs_access_;
    std::unique_ptr<http::server> http_;
    std::unique_ptr<admin> admin_;
    std::unique_ptr<http::server> admin_http_; // null: off
    base::mutex threads_mutex_; // of whoever joins them
    std::vector<std::thread> threads_;
    std::vector<std::thread::id> thread_ids_; // complete before anything is served
    std::jthread watch_; // of the loops

    base::mutex metrics_mutex_; // of metrics_text(): counters that others keep are copied by one at a time

    /// That it has stopped. From any thread.
    class ending {
    public:
        void tell();
        void wait();
        [[nodiscard]] bool is_over();

    private:
        base::mutex mutex_;
        std::condition_variable changed_;
        bool is_over_ BELAY_GUARDED_BY(mutex_) = false;
    };
    std::shared_ptr<ending> ending_ = std::make_shared<ending>(); // whoever tells it may outlive this

    // On the first loop.
    enum class phase { serving, draining, closing, stopped } phase_ = phase::serving;
    bool has_interrupted_ = false;
    std::unique_ptr<base::timer> limit_;
};

}
