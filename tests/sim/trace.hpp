// What happens in a world, on standard error, for whoever looks for the cause of a broken promise: BELAY_TRACE=1.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace belay::sim {

template<class... Args>
void trace(fmt::format_string<Args...> text, Args&&... args)
{
    static bool const is_on = std::getenv("BELAY_TRACE") != nullptr;
    if (is_on)
        fmt::print(stderr, "{}\n", fmt::format(text, std::forward<Args>(args)...));
}

}
