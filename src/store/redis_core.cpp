// The Redis store's lanes: how commands get to Redis, and how it fares.
#include "store/redis_slot.hpp"
#include "store/redis_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace belay::store {

namespace {

constexpr base::duration pulse_interval = std::chrono::seconds(1);

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
    : core_(core), loop_(loop), is_first_(is_first)
{
    redis_link_settings settings;
    settings.connection.address = core.set.place.addresses.front();
    settings.connection.tls = core.tls;
    settings.connection.server_name = core.set.tls.server_name;
    settings.connection.timeout = core.set.timeout;
    settings.connection.greeting = greeting_of(core.set.place);
    settings.first_script = settings.connection.greeting.size();
    for (auto const& each : core.scripts.all())
        settings.connection.greeting.push_back({"SCRIPT", "LOAD", each.text});
    settings.timeout = core.set.timeout;
    settings.give_up = core.set.give_up;
    settings.most_bytes = core.set.most_waiting_bytes;
    link_ = std::make_shared<redis_link>(loop, std::move(settings), *this, core.counts);
}

void redis_lane::start()
{
    link_->start();
}

void redis_lane::close()
{
    if (auto const link = std::exchange(link_, nullptr))
        link->close();
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
    if (!link_)
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
    link_->send(std::move(made));
}

void redis_lane::on_up()
{
    if (is_first_)
        core_.note_health(true, {});
}

void redis_lane::on_down(std::string const& why)
{
    if (is_first_)
        core_.note_health(false, why);
}

void redis_lane::on_redirect(redis_command command, redis_verdict, std::string_view)
{
    command.done(failure(errc::unavailable));
}

redis_address redis_lane::find_master(redis_address const& former)
{
    return former;
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
    if (set.on_health && (is_up != was_up || !is_up))
        set.on_health(is_up, why);
}

bool redis_core::is_settling(base::time_point now) const noexcept
{
    return now.time_since_epoch().count() < settled_at_.load();
}

void redis_core::pulse()
{
    pulse_.after(pulse_interval);
    auto& on = first_lane();
    if (!is_up_)
        return;
    report_use();
    on.eval(
        redis_script::pulse, {of_fleet("nodes"), of_fleet("totals"), of_fleet("due")}, {node, "60000"},
        [this, &on](result<reply_view> const& reply) {
            if (!reply)
                return;
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
    std::vector<std::string> left;
    {
        base::lock const lock(watch_mutex_);
        for (auto& [tag, of] : watched_)
            if (of.watchers.empty() && std::exchange(of.is_left, true))
                left.push_back(tag);
        for (auto const& tag : left)
            watched_.erase(tag);
    }
    for (auto const& tag : left)
        tell_watch(tag, false);
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

bool redis_store::is_idle() const
{
    return core_->is_idle();
}

}
