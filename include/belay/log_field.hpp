// A name and a value beside a log message.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <variant>

namespace belay::inline v0 {

/// Kept apart from the message so that machines can read it. The texts need to live only during the call.
struct log_field {
    std::string_view name;
    std::variant<std::string_view, std::int64_t> value;

    log_field(std::string_view name, std::string_view text) : name(name), value(text) {}
    log_field(std::string_view name, std::integral auto number) : name(name), value(static_cast<std::int64_t>(number))
    {
    }
};

}
