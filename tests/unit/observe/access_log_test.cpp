#include "observe/access_log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace belay::observe {

namespace {

using namespace std::chrono_literals;

std::vector<std::string> written(access_line const& line, base::log_level level)
{
    std::vector<std::string> lines;
    base::logger const log(level, [&](base::log_level, std::string_view text) { lines.emplace_back(text); });
    access_log(log.with("node", "n1")).write(line);
    return lines;
}

}

TEST(AccessLog, WritesWhatAnExchangeWas)
{
    std::vector<base::log_field> const notes{{"session", "ab12"}};
    EXPECT_EQ(
        written({"POST", "/mcp", 200, 10, 20, 1500us, notes}, base::log_level::info),
        std::vector<std::string>{"request node=n1 method=POST path=/mcp status=200 bytes_in=10 bytes_out=20 "
                                 "duration_us=1500 session=ab12"});
}

TEST(AccessLog, IsWrittenWhateverTheLeastLevelIs)
{
    EXPECT_EQ(written({"GET", "/", 404, 0, 0, 0us, {}}, base::log_level::error).size(), 1u);
}

TEST(AccessLog, LetsAPathNotLookLikeAnotherField)
{
    auto const lines = written({"GET", "/a status=200 \"x\"\n\xff", 404, 0, 0, 0us, {}}, base::log_level::info);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find(R"(path="/a status=200 \"x\"??" status=404)"), std::string::npos) << lines[0];
}

}
