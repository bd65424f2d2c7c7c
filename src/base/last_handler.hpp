// Which handler a loop has started last, so that a loop that is held up can be asked from another thread by whom.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace belay::base {

class last_handler {
public:
    struct state {
        std::string name;         ///< empty: none yet
        std::uint64_t number = 0; ///< how many have been started
        bool is_running = false;  ///< it has not returned yet
    };

    /// On the loop. Longer names are cut.
    void begin(std::string_view kind, std::string_view name) noexcept;
    void end() noexcept { is_running_.store(false, std::memory_order_release); }
    /// From any thread.
    [[nodiscard]] state read() const;

private:
    static constexpr std::size_t word_count = 8;

    // Odd while the words are being written: whoever reads them sees that, and tries again.
    std::atomic<std::uint64_t> version_{0};
    std::array<std::atomic<std::uint64_t>, word_count> words_{};
    std::atomic<bool> is_running_{false};
};

/// While a handler runs: its name, on the loop of this thread. Does nothing on a thread that is no loop's.
class handler_scope {
public:
    explicit handler_scope(std::string_view kind, std::string_view name = {}) noexcept : on_(of_this_thread)
    {
        if (on_)
            on_->begin(kind, name);
    }
    ~handler_scope()
    {
        if (on_)
            on_->end();
    }
    handler_scope(handler_scope const&) = delete;
    handler_scope& operator=(handler_scope const&) = delete;

    /// Set by a loop for the thread that it runs on.
    static inline thread_local last_handler* of_this_thread = nullptr;

private:
    last_handler* on_;
};

}
