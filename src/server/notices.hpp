// What a tool says while it runs, as JSON-RPC notifications. Pure; from any thread.
#pragma once

#include <belay/call.hpp>
#include <belay/json.hpp>

#include <optional>
#include <string>

namespace belay::detail {

[[nodiscard]] std::string log_notice(log_level level, std::string const& logger, json::value const& data);
[[nodiscard]] std::string log_notice(log_level level, std::string const& logger, std::string const& text);

/// `token` is JSON text.
[[nodiscard]] std::string
progress_notice(std::string const& token, double value, std::optional<double> total, std::string const& message);

}
