#include "protocol/logging.hpp"

#include <array>

namespace belay::protocol {

namespace {

constexpr std::array<std::string_view, 8> names{"debug", "info",     "notice", "warning",
                                                "error", "critical", "alert",  "emergency"};

}

std::string_view to_string(level level) noexcept
{
    return names[static_cast<std::size_t>(level)];
}

std::optional<level> parse_level(std::string_view text) noexcept
{
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == text)
            return static_cast<level>(i);
    return std::nullopt;
}

}
