// The revisions of MCP that this program speaks, and what depends on them. A revision is a property of a
// request (through its session), never of the process.
#pragma once

#include <optional>
#include <string_view>

namespace belay::protocol {

/// Session era, oldest first.
enum class revision { r2024_11_05, r2025_03_26, r2025_06_18, r2025_11_25 };

constexpr revision newest_revision = revision::r2025_11_25;

[[nodiscard]] std::string_view to_string(revision revision) noexcept;
[[nodiscard]] std::optional<revision> parse_revision(std::string_view text) noexcept;
/// All of them, newest first, for error messages.
[[nodiscard]] std::string_view supported_revisions() noexcept;

/// What `initialize` answers: the client's revision if we speak it, else our newest.
[[nodiscard]] revision negotiate(std::string_view requested) noexcept;

/// The one revision in which a client may send several messages at once.
[[nodiscard]] constexpr bool takes_batches(revision revision) noexcept
{
    return revision == revision::r2025_03_26;
}

/// Older clients parse empty data as JSON and fail; they get their first id in a typed event.
[[nodiscard]] constexpr bool takes_empty_priming(revision revision) noexcept
{
    return revision >= revision::r2025_11_25;
}

/// Since then a wrong argument is an answer to the model (isError), before it was a protocol error.
[[nodiscard]] constexpr bool reports_bad_arguments_as_result(revision revision) noexcept
{
    return revision >= revision::r2025_11_25;
}

[[nodiscard]] constexpr bool has_progress_messages(revision revision) noexcept
{
    return revision >= revision::r2025_03_26;
}

[[nodiscard]] constexpr bool has_structured_content(revision revision) noexcept
{
    return revision >= revision::r2025_06_18;
}

}
