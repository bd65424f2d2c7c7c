// One Belay process, as seen by its transports: sessions, calls and followers, on whatever store it was given. A
// composition: each part has its own header and its own subject.
#pragma once

#include "runtime/announcer.hpp"
#include "runtime/attachments.hpp"
#include "runtime/call_directory.hpp"
#include "runtime/context.hpp"
#include "runtime/recovery.hpp"
#include "runtime/service.hpp"
#include "runtime/session_table.hpp"
#include "runtime/sessions.hpp"

#include <memory>
#include <string>

namespace belay::runtime {

class node {
public:
    node(
        runtime::settings settings, store::backend& store, base::random_source& random, observe::metrics& metrics,
        base::logger log);
    ~node();

    /// Calls of lost nodes that may run again are run with this one. Before start().
    void run_with(service& service) { recovery_.run_with(*this, service); }
    /// Starts the periodic work on that loop: reaper, sweep, lease.
    void start(base::loop& loop);
    /// On the loop given to start().
    void stop();

    [[nodiscard]] runtime::sessions& sessions() noexcept { return sessions_; }
    [[nodiscard]] call_directory& calls() noexcept { return calls_; }
    [[nodiscard]] runtime::attachments& attachments() noexcept { return attachments_; }
    [[nodiscard]] runtime::announcer& announcer() noexcept { return announcer_; }
    /// What has to leave before the process may stop.
    [[nodiscard]] runtime::departures& departures() noexcept { return context_.departures(); }

    /// Brings the gauges up to date and gives the metrics' text.
    [[nodiscard]] std::string metrics_text(std::size_t http_connections);

    [[nodiscard]] node_context& context() noexcept { return context_; }
    [[nodiscard]] runtime::settings const& settings() const noexcept { return context_.settings(); }
    [[nodiscard]] store::backend& store() noexcept { return context_.store(); }
    [[nodiscard]] observe::metrics& metrics() noexcept { return context_.metrics(); }
    [[nodiscard]] base::logger const& log() const noexcept { return context_.log(); }

private:
    node_context context_;
    session_table table_;
    runtime::sessions sessions_;
    runtime::attachments attachments_;
    call_directory calls_;
    runtime::announcer announcer_;
    recovery recovery_;

    struct periodic;
    std::unique_ptr<periodic> periodic_;
};

}
