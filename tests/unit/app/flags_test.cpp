// Flags of an author's own, beside those of the server.
#include "app/command_line.hpp"

#include <belay/run.hpp>

#include <gtest/gtest.h>

namespace belay::app {

namespace {

/// The exit status, or 0 where the program would go on.
int parse(flags const& own, std::vector<std::string> words)
{
    words.insert(words.begin(), "program");
    std::vector<char*> arguments;
    for (auto& each : words)
        arguments.push_back(each.data());
    auto const parsed
        = parse_command_line("program", "1", static_cast<int>(arguments.size()), arguments.data(), program::any, own);
    return parsed ? 0 : parsed.error();
}

struct chosen {
    std::string folder = "notes";
    int count = 3;
    double ratio = 0.5;
    bool is_verbose = false;
    std::chrono::milliseconds period{1500};
    std::vector<std::string> names{"one"};

    flags all()
    {
        return flags()
            .add("--data DIR", "Where the notes are.", folder)
            .add("--count N", "How many.", count)
            .add("--ratio R", "How much.", ratio)
            .add("--verbose", "Say more.", is_verbose)
            .add("--period TIME", "How often.", period)
            .add("--name NAME", "Whose.", names);
    }
};

std::string refusal(chosen& into, std::vector<std::string> const& words)
{
    testing::internal::CaptureStderr();
    auto const status = parse(into.all(), words);
    auto said = testing::internal::GetCapturedStderr();
    return status == 2 ? said : "status " + std::to_string(status);
}

}

TEST(Flags, SetWhatIsGivenAndLeaveTheRest)
{
    chosen into;
    EXPECT_EQ(parse(into.all(), {}), 0);
    EXPECT_EQ(into.folder, "notes");
    EXPECT_FALSE(into.is_verbose);
    EXPECT_EQ(into.names, std::vector<std::string>{"one"});
    EXPECT_EQ(
        parse(
            into.all(),
            {"--data", "/srv", "--keepalive", "5s", "--count=7", "--ratio", "0.25", "--verbose", "--period", "2s",
             "--name", "a", "--name", "b"}),
        0);
    EXPECT_EQ(into.folder, "/srv");
    EXPECT_EQ(into.count, 7);
    EXPECT_EQ(into.ratio, 0.25);
    EXPECT_TRUE(into.is_verbose);
    EXPECT_EQ(into.period, std::chrono::seconds(2));
    EXPECT_EQ(into.names, (std::vector<std::string>{"a", "b"}));
}

TEST(Flags, AreRefusedLikeThoseOfTheServer)
{
    chosen into;
    EXPECT_EQ(refusal(into, {"--dota", "x"}), "program: there is no flag --dota, but --data; --help lists them\n");
    EXPECT_TRUE(refusal(into, {"--data"}).contains("--data"));
    EXPECT_EQ(
        refusal(into, {"--count", "many"}),
        "program: --count many: expected a number from -2147483648 to 2147483647\n");
    EXPECT_EQ(
        refusal(into, {"--count", "3000000000"}),
        "program: --count 3000000000: expected a number from -2147483648 to 2147483647\n");
    EXPECT_EQ(refusal(into, {"--ratio", "1x"}), "program: --ratio 1x: expected a number\n");
    EXPECT_EQ(
        refusal(into, {"--period", "soon"}), "program: --period soon: expected a time such as 500ms, 15s, 10m or 1h\n");
}

TEST(Flags, AreShownByHelp)
{
    chosen into;
    testing::internal::CaptureStdout();
    EXPECT_EQ(parse(into.all(), {"--help"}), 0);
    auto const help = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(help.contains("--data DIR=notes")) << help;
    EXPECT_TRUE(help.contains("Where the notes are.")) << help;
}

TEST(Flags, AreNotThoseOfTheServer)
{
    std::string text;
    bool is_on = false;
    for (auto const& each :
         {flags().add("--listen WHERE", "", text), flags().add("--config FILE", "", text),
          flags().add("--settings", "", is_on), flags().add("--check-config", "", is_on),
          flags().add("--help", "", is_on)}) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(parse(each, {}), 2);
        EXPECT_TRUE(testing::internal::GetCapturedStderr().contains("is one of the server's"));
    }
}

TEST(Flags, HaveOneForm)
{
    std::string text;
    bool is_on = false;
    for (auto const* const usage : {"data DIR", "-d DIR", "--data", "--data DIR MORE", "--Data DIR", "-- DIR", ""})
        EXPECT_THROW(flags().add(usage, "", text), std::invalid_argument) << usage;
    EXPECT_THROW(flags().add("--on YES", "", is_on), std::invalid_argument);
    EXPECT_THROW(flags().add("--data DIR", "", text).add("--data DIR", "", text), std::invalid_argument);
}

TEST(Flags, AreReadBeforeWhatFollowsFromThem)
{
    std::string folder = "notes";
    std::string opened;
    auto const own = flags().add("--data DIR", "", folder).then([&] { opened = folder; }).then([] {
        throw std::runtime_error("there is no folder /srv");
    });
    server const server("program", "1");
    std::string words[] = {"program", "--data", "/srv"};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data()};
    testing::internal::CaptureStderr();
    EXPECT_EQ(run(server, 3, arguments, own), 2);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "program: there is no folder /srv\n");
    EXPECT_EQ(opened, "/srv");
}

}
