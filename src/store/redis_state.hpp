// What a redis_store is made of. Private to its source files.
#pragma once

#include "base/current_loop.hpp"
#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "store/redis_codec.hpp"
#include "store/redis_link.hpp"
#include "store/redis_scripts.hpp"
#include "store/redis_store.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <map>

namespace belay::store {

using words = std::vector<std::string>;
/// The reply is there during the call.
using reply_done = std::move_only_function<void(result<reply_view>)>;

class redis_core;

/// Commands of a new connection before those of the store.
[[nodiscard]] std::vector<words> greeting_of(redis_place const& place);

/// Where a service's master is, as the first sentinel says that answers.
void ask_sentinels(
    base::io_loop& loop, redis_options const& options, std::shared_ptr<boost::asio::ssl::context> const& tls,
    std::move_only_function<void(std::optional<redis_address>)> found);

/// A node's commands of one loop: one link, or one to each master of a cluster.
class redis_lane final : public redis_link::events, public std::enable_shared_from_this<redis_lane> {
public:
    redis_lane(redis_core& core, base::io_loop& loop, bool is_first);

    /// Of what somebody waits for, or of what has to arrive sometime as long as this node lives.
    enum class patience { some, endless };

    void start();
    void close();

    // On its loop.
    void eval(redis_script which, words const& keys, words args, reply_done done, patience how = patience::some);
    void command(words const& all, std::string_view key, reply_done done, patience how = patience::some);
    /// A master that is there, or the first address.
    [[nodiscard]] redis_address some_master() const;

    [[nodiscard]] base::io_loop& loop() noexcept { return loop_; }
    [[nodiscard]] redis_core& core() noexcept { return core_; }
    [[nodiscard]] bool is_open() const noexcept { return is_open_; }
    [[nodiscard]] bool is_idle() const noexcept;

private:
    void on_up() override;
    void on_down(std::string const& why) override;
    void on_moved(redis_link& from, std::deque<redis_command> all) override;
    void find_master(
        redis_address const& former, std::move_only_function<void(std::optional<redis_address>)> found) override;

    void send(redis_command command);
    redis_link& link_to(std::string const& address);
    void want_slots();
    void ask_for_slots();
    void take_slots(std::string const& asked, reply_view const& reply);

    redis_core& core_;
    base::io_loop& loop_;
    bool is_first_;
    bool is_open_ = true;
    std::map<std::string, std::shared_ptr<redis_link>> links_; // by "host:port"; of one master: one
    std::string home_; // of them, the one for what belongs to no known slot
    std::vector<std::string const*> slots_; // of a cluster: names in links_; null: not known
    base::timer slots_again_;
};

/// Hears what other nodes tell this one. On the first loop.
class redis_ear final : public redis_connection::events {
public:
    redis_ear(redis_core& core, base::io_loop& loop);
    ~redis_ear() override { close(); }
    void start();
    void close();

private:
    bool on_ready(std::vector<redis_reply> const&) override;
    void on_reply(redis_reply reply) override;
    void on_lost(std::string const& why) override;
    void connect();
    void check();

    void connect_to(redis_address const& address);

    redis_core& core_;
    base::io_loop& loop_;
    std::shared_ptr<redis_connection> connection_;
    std::shared_ptr<char> life_ = std::make_shared<char>(); // of whoever waits for a sentinel's answer
    base::timer again_;
    base::timer check_;
    base::duration delay_;
    base::time_point heard_{};
    int subscribed_ = 0;
};

/// Who listens to something.
template<class Word>
class redis_audience {
public:
    /// Nobody is called after the handle has gone, unless it is being called.
    [[nodiscard]] static std::unique_ptr<watch_handle>
    add(std::shared_ptr<redis_audience> const& to, std::function<void(Word)> hear)
    {
        auto entry = std::make_shared<listener>();
        entry->hear = std::move(hear);
        {
            base::lock const lock(to->mutex_);
            to->all_.push_back(entry);
        }
        return std::make_unique<handle>(to, std::move(entry));
    }
    void tell(Word word)
    {
        std::vector<std::shared_ptr<listener>> all;
        {
            base::lock const lock(mutex_);
            all = all_;
        }
        for (auto const& each : all)
            if (each->is_active.load(std::memory_order_acquire))
                each->hear(word);
    }

private:
    struct listener {
        std::function<void(Word)> hear;
        std::atomic<bool> is_active{true};
    };
    class handle final : public watch_handle {
    public:
        handle(std::weak_ptr<redis_audience> of, std::shared_ptr<listener> entry)
            : of_(std::move(of)), entry_(std::move(entry))
        {
        }
        ~handle() override
        {
            entry_->is_active.store(false, std::memory_order_release);
            if (auto const of = of_.lock()) {
                base::lock const lock(of->mutex_);
                std::erase(of->all_, entry_);
            }
        }

    private:
        std::weak_ptr<redis_audience> of_;
        std::shared_ptr<listener> entry_;
    };

    base::mutex mutex_;
    std::vector<std::shared_ptr<listener>> all_ BELAY_GUARDED_BY(mutex_);
};

class redis_core : public std::enable_shared_from_this<redis_core> {
public:
    struct watcher {
        std::function<void(event_store::interest)> wake;
        std::uint8_t interests = 0;
        std::string stream; // empty: the session's record
        std::atomic<bool> is_active{true};
    };

    redis_core(store::limits limits, redis_options options, std::span<base::io_loop* const> loops);
    ~redis_core();
    void start();

    /// Runs the function on the lane of the caller's loop: now if there is one, and else on the first.
    template<class F>
    void run(F&& function);
    [[nodiscard]] redis_lane& first_lane() noexcept { return *lanes_.front(); }

    // --- names of keys

    [[nodiscard]] std::string root(std::string_view tag) const { return set.prefix + '{' + std::string(tag) + '}'; }
    [[nodiscard]] std::string of_fleet(std::string_view name) const
    {
        return set.prefix + "{fleet}:" + std::string(name);
    }
    [[nodiscard]] words keys_of(std::string_view tag) const
    {
        auto const key = root(tag);
        return {key, key + ":d", key + ":k"};
    }
    [[nodiscard]] words keys_of(std::string_view tag, std::string_view stream) const
    {
        auto keys = keys_of(tag);
        keys.push_back(list_of(tag, stream));
        return keys;
    }
    [[nodiscard]] std::string list_of(std::string_view tag, std::string_view stream) const
    {
        return root(tag) + ':' + std::string(stream);
    }

    // --- asking

    /// A script of a session whose answer begins with what it uses and whom it wakes. `make` makes the outcome of a
    /// reply that is none of an error.
    template<class T, class Make>
    void change(
        redis_lane& on, redis_script which, session_key const& key, words const& keys, words args, completion<T> done,
        Make make);
    /// A script of a session that changes nothing.
    template<class T, class Make>
    void ask(redis_lane& on, redis_script which, words const& keys, words args, completion<T> done, Make make);
    /// A script that wants to know who lives: args[2] and [3] are filled in. The reply is of any status but "who".
    void eval_with_leases(redis_lane& on, redis_script which, words keys, words args, reply_done done);
    void fetch_leases(redis_lane& on, std::move_only_function<void(result<void>)> done);

    /// A script of a session that nobody waits for.
    void tell(redis_lane& on, redis_script which, session_key const& key, words const& keys, words args);

    // --- what is used

    void note_use(session_key const& key, reply_view const& header);
    void note_gone(session_key const& key);
    void note_records(std::uint64_t bytes);
    void note_sessions(std::uint64_t count);
    [[nodiscard]] usage used() const;
    /// The limits as room.lua reads them, for a session of that principal.
    [[nodiscard]] std::string limits_for(std::string const& principal) const;
    [[nodiscard]] std::size_t other_bytes_than_records() const;
    void know_principal(redis_lane& on, std::string const& principal);

    // --- hints

    void hear_reply(std::string_view tag, reply_view const& header);
    /// "tag version stream:bits …"
    void hear_message(std::string_view text);
    [[nodiscard]] std::unique_ptr<watch_handle> watch(
        session_key const& key, std::string stream, std::uint8_t interests,
        std::function<void(event_store::interest)> wake);
    void unwatch(std::string const& tag, std::shared_ptr<watcher> const& entry);
    /// Looks whether anything has happened to what is watched; `anew`: and says again that it is.
    void recheck(bool anew);
    [[nodiscard]] std::uint64_t next_watch_number() noexcept { return ++watch_number_; }

    // --- sessions, streams

    void remove_all(redis_lane& on, session_key const& key, completion<void> done);
    void remove_with(redis_lane& on, session_key const& key, words streams, int tries, completion<void> done);
    void unindex(redis_lane& on, session_key const& key, stream_id standalone, words const& uris);
    void collect(redis_lane& on, std::string_view tag, std::string_view garbage);
    void schedule_aging(redis_lane& on, std::string_view tag, std::int64_t when);
    void age_session(redis_lane& on, session_key const& key, words const& streams, int tries);
    void look_at(
        redis_lane& on, std::string const& tag, std::function<void(session_key const&, bool)> found,
        std::function<void()> done);
    void find_lapsed(
        redis_lane& on, words owners, std::size_t limit, std::vector<call_ref> found,
        completion<std::vector<call_ref>> done);
    /// Puts a call into the index of its owner, and goes on: where the index may be elsewhere, when it is there.
    void announce(
        redis_lane& on, std::string const& owner, std::string member, std::move_only_function<void(result<void>)> then);
    void forget_call(redis_lane& on, std::string const& owner, std::string member);
    /// Somebody's readers may be gone.
    void wake_for_dead();
    class owned_reading;
    class listing;
    [[nodiscard]] bool is_living(std::string_view reader_name) const;
    /// After an outage nobody decides over others' calls and sessions before they could say that they live.
    [[nodiscard]] bool is_settling(base::time_point now) const noexcept;
    void note_health(bool is_up, std::string const& why);

    store::limits const limits;
    redis_options const set;
    redis_scripts const scripts;
    std::string const node;
    std::shared_ptr<boost::asio::ssl::context> tls;
    redis_link::statistics counts;
    std::atomic<std::uint64_t> hint_count{0};
    std::atomic<std::uint64_t> missed_count{0};
    std::atomic<int> tasks{0}; // several commands each, of which the next may not have been given yet
    [[nodiscard]] bool is_idle() const;

    // --- owners

    mutable base::mutex leases_mutex;
    std::map<std::string, std::int64_t, std::less<>> leases BELAY_GUARDED_BY(leases_mutex); // when they end, ms
    std::int64_t leases_at BELAY_GUARDED_BY(leases_mutex) = 0; // the store's time then, ms
    words nodes BELAY_GUARDED_BY(leases_mutex);
    boost::unordered_flat_set<std::string> dead_owners BELAY_GUARDED_BY(leases_mutex); // that watchers know of
    [[nodiscard]] std::string packed_leases() const;
    [[nodiscard]] std::string packed_nodes() const;
    std::atomic<base::duration::rep> lease{0}; // as this node's owner has it

    // --- subscriptions

    mutable base::mutex uris_mutex;
    boost::unordered_flat_set<std::string> uris BELAY_GUARDED_BY(uris_mutex);
    void fetch_uris(redis_lane& on);
    std::atomic<std::uint64_t> uris_version{0};

    std::shared_ptr<redis_audience<std::string const&>> const of_bulletin
        = std::make_shared<redis_audience<std::string const&>>();
    std::shared_ptr<redis_audience<bool>> const of_health = std::make_shared<redis_audience<bool>>();

private:
    struct watched {
        std::vector<std::shared_ptr<watcher>> watchers;
        std::uint64_t version = 0; // that all was heard of
        bool has_missed = false;
        bool is_left = false; // nothing is watched any more; the store is told if that lasts
    };
    struct use {
        std::string principal;
        std::size_t bytes = 0; // now
        std::int64_t streams = -1; // -1: not known
        std::size_t reported_bytes = 0;
        std::int64_t streams_since = 0; // more or less than was reported
    };
    struct principal_use {
        std::int64_t known = 0; // as the store has it
        std::int64_t since = 0; // what has changed here since
        base::time_point used_at{};
    };

    void pulse();
    void note_silence();
    void note_reach(bool is_reached);
    void report_use();
    /// The number is that of the change: taken with the table of what is watched.
    void tell_watch(std::string const& tag, bool is_watched, std::uint64_t number);
    void hear(std::string_view tag, std::uint64_t version, std::string_view hints, bool is_own);
    [[nodiscard]] std::size_t bytes_here() const BELAY_REQUIRES(use_mutex_);

    std::vector<std::shared_ptr<redis_lane>> lanes_;
    redis_ear ear_;
    base::timer pulse_;
    base::timer recheck_;
    base::timer silence_; // since a pulse that has no answer, or since there is no link
    std::atomic<std::uint64_t> watch_number_;

    mutable base::mutex use_mutex_;
    boost::unordered_flat_map<std::string, use> uses_ BELAY_GUARDED_BY(use_mutex_); // by tag: not reported yet
    std::map<std::string, principal_use, std::less<>> principals_ BELAY_GUARDED_BY(use_mutex_);
    std::int64_t known_bytes_ BELAY_GUARDED_BY(use_mutex_) = 0;
    std::int64_t since_bytes_ BELAY_GUARDED_BY(use_mutex_) = 0;
    std::int64_t known_streams_ BELAY_GUARDED_BY(use_mutex_) = 0;
    std::int64_t since_streams_ BELAY_GUARDED_BY(use_mutex_) = 0;
    std::uint64_t record_bytes_ BELAY_GUARDED_BY(use_mutex_) = 0;
    std::uint64_t sessions_ BELAY_GUARDED_BY(use_mutex_) = 0;

    base::mutex watch_mutex_;
    boost::unordered_flat_map<std::string, watched> watched_ BELAY_GUARDED_BY(watch_mutex_);

    std::atomic<base::duration::rep> settled_at_{0};
    std::optional<base::time_point> down_since_;
    bool is_up_ = false;
    bool is_reached_ = true; // as was said last
};

/// Of several steps of a lane that run at once: what to do when the last has ended. Nothing once the lane is closed.
class redis_ending {
public:
    redis_ending(redis_lane const& on, std::move_only_function<void()> last) : on_(on), last_(std::move(last)) {}
    redis_ending(redis_ending const&) = delete;
    redis_ending& operator=(redis_ending const&) = delete;
    ~redis_ending()
    {
        if (on_.is_open())
            last_();
    }

private:
    redis_lane const& on_;
    std::move_only_function<void()> last_;
};

// --- what an answer says

/// Of a status that is no success.
[[nodiscard]] errc errc_of(std::string_view status) noexcept;
[[nodiscard]] result<page> read_page(
    redis_core const& core, reply_view const& events, reply_view const& state, reply_view const& why,
    reply_view const& retry);
/// As readers are called in a stream's meta.
[[nodiscard]] std::string name_of_reader(reader_id const& reader);
constexpr std::size_t header_size = 7; // status, bytes, more bytes, streams, more streams, hints, version

/// As scripts take a duration; those that never end are long enough.
[[nodiscard]] inline std::string milliseconds(base::duration time)
{
    constexpr std::int64_t longest = 1'000'000'000'000;
    return std::to_string(
        std::min<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count(), longest));
}

constexpr std::uint8_t bits(event_store::interest interest) noexcept
{
    return static_cast<std::uint8_t>(interest);
}

// What things cost beside their texts, about.
constexpr std::size_t session_overhead = 1536; // with its places in indexes, its standalone stream, a reader
constexpr std::size_t subscription_overhead = 256;
constexpr std::size_t stream_overhead = 768;
constexpr std::size_t request_overhead = 96;
constexpr std::size_t event_overhead = 64; // as in streams.lua

// --- templates

template<class F>
void redis_core::run(F&& function)
{
    auto* const here = base::current_loop;
    for (auto const& lane : lanes_)
        if (&lane->loop() == here) {
            if (lane->is_open())
                function(*lane);
            return;
        }
    ++tasks;
    first_lane().loop().post(
        [this, lane = std::weak_ptr(lanes_.front()), function = std::forward<F>(function)]() mutable {
            auto const on = lane.lock();
            if (!on || !on->is_open())
                return;
            --tasks;
            function(*on);
        });
}

template<class T, class Make>
void redis_core::change(
    redis_lane& on, redis_script which, session_key const& key, words const& keys, words args, completion<T> done,
    Make make)
{
    on.eval(
        which, keys, std::move(args),
        [this, key, done = std::move(done), make = std::move(make)](result<reply_view> const& reply) mutable {
            if (!reply)
                return done(std::unexpected(reply.error()));
            if (auto const status = (*reply)[0].text(); status != "ok")
                return done(failure(errc_of(status)));
            note_use(key, *reply);
            hear_reply(tag_of(key), *reply);
            done(make(*reply));
        });
}

template<class T, class Make>
void redis_core::ask(redis_lane& on, redis_script which, words const& keys, words args, completion<T> done, Make make)
{
    on.eval(
        which, keys, std::move(args),
        [done = std::move(done), make = std::move(make)](result<reply_view> const& reply) mutable {
            if (!reply)
                return done(std::unexpected(reply.error()));
            if (auto const status = (*reply)[0].text(); status != "ok")
                return done(failure(errc_of(status)));
            done(make(*reply));
        });
}

}
