#include "http/connection.hpp"
#include "loopback.hpp"

namespace belay::http {

namespace {

using namespace std::chrono_literals;

std::string get(std::string_view path, std::string_view lines = {})
{
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(lines) + "\r\n";
}

std::string post(std::string_view path, std::string_view body)
{
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

using ConnectionTest = Loopback;

}

// --- Requests and answers --------------------------------------------------------------------------------

TEST_F(ConnectionTest, AnswersAndKeepsTheConnection)
{
    start();
    auto peer = connect();
    EXPECT_EQ(
        peer.ask(get("/one")),
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 6\r\n\r\n/one \n");
    EXPECT_EQ(body_of(peer.ask(post("/two", "body"))), "/two body\n");
    EXPECT_EQ(body_of(peer.ask(get("/three"))), "/three \n");
    EXPECT_EQ(statistics().accepted, 1u);
    EXPECT_EQ(statistics().requests, 3u);
}

TEST_F(ConnectionTest, AnswersWithOneSend)
{
    start();
    auto peer = connect();
    peer.ask(post("/", "x"));
    auto const before = statistics().sends;
    for (int i = 0; i < 10; ++i)
        peer.ask(post("/", "x"));
    EXPECT_EQ(statistics().sends - before, 10u);
}

TEST_F(ConnectionTest, ClosesWhenAskedTo)
{
    start();
    auto peer = connect();
    auto const answer = peer.ask(get("/", "Connection: close\r\n"));
    EXPECT_TRUE(has(answer, "\r\nConnection: close\r\n"));
    EXPECT_TRUE(peer.is_at_end());
}

TEST_F(ConnectionTest, FollowsTheRulesOfHttp10)
{
    start();
    auto once = connect();
    EXPECT_TRUE(has(once.ask("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"), "\r\nConnection: close\r\n"));
    EXPECT_TRUE(once.is_at_end());
    auto kept = connect();
    std::string const request = "GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
    EXPECT_TRUE(has(kept.ask(request), "\r\nConnection: keep-alive\r\n"));
    EXPECT_EQ(status_of(kept.ask(request)), 200u);
}

TEST_F(ConnectionTest, AnswersPipelinedRequestsInOrder)
{
    start();
    auto peer = connect();
    peer.send(get("/1") + post("/2", "b") + get("/3"));
    EXPECT_EQ(body_of(peer.read_response()), "/1 \n");
    EXPECT_EQ(body_of(peer.read_response()), "/2 b\n");
    EXPECT_EQ(body_of(peer.read_response()), "/3 \n");
}

TEST_F(ConnectionTest, HandlesAPipelinedRequestAfterALateAnswer)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/1") + get("/2"));
    auto const first = take_held();
    EXPECT_EQ(first->request().path(), "/1");
    barrier();
    EXPECT_TRUE(held_.empty()) << "one request at a time";
    on_loop([&] { respond_text(*first, 200, "one"); });
    auto const second = take_held();
    EXPECT_EQ(second->request().path(), "/2");
    EXPECT_EQ(body_of(peer.read_response()), "one\n");
    on_loop([&] { respond_text(*second, 200, "two"); });
    EXPECT_EQ(body_of(peer.read_response()), "two\n");
}

TEST_F(ConnectionTest, ReadsOnlyOneBufferAheadOfAnAnswer)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/first"));
    auto first = take_held();
    // More than is read ahead, less than the kernel buffers.
    std::string many;
    int count = 0;
    for (; many.size() < 60'000; ++count)
        many += get("/n" + std::to_string(count));
    peer.send(many);
    on_loop([&] { respond_text(*first, 200, "first"); });
    EXPECT_EQ(body_of(peer.read_response()), "first\n");
    for (int i = 0; i < count; ++i) {
        auto const next = take_held();
        ASSERT_EQ(next->request().path(), "/n" + std::to_string(i));
        on_loop([&] { respond_text(*next, 200, "x"); });
        peer.read_response();
    }
}

TEST_F(ConnectionTest, ReadsRequestsInSmallPieces)
{
    start();
    auto peer = connect();
    for (char const c : post("/pieces", "slowly"))
        peer.send(std::string_view(&c, 1));
    EXPECT_EQ(body_of(peer.read_response()), "/pieces slowly\n");
}

TEST_F(ConnectionTest, ReadsRequestsThatJustFillWhatTheyAreReceivedInto)
{
    start();
    auto peer = connect();
    auto const around = connection_site::input_bytes;
    auto const least = post("/", "").size();
    for (auto const size : {around - 1, around, around + 1, 2 * around})
        for (int i = 0; i < 3; ++i) {
            auto request = post("/", std::string(size - least, 'x'));
            request = post("/", std::string(2 * size - least - request.size(), 'x')); // the length has more digits
            ASSERT_EQ(request.size(), size);
            EXPECT_TRUE(peer.ask(request).ends_with("x\n"));
        }
}

TEST_F(ConnectionTest, ReadsChunkedAndLargeBodies)
{
    on_request_ = [](exchange_ptr e) { respond_text(*e, 200, std::to_string(e->request().body().size())); };
    start();
    auto peer = connect();
    EXPECT_EQ(
        body_of(peer.ask("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")),
        "7\n");
    EXPECT_EQ(body_of(peer.ask(post("/", std::string(3 << 20, 'x')))), std::to_string(3 << 20) + "\n");
}

TEST_F(ConnectionTest, SendsLargeAnswers)
{
    std::string const big(20 << 20, 'x');
    on_request_ = [&](exchange_ptr e) { e->respond({200, "a/b", {}}, big); };
    start();
    auto peer = connect();
    EXPECT_EQ(body_of(peer.ask(get("/"))), big);
    EXPECT_EQ(body_of(peer.ask(get("/"))), big);
}

TEST_F(ConnectionTest, SendsALargeAnswerToAPeerThatHasEndedItsOutput)
{
    std::string const big(20 << 20, 'x');
    on_request_ = [&](exchange_ptr e) { e->respond({200, "a/b", {}}, big); };
    start();
    auto peer = connect();
    peer.send(get("/"));
    peer.end_output();
    EXPECT_EQ(body_of(peer.read_all()).size(), big.size());
}

TEST_F(ConnectionTest, LeavesTheBodyOutForHead)
{
    start();
    auto peer = connect();
    peer.send("HEAD /h HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto const head = peer.read_until("\r\n\r\n");
    EXPECT_TRUE(has(head, "Content-Length: 4\r\n"));
    EXPECT_EQ(body_of(peer.ask(get("/next"))), "/next \n");
}

TEST_F(ConnectionTest, LeavesLengthAndBodyOutFor204)
{
    on_request_ = [](exchange_ptr e) { e->respond({204, {}, {}}, "ignored"); };
    start();
    auto peer = connect();
    EXPECT_EQ(peer.ask(get("/")), "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(peer.ask(get("/")), "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_F(ConnectionTest, DropsFieldsThatWouldInjectOthers)
{
    on_request_ = [](exchange_ptr e) {
        e->respond({200, "text/plain\r\nX-Evil: 1", {{"X-Good", "1"}, {"X-Bad", "a\r\nX-Evil: 1"}, {"X\nY", "b"}}}, "");
    };
    start();
    EXPECT_EQ(connect().ask(get("/")), "HTTP/1.1 200 OK\r\nX-Good: 1\r\nContent-Length: 0\r\n\r\n");
}

TEST_F(ConnectionTest, DecidesTheFramingItself)
{
    on_request_ = [](exchange_ptr e) {
        e->respond({200, {}, {{"content-length", "99"}, {"Transfer-Encoding", "chunked"}}}, "x");
    };
    start();
    EXPECT_EQ(connect().ask(get("/")), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
}

TEST_F(ConnectionTest, ClosesWhenTheHandlerSaysSo)
{
    on_request_ = [](exchange_ptr e) { e->respond({503, {}, {{"Connection", "close"}}}, ""); };
    start();
    auto peer = connect();
    EXPECT_EQ(peer.ask(get("/")), "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(peer.is_at_end());
}

TEST_F(ConnectionTest, DropsAnAnswerNobodyWaitsFor)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    peer.close();
    EXPECT_TRUE(eventually([&] { return statistics().open_connections == 0; }));
    on_loop([&] {
        EXPECT_TRUE(e->peer_gone());
        respond_text(*e, 200, "late");
    });
}

TEST_F(ConnectionTest, TellsAHandlerWhoseAnswerNobodyWaitsForAnyMore)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] { e->observe(seen); });
    EXPECT_FALSE(seen.closed());
    peer.close();
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
    // Too late is told as well, and an answer is the last that the observer has to hear.
    recorder late;
    recorder never;
    on_loop([&] { e->observe(late); });
    EXPECT_EQ(late.wait_closed(), stream_end::peer_gone);
    on_loop([&] {
        e->observe(never);
        respond_text(*e, 200, "late");
    });
    barrier();
    EXPECT_FALSE(never.closed());
}

TEST_F(ConnectionTest, TellsNobodyOfTheConnectionAfterAnObservedAnswer)
{
    hold_requests();
    start();
    auto peer = connect();
    recorder seen;
    peer.send(get("/"));
    auto answered = take_held();
    on_loop([&] {
        answered->observe(seen);
        respond_text(*answered, 200, "right");
    });
    EXPECT_EQ(body_of(peer.read_response()), "right\n");
    peer.send(get("/"));
    auto dropped = take_held();
    on_loop([&] { dropped->observe(seen); });
    dropped.reset();
    EXPECT_EQ(status_of(peer.read_response()), 500u);
    peer.close();
    EXPECT_TRUE(eventually([&] { return statistics().open_connections == 0; }));
    EXPECT_FALSE(seen.closed());
}

TEST_F(ConnectionTest, IgnoresASecondAnswer)
{
    exchange_ptr kept;
    on_request_ = [&](exchange_ptr e) {
        if (kept)
            respond_text(*kept, 500, "again");
        kept = e;
        respond_text(*e, 200, "right");
    };
    start();
    auto peer = connect();
    EXPECT_EQ(body_of(peer.ask(get("/"))), "right\n");
    EXPECT_EQ(body_of(peer.ask(get("/"))), "right\n");
    on_loop([&] {
        kept->out() += "x";
        kept->flush();
        kept->end_stream();
        kept->abort();
        EXPECT_EQ(kept->request().path(), "");
        kept.reset();
    });
    EXPECT_EQ(body_of(peer.ask(get("/"))), "right\n");
    on_loop([&] { kept.reset(); });
}

TEST_F(ConnectionTest, AnswersForAHandlerThatLetsGo)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    take_held().reset(); // on this thread
    EXPECT_EQ(status_of(peer.read_response()), 500u);
    EXPECT_TRUE(peer.is_at_end());
}

// --- 100-continue ----------------------------------------------------------------------------------------

TEST_F(ConnectionTest, AsksForABodyThatWaits)
{
    start();
    auto peer = connect();
    peer.send("POST /e HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(peer.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(body_of(peer.ask("body")), "/e body\n");
}

TEST_F(ConnectionTest, DoesNotAskForABodyThatIsThere)
{
    start();
    EXPECT_EQ(
        status_of(connect().ask(
            "POST /e HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody")),
        200u);
}

TEST_F(ConnectionTest, RefusesABodyThatIsTooLargeInsteadOfAskingForIt)
{
    start();
    auto peer = connect();
    EXPECT_EQ(
        status_of(
            peer.ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n")),
        413u);
    EXPECT_TRUE(peer.is_at_end());
}

// --- Refusals --------------------------------------------------------------------------------------------

TEST_F(ConnectionTest, RefusesBadRequestsWithASentenceAndCloses)
{
    settings_.limits.header_count = 10;
    start();
    struct {
        unsigned status;
        std::string request;
    } const cases[] = {
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\nHost: localhost\n\n"},
        {400, std::string("\x16\x03\x01\x02\x00\x01", 6)},
        {400,
         "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX"},
        {400, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
        {413, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n"},
        {414, "GET /" + std::string(9000, 'x')},
        {417, get("/", "Expect: tea\r\n")},
        {431, get("/", "X: " + std::string(17000, 'x') + "\r\n")},
        {431, get("/", "A:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n")},
        {501, "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n"},
        {505, "GET / HTTP/3.0\r\nHost: localhost\r\n\r\n"},
    };
    for (auto const& [status, request] : cases) {
        auto peer = connect();
        peer.send(request);
        bool was_reset = false;
        auto const answer = peer.read_all(&was_reset);
        EXPECT_EQ(status_of(answer), status) << request.substr(0, 60);
        EXPECT_FALSE(was_reset) << request.substr(0, 60);
        EXPECT_TRUE(has(answer, "Content-Type: text/plain; charset=utf-8\r\n"));
        EXPECT_TRUE(has(answer, "\r\nConnection: close\r\n"));
        EXPECT_TRUE(answer.ends_with(".\n")) << answer;
    }
    EXPECT_EQ(statistics().refused_requests, std::size(cases));
    EXPECT_EQ(statistics().requests, 0u);
}

TEST_F(ConnectionTest, LetsASenderOfTooMuchSeeWhy)
{
    start();
    auto peer = connect();
    // The whole body is sent before anything is read; closing at once would reset the connection.
    peer.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n");
    peer.send(std::string(8'000'000, 'x'));
    peer.end_output();
    bool was_reset = false;
    EXPECT_EQ(status_of(peer.read_all(&was_reset)), 413u);
    EXPECT_FALSE(was_reset);
}

TEST_F(ConnectionTest, ServesWhatCameBeforeABadRequest)
{
    start();
    auto peer = connect();
    peer.send(get("/good") + "BAD\r\n\r\n" + get("/never"));
    EXPECT_EQ(body_of(peer.read_response()), "/good \n");
    EXPECT_EQ(status_of(peer.read_response()), 400u);
    EXPECT_TRUE(peer.is_at_end());
    EXPECT_EQ(statistics().requests, 1u);
}

// --- Host, Origin, CORS ----------------------------------------------------------------------------------

TEST_F(ConnectionTest, RefusesForeignHostsAndOriginsAndKeepsTheConnection)
{
    start();
    auto peer = connect();
    auto const host = peer.ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    EXPECT_EQ(status_of(host), 403u);
    EXPECT_TRUE(has(host, "--allow-host"));
    auto const origin = peer.ask(get("/", "Origin: http://evil.example\r\n"));
    EXPECT_EQ(status_of(origin), 403u);
    EXPECT_TRUE(has(origin, "--allow-origin"));
    EXPECT_FALSE(has(origin, "Access-Control"));
    EXPECT_EQ(status_of(peer.ask(get("/"))), 200u);
    EXPECT_EQ(statistics().requests, 1u);
}

TEST_F(ConnectionTest, AnswersPagesAndPreflights)
{
    settings_.policy.cors_expose = "X-Id";
    start();
    auto peer = connect();
    auto const preflight = peer.ask("OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: "
                                    "http://localhost:5\r\nAccess-Control-Request-Method: POST\r\n\r\n");
    EXPECT_EQ(status_of(preflight), 204u);
    EXPECT_TRUE(has(preflight, "Access-Control-Allow-Origin: http://localhost:5\r\n"));
    EXPECT_TRUE(has(preflight, "Access-Control-Allow-Methods: "));
    EXPECT_TRUE(has(preflight, "Access-Control-Max-Age: "));
    EXPECT_EQ(statistics().requests, 0u);
    auto const answer = peer.ask(get("/", "Origin: http://localhost:5\r\n"));
    EXPECT_TRUE(has(answer, "Access-Control-Allow-Origin: http://localhost:5\r\nVary: Origin\r\n"));
    EXPECT_TRUE(has(answer, "Access-Control-Expose-Headers: X-Id\r\n"));
    EXPECT_FALSE(has(answer, "Access-Control-Allow-Methods"));
}

TEST_F(ConnectionTest, LetsAPageSeeARefusal)
{
    start();
    auto const answer = connect().ask(
        "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:5\r\nContent-Length: 5000000\r\n\r\n");
    EXPECT_EQ(status_of(answer), 413u);
    EXPECT_TRUE(has(answer, "Access-Control-Allow-Origin: http://localhost:5\r\n"));
}

// --- Timeouts --------------------------------------------------------------------------------------------

TEST_F(ConnectionTest, ClosesANewConnectionThatSendsNothing)
{
    start();
    auto peer = connect();
    ASSERT_TRUE(eventually([&] { return statistics().open_connections == 1; }));
    advance(9'999ms);
    EXPECT_EQ(statistics().open_connections, 1u);
    advance(2ms);
    EXPECT_TRUE(peer.is_at_end());
}

TEST_F(ConnectionTest, RefusesASlowHead)
{
    start();
    auto peer = connect();
    peer.send(get("/") + "GET /slow HT");
    EXPECT_EQ(status_of(peer.read_response()), 200u);
    advance(9'999ms);
    peer.send("TP");
    ASSERT_EQ(statistics().open_connections, 1u);
    advance(2ms);
    EXPECT_EQ(status_of(peer.read_all()), 408u);
}

TEST_F(ConnectionTest, RefusesASlowBody)
{
    start();
    auto peer = connect();
    peer.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    peer.read_until("\r\n\r\n");
    advance(29'999ms);
    EXPECT_EQ(statistics().open_connections, 1u);
    advance(2ms);
    EXPECT_EQ(status_of(peer.read_all()), 408u);
}

TEST_F(ConnectionTest, ClosesAnIdleConnectionSilently)
{
    start();
    auto peer = connect();
    peer.ask(get("/"));
    advance(74s);
    peer.ask(get("/"));
    advance(74'999ms);
    EXPECT_EQ(statistics().open_connections, 1u);
    advance(2ms);
    EXPECT_TRUE(peer.is_at_end());
}

TEST_F(ConnectionTest, WaitsForAnAnswerWithoutLimit)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    advance(1h);
    on_loop([&] { respond_text(*e, 200, "at last"); });
    EXPECT_EQ(body_of(peer.read_response()), "at last\n");
    advance(74s);
    EXPECT_EQ(statistics().open_connections, 1u);
    advance(2s);
    EXPECT_TRUE(peer.is_at_end());
}

TEST_F(ConnectionTest, DropsAPeerThatDoesNotReadItsAnswer)
{
    std::string const big(20 << 20, 'x');
    on_request_ = [&](exchange_ptr e) { e->respond({200, "a/b", {}}, big); };
    settings_.send_buffer_bytes = 16384;
    start();
    client peer(server_->local_endpoint(), 4096);
    peer.send(get("/"));
    ASSERT_TRUE(eventually([&] { return statistics().sends > 0; }));
    advance(29s);
    EXPECT_EQ(statistics().open_connections, 1u);
    advance(31s);
    EXPECT_EQ(statistics().open_connections, 0u);
    EXPECT_LT(peer.read_all().size(), big.size());
}

TEST_F(ConnectionTest, CountsProgressWhileWriting)
{
    std::string const big(4 << 20, 'x');
    on_request_ = [&](exchange_ptr e) { e->respond({200, "a/b", {}}, big); };
    settings_.send_buffer_bytes = 16384;
    start();
    client peer(server_->local_endpoint(), 4096);
    peer.send(get("/"));
    peer.read_until("\r\n\r\n");
    std::size_t got = 0;
    for (int i = 0; i < 4; ++i) {
        got += peer.read_bytes(500'000).size();
        advance(20s);
    }
    EXPECT_EQ(statistics().open_connections, 1u);
    EXPECT_EQ(peer.read_bytes(big.size() - got).size(), big.size() - got);
}

TEST_F(ConnectionTest, LingersForALimitedTime)
{
    start();
    auto peer = connect();
    EXPECT_EQ(status_of(peer.ask("BAD\r\n\r\n")), 400u);
    EXPECT_TRUE(peer.is_at_end()) << "our side is closed";
    barrier();
    EXPECT_EQ(statistics().open_connections, 1u);
    advance(2'001ms);
    EXPECT_EQ(statistics().open_connections, 0u);
}

// --- Streams ---------------------------------------------------------------------------------------------

TEST_F(ConnectionTest, StreamsInChunksWithOneSendEach)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    auto const before = statistics().sends;
    on_loop([&] {
        e->begin_stream({200, "text/event-stream", {{"X-A", "b"}}}, seen);
        e->out() += "first";
        EXPECT_TRUE(e->flush());
    });
    EXPECT_EQ(
        peer.read_until("first\r\n"),
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-A: "
        "b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    on_loop([&] {
        e->out() += "second, ";
        e->out() += "longer than that";
        EXPECT_TRUE(e->flush());
        EXPECT_TRUE(e->flush()) << "nothing to send is no chunk";
    });
    EXPECT_EQ(peer.read_until("that\r\n"), "18\r\nsecond, longer than that\r\n");
    on_loop([&] {
        e->out() += "last";
        e->end_stream();
    });
    EXPECT_EQ(peer.read_until("0\r\n\r\n"), "4\r\nlast\r\n0\r\n\r\n");
    EXPECT_EQ(statistics().sends - before, 3u);
    EXPECT_FALSE(seen.closed());

    // The connection goes on.
    peer.send(get("/again"));
    auto const next = take_held();
    on_loop([&] { respond_text(*next, 200, "again"); });
    EXPECT_EQ(body_of(peer.read_response()), "again\n");
}

TEST_F(ConnectionTest, StreamsHeadAndAllInOneSendIfEndedAtOnce)
{
    recorder seen;
    on_request_ = [&](exchange_ptr e) {
        e->begin_stream({200, {}, {}}, seen);
        e->out() += "all";
        e->end_stream();
    };
    start();
    auto peer = connect();
    peer.send(get("/") + get("/"));
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(
            peer.read_until("0\r\n\r\n"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nall\r\n0\r\n\r\n");
    EXPECT_EQ(statistics().sends, 2u);
}

TEST_F(ConnectionTest, FlushesAHeadWithoutABody)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        EXPECT_TRUE(e->flush());
    });
    EXPECT_EQ(peer.read_until("\r\n\r\n"), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    on_loop([&] { e->end_stream(); });
    EXPECT_EQ(peer.read_until("0\r\n\r\n"), "0\r\n\r\n");
}

TEST_F(ConnectionTest, EndsAStreamToHttp10ByClosing)
{
    recorder seen;
    on_request_ = [&](exchange_ptr e) {
        e->begin_stream({200, {}, {}}, seen);
        e->out() += "one";
        e->flush();
        e->out() += "two";
        e->end_stream();
    };
    start();
    auto peer = connect();
    peer.send("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(peer.read_all(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nonetwo");
}

TEST_F(ConnectionTest, AnswersHeadOfAStreamWithItsHead)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, "text/event-stream", {}}, seen);
        e->out() += "dropped";
        e->flush();
    });
    EXPECT_EQ(seen.wait_closed(), stream_end::finished);
    EXPECT_TRUE(peer.read_until("\r\n\r\n").ends_with("chunked\r\n\r\n"));
    on_loop([&] { e->abort(); }); // too late to matter
    peer.send(get("/next"));
    auto const next = take_held();
    on_loop([&] { respond_text(*next, 200, "next"); });
    EXPECT_EQ(body_of(peer.read_response()), "next\n");
}

TEST_F(ConnectionTest, TellsWhenAFullSocketHasDrained)
{
    hold_requests();
    settings_.send_buffer_bytes = 16384;
    start();
    client peer(server_->local_endpoint(), 4096);
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    std::size_t const size = 2'000'000;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->out().append(size, 'x');
        EXPECT_FALSE(e->flush());
        EXPECT_GT(e->unacknowledged(), size / 2);
    });
    peer.read_until("\r\n\r\n");
    EXPECT_EQ(peer.read_until("\r\n"), "1e8480\r\n");
    EXPECT_EQ(peer.read_bytes(size), std::string(size, 'x'));
    EXPECT_TRUE(seen.wait_drained());
    EXPECT_TRUE(eventually([&] {
        std::size_t left = 1;
        on_loop([&] { left = e->unacknowledged(); });
        return left == 0;
    }));
    on_loop([&] { e->end_stream(); });
    EXPECT_EQ(peer.read_until("0\r\n\r\n"), "\r\n0\r\n\r\n");
}

TEST_F(ConnectionTest, TellsWhenAnEndedAnswerHasArrived)
{
    hold_requests();
    settings_.send_buffer_bytes = 16384;
    start();
    client peer(server_->local_endpoint(), 4096);
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    std::atomic<int> arrived{0};
    std::shared_ptr<base::receipt> receipt;
    std::size_t const size = 1'000'000;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->out().append(size, 'x');
        receipt = e->end_stream([&] { ++arrived; });
        ASSERT_TRUE(receipt);
        receipt->ask();
    });
    EXPECT_EQ(arrived, 0);
    peer.read_until("\r\n\r\n");
    peer.read_bytes(size);
    peer.read_until("0\r\n\r\n");
    EXPECT_TRUE(eventually([&] {
        on_loop([&] { receipt->ask(); });
        return arrived == 1;
    }));
    // Once, and not again with what follows on the connection.
    peer.send(get("/next"));
    auto const next = take_held();
    on_loop([&] { respond_text(*next, 200, "next"); });
    peer.read_response();
    on_loop([&] { receipt->ask(); });
    EXPECT_EQ(arrived, 1);
}

TEST_F(ConnectionTest, NeverTellsOfAnAnswerThatWasLost)
{
    hold_requests();
    settings_.send_buffer_bytes = 16384;
    start();
    std::atomic<bool> arrived{false};
    std::weak_ptr<base::receipt> receipt;
    {
        client peer(server_->local_endpoint(), 4096);
        peer.send(get("/"));
        auto const e = take_held();
        recorder seen;
        on_loop([&] {
            e->begin_stream({200, {}, {}}, seen);
            e->out().append(1'000'000, 'x');
            receipt = e->end_stream([&] { arrived = true; });
        });
        EXPECT_FALSE(receipt.expired());
    }
    EXPECT_TRUE(eventually([&] { return receipt.expired(); })); // with its connection
    EXPECT_FALSE(arrived);
}

TEST_F(ConnectionTest, EndsAStreamWhileTheSocketIsFull)
{
    hold_requests();
    settings_.send_buffer_bytes = 16384;
    start();
    client peer(server_->local_endpoint(), 4096);
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->out().append(1'000'000, 'x');
        EXPECT_FALSE(e->flush());
        e->out() += "end";
        e->end_stream();
    });
    auto const text = peer.read_until("3\r\nend\r\n0\r\n\r\n");
    EXPECT_TRUE(text.ends_with("xxx\r\n3\r\nend\r\n0\r\n\r\n"));
    peer.send(get("/"));
    auto const next = take_held();
    on_loop([&] { respond_text(*next, 200, "next"); });
    EXPECT_EQ(body_of(peer.read_response()), "next\n");
}

TEST_F(ConnectionTest, TellsAStreamThatItsPeerHasClosed)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->flush();
    });
    EXPECT_FALSE(e->peer_gone());
    peer.close();
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
    EXPECT_TRUE(e->peer_gone());
    on_loop([&] {
        e->out() += "late";
        EXPECT_FALSE(e->flush());
    });
    EXPECT_EQ(statistics().open_connections, 0u);
}

TEST_F(ConnectionTest, TellsAStreamThatItsPeerHasReset)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->flush();
    });
    peer.read_until("\r\n\r\n");
    peer.reset();
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
}

TEST_F(ConnectionTest, TellsAFailedWriteLater)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        peer.reset();
        // The loop is busy here, so the flush is the first to notice.
        e->out() += "x";
        EXPECT_FALSE(e->flush());
        EXPECT_FALSE(seen.closed()) << "not from inside flush()";
    });
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
}

TEST_F(ConnectionTest, TellsAStreamThatBeginsTooLate)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    peer.reset();
    ASSERT_TRUE(eventually([&] { return statistics().open_connections == 0; }));
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->out() += "x";
        EXPECT_FALSE(e->flush());
        EXPECT_FALSE(seen.closed());
    });
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
}

TEST_F(ConnectionTest, SaysNothingAfterTheOwnEnd)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    peer.reset();
    ASSERT_TRUE(eventually([&] { return statistics().open_connections == 0; }));
    {
        recorder seen;
        on_loop([&] {
            e->begin_stream({200, {}, {}}, seen);
            e->end_stream();
        });
    } // gone: the sanitizer would notice a call
    barrier();
}

TEST_F(ConnectionTest, DropsAStreamWhosePeerDoesNotRead)
{
    hold_requests();
    settings_.send_buffer_bytes = 16384;
    start();
    client peer(server_->local_endpoint(), 4096);
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->out().append(5'000'000, 'x');
        EXPECT_FALSE(e->flush());
    });
    advance(29s);
    EXPECT_FALSE(seen.closed());
    advance(31s);
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
    on_loop([&] { EXPECT_GT(e->unacknowledged(), 1'000'000u) << "still an upper bound"; });
}

TEST_F(ConnectionTest, KeepsAQuietStreamForEver)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->flush();
    });
    advance(24h);
    EXPECT_FALSE(seen.closed());
    on_loop([&] { e->end_stream(); });
    EXPECT_TRUE(peer.read_until("0\r\n\r\n").ends_with("0\r\n\r\n"));
}

TEST_F(ConnectionTest, AbortsAStreamWithoutItsEnd)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->out() += "x";
        e->flush();
        e->abort();
    });
    EXPECT_TRUE(peer.read_all().ends_with("1\r\nx\r\n"));
    EXPECT_FALSE(seen.closed());
}

TEST_F(ConnectionTest, AbortsAStreamWhoseHandlerLetsGo)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/"));
    auto e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->flush();
    });
    e.reset();
    EXPECT_FALSE(has(peer.read_all(), "0\r\n\r\n"));
    EXPECT_FALSE(seen.closed());
}

TEST_F(ConnectionTest, HandlesARequestThatWaitedBehindAStream)
{
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/stream"));
    auto const e = take_held();
    recorder seen;
    on_loop([&] {
        e->begin_stream({200, {}, {}}, seen);
        e->flush();
    });
    peer.send(get("/next"));
    barrier();
    on_loop([&] { e->end_stream(); });
    auto const next = take_held();
    EXPECT_EQ(next->request().path(), "/next");
    on_loop([&] { respond_text(*next, 200, "next"); });
    peer.read_until("0\r\n\r\n");
    EXPECT_EQ(body_of(peer.read_response()), "next\n");
}

// --- Records ---------------------------------------------------------------------------------------------

TEST_F(ConnectionTest, ReportsWhatWasNoted)
{
    std::vector<std::string> records;
    settings_.on_exchange_end = [&](access_record const& r) {
        std::lock_guard const lock(mutex_);
        auto& text = records.emplace_back();
        for (auto const& [name, value] : r.notes)
            text += std::string(name) + "=" + value + " ";
    };
    std::atomic<bool> const takes_notes{true};
    settings_.takes_notes = &takes_notes;
    on_request_ = [&](exchange_ptr e) {
        EXPECT_TRUE(e->takes_notes());
        if (e->request().path() == "/a") {
            e->note("who", "me");
            e->note("what", "x");
            e->note("who", "you");
        }
        respond_text(*e, 200, "x");
        EXPECT_FALSE(e->takes_notes());
        e->note("late", "x");
    };
    start();
    auto peer = connect();
    peer.ask(get("/a"));
    peer.ask(get("/b"));
    barrier();
    EXPECT_EQ(records, (std::vector<std::string>{"who=you what=x ", ""}));
}

TEST_F(ConnectionTest, TakesNoNotesUnlessSomebodyWantsThem)
{
    std::size_t notes = 0;
    settings_.on_exchange_end = [&](access_record const& r) { notes += r.notes.size(); };
    on_request_ = [&](exchange_ptr e) {
        EXPECT_FALSE(e->takes_notes());
        e->note("who", "me");
        respond_text(*e, 200, "x");
    };
    start();
    connect().ask(get("/"));
    barrier();
    EXPECT_EQ(notes, 0u);
}

TEST_F(ConnectionTest, ReportsEachExchangeOnce)
{
    std::vector<std::string> records;
    settings_.on_exchange_end = [&](access_record const& r) {
        std::lock_guard const lock(mutex_);
        records.push_back(
            std::to_string(static_cast<int>(r.method)) + " " + std::string(r.path) + " " + std::to_string(r.status)
            + (r.is_stream ? " stream " : " ")
            + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(r.duration).count()) + "s "
            + std::to_string(r.bytes_out));
    };
    hold_requests();
    start();
    auto peer = connect();
    peer.send(get("/a"));
    auto const one = take_held();
    advance(3s);
    on_loop([&] { one->respond({202, {}, {}}, ""); });
    auto const first_size = peer.read_response().size();
    peer.send(get("/b"));
    auto const two = take_held();
    recorder seen;
    on_loop([&] {
        two->begin_stream({200, {}, {}}, seen);
        two->out() += "x";
        two->flush();
    });
    auto stream_size = peer.read_until("x\r\n").size();
    advance(5s);
    on_loop([&] { two->end_stream(); });
    stream_size += peer.read_until("0\r\n\r\n").size();
    auto const refused_size = peer.ask("BAD\r\n\r\n").size();
    auto dropped = connect();
    dropped.send(get("/c"));
    auto const three = take_held();
    dropped.close();
    ASSERT_TRUE(eventually([&] {
        std::lock_guard const lock(mutex_);
        return records.size() == 4;
    }));
    EXPECT_EQ(records[0], "0 /a 202 3s " + std::to_string(first_size));
    EXPECT_EQ(records[1], "0 /b 200 stream 5s " + std::to_string(stream_size));
    EXPECT_EQ(records[2], "6  400 0s " + std::to_string(refused_size));
    EXPECT_EQ(records[3], "0 /c 0 0s 0");
}

}
