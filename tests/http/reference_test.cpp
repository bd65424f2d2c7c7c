// What the reference server offers beside its tools, and what it says unasked.
#include "app/reference/reference.hpp"
#include "support/server_fixture.hpp"

#include <fmt/format.h>

#include <set>

namespace belay::test {

class Reference : public Server {
protected:
    json::value ask_for(std::string_view method, std::string_view params = {})
    {
        return at(post(session_, rpc("1", method, params)).json(), "result");
    }
    json::value complete(std::string_view ref, std::string_view name, std::string_view typed)
    {
        return at(
            ask_for(
                "completion/complete",
                fmt::format(R"({{"ref":{},"argument":{{"name":"{}","value":"{}"}}}})", ref, name, typed)),
            "completion");
    }
    void start_and_open()
    {
        start();
        session_ = open_session();
    }
    void subscribe(std::string_view uri)
    {
        auto stream = open_post(session_, rpc("1", "resources/subscribe", fmt::format(R"({{"uri":"{}"}})", uri)));
        auto const got = read_to_end(stream);
        ASSERT_EQ(got.events.size(), 1u);
        EXPECT_TRUE(at(got.response(), "result").is_object());
    }
    /// The messages of the standalone stream while the clock moves.
    std::vector<json::value> heard(base::duration time)
    {
        auto stream = get(session_);
        std::vector<json::value> messages;
        auto const take = [&] {
            while (auto const event = stream.poll_event())
                if (!is_priming(*event))
                    messages.push_back(message_of(*event));
        };
        for (auto left = time; left > 0s; left -= 1s) {
            advance(1s);
            take();
        }
        // Something that comes after all of it.
        append_standalone(session_, "the end");
        EXPECT_TRUE(eventually([&] {
            take();
            return !messages.empty() && text_at(messages.back(), "params/data") == "the end";
        }));
        messages.pop_back();
        return messages;
    }

    client_session session_;
    base::seeded_random seeded_{1};
};

TEST_F(Reference, FirstToolNeedsNoArguments)
{
    start_and_open();
    auto const list = ask_for("tools/list");
    EXPECT_TRUE(at(list, "nextCursor").is_null());
    EXPECT_EQ(at(list, "tools/0/inputSchema/properties"), json::value(json::object()));
    auto const answer = post(session_, tool_call("1", text_at(list, "tools/0/name"), "{}"));
    EXPECT_TRUE(at(answer.json(), "result/content/0").is_object());
    EXPECT_TRUE(at(answer.json(), "result/isError").is_null());
}

TEST_F(Reference, ProgressBeginsAtZero)
{
    start_and_open();
    auto stream = open_post(session_, tool_call("1", "test_tool_with_progress", "{}", R"({"progressToken":"p"})"));
    std::vector<json::value> values;
    for (auto const& event : read_to_end(stream).events)
        if (text_at(message_of(event), "method") == "notifications/progress")
            values.push_back(at(message_of(event), "params/progress"));
    EXPECT_EQ(values, (std::vector<json::value>{0, 50, 100}));
}

TEST_F(Reference, ResourcesComeInPagesOfTen)
{
    start_and_open();
    std::set<std::string> uris;
    json::value list = ask_for("resources/list");
    int pages = 1;
    for (; at(list, "nextCursor").is_string(); ++pages) {
        auto const page = at(list, "resources");
        ASSERT_EQ(page.as_array().size(), 10u);
        for (auto const& each : page.as_array())
            EXPECT_TRUE(uris.insert(text_at(each, "uri")).second);
        list = ask_for("resources/list", fmt::format(R"({{"cursor":"{}"}})", text_at(list, "nextCursor")));
        ASSERT_LT(pages, 100);
    }
    auto const last = at(list, "resources");
    for (auto const& each : last.as_array())
        EXPECT_TRUE(uris.insert(text_at(each, "uri")).second);
    EXPECT_EQ(pages, 11);
    EXPECT_EQ(uris.size(), 104u);
    for (int id = 1; id <= 100; ++id)
        EXPECT_TRUE(uris.contains(fmt::format("test://static/resource/{}", id))) << id;
    EXPECT_TRUE(uris.contains("ui://hello-world/app.html"));
}

TEST_F(Reference, NumberedResourcesAreTextOrBytes)
{
    start_and_open();
    auto const odd = ask_for("resources/read", R"({"uri":"test://static/resource/7"})");
    EXPECT_EQ(text_at(odd, "contents/0/mimeType"), "text/plain");
    EXPECT_EQ(text_at(odd, "contents/0/text"), "Resource 7: a text");
    auto const even = ask_for("resources/read", R"({"uri":"test://static/resource/8"})");
    EXPECT_EQ(text_at(even, "contents/0/mimeType"), "application/octet-stream");
    EXPECT_TRUE(at(even, "contents/0/blob").is_string());
    for (auto const* const id : {"0", "101", "x"}) {
        auto const answer
            = post(session_, rpc("1", "resources/read", fmt::format(R"({{"uri":"test://static/resource/{}"}})", id)));
        EXPECT_EQ(answer.error_code(), -32002) << id;
    }
}

TEST_F(Reference, ToolPointsToItsPage)
{
    start_and_open();
    json::value uri;
    auto const tools = at(ask_for("tools/list"), "tools");
    for (auto const& each : tools.as_array())
        if (text_at(each, "name") == "mcp_apps_hello_world")
            uri = at(each, "_meta/ui/resourceUri");
    EXPECT_EQ(uri, json::value("ui://hello-world/app.html"));
    auto const page = ask_for("resources/read", R"({"uri":"ui://hello-world/app.html"})");
    EXPECT_EQ(text_at(page, "contents/0/mimeType"), "text/html;profile=mcp-app");
    EXPECT_TRUE(text_at(page, "contents/0/text").starts_with("<!DOCTYPE html>"));
}

TEST_F(Reference, Completions)
{
    start_and_open();
    std::string const prompt = R"({"type":"ref/prompt","name":"complex_prompt"})";
    auto const styles = complete(prompt, "style", "f");
    EXPECT_EQ(at(styles, "values"), json::value({"formal", "friendly"}));
    EXPECT_EQ(at(styles, "total"), json::value(2));
    EXPECT_EQ(at(styles, "hasMore"), json::value(false));
    EXPECT_EQ(at(complete(prompt, "temperature", ""), "values"), json::value({"0", "0.5", "0.7", "1.0"}));
    auto const ids = complete(R"({"type":"ref/resource","uri":"test://static/resource/{id}"})", "id", "");
    EXPECT_EQ(at(ids, "values"), json::value({"1", "2", "3", "4", "5"}));
}

TEST_F(Reference, Prompts)
{
    start_and_open();
    auto const complex
        = ask_for("prompts/get", R"({"name":"complex_prompt","arguments":{"temperature":"0.7","style":"formal"}})");
    EXPECT_EQ(at(complex, "messages").as_array().size(), 3u);
    EXPECT_TRUE(text_at(complex, "messages/0/content/text").contains("0.7"));
    EXPECT_TRUE(text_at(complex, "messages/0/content/text").contains("formal"));
    EXPECT_EQ(text_at(complex, "messages/1/role"), "assistant");
    EXPECT_EQ(text_at(complex, "messages/2/content/type"), "image");
    auto const embedded = ask_for("prompts/get", R"({"name":"resource_prompt","arguments":{"resourceId":"4"}})");
    EXPECT_EQ(text_at(embedded, "messages/1/content/resource/uri"), "test://static/resource/4");
    auto const outside
        = post(session_, rpc("1", "prompts/get", R"({"name":"resource_prompt","arguments":{"resourceId":"101"}})"));
    EXPECT_EQ(outside.error_code(), -32602);
}

TEST_F(Reference, IsSilentUnlessToldOtherwise)
{
    start_and_open();
    EXPECT_TRUE(ask_for("resources/subscribe", R"({"uri":"test://watched-resource"})").is_object());
    EXPECT_TRUE(ask_for("logging/setLevel", R"({"level":"debug"})").is_object());
    EXPECT_TRUE(heard(41s).empty());
}

TEST_F(Reference, SubscribedResourcesChangeEveryTenSeconds)
{
    app::add_reference_background(server_, seeded_);
    start_and_open();
    EXPECT_TRUE(ask_for("logging/setLevel", R"({"level":"emergency"})").is_object());
    subscribe("test://static/resource/3");
    int updates = 0;
    for (auto const& each : heard(31s))
        if (text_at(each, "method") == "notifications/resources/updated") {
            EXPECT_EQ(text_at(each, "params/uri"), "test://static/resource/3");
            ++updates;
        }
    EXPECT_EQ(updates, 3);
    EXPECT_TRUE(ask_for("resources/unsubscribe", R"({"uri":"test://static/resource/3"})").is_object());
    for (auto const& each : heard(21s))
        EXPECT_NE(text_at(each, "method"), "notifications/resources/updated");
}

TEST_F(Reference, ASubscriptionIsToldToTheModel)
{
    start();
    session_ = open_session("2025-11-25", {}, R"({"sampling":{}})");
    for (bool const is_refused : {false, true}) {
        auto stream = open_post(session_, rpc("1", "resources/subscribe", R"({"uri":"test://static/resource/3"})"));
        seen got;
        read_until(stream, got, [](seen const& so_far) { return !so_far.events.empty(); });
        auto const question = message_of(got.events.back());
        EXPECT_EQ(text_at(question, "method"), "sampling/createMessage");
        EXPECT_TRUE(text_at(question, "params/messages/0/content/text").contains("test://static/resource/3"));
        std::string answer = fmt::format(R"({{"jsonrpc":"2.0","id":"{}")", text_at(question, "id"));
        answer += is_refused
            ? R"(,"error":{"code":-1,"message":"The user refused"}})"
            : R"(,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"I see."}}})";
        EXPECT_EQ(post(session_, answer).status, 202u);
        EXPECT_TRUE(at(read_to_end(stream).response(), "result").is_object()) << is_refused;
        EXPECT_EQ(server_.subscriptions(), std::vector<std::string>{"test://static/resource/3"});
    }
}

TEST_F(Reference, OnlyWhatThereIsIsSubscribedTo)
{
    start_and_open();
    auto stream = open_post(session_, rpc("1", "resources/subscribe", R"({"uri":"test://static/resource/101"})"));
    EXPECT_EQ(at(read_to_end(stream).response(), "error/code"), json::value(-32002));
    EXPECT_TRUE(server_.subscriptions().empty());
}

TEST_F(Reference, SumsAreNumbers)
{
    start_and_open();
    auto const sum = ask_for("tools/call", R"({"name":"add","arguments":{"a":1e308,"b":1e308}})");
    EXPECT_EQ(at(sum, "isError"), json::value(true));
}

TEST_F(Reference, StandardErrorIsToldWhereItIsWanted)
{
    app::add_reference_stderr(server_);
    start_and_open();
    EXPECT_TRUE(ask_for("logging/setLevel", R"({"level":"emergency"})").is_object());
    auto const messages = heard(61s);
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_EQ(text_at(messages[0], "method"), "notifications/stderr");
    EXPECT_FALSE(text_at(messages[0], "params/content").empty());
}

TEST_F(Reference, LogLevelIsConfirmedAndObeyed)
{
    app::add_reference_background(server_, seeded_);
    start_and_open();
    EXPECT_TRUE(ask_for("logging/setLevel", R"({"level":"warning"})").is_object());
    auto const messages = heard(401s);
    ASSERT_GT(messages.size(), 1u);
    EXPECT_LT(messages.size(), 21u) << "not every one of 20 was a warning or worse";
    EXPECT_EQ(text_at(messages[0], "params/level"), "warning");
    EXPECT_EQ(text_at(messages[0], "params/data"), "Log level is now warning");
    std::set<std::string> const wanted = {"warning", "error", "critical", "alert", "emergency"};
    for (auto const& each : messages)
        EXPECT_TRUE(wanted.contains(text_at(each, "params/level"))) << text_at(each, "params/level");
}

}
