#include "app/systemd.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace belay::app {

void notify_service_manager(std::string_view state) noexcept
{
    auto const* const path = std::getenv("NOTIFY_SOCKET");
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    auto const length = path ? std::strlen(path) : 0;
    if (length < 2 || length >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    std::memcpy(to.sun_path, path, length);
    if (path[0] == '@') // a socket without a file
        to.sun_path[0] = '\0';
    int const fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    // A manager that does not listen costs its unit the notice, not us the service.
    [[maybe_unused]] auto const sent = ::sendto(
        fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr const*>(&to),
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
    ::close(fd);
}

}
