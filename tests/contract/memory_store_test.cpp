// What only the memory store promises.
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace belay::store {

namespace {

using namespace std::chrono_literals;

constexpr stream_id standalone = 9000;

void expect_done(result<void> outcome)
{
    EXPECT_TRUE(outcome);
}

void renew(memory_store& store, std::string const& owner, base::duration lease = 1h)
{
    store.renew(owner, lease, expect_done);
}

session_key made(memory_store& store, session_key key)
{
    session_record record;
    record.key = key;
    record.standalone = standalone;
    store.create(record, [](auto const& created) { EXPECT_TRUE(created); });
    return key;
}

bytes text_of(std::size_t size)
{
    return std::make_shared<std::string const>(size, 'x');
}

TEST(MemoryStore, CompletesBeforeItReturns)
{
    base::manual_clock clock;
    memory_store store({}, clock, 1);
    bool is_done = false;
    store.load({"", {1, 1}}, [&](auto const&) { is_done = true; });
    EXPECT_TRUE(is_done);
}

TEST(MemoryStore, PromisesNoMoreThanTheProcess)
{
    base::manual_clock clock;
    EXPECT_EQ(memory_store({}, clock, 1).promise(), durability::process);
}

TEST(MemoryStore, CallsNoneOfItsCallersUnderALock)
{
    base::manual_clock clock;
    memory_store store({}, clock, 1);
    stream_key const key{made(store, {"", {1, 1}}), standalone};
    std::uint64_t batch = 0;
    int depth = 0;
    // Would wait for itself if the wake came under the stripe's lock.
    auto const handle = store.watch(key, event_store::interest::growth, [&](event_store::interest) {
        if (++depth < 3)
            store.append_standalone(key, "node/1", ++batch, {{text_of(1)}}, [](auto const&) {});
    });
    auto const session_handle = store.watch_session(key.session, [&] { store.load(key.session, [](auto const&) {}); });
    int heard = 0;
    auto const listener = store.listen([&](std::string const&) {
        if (++heard < 3)
            store.publish("again");
    });
    store.publish("once");
    EXPECT_EQ(heard, 3);
    store.append_standalone(key, "node/1", ++batch, {{text_of(1)}}, [&](auto const& top) {
        EXPECT_TRUE(top);
        store.remove(key.session, expect_done);
    });
    EXPECT_EQ(depth, 4); // three appends, and the end
    EXPECT_EQ(store.census().sessions, 0u);
}

// --- what is refused changes nothing

class Refusals : public testing::Test {
protected:
    base::manual_clock clock_;
    limits limits_;
    std::unique_ptr<memory_store> made_;
    session_key const session_{"", {1, 1}};

    memory_store& store()
    {
        if (!made_) {
            made_ = std::make_unique<memory_store>(limits_, clock_, 1);
            renew(*made_, "node/1");
            made(*made_, session_);
        }
        return *made_;
    }
    result<opened_stream> open(stream_id id, std::size_t held_bytes = 0, std::optional<once_key> once = {})
    {
        result<opened_stream> outcome;
        stream_meta meta;
        meta.requests.push_back({std::to_string(id)});
        meta.held_bytes = held_bytes;
        meta.once = std::move(once);
        store().open({session_, id}, meta, "node/1", std::nullopt, [&](auto opened) { outcome = std::move(opened); });
        return outcome;
    }
    void finish(stream_id id, fence fence)
    {
        store().append({session_, id}, fence, 1, 0, {{text_of(1), event_kind::response}}, true, [](auto const& top) {
            EXPECT_TRUE(top);
        });
        store().note_delivered({session_, id}, 1);
    }
    template<class T>
    static std::error_code error_of(result<T> const& outcome)
    {
        return outcome ? std::error_code() : outcome.error();
    }
    bool has(stream_id id)
    {
        bool is_there = false;
        store().reader({session_, id}, [&](auto const& mark) { is_there = mark.has_value(); });
        return is_there;
    }
};

TEST_F(Refusals, DropsNoStreamForOneThatHasNoRoomItself)
{
    limits_.streams_per_session = 1;
    finish(1, open(1)->fence);
    auto const before = store().used().bytes;
    EXPECT_EQ(error_of(open(2, limits_.bytes_per_session)), errc::no_space);
    EXPECT_TRUE(has(1));
    EXPECT_EQ(store().used().bytes, before);
    EXPECT_TRUE(open(2));
    EXPECT_FALSE(has(1));
}

TEST_F(Refusals, DropsNoStreamForItsOwnRepetition)
{
    limits_.streams_per_session = 1;
    once_key const key{"key", 7};
    finish(1, open(1, 0, key)->fence);
    EXPECT_EQ(error_of(open(2, 0, key)), errc::too_many_streams);
    EXPECT_TRUE(has(1));
}

TEST_F(Refusals, RepeatsTheReleaseOfACallThatOthersHaveClaimed)
{
    stream_key const key{session_, 1};
    auto const first = open(1)->fence;
    store().release(key, first, true, expect_done);
    fence second = 0;
    store().claim(key, first, "node/2", [&](auto const& claimed) { second = claimed->fence; });
    EXPECT_GT(second, first);
    store().release(key, first, true, expect_done);
    // It is still the other's.
    store().append(key, second, 1, 0, {{text_of(1)}}, false, [](auto const& top) { EXPECT_TRUE(top); });
    store().release(key, second + 1, true, [](auto const& outcome) { EXPECT_EQ(error_of(outcome), errc::fenced); });
}

class tally final : public event_counter {
public:
    void delivered(std::size_t, std::size_t first) override { delivered_ += first; }
    void trimmed(std::size_t events, std::size_t undelivered) override
    {
        EXPECT_LE(undelivered, events);
        trimmed_ += undelivered;
        removed_ += events;
    }
    void ended(std::size_t events, std::size_t undelivered) override
    {
        EXPECT_LE(undelivered, events);
        ended_ += undelivered;
        removed_ += events;
    }

    std::size_t delivered_ = 0;
    std::size_t trimmed_ = 0;
    std::size_t ended_ = 0;
    std::size_t removed_ = 0;
};

// What a follower does, in short: attaches, reads pages after its place and marks what it was given.
class reading {
public:
    reading(memory_store& store, stream_key key, reader_id id, std::uint64_t after)
        : store_(store), key_(key), id_(id), at_(after)
    {
        attach_request request;
        request.reader.id = id;
        request.from = cursor{1, after};
        request.insists = true;
        request.limit.events = 0;
        store_.attach(key_, request, [&](auto const& attached) { is_attached_ = attached.has_value(); });
    }

    void step(std::size_t events)
    {
        if (!is_attached_)
            return;
        store_.read_after(key_, at_, {events, 1u << 20}, id_, [&](result<page> page) {
            if (!page)
                return;
            std::uint64_t given = 0;
            for (auto const& each : page->events) {
                at_ = each.sequence;
                offset_ = each.end_offset;
                ++given;
            }
            if (page->events.empty())
                at_ = std::max(at_, page->state.top.sequence);
            auto const sent = std::max(page->state.reader.sent, at_);
            mark_ = {true, at_, offset_, sent, given, at_};
            if (is_heard_)
                store_.note_reader(key_, id_, mark_);
        });
    }
    /// From now on its marks do not arrive.
    void lose_marks() { is_heard_ = false; }
    void leave()
    {
        mark_.given = 0;
        if (is_attached_)
            store_.detach(key_, id_, is_heard_ ? std::optional(mark_) : std::nullopt);
    }

private:
    memory_store& store_;
    stream_key key_;
    reader_id id_;
    std::uint64_t at_;
    std::uint64_t offset_ = 0;
    reader_mark mark_;
    bool is_attached_ = false;
    bool is_heard_ = true;
};

TEST(MemoryStore, AccountsForEveryEvent)
{
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        base::seeded_random random(seed);
        limits limits;
        limits.events_per_stream = 8;
        limits.bytes_per_stream = 8 * 1024;
        limits.streams_per_session = 5;
        limits.bytes_per_session = 24 * 1024;
        limits.bytes_total = 64 * 1024;
        limits.event_age = std::chrono::seconds(20);
        tally counted;
        base::manual_clock clock;
        memory_store store(limits, clock, 1, &counted);
        renew(store, "node/1");
        std::size_t appended = 0;
        std::uint64_t batch = 0;
        std::uint64_t next_reader = 1;
        struct call {
            store::fence fence;
        };
        std::map<std::pair<std::uint64_t, stream_id>, call> calls;
        std::uint64_t next_stream = 1;
        for (std::uint64_t n = 0; n < 4; ++n)
            made(store, {"", {n << 32, n}});
        for (int step = 0; step < 600; ++step) {
            auto const n = random.below(4);
            session_key const session{"", {n << 32, n}};
            clock.advance(std::chrono::milliseconds(random.below(300)));
            auto const pick = [&]() -> std::pair<stream_key, call*> {
                std::vector<std::pair<stream_key, call*>> own{{{session, standalone}, nullptr}};
                for (auto& [where, each] : calls)
                    if (where.first == n)
                        own.emplace_back(stream_key{session, where.second}, &each);
                return own[random.below(own.size())];
            };
            switch (random.below(11)) {
            case 0: {
                stream_meta meta;
                meta.requests.push_back({std::to_string(next_stream)});
                store.open({session, next_stream}, meta, "node/1", std::nullopt, [&](auto const& outcome) {
                    if (outcome)
                        calls[{n, next_stream}] = {outcome->fence};
                });
                ++next_stream;
                break;
            }
            case 1:
            case 2:
            case 3:
            case 4: {
                auto const [key, owner] = pick();
                std::vector<event_data> events;
                for (auto left = 1 + random.below(4); left > 0; --left)
                    events.push_back(
                        {text_of(random.below(900)),
                         owner && random.below(6) == 0 ? event_kind::response : event_kind::ordinary,
                         static_cast<std::uint32_t>(random.below(2))});
                bool const ends = owner && random.below(4) == 0;
                auto const count = events.size();
                auto const count_it = [&](auto const& top) {
                    if (top)
                        appended += count;
                };
                if (owner)
                    store.append(key, owner->fence, ++batch, 0, std::move(events), ends, count_it);
                else
                    store.append_standalone(key, "node/1", ++batch, std::move(events), count_it);
                break;
            }
            case 5:
            case 6:
            case 7: {
                auto const key = pick().first;
                std::uint64_t sent = 0;
                store.reader(key, [&](auto const& mark) { sent = mark ? mark->sent : 0; });
                std::string const node = random.below(4) == 0 ? "node/2" : "node/1";
                reading one(store, key, {node, next_reader++}, random.below(3) == 0 ? 0 : random.below(sent + 1));
                for (auto left = random.below(4); left > 0; --left)
                    one.step(1 + random.below(5));
                if (random.below(4) == 0)
                    one.lose_marks();
                one.step(3);
                if (random.below(4) != 0)
                    one.leave();
                break;
            }
            case 8: store.sweep(); break;
            case 9: // a cursor that is ahead of every mark
                store.read_after(pick().first, 0, {0, 0}, std::nullopt, [&](result<page> page) {
                    if (page)
                        reading(store, {session, standalone}, {"node/1", next_reader++}, page->state.top.sequence)
                            .leave();
                });
                break;
            default:
                if (random.below(5) == 0)
                    store.lapsed(1, [](auto const&) {});
                else if (random.below(10) == 0) {
                    store.remove(session, expect_done);
                    std::erase_if(calls, [&](auto const& each) { return each.first.first == n; });
                    made(store, session);
                }
            }
            auto const census = store.census();
            ASSERT_EQ(appended, counted.delivered_ + counted.trimmed_ + counted.ended_ + census.pending)
                << "seed " << seed << " step " << step;
            ASSERT_EQ(appended, counted.removed_ + census.events) << "seed " << seed << " step " << step;
            ASSERT_EQ(census.sessions, store.used().sessions);
            ASSERT_EQ(census.streams, store.used().streams) << "seed " << seed << " step " << step;
            ASSERT_LE(census.bytes, limits.bytes_total + limits::reserve(limits.bytes_total));
        }
        for (std::uint64_t n = 0; n < 4; ++n)
            store.remove({"", {n << 32, n}}, expect_done);
        auto const census = store.census();
        ASSERT_EQ(census.sessions + census.streams + census.bytes + census.events + census.pending, 0u) << seed;
        ASSERT_EQ(appended, counted.removed_);
    }
}

// --- threads; of use under the thread sanitizer

constexpr int writer_count = 4;
constexpr int appends_each = 300;

TEST(MemoryStore, TakesAppendsOfSeveralThreadsToOneStream)
{
    limits limits;
    limits.events_per_stream = writer_count * appends_each;
    base::manual_clock clock;
    memory_store store(limits, clock, 1);
    stream_key const key{made(store, {"", {1, 1}}), standalone};
    std::atomic<int> hints{0};
    auto const handle = store.watch(key, event_store::interest::growth, [&](event_store::interest) { ++hints; });
    std::vector<std::thread> writers;
    for (int i = 0; i < writer_count; ++i)
        writers.emplace_back([&store, &key, i] {
            for (int n = 0; n < appends_each; ++n)
                store.append_standalone(
                    key, "node/" + std::to_string(i), static_cast<std::uint64_t>(n) + 1,
                    {{std::make_shared<std::string const>(std::to_string(i) + ' ' + std::to_string(n))}},
                    [](auto const& top) { EXPECT_TRUE(top); });
        });
    // A reader beside them sees every sequence once and in order, and each writer's events in its order.
    std::uint64_t at = 0;
    std::array<int, writer_count> next{};
    while (at < writer_count * appends_each)
        store.read_after(key, at, {64, 1u << 20}, std::nullopt, [&](result<page> page) {
            ASSERT_TRUE(page);
            for (auto const& each : page->events) {
                ASSERT_EQ(each.sequence, at + 1);
                at = each.sequence;
                auto const writer = static_cast<std::size_t>((*each.payload)[0] - '0');
                ASSERT_EQ(*each.payload, std::to_string(writer) + ' ' + std::to_string(next[writer]));
                ++next[writer];
            }
            store.note_reader(key, {"node/1", 1}, {true, at, 0, at, page->events.size(), at});
        });
    for (auto& each : writers)
        each.join();
    EXPECT_EQ(hints, writer_count * appends_each);
}

TEST(MemoryStore, ServesSessionsOfSeveralThreadsBesideEachOther)
{
    limits limits;
    limits.events_per_stream = 50;
    limits.event_age = 1s;
    limits.session_idle = 24h;
    base::manual_clock clock;
    memory_store store(limits, clock, 1);
    std::atomic<bool> is_over{false};
    std::thread caretaker([&] {
        for (int i = 0; !is_over; ++i) {
            clock.advance(1ms);
            store.sweep();
            store.expire(10, [](auto const&) {});
            renew(store, "node/" + std::to_string(i % 2), 3ms); // lives and dies
            store.lapsed(10, [](auto const&) {});
            store.owned("node/1", std::nullopt, 10, [](auto const&) {});
            store.list({}, 10, [](auto const&) {});
            store.put_record("name", 0, "value", 1ms, [](auto const&) {});
            store.publish("text");
            (void)store.used();
            (void)store.census();
        }
    });
    std::vector<std::thread> users;
    for (std::uint64_t n = 0; n < writer_count; ++n)
        users.emplace_back([&store, n] {
            auto const owner = "node/" + std::to_string(n % 2);
            std::atomic<int> heard{0};
            auto const listener = store.listen([&](std::string const&) { ++heard; });
            for (std::uint64_t round = 0; round < 20; ++round) {
                auto const session = made(store, {"", {n, n * 1000 + round}});
                stream_key const key{session, 1};
                reader_request reader;
                reader.id = {owner, round};
                fence fence = 0;
                stream_meta meta;
                meta.requests.push_back({"1"});
                store.open(key, meta, owner, reader, [&](auto const& outcome) {
                    ASSERT_TRUE(outcome);
                    fence = outcome->fence;
                });
                std::atomic<int> woken{0};
                auto const handle
                    = store.watch(key, event_store::interest::growth, [&](event_store::interest) { ++woken; });
                for (std::uint64_t i = 1; i <= 20; ++i) {
                    store.append(key, fence, i, 0, {{text_of(10)}}, i == 20, [](auto const& top) { EXPECT_TRUE(top); });
                    store.post(key, {letter::kind::cancel, 0}, expect_done);
                }
                EXPECT_GE(woken, 20);
                store.find(session, "1", [](auto const&) {});
                store.detach(key, reader.id, std::nullopt);
                store.touch({&session, 1});
                store.remove(session, expect_done);
            }
        });
    for (auto& each : users)
        each.join();
    is_over = true;
    caretaker.join();
    clock.advance(1h);
    store.sweep();
    auto const census = store.census();
    EXPECT_EQ(census.sessions + census.streams + census.bytes, 0u);
}

}

}
