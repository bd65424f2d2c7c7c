#include "store/redis_reply.hpp"

#include <algorithm>
#include <charconv>

namespace belay::store {

redis_verdict judge(redisReply const& reply) noexcept
{
    if (reply.type != REDIS_REPLY_ERROR)
        return redis_verdict::answer;
    std::string_view const text(reply.str, static_cast<std::size_t>(reply.len));
    auto const word = text.substr(0, text.find(' '));
    struct known {
        std::string_view word;
        redis_verdict verdict;
    };
    static constexpr known all[] = {
        {"NOSCRIPT", redis_verdict::no_script},
        {"LOADING", redis_verdict::wait},
        {"BUSY", redis_verdict::wait},
        {"CLUSTERDOWN", redis_verdict::wait},
        {"TRYAGAIN", redis_verdict::wait},
        {"MASTERDOWN", redis_verdict::wait},
        {"NOREPLICAS", redis_verdict::wait},
        {"MISCONF", redis_verdict::wait},
        {"READONLY", redis_verdict::other_master},
        {"UNBLOCKED", redis_verdict::other_master},
        {"MOVED", redis_verdict::moved},
        {"ASK", redis_verdict::ask},
        {"OOM", redis_verdict::full},
        {"NOPERM", redis_verdict::refused},
        {"NOAUTH", redis_verdict::refused},
        {"WRONGPASS", redis_verdict::refused},
    };
    for (auto const& each : all)
        if (each.word == word)
            return each.verdict;
    return redis_verdict::answer;
}

std::string field_of_info(std::string_view info, std::string_view name)
{
    for (std::size_t at = 0; (at = info.find(name, at)) != std::string_view::npos; at += name.size()) {
        bool const begins_line = at == 0 || info[at - 1] == '\n';
        auto const end = at + name.size();
        if (begins_line && end < info.size() && info[end] == ':') {
            auto const rest = info.substr(end + 1);
            return std::string(rest.substr(0, std::min(rest.find_first_of("\r\n"), rest.size())));
        }
    }
    return {};
}

std::int64_t reply_view::integer() const noexcept
{
    if (!reply_)
        return 0;
    if (reply_->type == REDIS_REPLY_INTEGER)
        return reply_->integer;
    auto const digits = text();
    std::int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

}
