#include "server/completion.hpp"

#include "unit/server/node_fixture.hpp"

namespace belay::inline v0::detail {

namespace {

struct colour_args {
    std::string colour;
    std::optional<std::string> shade;
};
BOOST_DESCRIBE_STRUCT(colour_args, (), (colour, shade))

TEST(OneOf, OffersWhatBeginsAsTyped)
{
    auto const offer = one_of({"red", "reed", "blue"});
    EXPECT_EQ(offer("re", {}), (std::vector<std::string>{"red", "reed"}));
    EXPECT_EQ(offer("", {}).size(), 3u);
    EXPECT_TRUE(offer("Re", {}).empty());
    EXPECT_TRUE(offer("redder", {}).empty());
}

class Completion : public OnNode {
protected:
    Completion()
    {
        server_.prompt("paint", [](colour_args args) { return args.colour; })
            .complete("colour", {"red", "reed", "blue"})
            .complete("shade", [](std::string_view typed, json::object const& others) -> std::vector<std::string> {
                if (typed == "fail")
                    throw std::runtime_error("secret");
                if (typed == "many")
                    return std::vector<std::string>(101, "x");
                auto const* const colour = others.if_contains("colour");
                return {colour ? "dark " + std::string(colour->as_string()) : "none"};
            });
        server_.resource("x://{name}", [](json::object) { return std::string(); }).complete("name", {"one", "two"});
    }

    json::value complete(std::string const& params)
    {
        auto const outcome
            = handle(R"({"jsonrpc":"2.0","id":1,"method":"completion/complete","params":)" + params + "}");
        auto const* const instant = std::get_if<runtime::instant_answer>(&outcome);
        return instant ? json::parse(instant->response) : json::value();
    }
    json::value values(std::string const& ref, std::string const& argument, std::string const& more = {})
    {
        return complete(R"({"ref":)" + ref + R"(,"argument":)" + argument + more + "}").at("result").at("completion");
    }
};

constexpr auto paint = R"({"type":"ref/prompt","name":"paint"})";

TEST_F(Completion, OffersValuesOfAPromptsArgument)
{
    EXPECT_EQ(
        values(paint, R"({"name":"colour","value":"re"})"),
        (json::value{{"values", {"red", "reed"}}, {"total", 2}, {"hasMore", false}}));
}

enum class finish { matt, satin, gloss };
BOOST_DESCRIBE_ENUM(finish, matt, satin, gloss)
struct finish_args {
    finish kind = finish::matt;
    std::optional<finish> second;
};
BOOST_DESCRIBE_STRUCT(finish_args, (), (kind, second))

TEST_F(Completion, OffersTheNamesOfAnEnum)
{
    server_.prompt("varnish", [](finish_args) { return std::string("done"); }).complete("second", {"glow"});
    server_.resource("paint://{kind}/{second}", [](finish_args) { return std::string(); });
    auto const of = [&](std::string const& ref, std::string const& name) {
        return values(ref, R"({"name":")" + name + R"(","value":"g"})").at("values");
    };
    auto const varnish = R"({"type":"ref/prompt","name":"varnish"})";
    EXPECT_EQ(of(varnish, "kind"), (json::value(json::array{"gloss"})));
    EXPECT_EQ(of(varnish, "second"), (json::value(json::array{"glow"}))) << "the author's wins";
    EXPECT_EQ(
        of(R"({"type":"ref/resource","uri":"paint://{kind}/{second}"})", "kind"), (json::value(json::array{"gloss"})));
}

TEST_F(Completion, OffersValuesOfATemplatesVariable)
{
    EXPECT_EQ(
        values(R"({"type":"ref/resource","uri":"x://{name}"})", R"({"name":"name","value":"t"})").at("values"),
        (json::value(json::array{"two"})));
}

TEST_F(Completion, TellsTheOtherArguments)
{
    EXPECT_EQ(
        values(paint, R"({"name":"shade","value":""})", R"(,"context":{"arguments":{"colour":"red"}})").at("values"),
        (json::value(json::array{"dark red"})));
    EXPECT_EQ(values(paint, R"({"name":"shade","value":""})").at("values"), (json::value(json::array{"none"})));
}

TEST_F(Completion, SendsNoMoreThanAHundred)
{
    auto const many = values(paint, R"({"name":"shade","value":"many"})");
    EXPECT_EQ(many.at("values").as_array().size(), 100u);
    EXPECT_EQ(many.at("total"), 101);
    EXPECT_EQ(many.at("hasMore"), true);
}

TEST_F(Completion, HasNothingForAnArgumentWithoutValues)
{
    EXPECT_EQ(
        values(paint, R"({"name":"size","value":""})"),
        (json::value{{"values", json::array()}, {"total", 0}, {"hasMore", false}}));
}

TEST_F(Completion, RefusesWhatIsNotThere)
{
    for (
        auto const* const params :
        {"{}", R"({"ref":{"type":"ref/prompt","name":"paint"}})",
         R"({"ref":{"type":"ref/prompt","name":"other"},"argument":{"name":"a","value":""}})",
         R"({"ref":{"type":"ref/resource","uri":"x://1"},"argument":{"name":"a","value":""}})",
         R"({"ref":{"type":"ref/tool","name":"paint"},"argument":{"name":"a","value":""}})",
         R"({"ref":{"type":"ref/prompt","name":"paint"},"argument":{"name":"size","value":""},"context":5})",
         R"({"ref":{"type":"ref/prompt","name":"paint"},"argument":{"name":"colour","value":""},"context":5})",
         R"({"ref":{"type":"ref/prompt","name":"paint"},"argument":{"name":"colour","value":""},"context":{"arguments":[1]}})",
         R"({"ref":{"type":"ref/prompt","name":"paint"},"argument":{"name":"colour","value":1}})"})
        EXPECT_EQ(complete(params).at("error").at("code"), -32602) << params;
}

TEST_F(Completion, KeepsAFailureToItsLog)
{
    auto const failed
        = complete(R"({"ref":{"type":"ref/prompt","name":"paint"},"argument":{"name":"shade","value":"fail"}})");
    EXPECT_EQ(failed.at("error").at("message"), "It failed. The server's log has the reason.");
    ASSERT_EQ(logged_.size(), 1u);
    EXPECT_TRUE(logged_[0].starts_with("completion of shade failed: secret session=")) << logged_[0];
}

}

}
