// What a memory_store is made of. Private to its two source files.
#pragma once

#include "store/memory_store.hpp"

#include <boost/container/small_vector.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <deque>
#include <list>

namespace belay::store {

struct memory_store::watcher {
    std::function<void()> wake;
    interest kind = interest::growth;
    std::atomic<bool> is_active{true};
};

struct memory_store::stream {
    stream_meta meta;
    std::string owner;
    store::fence fence = 0;
    std::uint64_t order = 0; // creation order within the session
    stream_top top;
    bool finished = false;
    std::size_t own_charge = 0; // of the stream itself
    std::size_t charge = 0; // of all kept events
    std::size_t reserved = 0; // for the answers that are to come, and what its call keeps until then
    struct request {
        std::size_t reserve;           // for its answer
        std::uint64_t answered_at = 0; // the answer's sequence; 0: there is none yet
    };
    boost::container::small_vector<request, 1> requests; // one per line of the label
    std::deque<stored_event> events; // consecutive sequences
    std::vector<stored_event> pinned; // undelivered responses that retention has passed by; older than all events
    std::deque<base::time_point> appended_at; // of `events`, standalone stream only
    reader_mark reader;
    std::uint64_t lost_to = 0; // the highest sequence counted as trimmed undelivered
    std::vector<std::shared_ptr<watcher>> watchers;
    std::multimap<base::time_point, stream_key>::iterator aging;
    bool is_aging = false;

    [[nodiscard]] std::uint64_t first_kept() const noexcept
    {
        if (!pinned.empty())
            return pinned.front().sequence;
        return events.empty() ? top.sequence + 1 : events.front().sequence;
    }
    [[nodiscard]] stream_state state() const noexcept { return {top, first_kept(), finished, reader}; }
    [[nodiscard]] bool is_pinned(stored_event const& event) const noexcept
    {
        return event.kind != event_kind::ordinary && event.sequence > reader.delivered;
    }
    [[nodiscard]] bool is_droppable() const noexcept
    {
        return meta.kind == stream_kind::request && finished && !reader.attached && reader.delivered >= top.sequence;
    }
    /// The places of the line in the label.
    template<class F>
    void for_each_place(std::string_view line, F const& visit) const
    {
        std::size_t place = 0;
        for (std::size_t at = 0; at <= meta.label.size() && place < requests.size(); ++place) {
            auto const end = std::min(meta.label.find('\n', at), meta.label.size());
            if (std::string_view(meta.label).substr(at, end - at) == line)
                visit(place);
            at = end + 1;
        }
    }
    [[nodiscard]] bool has_unanswered(std::string_view line) const
    {
        bool has_one = false;
        for_each_place(line, [&](std::size_t place) { has_one = has_one || requests[place].answered_at == 0; });
        return has_one;
    }
    void collect(interest kind, wakes& into) const
    {
        for (auto const& each : watchers)
            if (each->kind == kind)
                into.push_back(each);
    }
};

struct memory_store::session {
    struct once_entry {
        std::uint64_t fingerprint;
        stream_id stream;    // of the first call with the key
        std::uint64_t order; // its creation order
        bool is_spent;       // the stream is no longer kept
    };

    std::shared_ptr<session_record const> record;
    std::shared_ptr<std::atomic<std::size_t>> user_bytes; // of all sessions of the principal
    std::size_t record_charge = 0;
    boost::unordered_flat_set<std::string> subscriptions;
    boost::unordered_flat_map<std::string, once_entry> once;
    boost::unordered_flat_map<stream_id, std::unique_ptr<stream>> streams;
    std::size_t charge = 0;
    std::uint64_t next_order = 0;
    base::time_point last_activity{};
    bool is_idle = false;
    std::list<session_key>::iterator idle_place;
};

struct memory_store::stripe {
    mutable std::mutex mutex;
    boost::unordered_flat_map<session_key, std::unique_ptr<session>, session_key_hash> sessions;
    std::list<session_key> idle; // longest idle first
    std::multimap<base::time_point, stream_key> aging;

    session* find(session_key const& key)
    {
        auto const found = sessions.find(key);
        return found == sessions.end() ? nullptr : found->second.get();
    }
};

/// Runs a function when the watch is over.
class unwatch final : public watch_handle {
public:
    explicit unwatch(std::function<void()> stop) : stop_(std::move(stop)) {}
    ~unwatch() override { stop_(); }

private:
    std::function<void()> stop_;
};

}
