// Who watches what on this node, and how it hears of it: from the answers to its own commands, from other nodes through
// Redis, and where a message was lost from a look at everything.
#include "store/redis_state.hpp"

#include <algorithm>
#include <charconv>

namespace belay::store {

namespace {

std::string_view next_word(std::string_view& rest) noexcept
{
    auto const end = std::min(rest.find(' '), rest.size());
    auto const word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
}

template<class Number>
Number number_in(std::string_view text) noexcept
{
    Number number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

class watching final : public watch_handle {
public:
    watching(std::weak_ptr<redis_core> core, std::string tag, std::shared_ptr<redis_core::watcher> entry)
        : core_(std::move(core)), tag_(std::move(tag)), entry_(std::move(entry))
    {
    }
    ~watching() override
    {
        entry_->is_active.store(false, std::memory_order_release);
        if (auto const core = core_.lock())
            core->unwatch(tag_, entry_);
    }

private:
    std::weak_ptr<redis_core> core_;
    std::string tag_;
    std::shared_ptr<redis_core::watcher> entry_;
};

void wake(redis_core::watcher const& entry, std::uint8_t what)
{
    if (!entry.is_active.load(std::memory_order_acquire))
        return;
    for (unsigned left = entry.interests & what; left != 0; left &= left - 1)
        entry.wake(static_cast<event_store::interest>(left & ~(left - 1)));
}

}

// --- watches

std::unique_ptr<watch_handle> redis_core::watch(
    session_key const& key, std::string stream, std::uint8_t interests,
    std::function<void(event_store::interest)> woken)
{
    auto entry = std::make_shared<watcher>();
    entry->wake = std::move(woken);
    entry->interests = interests;
    entry->stream = std::move(stream);
    auto const tag = tag_of(key);
    std::uint64_t number = 0;
    {
        base::lock const lock(watch_mutex_);
        auto const [found, is_first] = watched_.try_emplace(tag);
        found->second.is_left = false;
        found->second.watchers.push_back(entry);
        if (is_first)
            number = next_watch_number();
    }
    if (number != 0)
        tell_watch(tag, true, number);
    return std::make_unique<watching>(weak_from_this(), tag, entry);
}

void redis_core::unwatch(std::string const& tag, std::shared_ptr<watcher> const& entry)
{
    base::lock const lock(watch_mutex_);
    if (auto const found = watched_.find(tag); found != watched_.end())
        std::erase(found->second.watchers, entry); // the pulse tells, if nobody comes
}

void redis_core::tell_watch(std::string const& tag, bool is_watched, std::uint64_t number)
{
    run([this, tag, is_watched, number](redis_lane& on) {
        on.eval(
            redis_script::watch, {root(tag)}, {node, std::to_string(number), is_watched ? "1" : "0"},
            [this, tag, is_watched](result<reply_view> const& reply) {
                if (!reply || !is_watched)
                    return;
                base::lock const lock(watch_mutex_);
                if (auto const found = watched_.find(tag); found != watched_.end())
                    found->second.version = std::max(found->second.version, (*reply)[1].count());
            });
    });
}

// --- hints

void redis_core::hear_reply(std::string_view tag, reply_view const& header)
{
    if (auto const told = header[5].text(); !told.empty())
        hear(tag, header[6].count(), told, true);
}

void redis_core::hear_message(std::string_view text)
{
    hint_count.fetch_add(1, std::memory_order_relaxed);
    auto const tag = next_word(text);
    auto const version = number_in<std::uint64_t>(next_word(text));
    hear(tag, version, text, false);
}

void redis_core::hear(std::string_view tag, std::uint64_t version, std::string_view told, bool is_own)
{
    struct woken {
        std::shared_ptr<watcher> who;
        std::uint8_t what;
    };
    std::vector<woken> all;
    std::uint64_t stray = 0;
    {
        base::lock const lock(watch_mutex_);
        auto const found = watched_.find(std::string(tag));
        if (found == watched_.end()) {
            if (!is_own)
                stray = next_watch_number();
        } else {
            auto& of = found->second;
            // Answers and messages overtake each other: what is missing is looked for with the next re-check.
            of.has_missed = of.has_missed || version > of.version + 1;
            of.version = std::max(of.version, version);
            while (!told.empty()) {
                auto const word = next_word(told);
                auto const colon = word.rfind(':');
                auto const stream = word.substr(0, colon);
                auto const what = number_in<std::uint8_t>(word.substr(colon + 1));
                for (auto const& each : of.watchers)
                    if (stream == "*" ? !each->stream.empty()
                                      : stream == (each->stream.empty() ? std::string_view("s") : each->stream))
                        all.push_back({each, what});
            }
        }
    }
    for (auto const& [who, what] : all)
        wake(*who, what);
    if (stray != 0)
        tell_watch(std::string(tag), false, stray);
}

void redis_core::recheck(bool anew)
{
    std::vector<std::pair<std::string, std::uint64_t>> all_watched;
    {
        base::lock const lock(watch_mutex_);
        for (auto const& [tag, of] : watched_)
            all_watched.emplace_back(tag, next_watch_number());
    }
    auto& on = first_lane();
    for (auto const& each : all_watched) {
        auto const& tag = each.first;
        if (anew)
            tell_watch(tag, true, each.second);
        on.command({"HGET", root(tag), "V"}, root(tag), [this, tag](result<reply_view> const& reply) {
            if (!reply)
                return;
            std::vector<std::shared_ptr<watcher>> all;
            {
                base::lock const lock(watch_mutex_);
                auto const found = watched_.find(tag);
                if (found == watched_.end())
                    return;
                auto& of = found->second;
                auto const version = reply->count();
                bool const is_missed = of.has_missed || version != of.version;
                of.has_missed = false;
                of.version = version;
                if (!is_missed)
                    return;
                all = of.watchers;
            }
            missed_count.fetch_add(1, std::memory_order_relaxed);
            for (auto const& each : all)
                wake(*each, 0xff);
        });
    }
}

void redis_core::wake_for_dead()
{
    std::vector<std::shared_ptr<watcher>> all;
    {
        base::lock const lock(watch_mutex_);
        for (auto const& [tag, of] : watched_)
            all.insert(all.end(), of.watchers.begin(), of.watchers.end());
    }
    for (auto const& each : all)
        wake(*each, each->stream.empty() ? bits(event_store::interest::growth) : bits(event_store::interest::reader));
}

std::unique_ptr<watch_handle>
redis_store::watch(stream_key const& key, interest interests, std::function<void(interest)> wake)
{
    return core_->watch(key.session, stream_name(key.stream), bits(interests), std::move(wake));
}

std::unique_ptr<watch_handle> redis_store::watch_session(session_key const& key, std::function<void()> wake)
{
    return core_->watch(key, {}, bits(interest::growth), [wake = std::move(wake)](interest) { wake(); });
}

// --- the bulletin

void redis_store::publish(std::string text)
{
    core_->of_bulletin->tell(text);
    core_->run([core = core_.get(), text = std::move(text)](redis_lane& on) {
        auto const channel = core->set.prefix + "n:all";
        on.command({"PUBLISH", channel, core->node + ' ' + text}, channel, [](result<reply_view> const&) {});
    });
}

std::unique_ptr<watch_handle> redis_store::listen(std::function<void(std::string const&)> hear)
{
    return redis_audience<std::string const&>::add(core_->of_bulletin, std::move(hear));
}

// --- what other nodes say

redis_ear::redis_ear(redis_core& core, base::io_loop& loop)
    : core_(core), loop_(loop), again_(loop.timers(), [this] { connect(); }),
      check_(loop.timers(), [this] { check(); }), delay_(shortest_redis_delay)
{
}

void redis_ear::start()
{
    connect();
}

void redis_ear::close()
{
    life_.reset();
    again_.cancel();
    check_.cancel();
    if (auto const connection = std::exchange(connection_, nullptr))
        connection->close();
}

void redis_ear::connect()
{
    if (core_.set.place.what != redis_place::kind::sentinel)
        return connect_to(core_.first_lane().some_master());
    ask_sentinels(
        loop_, core_.set, core_.tls, [this, life = std::weak_ptr(life_)](std::optional<redis_address> const& found) {
            if (life.expired())
                return;
            if (found)
                connect_to(*found);
            else
                on_lost("nobody knows where its master is");
        });
}

void redis_ear::connect_to(redis_address const& address)
{
    redis_connection::settings settings;
    settings.address = address;
    settings.tls = core_.tls;
    settings.server_name = core_.set.tls.server_name;
    settings.timeout = core_.set.timeout;
    settings.greeting = greeting_of(core_.set.place);
    subscribed_ = 0;
    connection_ = std::make_shared<redis_connection>(loop_, std::move(settings), *this);
    connection_->start();
}

bool redis_ear::on_ready(std::vector<redis_reply> const&)
{
    words const subscription{"SUBSCRIBE", core_.set.prefix + "n:" + core_.node, core_.set.prefix + "n:all"};
    connection_->write(redis_bytes(subscription));
    heard_ = loop_.now();
    check_.after(core_.set.timeout);
    return true;
}

void redis_ear::on_reply(redis_reply reply)
{
    heard_ = loop_.recent();
    reply_view const view(reply.get());
    if (view[0].text() == "subscribe" && ++subscribed_ == 2) {
        delay_ = shortest_redis_delay;
        core_.recheck(true); // whatever was said before was not heard
    } else if (view[0].text() == "message") {
        auto text = view[2].text();
        if (view[1].text().ends_with("n:all")) {
            if (next_word(text) != core_.node)
                core_.of_bulletin->tell(std::string(text));
        } else {
            core_.hear_message(text);
        }
    } else if (view.is_error()) {
        core_.set.log.error("redis does not let this node hear of others: {}", view.text());
    }
}

void redis_ear::check()
{
    if (!connection_)
        return;
    // A connection on which nothing is said is asked now and then.
    auto const silence = loop_.now() - heard_;
    if (silence > core_.set.recheck + core_.set.timeout) {
        connection_->close();
        return on_lost("it did not answer in time");
    }
    if (silence > core_.set.recheck)
        connection_->write(redis_bytes(words{"PING"}));
    check_.after(core_.set.timeout);
}

void redis_ear::on_lost(std::string const&)
{
    check_.cancel();
    connection_.reset();
    again_.after(delay_);
    delay_ = std::min(delay_ * 2, longest_redis_delay);
}

}
