// What the reference server says unasked.
#include "app/reference/reference.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace belay::app {

using namespace std::chrono_literals;

namespace {

constexpr auto logger = "belay.background";

struct remark {
    log_level level;
    char const* text;
};

// One of every level, so that each choice of a client can be seen to work.
constexpr remark remarks[] = {
    {log_level::debug, "A detail for somebody who looks for a mistake"},
    {log_level::info, "All is well"},
    {log_level::notice, "Something out of the ordinary, and harmless"},
    {log_level::warning, "Something that may become a problem"},
    {log_level::error, "Something did not work"},
    {log_level::critical, "A part of the server does not work"},
    {log_level::alert, "Somebody should look at this now"},
    {log_level::emergency, "Nothing works; this is only an example"},
};

constexpr char const* level_names[] = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

}

void add_reference_background(server& server, base::random_source& random)
{
    server.every(10s, [&server] {
        for (auto const& uri : server.subscriptions())
            server.resource_updated(uri);
    });
    server.every(20s, [&server, &random] {
        auto const& one = remarks[random.below(std::size(remarks))];
        server.log(one.level, logger, one.text);
    });
    // At the level that was chosen, so that it always arrives.
    server.on_log_level([](session const& session, log_level level) {
        session.log(level, logger, fmt::format("Log level is now {}", level_names[std::to_underlying(level)]));
    });
}

void add_reference_stderr(server& server)
{
    server.every(30s, [&server] {
        server.notify("notifications/stderr", {{"content", "A line that a program could have written to stderr"}});
    });
}

}
