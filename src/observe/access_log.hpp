// The access log: one line per finished exchange, with the same fields in the same order each time.
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace belay::observe {

struct access_line {
    std::string_view method;
    std::string_view path; ///< as the peer wrote it
    unsigned status = 0;   ///< 0: nothing was answered
    std::size_t bytes_in = 0;
    std::size_t bytes_out = 0;
    base::duration duration{};
    std::span<base::log_field const> notes; ///< what is known of some exchanges only
};

class access_log {
public:
    /// Lines are written whatever the logger's least level is: who turns this log on wants all of it.
    explicit access_log(base::logger const& log) : log_(log.at(base::log_level::info)) {}

    /// From any thread.
    void write(access_line const& line) const;

private:
    base::logger log_;
};

}
