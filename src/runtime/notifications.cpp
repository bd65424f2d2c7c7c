#include "runtime/notifications.hpp"

#include "protocol/names.hpp"
#include "runtime/node.hpp"

namespace belay::runtime {

void handle_notification(
    node& node, std::shared_ptr<live_session> const& session, protocol::message const& notification, base::loop& loop,
    store::completion<void> done)
{
    if (notification.method == protocol::method::initialized)
        return node.sessions().change(
            session, [](store::session_record& record) { record.initialized = true; }, std::move(done));
    if (notification.method == protocol::method::cancelled) {
        auto const* id = notification.params ? notification.params->if_contains("requestId") : nullptr;
        if (auto const text = id ? protocol::id_text(*id) : std::string(); !text.empty())
            return node.calls().cancel(session, text, loop, std::move(done));
    }
    done({});
}

}
