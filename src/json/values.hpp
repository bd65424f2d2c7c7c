// Looking at JSON values and naming their places, the same for structs, for schemas and for text.
#pragma once

#include <belay/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace belay::inline v0::detail {

[[nodiscard]] inline std::string_view view(json::string_view text) noexcept
{
    return {text.data(), text.size()};
}

/// Any JSON number, exactly.
[[nodiscard]] inline std::optional<long double> number_of(json::value const& in) noexcept
{
    switch (in.kind()) {
    case json::kind::int64: return static_cast<long double>(in.get_int64());
    case json::kind::uint64: return static_cast<long double>(in.get_uint64());
    case json::kind::double_: return static_cast<long double>(in.get_double());
    default: return std::nullopt;
    }
}

/// A step of a JSON Pointer (RFC 6901), with its slash.
[[nodiscard]] inline std::string pointer_step(std::string_view member)
{
    std::string out = "/";
    for (char const c : member) {
        if (c == '~')
            out += "~0";
        else if (c == '/')
            out += "~1";
        else
            out += c;
    }
    return out;
}

}
