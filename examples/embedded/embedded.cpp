// A program with a life of its own that also serves MCP: it measures twice a second on its own loop, handles its own
// signals and writes its own log. The server is one more thing on that loop.
#include <belay/host.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct reading {
    int number;
    double celsius;
};
BOOST_DESCRIBE_STRUCT(reading, (), (number, celsius))

/// The work of the program.
class station {
public:
    explicit station(asio::io_context& on) : timer_(on) { measure(); }
    [[nodiscard]] reading latest() const { return latest_; }
    void stop() { timer_.cancel(); }

private:
    void measure()
    {
        latest_ = {latest_.number + 1, 20 + (latest_.number % 10) / 10.0};
        timer_.expires_after(500ms);
        timer_.async_wait([this](boost::system::error_code const& error) {
            if (!error)
                measure();
        });
    }

    asio::steady_timer timer_;
    reading latest_{};
};

// [embed]
int main(int argc, char** argv)
{
    asio::io_context loop;
    station station(loop);

    belay::server server("station", "1.0");
    // Runs on the loop, as the station does: no lock is needed.
    server.tool("latest", [&] { return station.latest(); }).describe("The latest reading").read_only();

    belay::host_settings settings{.listen = {argc > 1 ? argv[1] : "127.0.0.1:3000"}, .drain = 5s};
    settings.set("log.level", "warning");
    belay::host_log log{
        [](belay::log_entry const& entry) { std::fprintf(stderr, "station: mcp: %s\n", entry.text().c_str()); }};

    try {
        belay::host host(server, loop, settings, log);
        host.start();
        std::printf("station: measuring; MCP at %s/mcp\n", host.url().c_str());
        std::fflush(stdout);

        asio::signal_set signals(loop, SIGTERM, SIGINT);
        signals.async_wait([&](boost::system::error_code const& error, int) {
            if (error)
                return;
            std::puts("station: stopping");
            host.stop();    // lets calls finish
            station.stop();
        });
        loop.run(); // returns when nothing is left to do: the host has stopped, and so has the station
    } catch (std::exception const& error) {
        std::fprintf(stderr, "station: %s\n", error.what());
        return 1;
    }
    std::puts("station: stopped");
    return 0;
}
// [/embed]
