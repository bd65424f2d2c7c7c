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
inline constexpr std::string_view resources_list = "resources/list";
inline constexpr std::string_view resources_templates_list = "resources/templates/list";
inline constexpr std::string_view resources_read = "resources/read";
inline constexpr std::string_view resources_subscribe = "resources/subscribe";
inline constexpr std::string_view resources_unsubscribe = "resources/unsubscribe";
inline constexpr std::string_view resources_updated = "notifications/resources/updated";
inline constexpr std::string_view resources_list_changed = "notifications/resources/list_changed";
inline constexpr std::string_view tools_list_changed = "notifications/tools/list_changed";
inline constexpr std::string_view prompts_list = "prompts/list";
inline constexpr std::string_view prompts_get = "prompts/get";
inline constexpr std::string_view prompts_list_changed = "notifications/prompts/list_changed";
inline constexpr std::string_view complete = "completion/complete";
inline constexpr std::string_view elicit = "elicitation/create";
inline constexpr std::string_view elicitation_complete = "notifications/elicitation/complete";
inline constexpr std::string_view sample = "sampling/createMessage";
inline constexpr std::string_view roots_list = "roots/list";
}

namespace meta {
inline constexpr std::string_view progress_token = "progressToken";
inline constexpr std::string_view idempotency_key = "belay/idempotencyKey";
}

/// What a server says under `experimental` of its capabilities.
namespace feature {
inline constexpr std::string_view idempotency = "belay/idempotency";
}

namespace header {
inline constexpr std::string_view session = "Mcp-Session-Id";
inline constexpr std::string_view version = "Mcp-Protocol-Version";
inline constexpr std::string_view last_event_id = "Last-Event-ID";
inline constexpr std::string_view traceparent = "traceparent";
inline constexpr std::string_view tracestate = "tracestate";
}

}
