#include "store/redis_slot.hpp"

namespace belay::store {

std::uint16_t redis_slot(std::string_view key) noexcept
{
    if (auto const open = key.find('{'); open != std::string_view::npos)
        if (auto const close = key.find('}', open + 1); close != std::string_view::npos && close > open + 1)
            key = key.substr(open + 1, close - open - 1);
    unsigned crc = 0; // CRC-16/XMODEM, as the specification of Redis Cluster has it
    for (char const c : key) {
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
        for (int i = 0; i < 8; ++i)
            crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
    }
    return static_cast<std::uint16_t>(crc & (redis_slot_count - 1));
}

}
