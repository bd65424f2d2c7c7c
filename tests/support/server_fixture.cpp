#include "support/server_fixture.hpp"

#include "server/access.hpp"

#include "app/reference/reference.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <thread>

namespace belay::test {

namespace {

// The same bound as a socket's: only something broken makes a test wait for it.
constexpr auto patience = std::chrono::seconds(20);
// A chain of this many posts on a loop is over when settle() returns; the longest known one has four.
constexpr int settle_rounds = 3;

}

std::string rpc(std::string_view id, std::string_view method, std::string_view params)
{
    return params.empty() ? fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"{}"}})", id, method)
                          : fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"{}","params":{}}})", id, method, params);
}

std::string notification(std::string_view method, std::string_view params)
{
    return params.empty() ? fmt::format(R"({{"jsonrpc":"2.0","method":"{}"}})", method)
                          : fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{}}})", method, params);
}

std::string tool_call(std::string_view id, std::string_view tool, std::string_view arguments, std::string_view meta)
{
    auto const more = meta.empty() ? std::string() : fmt::format(R"(,"_meta":{})", meta);
    return rpc(id, "tools/call", fmt::format(R"({{"name":"{}","arguments":{}{}}})", tool, arguments, more));
}

std::string hello(std::string_view version, std::string_view id, std::string_view capabilities)
{
    return rpc(
        id, "initialize",
        fmt::format(
            R"({{"protocolVersion":"{}","capabilities":{},"clientInfo":{{"name":"test","version":"1"}}}})", version,
            capabilities));
}

json::value at(json::value const& in, std::string_view path)
{
    auto const* here = &in;
    while (!path.empty()) {
        auto const slash = std::min(path.find('/'), path.size());
        auto const part = path.substr(0, slash);
        path.remove_prefix(std::min(slash + 1, path.size()));
        if (auto const* object = here->if_object()) {
            here = object->if_contains(part);
        } else if (auto const* array = here->if_array()) {
            std::size_t index = 0;
            std::from_chars(part.data(), part.data() + part.size(), index);
            here = index < array->size() ? &(*array)[index] : nullptr;
        } else {
            here = nullptr;
        }
        if (!here)
            return nullptr;
    }
    return *here;
}

std::string text_at(json::value const& in, std::string_view path)
{
    auto const value = at(in, path);
    return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

json::value message_of(http::sse_event const& event)
{
    boost::system::error_code error;
    auto value = json::parse(event.data, error);
    return error ? json::value() : value;
}

std::string log_text(http::sse_event const& event)
{
    auto const message = message_of(event);
    auto const data = at(message, "params/data");
    return at(message, "method") == "notifications/message" && data.is_string() ? std::string(data.get_string())
                                                                                : std::string();
}

bool is_priming(http::sse_event const& event)
{
    return event.type == "belay" || event.data.empty();
}

bool is_response(http::sse_event const& event)
{
    auto const message = message_of(event);
    return message.is_object() && (message.get_object().contains("result") || message.get_object().contains("error"));
}

std::optional<std::int64_t> missed_of(http::sse_event const& event)
{
    auto const message = message_of(event);
    if (at(message, "params/logger") != "resumability")
        return std::nullopt;
    auto const missed = at(message, "params/data/missed");
    return missed.is_int64() ? std::optional(missed.get_int64()) : std::nullopt;
}

std::string stream_of(std::string_view event_id)
{
    return std::string(event_id.substr(0, event_id.find('.')));
}

std::uint64_t sequence_of(std::string_view event_id)
{
    auto text = event_id.substr(event_id.rfind('.') + 1);
    text = text.substr(0, text.find('~'));
    return base::parse_base62(text).value_or(~std::uint64_t(0));
}

void seen::add(http::sse_event const& event)
{
    cursor = event.id;
    if (is_priming(event))
        primings.push_back(event);
    else
        events.push_back(event);
}

std::vector<std::string> seen::logs() const
{
    std::vector<std::string> texts;
    for (auto const& event : events)
        if (auto text = log_text(event); !text.empty())
            texts.push_back(std::move(text));
    return texts;
}

bool seen::has_response() const
{
    return !events.empty() && is_response(events.back());
}

json::value seen::response() const
{
    return has_response() ? message_of(events.back()) : json::value();
}

std::vector<std::string> utility_texts(std::string const& prefix, double seconds, int interval_ms)
{
    auto const count = std::max(1, static_cast<int>(std::floor(seconds * 1000 / interval_ms)));
    std::vector<std::string> texts{fmt::format("{}: starting, {} messages every {} ms", prefix, count, interval_ms)};
    for (int i = 1; i <= count; ++i) {
        auto const elapsed = i * interval_ms / 1000.0;
        texts.push_back(
            fmt::format("{} {}/{} ({:.1f}s elapsed, {:.1f}s remaining)", prefix, i, count, elapsed, seconds - elapsed));
    }
    texts.push_back(fmt::format("{}: complete, {} messages sent", prefix, count));
    return texts;
}

std::string utility_arguments(std::string const& prefix, double seconds, int interval_ms)
{
    return fmt::format(
        R"({{"durationSeconds":{},"intervalMs":{},"messagePrefix":"{}"}})", seconds, interval_ms, prefix);
}

Server::Server()
{
    settings_.http.listen = {"127.0.0.1:0"};
    settings_.threads = 1;
    settings_.stall_warning = base::duration::zero(); // the test's clock jumps
    settings_.runtime.limits.event_age = base::duration::zero(); // complete() makes it the idle timeout
    app::add_reference(server_);
}

Server::~Server() = default;

void Server::TearDown()
{
    if (host_ && checks_balance_) {
        EXPECT_TRUE(eventually([this] { return is_balanced(); }))
            << "appended " << appended() << ", delivered " << delivered() << ", pending " << store().census().pending
            << ", trimmed undelivered " << host().metrics().events_trimmed_undelivered.Value() << ", ended undelivered "
            << host().metrics().events_ended_undelivered.Value();
    }
    stop();
}

void Server::start()
{
    auto const completed = app::complete(settings_);
    ASSERT_TRUE(completed) << completed.error();
    host_ = std::make_unique<app::http_host>(
        detail::access::core(server_), settings_, clock_, random_, log_,
        app::http_surroundings{
            .make_store = [this](
                              app::settings const& with, base::clock const& clock, base::random_source& random,
                              store::event_counter& counter) {
                memory_
                    = std::make_unique<store::memory_store>(with.runtime.limits, clock, random.next() >> 32, &counter);
                return before_store_(*memory_);
            }});
    host_->start();
    port_ = host_->port();
}

void Server::stop()
{
    if (!host_)
        return;
    // Tools that still sleep are ended first: a host that is destroyed under them is a test of its own.
    host_->node().calls().interrupt_all();
    EXPECT_TRUE(eventually([this] { return host_->node().departures().calls() == 0; }));
    probe_.reset();
    host_.reset();
}

void Server::probe()
{
    // The probe's connection ends when the clock passes its idle time.
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (!probe_)
            probe_.emplace(port());
        if (probe_->ask("GET", "/healthz", {}).status == 200)
            return;
        probe_.reset();
    }
}

void Server::settle()
{
    for (int round = 0; round < settle_rounds; ++round)
        probe();
}

void Server::advance(base::duration by)
{
    probe(); // what the server has begun, it has begun before the clock moves
    clock_.advance(by);
    host().poke();
    settle();
}

void Server::advance_in_steps(base::duration by, base::duration step)
{
    while (by > base::duration::zero()) {
        advance(std::min(by, step));
        by -= step;
    }
}

bool Server::eventually(std::function<bool()> const& holds)
{
    auto const give_up = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > give_up)
            return false;
        std::this_thread::yield();
        settle();
    }
    return true;
}

bool Server::advance_until(std::function<bool()> const& holds, base::duration step)
{
    auto const give_up = std::chrono::steady_clock::now() + patience;
    settle();
    while (!holds()) {
        if (std::chrono::steady_clock::now() > give_up)
            return false;
        advance(step);
    }
    return true;
}

std::optional<http::sse_event> Server::next(http_client& stream, base::duration step)
{
    std::optional<http::sse_event> event;
    auto const came = advance_until(
        [&] {
            event = stream.poll_event();
            return event || stream.how_it_ended() != http_client::ending::open;
        },
        step);
    EXPECT_TRUE(came) << "no event came";
    return event;
}

void Server::read_until(
    http_client& stream, seen& into, std::function<bool(seen const&)> const& holds, base::duration step)
{
    while (!holds(into)) {
        auto const event = next(stream, step);
        ASSERT_TRUE(event) << "the stream ended too early";
        into.add(*event);
    }
}

seen Server::read_to_end(http_client& stream, base::duration step)
{
    seen all;
    while (auto const event = next(stream, step))
        all.add(*event);
    EXPECT_EQ(stream.how_it_ended(), http_client::ending::complete);
    return all;
}

client_session Server::open_session(std::string_view version, header_list headers, std::string_view capabilities)
{
    auto const answer = post_plain(hello(version, "0", capabilities), headers);
    EXPECT_EQ(answer.status, 200u) << answer.body;
    client_session session{answer.header("Mcp-Session-Id").value_or(""), std::string(version)};
    EXPECT_FALSE(session.id.empty());
    EXPECT_EQ(post(session, notification("notifications/initialized")).status, 202u);
    return session;
}

header_list Server::headers_of(client_session const& session, header_list more) const
{
    header_list headers{{"Mcp-Session-Id", session.id}};
    if (!session.version.empty())
        headers.emplace_back("Mcp-Protocol-Version", session.version);
    headers.insert(headers.end(), more.begin(), more.end());
    return headers;
}

namespace {

header_list post_headers(header_list headers)
{
    headers.emplace_back("Content-Type", "application/json");
    headers.emplace_back("Accept", "application/json, text/event-stream");
    return headers;
}

}

http_response Server::post(client_session const& session, std::string_view body, header_list more)
{
    return post_plain(body, headers_of(session, std::move(more)));
}

http_response Server::post_plain(std::string_view body, header_list headers)
{
    return connect().ask("POST", "/mcp", post_headers(std::move(headers)), body);
}

http_response Server::ask(std::string_view method, std::string_view target, header_list headers, std::string_view body)
{
    return connect().ask(method, target, headers, body);
}

void Server::send_post(http_client& on, client_session const& session, std::string_view body, header_list more) const
{
    on.send_request("POST", "/mcp", post_headers(headers_of(session, std::move(more))), body);
}

http_client Server::send_post(client_session const& session, std::string_view body, header_list more)
{
    auto client = connect();
    send_post(client, session, body, std::move(more));
    return client;
}

http_client Server::open_post(client_session const& session, std::string_view body, header_list more)
{
    auto client = send_post(session, body, std::move(more));
    client.read_head();
    return client;
}

http_client Server::get(client_session const& session, std::string_view cursor, header_list more)
{
    auto client = connect();
    auto headers = headers_of(session, std::move(more));
    headers.emplace_back("Accept", "text/event-stream");
    if (!cursor.empty())
        headers.emplace_back("Last-Event-ID", cursor);
    client.send_request("GET", "/mcp", headers);
    client.read_head();
    return client;
}

http_response Server::remove(client_session const& session)
{
    return ask("DELETE", "/mcp", headers_of(session));
}

bool Server::is_alive(client_session const& session)
{
    auto const answer = post(session, rpc("\"alive\"", "tools/list"));
    return answer.status == 200 && at(answer.json(), "result/tools").is_array();
}

std::string Server::echo(client_session const& session, std::string const& text)
{
    auto const answer = post(session, tool_call("\"echo\"", "echo", json::serialize(json::object{{"message", text}})));
    return answer.status == 200 ? text_at(answer.json(), "result/content/0/text") : std::string();
}

store::stream_key Server::standalone_of(client_session const& session)
{
    store::session_key const key{"anonymous", base::parse_id128(session.id).value_or(base::id128{})};
    store::stream_id stream = 0;
    store().load(key, [&](result<store::record_ptr> record) {
        ASSERT_TRUE(record);
        stream = (*record)->standalone;
    });
    return {key, stream};
}

std::uint64_t Server::delivered_standalone(client_session const& session)
{
    std::uint64_t delivered = 0;
    store().reader(standalone_of(session), [&](result<store::reader_mark> mark) {
        ASSERT_TRUE(mark);
        delivered = mark->delivered;
    });
    return delivered;
}

void Server::append_standalone(client_session const& session, std::string_view text)
{
    checks_balance_ = false;
    auto payload = std::make_shared<std::string const>(
        notification("notifications/message", fmt::format(R"({{"level":"info","logger":"test","data":"{}"}})", text)));
    store().append_standalone(
        standalone_of(session), "test", ++appended_directly_, {{std::move(payload), store::event_kind::ordinary}},
        [](result<store::stream_top> top) { ASSERT_TRUE(top); });
}

double Server::metric(std::string_view name_and_labels)
{
    auto const text = ask("GET", "/metrics").body;
    auto const line = fmt::format("\n{} ", name_and_labels);
    auto const found = text.find(line);
    return found == std::string::npos ? -1 : std::stod(text.substr(found + line.size()));
}

bool Server::is_balanced()
{
    auto& metrics = host().metrics();
    auto const census = store().census();
    return appended()
        == delivered() + static_cast<double>(census.pending) + metrics.events_trimmed_undelivered.Value()
        + metrics.events_ended_undelivered.Value();
}

}
