// What the service manager is told: sd_notify(3) without its library.
#pragma once

#include <string_view>

namespace belay::app {

/// Sends a state such as "READY=1" to the service manager. Does nothing where none has asked (NOTIFY_SOCKET).
void notify_service_manager(std::string_view state) noexcept;

}
