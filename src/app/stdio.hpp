// A server over standard input and output: one message per line. Logs go to standard error.
#pragma once

#include "app/settings.hpp"

#include <belay/server.hpp>

namespace belay::app {

/// Serves until the input ends or a signal comes: SIGTERM, SIGINT, or SIGHUP, which means here that whoever started it
/// has gone. Returns the exit status.
int serve_stdio(server const& server, settings const& settings);

}
