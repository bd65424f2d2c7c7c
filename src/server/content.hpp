// The inside of content.hpp: blocks for a revision, parts of resources.
#pragma once

#include "protocol/revision.hpp"

#include <belay/content.hpp>
#include <belay/resource.hpp>

#include <expected>
#include <string>
#include <vector>

namespace belay::inline v0::detail {

/// The block as a client of that revision knows it.
[[nodiscard]] json::object block_for(json::object block, protocol::revision revision);

/// The blocks of a sampling message, as clients of that revision know them; or why they cannot be sent to them.
[[nodiscard]] std::expected<std::vector<json::object>, std::string>
sampling_blocks(json::value const& content, protocol::revision revision);

[[nodiscard]] json::object annotations_object(belay::annotations const& notes);

[[nodiscard]] constexpr std::size_t base64_bytes(std::size_t bytes) noexcept
{
    return (bytes + 2) / 3 * 4;
}
void append_base64(std::string& out, std::string_view bytes);

/// One of the `contents` of a resource.
[[nodiscard]] json::object contents_part(
    std::string_view uri, resource_part const& part, std::string_view default_mime, protocol::revision revision);
/// The same as JSON text, without a copy of what may be large.
void append_contents_part(
    std::string& out, std::string_view uri, resource_part const& part, std::string_view default_mime,
    protocol::revision revision);

}
