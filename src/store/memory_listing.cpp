// The memory store's overviews: sessions in order, who is subscribed to what, how much is used.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

std::size_t charge_of_subscription(std::string_view uri) noexcept
{
    return subscription_overhead + 2 * uri.size();
}

}

void memory_store::list(std::string_view after, std::size_t limit, completion<session_list> done)
{
    session_list listed;
    listed.total = session_count_.load(std::memory_order_relaxed);
    std::string last;
    for (auto& in : *stripes_) { // in the order of names
        visit at(*this, in);
        for (auto each = in.by_name.upper_bound(after); each != in.by_name.end(); ++each) {
            // Two of one name are on one page, or the second would be on none.
            if (listed.sessions.size() >= limit && each->name != last) {
                listed.has_more = true;
                break;
            }
            last = each->name;
            listed_session shown;
            shown.record = each->record;
            shown.age = at.now - each->created_at;
            if (each->idle_link.is_linked())
                shown.idle = at.now - each->last_activity;
            shown.readers = each->readers.entries().size();
            for (auto const& who : each->presences) {
                shown.running_calls += who->calls.size();
                if (auto const& owner = who->of->lease->name; !who->calls.empty() && !owner.empty())
                    shown.call_owners.push_back(owner);
            }
            listed.sessions.push_back(std::move(shown));
        }
        if (listed.has_more)
            break;
    }
    done(std::move(listed));
}

void memory_store::named(std::string_view name, completion<std::vector<session_key>> done)
{
    std::vector<session_key> keys;
    for (auto& in : *stripes_) {
        visit at(*this, in);
        auto const [first, last] = in.by_name.equal_range(name);
        for (auto const& each : std::ranges::subrange(first, last))
            keys.push_back(each.record->key);
    }
    done(std::move(keys));
}

// --- subscriptions

void memory_store::subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done)
{
    auto outcome = [&]() -> result<void> {
        visit at(*this, key);
        auto* const of = at.in.find(key);
        if (!of || of->is_closed)
            return failure(errc::not_found);
        if (of->subscriptions.contains(uri))
            return {};
        if (of->subscriptions.size() >= limit)
            return failure(errc::too_many_subscriptions);
        auto const charge = charge_of_subscription(uri);
        if (auto const room = make_room(at, *of, {.bytes = charge}); !room)
            return room;
        add_bytes(*of, charge);
        of->subscriptions.insert(uri);
        base::lock const inner(subscribers_mutex_);
        subscribers_[std::move(uri)].emplace(key, of->record->standalone);
        return {};
    }();
    done(std::move(outcome));
}

void memory_store::forget_subscription(session& of, std::string const& uri)
{
    if (of.subscriptions.erase(uri) == 0)
        return;
    release_bytes(of, charge_of_subscription(uri));
    base::lock const lock(subscribers_mutex_);
    auto const found = subscribers_.find(uri);
    found->second.erase(of.record->key);
    if (found->second.empty())
        subscribers_.erase(found);
}

void memory_store::unsubscribe(session_key const& key, std::string_view uri, completion<void> done)
{
    result<void> outcome = failure(errc::not_found);
    {
        visit at(*this, key);
        if (auto* const of = at.in.find(key); of && !of->is_closed) {
            forget_subscription(*of, std::string(uri));
            outcome = {};
        }
    }
    done(std::move(outcome));
}

void memory_store::subscribers(
    std::string_view uri, std::optional<session_key> after, std::size_t limit, completion<std::vector<subscriber>> done)
{
    std::vector<subscriber> all;
    {
        base::lock const lock(subscribers_mutex_);
        if (auto const found = subscribers_.find(uri); found != subscribers_.end())
            for (auto each = after ? found->second.upper_bound(*after) : found->second.begin();
                 each != found->second.end() && all.size() < limit; ++each)
                all.push_back({each->first, each->second});
    }
    done(std::move(all));
}

std::vector<std::string> memory_store::subscribed_uris() const
{
    std::vector<std::string> uris;
    base::lock const lock(subscribers_mutex_);
    uris.reserve(subscribers_.size());
    for (auto const& [uri, sessions] : subscribers_)
        uris.push_back(uri);
    return uris;
}

// --- use

usage memory_store::used() const
{
    usage sum;
    sum.sessions = session_count_.load(std::memory_order_relaxed);
    sum.streams = stream_count_.load(std::memory_order_relaxed);
    sum.bytes = total_bytes_.load(std::memory_order_relaxed);
    return sum;
}

usage memory_store::census() const
{
    usage sum;
    sum.bytes = total_bytes_.load(std::memory_order_relaxed);
    for (auto const& in : *stripes_) {
        base::lock const lock(in.mutex);
        sum.sessions += in.sessions.size();
        for (auto const& [key, session] : in.sessions) {
            sum.streams += session->streams.size();
            for (auto const& [id, each] : session->streams) {
                sum.events += each->pinned.size() + each->events.size();
                sum.pending += each->count_kept(each->reader.sent, each->top.sequence);
            }
        }
    }
    return sum;
}

}
