#include "http/request_reader.hpp"

#include <gtest/gtest.h>

#include <string>

namespace belay::http {

namespace {

using state = request_reader::state;

struct outcome {
    state where = state::head;
    unsigned status = 0;
    std::string reason;
    std::size_t taken = 0; // compared for whole requests only
    std::string method;
    std::string path;
    std::string query;
    std::string host;
    std::string body;
    bool keeps_alive = false;
    bool expects_continue = false;

    friend bool operator==(outcome const&, outcome const&) = default;
};

std::ostream& operator<<(std::ostream& out, outcome const& o)
{
    return out << "state " << static_cast<int>(o.where) << ' ' << o.status << " \"" << o.reason << "\" taken "
               << o.taken << ' ' << o.method << ' ' << o.path << '?' << o.query << " host " << o.host << " body \""
               << o.body << '"';
}

outcome read_pieces(std::vector<std::string_view> const& pieces, reader_limits const& limits)
{
    request_reader reader(limits);
    std::size_t taken = 0;
    for (auto const piece : pieces) {
        auto const now = reader.feed(piece);
        taken += now;
        if (reader.where() == state::complete || reader.where() == state::failed)
            break;
        EXPECT_EQ(now, piece.size()) << "an unfinished request takes all there is";
    }
    outcome result;
    result.where = reader.where();
    if (reader.where() == state::failed) {
        result.status = reader.why().status;
        result.reason = reader.why().text;
        return result;
    }
    if (reader.where() == state::head)
        return result;
    result.taken = taken;
    result.method = reader.method_text();
    result.path = reader.path();
    result.query = reader.query();
    result.host = reader.header("host").value_or("");
    result.body = reader.body();
    result.keeps_alive = reader.keeps_alive();
    result.expects_continue = reader.expects_continue();
    return result;
}

/// Reads the bytes whole, cut in two at every place, and byte by byte; the outcome must be one and the same.
outcome read_request(std::string_view bytes, reader_limits const& limits = {})
{
    auto const whole = read_pieces({bytes}, limits);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut)
        EXPECT_EQ(read_pieces({bytes.substr(0, cut), bytes.substr(cut)}, limits), whole) << "cut at " << cut;
    std::vector<std::string_view> single;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        single.push_back(bytes.substr(i, 1));
    EXPECT_EQ(read_pieces(single, limits), whole) << "byte by byte";
    return whole;
}

unsigned status_of(std::string_view bytes, reader_limits const& limits = {})
{
    return read_request(bytes, limits).status;
}

std::string with_line(std::string_view line)
{
    return "POST /mcp HTTP/1.1\r\nHost: a\r\n" + std::string(line) + "\r\nX-Last: 1\r\n\r\n";
}

}

TEST(RequestReader, ReadsARequestWithoutBody)
{
    auto const got = read_request("GET /a/b?c=d&e HTTP/1.1\r\nHost: example:80\r\nAccept: */*\r\n\r\n");
    EXPECT_EQ(got.where, state::complete);
    EXPECT_EQ(got.method, "GET");
    EXPECT_EQ(got.path, "/a/b");
    EXPECT_EQ(got.query, "c=d&e");
    EXPECT_EQ(got.host, "example:80");
    EXPECT_TRUE(got.keeps_alive);
}

TEST(RequestReader, ReadsASizedBodyAndLeavesWhatFollows)
{
    std::string const first = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    auto const got = read_request(first + "GET / HTTP/1.1\r\n");
    EXPECT_EQ(got.where, state::complete);
    EXPECT_EQ(got.body, "hello");
    EXPECT_EQ(got.taken, first.size());
}

TEST(RequestReader, ReadsAChunkedBodyWithExtensionsAndTrailers)
{
    std::string const first = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
                              "5\r\nhello\r\n06;name=\"v a l\";x\r\n world\r\n0\r\nX-Sum: 1\r\nHost: evil\r\n\r\n";
    auto const got = read_request(first + "rest");
    EXPECT_EQ(got.where, state::complete);
    EXPECT_EQ(got.body, "hello world");
    EXPECT_EQ(got.host, "a") << "a trailer is no header";
    EXPECT_EQ(got.taken, first.size());
}

TEST(RequestReader, RefusesTrailersThatAreNoFields)
{
    std::string const body = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    for (std::string_view const line : {"X y", "X : y", "POST /mcp HTTP/1.1", ": y", " X: y", "X"})
        EXPECT_EQ(status_of(body + std::string(line) + "\r\n\r\n"), 400u) << line;
    EXPECT_EQ(read_request(body + "X:\r\n\r\n").where, state::complete);
}

TEST(RequestReader, ReadsALongBody)
{
    std::string const body(300'000, 'x');
    request_reader reader({});
    reader.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
    EXPECT_EQ(reader.where(), state::body);
    for (std::size_t at = 0; at < body.size(); at += 7000)
        reader.feed(std::string_view(body).substr(at, 7000));
    EXPECT_EQ(reader.where(), state::complete);
    EXPECT_EQ(reader.body(), body);
}

TEST(RequestReader, IsUsedAgainAfterReset)
{
    request_reader reader({});
    reader.feed("POST /one HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 1\r\n\r\nz");
    ASSERT_EQ(reader.where(), state::complete);
    EXPECT_EQ(reader.feed("more"), 0u);
    reader.reset();
    EXPECT_FALSE(reader.has_begun());
    reader.feed("GET /two HTTP/1.1\r\nHost: b\r\n\r\n");
    ASSERT_EQ(reader.where(), state::complete);
    EXPECT_EQ(reader.path(), "/two");
    EXPECT_EQ(reader.body(), "");
    EXPECT_FALSE(reader.header("x"));
}

TEST(RequestReader, FindsHeadersInAnyCaseAndWithoutBlanks)
{
    request_reader reader({});
    reader.feed("GET / HTTP/1.1\r\nhOST:\t a \t\r\nX-Two: 1\r\nx-two: 2\r\nEmpty:\r\n\r\n");
    ASSERT_EQ(reader.where(), state::complete);
    EXPECT_EQ(reader.header("Host"), "a");
    EXPECT_EQ(reader.header("X-TWO"), "1");
    EXPECT_EQ(reader.header_count("x-two"), 2u);
    EXPECT_EQ(reader.header("empty"), "");
    EXPECT_EQ(reader.header("none"), std::nullopt);
}

TEST(RequestReader, JoinsTheLinesOfAList)
{
    request_reader reader({});
    reader.feed(
        "GET / HTTP/1.1\r\nHost: a\r\nAccept: a/b\r\nIf-None-Match: \"1\"\r\naccept:c/d;q=0.5 \r\nAccept-Encoding: "
        "gzip\r\n"
        "ACCEPT:\r\nif-none-match: W/\"2\", \"3\"\r\ntracestate: a=1\r\nTraceState: b=2\r\nAccept: e/f\r\n\r\n");
    ASSERT_EQ(reader.where(), state::complete);
    EXPECT_EQ(reader.header("Accept"), "a/b, c/d;q=0.5, , e/f");
    EXPECT_EQ(reader.header_count("Accept"), 4u);
    EXPECT_EQ(reader.header("If-None-Match"), "\"1\", W/\"2\", \"3\"");
    EXPECT_EQ(reader.header("Accept-Encoding"), "gzip");
    EXPECT_EQ(reader.header("tracestate"), "a=1, b=2");
    EXPECT_EQ(reader.header("Host"), "a");
    EXPECT_EQ(reader.path(), "/");
    reader.reset();
    reader.feed("GET / HTTP/1.1\r\nHost: a\r\nAccept: x/y\r\n\r\n");
    EXPECT_EQ(reader.header("Accept"), "x/y");
}

TEST(RequestReader, KnowsTheMethods)
{
    auto const method_of = [](std::string const& text) {
        request_reader reader({});
        reader.feed(text + " / HTTP/1.1\r\nHost: a\r\n\r\n");
        return reader.method();
    };
    EXPECT_EQ(method_of("GET"), method::get);
    EXPECT_EQ(method_of("HEAD"), method::head);
    EXPECT_EQ(method_of("POST"), method::post);
    EXPECT_EQ(method_of("PUT"), method::put);
    EXPECT_EQ(method_of("DELETE"), method::delete_);
    EXPECT_EQ(method_of("OPTIONS"), method::options);
    EXPECT_EQ(method_of("get"), method::other);
    EXPECT_EQ(method_of("BREW"), method::other);
}

TEST(RequestReader, FollowsTheKeepAliveRulesOfBothVersions)
{
    auto const keeps = [](std::string const& version, std::string const& line) {
        return read_request("GET / " + version + "\r\nHost: a\r\n" + line + "\r\n").keeps_alive;
    };
    EXPECT_TRUE(keeps("HTTP/1.1", ""));
    EXPECT_FALSE(keeps("HTTP/1.1", "Connection: Close\r\n"));
    EXPECT_FALSE(keeps("HTTP/1.1", "Connection: foo, close\r\n"));
    EXPECT_FALSE(keeps("HTTP/1.0", ""));
    EXPECT_TRUE(keeps("HTTP/1.0", "Connection: keep-alive\r\n"));
}

TEST(RequestReader, IgnoresBlankLinesBeforeARequest)
{
    EXPECT_EQ(read_request("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").where, state::complete);
    EXPECT_EQ(status_of("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
}

TEST(RequestReader, TakesTheAuthorityOfAnAbsoluteTargetAsHost)
{
    auto const got = read_request("GET http://real:81/p?q HTTP/1.1\r\nHost: other\r\n\r\n");
    EXPECT_EQ(got.where, state::complete);
    EXPECT_EQ(got.host, "real:81");
    EXPECT_EQ(got.path, "/p");
    EXPECT_EQ(got.query, "q");
    EXPECT_EQ(read_request("GET HTTPS://real HTTP/1.1\r\nHost: other\r\n\r\n").path, "/");
    EXPECT_EQ(read_request("GET http://real?q HTTP/1.1\r\nHost: other\r\n\r\n").query, "q");
    EXPECT_EQ(read_request("GET http://real?q HTTP/1.1\r\nHost: other\r\n\r\n").host, "real");
    EXPECT_EQ(status_of("GET http://user@real/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET http://real/ HTTP/1.1\r\n\r\n"), 400u) << "Host is required all the same";
}

TEST(RequestReader, TakesTheAsteriskForOptionsOnly)
{
    EXPECT_EQ(read_request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").path, "*");
    EXPECT_EQ(status_of("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
}

TEST(RequestReader, RefusesOtherTargets)
{
    EXPECT_EQ(status_of("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET path HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET /\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET /\tHTTP/1.1\r\nHost: a\r\n\r\n"), 400u);
}

TEST(RequestReader, RefusesOtherVersions)
{
    EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505u);
    EXPECT_EQ(status_of("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505u);
    EXPECT_EQ(status_of("GET / HTTP/0.9\r\nHost: a\r\n\r\n"), 505u);
    EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\n"), 505u);
    EXPECT_EQ(status_of("GET / HTTP/1.1x\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / http/1.1\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET /\r\n\r\n"), 400u) << "HTTP/0.9";
}

TEST(RequestReader, RefusesABinaryProtocolAtItsFirstByte)
{
    EXPECT_EQ(status_of("\x16\x03\x01"), 400u) << "a TLS hello";
}

TEST(RequestReader, RefusesBareLineFeedsAndCarriageReturns)
{
    EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\r\r\n"), 400u);
}

TEST(RequestReader, RefusesFoldedLinesAndBlanksBeforeTheColon)
{
    EXPECT_EQ(status_of(with_line("X: a\r\n b")), 400u);
    EXPECT_EQ(status_of(with_line("X: a\r\n\tb")), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of(with_line("Content-Length : 5")), 400u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding\t: chunked")), 400u);
    EXPECT_EQ(status_of(with_line(": value")), 400u);
    EXPECT_EQ(status_of(with_line("no colon")), 400u);
}

TEST(RequestReader, RefusesNamesThatAreNoTokens)
{
    EXPECT_EQ(status_of(with_line("X Y: a")), 400u);
    EXPECT_EQ(status_of(with_line("X(Y): a")), 400u);
    EXPECT_EQ(status_of(with_line("X\xC3\xA9: a")), 400u);
}

TEST(RequestReader, RefusesControlCharactersInValues)
{
    for (int c = 0; c < 0x20; ++c) {
        if (c == '\t')
            continue;
        EXPECT_EQ(status_of(with_line("X: a" + std::string(1, static_cast<char>(c)) + "b")), 400u) << c;
    }
    EXPECT_EQ(
        status_of(with_line("X: a\x7F"
                            "b")),
        400u);
    EXPECT_EQ(
        status_of(with_line("Transfer-Encoding: \x0B"
                            "chunked")),
        400u);
    EXPECT_EQ(read_request(with_line("X: a\tb \xC3\xA9")).where, state::complete) << "tabs and UTF-8 are fine";
}

TEST(RequestReader, RefusesLengthAndEncodingTogether)
{
    EXPECT_EQ(status_of(with_line("Content-Length: 5\r\nTransfer-Encoding: chunked")), 400u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: chunked\r\nContent-Length: 5")), 400u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: gzip\r\nContent-Length: 5")), 400u);
    EXPECT_EQ(status_of(with_line("Content-Length: 5\r\nTransfer-Encoding: gzip")), 400u);
}

TEST(RequestReader, RefusesTwoContentLengths)
{
    EXPECT_EQ(status_of(with_line("Content-Length: 5\r\nContent-Length: 6")), 400u);
    EXPECT_EQ(status_of(with_line("Content-Length: 5\r\nContent-Length: 5")), 400u);
    EXPECT_EQ(status_of(with_line("Content-Length: 5, 5")), 400u);
    EXPECT_EQ(status_of(with_line("Content-Length: 5, 6")), 400u);
}

TEST(RequestReader, RefusesContentLengthsThatAreNoNumber)
{
    for (auto const* const value : {"", "+5", "-1", "0x5", "5 5", "5,", "1e3", "99999999999999999999999"})
        EXPECT_EQ(status_of(with_line("Content-Length: " + std::string(value))), 400u) << value;
}

TEST(RequestReader, KnowsNoEncodingButChunked)
{
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: gzip")), 501u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: identity")), 501u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: gzip, chunked")), 501u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: chunked, gzip")), 501u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: xchunked")), 501u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: \"chunked\"")), 501u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding:")), 501u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")), 400u);
    EXPECT_EQ(status_of(with_line("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked")), 400u);
    EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400u);
}

TEST(RequestReader, WantsExactlyOneHost)
{
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400u);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: u@b\r\n\r\n"), 400u);
    EXPECT_EQ(read_request("GET / HTTP/1.0\r\n\r\n").where, state::complete);
}

TEST(RequestReader, RefusesMalformedChunks)
{
    auto const with_body = [](std::string_view body) {
        return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(body);
    };
    for (auto const* const body :
         {"x\r\n", "\r\n", " 5\r\nhello\r\n", "5 \r\nhello\r\n", "5\nhello\r\n", "5\r\nhelloX", "5\r\nhello\n0\r\n\r\n",
          "-1\r\n", "0x5\r\nhello\r\n", "5;a\nb\r\nhello", "5;a=\"\n\"\r\nhello", "5;\x01\r\nhello", "0\r\n\n",
          "0\r\n\rX", "0\r\nA: b\nC: d\r\n\r\n", "0\r\n A: b\r\n\r\n", "0\r\n: b\r\n\r\n",
          "00000000000000005\r\nhello\r\n"})
        EXPECT_EQ(status_of(with_body(body)), 400u) << body;
    EXPECT_EQ(status_of(with_body("FFFFFFFFFFFFFFFF\r\n")), 413u);
    EXPECT_EQ(status_of(with_body("FFFFFFFFFFFFFFFFF\r\n")), 413u);
    reader_limits small;
    small.header_bytes = 100;
    EXPECT_EQ(status_of(with_body("1;" + std::string(60, 'e') + "\r\nx\r\n1;" + std::string(60, 'e')), small), 400u);
    EXPECT_EQ(status_of(with_body("0\r\n" + std::string(200, 't')), small), 400u);
}

TEST(RequestReader, UnderstandsOneExpectation)
{
    auto const got = read_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n");
    EXPECT_EQ(got.where, state::body);
    EXPECT_TRUE(got.expects_continue);
    EXPECT_EQ(status_of(with_line("Expect: tea")), 417u);
    EXPECT_EQ(status_of(with_line("Expect: 100-continue\r\nExpect: tea")), 417u);
    EXPECT_EQ(status_of(with_line("Expect: tea\r\nExpect: 100-continue")), 417u);
    EXPECT_FALSE(read_request("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n").expects_continue);
}

TEST(RequestReader, LimitsTheHead)
{
    reader_limits limits;
    limits.header_bytes = 100;
    std::string const start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    auto const sized
        = [&](std::size_t bytes) { return start + std::string(bytes - start.size() - 4, 'x') + "\r\n\r\n"; };
    EXPECT_EQ(read_request(sized(100), limits).where, state::complete);
    EXPECT_EQ(status_of(sized(101), limits), 431u);
    EXPECT_EQ(status_of(std::string(101, 'A'), limits), 431u);
    EXPECT_EQ(read_request(std::string(100, 'A'), limits).where, state::head);
}

TEST(RequestReader, LimitsTheNumberOfHeaders)
{
    reader_limits limits;
    limits.header_count = 3;
    EXPECT_EQ(read_request("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 1\r\n\r\n", limits).where, state::complete);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 1\r\nC: 1\r\n\r\n", limits), 431u);
}

TEST(RequestReader, LimitsTheTarget)
{
    reader_limits limits;
    limits.target_bytes = 10;
    EXPECT_EQ(read_request("GET /123456789 HTTP/1.1\r\nHost: a\r\n\r\n", limits).where, state::complete);
    EXPECT_EQ(status_of("GET /1234567890 HTTP/1.1\r\nHost: a\r\n\r\n", limits), 414u);
    EXPECT_EQ(status_of("GET /1234567890", limits), 414u) << "at once";
    EXPECT_EQ(status_of("GET /1234567890\x01", limits), 414u);
    EXPECT_EQ(status_of("GET /12345678\x01", limits), 400u);
    EXPECT_EQ(status_of("GET /123456789\r\n\r\n", limits), 400u) << "the line ends with the target";
}

TEST(RequestReader, LimitsTheBodyAsSoonAsItsSizeIsKnown)
{
    reader_limits limits;
    limits.body_bytes = 10;
    EXPECT_EQ(
        read_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789", limits).body, "0123456789");
    EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", limits), 413u);
    std::string const chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n";
    EXPECT_EQ(read_request(chunked + "4\r\n6789\r\n0\r\n\r\n", limits).body, "0123456789");
    EXPECT_EQ(status_of(chunked + "5", limits), 413u);
}

}
