#include "protocol/endings.hpp"

#include <belay/json.hpp>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>

namespace belay::protocol {

namespace {

json::value answer(end_reason reason, bool is_tool_call, bool is_retry_safe)
{
    return json::parse(ended_answer({"\"7\"", is_tool_call, is_retry_safe}, reason));
}

// --- the table, row by row: what a caller gets

enum class form { result, error };

struct ending_row {
    end_reason reason;
    bool is_tool_call;
    bool is_retry_safe;
    form answer;
    int code; // of an error
    bool is_retryable;
};

void PrintTo(ending_row const& row, std::ostream* out)
{
    *out << to_string(row.reason) << (row.is_tool_call ? " tool call" : " other method")
         << (row.is_retry_safe ? ", safe to retry" : "");
}

class Ending : public testing::TestWithParam<ending_row> {
protected:
    json::value answer_ = answer(GetParam().reason, GetParam().is_tool_call, GetParam().is_retry_safe);

    [[nodiscard]] json::value ended() const
    {
        return GetParam().answer == form::result ? answer_.at("result").at("_meta").at("belay/ended")
                                                 : answer_.at("error").at("data");
    }
};

TEST_P(Ending, AnswersTheRequestItself)
{
    EXPECT_EQ(answer_.at("id"), "7");
    EXPECT_EQ(answer_.at("jsonrpc"), "2.0");
}

TEST_P(Ending, HasItsForm)
{
    auto const& object = answer_.as_object();
    EXPECT_EQ(object.contains("result"), GetParam().answer == form::result);
    EXPECT_EQ(object.contains("error"), GetParam().answer == form::error);
}

TEST_P(Ending, SaysWhyAndWhetherToRetry)
{
    EXPECT_EQ(ended().at("reason").as_string(), to_string(GetParam().reason));
    EXPECT_EQ(ended().at("retryable"), GetParam().is_retryable);
}

TEST_P(Ending, SpeaksToAModelOrHasACode)
{
    if (GetParam().answer == form::error) {
        EXPECT_EQ(answer_.at("error").at("code"), GetParam().code);
        EXPECT_FALSE(answer_.at("error").at("message").as_string().empty());
        return;
    }
    auto const& result = answer_.at("result");
    EXPECT_EQ(result.at("isError"), true);
    ASSERT_EQ(result.at("content").as_array().size(), 1u);
    EXPECT_EQ(result.at("content").at(0).at("type"), "text");
    EXPECT_GT(result.at("content").at(0).at("text").as_string().size(), 20u);
}

constexpr int internal = -32603;
constexpr int cancelled = -32800;

INSTANTIATE_TEST_SUITE_P(
    Table, Ending,
    testing::Values(
        ending_row{end_reason::cancelled, true, false, form::error, cancelled, false},
        ending_row{end_reason::cancelled, true, true, form::error, cancelled, false},
        ending_row{end_reason::cancelled, false, false, form::error, cancelled, false},
        ending_row{end_reason::orphaned, true, false, form::result, 0, false},
        ending_row{end_reason::orphaned, true, true, form::result, 0, true},
        ending_row{end_reason::orphaned, false, false, form::error, internal, false},
        ending_row{end_reason::timed_out, true, false, form::result, 0, false},
        ending_row{end_reason::timed_out, true, true, form::result, 0, true},
        ending_row{end_reason::timed_out, false, false, form::error, internal, false},
        ending_row{end_reason::interrupted, true, false, form::result, 0, false},
        ending_row{end_reason::interrupted, true, true, form::result, 0, true},
        ending_row{end_reason::interrupted, false, false, form::error, internal, false},
        ending_row{end_reason::owner_lost, true, false, form::result, 0, false},
        ending_row{end_reason::owner_lost, true, true, form::result, 0, true},
        ending_row{end_reason::owner_lost, false, false, form::error, internal, false},
        ending_row{end_reason::session_ended, true, false, form::error, internal, false},
        ending_row{end_reason::session_ended, true, true, form::error, internal, false},
        ending_row{end_reason::session_ended, false, false, form::error, internal, false},
        ending_row{end_reason::result_too_large, true, false, form::result, 0, false},
        ending_row{end_reason::result_too_large, true, true, form::result, 0, false},
        ending_row{end_reason::result_too_large, false, false, form::error, internal, false},
        ending_row{end_reason::overloaded, true, false, form::result, 0, true},
        ending_row{end_reason::overloaded, true, true, form::result, 0, true},
        ending_row{end_reason::overloaded, false, false, form::error, internal, true}));

std::string text_of(json::value const& answer)
{
    return std::string(answer.at("result").at("content").at(0).at("text").as_string());
}

TEST(EndingText, SaysWhetherTheOutcomeIsKnown)
{
    for (auto const reason : {end_reason::timed_out, end_reason::interrupted, end_reason::owner_lost})
        EXPECT_NE(text_of(answer(reason, true, false)).find("what it did is not known"), std::string::npos);
    EXPECT_EQ(text_of(answer(end_reason::result_too_large, true, false)).find("not known"), std::string::npos);
}

TEST(EndingText, SaysWhetherARetryIsSafe)
{
    EXPECT_TRUE(text_of(answer(end_reason::timed_out, true, true)).ends_with("It is safe to call it again."));
    EXPECT_TRUE(text_of(answer(end_reason::timed_out, true, false))
                    .ends_with("Calling it again may do the work twice; check first."));
}

TEST(EndingText, OfABusyServerSaysThatNothingWasDone)
{
    EXPECT_EQ(
        text_of(answer(end_reason::overloaded, true, false)),
        "The server is busy; the tool was not started. It is safe to call it again.");
}

TEST(EndingText, OfACallThatNeverStartedSaysSo)
{
    for (auto const reason : {end_reason::timed_out, end_reason::interrupted}) {
        auto const ended = json::parse(ended_answer({"1", true, false, false}, reason));
        auto const text = text_of(ended);
        EXPECT_EQ(text.find("not known"), std::string::npos) << text;
        EXPECT_TRUE(text.ends_with("It is safe to call it again.")) << text;
        EXPECT_EQ(ended.at("result").at("_meta").at("belay/ended").at("retryable"), true);
    }
    auto const unwanted = json::parse(ended_answer({"1", true, false, false}, end_reason::cancelled));
    EXPECT_EQ(unwanted.at("error").at("data").at("retryable"), false) << "its caller does not want it";
}

TEST(EndReason, HasANameOfItsOwn)
{
    std::set<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(end_reason::overloaded); ++i)
        EXPECT_TRUE(names.insert(to_string(static_cast<end_reason>(i))).second);
    EXPECT_FALSE(names.contains("?"));
}

// --- gaps

TEST(GapNotice, SaysHowManyAreMissing)
{
    EXPECT_EQ(
        gap_notice(3, 7, false),
        R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"resumability","data":{"missed":5,"from":3,"to":7}}})");
}

TEST(GapNotice, CountsOneMissingEvent)
{
    EXPECT_EQ(json::parse(gap_notice(4, 4, false)).at("params").at("data").at("missed"), 1);
}

TEST(GapNotice, SaysThatTheLogBeganAnew)
{
    auto const data = json::parse(gap_notice(1, 3, true)).at("params").at("data");
    EXPECT_EQ(data, (json::value{{"missed", 3}, {"from", 1}, {"to", 3}, {"restarted", true}}));
}

TEST(GapNotice, CountsNothingWhereOnlyTheLogBeganAnew)
{
    EXPECT_EQ(json::parse(gap_notice(1, 0, true)).at("params").at("data").at("missed"), 0);
}

}

}
