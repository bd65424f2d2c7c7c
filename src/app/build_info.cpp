#include "app/build_info.hpp"

#include <fmt/format.h>

namespace belay::app {

std::string build_info()
{
#if defined(__clang__)
    auto const compiler = fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
    auto const compiler = fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
    return fmt::format("belay {}, {}, {}", BELAY_VERSION, compiler, BELAY_BUILD_TYPE);
}

}
