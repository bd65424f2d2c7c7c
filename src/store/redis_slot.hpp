// Which of a cluster's 16384 slots a key belongs to.
#pragma once

#include <cstdint>
#include <string_view>

namespace belay::store {

constexpr std::uint16_t redis_slot_count = 16384;

/// By what stands between the first { and the next }, if there is something, or else by the whole key.
[[nodiscard]] std::uint16_t redis_slot(std::string_view key) noexcept;

}
