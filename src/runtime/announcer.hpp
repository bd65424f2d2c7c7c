// Messages that belong to no call: they go to the standalone streams of sessions. From any thread; the work is done on
// the node's own loop.
#pragma once

#include "runtime/context.hpp"
#include "runtime/live_session.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace belay::runtime {

class announcer {
public:
    explicit announcer(node_context& context) : context_(context) {}

    /// On the node's own loop.
    void stop();

    void notify(std::shared_ptr<live_session> const& session, std::string message);
    /// For every initialized session, wherever it is served, that the filter takes.
    void broadcast(std::string message, std::function<bool(store::session_record const&)> filter);
    /// For the sessions that are subscribed to the URI.
    void notify_subscribers(std::string uri, std::string message);
    /// The URIs that sessions are subscribed to, each once.
    [[nodiscard]] std::vector<std::string> subscriptions() const { return context_.store().subscribed_uris(); }

private:
    // What waits to be kept in one stream: one append at a time, so that a repeated one can be told by its number.
    struct outbox {
        store::stream_key stream;
        std::deque<store::bytes> waiting;
        std::size_t appending = 0; // of those at the front
        std::uint64_t batch = 0;
        std::size_t dropped = 0;
        std::unique_ptr<base::timer> again; // the store could not say whether it has them
    };
    struct stream_hash {
        std::size_t operator()(store::stream_key const& key) const noexcept
        {
            return store::session_key_hash()(key.session) ^ static_cast<std::size_t>(key.stream);
        }
    };

    /// What waits to be told to many, and how far that is.
    struct telling {
        store::bytes message;
        std::function<bool(store::session_record const&)> filter{}; // of all sessions, if it is not about a URI
        std::string after{};                                        // the last of those
        std::string uri{};
        std::optional<store::session_key> after_subscriber{};
    };

    void append(store::stream_key const& stream, store::bytes message);
    void append_next(std::shared_ptr<outbox> const& from);
    void send(std::shared_ptr<outbox> const& from);
    void tell(telling what);
    void tell_next();
    /// Asks for the next of those that are to be told.
    void ask();
    void tell_sessions(store::session_list const& some);
    void tell_subscribers(std::vector<store::subscriber> const& some);
    /// The first telling has come so far, or could not.
    void told(std::error_code error, bool has_more);

    node_context& context_;
    // On the node's own loop:
    std::unordered_map<store::stream_key, std::shared_ptr<outbox>, stream_hash> outboxes_; // those with something in
    std::uint64_t last_batch_ = 0;
    // One at a time, so that sessions hear of things in the order in which they were said, also if the store could not
    // be asked for a while.
    std::deque<telling> tellings_;
    bool is_telling_ = false; // the first of them
    std::size_t dropped_tellings_ = 0;
    std::unique_ptr<base::timer> ask_again_;
};

}
