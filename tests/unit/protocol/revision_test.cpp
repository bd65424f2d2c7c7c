#include "protocol/revision.hpp"

#include <gtest/gtest.h>

#include <array>

namespace belay::protocol {

namespace {

TEST(Revision, IsReadByItsDate)
{
    for (auto const each : revisions)
        EXPECT_EQ(parse_revision(to_string(each)), each);
    EXPECT_EQ(to_string(revision::r2025_11_25), "2025-11-25");
}

TEST(Revision, IsNotReadFromOtherText)
{
    for (auto const text : {"", "2025-11-2", "2025-11-255", " 2025-11-25", "2025-11-25 ", "2026-07-28", "1", "latest"})
        EXPECT_EQ(parse_revision(text), std::nullopt) << text;
}

TEST(Revision, IsNegotiatedToTheClients)
{
    for (auto const each : revisions)
        EXPECT_EQ(negotiate(to_string(each)), each);
}

TEST(Revision, IsNegotiatedToOurNewestWhereWeDoNotSpeakTheClients)
{
    for (auto const text : {"2099-01-01", "2024-10-07", "", "x"})
        EXPECT_EQ(negotiate(text), revision::r2025_11_25) << text;
}

TEST(Revision, IsListedForErrorMessages)
{
    for (auto const each : revisions)
        EXPECT_NE(supported_revisions().find(to_string(each)), std::string_view::npos);
    EXPECT_TRUE(supported_revisions().starts_with(to_string(newest_revision)));
}

TEST(Revision, IsTheIndexOfItsPlace)
{
    for (std::size_t i = 0; i < revisions.size(); ++i)
        EXPECT_EQ(static_cast<std::size_t>(revisions[i]), i);
    EXPECT_EQ(newest_revision, revision::r2025_11_25);
    EXPECT_EQ(assumed_revision, revision::r2025_03_26);
}

struct fact_row {
    bool revision_facts::* fact;
    std::array<bool, revisions.size()> is_so; // oldest first
};

TEST(Revision, HasTheFactsOfItsSpecification)
{
    using facts = revision_facts;
    int number = 0;
    for (auto const& [fact, is_so] : {
             fact_row{&facts::may_batch, {false, true, false, false}},
             fact_row{&facts::takes_empty_priming, {false, false, false, true}},
             fact_row{&facts::has_progress_messages, {false, true, true, true}},
             fact_row{&facts::has_completions_capability, {false, true, true, true}},
             fact_row{&facts::has_titles, {false, false, true, true}},
             fact_row{&facts::has_server_details, {false, false, false, true}},
             fact_row{&facts::has_icons, {false, false, false, true}},
             fact_row{&facts::has_meta, {false, false, true, true}},
             fact_row{&facts::has_tool_annotations, {false, true, true, true}},
             fact_row{&facts::has_modification_times, {false, false, true, true}},
             fact_row{&facts::has_audio, {false, true, true, true}},
             fact_row{&facts::has_resource_links, {false, false, true, true}},
             fact_row{&facts::has_structured_content, {false, false, true, true}},
             fact_row{&facts::has_bad_arguments_as_result, {false, false, false, true}},
             fact_row{&facts::has_elicitation, {false, false, true, true}},
             fact_row{&facts::has_url_elicitation, {false, false, false, true}},
             fact_row{&facts::has_rich_forms, {false, false, false, true}},
             fact_row{&facts::has_several_blocks, {false, false, false, true}},
             fact_row{&facts::has_sampling_tools, {false, false, false, true}},
             fact_row{&facts::has_context_capability, {false, false, false, true}},
         }) {
        ++number;
        for (auto const each : revisions)
            EXPECT_EQ(facts_of(each).*fact, is_so[static_cast<std::size_t>(each)])
                << to_string(each) << ", row " << number;
    }
    EXPECT_EQ(sizeof(facts), static_cast<std::size_t>(number) * sizeof(bool)) << "a fact without a row above";
}

TEST(Revision, NamesTheFirstWithAFact)
{
    EXPECT_EQ(first_with(&revision_facts::has_audio), revision::r2025_03_26);
    EXPECT_EQ(first_with(&revision_facts::may_batch), revision::r2025_03_26);
    EXPECT_EQ(first_with(&revision_facts::has_rich_forms), revision::r2025_11_25);
}

}

}
