// What a client's notifications do to its session, whatever transport they came by.
#pragma once

#include "protocol/message.hpp"

#include <memory>

namespace belay::runtime {

class node;
class live_session;

/// Unknown notifications, and cancels of unknown or finished calls, are ignored as JSON-RPC asks.
void handle_notification(
    node& node, std::shared_ptr<live_session> const& session, protocol::message const& notification);

}
