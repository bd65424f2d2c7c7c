#include "app/systemd.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace belay::app {

namespace {

class ServiceManager : public ::testing::Test {
protected:
    ServiceManager() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0))
    {
        timeval const patience{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    ~ServiceManager() override
    {
        ::unsetenv("NOTIFY_SOCKET");
        ::close(fd_);
    }
    /// Without a file, so that nothing is left behind.
    void listen(std::string const& name)
    {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        name.copy(at.sun_path + 1, sizeof at.sun_path - 2);
        auto const size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        ASSERT_EQ(::bind(fd_, reinterpret_cast<sockaddr const*>(&at), size), 0);
        ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
    }
    std::string received(int flags = 0)
    {
        char buffer[100];
        auto const got = ::recv(fd_, buffer, sizeof buffer, flags);
        return got < 0 ? "" : std::string(buffer, static_cast<std::size_t>(got));
    }

private:
    int fd_;
};

}

TEST_F(ServiceManager, IsToldWhatItAskedFor)
{
    listen("belay_systemd_test_" + std::to_string(::getpid()));
    notify_service_manager("READY=1");
    EXPECT_EQ(received(), "READY=1");
    notify_service_manager("STOPPING=1");
    EXPECT_EQ(received(), "STOPPING=1");
}

TEST_F(ServiceManager, IsToldNothingIfItDidNotAsk)
{
    listen("belay_systemd_test_" + std::to_string(::getpid()));
    for (auto const* const other : {"", "relative", "@", "/nowhere/at/all"}) {
        ::setenv("NOTIFY_SOCKET", other, 1);
        notify_service_manager("READY=1");
    }
    ::unsetenv("NOTIFY_SOCKET");
    notify_service_manager("READY=1");
    EXPECT_EQ(received(MSG_DONTWAIT), "");
}

}
