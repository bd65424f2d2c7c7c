// Resources over HTTP: subscriptions across refreshes, and reads that take their time.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace belay::test {

class Resources : public Server {
protected:
    Resources()
    {
        for (auto const* uri : {"notes://a", "notes://b", "notes://c"})
            server_.resource(uri, [] { return std::string("text"); });
        server_.resource("notes://slow", [](call& call) -> task<std::string> {
            co_await call.log(log_level::info, "slow", "reading");
            co_await call.sleep(10s);
            co_return "worth the wait";
        });
        server_.resource("notes://missing/{name}", [](call& call, json::object) -> task<std::string> {
            co_await call.sleep(1s);
            throw not_found("nothing there");
        });
        server_.resource("notes://broken", []() -> std::string { throw std::runtime_error("a secret"); });
        server_.resource("notes://closed", []() -> std::string { throw tool_error("The shop is closed."); });
    }

    http_response subscribe(client_session const& session, std::string_view uri, bool wanted = true)
    {
        return post(
            session,
            rpc("1", wanted ? "resources/subscribe" : "resources/unsubscribe", fmt::format(R"({{"uri":"{}"}})", uri)));
    }
    static std::string reading(std::string_view uri, std::string_view id = "1")
    {
        return rpc(id, "resources/read", fmt::format(R"({{"uri":"{}"}})", uri));
    }

    /// The URIs of the updates that can be read without the clock moving.
    std::vector<std::string> updates(http_client& stream, std::string* cursor = nullptr)
    {
        settle();
        std::vector<std::string> all;
        while (auto const event = stream.poll_event()) {
            if (cursor)
                *cursor = event->id;
            if (is_priming(*event))
                continue;
            EXPECT_EQ(at(message_of(*event), "method"), "notifications/resources/updated") << event->data;
            all.push_back(text_at(message_of(*event), "params/uri"));
        }
        return all;
    }

    using texts = std::vector<std::string>;
};

TEST_F(Resources, UpdatesSurviveARefresh)
{
    start();
    auto const session = open_session();
    EXPECT_EQ(subscribe(session, "notes://a").status, 200u);
    EXPECT_EQ(subscribe(session, "notes://b").status, 200u);
    std::string cursor;
    auto listener = get(session);
    server_.resource_updated("notes://a");
    EXPECT_EQ(updates(listener, &cursor), texts{"notes://a"});
    listener.close();
    settle();
    server_.resource_updated("notes://b");
    server_.resource_updated("notes://c");
    server_.resource_updated("notes://a");
    auto resumed = get(session, cursor);
    EXPECT_EQ(updates(resumed, &cursor), (texts{"notes://b", "notes://a"}));
    server_.resource_updated("notes://b");
    EXPECT_EQ(updates(resumed, &cursor), texts{"notes://b"});
    resumed.close();
    auto again = get(session, cursor);
    EXPECT_EQ(updates(again), texts());
}

TEST_F(Resources, UpdatesWaitForTheFirstListener)
{
    start();
    auto const session = open_session();
    EXPECT_EQ(subscribe(session, "notes://a").status, 200u);
    server_.resource_updated("notes://a");
    auto listener = get(session);
    EXPECT_EQ(updates(listener), texts{"notes://a"});
}

TEST_F(Resources, UpdatesGoToThoseWhoSubscribed)
{
    start();
    auto const one = open_session();
    auto const two = open_session("2024-11-05");
    auto of_one = get(one);
    auto of_two = get(two);
    EXPECT_EQ(subscribe(one, "notes://a").status, 200u);
    EXPECT_EQ(subscribe(two, "notes://a").status, 200u);
    EXPECT_EQ(subscribe(two, "notes://b").status, 200u);
    EXPECT_EQ(server_.subscriptions(), (texts{"notes://a", "notes://b"}));
    server_.resource_updated("notes://a");
    server_.resource_updated("notes://b");
    EXPECT_EQ(updates(of_one), texts{"notes://a"});
    EXPECT_EQ(updates(of_two), (texts{"notes://a", "notes://b"}));
    EXPECT_EQ(subscribe(two, "notes://a", false).status, 200u);
    server_.resource_updated("notes://a");
    EXPECT_EQ(updates(of_one), texts{"notes://a"});
    EXPECT_EQ(updates(of_two), texts());
    EXPECT_EQ(remove(two).status, 200u);
    EXPECT_EQ(server_.subscriptions(), texts{"notes://a"});
    EXPECT_EQ(subscribe(one, "notes://a", false).status, 200u);
    EXPECT_EQ(server_.subscriptions(), texts());
}

TEST_F(Resources, ASessionHasSoManySubscriptions)
{
    settings_.runtime.max_subscriptions = 2;
    start();
    auto const session = open_session();
    EXPECT_TRUE(at(subscribe(session, "notes://a").json(), "result").is_object());
    EXPECT_TRUE(at(subscribe(session, "notes://b").json(), "result").is_object());
    auto const refused = subscribe(session, "notes://c");
    EXPECT_EQ(refused.status, 200u);
    EXPECT_EQ(refused.error_code(), -32602);
    EXPECT_TRUE(text_at(refused.json(), "error/message").contains("(2)"));
    EXPECT_EQ(server_.subscriptions(), (texts{"notes://a", "notes://b"}));
    EXPECT_TRUE(at(subscribe(session, "notes://a").json(), "result").is_object()) << "it has that one";
    EXPECT_TRUE(at(subscribe(open_session(), "notes://c").json(), "result").is_object()) << "another has its own";
    EXPECT_TRUE(at(subscribe(session, "notes://a", false).json(), "result").is_object());
    EXPECT_TRUE(at(subscribe(session, "notes://c").json(), "result").is_object());
}

TEST_F(Resources, ARemovedOneCanBeUnsubscribed)
{
    start();
    auto const session = open_session();
    EXPECT_EQ(subscribe(session, "notes://a").error_code(), 0);
    EXPECT_TRUE(server_.remove_resource("notes://a"));
    EXPECT_EQ(subscribe(session, "notes://a").error_code(), -32002);
    EXPECT_EQ(subscribe(session, "notes://a", false).error_code(), 0);
    EXPECT_EQ(server_.subscriptions(), texts());
}

TEST_F(Resources, AReadSurvivesARefresh)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, reading("notes://slow", "7"));
    seen got;
    read_until(stream, got, [](seen const& so_far) { return !so_far.events.empty(); });
    stream.close();
    advance_in_steps(20s, 1s);
    auto resumed = get(session, got.cursor);
    auto const rest = read_to_end(resumed);
    ASSERT_EQ(rest.events.size(), 1u);
    EXPECT_EQ(at(rest.response(), "id"), json::value(7));
    EXPECT_EQ(text_at(rest.response(), "result/contents/0/text"), "worth the wait");
}

TEST_F(Resources, AReadThatEndsEarlyEndsWithAnError)
{
    settings_.runtime.call_max = 5s;
    start();
    auto const session = open_session();
    auto stream = open_post(session, reading("notes://slow"));
    auto const timed_out = read_to_end(stream).response();
    EXPECT_EQ(at(timed_out, "error/code"), json::value(-32603));
    EXPECT_EQ(text_at(timed_out, "error/data/reason"), "timed_out");
    EXPECT_EQ(at(timed_out, "error/data/retryable"), json::value(true));

    auto other = open_post(session, reading("notes://slow", R"("r")"));
    (void)next(other);
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":"r"})")).status, 202u);
    EXPECT_EQ(at(read_to_end(other).response(), "error/code"), json::value(-32800));
}

TEST_F(Resources, AFailedReadSaysWhatItMay)
{
    start();
    auto const session = open_session();
    auto stream = open_post(session, reading("notes://missing/x"));
    auto const missing = read_to_end(stream).response();
    EXPECT_EQ(at(missing, "error/code"), json::value(-32002));
    EXPECT_EQ(text_at(missing, "error/data/uri"), "notes://missing/x");

    auto const broken = post(session, reading("notes://broken"));
    EXPECT_EQ(broken.error_code(), -32603);
    EXPECT_FALSE(broken.body.contains("secret"));
    auto const closed = post(session, reading("notes://closed"));
    EXPECT_EQ(closed.error_code(), -32603);
    EXPECT_EQ(text_at(closed.json(), "error/message"), "The shop is closed.");
}

class SubscribeHook : public Resources {
protected:
    SubscribeHook()
    {
        server_.resource("watched://asks", [] { return std::string("text"); })
            .on_subscribe([this](call& call, std::string uri) -> task<void> {
                ++asked_;
                if (!call.can_sample())
                    co_return;
                sampled const got = co_await call.sample("May " + uri + " be watched?", 10);
                if (got.text() != "yes")
                    throw tool_error("The model says no.");
            });
        server_.resource("watched://{name}", [](json::object const&) { return std::string("text"); })
            .on_subscribe([this](call&, std::string uri) -> task<void> {
                family_.push_back(uri);
                throw not_found("not this one");
                co_return;
            });
    }

    static std::string subscribing(std::string_view uri, std::string_view id = "1")
    {
        return rpc(id, "resources/subscribe", fmt::format(R"({{"uri":"{}"}})", uri));
    }
    static std::string says(json::value const& question, std::string_view text)
    {
        return fmt::format(
            R"({{"jsonrpc":"2.0","id":"{}","result":{{"role":"assistant","model":"m","content":{{"type":"text","text":"{}"}}}}}})",
            text_at(question, "id"), text);
    }
    /// The question that the stream brings next.
    json::value question_of(http_client& stream, seen& got)
    {
        auto const is_question
            = [](http::sse_event const& event) { return at(message_of(event), "method") == "sampling/createMessage"; };
        read_until(stream, got, [&](seen const& so_far) { return std::ranges::any_of(so_far.events, is_question); });
        return message_of(*std::ranges::find_if(got.events, is_question));
    }

    int asked_ = 0;
    texts family_;
};

TEST_F(SubscribeHook, MayAskAcrossARefresh)
{
    start();
    auto const session = open_session("2025-11-25", {}, R"({"sampling":{}})");
    auto stream = open_post(session, subscribing("watched://asks", "7"));
    seen got;
    auto const question = question_of(stream, got);
    EXPECT_TRUE(text_at(question, "params/messages/0/content/text").contains("watched://asks"));
    EXPECT_EQ(server_.subscriptions(), texts()) << "not before the function has returned";
    stream.close();
    EXPECT_EQ(post(session, says(question, "yes")).status, 202u);
    auto resumed = get(session, got.cursor);
    auto const rest = read_to_end(resumed);
    EXPECT_EQ(at(rest.response(), "id"), json::value(7));
    EXPECT_TRUE(at(rest.response(), "result").is_object());
    EXPECT_EQ(server_.subscriptions(), texts{"watched://asks"});
    auto listener = get(session);
    server_.resource_updated("watched://asks");
    EXPECT_EQ(updates(listener), texts{"watched://asks"});
}

TEST_F(SubscribeHook, SeesWhatTheClientCanDo)
{
    start();
    auto stream = open_post(open_session(), subscribing("watched://asks"));
    EXPECT_TRUE(at(read_to_end(stream).response(), "result").is_object());
    EXPECT_EQ(asked_, 1);
    EXPECT_EQ(server_.subscriptions(), texts{"watched://asks"});
}

TEST_F(SubscribeHook, MayRefuse)
{
    start();
    auto const session = open_session("2025-11-25", {}, R"({"sampling":{}})");
    auto stream = open_post(session, subscribing("watched://asks"));
    seen got;
    auto const question = question_of(stream, got);
    EXPECT_EQ(post(session, says(question, "no")).status, 202u);
    auto const refused = read_to_end(stream).response();
    EXPECT_EQ(at(refused, "error/code"), json::value(-32603));
    EXPECT_EQ(text_at(refused, "error/message"), "The model says no.");

    auto other = open_post(session, subscribing("watched://one"));
    EXPECT_EQ(at(read_to_end(other).response(), "error/code"), json::value(-32002));
    EXPECT_EQ(family_, texts{"watched://one"});
    EXPECT_EQ(server_.subscriptions(), texts());
}

TEST_F(SubscribeHook, IsLeftWhenTheCallIsCancelled)
{
    start();
    auto const session = open_session("2025-11-25", {}, R"({"sampling":{}})");
    auto stream = open_post(session, subscribing("watched://asks", R"("s")"));
    seen got;
    (void)question_of(stream, got);
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":"s"})")).status, 202u);
    EXPECT_EQ(at(read_to_end(stream).response(), "error/code"), json::value(-32800));
    EXPECT_EQ(server_.subscriptions(), texts());
}

TEST_F(SubscribeHook, KeepsTheLimitOfSubscriptions)
{
    settings_.runtime.max_subscriptions = 1;
    start();
    auto const session = open_session();
    EXPECT_EQ(subscribe(session, "notes://a").error_code(), 0);
    auto stream = open_post(session, subscribing("watched://asks"));
    EXPECT_EQ(at(read_to_end(stream).response(), "error/code"), json::value(-32602));
    EXPECT_EQ(server_.subscriptions(), texts{"notes://a"});
}

TEST_F(SubscribeHook, StreamsTheBatchItIsIn)
{
    start();
    auto const session = open_session("2025-03-26", {}, R"({"sampling":{}})");
    auto stream
        = open_post(session, "[" + subscribing("notes://a", "1") + "," + subscribing("watched://asks", "2") + "]");
    seen got;
    auto const question = question_of(stream, got);
    EXPECT_EQ(post(session, says(question, "yes")).status, 202u);
    (void)read_to_end(stream);
    EXPECT_EQ(server_.subscriptions(), (texts{"notes://a", "watched://asks"}));
}

TEST_F(SubscribeHook, CannotAskWithoutStreams)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const answered = subscribe(open_session("2025-11-25", {}, R"({"sampling":{}})"), "watched://asks");
    EXPECT_EQ(answered.error_code(), 0);
    EXPECT_EQ(server_.subscriptions(), texts{"watched://asks"});
}

TEST_F(Resources, AreReadWithoutStreams)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const session = open_session();
    auto client = send_post(session, reading("notes://slow"));
    ASSERT_TRUE(eventually([&] { return host().node().departures().calls() == 1; }));
    advance_in_steps(10s, 1s);
    EXPECT_EQ(text_at(client.read_response().json(), "result/contents/0/text"), "worth the wait");
}

}
