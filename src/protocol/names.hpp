// The words of the wire, spelled here and nowhere else.
#pragma once

#include <string_view>

namespace belay::protocol {

namespace method {
inline constexpr std::string_view initialize = "initialize";
inline constexpr std::string_view ping = "ping";
inline constexpr std::string_view tools_list = "tools/list";
inline constexpr std::string_view tools_call = "tools/call";
inline constexpr std::string_view set_level = "logging/setLevel";
inline constexpr std::string_view initialized = "notifications/initialized";
inline constexpr std::string_view cancelled = "notifications/cancelled";
inline constexpr std::string_view progress = "notifications/progress";
inline constexpr std::string_view message = "notifications/message";
}

namespace meta {
inline constexpr std::string_view progress_token = "progressToken";
inline constexpr std::string_view idempotency_key = "belay/idempotencyKey";
}

namespace header {
inline constexpr std::string_view session = "Mcp-Session-Id";
inline constexpr std::string_view version = "Mcp-Protocol-Version";
inline constexpr std::string_view last_event_id = "Last-Event-ID";
inline constexpr std::string_view traceparent = "traceparent";
inline constexpr std::string_view tracestate = "tracestate";
}

}
