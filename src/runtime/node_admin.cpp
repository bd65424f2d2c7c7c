// The node as its operators see it: sessions by the names that the log has for them.
#include "runtime/node.hpp"

#include <algorithm>

namespace belay::runtime {

std::vector<std::shared_ptr<live_session>> node::live_sessions()
{
    std::vector<std::shared_ptr<live_session>> all;
    for (auto& stripe : table_) {
        std::lock_guard const lock(stripe.mutex);
        for (auto const& [key, session] : stripe.sessions)
            all.push_back(session);
    }
    return all;
}

session_page node::list_sessions(std::string_view after, std::size_t limit, base::time_point now)
{
    auto wanted = live_sessions();
    session_page page;
    page.total = wanted.size();
    std::erase_if(wanted, [&](auto const& each) { return each->name <= after; });
    page.has_more = wanted.size() > limit;
    auto const shown = wanted.begin() + static_cast<std::ptrdiff_t>(std::min(limit, wanted.size()));
    std::ranges::partial_sort(wanted, shown, {}, &live_session::name);
    for (auto each = wanted.begin(); each != shown; ++each) {
        auto& session = **each;
        std::lock_guard const lock(session.mutex);
        auto const& machine = session.machine;
        page.sessions.push_back(
            {session.name, session.record->version, session.record->client_info, now - session.known_since,
             machine.is_held() ? base::duration::zero() : now - machine.last_activity(), machine.connection_count(),
             machine.call_count()});
    }
    return page;
}

void node::end_by_name(std::string_view name, base::loop& loop, store::completion<void> done)
{
    std::shared_ptr<live_session> found;
    for (auto& each : live_sessions()) {
        if (each->name != name)
            continue;
        if (found)
            return done(failure(errc::conflict));
        found = std::move(each);
    }
    if (!found)
        return done(failure(errc::not_found));
    end(found, loop, std::move(done));
}

}
