// The Redis store's sessions: their records, what holds them, when they go.
#include "store/redis_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

constexpr std::size_t collects_from = 8; // streams whose lists are garbage
constexpr int most_tries = 8;

std::size_t charge_of(session_record const& record) noexcept
{
    return session_overhead + record.key.principal.size() + record.version.size() + record.client_info.size()
        + record.client_capabilities.size();
}

result<record_ptr> record_of(session_key const& key, std::string_view text, std::uint64_t revision)
{
    auto record = read_record(text);
    if (!record)
        return failure(errc::unavailable);
    record->key = key;
    record->revision = revision;
    return std::make_shared<session_record const>(std::move(*record));
}

std::vector<std::string_view> words_of(std::string_view text)
{
    std::vector<std::string_view> all;
    while (!text.empty()) {
        auto const end = std::min(text.find(' '), text.size());
        if (end > 0)
            all.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return all;
}

}

// --- records

void redis_store::create(session_record record, completion<record_ptr> done)
{
    core_->run([core = core_.get(), record = std::move(record), done = std::move(done)](redis_lane& on) mutable {
        auto const& key = record.key;
        core->know_principal(on, key.principal);
        auto first_look = core->limits.session_idle;
        if (core->limits.session_lifetime > base::duration::zero())
            first_look = std::min(first_look, core->limits.session_lifetime);
        words const indexes{core->of_fleet("due"), core->of_fleet("names")};
        words admission{tag_of(key), name_member(key), std::to_string(core->limits.sessions), milliseconds(first_look)};
        on.eval(
            redis_script::admit, indexes, std::move(admission),
            [core, &on, record = std::move(record), done = std::move(done)](result<reply_view> const& reply) mutable {
                if (!reply)
                    return done(std::unexpected(reply.error()));
                if (auto const status = (*reply)[0].text(); status != "ok")
                    return done(failure(errc_of(status)));
                core->note_sessions((*reply)[1].count());
                auto const key = record.key;
                words args{
                    core->node,
                    core->limits_for(key.principal),
                    write_record(record),
                    std::to_string(charge_of(record)),
                    stream_name(record.standalone),
                    key.principal,
                    std::to_string(record.revision),
                    core->set.epoch ? std::to_string(*core->set.epoch) : ""};
                completion<record_ptr> made
                    = [core, &on, key, done = std::move(done)](result<record_ptr> outcome) mutable {
                          if (outcome || outcome.error() != errc::no_space)
                              return done(std::move(outcome));
                          words const all{core->of_fleet("due"), core->of_fleet("names"), core->of_fleet("aging")};
                          on.eval(
                              redis_script::retire, all, {tag_of(key), name_member(key)},
                              [core, done = std::move(done),
                               outcome = std::move(outcome)](result<reply_view> const& retired) mutable {
                                  if (retired)
                                      core->note_sessions((*retired)[1].count());
                                  done(std::move(outcome));
                              });
                      };
                core->change<record_ptr>(
                    on, redis_script::create, key, core->keys_of(tag_of(key)), std::move(args), std::move(made),
                    [record = std::make_shared<session_record const>(std::move(record))](
                        reply_view const&) -> result<record_ptr> { return record; });
            });
    });
}

void redis_store::load(session_key const& key, completion<record_ptr> done)
{
    core_->run([core = core_.get(), key, done = std::move(done)](redis_lane& on) mutable {
        core->know_principal(on, key.principal);
        core->change<record_ptr>(
            on, redis_script::load, key, {core->root(tag_of(key))}, {}, std::move(done),
            [key](reply_view const& reply) {
                return record_of(key, reply[header_size].text(), reply[header_size + 1].count());
            });
    });
}

void redis_store::update(session_record record, completion<record_ptr> done)
{
    core_->run([core = core_.get(), record = std::move(record), done = std::move(done)](redis_lane& on) mutable {
        auto const key = record.key;
        words args{
            core->node,
            core->limits_for(key.principal),
            write_record(record),
            std::to_string(charge_of(record)),
            std::to_string(record.revision),
            std::to_string(record.revision + 1)};
        ++record.revision;
        core->change<record_ptr>(
            on, redis_script::update, key, core->keys_of(tag_of(key)), std::move(args), std::move(done),
            [record = std::make_shared<session_record const>(std::move(record))](
                reply_view const&) -> result<record_ptr> { return record; });
    });
}

void redis_store::touch(std::span<session_key const> in_use)
{
    core_->run([core = core_.get(), keys = std::vector(in_use.begin(), in_use.end())](redis_lane& on) {
        for (auto const& key : keys)
            on.eval(redis_script::touch, {core->root(tag_of(key))}, {}, [](result<reply_view> const&) {});
    });
}

// --- ends

void redis_store::close(session_key const& key, completion<std::vector<call_ref>> done)
{
    core_->run([core = core_.get(), key, done = std::move(done)](redis_lane& on) mutable {
        auto const root = core->root(tag_of(key));
        core->change<std::vector<call_ref>>(
            on, redis_script::close, key, {root, root + ":s"}, {core->node}, std::move(done),
            [core, &on, key](reply_view const& reply) -> result<std::vector<call_ref>> {
                std::vector<call_ref> told;
                auto const all = reply[header_size];
                for (std::size_t i = 0; i < all.size(); ++i)
                    told.push_back(
                        {{key, base::parse_base62(all[i][0].text()).value_or(0)},
                         all[i][1].string(),
                         all[i][2].count(),
                         0,
                         all[i][3].count()});
                words uris;
                for (std::size_t i = 0; i < reply[header_size + 1].size(); ++i)
                    uris.push_back(reply[header_size + 1][i].string());
                core->unindex(on, key, base::parse_base62(reply[header_size + 2].text()).value_or(0), uris);
                auto const ends = reply[header_size + 3].integer()
                    + std::chrono::duration_cast<std::chrono::milliseconds>(closed_session_limit).count();
                auto const due = core->of_fleet("due");
                on.command({"ZADD", due, "XX", std::to_string(ends), tag_of(key)}, due, [](auto const&) {});
                auto const names = core->of_fleet("names");
                on.command({"ZREM", names, name_member(key)}, names, [](auto const&) {});
                return told;
            });
    });
}

void redis_store::is_quiet(session_key const& key, completion<bool> done)
{
    core_->run([core = core_.get(), key, done = std::move(done)](redis_lane& on) mutable {
        core->eval_with_leases(
            on, redis_script::quiet, {core->root(tag_of(key))}, {core->node, "", "", ""},
            [done = std::move(done)](result<reply_view> const& reply) mutable {
                if (!reply)
                    return done(std::unexpected(reply.error()));
                done((*reply)[1].integer() != 0);
            });
    });
}

void redis_store::remove(session_key const& key, completion<void> done)
{
    core_->run([core = core_.get(), key, done = std::move(done)](redis_lane& on) mutable {
        core->remove_all(on, key, std::move(done));
    });
}

void redis_core::remove_all(redis_lane& on, session_key const& key, completion<void> done)
{
    remove_with(on, key, {}, most_tries, std::move(done));
}

void redis_core::remove_with(redis_lane& on, session_key const& key, words streams, int tries, completion<void> done)
{
    auto const tag = tag_of(key);
    auto keys = keys_of(tag);
    keys.push_back(keys.front() + ":s");
    words args{node};
    for (auto const& each : streams) {
        keys.push_back(list_of(tag, each));
        args.push_back(each);
    }
    on.eval(
        redis_script::remove, keys, std::move(args),
        [this, &on, key, tag, tries, done = std::move(done)](result<reply_view> const& reply) mutable {
            if (!reply)
                return done(std::unexpected(reply.error()));
            auto const status = (*reply)[0].text();
            if (status == "more") {
                if (tries == 0)
                    return done(failure(errc::unavailable));
                words all;
                for (std::size_t i = 0; i < (*reply)[1].size(); ++i)
                    all.push_back((*reply)[1][i].string());
                return remove_with(on, key, std::move(all), tries - 1, std::move(done));
            }
            if (status == "ok") {
                note_use(key, *reply);
                hear_reply(tag, *reply);
                words subscribed;
                for (std::size_t i = 0; i < (*reply)[header_size].size(); ++i)
                    subscribed.push_back((*reply)[header_size][i].string());
                unindex(on, key, base::parse_base62((*reply)[header_size + 2].text()).value_or(0), subscribed);
                auto const calls = (*reply)[header_size + 1];
                for (std::size_t i = 0; i < calls.size(); ++i) {
                    auto const of_owner = of_fleet("calls:" + calls[i][1].string());
                    on.command({"ZREM", of_owner, tag + '/' + calls[i][0].string()}, of_owner, [](auto const&) {});
                }
            }
            on.eval(
                redis_script::retire, {of_fleet("due"), of_fleet("names"), of_fleet("aging")}, {tag, name_member(key)},
                [this, done = std::move(done)](result<reply_view> const& retired) mutable {
                    if (!retired)
                        return done(std::unexpected(retired.error()));
                    note_sessions((*retired)[1].count());
                    done({});
                });
        });
}

// --- what is due

void redis_store::expire(std::size_t limit, completion<expired_sessions> done)
{
    core_->run([core = core_.get(), limit, done = std::move(done)](redis_lane& on) mutable {
        if (core->is_settling(on.loop().now()))
            return done(expired_sessions());
        core->fetch_leases(on, [core, &on, limit, done = std::move(done)](result<void> const& fetched) mutable {
            if (!fetched)
                return done(std::unexpected(fetched.error()));
            auto const due = core->of_fleet("due");
            on.eval(
                redis_script::due, {due}, {std::to_string(limit), "30000"},
                [core, &on, done = std::move(done)](result<reply_view> const& reply) mutable {
                    if (!reply)
                        return done(std::unexpected(reply.error()));
                    auto const found = std::make_shared<expired_sessions>();
                    auto const last = std::make_shared<redis_ending>(
                        on, [found, done = std::move(done)]() mutable { done(std::move(*found)); });
                    auto const all = (*reply)[1];
                    for (std::size_t i = 0; i < all.size(); ++i)
                        core->look_at(
                            on, all[i].string(),
                            [found](session_key const& key, bool is_removed) {
                                (is_removed ? found->removed : found->overdue).push_back(key);
                            },
                            [last] {});
                });
        });
    });
}

void redis_core::look_at(
    redis_lane& on, std::string const& tag, std::function<void(session_key const&, bool)> found,
    std::function<void()> done)
{
    eval_with_leases(
        on, redis_script::look, keys_of(tag),
        {node, "", "", "", milliseconds(limits.session_idle), milliseconds(limits.session_lifetime),
         milliseconds(closed_session_limit), packed_nodes()},
        [this, &on, tag, found = std::move(found), done = std::move(done)](result<reply_view> const& reply) {
            auto const id = id_in_tag(tag);
            if (!reply || !id)
                return done(); // somebody looks again
            auto const status = (*reply)[0].text();
            auto const due = of_fleet("due");
            if (auto const told = (*reply)[4].text(); !told.empty())
                hear(tag, (*reply)[5].count(), told, true);
            auto const put_off = [&] {
                on.command({"ZADD", due, "XX", std::to_string((*reply)[1].integer()), tag}, due, [](auto const&) {});
                // Whoever was to schedule it may have died before.
                if (auto const aging = (*reply)[2].integer(); aging > 0)
                    schedule_aging(on, tag, aging);
            };
            if (status == "later") {
                put_off();
                return done();
            }
            if (status == "overdue") {
                put_off();
                found({(*reply)[3].string(), *id}, false);
                return done();
            }
            if (status == "gone") { // of the session only its places in indexes are left
                on.eval(
                    redis_script::retire, {due, of_fleet("names"), of_fleet("aging")},
                    {tag, base::log_name(*id) + '/' + tag}, [this](result<reply_view> const& retired) {
                        if (retired)
                            note_sessions((*retired)[1].count());
                    });
                return done();
            }
            session_key const key{(*reply)[2].string(), *id};
            remove_all(on, key, [key, found, done](result<void> const& removed) {
                if (removed)
                    found(key, true);
                done();
            });
        });
}

// --- age

void redis_core::schedule_aging(redis_lane& on, std::string_view tag, std::int64_t when)
{
    auto const aging = of_fleet("aging");
    on.command({"ZADD", aging, "LT", std::to_string(when), std::string(tag)}, aging, [](auto const&) {});
}

void redis_store::sweep()
{
    core_->run([core = core_.get()](redis_lane& on) {
        on.eval(
            redis_script::due, {core->of_fleet("aging")}, {"1000", "30000"},
            [core, &on](result<reply_view> const& reply) {
                if (!reply)
                    return;
                for (std::size_t i = 0; i < (*reply)[1].size(); ++i) {
                    auto const tag = (*reply)[1][i].string();
                    on.command(
                        {"HGET", core->root(tag), "P"}, core->root(tag), [core, &on, tag](auto const& principal) {
                            if (auto const id = id_in_tag(tag); id && principal)
                                core->age_session(on, {principal->string(), *id}, {}, most_tries);
                        });
                }
            });
        words const keys{core->of_fleet("records"), core->of_fleet("record_ends"), core->of_fleet("totals")};
        on.eval(redis_script::old_records, keys, {}, [core](result<reply_view> const& reply) {
            if (reply)
                core->note_records((*reply)[1].count());
        });
    });
}

void redis_core::age_session(redis_lane& on, session_key const& key, words const& streams, int tries)
{
    auto const tag = tag_of(key);
    auto keys = keys_of(tag);
    words args{node, limits_for(key.principal)};
    for (auto const& each : streams) {
        keys.push_back(list_of(tag, each));
        args.push_back(each);
    }
    on.eval(redis_script::age, keys, std::move(args), [this, &on, key, tag, tries](result<reply_view> const& reply) {
        if (!reply)
            return;
        auto const aging = of_fleet("aging");
        if ((*reply)[0].text() != "ok") {
            on.command({"ZREM", aging, tag}, aging, [](auto const&) {});
            return;
        }
        note_use(key, *reply);
        hear_reply(tag, *reply);
        collect(on, tag, (*reply)[header_size + 2].text());
        auto const missing = (*reply)[header_size];
        if (missing.size() > 0 && tries > 0) {
            words all;
            for (std::size_t i = 0; i < missing.size(); ++i)
                all.push_back(missing[i].string());
            return age_session(on, key, all, tries - 1);
        }
        if (auto const again = (*reply)[header_size + 1].integer(); again > 0)
            on.command({"ZADD", aging, std::to_string(again), tag}, aging, [](auto const&) {});
        else
            on.command({"ZREM", aging, tag}, aging, [](auto const&) {});
    });
}

void redis_core::collect(redis_lane& on, std::string_view tag, std::string_view garbage)
{
    auto const streams = words_of(garbage);
    if (streams.size() < collects_from)
        return;
    words keys{root(tag)};
    words args{node};
    for (auto const each : streams) {
        keys.push_back(list_of(tag, each));
        args.emplace_back(each);
    }
    on.eval(redis_script::collect, keys, std::move(args), [](auto const&) {});
}

}
