// A real Redis of a test's own: in a temporary directory, on a unix socket, and gone with the test.
#pragma once

#include "base/io_loop.hpp"
#include "store/redis_codec.hpp"
#include "store/redis_store.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace belay::store {

class redis_server {
public:
    /// Further lines of its configuration, each as an argument: "--maxmemory", "2mb".
    explicit redis_server(std::vector<std::string> arguments = {});
    redis_server(redis_server const&) = delete;
    redis_server& operator=(redis_server const&) = delete;
    ~redis_server();

    /// Starts it, and waits until it answers.
    void start();
    /// kill -9.
    void kill();
    void pause();
    void go_on();
    /// Runs a command on a connection of its own, and gives the reply in redis-cli's words. Waits for it.
    std::string ask(std::vector<std::string> const& words) const;

    [[nodiscard]] std::string const& socket() const noexcept { return socket_; }
    [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_; }
    [[nodiscard]] redis_place place() const;

private:
    std::filesystem::path folder_;
    std::string socket_;
    std::vector<std::string> arguments_;
    pid_t pid_ = -1;
};

/// One that all tests of a program use one after the other: it is emptied for each.
redis_server& shared_redis();

}
