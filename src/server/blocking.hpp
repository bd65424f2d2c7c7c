// A call whose tool runs on a worker's thread. The worker has no hold on the call, which belongs to its loop: what
// it says goes into an outbox, and the loop takes it from there.
#pragma once

#include "base/mutex.hpp"
#include "base/worker_pool.hpp"
#include "protocol/revision.hpp"
#include "runtime/service.hpp"
#include "server/admission.hpp"

#include <belay/server.hpp>

#include <atomic>
#include <deque>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace belay::inline v0::detail {

class blocking_state : public std::enable_shared_from_this<blocking_state> {
public:
    struct job {
        protocol::revision revision;
        std::string name;
        std::string token; ///< JSON text
        json::object meta; ///< of the request
        blocking_work run;
    };

    blocking_state(runtime::node& node, std::shared_ptr<runtime::call> const& on, job job, admission::place place);

    /// The whole life of the function. On the worker.
    void run() noexcept;
    /// The call has ended from outside. On its loop.
    void cancel() noexcept { is_cancelled_.store(true); }

    // From any thread:
    void log(log_level level, std::string notice);
    void progress(double value, std::optional<double> total, std::string const& message);
    [[nodiscard]] bool is_cancelled() const noexcept { return is_cancelled_.load(); }
    [[nodiscard]] belay::session session() const;
    [[nodiscard]] std::optional<protocol::trace_context> const& trace() const noexcept { return trace_; }
    [[nodiscard]] json::object const& meta() const noexcept { return job_.meta; }

private:
    struct message {
        std::string text;
        std::optional<log_level> level; ///< none: progress
        double progress = 0;
    };

    void finish(std::optional<std::string> response);
    void put(message fresh) BELAY_REQUIRES(mutex_);
    /// Has flush() run on the loop, unless it is about to.
    void wake() BELAY_REQUIRES(mutex_);
    // On the loop:
    void flush();
    void emit(runtime::call& on, std::string text);
    void emitted(std::error_code error);

    runtime::node& node_;
    base::loop& loop_;
    std::weak_ptr<runtime::call> on_; // locked on the loop only, so that the call dies there
    std::string const id_;
    std::shared_ptr<runtime::live_session> const session_;
    base::logger const log_;
    std::optional<protocol::trace_context> const trace_;
    job job_;
    std::optional<admission::place> place_;
    std::atomic<bool> is_cancelled_ = false;
    // On the loop:
    std::size_t underway_ = 0; // messages that the call has not taken yet
    bool is_held_ = false;     // a flush waits for them

    base::mutex mutex_;
    std::deque<message> outbox_ BELAY_GUARDED_BY(mutex_);
    std::size_t outbox_bytes_ BELAY_GUARDED_BY(mutex_) = 0;
    std::size_t dropped_ BELAY_GUARDED_BY(mutex_) = 0;
    double progress_ BELAY_GUARDED_BY(mutex_) = -std::numeric_limits<double>::infinity();
    bool is_over_ BELAY_GUARDED_BY(mutex_) = false;
    std::optional<std::string>
        response_ BELAY_GUARDED_BY(mutex_); // none when it is over: the function failed in a way that has no answer
    bool is_awake_ BELAY_GUARDED_BY(mutex_) = false;
};

/// Reads the arguments, and gives what begins the call.
[[nodiscard]] std::expected<admission::begin, decode_error> prepare_blocking(
    tool_definition const& tool, runtime::incoming const& request, json::object const& arguments,
    std::string const& token, base::worker_pool* workers);

}
