// belay::host, as a program with a life of its own uses it.
#include <belay/host.hpp>

#include "support/server_fixture.hpp"

#include <belay/run.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <sys/resource.h>
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
    /// The level of the messages that the session wants; what the answer was.
    std::string choose_level(std::string_view level)
    {
        auto const body = rpc("2", "logging/setLevel", "{\"level\":\"" + std::string(level) + "\"}");
        return client_.ask("POST", "/mcp", headers(), body).body;
    }
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

std::size_t entries_of(char const* folder)
{
    std::filesystem::directory_iterator const all(folder);
    return static_cast<std::size_t>(std::ranges::distance(begin(all), end(all)));
}

/// The lines of a log, which any thread writes.
class heard {
public:
    host_log log()
    {
        return {[this](log_entry const& entry) {
            std::lock_guard const lock(mutex_);
            lines_.push_back(std::string(to_string(entry.level)) + " " + entry.text());
        }};
    }
    /// How many begin like that.
    std::size_t count(std::string_view start)
    {
        std::lock_guard const lock(mutex_);
        return static_cast<std::size_t>(
            std::ranges::count_if(lines_, [&](std::string const& each) { return each.starts_with(start); }));
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// A coroutine on somebody else's context that waits for something of its own, and does not hear that it is to end.
class deaf_tool {
public:
    explicit deaf_tool(asio::io_context& on) : timer_(std::in_place, on, std::chrono::steady_clock::time_point::max())
    {
    }
    task<std::string> run(call& on) { return wait(*this, on); }
    void await_begin() { begun_.get_future().wait(); }
    void await_end() { ended_.get_future().wait(); }
    /// On the context; destroy() too.
    void let_go() { timer_->expires_at(std::chrono::steady_clock::time_point::min()); }
    void destroy() { timer_.reset(); }

private:
    static task<std::string> wait(deaf_tool& self, call& on)
    {
        at_end const tells{self.ended_};
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        self.begun_.set_value();
        co_await self.timer_->async_wait(asio::use_awaitable);
        co_await on.log(log_level::info, "wait", "too late");
        co_return "";
    }

    struct at_end {
        std::promise<void>& told;
        ~at_end() { told.set_value(); }
    };
    std::promise<void> begun_;
    std::promise<void> ended_;
    std::optional<asio::steady_timer> timer_;
};

/// From here on the process, which is the test's alone, gets so many threads more.
void allow_threads(std::size_t more)
{
    // Root may have as many as it likes; and nobody else is this user.
    if (::geteuid() == 0 && ::setresuid(1'000'000 + ::getpid(), 1'000'000 + ::getpid(), 0) != 0)
        std::_Exit(99);
    rlimit limit{};
    ::getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_cur = entries_of("/proc/self/task") + more;
    ::setrlimit(RLIMIT_NPROC, &limit);
}

void allow_threads_again()
{
    rlimit limit{};
    ::getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NPROC, &limit);
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

TEST(Host, LeavesItsServerToOthersOnceItHasStopped)
{
    auto const server = named("one");
    host first(server, on_free_port());
    first.start();
    first.stop();
    first.wait();
    host second(server, on_free_port());
    second.start();
    EXPECT_EQ(visitor(second.port()).call("who"), "one");
}

TEST(Host, IsStoppedAndWaitedForByManyAtOnce)
{
    auto const server = named("one");
    for (int i = 0; i < 20; ++i) {
        host host(server, {.listen = {"127.0.0.1:0"}, .threads = 2});
        host.start();
        std::vector<std::jthread> all;
        for (int k = 0; k < 4; ++k)
            all.emplace_back([&, k] {
                if (k % 2 == 0)
                    host.stop();
                else
                    host.stop_now();
                host.wait();
            });
    }
}

TEST(Host, LeavesNothingBehind)
{
    auto const live = [](std::string const& name) {
        auto const server = named(name);
        host host(server, on_free_port());
        host.start();
        EXPECT_EQ(visitor(host.port()).call("who"), name);
    };
    live("first"); // what the process itself opens once
    auto const descriptors = entries_of("/proc/self/fd");
    live("second");
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
}

TEST(Host, CanStartAgainWhenThereWereNoThreads)
{
    auto const child = [](std::size_t threads) {
        auto const server = named("one");
        host host(server, {.listen = {"127.0.0.1:0"}, .threads = 2});
        allow_threads(threads); // of two loops and a watch
        if (message_of([&] { host.start(); }).empty())
            std::_Exit(1);
        host.stop(); // no effect
        host.wait();
        allow_threads_again();
        host.start();
        std::_Exit(visitor(host.port()).call("who") == "one" ? 0 : 2);
    };
    // Who is not root shares the count with others, who may take what is left.
    for (std::size_t threads = 0; threads < (::geteuid() == 0 ? 3 : 1); ++threads)
        EXPECT_EXIT(child(threads), testing::ExitedWithCode(0), "") << threads;
}

TEST(Run, EndsWithASentenceWhenThereAreNoThreads)
{
    auto const child = [](std::size_t threads) {
        auto const server = named("one");
        std::string words[] = {"one", "--listen", "127.0.0.1:0", "--threads", "1"};
        char* arguments[std::size(words)];
        std::ranges::transform(words, arguments, [](std::string& each) { return each.data(); });
        allow_threads(threads); // of the log, a loop, its watch, the signals and the greeting
        std::_Exit(run(server, std::size(words), arguments));
    };
    for (std::size_t threads = 0; threads < (::geteuid() == 0 ? 5 : 1); ++threads)
        EXPECT_EXIT(child(threads), testing::ExitedWithCode(2), "one: ") << threads;
}

TEST(Host, SaysOfSettingsWhatFlagsSay)
{
    auto const server = named("one");
    auto const make = [&](host_settings const& settings) { return message_of([&] { host host(server, settings); }); };
    EXPECT_EQ(make({.listen = {"127.0.0.1"}}).substr(0, 8), "listen: ");
    EXPECT_EQ(make({.listen = {"0.0.0.0:0"}}), http::needs_hosts("0.0.0.0:0"));
    EXPECT_EQ(
        make({.listen = {"127.0.0.1:0", "systemd"}}),
        "listen: systemd is for programs; a host is told HOST:PORT or unix:PATH");
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
    heard lines;
    auto server = named("one");
    server.tool("fail", []() -> std::string { throw std::runtime_error("why"); });
    {
        auto settings = on_free_port();
        settings.set("node.id", "left");
        auto log = lines.log();
        log.dropped = [] { return std::uint64_t(7); };
        host host(server, settings, log);
        host.start();
        visitor(host.port()).call("fail");
        EXPECT_TRUE(
            http_client(host.port()).ask("GET", "/metrics", {}).body.contains("belay_log_lines_dropped_total 7"));
    }
    EXPECT_EQ(lines.count("error tool fail failed: why node=left"), 1u);
}

TEST(Host, SurvivesWhatFunctionsOfItsAuthorThrow)
{
    auto server = named("one");
    server.tool("fail", []() -> std::string { throw std::runtime_error("why"); });
    std::promise<void> again;
    server.every(std::chrono::milliseconds(1), [&, times = 0]() mutable {
        if (++times == 2)
            again.set_value();
        throw 1;
    });
    server.on_log_level([](session const&, log_level) { throw 2; });
    host host(server, on_free_port(), {[](log_entry const&) { throw 3; }, []() -> std::uint64_t { throw 4; }});
    host.start();
    visitor caller(host.port());
    EXPECT_NE(caller.call("fail"), "");
    EXPECT_TRUE(caller.choose_level("debug").contains("result"));
    EXPECT_EQ(http_client(host.port()).ask("GET", "/metrics", {}).status, 200u);
    again.get_future().wait();
    EXPECT_EQ(caller.call("who"), "one");
}

TEST(Host, HasALogThatMayUseTheServer)
{
    auto server = named("one");
    std::promise<void> told;
    host host(server, on_free_port(), {[&](log_entry const& entry) {
                  server.log(entry.level, "host", entry.text());
                  if (entry.message.starts_with("not registered"))
                      told.set_value();
              }});
    host.start();
    server.tool("slow", [] { return std::string(); }).timeout(std::chrono::seconds(1)); // a quick tool cannot wait
    told.get_future().wait();
    EXPECT_EQ(visitor(host.port()).call("who"), "one");
}

TEST(Host, SaysWhatAMountedServerCouldNotRegister)
{
    auto server = named("one");
    auto mounted = named("two");
    server.mount_stateless("/two", mounted);
    heard lines;
    host host(server, on_free_port(), lines.log());
    host.start();
    EXPECT_EQ(visitor(host.port()).call("who"), "one");
    mounted.tool("slow", [] { return std::string(); }).timeout(std::chrono::seconds(1));
    EXPECT_EQ(lines.count("error not registered: tool slow cannot wait"), 1u);
}

TEST(Host, ServesWhatWasRegisteredRightInTheEnd)
{
    auto server = named("one");
    server.tool("slow", [] { return std::string(); }).timeout(std::chrono::seconds(1));
    host host(server, on_free_port());
    EXPECT_TRUE(message_of([&] { host.start(); }).starts_with("tool slow cannot wait"));
    server.tool("slow", [] { return std::string("quick"); });
    host.start();
    EXPECT_EQ(visitor(host.port()).call("slow"), "quick");
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
    deaf_tool tool(its.context());
    auto server = named("one");
    server.tool("wait", [&](call& on) { return tool.run(on); });
    std::optional<host> first(std::in_place, server, its.context(), as_guest());
    first->start();
    visitor caller(first->port());
    caller.begin("wait");
    tool.await_begin();
    first.reset();
    {
        host second(server, its.context(), as_guest());
        second.start();
        EXPECT_EQ(visitor(second.port()).call("who"), "one");
    }
    its.on_it([&] { tool.let_go(); });
    tool.await_end();
    its.on_it([&] { tool.destroy(); });
}

TEST(GuestHost, SharesItsContextWithAnother)
{
    running_context its;
    auto const first = named("first");
    auto const second = named("second");
    host one(first, its.context(), as_guest());
    {
        host two(second, its.context(), as_guest());
        one.start();
        two.start();
        EXPECT_EQ(visitor(two.port()).call("who"), "second");
    }
    EXPECT_EQ(visitor(one.port()).call("who"), "first");
    one.stop();
    one.wait();
}

TEST(GuestHost, LeavesNothingOnTheContextWhenItCannotStart)
{
    asio::io_context context;
    auto const server = named("one");
    auto settings = as_guest();
    settings.set("admin.listen", "unix:/nowhere/belay.sock");
    host host(server, context, settings);
    EXPECT_THROW(host.start(), std::runtime_error);
    EXPECT_EQ(context.poll(), 0u);
}

TEST(GuestHost, IsWaitedForByAThreadThatDoesNotRunIt)
{
    auto const server = named("one");
    for (int i = 0; i < 50; ++i) {
        asio::io_context context;
        host host(server, context, as_guest());
        host.start();
        if (i % 2 == 0)
            context.poll(); // as far as it goes; another thread runs the rest
        host.stop();
        std::jthread const runner([&] { context.run(); });
        host.wait();
    }
}

TEST(GuestHost, CanBeDestroyedWhileAThreadBeginsToRunTheContext)
{
    auto const server = named("one");
    for (int i = 0; i < 50; ++i) {
        asio::io_context context;
        std::optional<host> host(std::in_place, server, context, as_guest());
        host->start();
        http_client const early(host->port());
        std::jthread const runner([&] { context.run(); });
        host.reset();
    }
}

TEST(GuestHost, WaitsWhenDestroyedForTheThreadThatRunsTheContextNow)
{
    asio::io_context context;
    auto const server = named("one");
    std::optional<host> host(std::in_place, server, context, as_guest());
    host->start();
    context.poll(); // by this thread, and by another from here on
    std::promise<void> is_held;
    std::promise<void> let_go;
    std::atomic<bool> has_returned = false;
    asio::post(context, [&] {
        is_held.set_value();
        let_go.get_future().wait();
        has_returned = true;
    });
    std::jthread const runner([&] { context.run(); });
    is_held.get_future().wait();
    std::jthread const other([&] { let_go.set_value(); });
    host.reset();
    EXPECT_TRUE(has_returned);
}

TEST(GuestHost, IsNotWaitedForOnAStoppedContext)
{
    asio::io_context context;
    auto const server = named("one");
    host host(server, context, as_guest());
    host.start();
    std::thread runner([&] { context.run(); });
    EXPECT_EQ(visitor(host.port()).call("who"), "one");
    context.stop();
    runner.join();
    host.stop();
    EXPECT_EQ(
        message_of([&] { host.wait(); }),
        "a host cannot be waited for while its context is stopped; run the context, or destroy the host");
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
