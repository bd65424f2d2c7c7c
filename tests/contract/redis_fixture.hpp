// A real Redis of a test's own: in a temporary directory, on a unix socket, and gone with the test.
#pragma once

#include "base/io_loop.hpp"
#include "store/redis_codec.hpp"
#include "store/redis_store.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace belay::store {

class redis_server {
public:
    enum class role { store, sentinel };
    /// Further lines of its configuration, each as an argument: "--maxmemory", "2mb". A sentinel's are its file first.
    explicit redis_server(std::vector<std::string> arguments = {}, role what = role::store);
    redis_server(redis_server const&) = delete;
    redis_server& operator=(redis_server const&) = delete;
    ~redis_server();

    /// Starts it, and waits until it answers.
    void start();
    /// kill -9.
    void kill();
    void pause();
    void go_on();
    /// Runs a command on a connection of its own and gives the reply as text; of a list its parts, with blanks between.
    std::string ask(std::vector<std::string> const& words) const;

    [[nodiscard]] std::string const& socket() const noexcept { return socket_; }
    [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_; }
    [[nodiscard]] redis_place place() const;

private:
    std::filesystem::path folder_;
    std::string socket_;
    std::vector<std::string> arguments_;
    role what_;
    pid_t pid_ = -1;
};

/// A port of the loopback that nobody uses now.
[[nodiscard]] std::uint16_t free_port();

/// Three masters that share the slots.
class redis_cluster {
public:
    redis_cluster();

    [[nodiscard]] redis_place place() const;
    [[nodiscard]] redis_server& operator[](std::size_t index) { return *nodes_[index]; }
    [[nodiscard]] std::size_t owner_of(std::uint16_t slot) const;
    /// Moves a slot with its keys, as redis-cli does: in between it is neither here nor there.
    void begin_move(std::uint16_t slot, std::size_t to);
    void move_keys(std::uint16_t slot, std::size_t to);
    void end_move(std::uint16_t slot, std::size_t to);
    void empty();

private:
    std::vector<std::unique_ptr<redis_server>> nodes_;
    std::vector<std::uint16_t> ports_;
};

/// One that all tests of a program use one after the other: it is emptied for each.
redis_server& shared_redis();
redis_cluster& shared_redis_cluster();

}
