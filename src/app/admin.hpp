// The operators' endpoint, on a listener of its own: sessions listed and ended by the names that the log has
// for them. It shows nothing with which a session could be used.
#pragma once

#include "http/exchange.hpp"
#include "runtime/node.hpp"

#include <memory>
#include <string_view>

namespace belay::app {

class admin final : public http::handler {
public:
    /// `max_page` is the most sessions listed at a time.
    admin(runtime::node& node, std::size_t max_page) : node_(node), max_page_(max_page) {}

    void handle(std::shared_ptr<http::exchange> exchange) override;

private:
    void list(std::shared_ptr<http::exchange> const& exchange) const;
    void end(std::shared_ptr<http::exchange> exchange, std::string_view name) const;

    runtime::node& node_;
    std::size_t max_page_;
};

}
