// Pieces of memory, as connections hand them on.
#pragma once

#include <string>
#include <string_view>
#include <sys/uio.h>

namespace belay::http {

[[nodiscard]] inline iovec part_of(std::string_view text) noexcept
{
    return {const_cast<char*>(text.data()), text.size()};
}

/// Empties it and gives its memory back.
inline void release(std::string& buffer) noexcept
{
    std::string().swap(buffer);
}

}
