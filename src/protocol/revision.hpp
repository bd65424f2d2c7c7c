// The revisions of MCP that this program speaks, and what depends on them. A revision is a property of a
// request (through its session), never of the process. Whoever wants to know what a revision has asks for the
// fact by its name; revisions are compared here and nowhere else (tools/check_text.py revisions).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace belay::protocol {

/// Session era, oldest first.
enum class revision { r2024_11_05, r2025_03_26, r2025_06_18, r2025_11_25 };

// Newer is not more: a revision also takes things away. Ask for a fact.
bool operator<(revision, revision) = delete;
bool operator<=(revision, revision) = delete;
bool operator>(revision, revision) = delete;
bool operator>=(revision, revision) = delete;

/// All of them, oldest first: a revision is the index of its own place.
inline constexpr std::array revisions{
    revision::r2024_11_05, revision::r2025_03_26, revision::r2025_06_18, revision::r2025_11_25};

inline constexpr revision newest_revision = revisions.back();
/// What a request speaks that has neither a version field nor a session, as the specification says.
inline constexpr revision assumed_revision = revision::r2025_03_26;

[[nodiscard]] std::string_view to_string(revision revision) noexcept;
[[nodiscard]] std::optional<revision> parse_revision(std::string_view text) noexcept;
/// All of them, newest first, for error messages.
[[nodiscard]] std::string_view supported_revisions() noexcept;

/// What `initialize` answers: the client's revision if we speak it, else our newest.
[[nodiscard]] revision negotiate(std::string_view requested) noexcept;

/// What there is in a revision.
struct revision_facts {
    // The wire.
    bool may_batch = false;             ///< a client may send several messages at once
    bool takes_empty_priming = false; ///< others parse empty data as JSON and fail: their first id is in a typed event
    bool has_progress_messages = false; ///< a progress notification has room for a text

    // What a server says of itself and of what it offers.
    bool has_completions_capability = false;
    bool has_titles = false;
    bool has_server_details = false; ///< a server's description and its web site
    bool has_icons = false;
    bool has_meta = false; ///< `_meta` on what is listed, on content and on contents
    bool has_tool_annotations = false;
    bool has_modification_times = false; ///< `lastModified` among annotations

    // Results.
    bool has_audio = false;
    bool has_resource_links = false;
    bool has_structured_content = false; ///< also a tool's output schema
    bool has_bad_arguments_as_result = false; ///< for the model to read; elsewhere they are a protocol error

    // Questions to the client.
    bool has_elicitation = false;
    bool has_url_elicitation = false; ///< a question that is a page to open; and so every question says its mode
    bool has_rich_forms = false; ///< any default, titles of values with `oneOf`, choosing several
    bool has_several_blocks = false; ///< a sampling message can hold more than one block
    bool has_sampling_tools = false; ///< also blocks of their use and their result
    bool has_context_capability = false; ///< a client says whether sampling may include context; elsewhere all may
};

/// By revision. Each is the one before it and what it changed.
inline constexpr auto facts_by_revision = [] {
    revision_facts const r2024_11_05;

    auto r2025_03_26 = r2024_11_05;
    r2025_03_26.may_batch = true;
    r2025_03_26.has_progress_messages = true;
    r2025_03_26.has_completions_capability = true;
    r2025_03_26.has_tool_annotations = true;
    r2025_03_26.has_audio = true;

    auto r2025_06_18 = r2025_03_26;
    r2025_06_18.may_batch = false;
    r2025_06_18.has_titles = true;
    r2025_06_18.has_meta = true;
    r2025_06_18.has_modification_times = true;
    r2025_06_18.has_resource_links = true;
    r2025_06_18.has_structured_content = true;
    r2025_06_18.has_elicitation = true;

    auto r2025_11_25 = r2025_06_18;
    r2025_11_25.takes_empty_priming = true;
    r2025_11_25.has_server_details = true;
    r2025_11_25.has_icons = true;
    r2025_11_25.has_bad_arguments_as_result = true;
    r2025_11_25.has_url_elicitation = true;
    r2025_11_25.has_rich_forms = true;
    r2025_11_25.has_several_blocks = true;
    r2025_11_25.has_sampling_tools = true;
    r2025_11_25.has_context_capability = true;

    return std::array{r2024_11_05, r2025_03_26, r2025_06_18, r2025_11_25};
}();
static_assert(facts_by_revision.size() == revisions.size());

[[nodiscard]] constexpr revision_facts const& facts_of(revision revision) noexcept
{
    return facts_by_revision[static_cast<std::size_t>(revision)];
}

/// The oldest revision that has it; nothing if none has. For sentences that say what a client would have to speak.
[[nodiscard]] constexpr std::optional<revision> first_with(bool revision_facts::* fact) noexcept
{
    for (auto const each : revisions)
        if (facts_of(each).*fact)
            return each;
    return std::nullopt;
}

}
