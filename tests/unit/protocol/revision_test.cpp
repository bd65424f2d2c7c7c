#include "protocol/revision.hpp"

#include "protocol/logging.hpp"

#include <gtest/gtest.h>

namespace belay::protocol {

namespace {

constexpr revision all[] = {revision::r2024_11_05, revision::r2025_03_26, revision::r2025_06_18, revision::r2025_11_25};

TEST(Revision, IsReadByItsDate)
{
    for (auto const each : all)
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
    for (auto const each : all)
        EXPECT_EQ(negotiate(to_string(each)), each);
}

TEST(Revision, IsNegotiatedToOurNewestWhereWeDoNotSpeakTheClients)
{
    for (auto const text : {"2099-01-01", "2024-10-07", "", "x"})
        EXPECT_EQ(negotiate(text), revision::r2025_11_25) << text;
}

TEST(Revision, IsListedForErrorMessages)
{
    for (auto const each : all)
        EXPECT_NE(supported_revisions().find(to_string(each)), std::string_view::npos);
    EXPECT_TRUE(supported_revisions().starts_with(to_string(newest_revision)));
}

struct features {
    revision of;
    bool empty_priming;
    bool bad_arguments_as_result;
    bool structured_content;
};

TEST(Revision, DecidesWhatAClientUnderstands)
{
    for (auto const& each : {
             features{revision::r2024_11_05, false, false, false},
             features{revision::r2025_03_26, false, false, false},
             features{revision::r2025_06_18, false, false, true},
             features{revision::r2025_11_25, true, true, true},
         }) {
        EXPECT_EQ(takes_empty_priming(each.of), each.empty_priming) << to_string(each.of);
        EXPECT_EQ(reports_bad_arguments_as_result(each.of), each.bad_arguments_as_result) << to_string(each.of);
        EXPECT_EQ(has_structured_content(each.of), each.structured_content) << to_string(each.of);
    }
}

TEST(Level, IsReadByItsName)
{
    constexpr std::string_view names[]
        = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(to_string(static_cast<level>(i)), names[i]);
        EXPECT_EQ(parse_level(names[i]), static_cast<level>(i));
    }
}

TEST(Level, IsNotReadFromOtherText)
{
    for (auto const text : {"", "Debug", "warn", "fatal", "debug ", "0"})
        EXPECT_EQ(parse_level(text), std::nullopt) << text;
}

}

}
