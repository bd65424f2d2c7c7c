// Flags, environment and belay.toml, in rising order of weight: file, environment, flags.
#pragma once

#include "app/settings.hpp"

#include <belay/server.hpp>

#include <expected>
#include <string>

namespace CLI {
class App;
}

namespace belay::app {

/// The settings, or the exit status of a program that has printed help, a version or an error.
[[nodiscard]] std::expected<settings, int> parse_command_line(
    std::string const& name, std::string const& version, int argc, char** argv, program of = program::any);

/// Serves until told to stop. Returns the exit status.
int serve(server const& server, settings const& settings);

}
