// Logging as a value: a level and a function. Rooms are given a logger; there is no global one.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string_view>

namespace belay::base {

enum class log_level { debug, info, warning, error, off };

[[nodiscard]] std::string_view to_string(log_level level) noexcept;
[[nodiscard]] std::optional<log_level> parse_log_level(std::string_view text) noexcept;

/// Copyable. The function is called from any thread and must not block for long.
class logger {
public:
    using function = std::function<void(log_level, std::string_view)>;

    logger() = default;
    logger(log_level level, function write) : level_(level), write_(std::move(write)) {}

    [[nodiscard]] bool enabled(log_level level) const noexcept { return write_ && level >= level_; }

    template<class... Args>
    void log(log_level level, fmt::format_string<Args...> text, Args&&... args) const
    {
        if (enabled(level))
            write_(level, fmt::format(text, std::forward<Args>(args)...));
    }
    template<class... Args>
    void debug(fmt::format_string<Args...> text, Args&&... args) const
    {
        log(log_level::debug, text, std::forward<Args>(args)...);
    }
    template<class... Args>
    void info(fmt::format_string<Args...> text, Args&&... args) const
    {
        log(log_level::info, text, std::forward<Args>(args)...);
    }
    template<class... Args>
    void warning(fmt::format_string<Args...> text, Args&&... args) const
    {
        log(log_level::warning, text, std::forward<Args>(args)...);
    }
    template<class... Args>
    void error(fmt::format_string<Args...> text, Args&&... args) const
    {
        log(log_level::error, text, std::forward<Args>(args)...);
    }

private:
    log_level level_ = log_level::off;
    function write_;
};

enum class log_format { text, json };

/// Writes one line per message to standard error, with the time. Lines of several threads do not mix.
[[nodiscard]] logger stderr_logger(log_level level, log_format format);

}
