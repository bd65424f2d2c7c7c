// The text of `--store redis://…`: where the store is and who asks. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace belay::store {

struct redis_address {
    std::string host; ///< a name or an address; empty with `path`
    std::uint16_t port = 6379;
    std::string path{}; ///< of a unix socket; empty: TCP
    friend bool operator==(redis_address const&, redis_address const&) = default;
};

/// "host:port", "[::1]:port" or the path: for messages.
[[nodiscard]] std::string to_string(redis_address const& address);

struct redis_place {
    enum class kind {
        single, ///< one server: its address is the first
        sentinel, ///< addresses of sentinels, which know where `service` is
        cluster, ///< addresses of some nodes of a cluster, which know the others
    };
    redis_place::kind what = kind::single;
    std::vector<redis_address> addresses;
    std::string service{}; ///< of sentinels
    std::string user{};
    std::string password{};
    int database = 0;
    bool uses_tls = false;
    friend bool operator==(redis_place const&, redis_place const&) = default;
};

/// Whether the text names a Redis store at all: one of the schemes below.
[[nodiscard]] bool is_redis_url(std::string_view text) noexcept;

/// redis://[user[:password]@]host[:port][/database], rediss:// (TLS), redis+unix:///path/of/socket[?db=n],
/// redis+sentinel://host[:port],…/service[/database], redis+cluster://host[:port],…; a scheme with an s at its end
/// (rediss+sentinel, rediss+cluster) with TLS. Parts may be percent-encoded. A password without a user is the default
/// user's. The error is a sentence for whoever wrote the text, without the password.
[[nodiscard]] std::variant<redis_place, std::string> parse_redis_url(std::string_view text);

}
