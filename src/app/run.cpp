// belay::run: a server as a program.
#include "app/command_line.hpp"
#include "app/host_body.hpp"
#include "app/say.hpp"
#include "app/stdio.hpp"
#include "app/systemd.hpp"
#include "base/log_output.hpp"
#include "server/access.hpp"

#include <belay/host.hpp>
#include <belay/run.hpp>

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace belay::inline v0 {

int run(server const& server, int argc, char** argv, flags const& own)
{
    auto const& core = *detail::access::core(server);
    auto const parsed = app::parse_command_line(core.name(), core.version(), argc, argv, app::program::any, own);
    if (!parsed)
        return parsed.error();
    try {
        detail::access::call_then(own);
    } catch (std::exception const& error) {
        app::say_error(core.name(), error.what());
        return 2;
    }
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

printed_addresses addresses_of(http_host& host)
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

std::string greeting(detail::server_core const& core, http_host& host, settings const& settings)
{
    auto where = addresses_of(host);
    for (auto const& each : core.mounts())
        where.others += fmt::format("Without sessions: {}{}\n", where.url, each.path);
    return fmt::format(
        "{} {} serves MCP at {}{}\n"
        "{}"
        "Try it:\n"
        "  curl -si {}{}{} -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "
        "\\\n"
        "    -d "
        "'{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"2025-11-25\","
        "\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"curl\",\"version\":\"0\"}}}}}}'\n",
        core.name(), core.version(), where.url, settings.endpoint, where.others, where.curl_option, where.url,
        settings.endpoint);
}

bool has_terminal() noexcept
{
    int const terminal = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal >= 0)
        ::close(terminal);
    return terminal >= 0;
}

bool is_ignored(int signal) noexcept
{
    struct sigaction now{};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

std::string listed(std::vector<std::string> const& keys)
{
    std::string text;
    for (auto const& each : keys)
        text.append(text.empty() ? "" : ", ").append(each);
    return text;
}

/// What SIGHUP asks for: reads the settings again, takes over what can change, and says what came of it.
void reload(settings_source const& source, host_body& host)
{
    // Who asks for it wants to hear of it; only a log that is off says nothing.
    bool const is_off = host.in_force().log_level == base::log_threshold::off();
    auto const log = is_off ? base::logger() : host.log().at(base::log_level::info);
    auto fresh = source.read();
    if (!fresh)
        return log.error("settings not reloaded, nothing has changed: {}", fresh.error());
    auto const changes = host.take_over(std::move(*fresh));

    std::vector<base::log_field> fields;
    auto const reloaded = listed(changes.reloaded);
    auto const not_reloaded = listed(changes.not_reloaded);
    if (!reloaded.empty())
        fields.emplace_back("reloaded", std::string_view(reloaded));
    if (!not_reloaded.empty())
        fields.emplace_back("needs_restart", std::string_view(not_reloaded));
    log.log_fields(
        not_reloaded.empty() ? base::log_level::info : base::log_level::warning,
        reloaded.empty() ? "settings unchanged" : "settings reloaded", fields);
}

void tell_reload(base::clock const& clock, std::function<void()> const& reload)
{
    // The time is for units of Type=notify-reload, which want to know that it is not an old notice.
    auto const now = std::chrono::duration_cast<std::chrono::microseconds>(clock.now().time_since_epoch());
    notify_service_manager(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.count()));
    reload();
    notify_service_manager("READY=1");
}

}

int serve(server const& server, command_line const& with)
{
    // Here and not in a library's constructor, because the process is ours from here on: a client, a log or a terminal
    // that has gone is an error of the write that meets it, and ends nothing.
    std::signal(SIGPIPE, SIG_IGN);
    auto const& settings = with.settings;
    if (settings.is_stdio)
        return serve_stdio(server, settings);
    auto const& core = detail::access::core(server);
    try {
        http::raise_descriptor_limit();
        auto const log_lines = base::stderr_output(settings.log_format, settings.log_queue_bytes);
        host_log const log{
            [log_lines, format = settings.log_format](log_entry const& entry) {
                log_lines->write(base::log_line(format, entry.level, entry.message, entry.fields));
            },
            [log_lines] { return log_lines->dropped(); }};
        auto const body = std::make_shared<host_body>(core, settings, with.source.of, log);
        auto host = detail::access::make<belay::host>(body);

        // The end of its terminal is a SIGHUP too, and means that whoever started it has gone. Under nohup it is to
        // stay.
        bool const ends_with_terminal = has_terminal() && !is_ignored(SIGHUP);
        base::io_loop signals_loop(body->clock());
        boost::asio::signal_set signals(signals_loop.context(), SIGTERM, SIGINT, SIGHUP);
        int seen = 0;
        std::function<void(boost::system::error_code const&, int)> const on_signal
            = [&](boost::system::error_code const& error, int signal) {
                  if (error)
                      return;
                  signals.async_wait(on_signal);
                  if (signal == SIGHUP && !(ends_with_terminal && !has_terminal()))
                      return tell_reload(body->clock(), [&] { reload(with.source, *body); });
                  if (signal == SIGHUP && seen > 0)
                      return;
                  // The second one means: now.
                  if (++seen == 1) {
                      notify_service_manager("STOPPING=1");
                      host.stop();
                  } else {
                      host.stop_now();
                  }
              };
        signals.async_wait(on_signal);
        host.start();
        std::jthread signal_thread([&](std::stop_token const& end) {
            std::stop_callback const stops(end, [&] { signals_loop.stop(); });
            signals_loop.run();
        });

        {
            // The way of the log: nobody may be there to read it.
            auto text = greeting(*core, body->serving(), settings);
            base::log_output out(STDOUT_FILENO, text.size(), [](std::uint64_t) { return std::string(); });
            out.write(std::move(text));
        }
        notify_service_manager("READY=1");
        host.wait();
        signal_thread.request_stop();
        signal_thread.join();
        if (host.is_held_up()) {
            // Its threads cannot be ended and must not outlive what they use: so all of the process ends here.
            body->log().warning(
                "stopped; blocking tools that did not return and are left behind: {}",
                body->serving().workers().running());
            log_lines->flush();
            std::_Exit(0);
        }
        return 0;
    } catch (std::exception const& error) {
        say_error(core->name(), error.what());
        return 2;
    }
}

}
