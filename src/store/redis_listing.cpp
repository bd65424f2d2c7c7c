// The Redis store's overviews: sessions in order, who is subscribed to what.
#include "store/redis_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

constexpr std::size_t most_of_one_name = 16;
constexpr auto unheard = [](result<reply_view> const&) {};

}

// --- sessions

/// Reads sessions from the index of names, and each from its root.
class redis_core::listing : public std::enable_shared_from_this<listing> {
public:
    listing(redis_core& core, redis_lane& on, std::string after, std::size_t limit, completion<session_list> done)
        : core_(core), on_(on), after_(std::move(after)), limit_(limit), done_(std::move(done))
    {
    }

    void read()
    {
        auto const names = core_.of_fleet("names");
        auto const due = core_.of_fleet("due");
        on_.command({"ZCARD", due}, due, [self = shared_from_this()](result<reply_view> const& reply) {
            if (reply)
                self->listed_.total = reply->count();
        });
        // Two of one name are on one page, or the second would be on none.
        on_.command(
            {"ZRANGEBYLEX", names, after_.empty() ? "-" : '(' + after_ + "/~", "+", "LIMIT", "0",
             std::to_string(limit_ + most_of_one_name)},
            names, [self = shared_from_this()](result<reply_view> const& reply) {
                if (!reply)
                    return self->done_(std::unexpected(reply.error()));
                self->look(*reply);
            });
    }

private:
    void look(reply_view const& members)
    {
        std::string_view last;
        words tags;
        for (std::size_t i = 0; i < members.size(); ++i) {
            auto const member = members[i].text();
            auto const slash = member.find('/');
            auto const name = member.substr(0, slash);
            if (tags.size() >= limit_ && name != last) {
                listed_.has_more = true;
                break;
            }
            last = name;
            tags.emplace_back(member.substr(std::min(slash + 1, member.size())));
        }
        left_ = tags.size();
        found_.resize(left_);
        if (left_ == 0)
            return end();
        for (std::size_t i = 0; i < tags.size(); ++i)
            core_.eval_with_leases(
                on_, redis_script::overview, {core_.root(tags[i])}, {core_.node, "", "", ""},
                [self = shared_from_this(), i, tag = tags[i]](result<reply_view> const& reply) {
                    self->take(i, tag, reply);
                });
    }
    void take(std::size_t at, std::string const& tag, result<reply_view> const& reply)
    {
        if (!reply)
            error_ = reply.error();
        else if ((*reply)[0].text() == "ok")
            fill(found_[at].emplace(), tag, *reply);
        if (--left_ == 0)
            end();
    }
    static void fill(listed_session& shown, std::string const& tag, reply_view const& reply)
    {
        auto record = read_record(reply[1].text()).value_or(session_record());
        record.key = {reply[3].string(), id_in_tag(tag).value_or(base::id128())};
        record.revision = reply[2].count();
        shown.record = std::make_shared<session_record const>(std::move(record));
        shown.age = std::chrono::milliseconds(reply[4].integer());
        shown.idle = std::chrono::milliseconds(reply[5].integer());
        shown.readers = static_cast<std::size_t>(reply[6].count());
        shown.running_calls = static_cast<std::size_t>(reply[7].count());
        for (std::size_t i = 0; i < reply[8].size(); ++i)
            shown.call_owners.push_back(reply[8][i].string());
    }
    void end()
    {
        if (error_)
            return done_(std::unexpected(error_));
        for (auto& each : found_)
            if (each)
                listed_.sessions.push_back(std::move(*each));
        done_(std::move(listed_));
    }

    redis_core& core_;
    redis_lane& on_;
    std::string after_;
    std::size_t limit_;
    completion<session_list> done_;
    session_list listed_;
    std::vector<std::optional<listed_session>> found_;
    std::size_t left_ = 0;
    std::error_code error_;
};

void redis_store::list(std::string_view after, std::size_t limit, completion<session_list> done)
{
    core_->run([core = core_.get(), after = std::string(after), limit, done = std::move(done)](redis_lane& on) mutable {
        std::make_shared<redis_core::listing>(*core, on, std::move(after), limit, std::move(done))->read();
    });
}

void redis_store::named(std::string_view name, completion<std::vector<session_key>> done)
{
    core_->run([core = core_.get(), name = std::string(name), done = std::move(done)](redis_lane& on) mutable {
        auto const names = core->of_fleet("names");
        on.command(
            {"ZRANGEBYLEX", names, '[' + name + '/', '(' + name + '0', "LIMIT", "0", "100"}, names,
            [core, &on, done = std::move(done)](result<reply_view> const& reply) mutable {
                if (!reply)
                    return done(std::unexpected(reply.error()));
                auto const found = std::make_shared<std::vector<session_key>>();
                auto const last = std::make_shared<redis_ending>(
                    on, [found, done = std::move(done)]() mutable { done(std::move(*found)); });
                for (std::size_t i = 0; i < reply->size(); ++i) {
                    auto const member = (*reply)[i].text();
                    std::string const tag(member.substr(std::min(member.find('/') + 1, member.size())));
                    on.command(
                        {"HMGET", core->root(tag), "a", "x", "P"}, core->root(tag),
                        [found, last, tag](result<reply_view> const& kept) {
                            auto const id = id_in_tag(tag);
                            if (kept && id && !(*kept)[0].is_nil() && (*kept)[1].is_nil())
                                found->push_back({(*kept)[2].string(), *id});
                        });
                }
            });
    });
}

// --- subscriptions

void redis_store::subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done)
{
    core_->run([core = core_.get(), key, uri = std::move(uri), limit, done = std::move(done)](redis_lane& on) mutable {
        auto keys = core->keys_of(tag_of(key));
        keys.push_back(keys.front() + ":s");
        words args{
            core->node, core->limits_for(key.principal), uri, std::to_string(subscription_overhead + 2 * uri.size()),
            std::to_string(limit)};
        auto indexed = [core, &on, key, uri, done = std::move(done)](result<stream_id> const& standalone) mutable {
            if (!standalone)
                return done(std::unexpected(standalone.error()));
            on.eval(
                redis_script::index_uri,
                {core->of_fleet("uri:" + uri), core->of_fleet("uris"), core->of_fleet("totals")},
                {uri, write_subscriber({key, *standalone})},
                [core, uri, done = std::move(done)](result<reply_view> const& reply) mutable {
                    if (!reply)
                        return done(std::unexpected(reply.error()));
                    {
                        base::lock const lock(core->uris_mutex);
                        core->uris.insert(uri);
                    }
                    done({});
                });
        };
        core->change<stream_id>(
            on, redis_script::subscribe, key, keys, std::move(args), std::move(indexed),
            [](reply_view const& reply) -> result<stream_id> {
                return base::parse_base62(reply[header_size].text()).value_or(0);
            });
    });
}

void redis_store::unsubscribe(session_key const& key, std::string_view uri, completion<void> done)
{
    core_->run([core = core_.get(), key, uri = std::string(uri), done = std::move(done)](redis_lane& on) mutable {
        auto const root = core->root(tag_of(key));
        words args{core->node, uri, std::to_string(subscription_overhead + 2 * uri.size())};
        core->change<void>(
            on, redis_script::unsubscribe, key, {root, root + ":s"}, std::move(args), std::move(done),
            [core, &on, key, uri](reply_view const& reply) -> result<void> {
                core->unindex(on, key, base::parse_base62(reply[header_size].text()).value_or(0), {uri});
                return {};
            });
    });
}

void redis_core::unindex(redis_lane& on, session_key const& key, stream_id standalone, words const& gone)
{
    if (gone.empty())
        return;
    for (auto const& uri : gone)
        on.eval(
            redis_script::unindex_uri, {of_fleet("uri:" + uri), of_fleet("uris"), of_fleet("totals")},
            {uri, write_subscriber({key, standalone})}, unheard);
    fetch_uris(on);
}

void redis_core::fetch_uris(redis_lane& on)
{
    auto const key = of_fleet("uris");
    on.command({"SMEMBERS", key}, key, [this](result<reply_view> const& reply) {
        if (!reply)
            return;
        boost::unordered_flat_set<std::string> fresh;
        for (std::size_t i = 0; i < reply->size(); ++i)
            fresh.insert((*reply)[i].string());
        base::lock const lock(uris_mutex);
        uris = std::move(fresh);
    });
}

void redis_store::subscribers(
    std::string_view uri, std::optional<session_key> after, std::size_t limit, completion<std::vector<subscriber>> done)
{
    core_->run([core = core_.get(), uri = std::string(uri), after = std::move(after), limit,
                done = std::move(done)](redis_lane& on) mutable {
        auto const key = core->of_fleet("uri:" + uri);
        on.command(
            {"ZRANGEBYLEX", key, after ? '(' + after_subscriber(*after) : "-", "+", "LIMIT", "0",
             std::to_string(limit)},
            key, [done = std::move(done)](result<reply_view> const& reply) mutable {
                if (!reply)
                    return done(std::unexpected(reply.error()));
                std::vector<subscriber> all;
                for (std::size_t i = 0; i < reply->size(); ++i)
                    if (auto each = read_subscriber((*reply)[i].text()))
                        all.push_back(std::move(*each));
                done(std::move(all));
            });
    });
}

std::vector<std::string> redis_store::subscribed_uris() const
{
    base::lock const lock(core_->uris_mutex);
    return {core_->uris.begin(), core_->uris.end()};
}

}
