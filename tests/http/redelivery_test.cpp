// redeliver_requests: a page that saw a question and died before it answered is asked again.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

namespace belay::test {

class Redelivery : public Server {
protected:
    Redelivery()
    {
        server_.tool("ask", [](call& call) -> task<std::string> {
            json::object schema{{"type", "object"}, {"properties", json::object()}};
            answer<json::object> reply = co_await call.ask("sure", "Sure?", std::move(schema));
            co_await call.log(log_level::info, "ask", std::string("answered"));
            co_await call.sleep(1s);
            co_return std::string(reply ? "yes" : "no");
        });
    }
    client_session open_asking_session() { return open_session("2025-11-25", {}, R"({"elicitation":{}})"); }
    /// Begins the call, reads up to the question and dies.
    seen ask_and_die(client_session const& session)
    {
        seen got;
        auto stream = open_post(session, tool_call("1", "ask"));
        read_until(stream, got, [](seen const& so_far) { return !so_far.events.empty(); });
        EXPECT_EQ(text_at(message_of(got.events[0]), "method"), "elicitation/create");
        stream.close();
        return got;
    }
    void accept(client_session const& session, seen const& asked)
    {
        auto const id = text_at(message_of(asked.events[0]), "id");
        EXPECT_EQ(
            post(
                session,
                fmt::format(R"({{"jsonrpc":"2.0","id":"{}","result":{{"action":"accept","content":{{}}}}}})", id))
                .status,
            202u);
    }
};

TEST_F(Redelivery, IsOffByDefault)
{
    start();
    auto const session = open_asking_session();
    auto const asked = ask_and_die(session);
    auto again = get(session, asked.cursor);
    EXPECT_TRUE(is_priming(*again.next_event()));
    accept(session, asked);
    auto const rest = read_to_end(again);
    ASSERT_EQ(rest.events.size(), 2u); // the log and the result: it was not asked again
    EXPECT_EQ(rest.logs(), std::vector<std::string>{"answered"});
}

TEST_F(Redelivery, AsksAgainUnderTheCursorsId)
{
    settings_.runtime.redeliver_requests = true;
    start();
    auto const session = open_asking_session();
    auto const asked = ask_and_die(session);
    for (int i = 0; i < 2; ++i) { // each page that comes back
        auto again = get(session, asked.cursor);
        EXPECT_TRUE(is_priming(*again.next_event()));
        auto const question = again.next_event();
        ASSERT_TRUE(question);
        EXPECT_EQ(question->data, asked.events[0].data);
        EXPECT_EQ(sequence_of(question->id), sequence_of(asked.cursor));
        again.close();
    }
    accept(session, asked);
    auto last = get(session, asked.cursor);
    auto const rest = read_to_end(last);
    ASSERT_EQ(rest.events.size(), 2u); // answered by now
    EXPECT_EQ(text_at(rest.response(), "result/content/0/text"), "yes");
}

}
