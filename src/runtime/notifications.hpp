// What a client's notifications do to its session, whatever transport they came by.
#pragma once

#include "base/loop.hpp"
#include "protocol/message.hpp"
#include "store/ports.hpp"

#include <functional>
#include <memory>
#include <string>

namespace belay::runtime {

class node;
class live_session;

/// The id of the request that the notification cancels, as JSON text; empty: none.
[[nodiscard]] std::string cancelled_request(protocol::message const& notification);

/// Unknown notifications, and cancels of unknown or finished calls, are ignored as JSON-RPC asks. `done` is called on
/// the loop once what it asks for is kept, or is sure not to be: `errc::unavailable`.
void handle_notification(
    node& node, std::shared_ptr<live_session> const& session, protocol::message const& notification, base::loop& loop,
    store::completion<void> done);

}
