#include "runtime/hello.hpp"

#include <fmt/format.h>

#include <utility>

namespace belay::runtime {

namespace {

std::expected<std::string, protocol::rpc_error>
read_part(protocol::message const& initialize, std::string_view name, std::size_t limit)
{
    auto text = protocol::object_text(initialize.params, name);
    if (text.size() > limit)
        return std::unexpected(protocol::rpc_error{
            protocol::code::invalid_params,
            fmt::format("params.{} has {} bytes; this server keeps at most {} of it", name, text.size(), limit),
            {}});
    return text;
}

}

std::expected<client_hello, protocol::rpc_error> read_hello(
    protocol::message const& initialize, protocol::revision revision, std::string principal, std::uint32_t features,
    settings const& settings)
{
    auto info = read_part(initialize, "clientInfo", settings.max_client_info);
    if (!info)
        return std::unexpected(std::move(info.error()));
    auto capabilities = read_part(initialize, "capabilities", settings.max_client_capabilities);
    if (!capabilities)
        return std::unexpected(std::move(capabilities.error()));
    return client_hello{std::move(principal), revision, std::move(*info), std::move(*capabilities), features};
}

}
