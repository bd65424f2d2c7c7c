// The console page and its files, as a browser asks for them.
#include "app/console.hpp"
#include "support/server_fixture.hpp"

#include <regex>

namespace belay::test {

namespace {

class Console : public Server {
protected:
    http_response get(std::string_view target, header_list const& headers = {})
    {
        return connect().ask("GET", target, headers);
    }
    std::string script()
    {
        auto const page = get("/").body;
        std::smatch found;
        return std::regex_search(page, found, std::regex(R"(src="(/assets/[^"]+\.js)\")")) ? found[1].str() : "";
    }
};

}

TEST_F(Console, IsAtTheRoot)
{
    start();
    auto const page = get("/");
    EXPECT_EQ(page.status, 200u);
    EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(page.header("Cache-Control"), "no-cache");
    EXPECT_EQ(page.header("X-Content-Type-Options"), "nosniff");
    EXPECT_TRUE(page.body.starts_with("<!doctype html>")) << page.body;
    auto const policy = page.header("Content-Security-Policy").value_or("");
    EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self'; ")) << policy;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
}

TEST_F(Console, FilesMayBeKeptForEver)
{
    start();
    auto const file = get(script());
    EXPECT_EQ(file.status, 200u);
    EXPECT_EQ(file.header("Content-Type"), "text/javascript; charset=utf-8");
    EXPECT_EQ(file.header("Cache-Control"), "public, max-age=31536000, immutable");
    EXPECT_GT(file.body.size(), 10'000u);
}

TEST_F(Console, IsPackedForThoseWhoTakeIt)
{
    start();
    auto const path = script();
    auto const plain = get(path);
    EXPECT_EQ(plain.header("Content-Encoding"), std::nullopt);
    for (auto const* takes : {"gzip", "br, gzip;q=0.5", "*"}) {
        auto const packed = get(path, {{"Accept-Encoding", takes}});
        EXPECT_EQ(packed.header("Content-Encoding"), "gzip") << takes;
        EXPECT_EQ(packed.header("Vary"), "Accept-Encoding");
        EXPECT_LT(packed.body.size(), plain.body.size() / 2);
        EXPECT_TRUE(packed.body.starts_with("\x1f\x8b"));
    }
    for (auto const* takes : {"br", "gzip;q=0", "gzip;q=0.0", "identity"})
        EXPECT_EQ(get(path, {{"Accept-Encoding", takes}}).body, plain.body) << takes;
}

TEST_F(Console, IsNotSentAgain)
{
    start();
    auto const tag = get("/").header("ETag").value_or("");
    ASSERT_FALSE(tag.empty());
    for (auto const& known : {tag, "\"other\", " + tag, "W/" + tag, std::string("*")}) {
        auto const again = get("/", {{"If-None-Match", known}});
        EXPECT_EQ(again.status, 304u) << known;
        EXPECT_EQ(again.body, "");
        EXPECT_EQ(again.header("ETag"), tag);
    }
    EXPECT_EQ(get("/", {{"If-None-Match", "\"other\""}}).status, 200u);
}

TEST_F(Console, OnlyReads)
{
    start();
    auto const head = connect().ask("HEAD", "/", {});
    EXPECT_EQ(head.status, 200u);
    EXPECT_EQ(head.body, "");
    auto const refused = connect().ask("POST", "/", {{"Content-Type", "application/json"}}, "{}");
    EXPECT_EQ(refused.status, 405u);
    EXPECT_EQ(refused.header("Allow"), "GET, HEAD, OPTIONS");
    EXPECT_EQ(get("/assets/none.js").status, 404u);
}

TEST_F(Console, CanBeLeftOut)
{
    settings_.has_console = false;
    start();
    EXPECT_EQ(get("/").status, 404u);
}

}
