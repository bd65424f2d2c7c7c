// Runs a server as a program: the settings of `belay serve`, from flags, environment and belay.toml. A program that has
// a life of its own beside the server uses host.hpp.
#pragma once

#include <belay/server.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace belay::inline v0 {

namespace detail {
struct access;
}

/// Flags of your own, beside those of the server: shown by --help, and refused as those are.
///
///     std::string folder = "notes";
///     return belay::run(server, argc, argv, belay::flags().add("--data DIR", "Where the notes are.", folder));
class flags {
public:
    /// `usage` is `--name WORD`, where the word says what a value is; the variable has the default, and gets the value
    /// if the flag is given. It must live until run() returns. Throws std::invalid_argument for another usage, and for
    /// a flag that was added before. One that the server has is refused by run(), with exit status 2.
    flags& add(std::string usage, std::string help, std::string& into);
    flags& add(std::string usage, std::string help, double& into);
    /// As in 500ms, 15s, 10m, 1h.
    flags& add(std::string usage, std::string help, std::chrono::milliseconds& into);
    /// The flag may be given more than once, or with several values; they replace the default.
    flags& add(std::string usage, std::string help, std::vector<std::string>& into);
    /// `usage` is `--name` alone: true if it is given.
    flags& add(std::string usage, std::string help, bool& into);
    template<std::integral T>
        requires(!std::same_as<T, bool> && sizeof(T) <= sizeof(std::int64_t))
    flags& add(std::string usage, std::string help, T& into)
    {
        using limits = std::numeric_limits<T>;
        constexpr auto most = static_cast<std::uint64_t>(limits::max()) > std::numeric_limits<std::int64_t>::max()
            ? std::numeric_limits<std::int64_t>::max()
            : static_cast<std::int64_t>(limits::max());
        return add_number(
            std::move(usage), std::move(help), std::to_string(into), static_cast<std::int64_t>(limits::min()), most,
            [&into](std::int64_t value) { into = static_cast<T>(value); });
    }

    /// Called once the command line is known to be right, and before the server starts: the place to open what the
    /// flags name, and to register tools that need it. What it throws ends the program with the text and exit status 2.
    flags& then(std::function<void()> function);

private:
    friend struct detail::access;
    struct flag {
        std::string name; // with its dashes
        std::string shape; // empty: it has no value
        std::string help;
        std::string preset;
        bool is_list = false;
        // Throws std::invalid_argument that says what would be right. Without a shape: called with nothing.
        std::function<void(std::vector<std::string> const&)> set;
    };

    flags& add_number(
        std::string usage, std::string help, std::string preset, std::int64_t least, std::int64_t most,
        std::function<void(std::int64_t)> set);
    flags& add_flag(std::string const& usage, flag made, bool has_value);

    std::vector<flag> all_;
    std::vector<std::function<void()>> then_;
};

/// Serves until SIGTERM or SIGINT; the process is the server's from here on. Returns the exit status: 0 after a clean
/// stop, 2 for bad settings.
int run(server const& server, int argc, char** argv, flags const& own = {});

}
