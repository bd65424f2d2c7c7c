#include "loopback.hpp"

#include "http/listener.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sys/resource.h>

namespace belay::http {

namespace {

using namespace std::chrono_literals;

std::string listen_error(std::string_view text)
{
    auto const result = parse_listen(text);
    return result ? "" : result.error();
}

using ServerTest = Loopback;

}

TEST(ParseListen, UnderstandsAddressesAndPorts)
{
    using boost::asio::ip::make_address;
    EXPECT_EQ(parse_listen("127.0.0.1:3000")->endpoint.address(), make_address("127.0.0.1"));
    EXPECT_EQ(parse_listen("127.0.0.1:3000")->endpoint.port(), 3000);
    EXPECT_EQ(parse_listen("[::1]:0")->endpoint.address(), make_address("::1"));
    EXPECT_EQ(parse_listen("localhost:1")->endpoint.address(), make_address("127.0.0.1"));
    EXPECT_TRUE(parse_listen(":80")->endpoint.address().is_unspecified());
    EXPECT_TRUE(parse_listen("0.0.0.0:80")->endpoint.address().is_unspecified());
}

TEST(ParseListen, SaysWhatIsWrong)
{
    for (auto const* const text :
         {"", "3000", "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1", "[::1:80", "::1:80",
          "[nope]:80", "example.com:80", "127.0.0.1:80 "})
        EXPECT_TRUE(has(listen_error(text), "HOST:PORT")) << text;
    EXPECT_TRUE(has(listen_error("example.com:80"), "localhost"));
}

TEST_F(ServerTest, ListensOnIpv6)
{
    settings_.listen = {"[::1]:0"};
    try {
        start();
    } catch (std::runtime_error const& error) {
        if (has(error.what(), "not an address"))
            GTEST_SKIP() << "this machine has no IPv6";
        throw;
    }
    EXPECT_TRUE(server_->local_endpoint().address().is_loopback());
    EXPECT_NE(server_->local_endpoint().port(), 0);
    int const fd = ::socket(AF_INET6, SOCK_STREAM, 0);
    auto const to = server_->local_endpoint();
    ASSERT_EQ(::connect(fd, to.data(), static_cast<socklen_t>(to.size())), 0);
    ASSERT_GT(::send(fd, plain_get.data(), plain_get.size(), 0), 0);
    char answer[12];
    ASSERT_EQ(::recv(fd, answer, sizeof answer, MSG_WAITALL), 12);
    EXPECT_EQ(std::string(answer, 12), "HTTP/1.1 200");
    ::close(fd);
}

TEST_F(ServerTest, RefusesAPortThatIsTaken)
{
    start(2);
    auto other = settings_;
    other.listen = {"127.0.0.1:" + std::to_string(server_->local_endpoint().port())};
    base::io_loop loop(clock_);
    try {
        server const second({&loop}, other, *this, {});
        ADD_FAILURE() << "two servers share a port";
    } catch (std::runtime_error const& error) {
        EXPECT_TRUE(has(error.what(), "in use")) << error.what();
    }
    EXPECT_EQ(status_of(connect().ask(plain_get)), 200u);
}

TEST_F(ServerTest, RefusesABadAddress)
{
    base::io_loop loop(clock_);
    settings_.listen = {"nowhere"};
    EXPECT_THROW(server({&loop}, settings_, *this, {}), std::runtime_error);
    settings_.listen = {"192.0.2.1:0"};
    EXPECT_THROW(server({&loop}, settings_, *this, {}), std::runtime_error);
}

TEST_F(ServerTest, CanBeDestroyedBeforeItsLoopRuns)
{
    base::io_loop loop(clock_);
    server const never({&loop}, settings_, *this, {});
}

TEST_F(ServerTest, AcceptsNothingBeforeItHasStarted)
{
    base::io_loop loop(clock_);
    server const waiting({&loop}, settings_, *this, {});
    EXPECT_EQ(loop.context().poll(), 0u);
}

TEST_F(ServerTest, KeepsNoDescriptorWhereAListenerFails)
{
    auto const open_descriptors = [] {
        std::filesystem::directory_iterator const all("/proc/self/fd");
        return std::ranges::distance(begin(all), end(all));
    };
    base::io_loop loop(clock_);
    http::policy const policy(settings_.policy);
    std::atomic<std::size_t> connections{0};
    in_flight bytes(settings_.max_bytes_in, settings_.max_bytes_out);
    auto const before = open_descriptors();
    EXPECT_THROW(
        listener(loop, settings_, policy, *this, {}, connections, bytes, -1, AF_INET), boost::system::system_error);
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ServerTest, SpreadsConnectionsOverItsLoops)
{
    std::set<base::loop*> used;
    on_request_ = [&](exchange_ptr e) {
        {
            std::lock_guard const lock(mutex_);
            used.insert(&e->loop());
        }
        respond_text(*e, 200, "x");
    };
    start(2);
    std::vector<client> peers;
    // The kernel chooses by hash: 64 connections miss one of two loops once in 2^63 runs.
    for (int i = 0; i < 64; ++i)
        peers.push_back(connect());
    for (auto& peer : peers)
        EXPECT_EQ(status_of(peer.ask(plain_get)), 200u);
    EXPECT_EQ(used.size(), 2u);
    EXPECT_EQ(statistics().accepted, 64u);
    EXPECT_EQ(statistics().open_connections, 64u);
    EXPECT_EQ(statistics().requests, 64u);
}

TEST_F(ServerTest, TurnsAwayConnectionsBeyondItsLimit)
{
    settings_.max_connections = 2;
    start();
    auto one = connect();
    auto two = connect();
    one.ask(plain_get);
    two.ask(plain_get);
    auto three = connect();
    auto const answer = three.ask(plain_get);
    EXPECT_EQ(status_of(answer), 503u);
    EXPECT_TRUE(has(answer, "Retry-After: 1\r\n"));
    EXPECT_TRUE(three.is_at_end());
    EXPECT_EQ(statistics().refused_full, 1u);
    EXPECT_EQ(status_of(one.ask(plain_get)), 200u);
    one.close();
    three.close();
    ASSERT_TRUE(eventually([&] { return statistics().open_connections == 1; }));
    EXPECT_EQ(status_of(connect().ask(plain_get)), 200u);
}

TEST_F(ServerTest, SurvivesRunningOutOfDescriptors)
{
    start();
    auto served = connect();
    served.ask(plain_get);
    // The undefined-behaviour sanitizer needs a descriptor when it meets a type for the first time, so what runs
    // without any is kept to what has run before.
    served.ask(plain_get);
    client waiting{client::unconnected{}};
    client later{client::unconnected{}};
    int const next_free = ::dup(0);
    ::close(next_free);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit none_left = before;
    none_left.rlim_cur = static_cast<rlim_t>(next_free);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_left), 0);

    waiting.connect(server_->local_endpoint());
    auto const answer = waiting.read_all();
    EXPECT_EQ(status_of(answer), 503u);
    EXPECT_EQ(body_of(answer), "The server has no free file descriptor; try again in a moment.\n");
    EXPECT_EQ(status_of(served.ask(plain_get)), 200u) << "others do not notice";

    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(statistics().refused_descriptors, 1u);
    later.connect(server_->local_endpoint());
    EXPECT_EQ(status_of(later.ask(plain_get)), 200u);
    std::lock_guard const lock(mutex_);
    EXPECT_EQ(log_.size(), 1u) << "one line for the whole episode";
}

TEST_F(ServerTest, RaisesTheDescriptorLimit)
{
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit low = before;
    low.rlim_cur = std::min<rlim_t>(before.rlim_max, 256);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    EXPECT_EQ(raise_descriptor_limit(), before.rlim_max);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(ServerTest, StopsAcceptingAndServesOn)
{
    start(2);
    auto peer = connect();
    peer.ask(plain_get);
    server_->stop_accepting();
    barrier();
    int const fd = ::socket(AF_INET, SOCK_STREAM, 0);
    auto const to = server_->local_endpoint();
    EXPECT_NE(::connect(fd, to.data(), static_cast<socklen_t>(to.size())), 0);
    ::close(fd);
    EXPECT_EQ(status_of(peer.ask(plain_get)), 200u);
}

TEST_F(ServerTest, ClosesEverythingWhenStopped)
{
    start(2);
    auto idle = connect();
    idle.ask(plain_get);
    hold_requests();
    auto streaming = connect();
    streaming.send(plain_get);
    auto const stream = take_held();
    auto waiting = connect();
    waiting.send(plain_get);
    auto const unanswered = take_held();
    recorder seen;
    std::size_t const which = &stream->loop() == loops_[0].get() ? 0 : 1;
    on_loop(
        [&] {
            stream->begin_stream({200, {}, {}}, seen);
            stream->out() += "x";
            stream->flush();
        },
        which);
    stop();
    EXPECT_EQ(seen.closed(), stream_end::stopping);
    EXPECT_TRUE(idle.is_at_end());
    EXPECT_TRUE(has(streaming.read_all(), "1\r\nx\r\n"));
    EXPECT_EQ(waiting.read_all(), "");
    // Exchanges that outlive server and loops are harmless.
    EXPECT_TRUE(stream->peer_gone());
    EXPECT_FALSE(stream->flush());
    unanswered->respond({200, {}, {}}, "late");
}

}
