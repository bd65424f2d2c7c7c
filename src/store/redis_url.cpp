#include "store/redis_url.hpp"

#include <fmt/format.h>

#include <charconv>

namespace belay::store {

namespace {

constexpr std::uint16_t sentinel_port = 26379;

struct scheme {
    std::string_view name;
    redis_place::kind what;
    bool uses_tls;
    bool is_unix;
};

constexpr scheme schemes[] = {
    {"redis", redis_place::kind::single, false, false},
    {"rediss", redis_place::kind::single, true, false},
    {"redis+unix", redis_place::kind::single, false, true},
    {"redis+sentinel", redis_place::kind::sentinel, false, false},
    {"rediss+sentinel", redis_place::kind::sentinel, true, false},
    {"redis+cluster", redis_place::kind::cluster, false, false},
    {"rediss+cluster", redis_place::kind::cluster, true, false},
};

scheme const* scheme_of(std::string_view text) noexcept
{
    auto const end = text.find("://");
    if (end == std::string_view::npos)
        return nullptr;
    for (auto const& each : schemes)
        if (each.name == text.substr(0, end))
            return &each;
    return nullptr;
}

int hex_digit(char c) noexcept
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

std::optional<std::string> decoded(std::string_view text)
{
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            plain += text[i];
            continue;
        }
        if (i + 2 >= text.size())
            return std::nullopt;
        auto const high = hex_digit(text[i + 1]);
        auto const low = hex_digit(text[i + 2]);
        if (high < 0 || low < 0)
            return std::nullopt;
        plain += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return plain;
}

template<class Number>
std::optional<Number> number_of(std::string_view text) noexcept
{
    Number number = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

std::optional<redis_address> address_of(std::string_view text, std::uint16_t port)
{
    redis_address address{{}, port};
    std::string_view rest;
    if (text.starts_with('[')) {
        auto const end = text.find(']');
        if (end == std::string_view::npos)
            return std::nullopt;
        address.host = text.substr(1, end - 1);
        rest = text.substr(end + 1);
    } else {
        auto const end = std::min(text.find(':'), text.size());
        address.host = text.substr(0, end);
        rest = text.substr(end);
    }
    if (address.host.empty() || address.host.find_first_of(" \t\r\n@?#") != std::string::npos)
        return std::nullopt;
    if (rest.empty())
        return address;
    auto const given = rest.starts_with(':') ? number_of<std::uint16_t>(rest.substr(1)) : std::nullopt;
    if (!given || *given == 0)
        return std::nullopt;
    address.port = *given;
    return address;
}

}

std::string to_string(redis_address const& address)
{
    if (!address.path.empty())
        return address.path;
    if (address.host.find(':') != std::string::npos)
        return fmt::format("[{}]:{}", address.host, address.port);
    return fmt::format("{}:{}", address.host, address.port);
}

bool is_redis_url(std::string_view text) noexcept
{
    return scheme_of(text) != nullptr;
}

std::variant<redis_place, std::string> parse_redis_url(std::string_view text)
{
    auto const* const found = scheme_of(text);
    if (!found)
        return "a Redis store is redis://, rediss://, redis+unix://, redis+sentinel:// or redis+cluster://";
    redis_place place;
    place.what = found->what;
    place.uses_tls = found->uses_tls;
    auto rest = text.substr(found->name.size() + 3);

    auto const slash = rest.find('/');
    auto authority = rest.substr(0, slash);
    auto path = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (auto const at = authority.rfind('@'); at != std::string_view::npos) {
        auto const who = authority.substr(0, at);
        authority.remove_prefix(at + 1);
        auto const colon = who.find(':');
        auto user = decoded(who.substr(0, colon));
        auto password = colon == std::string_view::npos ? std::string() : decoded(who.substr(colon + 1));
        if (!user || !password)
            return "the user or the password in the store's URL has a % that is not followed by two hex digits";
        place.user = std::move(*user);
        place.password = std::move(*password);
    }

    auto database = path;
    if (found->is_unix) {
        if (!authority.empty())
            return "redis+unix:// is followed by the path of a socket, which begins with a slash";
        auto const query = path.find("?db=");
        auto socket = decoded(path.substr(0, query));
        if (!socket || socket->empty())
            return "redis+unix:// is followed by the path of a socket, which begins with a slash";
        place.addresses.push_back({{}, 0, "/" + *socket});
        database = query == std::string_view::npos ? std::string_view() : path.substr(query + 4);
    } else {
        auto const port = place.what == redis_place::kind::sentinel ? sentinel_port : std::uint16_t(6379);
        for (std::size_t begin = 0; begin <= authority.size();) {
            auto const end = std::min(authority.find(',', begin), authority.size());
            auto address = address_of(authority.substr(begin, end - begin), port);
            if (!address)
                return "the store's URL names no host, or a port that is none";
            place.addresses.push_back(std::move(*address));
            begin = end + 1;
        }
        if (place.what == redis_place::kind::single && place.addresses.size() > 1)
            return "a single Redis has one host; several are of redis+sentinel:// or redis+cluster://";
    }
    if (place.what == redis_place::kind::sentinel) {
        auto const end = path.find('/');
        auto service = decoded(path.substr(0, end));
        if (!service || service->empty())
            return "redis+sentinel:// ends with the name of the service that the sentinels watch: …/service";
        place.service = std::move(*service);
        database = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
    }
    if (!database.empty()) {
        auto const number = number_of<int>(database);
        if (!number || *number < 0)
            return "what follows the host in the store's URL is the number of a database";
        place.database = *number;
    }
    if (place.what == redis_place::kind::cluster && place.database != 0)
        return "a Redis cluster has only database 0";
    return place;
}

}
