#include "observe/access_log.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace belay::observe {

void access_log::write(access_line const& line) const
{
    // The path is the peer's; what is not ASCII need not be UTF-8, which JSON has to be.
    std::string path(line.path);
    for (char& c : path)
        if (c < 0x20 || c >= 0x7f)
            c = '?';
    std::vector<base::log_field> fields{
        {"method", line.method},
        {"path", std::string_view(path)},
        {"status", line.status},
        {"bytes_in", line.bytes_in},
        {"bytes_out", line.bytes_out},
        {"duration_us", std::chrono::duration_cast<std::chrono::microseconds>(line.duration).count()}};
    fields.insert(fields.end(), line.notes.begin(), line.notes.end());
    log_.log_fields(base::log_level::info, "request", fields);
}

}
