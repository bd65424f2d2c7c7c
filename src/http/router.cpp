#include "http/router.hpp"

#include "http/policy.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace belay::http {

router::route& router::insert(std::string path, std::string allow)
{
    for (auto const& known : routes_)
        if (known.path == path)
            throw std::logic_error("the path " + path + " has a handler already");
    return routes_.emplace_back(route{std::move(path), std::move(allow), nullptr, {}});
}

void router::add(std::string path, std::string allow, handler& target)
{
    insert(std::move(path), std::move(allow)).target = &target;
}

void router::add(std::string path, std::string allow, std::function<void(std::shared_ptr<exchange>)> target)
{
    insert(std::move(path), std::move(allow)).function = std::move(target);
}

void router::handle(std::shared_ptr<exchange> exchange)
{
    auto const& request = exchange->request();
    auto const path = request.path();
    for (auto& known : routes_) {
        if (known.path != path)
            continue;
        if (request.method() == method::options)
            return exchange->respond({204, {}, {{"Allow", known.allow}}}, {});
        if (known.target)
            return known.target->handle(std::move(exchange));
        return known.function(std::move(exchange));
    }
    if (path == "*" && request.method() == method::options)
        return exchange->respond({204, {}, {}}, {});
    respond_text(*exchange, 404, fmt::format("Nothing is served at {}.", printable(path)));
}

void respond_text(exchange& exchange, unsigned status, std::string_view text, std::vector<field> fields)
{
    std::string body(text);
    body += '\n';
    exchange.respond({status, "text/plain; charset=utf-8", std::move(fields)}, body);
}

}
