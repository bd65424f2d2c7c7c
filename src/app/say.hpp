// What a program says before it gives up, where there is no log yet.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace belay::app {

/// On standard error. Nothing comes of it if nobody hears it.
inline void say_error(std::string_view who, std::string_view what) noexcept
{
    auto const line = fmt::format("{}: {}\n", who, what);
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}
