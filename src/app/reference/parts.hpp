// The subjects of the reference server, and what they share.
#pragma once

#include <belay/server.hpp>

#include <cstdint>
#include <string>

namespace belay::app::reference {

void add_tools(server& server);
void add_content_tools(server& server);
void add_questions(server& server);
void add_resources(server& server);
void add_prompts(server& server);
/// Fixtures whose names, texts and schemas the official conformance suite prescribes.
void add_conformance(server& server);

/// An image/png.
[[nodiscard]] blob tiny_png();
/// An audio/wav.
[[nodiscard]] blob tiny_wav();

/// The numbered resources are 1 to this.
inline constexpr std::int64_t static_resources = 100;

[[nodiscard]] std::string static_uri(std::int64_t id);
/// Odd ones are text, even ones bytes.
[[nodiscard]] resource_part static_part(std::int64_t id);
/// The same as a block of content.
[[nodiscard]] json::object static_block(std::int64_t id);

/// `{"action":"accept","content":{…}}`
[[nodiscard]] std::string answer_text(answer<json::object> const& given);

}
