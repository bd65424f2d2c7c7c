#include "server/uri_template.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace belay::inline v0::detail {

namespace {

std::optional<json::object> match(std::string_view text, std::string_view uri)
{
    return uri_template(text).match(uri);
}

std::string refusal_of(std::string_view text)
{
    try {
        uri_template const taken(text);
    } catch (std::invalid_argument const& error) {
        return error.what();
    }
    return "taken";
}

TEST(UriTemplate, TakesValuesOut)
{
    EXPECT_EQ(match("file:///{name}", "file:///a.txt"), (json::object{{"name", "a.txt"}}));
    EXPECT_EQ(match("x://{a}/in/{b}.txt", "x://1/in/2.txt"), (json::object{{"a", "1"}, {"b", "2"}}));
    EXPECT_EQ(match("{whole}", "abc"), (json::object{{"whole", "abc"}}));
    EXPECT_EQ(uri_template("x://{a}/{+b}").variables(), (std::vector<std::string>{"a", "b"}));
}

TEST(UriTemplate, DoesNotMatchWhatDiffers)
{
    for (auto const* const uri :
         {"", "x://", "x:///in/2.txt", "x://1/in/.txt", "x://1/in/2.txtx", "x://1/out/2.txt", "y://1/in/2.txt",
          "x://1/in"})
        EXPECT_EQ(match("x://{a}/in/{b}.txt", uri), std::nullopt) << uri;
    EXPECT_EQ(match("aa{b}aa", "aaa"), std::nullopt);
}

TEST(UriTemplate, TakesSlashesOnlyWherePlusSaysSo)
{
    EXPECT_EQ(match("x://{a}", "x://1/2"), std::nullopt);
    EXPECT_EQ(match("x://{+a}", "x://1/2"), (json::object{{"a", "1/2"}}));
    EXPECT_EQ(match("x://{+a}/end", "x://1/2/end"), (json::object{{"a", "1/2"}}));
}

TEST(UriTemplate, DecodesPercents)
{
    EXPECT_EQ(match("x://{a}", "x://a%20%C3%a9"), (json::object{{"a", "a \xC3\xA9"}}));
    for (auto const* const uri : {"x://%", "x://%2", "x://%zz", "x://a%4", "x://a%2Fb"})
        EXPECT_EQ(match("x://{a}", uri), std::nullopt) << uri;
}

TEST(UriTemplate, RefusesWhatItDoesNotKnow)
{
    for (auto const& [text, says] : {
             std::pair{"x://{a", "a { has no }"},
             {"x://{}", "use {name} or {+name}"},
             {"x://{a,b}", "use {name} or {+name}"},
             {"x://{?q}", "use {name} or {+name}"},
             {"x://{a*}", "use {name} or {+name}"},
             {"x://{a}{b}", "two variables need something between them"},
             {"x://{a}/{a}", "{a} is there twice"},
             {"x://a", "it has no variable"},
         })
        EXPECT_EQ(refusal_of(text).find("URI template \"" + std::string(text) + "\": " + says), 0u) << refusal_of(text);
}

}

}
