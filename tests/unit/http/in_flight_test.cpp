// What all connections together may keep of bodies and of answers.
#include "loopback.hpp"

#include <deque>

namespace belay::http {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::string head_of(std::string_view lines)
{
    return "POST / HTTP/1.1\r\nHost: localhost\r\n" + std::string(lines) + "\r\n";
}

std::string sized(std::size_t bytes)
{
    return head_of("Content-Length: " + std::to_string(bytes) + "\r\n");
}

std::string post(std::string_view body)
{
    return sized(body.size()) + std::string(body);
}

class InFlight : public Loopback {
protected:
    /// Peers that have sent a part of a body.
    void send_halves(std::size_t count, std::size_t announced, std::size_t sent)
    {
        for (std::size_t i = 0; i < count; ++i) {
            auto& peer = peers_.emplace_back(connect());
            peer.send(sized(announced) + std::string(sent, 'x'));
        }
    }
    /// A peer that asks and does not read.
    client& ask_and_leave(std::string_view what = "/")
    {
        auto& peer = peers_.emplace_back(server_->local_endpoint(), 4096);
        peer.send("GET " + std::string(what) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        return peer;
    }

    std::deque<client> peers_;
};

}

TEST_F(InFlight, RefusesABodyThatWouldNotFitBeforeItComes)
{
    settings_.max_bytes_in = mib;
    start();
    send_halves(3, 400 * kib, 300 * kib);
    ASSERT_TRUE(eventually([&] { return statistics().bytes_in > 900 * kib; }));
    auto late = connect();
    auto const refused = late.ask(sized(400 * kib)); // its head alone
    EXPECT_EQ(status_of(refused), 503u);
    EXPECT_TRUE(has(refused, "\r\nRetry-After: "));
    EXPECT_TRUE(late.is_at_end());
    EXPECT_EQ(statistics().refused_bodies, 1u);
    // Those of ordinary size are read, and there is room again when somebody has gone.
    EXPECT_EQ(status_of(connect().ask(post(std::string(10 * kib, 'y')))), 200u);
    peers_.pop_front();
    ASSERT_TRUE(eventually([&] { return statistics().bytes_in < 700 * kib; }));
    EXPECT_EQ(status_of(connect().ask(post(std::string(400 * kib, 'y')))), 200u);
}

TEST_F(InFlight, RefusesABodyInChunksOnceItGrowsTooLarge)
{
    settings_.max_bytes_in = mib;
    start();
    send_halves(1, 900 * kib, 800 * kib);
    ASSERT_TRUE(eventually([&] { return statistics().bytes_in > 800 * kib; }));
    auto peer = connect();
    peer.send(head_of("Transfer-Encoding: chunked\r\n"));
    for (int i = 0; i < 6; ++i)
        peer.send("10000\r\n" + std::string(0x10000, 'x') + "\r\n");
    EXPECT_EQ(status_of(peer.read_response()), 503u);
    EXPECT_EQ(statistics().refused_bodies, 1u);
}

TEST_F(InFlight, BoundsManyHalfSentBodies)
{
    settings_.max_bytes_in = 4 * mib;
    start(2);
    send_halves(40, 250 * kib, 200 * kib);
    ASSERT_TRUE(eventually([&] { return statistics().refused_bodies >= 15; }));
    // On each loop, one read may go beyond it.
    EXPECT_LE(statistics().bytes_in, 4 * mib + 2 * 64 * kib);
    EXPECT_EQ(status_of(connect().ask(post("still served"))), 200u);
    peers_.clear();
    EXPECT_TRUE(eventually([&] { return statistics().bytes_in == 0; }));
}

TEST_F(InFlight, CountsABodyUntilItIsAnswered)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(post(std::string(mib, 'x')));
    auto const e = take_held();
    EXPECT_GE(statistics().bytes_in, mib);
    on_loop([&] { e->respond({200, {}, {}}, "ok"); });
    EXPECT_EQ(statistics().bytes_in, 0u);
    EXPECT_EQ(status_of(peer.read_response()), 200u);
}

TEST_F(InFlight, CountsNothingOfOrdinaryRequests)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(post(std::string(10 * kib, 'x')));
    auto const e = take_held();
    EXPECT_EQ(statistics().bytes_in, 0u);
    on_loop([&] { e->respond({200, {}, {}}, std::string(10 * kib, 'y')); });
    EXPECT_EQ(statistics().bytes_out, 0u);
}

TEST_F(InFlight, ClosesTheReadersThatAreLongestWithoutProgress)
{
    std::string const big(mib, 'x');
    on_request_ = [&](exchange_ptr e) {
        e->respond({200, {}, {}}, e->request().path() == "/small" ? std::string_view("ok") : big);
    };
    settings_.send_buffer_bytes = 16384;
    settings_.max_bytes_out = 4 * mib;
    start();
    for (std::size_t i = 1; i <= 4; ++i) {
        ask_and_leave();
        ASSERT_TRUE(eventually([&] { return statistics().bytes_out > (i - 1) * mib; }));
        advance(1s);
    }
    EXPECT_EQ(statistics().closed_readers, 0u);
    // The first one reads a little, so that the second is now the slowest.
    auto const sends = statistics().sends;
    auto const begin = peers_[0].read_bytes(100 * kib);
    ASSERT_EQ(begin.size(), 100 * kib);
    ASSERT_TRUE(eventually([&] { return statistics().sends > sends; }));
    advance(1s);
    ask_and_leave();
    ASSERT_TRUE(eventually([&] { return statistics().closed_readers == 1; }));
    EXPECT_LE(statistics().bytes_out, 4 * mib);
    EXPECT_LT(peers_[1].read_all().size(), mib);
    // The others get all of theirs.
    for (std::size_t const i : {2u, 3u, 4u})
        EXPECT_EQ(body_of(peers_[i].read_response()).size(), mib) << i;
    auto const rest = begin.find("\r\n\r\n") + 4 + mib - begin.size();
    EXPECT_EQ(peers_[0].read_bytes(rest).size(), rest);
}

TEST_F(InFlight, ClosesSlowReadersOfEveryLoop)
{
    std::string const big(mib, 'x');
    on_request_ = [&](exchange_ptr e) {
        e->respond({200, {}, {}}, e->request().path() == "/small" ? std::string_view("ok") : big);
    };
    settings_.send_buffer_bytes = 16384;
    settings_.max_bytes_out = 4 * mib;
    start(3);
    for (int i = 0; i < 30; ++i)
        ask_and_leave();
    ASSERT_TRUE(eventually([&] { return statistics().closed_readers >= 24; }));
    EXPECT_LE(statistics().bytes_out, 4 * mib);
    EXPECT_EQ(status_of(connect().ask("GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")), 200u);
    peers_.clear();
    EXPECT_TRUE(eventually([&] { return statistics().bytes_out == 0; }));
}

TEST_F(InFlight, TellsAStreamThatItsReaderWasClosed)
{
    hold_requests();
    settings_.send_buffer_bytes = 16384;
    settings_.max_bytes_out = mib;
    start();
    ask_and_leave();
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->out().append(2 * mib, 'x');
        EXPECT_FALSE(e->flush());
        EXPECT_FALSE(seen.closed()) << "not from inside";
    });
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
    EXPECT_EQ(statistics().bytes_out, 0u);
}

}
