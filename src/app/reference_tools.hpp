// The tools of the reference server.
#pragma once

#include <belay/server.hpp>

namespace belay::app {

void add_reference_tools(server& server);

}
