// What operators see: the log, the access log, the operators' endpoint, other ways to listen.
#include "support/server_fixture.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <mutex>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace belay::test {

namespace {

constexpr auto traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr auto other_traceparent = "00-11111111111111111111111111111111-2222222222222222-01";

class Operators : public Server {
protected:
    Operators()
    {
        settings_.runtime.node_name = "n1";
        log_ = base::logger(base::log_level::debug, [this](base::log_level, std::string_view text) {
            std::lock_guard const lock(mutex_);
            lines_.emplace_back(text);
        });
    }

    std::vector<std::string> lines_with(std::string_view text)
    {
        settle();
        std::lock_guard const lock(mutex_);
        std::vector<std::string> found;
        std::ranges::copy_if(lines_, std::back_inserter(found), [&](std::string const& line) {
            return line.find(text) != std::string::npos && line.find("path=/healthz") == std::string::npos;
        });
        return found;
    }
    /// The newest of them; empty without one.
    std::string last_line_with(std::string_view text)
    {
        auto const found = lines_with(text);
        return found.empty() ? "" : found.back();
    }
    static std::string field(std::string const& line, std::string_view name)
    {
        auto const key = " " + std::string(name) + "=";
        auto const at = line.find(key);
        if (at == std::string::npos)
            return "";
        auto const from = at + key.size();
        return line.substr(from, line.find(' ', from) - from);
    }
    static std::string name_of(client_session const& session) { return base::log_name(*base::parse_id128(session.id)); }

    http_response ask_admin(
        std::string_view method, std::string_view target, header_list const& headers = {}, std::string_view body = {})
    {
        auto const where = host().admin_address();
        auto const port = std::stoul(where.substr(where.rfind(':') + 1));
        return http_client(static_cast<std::uint16_t>(port)).ask(method, target, headers, body);
    }

    std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// A store whose health is the test's word.
class ailing_store final : public forwarding_store {
public:
    using forwarding_store::forwarding_store;
    [[nodiscard]] std::unique_ptr<store::watch_handle> on_health(std::function<void(bool)> hear) override
    {
        say = std::move(hear);
        return std::make_unique<store::watch_handle>();
    }
    std::function<void(bool)> say;
};

}

// --- health

TEST_F(Operators, AServerIsNotReadyWhileItsStoreCannotBeReached)
{
    ailing_store* ailing = nullptr;
    before_store_ = [&](store::backend& memory) {
        auto made = std::make_unique<ailing_store>(memory);
        ailing = made.get();
        return made;
    };
    start();
    EXPECT_EQ(ask("GET", "/readyz").status, 200u);
    ailing->say(false);
    auto const red = ask("GET", "/readyz");
    EXPECT_EQ(red.status, 503u);
    EXPECT_NE(red.body.find("store"), std::string::npos);
    EXPECT_TRUE(red.header("Retry-After"));
    EXPECT_EQ(ask("GET", "/healthz").status, 200u);
    ailing->say(true);
    EXPECT_EQ(ask("GET", "/readyz").status, 200u);
    host().shut_down();
    host().wait();
}

// --- the log

TEST_F(Operators, LogNamesSessionsAndTheNodeAndNeverAnId)
{
    settings_.log_access = true;
    start();
    auto const session = open_session();
    auto first = get(session);
    auto second = get(session);
    auto const call = tool_call("1", "utility-notifications", utility_arguments("A", 0.2, 100));
    auto posted = open_post(session, call);
    auto const seen = read_to_end(posted);
    EXPECT_EQ(remove(session).status, 200u);
    auto const name = name_of(session);
    for (auto const* const what : {"session opened", "stream taken over", "session ended"}) {
        auto const line = last_line_with(what);
        EXPECT_EQ(field(line, "session"), name) << what << ": " << line;
        EXPECT_EQ(field(line, "node"), "n1") << line;
    }
    EXPECT_EQ(lines_with(session.id), std::vector<std::string>{});
    EXPECT_EQ(lines_with(stream_of(seen.cursor)), std::vector<std::string>{});
}

TEST_F(Operators, LogNamesASessionThatExpires)
{
    start();
    auto const session = open_session();
    EXPECT_TRUE(advance_until([&] { return !lines_with("session expired").empty(); }, 60s));
    EXPECT_EQ(field(last_line_with("session expired"), "session"), name_of(session));
}

TEST_F(Operators, LogNamesTheHandlerThatHoldsALoop)
{
    settings_.stall_warning = 4ms; // short, so that the clock need not go far until the watch has looked
    std::promise<void> go_on;
    std::promise<void> is_held;
    server_.tool("nap", [&](call&) -> task<std::string> {
        is_held.set_value();
        go_on.get_future().wait(); // what no tool should do
        co_return std::string("awake");
    });
    start();
    auto const session = open_session();
    auto const held_up = [this](std::string_view text) {
        std::lock_guard const lock(mutex_);
        auto const found = std::ranges::find_if(
            lines_, [&](std::string const& line) { return line.find(text) != std::string::npos; });
        return found == lines_.end() ? std::string() : *found;
    };
    auto posted = send_post(session, tool_call("1", "nap"));
    is_held.get_future().wait();
    // The watch looks in its own time, the test's clock says how long that was.
    std::string line;
    while ((line = held_up("an event loop is held up")).empty()) {
        clock_.advance(1ms);
        std::this_thread::yield();
    }
    EXPECT_NE(line.find("handler=\"tools/call nap\""), std::string::npos) << line;
    EXPECT_EQ(field(line, "loop"), "0");
    EXPECT_GE(std::stoi(field(line, "held_ms")), 4);
    EXPECT_EQ(host().metrics().loop_stalls.Value(), 1);
    go_on.set_value();
    while ((line = held_up("held up and goes on")).empty())
        std::this_thread::yield();
    EXPECT_NE(line.find("tools/call nap"), std::string::npos) << line;
    ASSERT_TRUE(posted.read_head());
    EXPECT_EQ(text_at(read_to_end(posted).response(), "result/content/0/text"), "awake");
}

// --- the access log

TEST_F(Operators, AccessLogIsOffUnlessItIsWanted)
{
    start();
    open_session();
    EXPECT_EQ(lines_with("method="), std::vector<std::string>{});
}

TEST_F(Operators, AccessLogHasALineForEachRequest)
{
    settings_.log_access = true;
    start();
    auto const session = open_session();
    EXPECT_EQ(field(lines_with("path=/mcp").at(0), "session"), name_of(session)) << "initialize opens it";
    EXPECT_EQ(echo(session, "hello"), "Echo: hello");
    auto const line = last_line_with("path=/mcp");
    EXPECT_EQ(field(line, "method"), "POST");
    EXPECT_EQ(field(line, "status"), "200");
    EXPECT_EQ(field(line, "session"), name_of(session));
    EXPECT_EQ(field(line, "node"), "n1");
    EXPECT_EQ(field(line, "trace"), "");
    EXPECT_EQ(field(line, "stream"), "") << "answered without one";
    EXPECT_GT(std::stoul(field(line, "bytes_out")), 50u);
    EXPECT_FALSE(field(line, "duration_us").empty());

    EXPECT_EQ(ask("GET", "/nowhere?secret=1").status, 404u);
    EXPECT_EQ(field(last_line_with("path=/nowhere"), "status"), "404");
    EXPECT_EQ(lines_with("secret"), std::vector<std::string>{}) << "queries may hold anything";
}

TEST_F(Operators, AccessLogNamesTheStreamOfACall)
{
    settings_.log_access = true;
    start();
    auto const session = open_session();
    auto posted = open_post(session, tool_call("1", "utility-notifications", utility_arguments("A", 0.3, 100)));
    auto const primed = next(posted);
    ASSERT_TRUE(primed);
    posted.close();
    EXPECT_TRUE(eventually([&] { return !field(last_line_with("method=POST"), "stream").empty(); }));
    auto const of_post = last_line_with("method=POST");
    auto resumed = get(session, primed->id);
    read_to_end(resumed);
    auto const of_get = last_line_with("method=GET");
    EXPECT_EQ(field(of_get, "stream"), field(of_post, "stream"));
    EXPECT_EQ(field(last_line_with("stream resumed"), "stream"), field(of_post, "stream"));
}

TEST_F(Operators, ToolsSeeTheTrace)
{
    server_.tool("trace", [](call& call) -> task<std::string> {
        auto const trace = call.trace();
        std::string text = trace ? trace.id + " " + trace.parent + " " + trace.state : "none";
        if (trace)
            text += " " + trace.header("00f067aa0ba902b7");
        co_return text;
    });
    start();
    auto const session = open_session();
    auto const seen_by_tool = [&](header_list headers, std::string_view meta) {
        auto stream = open_post(session, tool_call("1", "trace", "{}", meta), std::move(headers));
        return text_at(read_to_end(stream).response(), "result/content/0/text");
    };
    EXPECT_EQ(
        seen_by_tool({{"traceparent", traceparent}, {"tracestate", "a=b"}}, "{}"),
        "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331 a=b "
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
    auto const in_meta = fmt::format(R"({{"traceparent":"{}"}})", other_traceparent);
    EXPECT_TRUE(seen_by_tool({{"traceparent", traceparent}}, in_meta).starts_with("11111111111111111111111111111111"))
        << "the message's own is nearer";
    EXPECT_EQ(seen_by_tool({}, "{}"), "none");
}

TEST_F(Operators, AccessLogHasTheTrace)
{
    settings_.log_access = true;
    start();
    auto const session = open_session();
    auto const trace_of = [&](std::string const& body, header_list headers) {
        EXPECT_EQ(post(session, body, std::move(headers)).status, 200u);
        return field(last_line_with("path=/mcp"), "trace");
    };
    auto const ping = rpc("1", "ping");
    EXPECT_EQ(trace_of(ping, {{"traceparent", traceparent}}), "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(trace_of(ping, {{"traceparent", "00-bad"}}), "");
    EXPECT_EQ(trace_of(ping, {{"traceparent", traceparent}, {"traceparent", other_traceparent}}), "");
    auto stream = get(session, {}, {{"traceparent", other_traceparent}});
    stream.close();
    EXPECT_TRUE(eventually([&] { return field(last_line_with("method=GET"), "trace") == std::string(32, '1'); }));
    EXPECT_EQ(post_plain(hello(), {{"traceparent", traceparent}}).status, 200u);
    EXPECT_EQ(field(last_line_with("path=/mcp"), "trace"), "0af7651916cd43dd8448eb211c80319c");
    auto const with_meta = rpc("1", "ping", R"({"_meta":{"traceparent":")" + std::string(traceparent) + R"("}})");
    EXPECT_EQ(trace_of(with_meta, {{"traceparent", other_traceparent}}), "0af7651916cd43dd8448eb211c80319c");
}

TEST_F(Operators, LogHasTheTraceOfACallThatEndsEarly)
{
    start();
    auto const session = open_session();
    auto const call = tool_call("7", "utility-notifications", utility_arguments("A", 60, 1000));
    auto posted = open_post(session, call, {{"traceparent", traceparent}});
    ASSERT_TRUE(next(posted));
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":7})")).status, 202u);
    EXPECT_TRUE(eventually([&] { return !lines_with("call ended early").empty(); }));
    auto const line = last_line_with("call ended early");
    EXPECT_EQ(field(line, "reason"), "cancelled");
    EXPECT_EQ(field(line, "trace"), "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(field(line, "session"), name_of(session));
    read_to_end(posted);
}

// --- the operators' endpoint

TEST_F(Operators, MayListSessions)
{
    settings_.admin_listen = "127.0.0.1:0";
    start();
    auto const session = open_session();
    auto posted = open_post(session, tool_call("1", "utility-notifications", utility_arguments("A", 60, 1000)));
    ASSERT_TRUE(next(posted));
    auto const busy = ask_admin("GET", "/sessions");
    ASSERT_EQ(busy.status, 200u) << busy.body;
    EXPECT_EQ(busy.body.find(session.id), std::string::npos);
    auto const listed = busy.json();
    EXPECT_EQ(text_at(listed, "node"), "n1");
    EXPECT_EQ(at(listed, "total"), 1);
    EXPECT_EQ(at(listed, "next"), nullptr);
    EXPECT_EQ(text_at(listed, "sessions/0/session"), name_of(session));
    EXPECT_EQ(text_at(listed, "sessions/0/version"), "2025-11-25");
    EXPECT_EQ(text_at(listed, "sessions/0/client/name"), "test");
    EXPECT_EQ(at(listed, "sessions/0/connections"), 1);
    EXPECT_EQ(at(listed, "sessions/0/running_calls"), 1);
    EXPECT_EQ(at(listed, "sessions/0/idle_seconds"), 0);
    host().node().calls().interrupt_all();
    read_to_end(posted);
    advance(30s);
    auto const quiet = ask_admin("GET", "/sessions").json();
    EXPECT_EQ(at(quiet, "sessions/0/connections"), 0);
    EXPECT_EQ(at(quiet, "sessions/0/running_calls"), 0);
    EXPECT_GE(at(quiet, "sessions/0/idle_seconds").to_number<int>(), 30);
    EXPECT_GE(at(quiet, "sessions/0/age_seconds").to_number<int>(), 30);
}

TEST_F(Operators, ListSessionsInPages)
{
    settings_.admin_listen = "127.0.0.1:0";
    settings_.admin_max_page = 3;
    start();
    std::vector<std::string> opened;
    for (int i = 0; i < 7; ++i)
        opened.push_back(name_of(open_session()));
    std::ranges::sort(opened);
    std::vector<std::string> listed;
    std::string target = "/sessions?limit=3";
    int pages = 0;
    for (; !target.empty() && pages < 10; ++pages) {
        auto const page = ask_admin("GET", target).json();
        EXPECT_EQ(at(page, "total"), 7);
        auto const sessions = at(page, "sessions");
        for (auto const& each : sessions.as_array())
            listed.push_back(text_at(each, "session"));
        auto const next_page = at(page, "next");
        target = next_page.is_string() ? std::string(next_page.get_string()) : "";
    }
    EXPECT_EQ(pages, 3);
    EXPECT_EQ(listed, opened);
    EXPECT_EQ(at(ask_admin("GET", "/sessions").json(), "sessions").as_array().size(), 3u)
        << "the default is bounded too";
    for (auto const* const bad : {"0", "4", "x", "", "-1", "1x"})
        EXPECT_EQ(ask_admin("GET", "/sessions?limit=" + std::string(bad)).status, 400u) << bad;
}

TEST_F(Operators, MayEndASession)
{
    settings_.admin_listen = "127.0.0.1:0";
    start();
    auto const session = open_session();
    auto const other = open_session();
    auto posted = open_post(session, tool_call("1", "utility-notifications", utility_arguments("A", 60, 1000)));
    ASSERT_TRUE(next(posted));
    auto const ended = ask_admin("DELETE", "/sessions/" + name_of(session));
    EXPECT_EQ(ended.status, 200u) << ended.body;
    EXPECT_EQ(text_at(ended.json(), "ended"), name_of(session));
    EXPECT_TRUE(read_to_end(posted).has_response()) << "running calls get their final answer";
    EXPECT_EQ(field(last_line_with("by an operator"), "session"), name_of(session));
    EXPECT_FALSE(is_alive(session));
    EXPECT_TRUE(is_alive(other));
    EXPECT_EQ(ask_admin("DELETE", "/sessions/" + name_of(session)).status, 404u);
    EXPECT_EQ(at(ask_admin("GET", "/sessions").json(), "total"), 1);
}

TEST_F(Operators, HaveAnEndpointOfTheirOwn)
{
    start();
    EXPECT_EQ(host().admin_address(), "");
    EXPECT_EQ(ask("GET", "/sessions").status, 404u);
    stop();
    settings_.admin_listen = "127.0.0.1:0";
    start();
    EXPECT_EQ(ask("GET", "/sessions").status, 404u);
    EXPECT_EQ(ask_admin("GET", "/mcp").status, 404u);
    EXPECT_EQ(ask_admin("POST", "/sessions").status, 405u);
    EXPECT_EQ(ask_admin("GET", "/sessions/abc").status, 405u);
}

TEST_F(Operators, AreNotWebPages)
{
    settings_.admin_listen = "127.0.0.1:0";
    settings_.http.policy.allow_origin = {"*"};
    start();
    EXPECT_EQ(ask_admin("GET", "/sessions", {{"Host", "evil.example"}}).status, 403u);
    EXPECT_EQ(ask_admin("GET", "/sessions", {{"Origin", "http://localhost:5173"}}).status, 403u);
    EXPECT_EQ(ask_admin("GET", "/sessions").status, 200u);
}

// --- other ways to listen

TEST_F(Operators, MayServeOnAUnixSocketBesideAPort)
{
    auto pattern = (std::filesystem::temp_directory_path() / "belay_operators_XXXXXX").string();
    std::filesystem::path const folder = ::mkdtemp(pattern.data());
    auto const path = (folder / "mcp.sock").string();
    settings_.http.listen.push_back("unix:" + path);
    start();
    EXPECT_EQ(host().addresses().at(1), "unix:" + path);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    int const fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    timeval const patience{20, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr const*>(&to), sizeof to), 0) << std::strerror(errno);
    auto const body = hello();
    auto const request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         "Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: "
        + std::to_string(body.size()) + "\r\n\r\n" + body;
    ASSERT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(fd, buffer, sizeof buffer, 0)) > 0;)
        answer.append(buffer, static_cast<std::size_t>(got));
    ::close(fd);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
    EXPECT_NE(answer.find("Mcp-Session-Id: "), std::string::npos) << answer;
    stop();
    EXPECT_FALSE(std::filesystem::exists(path));
    std::filesystem::remove_all(folder);
}

}
