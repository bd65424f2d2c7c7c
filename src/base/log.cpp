#include "base/log.hpp"

#include <fmt/chrono.h>

#include <chrono>
#include <string>
#include <unistd.h>

namespace belay::base {

std::string_view to_string(log_level level) noexcept
{
    switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    case log_level::off: return "off";
    }
    return "?";
}

std::optional<log_level> parse_log_level(std::string_view text) noexcept
{
    for (auto const level : {log_level::debug, log_level::info, log_level::warning, log_level::error, log_level::off})
        if (text == to_string(level))
            return level;
    return std::nullopt;
}

namespace {

void append_json_text(std::string& out, std::string_view text)
{
    for (char const c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            out += c;
        }
    }
}

}

logger stderr_logger(log_level level, log_format format)
{
    return {level, [format](log_level at, std::string_view text) {
                auto const now = std::chrono::system_clock::now();
                auto const ms
                    = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
                auto const stamp = fmt::format(
                    "{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
                std::string line;
                if (format == log_format::json) {
                    line = fmt::format(R"({{"time":"{}","level":"{}","message":")", stamp, to_string(at));
                    append_json_text(line, text);
                    line += "\"}\n";
                } else {
                    line = fmt::format("{} {:7} ", stamp, to_string(at));
                    // A line feed in a text must not look like the next message.
                    for (char const c : text)
                        line += c == '\n' || c == '\r' ? ' ' : c;
                    line += '\n';
                }
                // One write per line keeps lines of several threads whole.
                [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line.data(), line.size());
            }};
}

}
