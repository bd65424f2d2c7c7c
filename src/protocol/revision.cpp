#include "protocol/revision.hpp"

#include <array>
#include <utility>

namespace belay::protocol {

namespace {

constexpr std::array<std::pair<revision, std::string_view>, 4> names{{
    {revision::r2024_11_05, "2024-11-05"},
    {revision::r2025_03_26, "2025-03-26"},
    {revision::r2025_06_18, "2025-06-18"},
    {revision::r2025_11_25, "2025-11-25"},
}};

}

std::string_view to_string(revision revision) noexcept
{
    for (auto const& [value, name] : names)
        if (value == revision)
            return name;
    return "?";
}

std::optional<revision> parse_revision(std::string_view text) noexcept
{
    for (auto const& [value, name] : names)
        if (name == text)
            return value;
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
