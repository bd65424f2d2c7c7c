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
constexpr base::duration again_time = std::chrono::seconds(1);

}

void announcer::stop()
{
    outboxes_.clear();
    tellings_.clear();
    is_telling_ = false;
    ask_again_.reset();
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
                from->again->after(again_time);
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
    telling what{std::make_shared<std::string const>(std::move(message)), std::move(filter)};
    context_.later([this, what = std::move(what)]() mutable { tell(std::move(what)); });
}

void announcer::notify_subscribers(std::string uri, std::string message)
{
    if (!context_.own_loop())
        return;
    telling what{std::make_shared<std::string const>(std::move(message))};
    what.uri = uri;
    // Whoever subscribes from now on has what is new already: the first of them are looked up at once.
    context_.store().subscribers(
        uri, std::nullopt, tell_bite,
        [this, what = std::move(what)](result<std::vector<store::subscriber>> found) mutable {
            if (found && found->empty())
                return;
            context_.later([this, what = std::move(what), found = std::move(found)]() mutable {
                if (found)
                    for (auto const& each : *found)
                        append({each.session, each.standalone}, what.message);
                if (found && found->size() < tell_bite)
                    return;
                if (found)
                    what.after_subscriber = found->back().session;
                tell(std::move(what));
            });
        });
}

void announcer::tell(telling what)
{
    tellings_.push_back(std::move(what));
    // What no stream would keep need not wait for a store that cannot be reached. The first may be under way.
    if (tellings_.size() > context_.settings().limits.events_per_stream + 1) {
        tellings_.erase(tellings_.begin() + 1);
        ++dropped_tellings_;
    }
    tell_next();
}

void announcer::tell_next()
{
    if (is_telling_)
        return;
    if (!tellings_.empty()) {
        is_telling_ = true;
        return ask();
    }
    if (auto const dropped = std::exchange(dropped_tellings_, 0); dropped > 0)
        context_.log().warning("notifications to all could not be kept: {}", dropped);
}

void announcer::ask()
{
    if (tellings_.empty()) // stopped meanwhile
        return;
    auto const& what = tellings_.front();
    if (what.uri.empty())
        context_.store().list(what.after, tell_bite, [this](result<store::session_list> found) {
            if (found && !tellings_.empty())
                tell_sessions(*found);
            told(found ? std::error_code() : found.error(), found && found->has_more);
        });
    else
        context_.store().subscribers(
            what.uri, what.after_subscriber, tell_bite, [this](result<std::vector<store::subscriber>> found) {
                if (found && !tellings_.empty())
                    tell_subscribers(*found);
                told(found ? std::error_code() : found.error(), found && found->size() == tell_bite);
            });
}

void announcer::tell_sessions(store::session_list const& some)
{
    auto& what = tellings_.front();
    for (auto const& each : some.sessions)
        if (each.record->initialized && what.filter(*each.record))
            append({each.record->key, each.record->standalone}, what.message);
    if (some.has_more)
        what.after = base::log_name(some.sessions.back().record->key.id);
}

void announcer::tell_subscribers(std::vector<store::subscriber> const& some)
{
    auto& what = tellings_.front();
    for (auto const& each : some)
        append({each.session, each.standalone}, what.message);
    if (!some.empty())
        what.after_subscriber = some.back().session;
}

void announcer::told(std::error_code error, bool has_more)
{
    auto* const loop = context_.own_loop();
    if (!loop || tellings_.empty()) // stopped meanwhile
        return;
    if (error == errc::unavailable) {
        if (!ask_again_)
            ask_again_ = std::make_unique<base::timer>(loop->timers(), [this] { ask(); });
        return ask_again_->after(again_time);
    }
    if (error)
        context_.log().warning("nobody could be told: {}", error.message());
    if (!error && has_more) // others have their turn in between
        return context_.later([this] { ask(); });
    tellings_.pop_front();
    is_telling_ = false;
    context_.later([this] { tell_next(); });
}

}
