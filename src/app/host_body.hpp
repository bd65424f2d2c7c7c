// What is behind a belay::host: the settings, the log, and the http_host from the start on. Shared, because on somebody
// else's context the frames of tools may be there for longer than the host.
#pragma once

#include "app/http_host.hpp"
#include "app/settings.hpp"
#include "base/ids.hpp"
#include "base/log.hpp"

#include <belay/host.hpp>

#include <memory>
#include <optional>

namespace belay::app {

class host_body : public std::enable_shared_from_this<host_body> {
public:
    /// The settings are complete. `given` null: threads of its own.
    host_body(
        std::shared_ptr<detail::server_core> core, settings settings, program of, host_log log,
        boost::asio::io_context* given = nullptr);

    void start();
    void stop();
    void stop_now();
    void wait();
    /// For the destructor of the host.
    void end();
    /// Takes over what can change while it serves.
    settings_changes take_over(settings fresh);

    /// Throws std::logic_error before the start.
    [[nodiscard]] http_host& serving() const;
    [[nodiscard]] bool is_held_up() const;
    [[nodiscard]] base::logger log() const { return log_.with("node", settings_.runtime.node_name); }
    [[nodiscard]] base::clock const& clock() const noexcept { return clock_; }
    /// What is set, as it was at the start or last taken over.
    [[nodiscard]] settings const& in_force() const noexcept { return settings_; }

private:
    std::shared_ptr<detail::server_core> core_;
    settings settings_;
    program of_;
    boost::asio::io_context* given_;
    std::function<std::uint64_t()> dropped_;
    base::logger::shared_level level_;
    std::shared_ptr<std::atomic<bool>> is_log_open_ = std::make_shared<std::atomic<bool>>(true);
    base::logger log_;
    base::machine_clock clock_;
    base::system_random random_;
    std::optional<http_host> serving_;
};

}
