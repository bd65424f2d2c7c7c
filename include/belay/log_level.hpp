// The eight levels of MCP's logging, which are those of syslog: for what tools tell their callers and for the
// program's own log.
#pragma once

#include <optional>
#include <string_view>

namespace belay::inline v0 {

/// Least severe first.
enum class log_level { debug, info, notice, warning, error, critical, alert, emergency };

/// The name of a level on the wire and in log lines.
[[nodiscard]] std::string_view to_string(log_level level) noexcept;
[[nodiscard]] std::optional<log_level> parse_log_level(std::string_view text) noexcept;

}
