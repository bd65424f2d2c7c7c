// Whatever an operation keeps is charged, and given back.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

constexpr std::size_t much = 20'000;

TEST_P(StoreContract, GivesBackWhatASessionKept)
{
    made(1);
    auto const before = bytes();
    auto const charge_of = [&](auto const& what) {
        auto const was = bytes();
        what();
        auto const now = bytes();
        return now > was ? now - was : 0;
    };
    auto record = record_of(key_of(2));
    record.client_info = std::string(much, 'i');
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(create(record)); }), much);
    auto const session = record.key;
    stream_key const key{session, 1};
    fence fence = 0;

    auto meta = meta_of({std::string(much, '7')});
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(open_as({session, 2}, meta)); }), much); // ids
    meta = meta_of();
    meta.call_notes = std::string(much, 'n');
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(open_as({session, 3}, meta)); }), much);
    meta = meta_of();
    meta.once = once_key{std::string(much, 'k'), 1};
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(open_as({session, 4}, meta)); }), much);
    meta = meta_of();
    meta.held_bytes = much;
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(open_as({session, 5}, meta)); }), much);
    meta = meta_of();
    meta.requests[0].answer_bytes = much;
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(open_as({session, 6}, meta)); }), much);
    EXPECT_GT(charge_of([&] { fence = opened(key, {"1"}); }), 0u);

    EXPECT_GE(charge_of([&] { EXPECT_TRUE(append(key, fence, {event(std::string(much, 'e'))})); }), much);
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(append(key, fence, {question(std::string(much, 'q'), 1)})); }), much);
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(announce(session, {event(std::string(much, 's'))})); }), much);
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(post(key, answer_to(1, std::string(much, 'l')))); }), much);
    EXPECT_GE(charge_of([&] { EXPECT_TRUE(subscribe(session, std::string(much, 'u'))); }), much);
    EXPECT_TRUE(attach(key, from_start(reader_of(1))));
    EXPECT_TRUE(attach({session, standalone}, from_start(reader_of(2))));
    EXPECT_TRUE(claim(key, fence, node_2));
    EXPECT_TRUE(close(session));

    ASSERT_TRUE(remove(session));
    EXPECT_TRUE(uses_bytes(before));
    ASSERT_TRUE(remove(key_of(1)));
    EXPECT_TRUE(uses_bytes(0));
}

TEST_P(StoreContract, GivesBackWhatAnExpiredSessionKept)
{
    auto const session = made();
    auto const fence = opened({session, 1}, {"1"}, mortal());
    ASSERT_TRUE(append({session, 1}, fence, {question("q", 1), event("a")}));
    ASSERT_TRUE(post({session, 1}, answer_to(1)));
    ASSERT_TRUE(subscribe(session, "uri"));
    ASSERT_TRUE(announce(session, {event("b")}));
    advance(lease + limit_.session_idle + overdue());
    EXPECT_EQ(expire().removed, std::vector{session});
    EXPECT_TRUE(uses_bytes(0));
    EXPECT_TRUE(has_sessions(0));
    EXPECT_TRUE(has_streams(0));
    EXPECT_EQ(lapsed(), ids{});
    EXPECT_TRUE(subscribers("uri").empty());
}

TEST_P(StoreContract, GivesBackWhatACallHeldForItsAnswer)
{
    auto const session = made();
    auto meta = meta_of({"1", "2"});
    meta.requests[0].answer_bytes = much;
    meta.requests[1].answer_bytes = much;
    auto const stream = open_as({session, 1}, meta);
    ASSERT_TRUE(stream);
    auto const open = bytes();
    EXPECT_GE(open, 2 * much);
    ASSERT_TRUE(append({session, 1}, stream->fence, {response("short", 0)}));
    EXPECT_TRUE(uses_bytes_between(much, open - much + 1000));
    ASSERT_TRUE(append({session, 1}, stream->fence, {response("short", 1)}, true));
    EXPECT_TRUE(uses_bytes_between(0, 8000));
}

TEST_P(StoreContract, ChargesNothingForWhatIsRefused)
{
    limit_.streams_per_session = 2;
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    ASSERT_TRUE(open_once({session, 2}, "k", 1));
    ASSERT_TRUE(append(key, fence, {question("q", 1)}));
    auto const before = bytes();
    EXPECT_FALSE(try_open({session, 3}));
    EXPECT_FALSE(open_once({session, 3}, "k", 2));
    EXPECT_FALSE(append(key, fence, {event(std::string(80 * 1024, 'x'))}));
    EXPECT_FALSE(append(key, fence + 1, {event("x")}));
    EXPECT_FALSE(post(key, answer_to(1, std::string(80 * 1024, 'x'))));
    EXPECT_FALSE(subscribe(session, std::string(80 * 1024, 'x')));
    EXPECT_FALSE(claim(key, fence + 1, node_2));
    EXPECT_FALSE(put("", 5, std::string(much, 'x')));
    EXPECT_TRUE(uses_bytes(before));
    EXPECT_TRUE(has_streams(2));
}

}

}
