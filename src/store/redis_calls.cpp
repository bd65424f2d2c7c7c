// The Redis store's calls: leases, taking over, finding, and the letters to them.
#include "store/redis_state.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace belay::store {

namespace {

constexpr std::size_t most_dead = 1000; // owners that one look for lapsed calls goes through
constexpr base::duration dead_memory = std::chrono::hours(24);

/// A member of an owner's index: "tag/stream".
struct place {
    std::string tag;
    std::string stream;
};

place place_of(std::string_view member)
{
    auto const slash = member.rfind('/');
    if (slash == std::string_view::npos)
        return {std::string(member), {}};
    return {std::string(member.substr(0, slash)), std::string(member.substr(slash + 1))};
}

}

// --- leases

void redis_store::renew(std::string const& owner, base::duration lease, completion<void> done)
{
    core_->run([core = core_.get(), owner, lease, done = std::move(done)](redis_lane& on) mutable {
        core->lease.store(std::min<base::duration>(lease, std::chrono::minutes(10)).count());
        on.eval(
            redis_script::renew, {core->of_fleet("leases")}, {owner, milliseconds(lease)},
            [core, owner, done = std::move(done)](result<reply_view> const& reply) mutable {
                if (!reply)
                    return done(std::unexpected(reply.error()));
                {
                    base::lock const lock(core->leases_mutex);
                    core->leases[owner] = (*reply)[1].integer();
                }
                done({});
            });
    });
}

/// Reads an owner's calls page by page, checks them against their sessions, and forgets those that are of it no more.
class redis_core::owned_reading : public std::enable_shared_from_this<owned_reading> {
public:
    using done_function = std::move_only_function<void(result<std::vector<call_ref>>)>;

    owned_reading(
        redis_core& core, redis_lane& on, std::string owner, std::string after, std::size_t limit, done_function done)
        : core_(core), on_(on), owner_(std::move(owner)), key_(core.of_fleet("calls:" + owner_)),
          after_(std::move(after)), limit_(limit), done_(std::move(done))
    {
    }

    void read()
    {
        auto const from = after_.empty() ? std::string("-") : '(' + after_;
        on_.command(
            {"ZRANGEBYLEX", key_, from, "+", "LIMIT", "0", std::to_string(limit_ - found_.size())}, key_,
            [self = shared_from_this()](result<reply_view> const& reply) {
                if (!reply)
                    return self->done_(std::unexpected(reply.error()));
                self->check(*reply);
            });
    }

private:
    void check(reply_view const& members)
    {
        is_last_ = members.size() < limit_ - found_.size();
        if (members.size() == 0)
            return done_(std::move(found_));
        after_ = members[members.size() - 1].string();
        // Those of one session are asked for at once.
        std::vector<std::pair<std::string, words>> sessions;
        for (std::size_t i = 0; i < members.size(); ++i) {
            auto at = place_of(members[i].text());
            if (sessions.empty() || sessions.back().first != at.tag)
                sessions.push_back({at.tag, {}});
            sessions.back().second.push_back(std::move(at.stream));
        }
        left_ = sessions.size();
        parts_.assign(left_, {});
        for (std::size_t at = 0; at < sessions.size(); ++at) {
            auto const& each = sessions[at];
            words args{core_.node, owner_};
            args.insert(args.end(), each.second.begin(), each.second.end());
            on_.eval(
                redis_script::running, {core_.root(each.first)}, std::move(args),
                [self = shared_from_this(), at, each](result<reply_view> const& reply) {
                    self->take(at, each.first, each.second, reply);
                });
        }
    }
    void take(std::size_t at, std::string const& tag, words const& streams, result<reply_view> const& reply)
    {
        if (!reply) {
            error_ = reply.error();
        } else if (auto const id = id_in_tag(tag)) {
            boost::unordered_flat_set<std::string> living;
            for (std::size_t i = 0; i < (*reply)[2].size(); ++i) {
                auto const each = (*reply)[2][i];
                living.insert(each[0].string());
                parts_[at].push_back(
                    {{{(*reply)[1].string(), *id}, base::parse_base62(each[0].text()).value_or(0)},
                     owner_,
                     each[1].count(),
                     0,
                     each[2].count()});
            }
            for (auto const& each : streams)
                if (!living.contains(each))
                    core_.forget_call(on_, owner_, tag + '/' + each);
        }
        if (--left_ > 0)
            return;
        // Answers of several masters come in any order; pages go on where the last one of them ends.
        for (auto& part : parts_)
            std::ranges::move(part, std::back_inserter(found_));
        if (error_)
            return done_(std::unexpected(error_));
        if (is_last_ || found_.size() >= limit_)
            return done_(std::move(found_));
        read();
    }

    redis_core& core_;
    redis_lane& on_;
    std::string owner_;
    std::string key_;
    std::string after_;
    std::size_t limit_;
    done_function done_;
    std::vector<call_ref> found_;
    std::vector<std::vector<call_ref>> parts_; // of a page, one for each session
    std::size_t left_ = 0;
    bool is_last_ = false;
    std::error_code error_;
};

void redis_core::announce(
    redis_lane& on, std::string const& owner, std::string member, std::move_only_function<void(result<void>)> then)
{
    words const keys{of_fleet("leases"), of_fleet("calls:" + owner)};
    if (set.place.what != redis_place::kind::cluster) {
        // What comes behind it on the same link comes after it.
        on.eval(redis_script::announce, keys, {owner, std::move(member)}, [](auto const&) {});
        return then({});
    }
    on.eval(
        redis_script::announce, keys, {owner, std::move(member)},
        [then = std::move(then)](result<reply_view> const& reply) mutable {
            if (reply)
                then({});
            else
                then(std::unexpected(reply.error()));
        });
}

void redis_core::forget_call(redis_lane& on, std::string const& owner, std::string member)
{
    auto const key = of_fleet("calls:" + owner);
    on.command({"ZREM", key, std::move(member)}, key, [](auto const&) {});
}

void redis_core::find_lapsed(
    redis_lane& on, words owners, std::size_t limit, std::vector<call_ref> found,
    completion<std::vector<call_ref>> done)
{
    if (owners.empty() || found.size() >= limit)
        return done(std::move(found));
    auto owner = std::move(owners.back());
    owners.pop_back();
    auto const left = limit - found.size();
    std::make_shared<owned_reading>(
        *this, on, std::move(owner), std::string(), left,
        [this, &on, owners = std::move(owners), limit, found = std::move(found),
         done = std::move(done)](result<std::vector<call_ref>> more) mutable {
            if (!more)
                return done(std::unexpected(more.error()));
            std::ranges::move(*more, std::back_inserter(found));
            find_lapsed(on, std::move(owners), limit, std::move(found), std::move(done));
        })
        ->read();
}

void redis_store::lapsed(std::size_t limit, completion<std::vector<call_ref>> done)
{
    core_->run([core = core_.get(), limit, done = std::move(done)](redis_lane& on) mutable {
        if (core->is_settling(on.loop().now()))
            return done(std::vector<call_ref>());
        core->fetch_leases(on, [core, &on, limit, done = std::move(done)](result<void> const& fetched) mutable {
            if (!fetched)
                return done(std::unexpected(fetched.error()));
            words dead{""}; // whose calls were released
            words forgotten;
            bool has_more_dead = false;
            {
                base::lock const lock(core->leases_mutex);
                for (auto const& [owner, ends] : core->leases)
                    if (ends <= core->leases_at) {
                        has_more_dead = core->dead_owners.insert(owner).second || has_more_dead;
                        if (dead.size() < most_dead)
                            dead.push_back(owner);
                        auto const since = core->leases_at - ends;
                        if (since > std::chrono::duration_cast<std::chrono::milliseconds>(dead_memory).count())
                            forgotten.push_back(owner);
                    }
                words forgotten_before;
                for (auto const& each : core->dead_owners)
                    if (!core->leases.contains(each))
                        forgotten_before.push_back(each);
                for (auto const& each : forgotten_before)
                    core->dead_owners.erase(each);
            }
            if (has_more_dead)
                core->wake_for_dead();
            for (auto const& owner : forgotten)
                on.eval(
                    redis_script::forget, {core->of_fleet("leases"), core->of_fleet("calls:" + owner)},
                    {owner, milliseconds(dead_memory)}, [](auto const&) {});
            core->find_lapsed(on, std::move(dead), limit, {}, std::move(done));
        });
    });
}

void redis_store::owned(
    std::string const& owner, std::optional<stream_key> after, std::size_t limit,
    completion<std::vector<call_ref>> done)
{
    core_->run(
        [core = core_.get(), owner, after = std::move(after), limit, done = std::move(done)](redis_lane& on) mutable {
            if (limit == 0)
                return done(std::vector<call_ref>());
            auto const from = after ? tag_of(after->session) + '/' + stream_name(after->stream) : std::string();
            std::make_shared<redis_core::owned_reading>(*core, on, owner, from, limit, std::move(done))->read();
        });
}

// --- taking over

void redis_store::claim(stream_key const& key, fence seen, std::string const& owner, completion<claimed_call> done)
{
    core_->run([core = core_.get(), key, seen, owner, done = std::move(done)](redis_lane& on) mutable {
        auto const tag = tag_of(key.session);
        auto const stream = stream_name(key.stream);
        core->announce(
            on, owner, tag + '/' + stream, [=, &on, done = std::move(done)](result<void> const& there) mutable {
                if (!there)
                    return done(std::unexpected(there.error()));
                core->change<claimed_call>(
                    on, redis_script::claim, key.session, core->keys_of(tag),
                    {core->node, stream, std::to_string(seen), owner}, std::move(done),
                    [core, &on, tag, stream, owner](reply_view const& reply) -> result<claimed_call> {
                        auto const part = [&](std::size_t index) { return reply[header_size + index]; };
                        auto meta = read_meta(part(1).text());
                        if (!meta)
                            return failure(errc::unavailable);
                        claimed_call claimed;
                        claimed.fence = part(0).count();
                        claimed.meta = std::move(*meta);
                        claimed.top = {part(2).count(), part(3).count(), part(4).count()};
                        for (std::size_t i = 0; i < part(5).size(); ++i)
                            claimed.unanswered.push_back(static_cast<std::uint32_t>(part(5)[i].integer()));
                        for (std::size_t i = 0; i + 1 < part(6).size(); i += 2)
                            claimed.questions.emplace_back(
                                static_cast<std::uint32_t>(part(6)[i].integer()), part(6)[i + 1].count());
                        claimed.attempt = static_cast<std::uint32_t>(part(7).integer());
                        claimed.age = std::chrono::milliseconds(part(8).integer());
                        claimed.last_question = static_cast<std::uint32_t>(part(9).integer());
                        if (auto const progress = part(10).text(); !progress.empty()) {
                            double value = 0;
                            std::from_chars(progress.data(), progress.data() + progress.size(), value);
                            claimed.progress = value;
                        }
                        claimed.repeats = base::parse_base62(part(11).text());
                        if (auto const former = part(12).text(); former != owner)
                            core->forget_call(on, std::string(former), tag + '/' + stream);
                        return claimed;
                    });
            });
    });
}

void redis_store::release(stream_key const& key, fence fence, bool has_run, completion<void> done)
{
    core_->run([core = core_.get(), key, fence, has_run, done = std::move(done)](redis_lane& on) mutable {
        auto const tag = tag_of(key.session);
        auto const stream = stream_name(key.stream);
        core->announce(on, "", tag + '/' + stream, [=, &on, done = std::move(done)](result<void> const& there) mutable {
            if (!there)
                return done(std::unexpected(there.error()));
            core->change<void>(
                on, redis_script::release, key.session, core->keys_of(tag),
                {core->node, stream, std::to_string(fence), has_run ? "1" : "0"}, std::move(done),
                [core, &on, tag, stream](reply_view const& reply) -> result<void> {
                    if (auto const former = reply[header_size].text(); !former.empty())
                        core->forget_call(on, std::string(former), tag + '/' + stream);
                    return {};
                });
        });
    });
}

void redis_store::find(session_key const& key, std::string_view request_id, completion<call_ref> done)
{
    core_->run([core = core_.get(), key, id = std::string(request_id), done = std::move(done)](redis_lane& on) mutable {
        core->ask<call_ref>(
            on, redis_script::find, {core->root(tag_of(key))}, {core->node, id}, std::move(done),
            [key](reply_view const& reply) -> result<call_ref> {
                return call_ref{
                    {key, base::parse_base62(reply[1].text()).value_or(0)},
                    reply[2].string(),
                    reply[3].count(),
                    static_cast<std::uint32_t>(reply[4].integer()),
                    reply[5].count()};
            });
    });
}

// --- letters

void redis_store::post(stream_key const& key, letter letter, completion<void> done)
{
    core_->run([core = core_.get(), key, letter = std::move(letter), done = std::move(done)](redis_lane& on) mutable {
        core->change<void>(
            on, redis_script::post, key.session, core->keys_of(tag_of(key.session)),
            {core->node, core->limits_for(key.session.principal), stream_name(key.stream),
             std::to_string(static_cast<int>(letter.what)), std::to_string(letter.number), std::move(letter.body)},
            std::move(done), [](reply_view const&) -> result<void> { return {}; });
    });
}

void redis_store::read_mail(
    stream_key const& key, fence fence, std::uint64_t after, completion<std::vector<letter>> done)
{
    core_->run([core = core_.get(), key, fence, after, done = std::move(done)](redis_lane& on) mutable {
        core->ask<std::vector<letter>>(
            on, redis_script::mail, {core->root(tag_of(key.session))},
            {core->node, stream_name(key.stream), std::to_string(fence), std::to_string(after)}, std::move(done),
            [](reply_view const& reply) -> result<std::vector<letter>> {
                std::vector<letter> letters;
                for (std::size_t i = 0; i < reply[1].size(); ++i) {
                    auto const each = reply[1][i];
                    letters.push_back(
                        {static_cast<letter::kind>(each[0].integer()), static_cast<std::uint32_t>(each[1].integer()),
                         each[2].string(), each[3].count(), each[4].string()});
                }
                return letters;
            });
    });
}

}
