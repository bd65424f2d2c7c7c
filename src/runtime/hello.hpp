// What a client says of itself with `initialize`, held to what a session keeps of it.
#pragma once

#include "protocol/message.hpp"
#include "protocol/revision.hpp"
#include "runtime/settings.hpp"

#include <cstdint>
#include <expected>
#include <string>

namespace belay::runtime {

struct client_hello {
    std::string principal;
    protocol::revision revision = protocol::newest_revision;
    std::string info;         ///< JSON text
    std::string capabilities; ///< JSON text
    std::uint32_t features = ~std::uint32_t(0); ///< what it is told that there is; see service::features()
};

/// An error says which part is too large, and how large it may be.
[[nodiscard]] std::expected<client_hello, protocol::rpc_error> read_hello(
    protocol::message const& initialize, protocol::revision revision, std::string principal, std::uint32_t features,
    settings const& settings);

}
