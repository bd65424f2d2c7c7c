// Who may talk to this server from where: Host and Origin checks against DNS rebinding and foreign pages,
// and the CORS fields for the pages that may. Pure functions of a request and the settings; any thread.
#pragma once

#include "http/exchange.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::http {

struct policy_settings {
    /// Also allow the loopback names (localhost, *.localhost, 127.0.0.1, [::1]) on any port as Host. Right where
    /// only this machine's programs can connect.
    bool loopback = true;
    /// Also allow the http and https origins of those names. Right where this machine's browsers can connect.
    bool loopback_origin = true;
    /// Further Host names: `name` (any port), `name:port`, or `*` for any.
    std::vector<std::string> allow_host;
    /// Further origins: `https://name[:port]`, `null`, or `*` for any. Compared whole.
    std::vector<std::string> allow_origin;
    /// False: for programs only. What is said to a page that is refused then names no flag.
    bool takes_pages = true;
    /// Paths that answer whatever Host and Origin say: health checks come by address.
    std::vector<std::string> exempt_paths;

    std::string cors_methods = "GET, HEAD, POST, OPTIONS";
    std::string cors_headers = "Content-Type, Accept";
    std::string cors_expose;                 ///< response fields a page may read; empty: none
    std::chrono::seconds cors_max_age{7200}; // the longest Chromium honours
};

class policy {
public:
    explicit policy(policy_settings settings);

    enum class verdict {
        allowed,      ///< no Origin, or none that needs an answer
        allowed_page, ///< an allowed Origin is present: the answer carries append_cors()
        bad_host,
        bad_origin,
    };
    [[nodiscard]] verdict judge(request const& request) const;
    /// The same, remembering the Host that was allowed last: the next request mostly has it too.
    [[nodiscard]] verdict judge(request const& request, std::optional<std::string>& last_host) const;
    /// The body of the 403 for a refused request: which field, and which flag would allow it.
    [[nodiscard]] std::string explain(verdict verdict, request const& request) const;

    [[nodiscard]] static bool is_preflight(request const& request) noexcept;
    /// Field lines for an answer to an allowed page. Nothing for a request without Origin.
    void append_cors(std::string& lines, request const& request) const;
    /// Further field lines for the 204 to a preflight.
    [[nodiscard]] std::string_view preflight_lines() const noexcept { return preflight_lines_; }

    [[nodiscard]] policy_settings const& settings() const noexcept { return settings_; }

private:
    struct host_rule {
        std::string name; // lower case
        std::string port; // empty: any
    };

    [[nodiscard]] bool allows_host(std::string_view host) const noexcept;
    [[nodiscard]] bool allows_origin(std::string_view origin, std::string_view host) const noexcept;

    policy_settings settings_;
    std::vector<host_rule> hosts_;
    bool any_host_ = false;
    bool any_origin_ = false;
    std::string expose_line_;
    std::string preflight_lines_;
};

/// `host[:port]` in parts, brackets kept. Nothing if it is not that.
struct host_and_port {
    std::string_view host;
    std::string_view port; // empty if absent
};
[[nodiscard]] std::optional<host_and_port> parse_authority(std::string_view text) noexcept;

/// Whether the name means this machine and nothing else.
[[nodiscard]] bool is_loopback_name(std::string_view host) noexcept;

/// At most 60 characters of a peer's text, with everything but visible ASCII as '?': fit to be shown.
[[nodiscard]] std::string printable(std::string_view text);

}
