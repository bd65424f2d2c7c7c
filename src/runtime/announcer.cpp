#include "runtime/announcer.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

// How many sessions hear of something before the loop has its turn.
constexpr std::size_t tell_bite = 64;

// How many messages go into a stream at once.
constexpr std::size_t append_bite = 64;

// So long after the store could not answer it is asked again.
constexpr base::duration append_again_time = std::chrono::seconds(1);

}

void announcer::stop()
{
    outboxes_.clear();
}

void announcer::append(store::stream_key const& stream, store::bytes message)
{
    auto& box = outboxes_[stream];
    if (!box) {
        box = std::make_shared<outbox>();
        box->stream = stream;
    }
    box->waiting.push_back(std::move(message));
    // What retention would not keep need not wait for a store that cannot be reached.
    if (box->waiting.size() - box->appending > context_.settings().limits.events_per_stream) {
        box->waiting.erase(box->waiting.begin() + static_cast<std::ptrdiff_t>(box->appending));
        ++box->dropped;
    }
    if (box->appending == 0)
        append_next(std::shared_ptr(box));
}

void announcer::append_next(std::shared_ptr<outbox> const& from)
{
    if (from->waiting.empty()) {
        if (from->dropped > 0)
            context_.log().warning("notifications could not be kept: {}", from->dropped);
        outboxes_.erase(from->stream);
        return;
    }
    from->appending = std::min(from->waiting.size(), append_bite);
    // Numbers of all streams together, so that no stream sees one twice.
    from->batch = ++last_batch_;
    send(from);
}

void announcer::send(std::shared_ptr<outbox> const& from)
{
    std::vector<store::event_data> events;
    for (std::size_t i = 0; i < from->appending; ++i)
        events.push_back({from->waiting[i], store::event_kind::ordinary});
    context_.store().append_standalone(
        from->stream, context_.owner(), from->batch, std::move(events), [this, from](result<store::stream_top> top) {
            auto* const loop = context_.own_loop();
            if (!loop) // stopped meanwhile
                return;
            if (!top && top.error() == errc::unavailable) {
                if (!from->again)
                    from->again = std::make_unique<base::timer>(loop->timers(), [this, weak = std::weak_ptr(from)] {
                        if (auto const box = weak.lock())
                            send(box);
                    });
                from->again->after(append_again_time);
                return;
            }
            if (top)
                context_.metrics().events_appended.Increment(static_cast<double>(from->appending));
            else if (top.error() != errc::not_found) // it may have ended meanwhile
                from->dropped += from->appending;
            from->waiting.erase(
                from->waiting.begin(), from->waiting.begin() + static_cast<std::ptrdiff_t>(from->appending));
            from->appending = 0;
            append_next(from);
        });
}

void announcer::notify(std::shared_ptr<live_session> const& session, std::string message)
{
    context_.later([this, session, text = std::make_shared<std::string const>(std::move(message))] {
        append({session->key, session->current_record()->standalone}, text);
    });
}

void announcer::broadcast(std::string message, std::function<bool(store::session_record const&)> filter)
{
    context_.later(
        [this, filter = std::move(filter), text = std::make_shared<std::string const>(std::move(message))]() mutable {
            tell_all({}, std::move(text), std::move(filter));
        });
}

void announcer::tell_all(
    std::string after, store::bytes message, std::function<bool(store::session_record const&)> filter)
{
    context_.store().list(
        after, tell_bite,
        [this, message = std::move(message), filter = std::move(filter)](result<store::session_list> found) mutable {
            if (!found)
                return context_.log().warning("sessions could not be listed: {}", found.error().message());
            for (auto const& each : found->sessions)
                if (each.record->initialized && filter(*each.record))
                    append({each.record->key, each.record->standalone}, message);
            if (found->has_more)
                context_.later([this, last = base::log_name(found->sessions.back().record->key.id),
                                message = std::move(message), filter = std::move(filter)]() mutable {
                    tell_all(std::move(last), std::move(message), std::move(filter));
                });
        });
}

void announcer::notify_subscribers(std::string uri, std::string message)
{
    // Whoever subscribes from now on has what is new already: the first of them are looked up at once.
    if (context_.own_loop())
        tell_subscribers(std::move(uri), std::nullopt, std::make_shared<std::string const>(std::move(message)));
}

void announcer::tell_subscribers(std::string uri, std::optional<store::session_key> after, store::bytes message)
{
    context_.store().subscribers(
        uri, std::move(after), tell_bite,
        [this, uri, message = std::move(message)](result<std::vector<store::subscriber>> found) mutable {
            if (!found)
                return context_.log().warning("subscribers could not be found: {}", found.error().message());
            if (found->empty())
                return;
            context_.later(
                [this, uri = std::move(uri), some = std::move(*found), message = std::move(message)]() mutable {
                    for (auto const& each : some)
                        append({each.session, each.standalone}, message);
                    if (some.size() == tell_bite)
                        tell_subscribers(std::move(uri), some.back().session, std::move(message));
                });
        });
}

}
