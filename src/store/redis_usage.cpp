// What the Redis store uses: sessions are counted exactly in their own script; what principals and the whole use is
// reported once a second, and known here as it was then and as it has changed on this node since.
#include "store/redis_state.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace belay::store {

namespace {

constexpr base::duration principal_memory = std::chrono::minutes(10);

/// What a principal is called in Redis.
std::string name_of(std::string const& principal)
{
    return principal.empty() ? std::string("-") : tag_of({principal, {}}).substr(22);
}

std::size_t not_negative(std::int64_t value) noexcept
{
    return static_cast<std::size_t>(std::max<std::int64_t>(value, 0));
}

}

void redis_core::note_use(session_key const& key, reply_view const& header)
{
    auto const grown = header[2].integer();
    auto const streams = header[3].integer();
    auto const more_streams = header[4].integer();
    if (grown == 0 && more_streams == 0)
        return;
    auto const bytes = header[1].count();
    base::lock const lock(use_mutex_);
    auto const [found, is_new] = uses_.try_emplace(tag_of(key));
    auto& of = found->second;
    if (is_new) {
        of.principal = key.principal;
        of.reported_bytes = not_negative(static_cast<std::int64_t>(bytes) - grown);
        of.bytes = of.reported_bytes;
    }
    auto const change = static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(of.bytes);
    of.bytes = static_cast<std::size_t>(bytes);
    if (streams >= 0)
        of.streams = streams;
    of.streams_since += more_streams;
    since_bytes_ += change;
    since_streams_ += more_streams;
    auto& principal = principals_[key.principal];
    principal.since += change;
    principal.used_at = first_lane().loop().recent();
}

void redis_core::note_records(std::uint64_t bytes)
{
    base::lock const lock(use_mutex_);
    record_bytes_ = bytes;
}

void redis_core::note_sessions(std::uint64_t count)
{
    base::lock const lock(use_mutex_);
    sessions_ = count;
}

std::size_t redis_core::bytes_here() const
{
    return not_negative(known_bytes_ + since_bytes_);
}

std::size_t redis_core::other_bytes_than_records() const
{
    base::lock const lock(use_mutex_);
    return bytes_here();
}

usage redis_core::used() const
{
    base::lock const lock(use_mutex_);
    usage sum;
    sum.sessions = sessions_;
    sum.streams = not_negative(known_streams_ + since_streams_);
    sum.bytes = bytes_here() + record_bytes_;
    return sum;
}

usage redis_store::used() const
{
    return core_->used();
}

std::string redis_core::limits_for(std::string const& principal) const
{
    auto const number = [](std::size_t value) { return static_cast<double>(value); };
    double user = 0;
    double total = 0;
    {
        base::lock const lock(use_mutex_);
        if (auto const found = principals_.find(principal); found != principals_.end())
            user = static_cast<double>(found->second.known + found->second.since);
        total = number(bytes_here() + record_bytes_);
    }
    std::array<double, 12> const all{
        number(limits.bytes_per_session),
        number(limits::reserve(limits.bytes_per_session)),
        number(limits.bytes_per_principal) - user,
        number(limits::reserve(limits.bytes_per_principal)),
        number(limits.bytes_total) - total,
        number(limits::reserve(limits.bytes_total)),
        number(limits.events_per_stream),
        number(limits.bytes_per_stream),
        number(limits.event_bytes),
        static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(limits.event_age).count()),
        number(limits.streams_per_session),
        number(limits.keys_per_session),
    };
    std::string text(sizeof(all), '\0'); // little-endian, as every machine that Belay runs on
    std::memcpy(text.data(), all.data(), sizeof(all));
    return text;
}

void redis_core::know_principal(redis_lane& on, std::string const& principal)
{
    {
        base::lock const lock(use_mutex_);
        if (!principals_.try_emplace(principal, principal_use{0, 0, on.loop().recent()}).second)
            return;
    }
    auto const key = of_fleet("principals");
    on.command({"HGET", key, name_of(principal)}, key, [this, principal](result<reply_view> const& reply) {
        base::lock const lock(use_mutex_);
        auto const found = principals_.find(principal);
        if (found == principals_.end())
            return;
        if (reply)
            found->second.known = reply->integer();
        else if (found->second.since == 0)
            principals_.erase(found); // the next one asks again
    });
}

void redis_core::report_use()
{
    auto& on = first_lane();
    struct reported {
        std::string tag;
        std::size_t bytes = 0;
        std::int64_t change = 0;
        std::int64_t streams = 0;
    };
    std::map<std::string, std::vector<reported>> by_principal;
    std::map<std::string, words> arguments;
    {
        base::lock const lock(use_mutex_);
        for (auto const& [tag, of] : uses_) {
            by_principal[of.principal].push_back(
                {tag, of.bytes, static_cast<std::int64_t>(of.bytes) - static_cast<std::int64_t>(of.reported_bytes),
                 of.streams_since});
            auto& to = arguments[of.principal];
            if (to.empty())
                to.push_back(name_of(of.principal));
            to.push_back(tag);
            to.push_back(std::to_string(of.bytes));
            to.push_back(std::to_string(of.bytes == 0 ? 0 : of.streams));
        }
        auto const now = on.loop().recent();
        std::erase_if(principals_, [&](auto const& each) {
            return each.second.since == 0 && each.second.used_at + principal_memory < now;
        });
    }
    for (auto& each_principal : by_principal) {
        auto const& principal = each_principal.first;
        auto& all = each_principal.second;
        auto const name = name_of(principal);
        on.eval(
            redis_script::report, {of_fleet("bytes:" + name), of_fleet("principals"), of_fleet("totals")},
            std::move(arguments[principal]), [this, principal, all = std::move(all)](result<reply_view> const& reply) {
                if (!reply)
                    return; // what is used is reported again with the next pulse
                base::lock const lock(use_mutex_);
                auto const of_principal = principals_.find(principal);
                for (auto const& each : all) {
                    auto const found = uses_.find(each.tag);
                    if (found == uses_.end())
                        continue;
                    auto& of = found->second;
                    since_bytes_ -= each.change;
                    since_streams_ -= each.streams;
                    if (of_principal != principals_.end())
                        of_principal->second.since -= each.change;
                    of.reported_bytes = each.bytes;
                    of.streams_since -= each.streams;
                    if (of.bytes == each.bytes && of.streams_since == 0)
                        uses_.erase(found);
                }
                if (of_principal != principals_.end())
                    of_principal->second.known = (*reply)[1].integer();
                known_bytes_ = (*reply)[2].integer();
                known_streams_ = (*reply)[3].integer();
            });
    }
}

}
