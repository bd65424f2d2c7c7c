// Every setting of the program in one table: key, flag, environment variable, default, meaning. The flags,
// belay.toml, `belay settings` and docs/settings.md are made from it.
#pragma once

#include "base/log.hpp"
#include "http/server.hpp"
#include "runtime/settings.hpp"
#include "transport/streamable_http.hpp"
#include "json/schema_check.hpp"

#include <expected>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay::app {

struct settings {
    bool is_stdio = false; ///< the flag --stdio alone; no key
    std::string endpoint = "/mcp";
    bool has_console = true;
    unsigned threads = 0; ///< 0: one per core
    unsigned worker_threads = 0; ///< 0: one per core
    std::size_t worker_queue = 256;
    std::string store = "memory";
    base::duration drain = std::chrono::seconds(20);
    base::duration stdio_grace = std::chrono::seconds(1);
    base::log_threshold log_level = base::log_level::info;
    base::log_format log_format = base::log_format::text;
    bool log_access = false;
    std::size_t log_queue_bytes = 1 << 20;
    base::duration stall_warning = std::chrono::seconds(1); ///< 0: off
    std::string admin_listen; ///< empty: off
    unsigned admin_unix_mode = 0600;
    std::size_t admin_max_page = 1000;
    bool reference_background = true; ///< of the reference server only
    bool reference_stderr = false;    ///< the same
    detail::schema_limits schemas;
    runtime::settings runtime;
    transport::streamable_http_settings transport;
    http::server_settings http;

    settings()
    {
        // Bounded, because what the kernel holds counts as read: a tool may run ahead by that much more.
        http.send_buffer_bytes = 256 << 10;
        runtime.limits.event_age = base::duration::zero(); // until complete(): the session's idle timeout
    }
};

/// Whose settings: those of any program that is a server, also those of the reference server, those of a host in
/// another program, or those of a host on somebody else's loop.
enum class program { any, reference, embedded, guest };

class settings_table {
public:
    /// The table edits the settings given, which must outlive it.
    explicit settings_table(settings& into, program of = program::any);

    struct entry {
        std::string key;    ///< as in belay.toml
        std::string flag;   ///< without the dashes
        std::string alias;  ///< a shorter flag; empty: none
        std::string shape;  ///< what a value looks like: "10m", "takeover|conflict"
        std::string help;
        std::string preset; ///< the default as text
        bool is_list = false;
        bool reloads = false; ///< it can change while the program runs
        std::function<std::expected<void, std::string>(std::string const&)> set;
        std::function<void()> clear; ///< of a list: a weightier source replaces it, and does not add to it
        /// The value as belay.toml has it; empty where nothing is set and the preset says what that means.
        std::function<std::string()> show;

        [[nodiscard]] std::string environment() const;
        /// In the place of what a list has. The error begins with the value.
        [[nodiscard]] std::expected<void, std::string> set_all(std::vector<std::string> const& values) const;
    };

    [[nodiscard]] std::vector<entry> const& entries() const noexcept { return entries_; }
    [[nodiscard]] entry const* find(std::string_view key) const noexcept;
    /// What is said of a key that find() does not know.
    [[nodiscard]] std::string explain_unknown(std::string_view key) const;

    /// The errors name the place and say what would be right.
    [[nodiscard]] std::expected<void, std::string> load_file(std::string const& path) const;
    [[nodiscard]] std::expected<void, std::string> load_environment() const;

    /// The reference, as Markdown.
    [[nodiscard]] std::string markdown() const;
    /// The settings as they are, in the form of a belay.toml.
    [[nodiscard]] std::string toml() const;

private:
    std::vector<entry> entries_;
};

/// The keys of what differs: what a running program takes over, and what needs a restart.
struct settings_changes {
    std::vector<std::string> reloaded;
    std::vector<std::string> not_reloaded;
};
[[nodiscard]] settings_changes compare(settings running, settings fresh, program of = program::any);

/// What follows from other settings, and what contradicts them. After everything is loaded.
[[nodiscard]] std::expected<void, std::string> complete(settings& settings);

/// The known word that is most like this one; empty if none is.
[[nodiscard]] std::string nearest(std::string_view word, std::span<std::string const> known);
[[nodiscard]] std::expected<base::duration, std::string> parse_duration(std::string_view text);
[[nodiscard]] std::expected<std::size_t, std::string> parse_bytes(std::string_view text);

}
