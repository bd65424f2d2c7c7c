// The server that the transcripts talk to: one of everything, and nothing that depends on the machine it runs on.
#pragma once

#include <belay/server.hpp>

namespace belay::test {

[[nodiscard]] belay::server demonstration_server();

}
