// What broken, careless and hostile clients send. Each gets the documented answer, and another session on the
// same server, with a call running all the while, notices nothing.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace belay::test {

class BadInput : public Server {
protected:
    void begin()
    {
        start();
        bystander_ = open_session();
        bystander_call_.emplace(open_post(
            bystander_, tool_call("\"bystander\"", "utility-notifications", utility_arguments("b", 20, 1000))));
        ASSERT_EQ(bystander_call_->head().status, 200u);
        session_ = open_session();
    }

    void TearDown() override
    {
        if (bystander_call_) {
            EXPECT_EQ(echo(bystander_, "unharmed"), "Echo: unharmed");
            auto const all = read_to_end(*bystander_call_, 1s);
            EXPECT_EQ(all.logs(), utility_texts("b", 20, 1000));
            EXPECT_EQ(at(all.response(), "id"), "bystander");
        }
        Server::TearDown();
    }

    /// A POST of these bytes on the session must be refused so, with an id of null.
    void expect_refused(std::string_view body, unsigned status, std::int64_t code)
    {
        SCOPED_TRACE(std::string(body.substr(0, 200)));
        auto const answer = post(session_, body);
        EXPECT_EQ(answer.status, status);
        EXPECT_EQ(answer.error_code(), code) << answer.body;
        EXPECT_TRUE(at(answer.json(), "id").is_null());
        EXPECT_EQ(answer.header("Content-Type").value_or(""), "application/json");
    }

    http_response raw(std::string_view bytes)
    {
        auto client = connect();
        client.send(bytes);
        return client.read_response();
    }

    std::string head(std::string_view more = {}) const
    {
        return fmt::format(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
            "Content-Type: application/json\r\nMcp-Session-Id: {}\r\n{}",
            session_.id, more);
    }

    client_session bystander_;
    client_session session_;
    std::optional<http_client> bystander_call_;
};

TEST_F(BadInput, MalformedJson)
{
    begin();
    for (std::string_view body :
         {"", " ", "{", "}", "nul", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", "{'jsonrpc':'2.0'}",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} trailing", "{\"a\":1,}", "[1,2", "\xef\xbb\xbf{}",
          "{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"ping\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}"})
        expect_refused(body, 400, -32700);
}

TEST_F(BadInput, WrongTypes)
{
    begin();
    for (std::string_view body :
         {"1",
          "\"text\"",
          "null",
          "true",
          "{}",
          R"({"jsonrpc":"1.0","id":1,"method":"ping"})",
          R"({"jsonrpc":2.0,"id":1,"method":"ping"})",
          R"({"id":1,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":null,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":{},"method":"ping"})",
          R"({"jsonrpc":"2.0","id":[1],"method":"ping"})",
          R"({"jsonrpc":"2.0","id":true,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})",
          R"({"jsonrpc":"2.0","id":1,"method":7})",
          R"({"jsonrpc":"2.0","id":1,"method":null})",
          R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})",
          R"({"jsonrpc":"2.0","id":1,"method":"ping","params":"x"})",
          R"({"jsonrpc":"2.0","id":1})",
          R"({"jsonrpc":"2.0","id":1,"result":{},"error":{}})",
          R"({"jsonrpc":"2.0","result":{}})"})
        expect_refused(body, 400, -32700);
    // A message may still be about nothing.
    EXPECT_EQ(post(session_, R"({"jsonrpc":"2.0","id":1,"result":{}})").status, 202u) << "an answer nobody waits for";
    EXPECT_EQ(post(session_, notification("notifications/nobody-knows-this")).status, 202u);
    for (auto const* params :
         {"{}", R"({"requestId":null})", R"({"requestId":[]})", R"({"requestId":99})", R"({"requestId":1.5})"})
        EXPECT_EQ(post(session_, notification("notifications/cancelled", params)).status, 202u) << params;
}

TEST_F(BadInput, BatchesAreNotOfTheseRevisions)
{
    begin();
    expect_refused("[" + rpc("1", "ping") + "]", 400, -32600);
    expect_refused("[]", 400, -32600);
    session_ = open_session("2025-06-18");
    expect_refused("[" + rpc("1", "ping") + "," + rpc("2", "ping") + "]", 400, -32600);
}

TEST_F(BadInput, InitializeWithoutSense)
{
    begin();
    for (auto const* params :
         {"{}", R"({"protocolVersion":1})", R"({"protocolVersion":null,"capabilities":{},"clientInfo":{}})"}) {
        auto const answer = post_plain(rpc("5", "initialize", params));
        EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.status;
        EXPECT_EQ(answer.error_code(), -32602) << params;
        EXPECT_FALSE(answer.header("Mcp-Session-Id"));
    }
    // An unknown version is answered with the newest one this server has.
    for (auto const* version : {"2099-01-01", "1", "", "2026-07-28"}) {
        auto const answer = post_plain(hello(version));
        EXPECT_EQ(answer.status, 200u);
        EXPECT_EQ(at(answer.json(), "result/protocolVersion"), "2025-11-25") << version;
    }
}

TEST_F(BadInput, WrongHttpMethods)
{
    begin();
    for (auto const* method : {"PUT", "PATCH", "HEAD", "TRACE", "FOO"}) {
        auto const answer = ask(method, "/mcp", headers_of(session_));
        EXPECT_EQ(answer.status, 405u) << method;
        auto const allow = answer.header("Allow").value_or("");
        for (auto const* allowed : {"GET", "POST", "DELETE"})
            EXPECT_NE(allow.find(allowed), std::string::npos) << method << ": " << allow;
    }
    for (auto const* path : {"/healthz", "/readyz", "/metrics"}) {
        EXPECT_EQ(ask("POST", path).status, 405u) << path;
        EXPECT_EQ(ask("GET", path).status, 200u) << path;
        EXPECT_EQ(ask("HEAD", path).status, 200u) << path;
    }
    for (auto const* path : {"/nothing", "/mcp/x", "/MCP", "//mcp", "/mcp%2f"})
        EXPECT_EQ(ask("GET", path, {{"Accept", "text/event-stream"}}).status, 404u) << path;
}

TEST_F(BadInput, UnknownMethodsAndTools)
{
    begin();
    for (auto const* method :
         {"nothing", "", "tools/List", "resources/List", "prompts/put", "completion/Complete", "server/discover",
          "notifications/initialized"}) {
        auto const answer = post(session_, rpc("\"m\"", method));
        EXPECT_EQ(answer.status, 200u) << method;
        EXPECT_EQ(answer.error_code(), -32601) << method;
        EXPECT_EQ(at(answer.json(), "id"), "m");
    }
    for (auto const* params :
         {R"({"name":"no-such-tool"})", R"({"name":"no-such-tool","arguments":{}})", R"({"name":7})", R"({})",
          R"({"name":null})", R"({"name":"echo","arguments":[]})", R"({"name":"echo","arguments":"x"})",
          R"({"name":"","arguments":{}})"}) {
        auto const answer = post(session_, rpc("3", "tools/call", params));
        EXPECT_EQ(answer.status, 200u) << params;
        EXPECT_EQ(answer.error_code(), -32602) << params;
        EXPECT_EQ(at(answer.json(), "id"), 3);
    }
    auto const without_params = post(session_, rpc("3", "tools/call"));
    EXPECT_EQ(without_params.error_code(), -32602);
    // "tools 1 echo", made up
    for (auto const* cursor : {"zzz", "746f6f6c732031206563686f"})
        EXPECT_EQ(
            post(session_, rpc("1", "tools/list", fmt::format(R"({{"cursor":"{}"}})", cursor))).error_code(), -32602);
    for (auto const* params : {"{}", R"({"level":"loud"})", R"({"level":3})"})
        EXPECT_EQ(post(session_, rpc("1", "logging/setLevel", params)).error_code(), -32602) << params;
    EXPECT_EQ(appended(), 1) << "a refused call left something in the store"; // the bystander's first message
}

TEST_F(BadInput, WrongArguments)
{
    begin();
    auto const old = open_session("2025-06-18");
    for (auto const* call :
         {R"({"name":"echo","arguments":{}})", R"({"name":"echo"})", R"({"name":"echo","arguments":{"message":1}})",
          R"({"name":"add","arguments":{"a":"1","b":2}})", R"({"name":"burst","arguments":{"count":-1}})",
          R"({"name":"burst","arguments":{"count":1.5}})", R"({"name":"burst","arguments":{"count":1e300}})",
          R"({"name":"utility-notifications","arguments":{"intervalMs":0}})",
          R"({"name":"utility-notifications","arguments":{"messagePrefix":{}}})"}) {
        auto const answer = post(session_, rpc("1", "tools/call", call));
        EXPECT_EQ(answer.status, 200u) << call;
        EXPECT_EQ(at(answer.json(), "result/isError"), true) << call;
        auto const older = post(old, rpc("1", "tools/call", call));
        EXPECT_EQ(older.status, 200u) << call;
        EXPECT_EQ(older.error_code(), -32602) << call;
    }
    EXPECT_EQ(host().node().departures().calls(), 1u);
}

TEST_F(BadInput, AcceptAndContentType)
{
    begin();
    auto const with = [&](header_list headers) {
        auto all = headers_of(session_, std::move(headers));
        return connect().ask("POST", "/mcp", all, rpc("1", "ping"));
    };
    std::string const both = "application/json, text/event-stream";
    for (auto const* accept : {"application/json", "text/event-stream", "text/html", "image/*"}) {
        auto const answer = with({{"Accept", accept}, {"Content-Type", "application/json"}});
        EXPECT_EQ(answer.status, 406u) << accept;
        EXPECT_EQ(answer.error_code(), -32000);
    }
    for (auto const* type : {"text/plain", "application/jsonp", "application/json-seq", "", "text/json"}) {
        auto const answer = with({{"Accept", both}, {"Content-Type", type}});
        EXPECT_EQ(answer.status, 415u) << type;
        EXPECT_EQ(answer.error_code(), -32000);
    }
    EXPECT_EQ(with({{"Accept", both}}).status, 415u);
    for (auto const* type : {"application/json; charset=utf-8", "Application/JSON", "application/json ;charset=UTF-8"})
        EXPECT_EQ(with({{"Accept", both}, {"Content-Type", type}}).status, 200u) << type;
    EXPECT_EQ(
        with({{"Accept", "text/event-stream;q=0.5, application/json"}, {"Content-Type", "application/json"}}).status,
        200u);
    EXPECT_EQ(ask("GET", "/mcp", headers_of(session_, {{"Accept", "application/json"}})).status, 406u);
}

TEST_F(BadInput, AcceptInSeveralLinesIsOneList)
{
    begin();
    auto const lines = [&](std::vector<std::string> const& accepted) {
        header_list headers{{"Content-Type", "application/json"}};
        for (auto const& each : accepted)
            headers.emplace_back("Accept", each);
        return headers_of(session_, std::move(headers));
    };
    auto const status = [&](std::vector<std::string> const& accepted) {
        return connect().ask("POST", "/mcp", lines(accepted), rpc("1", "ping")).status;
    };
    EXPECT_EQ(status({"application/json", "text/event-stream"}), 200u);
    EXPECT_EQ(status({"text/html", "text/event-stream;q=0.9", "", "application/json"}), 200u);
    EXPECT_EQ(status({"application/json", "text/html"}), 406u);
    EXPECT_EQ(ask("GET", "/mcp", headers_of(session_, {{"Accept", "a/b"}, {"Accept", "c/d"}})).status, 406u);
}

TEST_F(BadInput, HeadersThatSayOneThingComeOnce)
{
    begin();
    auto const other = open_session();
    auto const with = [&](std::string_view method, header_list more) {
        header_list headers{{"Accept", "application/json, text/event-stream"}, {"Content-Type", "application/json"}};
        headers.insert(headers.end(), more.begin(), more.end());
        return ask(method, "/mcp", headers_of(session_, std::move(headers)), method == "POST" ? rpc("1", "ping") : "");
    };
    for (auto const* method : {"POST", "GET", "DELETE"}) {
        for (header_list const& more :
             {header_list{{"Mcp-Session-Id", other.id}}, header_list{{"mcp-session-id", session_.id}},
              header_list{{"Last-Event-ID", "a.1"}, {"Last-Event-ID", "a.2"}},
              header_list{{"Mcp-Protocol-Version", "2025-06-18"}}, header_list{{"Content-Type", "text/plain"}}}) {
            auto const answer = with(method, more);
            EXPECT_EQ(answer.status, 400u) << method << ' ' << more.back().first;
            EXPECT_EQ(answer.error_code(), -32000);
            auto const text = at(answer.json(), "error/message");
            EXPECT_TRUE(text.is_string() && std::string_view(text.get_string()).ends_with("must be sent once")) << text;
        }
    }
    EXPECT_TRUE(is_alive(session_));
    EXPECT_TRUE(is_alive(other));
}

TEST_F(BadInput, AnythingBeforeInitialize)
{
    begin();
    header_list const headers{{"Accept", "application/json, text/event-stream"}, {"Content-Type", "application/json"}};
    for (auto const* method : {"GET", "DELETE", "POST"}) {
        auto const answer = ask(method, "/mcp", headers, std::string_view(method) == "POST" ? rpc("1", "ping") : "");
        EXPECT_EQ(answer.status, 400u) << method;
        EXPECT_EQ(
            at(answer.json(), "error/message"), "Bad Request: Mcp-Session-Id header is required; initialize first");
    }
}

TEST_F(BadInput, ProgressTokens)
{
    begin();
    std::string const arguments = utility_arguments("p", 1, 1000);
    auto const call = [&](std::string const& token) {
        return tool_call("5", "utility-notifications", arguments, R"({"progressToken":)" + token + "}");
    };
    for (std::string const& token :
         {'"' + std::string(257, 't') + '"', std::string("true"), std::string("[1]"), std::string("{}")}) {
        auto const answer = post(session_, call(token));
        EXPECT_EQ(answer.status, 200u);
        EXPECT_EQ(answer.error_code(), -32602) << token;
        EXPECT_EQ(at(answer.json(), "id"), 5);
        EXPECT_EQ(
            at(answer.json(), "error/message"),
            "_meta.progressToken must be a number or a string of at most 256 bytes");
    }
    for (std::string const& token :
         {'"' + std::string(256, 't') + '"', std::string("7"), std::string("-0.5"), std::string("\"\"")}) {
        auto stream = open_post(session_, call(token));
        auto const all = read_to_end(stream);
        auto const expected = message_of({"message", "", {}, token});
        EXPECT_TRUE(std::ranges::any_of(all.events, [&](http::sse_event const& event) {
            return at(message_of(event), "params/progressToken") == expected;
        })) << token;
    }
    auto stream = open_post(session_, call("null")); // as good as none
    for (auto const& event : read_to_end(stream).events)
        EXPECT_NE(at(message_of(event), "method"), "notifications/progress");
}

TEST_F(BadInput, NumbersThatWouldChange)
{
    begin();
    auto const add = [](std::string_view a) {
        return rpc("1", "tools/call", fmt::format(R"({{"name":"add","arguments":{{"a":{},"b":0}}}})", a));
    };
    for (auto const* number : {"1e309", "-1e309", "1e-400", "18446744073709551617", "1e99999999999"})
        expect_refused(add(number), 400, -32700);
    // The others come through as they are. The texts are the shortest of their doubles.
    for (auto const* number :
         {"0.1", "1.7976931348623157e+308", "5e-324", "2.2250738585072014e-308", "-7.416857943268957e-82",
          "9007199254740993e-3", "1.0868214105543937e-217", "123456789012345680000"}) {
        auto const answer = post(session_, add(number));
        double const expected = std::strtod(number, nullptr);
        auto const text = at(answer.json(), "result/content/0/text");
        ASSERT_TRUE(text.is_string()) << answer.body;
        auto const shown = std::string(text.get_string());
        auto const is = shown.rfind(" is ");
        ASSERT_NE(is, std::string::npos) << shown;
        EXPECT_EQ(std::strtod(shown.c_str() + is + 4, nullptr), expected) << shown;
    }
}

TEST_F(BadInput, VersionHeader)
{
    begin();
    for (auto const* version : {"2099-01-01", "latest", "2025-11-25 ", "2025-11-2"}) {
        auto const session = client_session{session_.id, version};
        auto const answer = post(session, rpc("1", "ping"));
        if (std::string_view(version) == "2025-11-25 ") { // a trailing blank is not part of the value
            EXPECT_EQ(answer.status, 200u);
            continue;
        }
        EXPECT_EQ(answer.status, 400u) << version;
        EXPECT_EQ(answer.error_code(), -32000) << version;
        EXPECT_EQ(get(session).head().status, 400u) << version;
    }
}

TEST_F(BadInput, HeaderInjection)
{
    begin();
    // Whatever two parties could read differently is refused before routing, as plain text.
    std::string const body = rpc("1", "ping");
    auto const sized = fmt::format("Content-Length: {}\r\n", body.size());
    for (std::string const& bytes : {
             head(sized + "X: a\nY: b\r\n\r\n") + body,
             head(sized + "X: a\rY: b\r\n\r\n") + body,
             head(sized + std::string("X: a\0b\r\n\r\n", 10)) + body,
             head(sized + "X : a\r\n\r\n") + body,
             head(sized + " folded: a\r\n\r\n") + body,
             head(sized + "no colon\r\n\r\n") + body,
             head(sized + "X\x01: a\r\n\r\n") + body,
             head(sized + "Content-Length: 5\r\n\r\n") + body,
             head(sized + "Transfer-Encoding: chunked\r\n\r\n") + "0\r\n\r\n" + body,
             head("Transfer-Encoding: gzip\r\n\r\n") + body,
             head("Content-Length: +5\r\n\r\n") + body,
             head("Content-Length: 0x10\r\n\r\n") + body,
             head("Content-Length: 99999999999999999999\r\n\r\n") + body,
             head("Transfer-Encoding: chunked\r\n\r\n") + "zz\r\n" + body,
             head(sized + "Host: evil.example\r\n\r\n") + body,
         }) {
        auto const answer = raw(bytes);
        EXPECT_TRUE(answer.status == 400 || answer.status == 413 || answer.status == 501)
            << answer.status << " for " << bytes.substr(bytes.find(session_.id));
    }
    EXPECT_EQ(raw("GET /mcp HTTP/1.1\r\n\r\n").status, 400u) << "no Host";
    EXPECT_EQ(raw("GET /mcp HTTP/3.7\r\nHost: localhost\r\n\r\n").status, 505u);
    EXPECT_EQ(raw("nonsense\r\n\r\n").status, 400u);
    EXPECT_EQ(raw("GET /m cp HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 400u);
    // Nothing a client sends comes back as a header or as an event of its own making.
    auto const session = client_session{"x\tInjected: 1", ""};
    auto const echoed = post(session, rpc("1", "ping"));
    EXPECT_TRUE(echoed.status == 404 || echoed.status == 400);
    EXPECT_FALSE(echoed.header("Injected"));
}

TEST_F(BadInput, EventInjection)
{
    begin();
    auto stream = open_post(
        session_,
        tool_call(
            R"("a\r\ndata: {}\n\nevent: x\ndata: y\n\n\u2028")", "utility-notifications",
            R"({"durationSeconds":1,"intervalMs":1000,"messagePrefix":"x\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n\n"})",
            R"({"progressToken":"p\n\nid: 7\n\n"})"));
    auto const all = read_to_end(stream);
    ASSERT_EQ(all.events.size(), 5u); // start, one, progress, complete, result
    for (auto const& event : all.events)
        EXPECT_EQ(event.type, "message");
    EXPECT_EQ(at(all.response(), "id"), "a\r\ndata: {}\n\nevent: x\ndata: y\n\n\u2028");
    for (std::size_t i = 0; i < all.events.size(); ++i)
        EXPECT_EQ(sequence_of(all.events[i].id), i + 1);
}

TEST_F(BadInput, OversizeBodies)
{
    settings_.http.limits.body_bytes = 64 * 1024;
    begin();
    std::string const big(64 * 1024 + 1, ' ');
    auto const sized = post(session_, big);
    EXPECT_EQ(sized.status, 413u);
    auto chunked = connect();
    chunked.send(head("Transfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 70; ++i)
        chunked.send(fmt::format("400\r\n{}\r\n", std::string(0x400, ' ')));
    EXPECT_EQ(chunked.read_response().status, 413u);
    // Announced, and never sent.
    EXPECT_EQ(raw(head("Content-Length: 1000000000\r\n\r\n")).status, 413u);
    EXPECT_EQ(raw(head("Content-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n")).status, 413u);
    // As large as is allowed.
    auto body = rpc("1", "ping");
    body.resize(64 * 1024, ' ');
    EXPECT_EQ(post(session_, body).status, 200u);
}

TEST_F(BadInput, DefaultBodyLimitIs4MiB)
{
    begin();
    auto body = rpc("1", "ping");
    body.resize(4u << 20, ' ');
    EXPECT_EQ(post(session_, body).status, 200u);
    body += ' ';
    EXPECT_EQ(post(session_, body).status, 413u);
}

TEST_F(BadInput, OversizeHeads)
{
    begin();
    EXPECT_EQ(ask("GET", "/mcp", {{"X", std::string(20'000, 'x')}}).status, 431u);
    header_list many;
    for (int i = 0; i < 200; ++i)
        many.emplace_back(fmt::format("X-{}", i), "1");
    EXPECT_EQ(ask("GET", "/mcp", many).status, 431u);
    EXPECT_EQ(ask("GET", "/" + std::string(9'000, 'x')).status, 414u);
    auto endless = connect();
    endless.send("GET /mcp HTTP/1.1\r\nHost: localhost\r\n");
    for (int i = 0; i < 100; ++i)
        if (!endless.send(fmt::format("X-{}: {}\r\n", i, std::string(1000, 'x'))))
            break;
    EXPECT_EQ(endless.read_response().status, 431u);
}

TEST_F(BadInput, OversizeIds)
{
    begin();
    expect_refused(rpc(fmt::format("\"{}\"", std::string(10'000, 'i')), "ping"), 400, -32600);
    expect_refused(rpc("123456789012345678901234567890", "ping"), 400, -32700);
    // Ids that fit keep value and type, through a stream too.
    for (auto const* id :
         {"0", "-1", "\"\"", "\"0\"", "9223372036854775807", "-9223372036854775808", "\"\\u00e9\\\"\\\\\""}) {
        auto const answer = post(session_, rpc(id, "ping"));
        EXPECT_EQ(answer.status, 200u) << id;
        auto const sent = http::sse_event{"message", "", {}, rpc(id, "ping")};
        EXPECT_EQ(at(answer.json(), "id"), at(message_of(sent), "id")) << id;
        auto stream = open_post(session_, tool_call(id, "burst", R"({"count":0})"));
        EXPECT_EQ(at(read_to_end(stream).response(), "id"), at(message_of(sent), "id")) << id;
    }
    for (std::string const& id :
         {std::string(10'000, 's'), std::string("../../etc/passwd"), std::string("0"), std::string(22, '/'),
          session_.id + "0", session_.id.substr(1), std::string("%00"), std::string("*")}) {
        auto const answer = post({id, ""}, rpc("1", "ping"));
        EXPECT_EQ(answer.status, 404u) << id.substr(0, 40);
        EXPECT_EQ(answer.error_code(), -32001);
    }
}

TEST_F(BadInput, InvalidUtf8)
{
    begin();
    for (std::string_view bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"})
        expect_refused(
            fmt::format(
                R"({{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{}"}}}}}})",
                bytes),
            400, -32700);
    expect_refused(
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"\ud800"}}})",
        400, -32700);
    EXPECT_EQ(echo(session_, "\xf0\x9f\xa7\x97 \xc3\xa9 \x01"), "Echo: \xf0\x9f\xa7\x97 \xc3\xa9 \x01");
}

TEST_F(BadInput, DeepNesting)
{
    begin();
    expect_refused(std::string(100'000, '['), 400, -32700);
    std::string deep;
    for (int i = 0; i < 50'000; ++i)
        deep += "{\"a\":";
    expect_refused(deep, 400, -32700);
    auto const nested = std::string(1'000, '[') + std::string(1'000, ']');
    expect_refused(
        fmt::format(
            R"({{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"x","more":{}}}}}}})",
            nested),
        400, -32700);
}

TEST_F(BadInput, HalfRequests)
{
    begin();
    auto const body = rpc("1", "ping");
    for (std::string const& half :
         {std::string("P"), std::string("POST /mcp HT"), head(), head("Content-Length: 100\r\n\r\n"),
          head("Content-Length: 100\r\n\r\n") + body, head("Transfer-Encoding: chunked\r\n\r\n") + "10\r\nabc",
          head("Transfer-Encoding: chunked\r\n\r\n") + "3\r\nabc\r\n"}) {
        auto gone = connect();
        gone.send(half);
        gone.close();
        auto broken = connect();
        broken.send(half);
        broken.reset();
        auto waiting = connect();
        waiting.send(half);
        waiting.end_output();
        auto const answer = waiting.read_response();
        EXPECT_TRUE(answer.status == 0 || answer.status == 400 || answer.status == 408) << answer.status;
        EXPECT_NE(waiting.how_it_ended(), http_client::ending::timed_out) << half;
    }
    // The probe and the bystander stay.
    EXPECT_TRUE(eventually([&] { return host().http_statistics().open_connections <= 2; }));
}

TEST_F(BadInput, SlowSenders)
{
    begin();
    auto silent = connect();
    auto slow_head = connect();
    auto slow_body = connect();
    slow_head.send("P");
    slow_body.send(head("Content-Length: 100\r\n\r\n"));
    settle();
    // A byte now and then buys no time.
    for (int second = 0; second < 9; ++second) {
        advance(1s);
        slow_head.send("O");
        slow_body.send(" ");
    }
    EXPECT_EQ(slow_head.poll_ending(), http_client::ending::open);
    advance(2s);
    EXPECT_EQ(slow_head.read_response().status, 408u);
    EXPECT_TRUE(silent.wait_ended());
    EXPECT_EQ(silent.bytes_read(), 0u);
    for (int second = 11; second < 29; ++second) {
        advance(1s);
        slow_body.send(" ");
    }
    EXPECT_EQ(slow_body.poll_ending(), http_client::ending::open);
    advance(3s);
    EXPECT_EQ(slow_body.read_response().status, 408u);
}

TEST_F(BadInput, TenThousandSessionsOpenedAndAbandoned)
{
    settings_.http.idle_timeout = 24h;
    begin();
    constexpr int count = 10'000;
    constexpr int batch = 100;
    std::string requests;
    auto const body = hello();
    for (int i = 0; i < batch; ++i)
        requests += fmt::format(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
            body.size(), body);
    auto client = connect();
    for (int i = 0; i < count / batch; ++i) {
        ASSERT_TRUE(client.send(requests));
        for (int j = 0; j < batch; ++j)
            ASSERT_EQ(client.read_response().status, 200u);
    }
    EXPECT_EQ(store().census().sessions, count + 2u);
    EXPECT_EQ(metric("belay_sessions"), count + 2);
    EXPECT_EQ(echo(session_, "in between"), "Echo: in between");
    advance_in_steps(11min + 1s, 30s);
    EXPECT_EQ(store().census().sessions, 1u) << "the bystander, with its open stream";
    EXPECT_EQ(metric("belay_sessions"), 1);
    EXPECT_EQ(host().metrics().sessions_expired.Value(), count + 1);
    EXPECT_EQ(store().census().streams, 1u);
}

TEST_F(BadInput, StreamsWithoutEnd)
{
    begin();
    // Connections: the oldest has to poll. Nothing of its call is lost.
    std::vector<http_client> open;
    for (int i = 0; i < 100; ++i) {
        open.push_back(open_post(
            session_, tool_call(std::to_string(i), "utility-notifications", utility_arguments("t", 2, 1000))));
        ASSERT_EQ(open.back().head().status, 200u) << i;
    }
    EXPECT_TRUE(eventually([&] { return host().node().departures().connections() <= 65; })); // the bystander's too
    for (int i = 0; i < 36; ++i)
        ASSERT_TRUE(open[i].wait_ended()) << i;
    auto& first = open[0];
    seen all;
    while (auto const event = first.next_event())
        all.add(*event);
    EXPECT_TRUE(first.retry_ms());
    first = get(session_, all.cursor);
    ASSERT_EQ(first.head().status, 200u);
    while (auto const event = next(first))
        all.add(*event);
    EXPECT_EQ(all.logs(), utility_texts("t", 2, 1000));
    // Streams: no more than are kept.
    open.clear();
    bool is_refused = false;
    for (int i = 0; i < 300 && !is_refused; ++i) {
        auto stream = open_post(session_, tool_call(std::to_string(i), "longRunningOperation", "{}"));
        is_refused = stream.head().status == 429;
        ASSERT_TRUE(is_refused || stream.head().status == 200);
    }
    EXPECT_TRUE(is_refused);
    EXPECT_LE(store().census().streams, 257u);
    // The standalone stream: the storm guard.
    unsigned last = 200;
    for (int i = 0; i < 10; ++i) {
        open.push_back(get(session_));
        last = open.back().head().status;
    }
    EXPECT_EQ(last, 409u);
    EXPECT_EQ(remove(session_).status / 100, 2u);
}

TEST_F(BadInput, ConnectionsWithoutEnd)
{
    settings_.http.max_connections = 20;
    begin();
    settle(); // the probe is connected
    std::vector<http_client> idle;
    for (int i = 0; i < 40; ++i)
        idle.push_back(connect());
    EXPECT_EQ(idle.back().read_response().status, 503u);
    EXPECT_GE(host().http_statistics().refused_full, 20u);
    settle();
    advance(3s); // those that were told so have gone
    EXPECT_TRUE(eventually([&] { return host().http_statistics().open_connections <= 20; }));
    idle.clear();
    EXPECT_TRUE(eventually([&] { return host().http_statistics().open_connections <= 2; }));
}

}
