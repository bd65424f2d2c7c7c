// belay::run: a server as a program.
#include "app/command_line.hpp"
#include "app/host.hpp"
#include "app/stdio.hpp"
#include "app/systemd.hpp"

#include <belay/run.hpp>

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace belay {

int run(server const& server, int argc, char** argv)
{
    auto const parsed = app::parse_command_line(server.core()->name(), server.core()->version(), argc, argv);
    if (!parsed)
        return parsed.error();
    return app::serve(server, *parsed);
}

}

namespace belay::app {

namespace {

struct printed_addresses {
    std::string url;
    std::string others;      // a line each
    std::string curl_option; // what curl needs to reach the url
};

printed_addresses addresses_of(host const& host)
{
    constexpr std::string_view unix_prefix = "unix:";
    printed_addresses printed{host.url(), {}, {}};
    auto const all = host.addresses();
    auto const has_port = [&](std::string const& each) { return !each.starts_with(unix_prefix); };
    if (std::ranges::none_of(all, has_port))
        printed.curl_option = fmt::format("--unix-socket {} ", all.front().substr(unix_prefix.size()));
    if (all.size() > 1 || !printed.curl_option.empty())
        for (auto const& each : all)
            printed.others += fmt::format("Listens on {}\n", each);
    if (auto const admin = host.admin_address(); !admin.empty())
        printed.others += fmt::format("Operators' endpoint on {}\n", admin);
    return printed;
}

}

int serve(server const& server, settings const& settings)
{
    if (settings.is_stdio)
        return serve_stdio(server, settings);
    try {
        http::raise_descriptor_limit();
        base::machine_clock clock;
        base::system_random random;
        auto const log = base::stderr_logger(settings.log_level, settings.log_format);
        host host(server.core(), settings, clock, random, log);

        base::io_loop signals_loop(clock);
        boost::asio::signal_set signals(signals_loop.context(), SIGTERM, SIGINT);
        int seen = 0;
        std::function<void(boost::system::error_code const&, int)> const on_signal
            = [&](boost::system::error_code const& error, int) {
                  if (error)
                      return;
                  // The second one means: now.
                  if (++seen == 1) {
                      notify_service_manager("STOPPING=1");
                      host.shut_down();
                  } else {
                      host.stop_now();
                  }
                  signals.async_wait(on_signal);
              };
        signals.async_wait(on_signal);
        std::thread signal_thread([&] { signals_loop.run(); });

        host.start();
        auto where = addresses_of(host);
        for (auto const& each : server.core()->mounts())
            where.others += fmt::format("Without sessions: {}{}\n", where.url, each.path);
        fmt::print(
            "{} {} serves MCP at {}{}\n"
            "{}"
            "Try it:\n"
            "  curl -si {}{}{} -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "
            "\\\n"
            "    -d "
            "'{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"2025-11-25\","
            "\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"curl\",\"version\":\"0\"}}}}}}'\n",
            server.core()->name(), server.core()->version(), where.url, settings.endpoint, where.others,
            where.curl_option, where.url, settings.endpoint);
        std::fflush(stdout);
        notify_service_manager("READY=1");
        host.wait();
        signals_loop.stop();
        signal_thread.join();
        if (host.is_held_up()) {
            // Its threads cannot be ended and must not outlive what they use: so all of the process ends here.
            log.with("node", settings.runtime.node_name)
                .warning(
                    "stopped; blocking tools that did not return and are left behind: {}", host.workers().running());
            std::_Exit(0);
        }
        return 0;
    } catch (std::exception const& error) {
        fmt::print(stderr, "{}: {}\n", server.core()->name(), error.what());
        return 2;
    }
}

}
