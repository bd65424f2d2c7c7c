// The Redis store's lanes: how commands get to Redis, and how it fares.
#include "store/redis_slot.hpp"
#include "store/redis_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace belay::store {

namespace {

constexpr base::duration pulse_interval = std::chrono::seconds(1);
constexpr base::duration longest_silence = std::chrono::seconds(1);

std::string random_name()
{
    base::system_random random;
    std::string name;
    base::append_base62(name, random.next());
    return name;
}

}

std::vector<words> greeting_of(redis_place const& place)
{
    std::vector<words> greeting;
    if (!place.password.empty()) {
        if (place.user.empty())
            greeting.push_back({"AUTH", place.password});
        else
            greeting.push_back({"AUTH", place.user, place.password});
    }
    if (place.database != 0)
        greeting.push_back({"SELECT", std::to_string(place.database)});
    return greeting;
}

errc errc_of(std::string_view status) noexcept
{
    struct known {
        std::string_view status;
        errc code;
    };
    static constexpr known all[] = {
        {"not_found", errc::not_found},
        {"gone", errc::not_found},
        {"stream_gone", errc::stream_gone},
        {"fenced", errc::fenced},
        {"finished", errc::finished},
        {"conflict", errc::conflict},
        {"no_space", errc::no_space},
        {"too_large", errc::too_large},
        {"too_many_streams", errc::too_many_streams},
        {"too_many_sessions", errc::too_many_sessions},
        {"too_many_subscriptions", errc::too_many_subscriptions},
        {"key_spent", errc::key_spent},
        {"key_mismatch", errc::key_mismatch},
        {"duplicate_id", errc::duplicate_id},
        {"bad_cursor", errc::bad_cursor},
    };
    for (auto const& each : all)
        if (each.status == status)
            return each.code;
    return errc::unavailable;
}

// --- a lane

redis_lane::redis_lane(redis_core& core, base::io_loop& loop, bool is_first)
    : core_(core), loop_(loop), is_first_(is_first), slots_again_(loop.timers(), [this] { ask_for_slots(); })
{
    home_ = to_string(core.set.place.addresses.front());
    if (core.set.place.what == redis_place::kind::cluster)
        slots_.resize(redis_slot_count, nullptr);
}

redis_link& redis_lane::link_to(std::string const& name)
{
    auto& link = links_[name];
    if (link)
        return *link;
    auto const& place = core_.set.place;
    redis_link_settings settings;
    settings.connection.address = place.addresses.front();
    if (place.what == redis_place::kind::cluster) {
        auto const colon = name.rfind(':');
        settings.connection.address = {name.substr(0, colon), 0};
        std::from_chars(
            name.data() + std::min(colon, name.size() - 1) + 1, name.data() + name.size(),
            settings.connection.address.port);
        if (auto& host = settings.connection.address.host; host.starts_with('[') && host.ends_with(']'))
            host = host.substr(1, host.size() - 2);
    }
    settings.connection.tls = core_.tls;
    settings.connection.server_name = core_.set.tls.server_name;
    settings.connection.timeout = core_.set.timeout;
    settings.connection.greeting = greeting_of(place);
    if (place.what == redis_place::kind::sentinel) {
        settings.role = settings.connection.greeting.size();
        settings.connection.greeting.push_back({"ROLE"});
    }
    settings.client_id = settings.connection.greeting.size();
    settings.connection.greeting.push_back({"CLIENT", "ID"});
    settings.connection.greeting.push_back({"INFO", "server"});
    settings.first_script = settings.connection.greeting.size();
    for (auto const& each : core_.scripts.all())
        settings.connection.greeting.push_back({"SCRIPT", "LOAD", each.text});
    settings.timeout = core_.set.timeout;
    settings.give_up = core_.set.give_up;
    settings.most_bytes = core_.set.most_waiting_bytes;
    link = std::make_shared<redis_link>(loop_, std::move(settings), *this, core_.counts);
    link->start();
    return *link;
}

void redis_lane::start()
{
    (void)link_to(home_);
    if (!slots_.empty())
        ask_for_slots();
}

void redis_lane::close()
{
    is_open_ = false;
    slots_again_.cancel();
    for (auto const& [name, link] : std::exchange(links_, {}))
        link->close();
}

bool redis_lane::is_idle() const noexcept
{
    return std::ranges::all_of(links_, [](auto const& each) { return each.second->is_idle(); });
}

redis_address redis_lane::some_master() const
{
    for (auto const& [name, link] : links_)
        if (link->is_up())
            return link->address();
    return core_.set.place.addresses.front();
}

void redis_lane::eval(redis_script which, words const& keys, words args, reply_done done, patience how)
{
    auto const& script = core_.scripts[which];
    words all{"EVALSHA", script.sha, std::to_string(keys.size())};
    all.reserve(all.size() + keys.size() + args.size() + 1);
    all.insert(all.end(), keys.begin(), keys.end());
    std::ranges::move(args, std::back_inserter(all));
    if (script.is_moved)
        all.push_back(std::to_string(core_.set.time_ahead().count()));
    command(all, keys.front(), std::move(done), how);
}

void redis_lane::command(words const& all, std::string_view key, reply_done done, patience how)
{
    if (!is_open_)
        return;
    redis_command made;
    made.bytes = redis_bytes(all);
    made.slot = redis_slot(key);
    if (how == patience::endless)
        made.give_up = base::time_point::max();
    made.done = [this, name = all[0] == "EVALSHA" ? all[1] : all[0],
                 done = std::move(done)](result<redis_reply> reply) mutable {
        if (!reply)
            return done(std::unexpected(reply.error()));
        reply_view const view(reply->get());
        if (!view.is_error())
            return done(view);
        for (auto const& each : core_.scripts.all())
            if (each.sha == name)
                name = each.name;
        core_.set.log.error("redis refused {}: {}", name, view.text());
        done(failure(errc::unavailable));
    };
    send(std::move(made));
}

void redis_lane::send(redis_command command)
{
    auto const* const name = slots_.empty() ? nullptr : slots_[command.slot];
    link_to(name ? *name : home_).send(std::move(command));
}

void redis_lane::on_up()
{
    if (is_first_ && std::ranges::all_of(links_, [](auto const& each) { return each.second->is_up(); }))
        core_.note_health(true, {});
}

void redis_lane::on_down(std::string const& why)
{
    if (is_first_)
        core_.note_health(false, why);
    want_slots();
}

void redis_lane::find_master(
    redis_address const& former, std::move_only_function<void(std::optional<redis_address>)> found)
{
    if (core_.set.place.what == redis_place::kind::sentinel)
        return ask_sentinels(loop_, core_.set, core_.tls, std::move(found));
    found(former);
}

// --- a cluster

void redis_lane::on_moved(redis_link& from, std::deque<redis_command> all)
{
    for (auto const& each : all)
        if (each.held_for == redis_verdict::moved && !slots_.empty() && !each.belongs_to.empty()) {
            (void)link_to(each.belongs_to);
            slots_[each.slot] = &links_.find(each.belongs_to)->first;
        }
    want_slots();
    for (auto& each : all) {
        auto const why = std::exchange(each.held_for, redis_verdict::answer);
        auto const where = std::exchange(each.belongs_to, {});
        if (slots_.empty()) {
            from.send(std::move(each)); // of a cluster that was taken for one Redis: check_redis says so
        } else if (why == redis_verdict::ask && !where.empty()) {
            each.asks = true;
            link_to(where).send(std::move(each));
        } else {
            each.asks = false;
            send(std::move(each));
        }
    }
}

void redis_lane::want_slots()
{
    if (!slots_.empty() && is_open_ && !slots_again_.is_armed())
        slots_again_.after(std::chrono::milliseconds(100));
}

void redis_lane::ask_for_slots()
{
    // Whoever is up knows; one that is not is asked in the hope that it comes back.
    auto const name = [&] {
        for (auto const& [each, link] : links_)
            if (link->is_up())
                return each;
        for (auto const& each : core_.set.place.addresses)
            if (!links_.contains(to_string(each)))
                return to_string(each);
        return home_;
    }();
    redis_command asked;
    asked.bytes = redis_bytes(words{"CLUSTER", "SLOTS"});
    asked.give_up = loop_.recent() + core_.set.timeout;
    asked.done = [this, name](result<redis_reply> const& reply) {
        if (!reply || reply_view(reply->get()).size() == 0)
            return slots_again_.after(std::chrono::milliseconds(500));
        take_slots(name, reply_view(reply->get()));
    };
    link_to(name).send(std::move(asked));
}

void redis_lane::take_slots(std::string const& asked, reply_view const& reply)
{
    for (std::size_t i = 0; i < reply.size(); ++i) {
        auto const range = reply[i];
        auto const host = range[2][0].text();
        // A node that does not know its own address leaves it out.
        auto const address = host.empty() || host == "?"
            ? redis_address{asked.substr(0, asked.rfind(':')), static_cast<std::uint16_t>(range[2][1].integer())}
            : redis_address{std::string(host), static_cast<std::uint16_t>(range[2][1].integer())};
        auto const name = to_string(address);
        (void)link_to(name);
        auto const* const kept = &links_.find(name)->first;
        auto const last = std::min<std::int64_t>(range[1].integer(), redis_slot_count - 1);
        for (auto slot = std::max<std::int64_t>(range[0].integer(), 0); slot <= last; ++slot)
            slots_[static_cast<std::size_t>(slot)] = kept;
    }
    // Links to those that are no masters any more: what they have belongs elsewhere.
    boost::unordered_flat_set<std::string_view> masters;
    for (auto const* each : slots_)
        if (each)
            masters.insert(*each);
    if (masters.empty())
        return;
    if (!masters.contains(home_))
        home_ = *masters.begin();
    std::deque<redis_command> orphans;
    for (auto each = links_.begin(); each != links_.end();) {
        if (masters.contains(each->first)) {
            ++each;
            continue;
        }
        for (auto& command : each->second->take_all())
            orphans.push_back(std::move(command));
        each->second->close();
        each = links_.erase(each);
    }
    for (auto& each : orphans)
        send(std::move(each));
}

// --- sentinels

namespace {

/// Asks one sentinel after another.
class sentinel_question final : public redis_connection::events,
                                public std::enable_shared_from_this<sentinel_question> {
public:
    sentinel_question(
        base::io_loop& loop, redis_options const& options, std::shared_ptr<boost::asio::ssl::context> tls,
        std::move_only_function<void(std::optional<redis_address>)> found)
        : loop_(loop), addresses_(options.place.addresses), service_(options.place.service),
          server_name_(options.tls.server_name), timeout_(options.timeout), tls_(std::move(tls)),
          found_(std::move(found))
    {
    }
    void ask_next()
    {
        if (next_ >= addresses_.size())
            return end(std::nullopt);
        redis_connection::settings settings;
        settings.address = addresses_[next_++];
        settings.tls = tls_;
        settings.server_name = server_name_;
        settings.timeout = timeout_;
        settings.greeting = {{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service_}};
        keep_ = shared_from_this();
        connection_ = std::make_shared<redis_connection>(loop_, std::move(settings), *this);
        connection_->start();
    }

private:
    bool on_ready(std::vector<redis_reply> const& greeted) override
    {
        reply_view const place(greeted.front().get());
        if (place.size() < 2)
            return false;
        end(redis_address{place[0].string(), static_cast<std::uint16_t>(place[1].integer())});
        return true;
    }
    void on_reply(redis_reply) override {}
    void on_lost(std::string const&) override { ask_next(); }
    void end(std::optional<redis_address> const& master)
    {
        auto const keep = std::exchange(keep_, nullptr);
        if (connection_)
            connection_->close();
        found_(master);
    }

    base::io_loop& loop_;
    std::vector<redis_address> addresses_;
    std::string service_;
    std::string server_name_;
    base::duration timeout_;
    std::shared_ptr<boost::asio::ssl::context> tls_;
    std::move_only_function<void(std::optional<redis_address>)> found_;
    std::shared_ptr<sentinel_question> keep_; // until it has an answer
    std::shared_ptr<redis_connection> connection_;
    std::size_t next_ = 0;
};

}

void ask_sentinels(
    base::io_loop& loop, redis_options const& options, std::shared_ptr<boost::asio::ssl::context> const& tls,
    std::move_only_function<void(std::optional<redis_address>)> found)
{
    std::make_shared<sentinel_question>(loop, options, tls, std::move(found))->ask_next();
}

// --- the core

redis_core::redis_core(store::limits given, redis_options options, std::span<base::io_loop* const> loops)
    : limits(given), set(std::move(options)),
      scripts(set.time_ahead ? redis_scripts::time::moved : redis_scripts::time::own),
      node(set.node.empty() ? random_name() : set.node), tls(set.place.uses_tls ? make_redis_tls(set.tls) : nullptr),
      ear_(*this, *loops.front()), pulse_(loops.front()->timers(), [this] { pulse(); }),
      recheck_(
          loops.front()->timers(),
          [this] {
              recheck(false);
              recheck_.after(set.recheck);
          }),
      silence_(loops.front()->timers(), [this] { note_reach(false); }),
      // Greater than those of a process of the same name before this one.
      watch_number_(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count()))
{
    for (auto* const loop : loops)
        lanes_.push_back(std::make_shared<redis_lane>(*this, *loop, lanes_.empty()));
}

redis_core::~redis_core()
{
    ear_.close();
    for (auto const& lane : lanes_)
        lane->close();
}

void redis_core::start()
{
    for (auto const& lane : lanes_)
        lane->loop().post([this, weak = std::weak_ptr(lane)] {
            auto const on = weak.lock();
            if (!on || !on->is_open())
                return;
            on->start();
            if (on == lanes_.front()) {
                ear_.start();
                pulse();
                recheck_.after(set.recheck);
            }
        });
}

bool redis_core::is_idle() const
{
    return tasks.load() == 0 && std::ranges::all_of(lanes_, [](auto const& each) { return each->is_idle(); });
}

void redis_core::note_health(bool is_up, std::string const& why)
{
    auto const now = first_lane().loop().now();
    bool const was_up = std::exchange(is_up_, is_up);
    if (is_up && !was_up) {
        // A moment is not an outage: nobody's lease is that short.
        if (down_since_ && *down_since_ + std::chrono::seconds(1) <= now)
            settled_at_.store((now + base::duration(lease.load())).time_since_epoch().count());
        down_since_.reset();
        set.log.info("redis is there");
    } else if (!is_up) {
        if (!down_since_)
            down_since_ = now;
        if (was_up || *down_since_ == now)
            set.log.warning("redis at {} is gone: {}", to_string(set.place.addresses.front()), why);
    }
    if (!is_up)
        note_silence();
    else if (!was_up)
        pulse_.after(base::duration::zero()); // its answer is what shows that it can be reached
}

void redis_core::note_silence()
{
    if (is_reached_ && !silence_.is_armed())
        silence_.after(longest_silence);
}

void redis_core::note_reach(bool is_reached)
{
    silence_.cancel();
    if (std::exchange(is_reached_, is_reached) != is_reached)
        of_health->tell(is_reached);
}

bool redis_core::is_settling(base::time_point now) const noexcept
{
    return now.time_since_epoch().count() < settled_at_.load();
}

void redis_core::pulse()
{
    pulse_.after(pulse_interval);
    auto& on = first_lane();
    note_silence();
    if (!is_up_)
        return;
    report_use();
    on.eval(
        redis_script::pulse, {of_fleet("nodes"), of_fleet("totals"), of_fleet("due")}, {node, "60000"},
        [this, &on](result<reply_view> const& reply) {
            if (!reply)
                return;
            if (is_up_) // or it may be of one link of several
                note_reach(true);
            {
                base::lock const lock(use_mutex_);
                known_bytes_ = (*reply)[1].integer();
                known_streams_ = (*reply)[2].integer();
                record_bytes_ = (*reply)[3].count();
                sessions_ = (*reply)[5].count();
            }
            if (uris_version.exchange((*reply)[4].count()) != (*reply)[4].count())
                fetch_uris(on);
        });
    // Who watches nothing any more says so when that has lasted for a second.
    std::vector<std::pair<std::string, std::uint64_t>> left;
    {
        base::lock const lock(watch_mutex_);
        for (auto& [tag, of] : watched_)
            if (of.watchers.empty() && std::exchange(of.is_left, true))
                left.emplace_back(tag, next_watch_number());
        for (auto const& [tag, number] : left)
            watched_.erase(tag);
    }
    for (auto const& [tag, number] : left)
        tell_watch(tag, false, number);
}

// --- asking with what is known of owners

std::string redis_core::packed_leases() const
{
    base::lock const lock(leases_mutex);
    msgpack_map all;
    for (auto const& [owner, ends] : leases)
        all.number(owner, static_cast<std::uint64_t>(std::max<std::int64_t>(ends, 0)));
    return all.take();
}

std::string redis_core::packed_nodes() const
{
    base::lock const lock(leases_mutex);
    msgpack_map all;
    for (auto const& each : nodes)
        all.number(each, 1);
    return all.take();
}

void redis_core::fetch_leases(redis_lane& on, std::move_only_function<void(result<void>)> done)
{
    on.eval(
        redis_script::leases, {of_fleet("leases"), of_fleet("nodes")}, {},
        [this, done = std::move(done)](result<reply_view> const& reply) mutable {
            if (!reply)
                return done(std::unexpected(reply.error()));
            {
                base::lock const lock(leases_mutex);
                leases_at = (*reply)[1].integer();
                leases.clear();
                auto const all = (*reply)[2];
                for (std::size_t i = 0; i + 1 < all.size(); i += 2)
                    leases[all[i].string()] = all[i + 1].integer();
                nodes.clear();
                for (std::size_t i = 0; i < (*reply)[3].size(); ++i)
                    nodes.push_back((*reply)[3][i].string());
            }
            done({});
        });
}

void redis_core::eval_with_leases(redis_lane& on, redis_script which, words keys, words args, reply_done done)
{
    args[2] = packed_leases();
    args[3] = "0";
    auto const keys_now = keys;
    auto const args_now = args;
    on.eval(
        which, keys_now, args_now,
        [this, &on, which, keys = std::move(keys), args = std::move(args),
         done = std::move(done)](result<reply_view> const& reply) mutable {
            if (!reply || (*reply)[0].text() != "who")
                return done(reply);
            fetch_leases(
                on,
                [this, &on, which, keys = std::move(keys), args = std::move(args),
                 done = std::move(done)](result<void> const& fetched) mutable {
                    if (!fetched)
                        return done(std::unexpected(fetched.error()));
                    args[2] = packed_leases();
                    args[3] = "1";
                    on.eval(which, keys, std::move(args), std::move(done));
                });
        });
}

void redis_core::tell(redis_lane& on, redis_script which, session_key const& key, words const& keys, words args)
{
    on.eval(
        which, keys, std::move(args),
        [this, key](result<reply_view> const& reply) {
            if (!reply || (*reply)[0].text() != "ok")
                return;
            note_use(key, *reply);
            hear_reply(tag_of(key), *reply);
        },
        redis_lane::patience::endless);
}

bool redis_core::is_living(std::string_view reader_name) const
{
    auto const end = reader_name.rfind('#');
    if (end == std::string_view::npos)
        return true;
    base::lock const lock(leases_mutex);
    auto const found = leases.find(reader_name.substr(0, end));
    return found == leases.end() || found->second > leases_at;
}

// --- the store

redis_store::redis_store(limits limits, redis_options options, std::span<base::io_loop* const> loops)
    : core_(std::make_shared<redis_core>(limits, std::move(options), loops))
{
    core_->start();
}

redis_store::~redis_store() = default;

redis_store::figures redis_store::count() const noexcept
{
    return {
        core_->counts.commands.load(), core_->counts.errors.load(), core_->counts.reconnects.load(),
        core_->hint_count.load(), core_->missed_count.load()};
}

std::unique_ptr<watch_handle> redis_store::on_health(std::function<void(bool)> hear)
{
    return redis_audience<bool>::add(core_->of_health, std::move(hear));
}

bool redis_store::is_idle() const
{
    return core_->is_idle();
}

}
