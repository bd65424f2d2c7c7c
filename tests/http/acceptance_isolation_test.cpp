// Acceptance scenarios AS-33…38: own stream only, ids, origins. docs/scenarios.md has a line for each.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

namespace belay::test {

class AcceptanceIsolation : public Server {};

TEST_F(AcceptanceIsolation, AS33_ReplayOnlyFromOwnStream)
{
    start();
    auto const session = open_session();
    auto a = open_post(session, tool_call("1", "utility-notifications", utility_arguments("A", 3, 1000)));
    auto b = open_post(session, tool_call("2", "utility-notifications", utility_arguments("B", 3, 1000)));
    auto listener = get(session);
    seen from_a;
    read_until(a, from_a, [](seen const& so_far) { return so_far.logs().size() >= 3; }); // start, A1, A2
    a.close();
    auto const from_b = read_to_end(b);
    ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
    auto resumed = get(session, from_a.cursor);
    ASSERT_EQ(resumed.head().status, 200u);
    auto const rest = read_to_end(resumed);
    auto const texts = utility_texts("A", 3, 1000);
    EXPECT_EQ(rest.logs(), (std::vector<std::string>{texts[3], texts[4]})); // A3, complete
    EXPECT_EQ(at(rest.response(), "id"), 1);
    EXPECT_EQ(from_b.logs(), utility_texts("B", 3, 1000));
    EXPECT_EQ(at(from_b.response(), "id"), 2);
    settle();
    while (auto const event = listener.poll_event())
        EXPECT_TRUE(is_priming(*event)) << "a call's message came on the standalone stream";
}

TEST_F(AcceptanceIsolation, AS33_AnotherSessionsCursorIsUnreadable)
{
    start();
    auto const session = open_session();
    auto const other = open_session();
    auto stream = open_post(session, tool_call("1", "utility-notifications", utility_arguments("A", 3, 1000)));
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    auto const answer = [&](std::string const& cursor) {
        return ask("GET", "/mcp", headers_of(other, {{"Accept", "text/event-stream"}, {"Last-Event-ID", cursor}}));
    };
    auto const foreign = answer(priming->id);
    auto const unreadable = answer("nonsense");
    EXPECT_EQ(foreign.status, 400u);
    EXPECT_EQ(foreign.body, unreadable.body);
    EXPECT_EQ(foreign.headers, unreadable.headers);
    EXPECT_EQ(read_to_end(stream).logs(), utility_texts("A", 3, 1000));
}

TEST_F(AcceptanceIsolation, AS35_Origin)
{
    start();
    auto const session = open_session();
    auto const with_origin
        = [&](std::string const& origin) { return post_plain(hello(), {{"Origin", origin}}).status; };
    for (auto const* foreign :
         {"https://evil.example", "http://localhost.evil.example", "null", "http://127.0.0.1.evil.example:3000",
          "http://user@localhost", "file://", "http://192.168.1.1"})
        EXPECT_EQ(with_origin(foreign), 403u) << foreign;
    for (auto const* own : {"http://localhost:5173", "http://127.0.0.1:8080", "http://[::1]:1", "https://localhost"})
        EXPECT_EQ(with_origin(own), 200u) << own;
    EXPECT_EQ(post_plain(hello()).status, 200u) << "without Origin it is no browser";
    EXPECT_EQ(post(session, rpc("1", "tools/list"), {{"Origin", "https://evil.example"}}).status, 403u);
    EXPECT_EQ(
        ask("GET", "/mcp", headers_of(session, {{"Origin", "https://evil.example"}, {"Accept", "text/event-stream"}}))
            .status,
        403u);
    EXPECT_EQ(ask("DELETE", "/mcp", headers_of(session, {{"Origin", "https://evil.example"}})).status, 403u);
    EXPECT_TRUE(is_alive(session));
    EXPECT_EQ(store().census().sessions, 6u); // none by a refused one
}

TEST_F(AcceptanceIsolation, AS35_Host)
{
    start();
    auto const with_host = [&](std::string const& name) { return post_plain(hello(), {{"Host", name}}).status; };
    for (auto const* foreign : {"evil.example", "evil.example:80", "localhost.evil.example", "192.168.1.1", "[::2]"})
        EXPECT_EQ(with_host(foreign), 403u) << foreign;
    for (auto const* own : {"localhost", "localhost:3000", "127.0.0.1:1", "[::1]:3000", "LOCALHOST"})
        EXPECT_EQ(with_host(own), 200u) << own;
}

TEST_F(AcceptanceIsolation, AS35_AllowedNames)
{
    settings_.http.policy.allow_origin = {"https://app.example"};
    settings_.http.policy.allow_host = {"mcp.example"};
    start();
    EXPECT_EQ(post_plain(hello(), {{"Origin", "https://app.example"}, {"Host", "mcp.example"}}).status, 200u);
    EXPECT_EQ(post_plain(hello(), {{"Origin", "https://mcp.example"}, {"Host", "mcp.example"}}).status, 200u)
        << "same origin is always allowed";
    EXPECT_EQ(post_plain(hello(), {{"Origin", "https://app.example:444"}}).status, 403u);
}

TEST_F(AcceptanceIsolation, AS35_DefaultBindIsLoopback)
{
    EXPECT_TRUE(app::settings().http.listen.at(0).starts_with("127.0.0.1:"));
    app::settings open;
    open.http.listen = {"0.0.0.0:0"};
    auto const refused = app::complete(open);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().find("--allow-host"), std::string::npos) << refused.error();
}

TEST_F(AcceptanceIsolation, AS36_DuplicateIdsInFlight)
{
    start();
    auto const session = open_session();
    auto a = open_post(session, tool_call("1", "utility-notifications", utility_arguments("A", 3, 1000)));
    auto b = open_post(session, tool_call("1", "utility-notifications", utility_arguments("B", 2, 500)));
    EXPECT_EQ(
        text_at(post(session, tool_call("1", "echo", R"({"message":"C"})")).json(), "result/content/0/text"),
        "Echo: C");
    auto const from_a = read_to_end(a);
    auto const from_b = read_to_end(b);
    EXPECT_EQ(from_a.logs(), utility_texts("A", 3, 1000));
    EXPECT_EQ(from_b.logs(), utility_texts("B", 2, 500));
    EXPECT_EQ(at(from_a.response(), "id"), 1);
    EXPECT_EQ(at(from_b.response(), "id"), 1);
    EXPECT_NE(text_at(from_a.response(), "result/content/0/text").find("\"A\""), std::string::npos);
    EXPECT_NE(text_at(from_b.response(), "result/content/0/text").find("\"B\""), std::string::npos);
}

TEST_F(AcceptanceIsolation, AS36_DuplicateIdsRejected)
{
    settings_.runtime.duplicate_ids = runtime::duplicate_policy::reject;
    start();
    auto const session = open_session();
    auto a = open_post(session, tool_call("1", "utility-notifications", utility_arguments("A", 3, 1000)));
    auto const second = post(session, tool_call("1", "utility-notifications", utility_arguments("B", 3, 1000)));
    EXPECT_EQ(second.status, 400u);
    EXPECT_EQ(second.error_code(), -32600);
    // The same number as a string is another id; another session's ids are its own.
    auto c = open_post(session, tool_call("\"1\"", "utility-notifications", utility_arguments("C", 3, 1000)));
    EXPECT_EQ(c.head().status, 200u);
    auto const other = open_session();
    auto d = open_post(other, tool_call("1", "utility-notifications", utility_arguments("D", 3, 1000)));
    EXPECT_EQ(d.head().status, 200u);
    EXPECT_EQ(read_to_end(a).logs(), utility_texts("A", 3, 1000));
    EXPECT_EQ(read_to_end(c).logs(), utility_texts("C", 3, 1000));
    EXPECT_EQ(read_to_end(d).logs(), utility_texts("D", 3, 1000));
    // Free again.
    auto e = open_post(session, tool_call("1", "burst", R"({"count":1})"));
    EXPECT_EQ(e.head().status, 200u);
    EXPECT_TRUE(read_to_end(e).has_response());
}

TEST_F(AcceptanceIsolation, AS37_IdReuseAfterRefresh)
{
    start();
    auto const session = open_session();
    auto old_page = open_post(session, tool_call("2", "utility-notifications", utility_arguments("old", 5, 1000)));
    seen before;
    read_until(old_page, before, [](seen const& so_far) { return so_far.logs().size() >= 2; });
    old_page.close();
    // The new page starts to count again.
    auto new_page = open_post(session, tool_call("2", "utility-notifications", utility_arguments("new", 2, 1000)));
    auto resumed = get(session, before.cursor);
    auto const fresh = read_to_end(new_page);
    auto const rest = read_to_end(resumed);
    EXPECT_EQ(fresh.logs(), utility_texts("new", 2, 1000));
    EXPECT_NE(text_at(fresh.response(), "result/content/0/text").find("\"new\""), std::string::npos);
    auto all = before.logs();
    for (auto const& text : rest.logs())
        all.push_back(text);
    EXPECT_EQ(all, utility_texts("old", 5, 1000));
    EXPECT_NE(text_at(rest.response(), "result/content/0/text").find("\"old\""), std::string::npos);
}

TEST_F(AcceptanceIsolation, AS37_CancelNamesTheNewestCallWithThatId)
{
    start();
    auto const session = open_session();
    auto old_page = open_post(session, tool_call("2", "utility-notifications", utility_arguments("old", 5, 1000)));
    auto new_page = open_post(session, tool_call("2", "utility-notifications", utility_arguments("new", 5, 1000)));
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":2})")).status, 202u);
    auto const fresh = read_to_end(new_page);
    EXPECT_EQ(at(fresh.response(), "error/data/reason"), "cancelled");
    // Its client has the answer, so another cancel is meant for the one that runs.
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":2})")).status, 202u);
    EXPECT_EQ(at(read_to_end(old_page).response(), "error/data/reason"), "cancelled");
}

TEST_F(AcceptanceIsolation, AS38_Cors)
{
    start();
    std::string const origin = "http://localhost:5173";
    auto const preflight = ask(
        "OPTIONS", "/mcp",
        {{"Origin", origin},
         {"Access-Control-Request-Method", "POST"},
         {"Access-Control-Request-Headers", "content-type,mcp-session-id,mcp-protocol-version,last-event-id"}});
    EXPECT_EQ(preflight.status / 100, 2u);
    EXPECT_EQ(preflight.header("Access-Control-Allow-Origin").value_or(""), origin);
    auto allowed = preflight.header("Access-Control-Allow-Headers").value_or("");
    std::ranges::transform(
        allowed, allowed.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (auto const* name :
         {"mcp-session-id", "mcp-protocol-version", "last-event-id", "authorization", "content-type", "mcp-method",
          "mcp-name"})
        EXPECT_NE(allowed.find(name), std::string::npos) << name;
    auto const methods = preflight.header("Access-Control-Allow-Methods").value_or("");
    for (auto const* name : {"GET", "POST", "DELETE"})
        EXPECT_NE(methods.find(name), std::string::npos) << name;

    auto const expect_readable = [&](http_response const& answer) {
        EXPECT_EQ(answer.header("Access-Control-Allow-Origin").value_or(""), origin);
        EXPECT_NE(
            answer.header("Access-Control-Expose-Headers").value_or("").find("Mcp-Session-Id"), std::string::npos);
        EXPECT_NE(answer.header("Vary").value_or("").find("Origin"), std::string::npos);
    };
    auto const opened = post_plain(hello(), {{"Origin", origin}});
    expect_readable(opened);
    client_session const session{opened.header("Mcp-Session-Id").value_or(""), "2025-11-25"};
    expect_readable(post(session, rpc("1", "tools/list"), {{"Origin", origin}}));
    auto stream = open_post(session, tool_call("1", "burst", R"({"count":3})"), {{"Origin", origin}});
    expect_readable(stream.head());
    auto const log = read_to_end(stream);
    expect_readable(get(session, log.events[0].id, {{"Origin", origin}}).head());
    expect_readable(get(session, log.cursor, {{"Origin", origin}}).head()); // 204
    expect_readable(get(session, "nonsense", {{"Origin", origin}}).head()); // 400
    expect_readable(post({"gone", ""}, rpc("1", "ping"), {{"Origin", origin}})); // 404
    // A page that may not connect gets nothing to read.
    auto const foreign
        = ask("OPTIONS", "/mcp", {{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "POST"}});
    EXPECT_FALSE(foreign.header("Access-Control-Allow-Origin"));
}

}
