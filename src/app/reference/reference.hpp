// The reference server: one of everything that a server of the session era can offer, and what the official
// conformance suite expects of a server under test.
#pragma once

#include "base/ids.hpp"

#include <belay/server.hpp>

namespace belay::app {

void add_reference(server& server);

/// Where the reference server shows a server without sessions.
inline constexpr char const* hello_path = "/hello/mcp";
/// A small server of its own for that path.
[[nodiscard]] server hello_server(std::string version);

/// What the reference server says unasked: subscribed resources change every 10 seconds, every 20 seconds there is a
/// log message, and a log level that was set is confirmed. Before the start. The server must outlive its core.
void add_reference_background(server& server, base::random_source& random);

/// `notifications/stderr` every 30 seconds, which is no notification of MCP: for hosts that show it. The same holds.
void add_reference_stderr(server& server);

}
