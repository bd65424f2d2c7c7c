// belay::host, as a program with a life of its own uses it.
#include <belay/host.hpp>

#include "support/server_fixture.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <unistd.h>

namespace belay::test {

namespace {

namespace asio = boost::asio;

constexpr int fatal_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2};

host_settings on_free_port()
{
    return {.listen = {"127.0.0.1:0"}, .threads = 1};
}

host_settings as_guest()
{
    return {.listen = {"127.0.0.1:0"}};
}

std::string message_of(auto const& action)
{
    try {
        action();
    } catch (std::exception const& error) {
        return error.what();
    }
    return {};
}

/// A client of a host, which opens its session itself.
class visitor {
public:
    explicit visitor(std::uint16_t port) : client_(port)
    {
        session_ = client_.ask("POST", "/mcp", headers(), hello()).header("Mcp-Session-Id").value_or("");
    }
    std::string call(std::string_view tool)
    {
        begin(tool);
        return text_at(client_.read_response().json(), "result/content/0/text");
    }
    void begin(std::string_view tool) { client_.send_request("POST", "/mcp", headers(), tool_call("1", tool)); }
    /// The answer of a call that was begun and is a stream; empty if none comes.
    std::string finish()
    {
        seen all;
        if (!client_.read_head())
            return {};
        while (auto const event = client_.next_event())
            all.add(*event);
        return all.has_response() ? text_at(all.response(), "result/content/0/text") : std::string();
    }
    http_client& client() { return client_; }

private:
    [[nodiscard]] header_list headers() const
    {
        header_list all{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}};
        if (!session_.empty())
            all.emplace_back("Mcp-Session-Id", session_);
        return all;
    }

    http_client client_;
    std::string session_;
};

/// A tool that tells when it has begun, and waits to be let go.
struct turnstile {
    std::promise<void> begun;
    std::atomic<bool> is_open = false;

    static task<std::string> pass(turnstile& at, call& on)
    {
        at.begun.set_value();
        while (!at.is_open)
            co_await on.sleep(std::chrono::milliseconds(1));
        co_return "through";
    }
};

server named(std::string const& name)
{
    server made(name, "1");
    made.tool("who", [name] { return name; });
    return made;
}

/// A context that a thread runs until it is told to stop.
class running_context {
public:
    ~running_context()
    {
        work_.reset();
        context_.stop();
        thread_.join();
    }
    asio::io_context& context() { return context_; }
    void on_it(std::function<void()> function)
    {
        std::promise<void> done;
        asio::post(context_, [&] {
            function();
            done.set_value();
        });
        done.get_future().wait();
    }

private:
    asio::io_context context_;
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_{context_.get_executor()};
    std::thread thread_{[this] { context_.run(); }};
};

}

TEST(Host, ServesFromStartToStop)
{
    auto const server = named("one");
    host host(server, on_free_port());
    host.start();
    EXPECT_EQ(host.url(), "http://127.0.0.1:" + std::to_string(host.port()));
    EXPECT_EQ(host.addresses(), std::vector<std::string>{"127.0.0.1:" + std::to_string(host.port())});
    EXPECT_EQ(visitor(host.port()).call("who"), "one");
    auto const port = host.port();
    host.stop();
    host.wait();
    EXPECT_FALSE(http_client(port).is_connected());
    EXPECT_FALSE(host.is_held_up());
    host.wait(); // again, and at once
}

TEST(Host, LivesBesideAnotherInOneProcess)
{
    auto const first = named("first");
    auto const second = named("second");
    host one(first, on_free_port());
    host two(second, on_free_port());
    one.start();
    two.start();
    EXPECT_EQ(visitor(one.port()).call("who"), "first");
    EXPECT_EQ(visitor(two.port()).call("who"), "second");
    one.stop();
    one.wait();
    EXPECT_EQ(visitor(two.port()).call("who"), "second");
}

TEST(Host, StartsOnce)
{
    auto const server = named("one");
    host host(server, on_free_port());
    EXPECT_EQ(message_of([&] { (void)host.port(); }), "the host was not started");
    host.stop(); // no effect
    host.wait();
    host.start();
    EXPECT_EQ(message_of([&] { host.start(); }), "a host starts once; make another to serve again");
    host.stop();
    host.wait();
    EXPECT_EQ(message_of([&] { host.start(); }), "a host starts once; make another to serve again");
}

TEST(Host, CanStartAgainAfterAnAddressWasTaken)
{
    auto const server = named("one");
    auto const other = named("other");
    std::optional<host> holder(std::in_place, other, on_free_port());
    holder->start();
    host host(server, {.listen = {"127.0.0.1:" + std::to_string(holder->port())}, .threads = 1});
    EXPECT_THROW(host.start(), std::runtime_error);
    holder.reset();
    host.start();
    EXPECT_EQ(visitor(host.port()).call("who"), "one");
}

TEST(Host, HasAServerForItself)
{
    auto const server = named("one");
    {
        host first(server, on_free_port());
        host second(server, on_free_port());
        first.start();
        EXPECT_EQ(
            message_of([&] { second.start(); }), "the server one is served already; it can be served by one at a time");
        EXPECT_EQ(visitor(first.port()).call("who"), "one");
    }
    host third(server, on_free_port());
    third.start();
    EXPECT_EQ(visitor(third.port()).call("who"), "one");
}

TEST(Host, LetsACallFinishWhenItStops)
{
    turnstile at;
    auto server = named("one");
    server.tool("pass", [&at](call& on) { return turnstile::pass(at, on); });
    host host(server, on_free_port());
    host.start();
    visitor caller(host.port());
    caller.begin("pass");
    at.begun.get_future().wait();
    std::thread([&] { host.stop(); }).join();
    http_client probe(host.port()); // stopping, and still there
    while (probe.ask("GET", "/readyz", {}).status != 503)
        ;
    at.is_open = true;
    EXPECT_EQ(caller.finish(), "through");
    host.wait();
}

TEST(Host, InterruptsCallsWhenItStopsNow)
{
    turnstile at;
    auto server = named("one");
    server.tool("pass", [&at](call& on) { return turnstile::pass(at, on); });
    host host(server, on_free_port());
    host.start();
    visitor caller(host.port());
    caller.begin("pass");
    at.begun.get_future().wait();
    host.stop();
    host.stop_now();
    host.wait();
    EXPECT_NE(caller.finish(), "through");
}

TEST(Host, CanBeDestroyedWithoutAStop)
{
    turnstile at;
    auto server = named("one");
    server.tool("pass", [&at](call& on) { return turnstile::pass(at, on); });
    std::optional<host> host(std::in_place, server, on_free_port());
    host->start();
    visitor caller(host->port());
    caller.begin("pass");
    at.begun.get_future().wait();
    host.reset();
    EXPECT_NE(caller.finish(), "through");
}

TEST(Host, IsStoppedByATool)
{
    std::optional<host> host;
    std::string waited;
    auto server = named("one");
    server.tool("stop", [&] {
        host->stop();
        waited = message_of([&] { host->wait(); });
        return std::string("stopping");
    });
    host.emplace(server, on_free_port());
    host->start();
    EXPECT_EQ(visitor(host->port()).call("stop"), "stopping");
    host->wait();
    EXPECT_EQ(waited, "a host cannot be waited for on a thread that it needs to stop");
}

TEST(Host, SaysOfSettingsWhatFlagsSay)
{
    auto const server = named("one");
    auto const make = [&](host_settings const& settings) { return message_of([&] { host host(server, settings); }); };
    EXPECT_EQ(make({.listen = {"127.0.0.1"}}).substr(0, 8), "listen: ");
    EXPECT_EQ(make({.listen = {"0.0.0.0:0"}}), http::needs_hosts("0.0.0.0:0"));
    EXPECT_EQ(make({.endpoint = "mcp"}), "endpoint: expected a path such as /mcp");
    EXPECT_EQ(make({.threads = 0}), "threads 0: expected a number from 1 to 1024");
    EXPECT_EQ(make({.log_level = log_level::alert}), "log.level alert: expected debug|info|warning|error|off");
    EXPECT_EQ(make({.drain = std::chrono::milliseconds(0)}), "");
    EXPECT_EQ(
        make({.others = {{"keepalive", "soon"}}}), "keepalive soon: expected a time such as 500ms, 15s, 10m or 1h");
    host_settings settings;
    EXPECT_EQ(
        message_of([&] { settings.set("keepalive", "soon"); }),
        "keepalive soon: expected a time such as 500ms, 15s, 10m or 1h");
    EXPECT_EQ(
        message_of([&] { settings.set("keepalife", "1s"); }),
        "there is no setting keepalife, but keepalive; docs/settings.md lists them");
    // A host writes no log of its own, and has no stdio.
    for (auto const* const key : {"log.format", "log.queue", "stdio.grace", "reference.background"})
        EXPECT_THROW(settings.set(key, "1s"), std::invalid_argument) << key;
    EXPECT_TRUE(settings.others.empty());
    settings.set("keepalive", "1s");
    EXPECT_EQ(make(settings), "");
}

TEST(Host, TakesSettingsOfBothKinds)
{
    auto const server = named("one");
    host_settings settings{.listen = {"127.0.0.1:0", "localhost:0"}, .endpoint = "/here", .threads = 1};
    settings.set("allow_host", "a.example").set("allow_host", "b.example");
    host host(server, settings);
    host.start();
    EXPECT_EQ(host.addresses().size(), 2u);
    http_client client(host.port());
    EXPECT_EQ(client.ask("GET", "/mcp", {}).status, 404u);
    EXPECT_EQ(client.ask("GET", "/here", {}).status, 400u);
}

TEST(Host, TellsItsLogToAFunction)
{
    std::mutex mutex;
    std::vector<std::string> lines;
    auto server = named("one");
    server.tool("fail", []() -> std::string { throw std::runtime_error("why"); });
    {
        auto settings = on_free_port();
        settings.set("node.id", "left");
        host host(
            server, settings,
            {[&](log_entry const& entry) {
                 std::lock_guard const lock(mutex);
                 lines.push_back(std::string(to_string(entry.level)) + " " + entry.text());
             },
             [] { return std::uint64_t(7); }});
        host.start();
        visitor(host.port()).call("fail");
        EXPECT_TRUE(
            http_client(host.port()).ask("GET", "/metrics", {}).body.contains("belay_log_lines_dropped_total 7"));
    }
    std::lock_guard const lock(mutex);
    EXPECT_TRUE(std::ranges::any_of(lines, [](std::string const& line) {
        return line.starts_with("error tool fail failed: why") && line.contains(" node=left");
    })) << testing::PrintToString(lines);
}

// --- what is the process's own

TEST(Host, TouchesNothingOfTheProcess)
{
    // In a process of its own, because the folder, the environment and the descriptors are the process's.
    auto const folder = std::filesystem::temp_directory_path() / ("belay-host-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "belay.toml") << "this is = not [right";
    auto const child = [&] {
        std::filesystem::current_path(folder);
        ::setenv("BELAY_KEEPALIVE", "soon", 1);
        std::freopen((folder / "out").c_str(), "w", stdout);
        std::freopen((folder / "err").c_str(), "w", stderr);
        struct sigaction before[std::size(fatal_signals)];
        for (std::size_t i = 0; i < std::size(fatal_signals); ++i)
            ::sigaction(fatal_signals[i], nullptr, &before[i]);
        int failures = 0;
        {
            auto const server = named("one");
            host host(server, on_free_port());
            host.start();
            failures += visitor(host.port()).call("who") != "one";
            // A reader that has gone raises no SIGPIPE, which would end the process.
            {
                visitor gone(host.port());
                gone.begin("who");
                gone.client().reset();
            }
            failures += visitor(host.port()).call("who") != "one";
            for (std::size_t i = 0; i < std::size(fatal_signals); ++i) {
                struct sigaction now{};
                ::sigaction(fatal_signals[i], nullptr, &now);
                failures += now.sa_handler != before[i].sa_handler;
            }
            host.stop();
            host.wait();
        }
        std::fflush(nullptr);
        failures += std::filesystem::file_size(folder / "out") != 0 || std::filesystem::file_size(folder / "err") != 0;
        std::_Exit(failures);
    };
    EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
    std::filesystem::remove_all(folder);
}

// --- on a context of the program's own

TEST(GuestHost, ServesOnTheContextThatItIsGiven)
{
    running_context its;
    std::thread::id loop_thread;
    its.on_it([&] { loop_thread = std::this_thread::get_id(); });
    std::thread::id tool_thread;
    auto server = named("one");
    server.tool("where", [&] {
        tool_thread = std::this_thread::get_id();
        return std::string();
    });
    host host(server, its.context(), as_guest());
    host.start();
    EXPECT_EQ(visitor(host.port()).call("who"), "one");
    visitor(host.port()).call("where");
    EXPECT_EQ(tool_thread, loop_thread);
    host.stop();
    host.wait();
    its.on_it([] {}); // the context goes on
}

TEST(GuestHost, HasNoLoopsOfItsOwn)
{
    asio::io_context context;
    auto const server = named("one");
    EXPECT_EQ(
        message_of([&] { host host(server, context, {.threads = 2}); }).substr(0, 27), "there is no setting threads");
}

TEST(GuestHost, LetsRunReturnOnceItHasStopped)
{
    asio::io_context context;
    auto const server = named("one");
    host host(server, context, as_guest());
    host.start();
    std::thread client([&, port = host.port()] {
        EXPECT_EQ(visitor(port).call("who"), "one");
        host.stop();
    });
    context.run(); // nothing else has work for it
    client.join();
    host.wait();
}

TEST(GuestHost, LetsACallFinishWhenItStops)
{
    running_context its;
    turnstile at;
    auto server = named("one");
    server.tool("pass", [&at](call& on) { return turnstile::pass(at, on); });
    host host(server, its.context(), as_guest());
    host.start();
    visitor caller(host.port());
    caller.begin("pass");
    at.begun.get_future().wait();
    host.stop();
    at.is_open = true;
    EXPECT_EQ(caller.finish(), "through");
    host.wait();
}

TEST(GuestHost, CanBeDestroyedWhileAnotherThreadRunsTheContext)
{
    running_context its;
    turnstile at;
    auto server = named("one");
    server.tool("pass", [&at](call& on) { return turnstile::pass(at, on); });
    std::optional<host> host(std::in_place, server, its.context(), as_guest());
    host->start();
    visitor caller(host->port());
    caller.begin("pass");
    at.begun.get_future().wait();
    host.reset();
    its.on_it([] {});
    EXPECT_NE(caller.finish(), "through");
}

TEST(GuestHost, CanBeDestroyedInsideTheContext)
{
    running_context its;
    turnstile at;
    auto server = named("one");
    server.tool("pass", [&at](call& on) { return turnstile::pass(at, on); });
    std::optional<host> host(std::in_place, server, its.context(), as_guest());
    host->start();
    visitor caller(host->port());
    caller.begin("pass");
    at.begun.get_future().wait();
    its.on_it([&] { host.reset(); });
    its.on_it([] {});
    EXPECT_NE(caller.finish(), "through");
}

TEST(GuestHost, CanBeDestroyedAfterTheContextWasStopped)
{
    turnstile at;
    auto server = named("one");
    server.tool("pass", [&at](call& on) { return turnstile::pass(at, on); });
    auto const context = std::make_unique<asio::io_context>();
    std::optional<host> host(std::in_place, server, *context, as_guest());
    host->start();
    std::thread runner([&] { context->run(); });
    visitor caller(host->port());
    caller.begin("pass");
    at.begun.get_future().wait();
    context->stop();
    runner.join();
    host.reset();
    EXPECT_NE(caller.finish(), "through");
}

TEST(GuestHost, CanBeDestroyedBeforeTheContextRan)
{
    asio::io_context context;
    auto const server = named("one");
    {
        host host(server, context, as_guest());
        host.start();
        EXPECT_TRUE(http_client(host.port()).is_connected());
    }
    context.run(); // finds nothing to do
}

TEST(GuestHost, IsOutlivedByAToolThatWaitsForSomethingElse)
{
    running_context its;
    std::promise<void> begun;
    std::promise<void> ended;
    std::optional<asio::steady_timer> other(std::in_place, its.context(), std::chrono::steady_clock::time_point::max());
    struct at_end {
        std::promise<void>& told;
        ~at_end() { told.set_value(); }
    };
    auto server = named("one");
    server.tool("wait", [&](call& on) -> task<std::string> {
        return [](call& of, asio::steady_timer& timer, std::promise<void>& is_begun,
                  std::promise<void>& is_ended) -> task<std::string> {
            at_end const tells{is_ended};
            // Deaf to being cancelled, as an operation of somebody else's may be.
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            is_begun.set_value();
            co_await timer.async_wait(asio::use_awaitable);
            co_await of.log(log_level::info, "wait", "too late");
            co_return "";
        }(on, *other, begun, ended);
    });
    std::optional<host> host(std::in_place, server, its.context(), as_guest());
    host->start();
    visitor caller(host->port());
    caller.begin("wait");
    begun.get_future().wait();
    host.reset();
    its.on_it([&] { other->expires_at(std::chrono::steady_clock::time_point::min()); });
    ended.get_future().wait();
    its.on_it([&] { other.reset(); });
}

TEST(GuestHost, IsNotWaitedForByTheThreadThatRunsIt)
{
    running_context its;
    auto const server = named("one");
    host host(server, its.context(), as_guest());
    host.start();
    EXPECT_EQ(visitor(host.port()).call("who"), "one");
    std::string said;
    its.on_it([&] { said = message_of([&] { host.wait(); }); });
    EXPECT_EQ(said, "a host cannot be waited for on a thread that it needs to stop");
}

}
