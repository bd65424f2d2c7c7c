#include "app/admin.hpp"

#include "http/policy.hpp"
#include "http/router.hpp"
#include "json/parse.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace belay::app {

namespace {

constexpr std::string_view json_type = "application/json";
constexpr std::string_view sessions_path = "/sessions";
constexpr std::string_view one_session_path = "/sessions/";
constexpr std::size_t default_page = 100;

std::int64_t seconds_of(base::duration duration)
{
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

/// The value of a parameter of the query; nothing if it is absent.
std::optional<std::string_view> parameter(std::string_view query, std::string_view name) noexcept
{
    while (!query.empty()) {
        auto const end = std::min(query.find('&'), query.size());
        auto const part = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=')
            return part.substr(name.size() + 1);
    }
    return std::nullopt;
}

json::value client_of(std::string const& info)
{
    auto const value = json_text::parse(info);
    json::object client;
    if (!value || !value->is_object())
        return client;
    // What else a client says of itself may be long.
    for (auto const* const name : {"name", "version"})
        if (auto const* const text = value->get_object().if_contains(name); text && text->is_string())
            client[name] = *text;
    return client;
}

json::value describe(runtime::session_summary const& session)
{
    json::array nodes;
    for (auto const& each : session.nodes)
        nodes.push_back(json::string(each));
    return json::object{
        {"session", session.name},
        {"version", session.version},
        {"client", client_of(session.client_info)},
        {"age_seconds", seconds_of(session.age)},
        {"idle_seconds", seconds_of(session.idle)},
        {"connections", session.connections},
        {"running_calls", session.running_calls},
        {"nodes", std::move(nodes)}};
}

}

void admin::handle(std::shared_ptr<http::exchange> exchange)
{
    auto const& request = exchange->request();
    auto const method = request.method();
    auto const path = request.path();
    if (path == sessions_path) {
        if (method == http::method::get || method == http::method::head)
            return list(exchange);
        return http::respond_text(*exchange, 405, "Use GET here.", {{"Allow", "GET, HEAD"}});
    }
    if (path.starts_with(one_session_path)) {
        if (method == http::method::delete_)
            return end(std::move(exchange), path.substr(one_session_path.size()));
        return http::respond_text(*exchange, 405, "Use DELETE here.", {{"Allow", "DELETE"}});
    }
    http::respond_text(
        *exchange, 404,
        fmt::format("Nothing is served at {}; try GET /sessions or DELETE /sessions/NAME.", http::printable(path)));
}

void admin::list(std::shared_ptr<http::exchange> const& exchange) const
{
    auto const query = exchange->request().query();
    auto limit = std::min(default_page, max_page_);
    if (auto const given = parameter(query, "limit")) {
        auto const* const stop = given->data() + given->size();
        auto const [end, error] = std::from_chars(given->data(), stop, limit);
        if (error != std::errc() || end != stop || limit == 0 || limit > max_page_)
            return http::respond_text(
                *exchange, 400, fmt::format("limit must be a number from 1 to {}, as admin.max_page says.", max_page_));
    }
    auto const after = parameter(query, "after").value_or("");
    node_.sessions().list(after, limit, [this, exchange, limit](result<runtime::session_page> page) {
        if (!page)
            return http::respond_text(*exchange, 503, "The sessions could not be listed: " + page.error().message());
        json::array sessions;
        for (auto const& each : page->sessions)
            sessions.push_back(describe(each));
        json::object answer{
            {"node", node_.settings().node_name}, {"total", page->total}, {"sessions", std::move(sessions)}};
        if (page->has_more)
            answer["next"] = fmt::format("{}?limit={}&after={}", sessions_path, limit, page->sessions.back().name);
        exchange->respond({200, json_type, {{"Cache-Control", "no-store"}}}, json::serialize(answer) + '\n');
    });
}

void admin::end(std::shared_ptr<http::exchange> exchange, std::string_view name) const
{
    auto& loop = exchange->loop();
    node_.sessions().end_by_name(name, loop, [this, exchange, name = std::string(name)](result<void> ended) {
        if (ended) {
            node_.log().log_fields(base::log_level::info, "session ended by an operator", {{"session", name}});
            return exchange->respond({200, json_type, {}}, json::serialize(json::object{{"ended", name}}) + '\n');
        }
        if (ended.error() == errc::not_found)
            return http::respond_text(
                *exchange, 404,
                fmt::format("There is no session {}; GET /sessions lists them.", http::printable(name)));
        if (ended.error() == errc::conflict)
            return http::respond_text(
                *exchange, 409, fmt::format("Several sessions have the name {}; none was ended.", name));
        http::respond_text(*exchange, 503, "The session could not be ended: " + ended.error().message());
    });
}

}
