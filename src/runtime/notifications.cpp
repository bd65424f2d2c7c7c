#include "runtime/notifications.hpp"

#include "protocol/names.hpp"
#include "runtime/node.hpp"

namespace belay::runtime {

std::string cancelled_request(protocol::message const& notification)
{
    if (notification.kind != protocol::message_kind::notification || notification.method != protocol::method::cancelled)
        return {};
    auto const* id = notification.params ? notification.params->if_contains("requestId") : nullptr;
    return id ? protocol::id_text(*id) : std::string();
}

void handle_notification(
    node& node, std::shared_ptr<live_session> const& session, protocol::message const& notification, base::loop& loop,
    store::completion<void> done)
{
    if (notification.method == protocol::method::initialized)
        return node.sessions().change(
            session, [](store::session_record& record) { record.initialized = true; }, std::move(done));
    if (auto const id = cancelled_request(notification); !id.empty())
        return node.calls().cancel(session, id, loop, std::move(done));
    done({});
}

}
