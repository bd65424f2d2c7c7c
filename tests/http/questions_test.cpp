// What tools ask of their callers' clients, while connections come and go.
#include "support/server_fixture.hpp"

#include <fmt/format.h>

namespace belay::test {

namespace {

struct form {
    std::string name;
};
BOOST_DESCRIBE_STRUCT(form, (), (name))

enum class colour { red, green };
BOOST_DESCRIBE_ENUM(colour, red, green)
struct several {
    std::vector<colour> colours;
};
BOOST_DESCRIBE_STRUCT(several, (), (colours))

json::array const pets{json::object{{"const", "c"}, {"title", "Cat"}}, json::object{{"const", "d"}, {"title", "Dog"}}};

json::object const any_form{{"type", "object"}, {"properties", json::object()}};

constexpr auto everything = R"({"elicitation":{},"sampling":{},"roots":{}})";

bool is_question(http::sse_event const& event)
{
    auto const message = message_of(event);
    return at(message, "method").is_string() && at(message, "id").is_string();
}

bool is_withdrawal(http::sse_event const& event)
{
    return at(message_of(event), "method") == "notifications/cancelled";
}

bool has_question(seen const& so_far)
{
    return std::ranges::any_of(so_far.events, is_question);
}

std::string answer_text(std::string_view id, std::string_view result)
{
    return fmt::format(R"({{"jsonrpc":"2.0","id":"{}","result":{}}})", id, result);
}

std::string accepted(std::string_view id, std::string_view name)
{
    return answer_text(id, fmt::format(R"({{"action":"accept","content":{{"name":"{}"}}}})", name));
}

}

class Questions : public Server {
protected:
    Questions()
    {
        server_.tool("ask", [](call& call) -> task<std::string> {
            co_await call.log(log_level::info, "ask", "one moment");
            co_await call.sleep(1s);
            auto const got = co_await call.ask<form>("name", "Who are you?");
            co_return got ? "hello " + got->name : std::string("no name");
        });
        server_.tool("ask_at_once", [](call& call) -> task<std::string> {
            auto const got = co_await call.ask<form>("name", "Who are you?");
            co_return got ? "hello " + got->name : std::string("no name");
        });
        server_.tool("ask_twice", [](call& call) -> task<std::string> {
            auto const first = co_await call.ask<form>("first", "First name?");
            auto const last = co_await call.ask<form>("last", "Last name?");
            co_return first->name + " " + last->name;
        });
        server_.tool("same_key", [](call& call) -> task<std::string> {
            (void)co_await call.ask<form>("name", "Who are you?");
            (void)co_await call.ask<form>("name", "Who are you?");
            co_return "asked twice";
        });
        server_.tool("patient", [](call& call) -> task<std::string> {
            std::string outcome = "answered";
            try {
                (void)co_await call.ask("name", "Quick!", any_form, 30s);
            } catch (client_error const& error) {
                outcome = error.what();
            }
            co_await call.sleep(10s);
            co_return outcome;
        });
        server_
            .tool(
                "limited",
                [](call& call) -> task<std::string> {
                    (void)co_await call.ask<form>("name", "Who are you?");
                    co_return "answered";
                })
            .timeout(60s);
        server_.tool("sample", [](call& call) -> task<std::string> {
            auto const got = co_await call.sample("Say something", 10);
            co_return got.text();
        });
        server_.tool("raw", [](call& call) -> task<std::string> {
            json::object schema{{"type", "object"}};
            schema["properties"] = json::object{
                {"name", json::object{{"type", "string"}}},
                {"age", json::object{{"type", "integer"}, {"maximum", 100}, {"default", 7}}},
                {"pet", json::object{{"type", "string"}, {"oneOf", pets}}},
                {"toys", json::object{{"type", "array"}, {"items", json::object{{"type", "string"}}}}}};
            schema["required"] = json::array{"name"};
            auto const got = co_await call.ask("raw", "Who are you?", std::move(schema));
            call.url_is_done("never-asked");
            co_return got ? "accepted" : "not accepted";
        });
        server_.tool("several", [](call& call) -> task<std::string> {
            auto const got = co_await call.ask<several>("several", "Which?");
            co_return got ? "accepted" : "not accepted";
        });
        server_.tool("roots", [](call& call) -> task<std::string> {
            auto const all = co_await call.roots();
            co_return std::to_string(all.size());
        });
        server_.tool("refused", [](call& call) -> task<std::string> {
            int code = 0;
            try {
                (void)co_await call.sample("Say something", 10);
            } catch (client_error const& error) {
                code = error.code();
            }
            co_return fmt::format("the client said {}", code);
        });
    }

    client_session
    open_able_session(std::string_view version = "2025-11-25", std::string_view capabilities = everything)
    {
        return open_session(version, {}, capabilities);
    }

    /// Calls the tool and reads to its first question.
    http_client begin(client_session const& session, std::string_view tool, seen& into, std::string_view id = "1")
    {
        auto stream = open_post(session, tool_call(id, tool));
        EXPECT_EQ(stream.head().status, 200u);
        read_until(stream, into, has_question);
        return stream;
    }

    static std::string question_id(seen const& got)
    {
        auto const found = std::ranges::find_if(got.events, is_question);
        return found == got.events.end() ? "none" : text_at(message_of(*found), "id");
    }

    static std::string result_text(seen const& got) { return text_at(got.response(), "result/content/0/text"); }

    /// What can be read without the clock moving.
    seen read_now(http_client& stream)
    {
        settle();
        seen all;
        while (auto const event = stream.poll_event())
            all.add(*event);
        return all;
    }
};

TEST_F(Questions, AreAnsweredOnAnotherConnection)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask", got);
    auto const question = message_of(got.events.back());
    EXPECT_EQ(at(question, "method"), "elicitation/create");
    EXPECT_EQ(at(question, "params/message"), "Who are you?");
    auto const taken = post(session, accepted(question_id(got), "Ada"));
    EXPECT_EQ(taken.status, 202u);
    EXPECT_EQ(taken.body, "");
    EXPECT_EQ(result_text(read_to_end(stream)), "hello Ada");
}

// AS-52
TEST_F(Questions, AskedWhileNobodyWasThereIsAskedAfterwards)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = open_post(session, tool_call("1", "ask"));
    read_until(stream, got, [](seen const& so_far) { return !so_far.events.empty(); });
    stream.close();
    advance_in_steps(20s, 1s);
    auto resumed = get(session, got.cursor);
    seen rest;
    read_until(resumed, rest, has_question);
    EXPECT_EQ(rest.events.size(), 1u);
    EXPECT_EQ(post(session, accepted(question_id(rest), "Ada")).status, 202u);
    EXPECT_EQ(result_text(read_to_end(resumed)), "hello Ada");
}

TEST_F(Questions, SeenBeforeTheCutIsNotAskedAgain)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask", got);
    stream.close();
    auto resumed = get(session, got.cursor);
    auto const replay = read_now(resumed);
    EXPECT_EQ(replay.events.size(), 0u);
    EXPECT_EQ(replay.primings.size(), 1u);
    EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
    auto const rest = read_to_end(resumed);
    EXPECT_EQ(rest.events.size(), 1u);
    EXPECT_EQ(result_text(rest), "hello Ada");
}

// AS-53
TEST_F(Questions, CanBeAnsweredWhileNobodyReads)
{
    start();
    for (auto const* version : {"2025-06-18", "2025-11-25"}) {
        auto const session = open_able_session(version);
        seen got;
        auto stream = begin(session, "ask", got);
        stream.close();
        settle();
        EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
        ASSERT_TRUE(advance_until([&] { return host().node().departures().calls() == 0; }));
        auto resumed = get(session, got.cursor);
        auto const rest = read_to_end(resumed);
        EXPECT_EQ(rest.events.size(), 1u);
        EXPECT_EQ(result_text(rest), "hello Ada");
    }
}

TEST_F(Questions, AnUnansweredOneIsReplayedWithItsId)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask", got);
    stream.close();
    auto const before = got.events.front().id; // the log message
    for (int refresh = 0; refresh < 3; ++refresh) {
        auto resumed = get(session, before);
        seen again;
        read_until(resumed, again, has_question);
        EXPECT_EQ(question_id(again), question_id(got));
        EXPECT_EQ(again.events.back().id, got.events.back().id);
        resumed.close();
    }
    EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
    auto resumed = get(session, got.cursor);
    EXPECT_EQ(result_text(read_to_end(resumed)), "hello Ada");
}

TEST_F(Questions, AnAnsweredOneIsReplayedAsItsIdAlone)
{
    start();
    for (auto const* version : {"2025-06-18", "2025-11-25"}) {
        auto const session = open_able_session(version);
        seen got;
        auto stream = begin(session, "ask", got);
        auto const question = got.events.back();
        EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
        (void)read_to_end(stream);

        auto resumed = get(session, got.events.front().id);
        auto const rest = read_to_end(resumed);
        EXPECT_EQ(rest.events.size(), 1u);
        EXPECT_EQ(result_text(rest), "hello Ada");
        ASSERT_EQ(rest.primings.size(), 2u) << version; // that of the connection, and the question's place
        auto const& place = rest.primings.back();
        EXPECT_EQ(place.id, question.id);
        EXPECT_FALSE(place.retry_ms);
        bool const is_newest = session.version == "2025-11-25";
        EXPECT_EQ(place.type, is_newest ? "message" : "belay");
        EXPECT_EQ(place.data, is_newest ? "" : "{}");
    }
}

TEST_F(Questions, TheFirstAnswerCounts)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask_twice", got);
    auto const first = question_id(got);
    EXPECT_EQ(post(session, accepted(first, "Ada")).status, 202u);
    EXPECT_EQ(post(session, accepted(first, "Alan")).status, 202u);
    seen more;
    read_until(stream, more, has_question);
    EXPECT_NE(question_id(more), first);
    EXPECT_EQ(post(session, accepted(first, "Grace")).status, 202u);
    EXPECT_EQ(post(session, accepted(question_id(more), "Lovelace")).status, 202u);
    EXPECT_EQ(result_text(read_to_end(stream)), "Ada Lovelace");
    EXPECT_EQ(post(session, accepted(first, "Grace")).status, 202u) << "the call has ended";
}

TEST_F(Questions, AnswersFindTheirCall)
{
    start();
    auto const session = open_able_session();
    seen one;
    seen two;
    auto first = begin(session, "ask_at_once", one, "1");
    auto second = begin(session, "ask_at_once", two, "1"); // a fresh page begins with the same ids
    EXPECT_NE(question_id(one), question_id(two));
    EXPECT_EQ(post(session, accepted(question_id(two), "Two")).status, 202u);
    EXPECT_EQ(post(session, accepted(question_id(one), "One")).status, 202u);
    EXPECT_EQ(result_text(read_to_end(first)), "hello One");
    EXPECT_EQ(result_text(read_to_end(second)), "hello Two");
}

TEST_F(Questions, AnswersWithUnknownIdsHaveNoEffect)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask_at_once", got);
    auto const id = question_id(got);
    auto const dash = id.find('-');
    ASSERT_NE(dash, std::string::npos);
    for (auto const& unknown :
         {id + "0", id.substr(0, dash) + "-0", id.substr(0, dash) + "-2", id.substr(0, dash), std::string("x-1"),
          std::string("-"), std::string(), " " + id, id + "\\n"})
        EXPECT_EQ(post(session, accepted(unknown, "Mallory")).status, 202u) << unknown;
    for (auto const* number : {"1", "0", "-1"})
        EXPECT_EQ(
            post(
                session,
                fmt::format(
                    R"({{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"name":"M"}}}}}})", number))
                .status,
            202u);
    EXPECT_EQ(read_now(stream).events.size(), 0u);
    EXPECT_EQ(post(session, accepted(id, "Ada")).status, 202u);
    EXPECT_EQ(result_text(read_to_end(stream)), "hello Ada");
}

TEST_F(Questions, AForeignSessionCannotAnswer)
{
    start();
    auto const session = open_able_session();
    auto const foreign = open_able_session();
    seen got;
    auto stream = begin(session, "ask_at_once", got);
    auto const refused = post(foreign, accepted(question_id(got), "Mallory"));
    EXPECT_EQ(refused.status, 202u) << "nothing can be learned from it";
    EXPECT_EQ(refused.body, "");
    EXPECT_EQ(read_now(stream).events.size(), 0u);
    EXPECT_EQ(host().node().departures().calls(), 1u);
    EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
    EXPECT_EQ(result_text(read_to_end(stream)), "hello Ada");
}

// --- withdrawn

TEST_F(Questions, AreWithdrawnBeforeACancelledCallEnds)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask_at_once", got);
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":1})")).status, 202u);
    auto const rest = read_to_end(stream);
    ASSERT_EQ(rest.events.size(), 2u);
    EXPECT_TRUE(is_withdrawal(rest.events[0]));
    EXPECT_EQ(text_at(message_of(rest.events[0]), "params/requestId"), question_id(got));
    EXPECT_EQ(at(rest.response(), "error/code"), json::value(-32800));
    EXPECT_EQ(post(session, accepted(question_id(got), "late")).status, 202u);

    // Who comes later is not asked at all.
    auto resumed = get(session, got.primings.front().id);
    auto const replay = read_to_end(resumed);
    EXPECT_FALSE(has_question(replay));
    EXPECT_EQ(replay.events.size(), 2u);
}

TEST_F(Questions, AreWithdrawnBeforeACallTimesOut)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "limited", got);
    advance_in_steps(59s, 1s);
    EXPECT_EQ(read_now(stream).events.size(), 0u);
    advance(1s);
    auto const rest = read_to_end(stream);
    ASSERT_EQ(rest.events.size(), 2u);
    EXPECT_TRUE(is_withdrawal(rest.events[0]));
    EXPECT_EQ(at(rest.response(), "result/isError"), json::value(true));
    EXPECT_EQ(at(rest.response(), "result/_meta").get_object().at("belay/ended").at("reason"), "timed_out");
}

TEST_F(Questions, AreWithdrawnWhenTheServerStops)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask_at_once", got);
    host().node().calls().interrupt_all();
    auto const rest = read_to_end(stream);
    ASSERT_EQ(rest.events.size(), 2u);
    EXPECT_TRUE(is_withdrawal(rest.events[0]));
    EXPECT_EQ(at(rest.response(), "result/_meta").get_object().at("belay/ended").at("reason"), "interrupted");
}

TEST_F(Questions, AreWithdrawnWhenTheSessionEnds)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "ask_at_once", got);
    EXPECT_EQ(remove(session).status, 200u);
    auto const rest = read_to_end(stream);
    ASSERT_EQ(rest.events.size(), 2u);
    EXPECT_TRUE(is_withdrawal(rest.events[0]));
    EXPECT_EQ(text_at(rest.response(), "error/data/reason"), "session_ended");
}

TEST_F(Questions, HaveATimeOfTheirOwn)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "patient", got);
    advance_in_steps(29s, 1s);
    EXPECT_EQ(read_now(stream).events.size(), 0u);
    advance(1s);
    auto const withdrawn = read_now(stream);
    ASSERT_EQ(withdrawn.events.size(), 1u);
    EXPECT_TRUE(is_withdrawal(withdrawn.events[0]));
    EXPECT_EQ(text_at(message_of(withdrawn.events[0]), "params/requestId"), question_id(got));
    EXPECT_EQ(post(session, answer_text(question_id(got), R"({"action":"accept"})")).status, 202u) << "too late";
    EXPECT_EQ(result_text(read_to_end(stream)), "The client did not answer in time.");
}

TEST_F(Questions, AnAnswerInTimeStopsTheClock)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "patient", got);
    advance_in_steps(29s, 1s);
    EXPECT_EQ(post(session, answer_text(question_id(got), R"({"action":"accept"})")).status, 202u);
    auto const rest = read_to_end(stream);
    EXPECT_EQ(rest.events.size(), 1u);
    EXPECT_EQ(result_text(rest), "answered");
}

// --- clients that cannot, or will not

TEST_F(Questions, AreNotAskedOfClientsThatCannot)
{
    start();
    for (auto const& [version, capabilities] : std::vector<std::pair<std::string, std::string>>{
             {"2025-11-25", "{}"}, {"2025-11-25", R"({"elicitation":{"url":{}}})"}, {"2025-03-26", everything}}) {
        auto const session = open_able_session(version, capabilities);
        auto stream = open_post(session, tool_call("1", "ask_at_once"));
        auto const all = read_to_end(stream);
        EXPECT_FALSE(has_question(all)) << version << capabilities;
        EXPECT_EQ(at(all.response(), "result/isError"), json::value(true));
        EXPECT_TRUE(result_text(all).contains("elicitation")) << result_text(all);
    }
    auto const session = open_able_session("2025-11-25", "{}");
    for (auto const* tool : {"sample", "roots"}) {
        auto stream = open_post(session, tool_call("1", tool));
        auto const all = read_to_end(stream);
        EXPECT_FALSE(has_question(all));
        EXPECT_EQ(at(all.response(), "result/isError"), json::value(true));
    }
}

TEST_F(Questions, CannotBeAskedWithoutStreams)
{
    settings_.transport.answer = transport::answer_form::json;
    start();
    auto const session = open_able_session();
    auto const answer = post(session, tool_call("1", "ask_at_once"));
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(at(answer.json(), "result/isError"), json::value(true));
    EXPECT_TRUE(text_at(answer.json(), "result/content/0/text").contains("answers as JSON only"));
}

TEST_F(Questions, ErrorsAreAnswersToo)
{
    start();
    auto const session = open_able_session();
    auto const refusal = [](std::string const& id) {
        return fmt::format(R"({{"jsonrpc":"2.0","id":"{}","error":{{"code":-1,"message":"The person said no"}}}})", id);
    };
    seen got;
    auto stream = begin(session, "sample", got);
    EXPECT_EQ(post(session, refusal(question_id(got))).status, 202u);
    auto const rest = read_to_end(stream);
    EXPECT_EQ(at(rest.response(), "result/isError"), json::value(true));
    EXPECT_EQ(result_text(rest), "The person said no");

    seen caught;
    auto other = begin(session, "refused", caught);
    EXPECT_EQ(post(session, refusal(question_id(caught))).status, 202u);
    EXPECT_EQ(result_text(read_to_end(other)), "the client said -1");
}

TEST_F(Questions, AnswersThatAreNoneEndTheCallProperly)
{
    start();
    auto const session = open_able_session();
    for (auto const* odd :
         {R"({})", R"([])", R"(7)", R"(null)", R"({"action":7})", R"({"action":"accept","content":[]})",
          R"({"action":"accept","content":{"name":7}})"}) {
        seen got;
        auto stream = begin(session, "ask_at_once", got);
        EXPECT_EQ(post(session, answer_text(question_id(got), odd)).status, 202u) << odd;
        auto const rest = read_to_end(stream);
        EXPECT_EQ(at(rest.response(), "result/isError"), json::value(true)) << odd;
        EXPECT_TRUE(result_text(rest).contains("not what was asked for")) << odd << ": " << result_text(rest);
    }
    for (auto const* odd : {R"({})", R"([])", R"(7)", R"(null)", R"({"code":"x","message":7})"}) {
        seen got;
        auto stream = begin(session, "ask_at_once", got);
        auto const body = fmt::format(R"({{"jsonrpc":"2.0","id":"{}","error":{}}})", question_id(got), odd);
        EXPECT_EQ(post(session, body).status, 202u) << odd;
        auto const rest = read_to_end(stream);
        EXPECT_EQ(at(rest.response(), "result/isError"), json::value(true)) << odd;
        EXPECT_NE(result_text(rest), "") << odd;
    }
}

TEST_F(Questions, AnswersAreHeldToWhatWasAsked)
{
    start();
    auto const session = open_able_session();
    struct odd_answer {
        char const* tool;
        char const* result;
        char const* place;
    };
    for (auto const& [tool, result, place] : {
             odd_answer{"raw", R"({"action":"accept"})", "/name: required"},
             odd_answer{"raw", R"({"action":"accept","content":[]})", "expected object"},
             odd_answer{"raw", R"({"action":"accept","content":{"name":5}})", "/name: expected string"},
             odd_answer{"raw", R"({"action":"accept","content":{"name":"A","age":101}})", "/age: "},
             odd_answer{"raw", R"({"action":"accept","content":{"name":"A","pet":"x"}})", "/pet: "},
             odd_answer{"sample", R"({})", "/content: "},
             odd_answer{"sample", R"({"role":"assistant","content":"y"})", "/content: "},
             odd_answer{"sample", R"({"role":"assistant","content":[{}]})", "/content: "},
             odd_answer{"roots", R"({})", "/roots: "},
             odd_answer{"roots", R"({"roots":"x"})", "/roots: "},
             odd_answer{"roots", R"({"roots":[{"uri":5}]})", "/roots/0/uri: "},
         }) {
        seen got;
        auto stream = begin(session, tool, got);
        EXPECT_EQ(post(session, answer_text(question_id(got), result)).status, 202u);
        auto const rest = read_to_end(stream);
        EXPECT_EQ(at(rest.response(), "result/isError"), json::value(true)) << result;
        EXPECT_TRUE(result_text(rest).contains(place)) << result << ": " << result_text(rest);
    }
    seen got;
    auto stream = begin(session, "raw", got);
    EXPECT_EQ(
        post(session, answer_text(question_id(got), R"({"action":"accept","content":{"name":"A","pet":"d"}})")).status,
        202u);
    EXPECT_EQ(result_text(read_to_end(stream)), "accepted");
}

TEST_F(Questions, OlderClientsGetFormsThatTheyKnow)
{
    start();
    auto const session = open_able_session("2025-06-18");
    auto listener = get(session);
    seen got;
    auto stream = begin(session, "raw", got);
    auto const properties
        = at(message_of(*std::ranges::find_if(got.events, is_question)), "params/requestedSchema/properties");
    EXPECT_EQ(
        at(properties, "pet"), (json::value{{"type", "string"}, {"enum", {"c", "d"}}, {"enumNames", {"Cat", "Dog"}}}));
    EXPECT_EQ(at(properties, "age"), (json::value{{"type", "integer"}, {"maximum", 100}}));
    EXPECT_FALSE(properties.as_object().contains("toys")) << "several values at once came in 2025-11-25";
    EXPECT_EQ(
        post(session, answer_text(question_id(got), R"({"action":"accept","content":{"name":"A","pet":"d"}})")).status,
        202u);
    EXPECT_EQ(result_text(read_to_end(stream)), "accepted");
    EXPECT_TRUE(read_now(listener).events.empty()) << "pages to open came in 2025-11-25, and so did their end";

    auto other = open_post(session, tool_call("2", "several"));
    auto const refused = read_to_end(other);
    EXPECT_EQ(at(refused.response(), "result/isError"), json::value(true));
    EXPECT_TRUE(result_text(refused).contains("2025-06-18"));
}

TEST_F(Questions, AKeyIsForOneQuestion)
{
    start();
    auto const session = open_able_session();
    seen got;
    auto stream = begin(session, "same_key", got);
    EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
    auto const rest = read_to_end(stream);
    EXPECT_FALSE(has_question(rest));
    EXPECT_EQ(at(rest.response(), "result/isError"), json::value(true));
}

// --- with the rest of the server

TEST_F(Questions, WorkInABatch)
{
    start();
    auto const session = open_able_session("2025-03-26");
    seen got;
    auto stream = open_post(session, "[" + tool_call("1", "sample") + "," + tool_call("2", "roots") + "]");
    read_until(stream, got, [](seen const& so_far) { return so_far.events.size() == 2; });
    auto const sample = text_at(message_of(got.events[0]), "id");
    auto const roots = text_at(message_of(got.events[1]), "id");
    EXPECT_EQ(
        post(
            session,
            "[" + answer_text(roots, R"({"roots":[{"uri":"file:///a"}]})") + ","
                + answer_text(sample, R"({"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"})")
                + "]")
            .status,
        202u);
    auto const rest = read_to_end(stream);
    ASSERT_EQ(rest.events.size(), 2u);
    EXPECT_EQ(at(message_of(rest.events[0]), "id"), json::value(2));
    EXPECT_EQ(text_at(message_of(rest.events[0]), "result/content/0/text"), "1");
    EXPECT_EQ(text_at(message_of(rest.events[1]), "result/content/0/text"), "hi");
}

TEST_F(Questions, OfACancelledMemberAreWithdrawnAlone)
{
    start();
    auto const session = open_able_session("2025-03-26");
    seen got;
    auto stream = open_post(session, "[" + tool_call("1", "sample") + "," + tool_call("2", "roots") + "]");
    read_until(stream, got, [](seen const& so_far) { return so_far.events.size() == 2; });
    EXPECT_EQ(post(session, notification("notifications/cancelled", R"({"requestId":1})")).status, 202u);
    auto const cancelled = read_now(stream);
    ASSERT_EQ(cancelled.events.size(), 2u);
    EXPECT_TRUE(is_withdrawal(cancelled.events[0]));
    EXPECT_EQ(text_at(message_of(cancelled.events[0]), "params/requestId"), text_at(message_of(got.events[0]), "id"));
    EXPECT_EQ(at(message_of(cancelled.events[1]), "error/code"), json::value(-32800));
    EXPECT_EQ(post(session, answer_text(text_at(message_of(got.events[1]), "id"), R"({"roots":[]})")).status, 202u);
    EXPECT_EQ(result_text(read_to_end(stream)), "0");
}

TEST_F(Questions, ARepeatedCallSharesThem)
{
    start();
    auto const session = open_able_session();
    auto const keyed
        = [](std::string_view id) { return tool_call(id, "ask_at_once", "{}", R"({"belay/idempotencyKey":"k"})"); };
    seen one;
    auto first = open_post(session, keyed("1"));
    read_until(first, one, has_question);
    seen two;
    auto second = open_post(session, keyed("2"));
    read_until(second, two, has_question);
    EXPECT_EQ(post(session, accepted(question_id(two), "Ada")).status, 202u);
    auto const of_first = read_to_end(first);
    auto const of_second = read_to_end(second);
    EXPECT_EQ(result_text(of_first), "hello Ada");
    EXPECT_EQ(at(of_first.response(), "id"), json::value(1));
    EXPECT_EQ(result_text(of_second), "hello Ada");
    EXPECT_EQ(at(of_second.response(), "id"), json::value(2));
}

TEST_F(Questions, AreKeptWhileRetentionTakesTheRest)
{
    server_
        .tool(
            "chatter",
            [](call& call) -> task<std::string> {
                for (int i = 0; i < 50; ++i)
                    co_await call.log(log_level::info, "chatter", std::to_string(i));
                auto const got = co_await call.ask<form>("name", "Who are you?");
                co_return "hello " + got->name;
            })
        .never_wait();
    settings_.runtime.limits.events_per_stream = 10;
    start();
    auto const session = open_able_session();
    auto stream = open_post(session, tool_call("1", "chatter"));
    auto const priming = stream.next_event();
    ASSERT_TRUE(priming);
    stream.close();
    advance_in_steps(5s, 1s);
    auto resumed = get(session, priming->id);
    seen got;
    read_until(resumed, got, has_question);
    EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
    EXPECT_EQ(result_text(read_to_end(resumed)), "hello Ada");
}

TEST_F(Questions, AnswersArriveFromAnyLoop)
{
    settings_.threads = 2;
    start();
    auto const session = open_able_session();
    for (int run = 0; run < 10; ++run) { // connections land on either loop
        seen got;
        auto stream = begin(session, "ask_twice", got);
        EXPECT_EQ(post(session, accepted(question_id(got), "Ada")).status, 202u);
        stream.close();
        auto resumed = get(session, got.cursor);
        seen more;
        read_until(resumed, more, has_question);
        EXPECT_EQ(post(session, accepted(question_id(more), "Lovelace")).status, 202u);
        EXPECT_EQ(result_text(read_to_end(resumed)), "Ada Lovelace");
    }
}

}
