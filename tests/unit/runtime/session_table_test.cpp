#include "runtime/session_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace belay::runtime {

namespace {

store::record_ptr record(std::uint64_t id, std::uint64_t revision = 1)
{
    auto made = std::make_shared<store::session_record>();
    made->key = {"somebody", {id << 40, id}};
    made->version = "2025-11-25";
    made->revision = revision;
    return made;
}

class SessionTable : public testing::Test {
protected:
    session_table table_;

    bool lists(std::shared_ptr<live_session> const& session)
    {
        auto const all = table_.all();
        return std::ranges::find(all, session) != all.end();
    }
};

TEST_F(SessionTable, ServesASessionAsOneObject)
{
    auto const first = table_.enter(record(1));
    EXPECT_EQ(table_.enter(record(1)), first);
    EXPECT_EQ(table_.find(record(1)->key), first);
    EXPECT_NE(table_.enter(record(2)), first);
    EXPECT_EQ(table_.find(record(3)->key), nullptr);
}

TEST_F(SessionTable, KeepsTheNewestRecordThatItHasSeen)
{
    auto const session = table_.enter(record(1, 2));
    session_use const newer(table_.enter(record(1, 3)), record(1, 3));
    EXPECT_EQ(session->current_record()->revision, 3u);
    session_use const older(table_.enter(record(1, 2)), record(1, 2));
    EXPECT_EQ(session->current_record()->revision, 3u);
}

TEST_F(SessionTable, ForgetsAtALookWhatNobodyUses)
{
    (void)table_.enter(record(1));
    auto const used = table_.enter(record(2));
    EXPECT_TRUE(table_.look_round().empty());
    EXPECT_EQ(table_.find(record(1)->key), nullptr);
    EXPECT_EQ(table_.find(record(2)->key), used);
}

TEST_F(SessionTable, NamesTheSessionsInUseThatNoStoreSees)
{
    auto const session = table_.enter(record(1));
    session->add_use();
    EXPECT_EQ(table_.look_round(), std::vector{record(1)->key});
    session->remove_use();
    EXPECT_TRUE(table_.look_round().empty());
}

TEST_F(SessionTable, AForgottenSessionIsAmongAllWhileItIsUsed)
{
    auto used = table_.enter(record(1));
    table_.forget(used->key);
    EXPECT_EQ(table_.find(record(1)->key), nullptr);
    EXPECT_TRUE(lists(used));
    used.reset();
    EXPECT_TRUE(table_.all().empty());
}

TEST_F(SessionTable, AStandInHasNoKeyAndGoesWithItsLastUser)
{
    auto stand_in = table_.stand_in(protocol::newest_revision);
    EXPECT_TRUE(lists(stand_in));
    EXPECT_EQ(table_.find(stand_in->key), nullptr);
    stand_in.reset();
    EXPECT_TRUE(table_.all().empty());
}

}

}
