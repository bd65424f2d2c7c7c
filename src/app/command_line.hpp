// Where settings come from: belay.toml, the environment and flags, in rising order of weight.
#pragma once

#include "app/settings.hpp"

#include <belay/run.hpp>

#include <expected>
#include <map>
#include <string>
#include <vector>

namespace belay::app {

/// What a command line has said. File and environment are read each time anew.
struct settings_source {
    program of = program::any;
    std::string file; ///< empty: belay.toml in the working directory, if it is there
    std::map<std::string, std::vector<std::string>> flags; ///< by key
    bool is_stdio = false;

    /// What holds now, or what is wrong with it.
    [[nodiscard]] std::expected<settings, std::string> read() const;
};

struct command_line {
    settings_source source;
    app::settings settings;
};

/// What the command line says, with the author's own flags set, or the exit status of a program that has printed help,
/// a version or an error.
[[nodiscard]] std::expected<command_line, int> parse_command_line(
    std::string const& name, std::string const& version, int argc, char** argv, program of = program::any,
    flags const& own = {});

/// Serves until told to stop; the process is this server's from here on. Returns the exit status.
int serve(server const& server, command_line const& with);

}
