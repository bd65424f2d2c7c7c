// The console page, which the program carries in itself: answers for `/` and for the files it asks for.
#pragma once

#include "http/router.hpp"

#include <span>
#include <string_view>

namespace belay::app {

/// A file of the page, as it is and as gzip makes it. Made from web/console by the build.
struct console_file {
    std::string_view path; ///< `/` is the page; all others have their content's hash in the name
    std::string_view type;
    std::string_view etag; ///< with its quotes
    std::string_view plain;
    std::string_view gzip;
};

/// Empty in a program that was built without the page.
[[nodiscard]] std::span<console_file const> console_files() noexcept;

void add_console(http::router& to);

}
