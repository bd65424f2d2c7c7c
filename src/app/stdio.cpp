#include "app/stdio.hpp"

#include "app/assembly.hpp"
#include "app/say.hpp"
#include "base/io_loop.hpp"
#include "base/log_output.hpp"
#include "server/access.hpp"
#include "transport/stdio.hpp"

#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <unistd.h>
#include <utility>

namespace belay::app {

int serve_stdio(server const& server, settings const& settings)
{
    auto const& core = detail::access::core(server);
    // Standard output is for messages alone: whatever else a tool prints there goes to standard error.
    int const messages = ::dup(STDOUT_FILENO);
    if (messages < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        say_error(core->name(), "standard output cannot be used");
        return 2;
    }
    base::machine_clock clock;
    base::system_random random;
    auto const log_lines = base::stderr_output(settings.log_format, settings.log_queue_bytes);
    auto const level = std::make_shared<std::atomic<base::log_threshold>>(settings.log_level);
    auto const log = base::line_logger(level, settings.log_format, log_lines).with("node", settings.runtime.node_name);
    base::io_loop loop(clock);
    std::optional<assembly> whole;
    try {
        whole.emplace(core, settings, assembly::mounts::left_out, clock, random, log);
    } catch (std::exception const& error) {
        say_error(core->name(), error.what());
        return 2;
    }
    auto& node = whole->node();

    std::optional<transport::stdio> lines;
    bool is_ending = false;
    auto const stop = [&] {
        whole->stop();
        loop.stop();
    };
    auto const end_session = [&] { lines->close([&] { loop.post(stop); }); };
    base::timer grace(loop.timers(), [&] {
        node.calls().interrupt_all();
        loop.post(end_session);
    });
    auto const end = [&](base::duration within) {
        if (std::exchange(is_ending, true))
            return;
        node.departures().drain();
        if (node.departures().calls() == 0 || within == base::duration::zero())
            grace.after(base::duration::zero());
        else
            grace.after(within);
    };
    node.departures().on_departure([&] {
        loop.post([&] {
            if (is_ending && node.departures().calls() == 0)
                grace.after(base::duration::zero());
        });
    });
    lines.emplace(
        node, *core, loop, STDIN_FILENO, messages,
        transport::stdio_settings{{"local", settings.transport.batch_max}, settings.http.limits.body_bytes},
        transport::stdio::ends{[&] { end(settings.stdio_grace); }, [&] { end(base::duration::zero()); }});
    {
        boost::asio::signal_set signals(loop.context(), SIGTERM, SIGINT, SIGHUP);
        signals.async_wait([&](boost::system::error_code const& error, int) {
            if (!error)
                end(base::duration::zero());
        });
        loop.post([&] { whole->start(loop); });
        lines->start();
        loop.run();
        // A client that does not read may have kept the session from its end.
        lines->let_go();
        loop.context().restart();
        loop.context().poll();
    }
    lines.reset();
    ::close(messages);
    if (whole->workers().running() > 0) { // a blocking tool that does not listen; see http_host
        log_lines->flush();
        std::_Exit(0);
    }
    return 0;
}

}
