#include "store/redis_check.hpp"

#include "store/redis_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace belay::store {

namespace {

constexpr int oldest_version = 7;

}

std::vector<redis_finding> judge_redis(redis_facts const& facts, redis_place const& place)
{
    using weight = redis_finding::weight;
    std::vector<redis_finding> found;
    auto const add = [&](weight how, std::string sentence) { found.push_back({how, std::move(sentence)}); };

    auto const version = field_of_info(facts.info, "redis_version");
    int major = 0;
    std::from_chars(version.data(), version.data() + version.size(), major);
    if (version.empty())
        add(weight::fault, "Redis does not say its version: the user needs the right to INFO");
    else if (major < oldest_version)
        add(weight::fault, fmt::format("Redis {} is too old: Belay needs {}.0 or newer", version, oldest_version));

    bool const is_cluster = field_of_info(facts.info, "redis_mode") == "cluster";
    if (is_cluster && place.what != redis_place::kind::cluster)
        add(weight::fault, "this Redis is a node of a cluster: name the store redis+cluster://…");
    if (!is_cluster && !version.empty() && place.what == redis_place::kind::cluster)
        add(weight::fault, "this Redis is no node of a cluster: name the store redis://…");
    if (field_of_info(facts.info, "role") == "slave" && place.what == redis_place::kind::single)
        add(weight::fault, "this Redis is a replica, which cannot be written to: name its master");

    if (auto const policy = field_of_info(facts.info, "maxmemory_policy"); !policy.empty() && policy != "noeviction") {
        bool const has_limit = field_of_info(facts.info, "maxmemory") != "0";
        add(has_limit ? weight::fault : weight::note,
            fmt::format(
                "maxmemory-policy is {}: Redis may drop parts of sessions when it is full; set it to noeviction",
                policy));
    }
    if (auto const log = field_of_info(facts.info, "aof_enabled"); log == "0") {
        if (facts.save_points.empty())
            add(weight::note,
                "Redis keeps nothing on disk (appendonly no, no save points): when it restarts, all sessions and the "
                "answers of their calls are lost");
        else
            add(weight::note,
                "Redis keeps no log on disk (appendonly no): when it stops without notice, what happened since its "
                "last save point is lost, answers of calls among it");
    }
    if (!facts.refused.empty())
        add(weight::fault, fmt::format("the user of Redis has no right to: {}", fmt::join(facts.refused, ", ")));
    return found;
}

namespace {

class checking final : public redis_connection::events, public std::enable_shared_from_this<checking> {
public:
    checking(
        base::io_loop& loop, redis_options const& options,
        std::move_only_function<void(std::vector<redis_finding>)> done)
        : loop_(loop), place_(options.place), prefix_(options.prefix), done_(std::move(done)),
          deadline_(loop.timers(), [this] { on_lost("it did not answer in time"); })
    {
        settings_.address = options.place.addresses.front();
        settings_.server_name = options.tls.server_name;
        settings_.timeout = options.timeout;
        settings_.greeting = greeting_of(options.place);
        if (options.place.uses_tls)
            settings_.tls = make_redis_tls(options.tls);
    }

    void start()
    {
        keep_ = shared_from_this();
        connection_ = std::make_shared<redis_connection>(loop_, settings_, *this);
        connection_->start();
    }

private:
    bool on_ready(std::vector<redis_reply> const&) override
    {
        deadline_.after(settings_.timeout);
        std::string_view script;
        for (auto const* each = script_files; !each->name.empty(); ++each)
            if (each->name == "check")
                script = each->text;
        words probe{"EVAL", std::string(script), "4"};
        for (auto const* each : {"h", "l", "z", "s"})
            probe.push_back(prefix_ + "{check}:" + each);
        probe.push_back(prefix_ + "n:check");
        // SUBSCRIBE comes last: after it the connection is of no other use.
        for (auto const& command :
             {words{"INFO"}, words{"CONFIG", "GET", "save"}, words{"SCRIPT", "LOAD", "return 1"}, probe,
              words{"EVALSHA", std::string(40, '0'), "0"}, words{"SUBSCRIBE", prefix_ + "n:check"}})
            connection_->write(redis_bytes(command));
        return true;
    }
    void on_reply(redis_reply reply) override
    {
        reply_view const view(reply.get());
        auto const note_refused = [&](char const* name) {
            if (view.is_error() && view.text().starts_with("NOPERM"))
                facts_.refused.emplace_back(name);
        };
        switch (next_++) {
        case 0: facts_.info = view.string(); break;
        case 1: facts_.save_points = view.is_error() ? "?" : view[1].string(); break;
        case 2: note_refused("SCRIPT LOAD"); break;
        case 3:
            note_refused("EVAL");
            for (std::size_t i = 0; i < view.size(); ++i)
                facts_.refused.push_back(view[i].string());
            break;
        case 4: note_refused("EVALSHA"); break;
        case 5:
            note_refused("SUBSCRIBE");
            end(judge_redis(facts_, place_));
            break;
        default: break;
        }
    }
    void on_lost(std::string const& why) override
    {
        end(
            {{redis_finding::weight::fault,
              fmt::format("Redis at {} cannot be used: {}", to_string(settings_.address), why)}});
    }
    void end(std::vector<redis_finding> found)
    {
        auto const keep = std::exchange(keep_, nullptr);
        if (!keep)
            return;
        deadline_.cancel();
        if (connection_)
            connection_->close();
        done_(std::move(found));
    }

    base::io_loop& loop_;
    redis_place place_;
    std::string prefix_;
    redis_connection::settings settings_;
    std::move_only_function<void(std::vector<redis_finding>)> done_;
    base::timer deadline_;
    std::shared_ptr<checking> keep_; // until it has an outcome
    std::shared_ptr<redis_connection> connection_;
    redis_facts facts_;
    int next_ = 0;
};

}

void check_redis(
    base::io_loop& loop, redis_options const& options, std::move_only_function<void(std::vector<redis_finding>)> done)
{
    std::make_shared<checking>(loop, options, std::move(done))->start();
}

}
