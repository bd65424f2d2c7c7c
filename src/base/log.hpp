// Logging as a value: a level and a function. Rooms are given a logger; there is no global one.
#pragma once

#include <belay/log_field.hpp>
#include <belay/log_level.hpp>

#include <fmt/format.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace belay::base {

using belay::log_field;
using belay::log_level;

/// The least level that a log takes, or that it takes none.
class log_threshold {
public:
    constexpr log_threshold(log_level least) noexcept : least_(static_cast<int>(least)) {}
    [[nodiscard]] static constexpr log_threshold off() noexcept
    {
        log_threshold made(log_level::emergency);
        ++made.least_;
        return made;
    }
    [[nodiscard]] constexpr bool takes(log_level level) const noexcept { return static_cast<int>(level) >= least_; }
    friend bool operator==(log_threshold, log_threshold) = default;

private:
    int least_;
};

class log_output;

/// Copyable. The function is called from any thread and must not block.
class logger {
public:
    using function = std::function<void(log_level, std::string_view)>;
    using field_function = std::function<void(log_level, std::string_view, std::span<log_field const>)>;

    /// A threshold that can change: loggers made from this one, and their copies, follow it.
    using shared_level = std::shared_ptr<std::atomic<log_threshold>>;

    logger() = default;
    logger(shared_level level, field_function write) : level_(std::move(level)), write_(std::move(write)) {}
    logger(log_threshold level, field_function write)
        : logger(std::make_shared<std::atomic<log_threshold>>(level), std::move(write))
    {
    }
    /// For a function that knows no fields: they follow the message as ` name=value`.
    logger(log_threshold level, function write);

    /// The same logger with a field more on every line.
    [[nodiscard]] logger with(std::string name, std::string value) const;
    /// The same logger with another threshold.
    [[nodiscard]] logger at(log_threshold level) const;

    [[nodiscard]] bool enabled(log_level level) const noexcept
    {
        return write_ && level_->load(std::memory_order_relaxed).takes(level);
    }

    template<class... Args>
    void log(log_level level, fmt::format_string<Args...> text, Args&&... args) const
    {
        if (enabled(level))
            write(level, fmt::format(text, std::forward<Args>(args)...), {});
    }
    /// A message that is the same each time, with what differs in fields.
    void log_fields(log_level level, std::string_view message, std::initializer_list<log_field> fields) const
    {
        log_fields(level, message, std::span(fields.begin(), fields.size()));
    }
    void log_fields(log_level level, std::string_view message, std::span<log_field const> fields) const
    {
        if (enabled(level))
            write(level, message, fields);
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
    void write(log_level level, std::string_view message, std::span<log_field const> fields) const;

    shared_level level_; // null: write_ is, too
    field_function write_;
    std::vector<std::pair<std::string, std::string>> every_line_;
};

/// ` name=value` for each; a value with blanks or anything unusual is quoted and escaped.
void append_fields(std::string& out, std::span<log_field const> fields);

enum class log_format { text, json };

/// A line of the log, with the time and a line feed.
[[nodiscard]] std::string
log_line(log_format format, log_level level, std::string_view message, std::span<log_field const> fields);

/// Standard error as the place for log lines: at most `max_bytes` of them wait to be written.
[[nodiscard]] std::shared_ptr<log_output> stderr_output(log_format format, std::size_t max_bytes);

/// Writes one line per message.
[[nodiscard]] logger line_logger(logger::shared_level level, log_format format, std::shared_ptr<log_output> to);

}
