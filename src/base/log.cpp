#include "base/log.hpp"

#include "base/log_output.hpp"

#include <fmt/chrono.h>

#include <array>
#include <chrono>
#include <string>
#include <unistd.h>

namespace belay::inline v0 {

namespace {

constexpr std::array<std::string_view, 8> level_names{"debug", "info",     "notice", "warning",
                                                      "error", "critical", "alert",  "emergency"};

}

std::string_view to_string(log_level level) noexcept
{
    return level_names[static_cast<std::size_t>(level)];
}

std::optional<log_level> parse_log_level(std::string_view text) noexcept
{
    for (std::size_t i = 0; i < level_names.size(); ++i)
        if (level_names[i] == text)
            return static_cast<log_level>(i);
    return std::nullopt;
}

}

namespace belay::base {

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

void append_json_fields(std::string& out, std::span<log_field const> fields)
{
    for (auto const& [name, value] : fields) {
        out += ",\"";
        append_json_text(out, name);
        out += "\":";
        if (auto const* number = std::get_if<std::int64_t>(&value)) {
            out += fmt::format("{}", *number);
            continue;
        }
        out += '"';
        append_json_text(out, std::get<std::string_view>(value));
        out += '"';
    }
}

bool is_plain(std::string_view text) noexcept
{
    for (char const c : text)
        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '=')
            return false;
    return !text.empty();
}

}

void append_fields(std::string& out, std::span<log_field const> fields)
{
    for (auto const& [name, value] : fields) {
        out += ' ';
        out += name;
        out += '=';
        if (auto const* number = std::get_if<std::int64_t>(&value)) {
            out += fmt::format("{}", *number);
        } else if (auto const text = std::get<std::string_view>(value); is_plain(text)) {
            out += text;
        } else {
            out += '"';
            append_json_text(out, text);
            out += '"';
        }
    }
}

logger::logger(log_threshold level, function write) : level_(std::make_shared<std::atomic<log_threshold>>(level))
{
    if (write)
        write_ = [write = std::move(write)](log_level at, std::string_view message, std::span<log_field const> fields) {
            if (fields.empty())
                return write(at, message);
            std::string text(message);
            append_fields(text, fields);
            write(at, text);
        };
}

logger logger::with(std::string name, std::string value) const
{
    auto more = *this;
    more.every_line_.emplace_back(std::move(name), std::move(value));
    return more;
}

logger logger::at(log_threshold level) const
{
    auto other = *this;
    other.level_ = std::make_shared<std::atomic<log_threshold>>(level);
    return other;
}

void logger::write(log_level level, std::string_view message, std::span<log_field const> fields) const
{
    if (every_line_.empty())
        return write_(level, message, fields);
    std::vector<log_field> all;
    all.reserve(every_line_.size() + fields.size());
    for (auto const& [name, value] : every_line_)
        all.emplace_back(name, std::string_view(value));
    all.insert(all.end(), fields.begin(), fields.end());
    write_(level, message, all);
}

std::string log_line(log_format format, log_level level, std::string_view message, std::span<log_field const> fields)
{
    auto const now = std::chrono::system_clock::now();
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
    auto const stamp
        = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
    std::string line;
    if (format == log_format::json) {
        line = fmt::format(R"({{"time":"{}","level":"{}","message":")", stamp, to_string(level));
        append_json_text(line, message);
        line += '"';
        append_json_fields(line, fields);
        line += "}\n";
    } else {
        line = fmt::format("{} {:7} ", stamp, to_string(level));
        // A line feed in a text must not look like the next message.
        for (char const c : message)
            line += c == '\n' || c == '\r' ? ' ' : c;
        append_fields(line, fields);
        line += '\n';
    }
    return line;
}

std::shared_ptr<log_output> stderr_output(log_format format, std::size_t max_bytes)
{
    return std::make_shared<log_output>(STDERR_FILENO, max_bytes, [format](std::uint64_t missing) {
        log_field const lines[] = {{"lines", missing}};
        return log_line(format, log_level::warning, "log lines were dropped: their reader was behind or gone", lines);
    });
}

logger line_logger(logger::shared_level level, log_format format, std::shared_ptr<log_output> to)
{
    return {
        std::move(level),
        [format, to = std::move(to)](log_level at, std::string_view message, std::span<log_field const> fields) {
            to->write(log_line(format, at, message, fields));
        }};
}

}
