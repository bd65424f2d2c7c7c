// The sessions of the store, as this node opens, uses, changes and ends them. No record is kept here for later
// requests: each asks the store, so that the end of a session holds on all nodes at once.
#pragma once

#include "base/mutex.hpp"
#include "runtime/context.hpp"
#include "runtime/hello.hpp"
#include "runtime/live_session.hpp"
#include "runtime/session_table.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace belay::runtime {

/// What an operator may know of a session: nothing with which it could be used.
struct session_summary {
    std::string name; ///< as in the log
    std::string version;
    std::string client_info; ///< JSON text, as the client gave it
    base::duration age{};
    base::duration idle{};   ///< zero while something holds it
    std::size_t connections = 0;
    std::size_t running_calls = 0;
    std::vector<std::string> nodes; ///< that run its calls
};

struct session_page {
    std::vector<session_summary> sessions; ///< by name
    std::size_t total = 0;                 ///< of the store
    bool has_more = false;
};

class sessions {
public:
    sessions(node_context& context, session_table& table) : context_(context), table_(table) {}
    ~sessions();

    /// The session in use, or `errc::not_found` for unknown, expired and foreign ones alike.
    void use(std::string_view principal, std::string_view id, store::completion<session_use> done);
    void open(client_hello hello, store::completion<session_use> done);
    /// A new hello on a live session: later requests speak by it, open streams go on as they are.
    void reopen(session_use const& use, client_hello hello, store::completion<void> done);
    void change(
        std::shared_ptr<live_session> session, std::function<void(store::session_record&)> edit,
        store::completion<void> done);
    /// `errc::too_many_subscriptions` at the limit of the settings.
    void subscribe(live_session const& session, std::string uri, store::completion<void> done);
    void unsubscribe(live_session const& session, std::string_view uri, store::completion<void> done);
    /// Gives every open stream its final error, lets connections write it, then removes all keys. Done when nobody
    /// serves it any more, and this node's connections have had some time; the keys may go later. After
    /// `errc::unavailable` it goes on by itself, because it may have begun.
    void end(store::session_key const& key, base::loop& loop, store::completion<void> done);

    /// The first sessions whose name comes after that one.
    void list(std::string_view after, std::size_t limit, store::completion<session_page> done);
    /// Ends the session with that name. `errc::not_found` if there is none, `errc::conflict` if there are several.
    void end_by_name(std::string_view name, base::loop& loop, store::completion<void> done);

    /// One pass of the reaper: what is idle for too long goes, what is too old ends.
    void reap();
    /// Tells the store which sessions are in use in ways that it does not see, and forgets those that are not.
    void look_round();

private:
    class ending;

    void change_from(
        store::record_ptr current, std::shared_ptr<live_session> session,
        std::function<void(store::session_record&)> edit, unsigned tries, store::completion<void> done);

    node_context& context_;
    session_table& table_;
    base::mutex endings_mutex_;
    std::set<std::shared_ptr<ending>> endings_ BELAY_GUARDED_BY(endings_mutex_); // each on the loop that asked for it
};

}
