// What results and messages are made of: blocks of content, as JSON. Plain functions that build them.
#pragma once

#include <belay/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::inline v0 {

/// Bytes that are not text. Sent as base64.
struct blob {
    std::string bytes;
};

/// For whom a block is, and how much it matters (0 … 1).
struct annotations {
    bool for_user = false;
    bool for_assistant = false;
    std::optional<double> priority;
    std::string last_modified; ///< ISO 8601; sent to clients of 2025-06-18 and newer
};

/// A picture of a tool, prompt, resource or server. `src` is an https: or data: URI.
struct icon {
    std::string src;
    std::string mime;
    std::vector<std::string> sizes; ///< "48x48", "any"
    std::string theme{};            ///< "light", "dark"; empty: for both
};

enum class role { user, assistant };

namespace content {

[[nodiscard]] json::object text(std::string_view text);
[[nodiscard]] json::object image(blob const& data, std::string_view mime);
/// Clients of 2024-11-05 get a text that says what it was.
[[nodiscard]] json::object audio(blob const& data, std::string_view mime);
/// A resource that is part of the message.
[[nodiscard]] json::object embedded(std::string_view uri, std::string_view mime, std::string_view text);
[[nodiscard]] json::object embedded(std::string_view uri, std::string_view mime, blob const& data);
/// A resource that the client can read. Clients before 2025-06-18 get a text with the URI.
[[nodiscard]] json::object
link(std::string_view uri, std::string_view name, std::string_view mime = {}, std::string_view description = {});
/// The same block with annotations.
[[nodiscard]] json::object annotated(json::object block, annotations const& notes);

}

}
