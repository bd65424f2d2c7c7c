#include "base/log_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

namespace belay::base {

namespace {

using namespace std::chrono_literals;

class LogOutput : public testing::Test {
protected:
    LogOutput() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
    ~LogOutput() override
    {
        close_reader();
        close_writer();
    }

    void close_reader() { close(ends_[0]); }
    void close_writer() { close(ends_[1]); }
    [[nodiscard]] int writer() const { return ends_[1]; }

    std::unique_ptr<log_output> open(std::size_t max_bytes)
    {
        return std::make_unique<log_output>(
            writer(), max_bytes, [](std::uint64_t lines) { return "missing " + std::to_string(lines) + "\n"; });
    }

    /// The next line; empty at the end.
    std::string read_line()
    {
        std::string line;
        char c = 0;
        while (::read(ends_[0], &c, 1) == 1 && c != '\n')
            line += c;
        return line;
    }

    /// Leaves no room in the pipe; says how many bytes were written.
    [[nodiscard]] std::size_t fill_pipe() const
    {
        EXPECT_EQ(::fcntl(writer(), F_SETFL, O_NONBLOCK), 0);
        std::size_t filled = 0;
        while (::write(writer(), "x", 1) == 1)
            ++filled;
        EXPECT_EQ(::fcntl(writer(), F_SETFL, 0), 0);
        return filled;
    }
    void read_bytes(std::size_t count)
    {
        std::array<char, 4096> buffer{};
        while (count > 0) {
            auto const got = ::read(ends_[0], buffer.data(), std::min(buffer.size(), count));
            ASSERT_GT(got, 0);
            count -= static_cast<std::size_t>(got);
        }
    }
    /// Writes numbered lines until one is dropped; says how many were written.
    static int fill(log_output& out)
    {
        int n = 0;
        while (out.dropped() == 0)
            out.write(line_of(n++));
        return n;
    }
    static std::string line_of(int n) { return std::to_string(n) + ' ' + std::string(100, '.') + '\n'; }

private:
    static void close(int& end)
    {
        if (end >= 0)
            ::close(std::exchange(end, -1));
    }

    std::array<int, 2> ends_{-1, -1};
};

TEST_F(LogOutput, WritesLinesInOrder)
{
    auto const out = open(1 << 20);
    for (int i = 0; i < 1000; ++i)
        out->write(line_of(i));
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(read_line() + '\n', line_of(i));
    EXPECT_EQ(out->dropped(), 0u);
}

TEST_F(LogOutput, DropsWhatFindsNoRoomAndSaysSoInItsPlace)
{
    auto const filled = fill_pipe();
    auto const out = open(4096);
    // Nobody reads: what the queue does not hold is dropped, and nobody waits.
    int const written = fill(*out);
    out->write(line_of(written));
    out->write(line_of(written + 1));
    auto const dropped = out->dropped();
    EXPECT_EQ(dropped, 3u);
    read_bytes(filled);
    // What was taken comes whole and in order; then how much is missing; then what came later.
    int next = 0;
    std::string line;
    while (!(line = read_line()).starts_with("missing"))
        ASSERT_EQ(line + '\n', line_of(next++));
    EXPECT_EQ(line, "missing " + std::to_string(dropped));
    EXPECT_EQ(next + static_cast<int>(dropped), written + 2);
    out->write("later\n");
    EXPECT_EQ(read_line(), "later");
    EXPECT_EQ(out->dropped(), dropped);
}

TEST_F(LogOutput, SaysAlsoOfALineThatNeverFits)
{
    auto const out = open(100);
    out->write(std::string(200, 'x') + '\n');
    EXPECT_EQ(read_line(), "missing 1");
    out->write("short\n");
    EXPECT_EQ(read_line(), "short");
}

TEST_F(LogOutput, OutlivesItsReader)
{
    // A SIGPIPE would end this process.
    ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
    auto const out = open(1 << 20);
    close_reader();
    out->write("a\n");
    out->write("b\n");
    ASSERT_TRUE(out->flush(20s));
    EXPECT_EQ(out->dropped(), 2u);
    out->write("c\n");
    ASSERT_TRUE(out->flush(20s));
    EXPECT_EQ(out->dropped(), 3u);
}

TEST_F(LogOutput, EndsAlsoWhenNobodyReads)
{
    static_cast<void>(fill_pipe());
    auto out = open(4096);
    fill(*out);
    EXPECT_FALSE(out->flush(0s));
    out.reset();
    // Its thread is left behind with a descriptor of its own, and ends with the pipe.
}

TEST_F(LogOutput, WritesWhatIsLeftWhenItEnds)
{
    auto out = open(1 << 20);
    out->write("last\n");
    out.reset();
    close_writer();
    EXPECT_EQ(read_line(), "last");
    EXPECT_EQ(read_line(), "");
}

TEST_F(LogOutput, WaitsForRoomWhereSomebodyElseHasMadeItNonBlocking)
{
    ASSERT_EQ(::fcntl(writer(), F_SETFL, O_NONBLOCK), 0);
    auto const out = open(1 << 20);
    constexpr int count = 700; // more than a pipe holds
    for (int i = 0; i < count; ++i)
        out->write(line_of(i));
    for (int i = 0; i < count; ++i)
        ASSERT_EQ(read_line() + '\n', line_of(i));
    EXPECT_EQ(out->dropped(), 0u);
}

TEST_F(LogOutput, CountsWhatAClosedDescriptorCannotTake)
{
    close_writer();
    log_output out(writer(), 4096, [](std::uint64_t) { return std::string(); });
    out.write("a\n");
    ASSERT_TRUE(out.flush(20s));
    EXPECT_EQ(out.dropped(), 1u);
}

}

}
