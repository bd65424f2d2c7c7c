#include "http/policy.hpp"

#include "fake_request.hpp"

#include <gtest/gtest.h>

namespace belay::http {

namespace {

using verdict = policy::verdict;

policy_settings on_loopback()
{
    return {};
}

policy_settings elsewhere(std::vector<std::string> hosts, std::vector<std::string> origins = {})
{
    policy_settings settings;
    settings.loopback = false;
    settings.allow_host = std::move(hosts);
    settings.allow_origin = std::move(origins);
    return settings;
}

verdict judge(policy_settings settings, std::string host)
{
    return policy(std::move(settings)).judge(request_with({{"Host", std::move(host)}}));
}

verdict judge(policy_settings settings, std::string host, std::string origin)
{
    return policy(std::move(settings)).judge(request_with({{"Host", std::move(host)}, {"Origin", std::move(origin)}}));
}

}

TEST(Policy, AllowsLoopbackNamesOnAnyPort)
{
    for (auto const* const host :
         {"localhost", "LocalHost:3000", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:3000", "app.localhost:80"})
        EXPECT_EQ(judge(on_loopback(), host), verdict::allowed) << host;
}

TEST(Policy, RefusesOtherNamesOnLoopback)
{
    for (auto const* const host :
         {"evil.example", "evil.example:3000", "localhost.evil.example", "127.0.0.1.evil", "", "xlocalhost",
          ".localhost.", "localhost:", "localhost:x", "localhost:123456", "[::1", "[::1]x", "[::2]", "127.0.0.2",
          "2130706433", "0.0.0.0"})
        EXPECT_EQ(judge(on_loopback(), host), verdict::bad_host) << host;
    EXPECT_EQ(policy(on_loopback()).judge(fake_request()), verdict::bad_host) << "HTTP/1.0 without Host";
}

TEST(Policy, AllowsConfiguredHostsWithOrWithoutPort)
{
    auto const settings = elsewhere({"mcp.Example", "other:8080", "fe80::1", "[fe80::2]:1"});
    EXPECT_EQ(judge(settings, "mcp.example"), verdict::allowed);
    EXPECT_EQ(judge(settings, "MCP.example:99"), verdict::allowed);
    EXPECT_EQ(judge(settings, "other:8080"), verdict::allowed);
    EXPECT_EQ(judge(settings, "other"), verdict::bad_host);
    EXPECT_EQ(judge(settings, "[fe80::1]:5"), verdict::allowed);
    EXPECT_EQ(judge(settings, "[fe80::2]:2"), verdict::bad_host);
    EXPECT_EQ(judge(settings, "localhost"), verdict::bad_host);
    EXPECT_EQ(judge(elsewhere({"*"}), "what ever"), verdict::allowed);
    EXPECT_EQ(judge(elsewhere({}), "mcp.example"), verdict::bad_host);
}

TEST(Policy, AllowsLoopbackPages)
{
    for (auto const* const origin :
         {"http://localhost", "http://localhost:5173", "https://127.0.0.1:8443", "http://[::1]:3000",
          "http://a.localhost"})
        EXPECT_EQ(judge(on_loopback(), "localhost:3000", origin), verdict::allowed_page) << origin;
}

TEST(Policy, RefusesForeignPages)
{
    for (auto const* const origin :
         {"http://evil.example", "https://localhost.evil.example", "null", "", "localhost", "ftp://localhost",
          "http://", "http://localhost/", "http://localhost@evil.example", "file://", "http://local host"})
        EXPECT_EQ(judge(on_loopback(), "localhost:3000", origin), verdict::bad_origin) << origin;
}

TEST(Policy, RefusesTwoOrigins)
{
    EXPECT_EQ(
        policy(on_loopback())
            .judge(request_with({{"Host", "localhost"}, {"Origin", "http://localhost"}, {"Origin", "http://evil"}})),
        verdict::bad_origin);
}

TEST(Policy, AllowsThePagesOfItsOwnHost)
{
    auto const settings = elsewhere({"mcp.example"});
    EXPECT_EQ(judge(settings, "mcp.example", "https://mcp.example"), verdict::allowed_page);
    EXPECT_EQ(judge(settings, "mcp.example:443", "https://mcp.example"), verdict::allowed_page);
    EXPECT_EQ(judge(settings, "mcp.example:8080", "http://mcp.example:8080"), verdict::allowed_page);
    EXPECT_EQ(judge(settings, "mcp.example:8080", "http://mcp.example"), verdict::bad_origin);
    EXPECT_EQ(judge(settings, "evil.example", "http://evil.example"), verdict::bad_host) << "a rebound name";
}

TEST(Policy, AllowsConfiguredOrigins)
{
    auto const settings = elsewhere({"mcp.example"}, {"https://App.example/", "null"});
    EXPECT_EQ(judge(settings, "mcp.example", "https://app.example"), verdict::allowed_page);
    EXPECT_EQ(judge(settings, "mcp.example", "null"), verdict::allowed_page);
    EXPECT_EQ(judge(settings, "mcp.example", "http://app.example"), verdict::bad_origin);
    EXPECT_EQ(judge(elsewhere({"mcp.example"}, {"*"}), "mcp.example", "http://any"), verdict::allowed_page);
}

TEST(Policy, LetsHealthChecksComeByAddress)
{
    auto settings = elsewhere({"mcp.example"});
    settings.exempt_paths = {"/healthz"};
    policy const rules(settings);
    auto probe = request_with({{"Host", "10.0.0.7:3000"}});
    EXPECT_EQ(rules.judge(probe), verdict::bad_host);
    probe.where = "/healthz";
    EXPECT_EQ(rules.judge(probe), verdict::allowed);
}

TEST(Policy, NamesTheFieldAndTheFlag)
{
    auto const request = request_with({{"Host", "evil<script>\x80" + std::string(200, 'x')}, {"Origin", "http://e"}});
    policy const rules(on_loopback());
    auto const host = rules.explain(verdict::bad_host, request);
    EXPECT_NE(host.find("--allow-host"), std::string::npos);
    EXPECT_NE(host.find("evil?script?"), std::string::npos);
    EXPECT_EQ(host.find('<'), std::string::npos);
    EXPECT_LT(host.size(), 250u);
    EXPECT_NE(rules.explain(verdict::bad_origin, request).find("--allow-origin"), std::string::npos);
}

TEST(Policy, NamesNoFlagWhereNoneWouldHelp)
{
    auto settings = on_loopback();
    settings.takes_pages = false;
    auto const text = policy(settings).explain(verdict::bad_origin, request_with({{"Origin", "http://e"}}));
    EXPECT_EQ(text.find("--"), std::string::npos);
    EXPECT_NE(text.find("answers no web page"), std::string::npos);
}

TEST(Policy, WritesTheFieldsForPages)
{
    auto settings = on_loopback();
    settings.cors_expose = "X-Id";
    settings.cors_methods = "GET, POST";
    settings.cors_headers = "X-Id, Accept";
    settings.cors_max_age = std::chrono::seconds(60);
    policy const rules(settings);
    std::string lines;
    rules.append_cors(lines, request_with({{"Origin", "http://localhost:5"}}));
    EXPECT_EQ(
        lines,
        "Access-Control-Allow-Origin: http://localhost:5\r\nVary: Origin\r\nAccess-Control-Expose-Headers: X-Id\r\n");
    EXPECT_EQ(
        rules.preflight_lines(),
        "Access-Control-Allow-Methods: GET, POST\r\nAccess-Control-Allow-Headers: X-Id, Accept\r\n"
        "Access-Control-Max-Age: 60\r\n");
    lines.clear();
    rules.append_cors(lines, fake_request());
    EXPECT_EQ(lines, "");
}

TEST(Policy, TellsAPreflight)
{
    auto request = request_with({{"Origin", "http://localhost"}, {"Access-Control-Request-Method", "POST"}});
    EXPECT_FALSE(policy::is_preflight(request));
    request.verb = method::options;
    EXPECT_TRUE(policy::is_preflight(request));
    request.fields.pop_back();
    EXPECT_FALSE(policy::is_preflight(request));
}

TEST(Policy, RemembersNothingButTheHostItAllowed)
{
    policy const rules(on_loopback());
    std::optional<std::string> last_host;
    EXPECT_EQ(rules.judge(fake_request(), last_host), verdict::bad_host) << "HTTP/1.0 without Host";
    EXPECT_EQ(rules.judge(request_with({{"Host", "evil"}}), last_host), verdict::bad_host);
    EXPECT_EQ(rules.judge(request_with({{"Host", "evil"}}), last_host), verdict::bad_host);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(rules.judge(request_with({{"Host", "localhost:1"}}), last_host), verdict::allowed);
        EXPECT_EQ(
            rules.judge(request_with({{"Host", "localhost:1"}, {"Origin", "http://evil"}}), last_host),
            verdict::bad_origin);
    }
    EXPECT_EQ(rules.judge(request_with({{"Host", "localhost:1.evil"}}), last_host), verdict::bad_host);
    EXPECT_EQ(rules.judge(fake_request(), last_host), verdict::bad_host);
}

}
