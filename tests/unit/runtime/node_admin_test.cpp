#include "runtime/node.hpp"
#include "sim/sim_loop.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::runtime {

namespace {

/// Gives what it was told to give, then numbers of a seed.
class scripted_random final : public base::random_source {
public:
    std::uint64_t next() override
    {
        if (script.empty())
            return seeded_.next();
        auto const value = script.front();
        script.pop_front();
        return value;
    }
    std::deque<std::uint64_t> script;

private:
    base::seeded_random seeded_{1};
};

class NodeAdmin : public testing::Test {
protected:
    NodeAdmin() { world_.add(loop_); }
    scripted_random random_;
    base::seeded_random order_{1};
    sim::scheduler world_{order_};
    sim::sim_loop loop_{world_.clock()};
    store::memory_store store_{{}, world_.clock(), 1};
    observe::metrics metrics_;
    node node_{{}, store_, random_, metrics_, {}};

    std::string open(std::string info = "{}")
    {
        std::string name;
        client_hello hello;
        hello.info = std::move(info);
        node_.sessions().open(std::move(hello), [&](result<session_use> use) { name = use->session()->name; });
        world_.run_all();
        return name;
    }
    std::error_code end(std::string_view name)
    {
        std::optional<std::error_code> outcome;
        node_.sessions().end_by_name(
            name, loop_, [&](result<void> ended) { outcome = ended ? std::error_code() : ended.error(); });
        world_.run_all();
        return outcome.value_or(make_error_code(errc::unavailable));
    }
    session_page list(std::string_view after = "", std::size_t limit = 100)
    {
        session_page page;
        node_.sessions().list(after, limit, [&](result<session_page> found) { page = std::move(*found); });
        world_.run_all();
        return page;
    }
};

TEST_F(NodeAdmin, ListsSessionsByName)
{
    std::vector<std::string> names{open(R"({"name":"a"})"), open(R"({"name":"a"})"), open(R"({"name":"a"})")};
    std::ranges::sort(names);
    auto const first = list("", 2);
    ASSERT_EQ(first.sessions.size(), 2u);
    EXPECT_EQ(first.total, 3u);
    EXPECT_TRUE(first.has_more);
    EXPECT_EQ(first.sessions[0].name, names[0]);
    EXPECT_EQ(first.sessions[1].name, names[1]);
    EXPECT_EQ(first.sessions[0].client_info, R"({"name":"a"})");
    auto const rest = list(names[1], 2);
    ASSERT_EQ(rest.sessions.size(), 1u);
    EXPECT_EQ(rest.sessions[0].name, names[2]);
    EXPECT_FALSE(rest.has_more);
    EXPECT_FALSE(list("", 3).has_more);
}

TEST_F(NodeAdmin, EndsTheSessionWithThatName)
{
    auto const one = open();
    auto const other = open();
    EXPECT_EQ(end(one), std::error_code());
    ASSERT_EQ(list().sessions.size(), 1u);
    EXPECT_EQ(list().sessions[0].name, other);
    EXPECT_EQ(end(one), make_error_code(errc::not_found));
}

TEST_F(NodeAdmin, EndsNoneOfSeveralSessionsWithOneName)
{
    // A name mixes the two halves of an id; these two ids come to the same.
    constexpr std::uint64_t factor = 0x9E3779B97F4A7C15ULL;
    random_.script = {7, 0, 1}; // the id's halves, and the standalone stream
    auto const one = open();
    random_.script = {7 ^ factor, 1, 2};
    auto const two = open();
    ASSERT_EQ(one, two) << "the ids were not chosen well";
    EXPECT_EQ(end(one), make_error_code(errc::conflict));
    EXPECT_EQ(list().total, 2u);
}

}

}
