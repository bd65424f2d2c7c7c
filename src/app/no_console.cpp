// In place of the console page in a program that is built without it (BELAY_CONSOLE=OFF).
#include "app/console.hpp"

namespace belay::app {

std::span<console_file const> console_files() noexcept
{
    return {};
}

}
