// How this program was built.
#pragma once

#include <string>

namespace belay::app {

/// `belay 0.1.0, clang 19.1.7, Release`
[[nodiscard]] std::string build_info();

}
