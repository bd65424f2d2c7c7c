#include "base/last_handler.hpp"

#include <algorithm>
#include <cstring>

namespace belay::base {

void last_handler::begin(std::string_view kind, std::string_view name) noexcept
{
    std::array<char, word_count * sizeof(std::uint64_t)> text{};
    auto append = [&, used = std::size_t(0)](std::string_view part) mutable {
        auto const size = std::min(part.size(), text.size() - used);
        std::memcpy(text.data() + used, part.data(), size);
        used += size;
    };
    append(kind);
    if (!name.empty()) {
        append(" ");
        append(name);
    }
    auto const before = version_.load(std::memory_order_relaxed);
    version_.store(before + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < word_count; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + i * sizeof word, sizeof word);
        words_[i].store(word, std::memory_order_release);
    }
    is_running_.store(true, std::memory_order_release);
    version_.store(before + 2, std::memory_order_release);
}

last_handler::state last_handler::read() const
{
    for (;;) {
        auto const before = version_.load(std::memory_order_acquire);
        std::array<char, word_count * sizeof(std::uint64_t)> text{};
        for (std::size_t i = 0; i < word_count; ++i) {
            auto const word = words_[i].load(std::memory_order_acquire);
            std::memcpy(text.data() + i * sizeof word, &word, sizeof word);
        }
        bool const is_running = is_running_.load(std::memory_order_acquire);
        if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before)
            return {{text.data(), ::strnlen(text.data(), text.size())}, before / 2, is_running};
    }
}

}
