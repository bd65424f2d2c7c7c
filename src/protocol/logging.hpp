// The eight levels of MCP's logging, least severe first.
#pragma once

#include <optional>
#include <string_view>

namespace belay::protocol {

enum class level { debug, info, notice, warning, error, critical, alert, emergency };

[[nodiscard]] std::string_view to_string(level level) noexcept;
[[nodiscard]] std::optional<level> parse_level(std::string_view text) noexcept;

}
