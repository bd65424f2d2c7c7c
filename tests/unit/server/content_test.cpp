#include "server/content.hpp"

#include <gtest/gtest.h>

namespace belay::inline v0::detail {

namespace {

using enum protocol::revision;

std::string base64_of(std::string bytes)
{
    return std::string(content::image({std::move(bytes)}, "image/png").at("data").as_string());
}

TEST(Content, WritesBytesAsBase64)
{
    // RFC 4648, section 10
    EXPECT_EQ(base64_of(""), "");
    EXPECT_EQ(base64_of("f"), "Zg==");
    EXPECT_EQ(base64_of("fo"), "Zm8=");
    EXPECT_EQ(base64_of("foo"), "Zm9v");
    EXPECT_EQ(base64_of("foob"), "Zm9vYg==");
    EXPECT_EQ(base64_of("fooba"), "Zm9vYmE=");
    EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
    EXPECT_EQ(base64_of("\xFB\xFF\xFE"), "+//+");
}

TEST(Content, MakesBlocks)
{
    EXPECT_EQ(content::text("a"), (json::object{{"type", "text"}, {"text", "a"}}));
    EXPECT_EQ(
        content::audio({"f"}, "audio/wav"),
        (json::object{{"type", "audio"}, {"data", "Zg=="}, {"mimeType", "audio/wav"}}));
    EXPECT_EQ(
        content::embedded("x://a", "text/plain", "hi"),
        (json::object{
            {"type", "resource"}, {"resource", {{"uri", "x://a"}, {"mimeType", "text/plain"}, {"text", "hi"}}}}));
    EXPECT_EQ(
        content::embedded("x://a", "", blob{"f"}),
        (json::object{{"type", "resource"}, {"resource", {{"uri", "x://a"}, {"blob", "Zg=="}}}}));
    EXPECT_EQ(content::link("x://a", "a"), (json::object{{"type", "resource_link"}, {"uri", "x://a"}, {"name", "a"}}));
}

TEST(Content, Annotates)
{
    auto const block
        = content::annotated(content::text("a"), {.for_user = true, .priority = 0.5, .last_modified = "2025"});
    EXPECT_EQ(
        block.at("annotations"), (json::value{{"audience", {"user"}}, {"priority", 0.5}, {"lastModified", "2025"}}));
    EXPECT_EQ(annotations_object({}), json::object());
}

TEST(Content, PartsOfAResourceHaveMetaWhereItIsKnown)
{
    resource_part const part{{}, {}, "hi", {}, {{"a/b", 1}}};
    json::object const plain{{"uri", "x://a"}, {"text", "hi"}};
    auto with_meta = plain;
    with_meta["_meta"] = part.meta;
    EXPECT_EQ(contents_part("x://a", part, {}, r2025_03_26), plain);
    EXPECT_EQ(contents_part("x://a", part, {}, r2025_06_18), with_meta);
    json::object const block{{"type", "resource"}, {"resource", with_meta}};
    EXPECT_EQ(block_for(block, r2025_03_26), (json::object{{"type", "resource"}, {"resource", plain}}));
    EXPECT_EQ(block_for(block, r2025_06_18), block);
}

TEST(Content, ASamplingMessageHoldsWhatTheRevisionKnows)
{
    auto const sound = content::audio({"f"}, "audio/wav");
    auto const words = content::text("a");
    json::object const use{{"type", "tool_use"}, {"id", "1"}, {"name", "t"}, {"input", json::object()}};
    EXPECT_EQ(sampling_blocks(words, r2024_11_05), std::vector{words});
    EXPECT_EQ(sampling_blocks(sound, r2025_03_26), std::vector{sound});
    EXPECT_EQ(sampling_blocks(json::array{words, sound}, r2025_06_18), (std::vector{words, sound}));
    EXPECT_EQ(sampling_blocks(use, r2025_11_25), std::vector{use});
    EXPECT_EQ(
        sampling_blocks(sound, r2024_11_05).error(),
        "This tool wants to show the client's model a block of type audio, which clients have since MCP 2025-03-26; "
        "this one speaks 2024-11-05.");
    EXPECT_FALSE(sampling_blocks(json::array{words, sound}, r2024_11_05));
    EXPECT_FALSE(sampling_blocks(use, r2025_06_18));
    for (auto const& never :
         {json::value(content::link("x://a", "a")), json::value(content::embedded("x://a", "", "t")),
          json::value("text"), json::value(json::array()), json::value(json::object()), json::value()})
        EXPECT_FALSE(sampling_blocks(never, r2025_11_25));
}

TEST(Content, GivesOlderClientsWhatTheyKnow)
{
    auto const sound = content::audio({"f"}, "audio/wav");
    EXPECT_EQ(block_for(sound, r2024_11_05), content::text("[audio, audio/wav]"));
    EXPECT_EQ(block_for(sound, r2025_03_26), sound);
    auto const link = content::link("x://a", "a");
    EXPECT_EQ(block_for(link, r2025_03_26), content::text("a: x://a"));
    EXPECT_EQ(block_for(link, r2025_06_18), link);
    auto noted = content::annotated(content::text("a"), {.for_user = true, .priority = {}, .last_modified = "2025"});
    noted["_meta"].emplace_object()["k"] = 1;
    EXPECT_EQ(block_for(noted, r2025_11_25), noted);
    auto const older = block_for(noted, r2025_03_26);
    EXPECT_FALSE(older.contains("_meta"));
    EXPECT_EQ(older.at("annotations"), (json::value{{"audience", {"user"}}}));
}

TEST(Content, LeavesUnknownBlocksAlone)
{
    for (auto const& block : {json::object{}, json::object{{"type", 1}}, json::object{{"type", "new"}, {"a", 1}}})
        EXPECT_EQ(block_for(block, r2024_11_05), block);
}

TEST(Content, APartMayHaveItsOwnUriAndType)
{
    EXPECT_EQ(
        contents_part("x://a", {{}, {}, "t", {}}, "text/plain", r2025_11_25),
        (json::object{{"uri", "x://a"}, {"mimeType", "text/plain"}, {"text", "t"}}));
    EXPECT_EQ(
        contents_part("x://a", {"x://b", "text/css", "t", {}}, "text/plain", r2025_11_25),
        (json::object{{"uri", "x://b"}, {"mimeType", "text/css"}, {"text", "t"}}));
}

}

}
