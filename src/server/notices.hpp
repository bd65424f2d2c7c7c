// What a tool says while it runs, as JSON-RPC notifications. Pure; from any thread.
#pragma once

#include "runtime/live_session.hpp"

#include <belay/json.hpp>
#include <belay/log_level.hpp>

#include <optional>
#include <string>

namespace belay::inline v0::detail {

/// Whether the session's client wants to hear of this level.
[[nodiscard]] inline bool wants(store::session_record const& record, log_level level) noexcept
{
    return static_cast<int>(level) >= record.log_level;
}

[[nodiscard]] std::string log_notice(log_level level, std::string const& logger, json::value const& data);
[[nodiscard]] std::string log_notice(log_level level, std::string const& logger, std::string const& text);

/// `token` is JSON text.
[[nodiscard]] std::string
progress_notice(std::string const& token, double value, std::optional<double> total, std::string const& message);

}
