// A server on a node with a memory store and one open session, without a network.
#pragma once

#include "base/io_loop.hpp"
#include "runtime/node.hpp"
#include "server/access.hpp"
#include "server/core.hpp"
#include "store/memory_store.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace belay::inline v0 {

class OnNode : public testing::Test {
protected:
    base::manual_clock clock_;
    base::io_loop loop_{clock_};
    base::seeded_random random_{1};
    store::memory_store store_{{}, clock_, 1};
    observe::metrics metrics_;
    std::vector<std::string> logged_;
    runtime::node node_{
        {},
        store_,
        random_,
        metrics_,
        base::logger(
            base::log_level::warning, [this](base::log_level, std::string_view text) { logged_.emplace_back(text); })};
    server server_{"s", "1"};
    std::shared_ptr<runtime::session_use> use_;
    json::value request_;

    OnNode()
    {
        node_.sessions().open({}, [&](result<runtime::session_use> use) {
            use_ = std::make_shared<runtime::session_use>(std::move(*use));
        });
    }

    runtime::outcome handle(std::string const& text, protocol::revision revision = protocol::newest_revision)
    {
        request_ = json::parse(text);
        auto const message = protocol::read_message(request_);
        EXPECT_TRUE(message);
        return detail::access::core(server_)->find(*message).run({node_, use_->session(), revision, *message});
    }
};

}
