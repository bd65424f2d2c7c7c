// Runs a server as a program: the settings of `belay serve`, from flags, environment and belay.toml.
#pragma once

#include <belay/server.hpp>

namespace belay {

/// Serves until SIGTERM or SIGINT. Returns the exit status: 0 after a clean stop, 2 for bad settings.
int run(server const& server, int argc, char** argv);

}
