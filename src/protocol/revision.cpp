#include "protocol/revision.hpp"

namespace belay::protocol {

namespace {

constexpr std::array<std::string_view, revisions.size()> names{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

}

std::string_view to_string(revision revision) noexcept
{
    return names[static_cast<std::size_t>(revision)];
}

std::optional<revision> parse_revision(std::string_view text) noexcept
{
    for (auto const each : revisions)
        if (to_string(each) == text)
            return each;
    return std::nullopt;
}

std::string_view supported_revisions() noexcept
{
    return "2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05";
}

revision negotiate(std::string_view requested) noexcept
{
    return parse_revision(requested).value_or(newest_revision);
}

}
