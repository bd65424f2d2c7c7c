// What a client's notifications do to its session, whatever transport they came by.
#pragma once

#include "base/loop.hpp"
#include "protocol/message.hpp"

#include <functional>
#include <memory>

namespace belay::runtime {

class node;
class live_session;

/// Unknown notifications, and cancels of unknown or finished calls, are ignored as JSON-RPC asks. `done` is called on
/// the loop once what it asks for is on its way.
void handle_notification(
    node& node, std::shared_ptr<live_session> const& session, protocol::message const& notification, base::loop& loop,
    std::move_only_function<void()> done);

}
