#include "app/console.hpp"

#include "http/field_text.hpp"

#include <algorithm>
#include <ranges>

namespace belay::app {

namespace {

constexpr std::string_view methods = "GET, HEAD, OPTIONS";

// The page is made of its own files and speaks to its own server, and nobody may put it into a frame.
constexpr std::string_view content_policy
    = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: "
      "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Whether one of the words of a list is `wanted`, with its weight not zero.
bool lists(std::optional<std::string_view> field, auto const& is_wanted)
{
    if (!field)
        return false;
    return std::ranges::any_of(std::views::split(*field, ','), [&](auto const& part) {
        std::string_view const item = http::trimmed({part.begin(), part.end()});
        auto const weight = item.find(";q=0");
        bool const is_refused
            = weight != std::string_view::npos && item.find_first_of("123456789", weight + 4) == std::string_view::npos;
        return !is_refused && is_wanted(http::trimmed(item.substr(0, item.find(';'))));
    });
}

void serve(http::exchange& exchange, console_file const& file)
{
    auto const& request = exchange.request();
    if (request.method() != http::method::get && request.method() != http::method::head)
        return http::respond_text(exchange, 405, "Use GET here.", {{"Allow", methods}});
    bool const is_page = file.path == "/";
    std::vector<http::field> fields{
        // The page is looked for anew each time; its files never change under their names.
        {"Cache-Control", is_page ? "no-cache" : "public, max-age=31536000, immutable"},
        {"ETag", file.etag},
        {"Vary", "Accept-Encoding"},
        {"X-Content-Type-Options", "nosniff"},
    };
    if (is_page) {
        fields.push_back({"Content-Security-Policy", content_policy});
        fields.push_back({"Referrer-Policy", "no-referrer"});
    }
    auto const is_same = [&](std::string_view tag) {
        return tag == "*" || (tag.starts_with("W/") ? tag.substr(2) : tag) == file.etag;
    };
    if (lists(request.header("If-None-Match"), is_same))
        return exchange.respond({304, {}, std::move(fields)}, {});
    bool const takes_gzip
        = lists(request.header("Accept-Encoding"), [](std::string_view word) { return word == "gzip" || word == "*"; });
    if (takes_gzip)
        fields.push_back({"Content-Encoding", "gzip"});
    exchange.respond({200, file.type, std::move(fields)}, takes_gzip ? file.gzip : file.plain);
}

}

void add_console(http::router& to)
{
    for (auto const& file : console_files())
        to.add(std::string(file.path), std::string(methods), [&file](std::shared_ptr<http::exchange> const& exchange) {
            serve(*exchange, file);
        });
}

}
