#include "http/policy.hpp"

#include "http/field_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace belay::http {

namespace {

std::string lower_case(std::string_view text)
{
    std::string lowered(text);
    for (auto& c : lowered)
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c + 32);
    return lowered;
}

struct origin_parts {
    std::string_view scheme;
    host_and_port where;
};

std::optional<origin_parts> parse_origin(std::string_view text) noexcept
{
    auto const mark = text.find("://");
    if (mark == std::string_view::npos || mark == 0)
        return std::nullopt;
    auto const scheme = text.substr(0, mark);
    auto const where = parse_authority(text.substr(mark + 3));
    if (!where || where->host.empty())
        return std::nullopt;
    return origin_parts{scheme, *where};
}

bool is_web(std::string_view scheme) noexcept
{
    return scheme == "http" || scheme == "https";
}

bool same_place(origin_parts const& origin, host_and_port const& host) noexcept
{
    auto const standard = origin.scheme == "https" ? std::string_view("443") : std::string_view("80");
    auto const port_of = [&](std::string_view port) { return port.empty() ? standard : port; };
    return is_web(origin.scheme) && port_of(origin.where.port) == port_of(host.port)
        && equals_ignoring_case(origin.where.host, host.host);
}

}

std::optional<host_and_port> parse_authority(std::string_view text) noexcept
{
    std::string_view host;
    std::string_view rest;
    if (text.starts_with('[')) {
        auto const close = text.find(']');
        if (close == std::string_view::npos)
            return std::nullopt;
        host = text.substr(0, close + 1);
        rest = text.substr(close + 1);
        auto const address = host.substr(1, host.size() - 2);
        if (address.empty() || address.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos)
            return std::nullopt;
    } else {
        auto const colon = std::min(text.find(':'), text.size());
        host = text.substr(0, colon);
        rest = text.substr(colon);
        bool const good = std::all_of(host.begin(), host.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-'
                || c == '_';
        });
        if (!good || host.empty())
            return std::nullopt;
    }
    if (rest.empty())
        return host_and_port{host, {}};
    auto const port = rest.substr(1);
    if (rest[0] != ':' || port.empty() || port.size() > 5
        || port.find_first_not_of("0123456789") != std::string_view::npos)
        return std::nullopt;
    return host_and_port{host, port};
}

bool is_loopback_name(std::string_view host) noexcept
{
    constexpr std::string_view suffix = ".localhost";
    return host == "127.0.0.1" || host == "[::1]" || equals_ignoring_case(host, "localhost")
        || (host.size() > suffix.size() && equals_ignoring_case(host.substr(host.size() - suffix.size()), suffix));
}

std::string printable(std::string_view text)
{
    constexpr std::size_t shown = 60;
    std::string out(text.substr(0, shown));
    for (auto& c : out)
        if (c < 0x20 || c >= 0x7f || c == '<' || c == '>' || c == '"')
            c = '?';
    if (text.size() > shown)
        out += "...";
    return out;
}

policy::policy(policy_settings settings) : settings_(std::move(settings))
{
    for (auto const& entry : settings_.allow_host) {
        if (entry == "*") {
            any_host_ = true;
            continue;
        }
        // A bare IPv6 address is what people type; in a Host field it has brackets.
        auto const text
            = std::count(entry.begin(), entry.end(), ':') > 1 && !entry.starts_with('[') ? "[" + entry + "]" : entry;
        if (auto const parts = parse_authority(text))
            hosts_.push_back({lower_case(parts->host), std::string(parts->port)});
    }
    for (auto& entry : settings_.allow_origin) {
        any_origin_ = any_origin_ || entry == "*";
        entry = lower_case(entry);
        if (entry.size() > 1 && entry.ends_with('/'))
            entry.pop_back();
    }
    if (!settings_.cors_expose.empty())
        expose_line_ = "Access-Control-Expose-Headers: " + settings_.cors_expose + "\r\n";
    preflight_lines_ = fmt::format(
        "Access-Control-Allow-Methods: {}\r\nAccess-Control-Allow-Headers: {}\r\nAccess-Control-Max-Age: {}\r\n",
        settings_.cors_methods, settings_.cors_headers, settings_.cors_max_age.count());
}

bool policy::allows_host(std::string_view host) const noexcept
{
    if (any_host_)
        return true;
    auto const parts = parse_authority(host);
    if (!parts)
        return false;
    if (settings_.loopback && is_loopback_name(parts->host))
        return true;
    return std::any_of(hosts_.begin(), hosts_.end(), [&](host_rule const& rule) {
        return (rule.port.empty() || rule.port == parts->port) && equals_ignoring_case(rule.name, parts->host);
    });
}

bool policy::allows_origin(std::string_view origin, std::string_view host) const noexcept
{
    if (!settings_.takes_pages)
        return false;
    if (any_origin_)
        return true;
    for (auto const& allowed : settings_.allow_origin)
        if (equals_ignoring_case(allowed, origin))
            return true;
    auto const parts = parse_origin(origin);
    if (!parts)
        return false;
    if (settings_.loopback && settings_.loopback_origin && is_web(parts->scheme) && is_loopback_name(parts->where.host))
        return true;
    // The Host was allowed before, so a page of the same place is ours and not a rebound name.
    auto const place = parse_authority(host);
    return place && same_place(*parts, *place);
}

policy::verdict policy::judge(request const& request) const
{
    std::optional<std::string> none;
    return judge(request, none);
}

policy::verdict policy::judge(request const& request, std::optional<std::string>& last_host) const
{
    auto const exempt = [&] {
        return std::find(settings_.exempt_paths.begin(), settings_.exempt_paths.end(), request.path())
            != settings_.exempt_paths.end();
    };
    // HTTP/1.0 may come without Host: then there is no name to trust.
    auto const host = request.header("Host").value_or(std::string_view());
    if (last_host != host) {
        if (!allows_host(host))
            return exempt() ? verdict::allowed : verdict::bad_host;
        last_host = host;
    }
    auto const origin = request.header("Origin");
    if (!origin)
        return verdict::allowed;
    if (!allows_origin(*origin, host) || request.header_count("Origin") > 1)
        return exempt() ? verdict::allowed : verdict::bad_origin;
    return verdict::allowed_page;
}

std::string policy::explain(verdict verdict, request const& request) const
{
    if (verdict == verdict::bad_host)
        return fmt::format(
            "The Host header \"{}\" is not a name of this server; start it with --allow-host NAME to allow it.",
            printable(request.header("Host").value_or(std::string_view())));
    return fmt::format(
        "Pages of the Origin \"{}\" may not use this server; {}.",
        printable(request.header("Origin").value_or(std::string_view())),
        settings_.takes_pages ? "start it with --allow-origin URL to allow them" : "it answers no web page");
}

bool policy::is_preflight(request const& request) noexcept
{
    return request.method() == method::options && request.header("Origin")
        && request.header("Access-Control-Request-Method");
}

void policy::append_cors(std::string& lines, request const& request) const
{
    auto const origin = request.header("Origin");
    if (!origin)
        return;
    lines.append("Access-Control-Allow-Origin: ").append(*origin).append("\r\nVary: Origin\r\n").append(expose_line_);
}

}
