#include "server/render.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace belay::inline v0::detail {

namespace {

using protocol::revision;

constexpr revision all[] = {revision::r2024_11_05, revision::r2025_03_26, revision::r2025_06_18, revision::r2025_11_25};

// --- results

TEST(RenderedResult, IsOneTextBlock)
{
    for (auto const each : all)
        EXPECT_EQ(
            render({"say \"hi\"\n", {}, {}, false}, each), R"({"content":[{"type":"text","text":"say \"hi\"\n"}]})");
}

TEST(RenderedResult, SaysThatItIsAnError)
{
    for (auto const each : all)
        EXPECT_EQ(render({"no", {}, {}, true}, each), R"({"content":[{"type":"text","text":"no"}],"isError":true})");
}

TEST(RenderedResult, HasTheContentItWasGiven)
{
    tool_result result;
    result.text = "not shown";
    result.content = {json::object{{"type", "image"}, {"data", "x"}}};
    EXPECT_EQ(render(result, protocol::newest_revision), R"({"content":[{"type":"image","data":"x"}]})");
}

TEST(RenderedResult, HasStructuredContentWhereTheRevisionKnowsIt)
{
    tool_result result;
    result.structured = json::object{{"a", 1}};
    constexpr auto plain = R"({"content":[{"type":"text","text":"{\"a\":1}"}]})";
    constexpr auto structured = R"({"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}})";
    EXPECT_EQ(render(result, revision::r2024_11_05), plain);
    EXPECT_EQ(render(result, revision::r2025_03_26), plain);
    EXPECT_EQ(render(result, revision::r2025_06_18), structured);
    EXPECT_EQ(render(result, revision::r2025_11_25), structured);
}

TEST(RenderedResult, PrefersItsOwnTextToThatOfItsStructure)
{
    tool_result result;
    result.text = "one";
    result.structured = json::object{{"a", 1}};
    EXPECT_EQ(render(result, revision::r2025_03_26), R"({"content":[{"type":"text","text":"one"}]})");
}

// --- tools

std::string rendered(tool_definition const& tool, revision revision)
{
    std::string out;
    append_tool(out, tool, revision);
    return out;
}

tool_definition full_tool()
{
    tool_definition tool;
    tool.name = "t";
    tool.title = "T";
    tool.description = "does it";
    tool.input_schema = {{"type", "object"}};
    tool.output_schema = json::object{{"type", "object"}};
    tool.read_only = true;
    tool.destructive = false;
    tool.idempotent = true;
    tool.open_world = false;
    return tool;
}

TEST(RenderedTool, HasANameAndASchema)
{
    tool_definition tool;
    tool.name = "t";
    tool.input_schema = {{"type", "object"}};
    for (auto const each : all)
        EXPECT_EQ(rendered(tool, each), R"({"name":"t","inputSchema":{"type":"object"}})");
}

TEST(RenderedTool, ShowsWhatTheRevisionKnows)
{
    auto const tool = full_tool();
    constexpr std::string_view hints
        = R"("annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false})";
    EXPECT_EQ(
        rendered(tool, revision::r2024_11_05),
        R"({"name":"t","description":"does it","inputSchema":{"type":"object"}})");
    EXPECT_EQ(
        rendered(tool, revision::r2025_03_26),
        R"({"name":"t","description":"does it","inputSchema":{"type":"object"},"annotations":{"title":"T",)"
            + std::string(hints.substr(hints.find('{') + 1)) + "}")
        << "the only place for a title";
    for (auto const each : {revision::r2025_06_18, revision::r2025_11_25})
        EXPECT_EQ(
            rendered(tool, each),
            R"({"name":"t","title":"T","description":"does it","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},)"
                + std::string(hints) + "}");
}

TEST(RenderedTool, ShowsOnlyTheHintsItWasGiven)
{
    auto tool = full_tool();
    tool.read_only.reset();
    tool.idempotent.reset();
    tool.open_world.reset();
    auto const shown = json::parse(rendered(tool, revision::r2025_06_18));
    EXPECT_EQ(shown.at("annotations"), (json::value{{"destructiveHint", false}}));
}

TEST(RenderedResult, HasAnObjectAsStructuredContent)
{
    tool_result result;
    result.structured = json::array{1, 2};
    for (auto const each : {revision::r2025_06_18, revision::r2025_11_25})
        EXPECT_EQ(
            render(result, each),
            R"({"content":[{"type":"text","text":"[1,2]"}],"structuredContent":{"result":[1,2]}})");
}

TEST(RenderedResult, HasNothingButBlocksAsContent)
{
    for (json::value const& odd : {json::value("just text"), json::value(json::object{{"text", "no type"}})}) {
        tool_result result;
        result.content.push_back(odd);
        EXPECT_THROW((void)render(result, revision::r2025_11_25), std::logic_error);
    }
}

// --- what a tool throws

class ToolFailure : public testing::Test {
protected:
    std::vector<std::string> logged_;
    base::logger log_{
        base::log_level::info, [this](base::log_level, std::string_view text) { logged_.emplace_back(text); }};

    template<class Thrown>
    tool_result failure_of(Thrown const& thrown)
    {
        try {
            throw thrown;
        } catch (...) {
            return current_failure(log_, "t");
        }
    }
};

TEST_F(ToolFailure, ShowsATextThatIsMeantForTheModel)
{
    auto const result = failure_of(tool_error("no such city"));
    EXPECT_TRUE(result.is_error);
    EXPECT_EQ(result.text, "no such city");
    EXPECT_TRUE(logged_.empty());
}

TEST_F(ToolFailure, KeepsTheTextOfOtherExceptionsInTheLog)
{
    auto const result = failure_of(std::runtime_error("password=secret"));
    EXPECT_TRUE(result.is_error);
    EXPECT_EQ(result.text.find("secret"), std::string::npos);
    ASSERT_EQ(logged_.size(), 1u);
    EXPECT_EQ(logged_[0], "tool t failed: password=secret");
}

TEST_F(ToolFailure, SurvivesWhatIsNotAnException)
{
    auto const result = failure_of(42);
    EXPECT_TRUE(result.is_error);
    EXPECT_EQ(logged_.size(), 1u);
}

TEST_F(ToolFailure, NamesAPageThatHasToBeOpened)
{
    auto const answer_in = [this](revision revision, std::string_view capabilities = R"({"elicitation":{"url":{}}})") {
        try {
            throw url_required("Sign in first.", "https://example.org/", "id-1");
        } catch (...) {
            return failed_answer(log_, "t", "7", revision, capabilities);
        }
    };
    EXPECT_EQ(
        answer_in(revision::r2025_11_25),
        R"({"jsonrpc":"2.0","id":7,"error":{"code":-32042,"message":"Sign in first.","data":{"elicitations":[{"mode":"url","message":"Sign in first.","url":"https://example.org/","elicitationId":"id-1"}]}}})");
    auto const as_text
        = R"({"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Sign in first. Open this page, then call the tool again: https://example.org/"}],"isError":true}})";
    EXPECT_EQ(answer_in(revision::r2025_06_18), as_text);
    // Only to clients that have said that they can open pages.
    for (auto const* capabilities : {"{}", "", R"({"elicitation":{}})", R"({"elicitation":{"form":{}}})"})
        EXPECT_EQ(answer_in(revision::r2025_11_25, capabilities), as_text) << capabilities;
    EXPECT_TRUE(logged_.empty());
}

}

}
