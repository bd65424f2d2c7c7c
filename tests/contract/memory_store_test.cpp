#include "store/memory_store.hpp"

#include "contract/store_contract.hpp"

#include <atomic>
#include <map>
#include <thread>

namespace belay::store {

namespace {

INSTANTIATE_TEST_SUITE_P(
    Memory, StoreContract,
    testing::Values(store_factory{
        "memory",
        [](limits const& limits, std::uint64_t epoch) { return std::make_unique<memory_store>(limits, epoch); }}),
    store_name);

// --- what only the memory store promises

base::time_point const start{std::chrono::hours(1)};

void expect_done(result<void> outcome)
{
    EXPECT_TRUE(outcome);
}

session_key made(memory_store& store, session_key key, base::time_point at = start)
{
    session_record record;
    record.key = key;
    record.standalone = 9000;
    store.create(record, at, [](auto const& created) { EXPECT_TRUE(created); });
    return key;
}

bytes text_of(std::size_t size)
{
    return std::make_shared<std::string const>(size, 'x');
}

TEST(MemoryStore, CompletesBeforeItReturns)
{
    memory_store store({}, 1);
    bool is_done = false;
    store.load({"", {1, 1}}, [&](auto const&) { is_done = true; });
    EXPECT_TRUE(is_done);
}

TEST(MemoryStore, PromisesNoMoreThanTheProcess)
{
    EXPECT_EQ(memory_store({}, 1).promise(), durability::process);
}

TEST(MemoryStore, GivesTheLongestIdleSessionsOfAStripeFirst)
{
    limits limits;
    memory_store store(limits, 1);
    // The same high half: the same stripe.
    auto const a = made(store, {"", {5, 1}}, start);
    auto const b = made(store, {"", {5, 2}}, start + std::chrono::seconds(1));
    auto const c = made(store, {"", {5, 3}}, start + std::chrono::seconds(2));
    store.touch(a, start + std::chrono::seconds(9), presence::idle);
    store.touch(c, start + std::chrono::seconds(3), presence::idle);
    // A late hint about a held session finds its place among the others.
    store.touch(b, start, presence::held);
    store.touch(b, start + std::chrono::seconds(4), presence::idle);
    std::vector<session_key> keys;
    store.expired(start + std::chrono::hours(1), 2, [&](auto outcome) { keys = *outcome; });
    EXPECT_EQ(keys, (std::vector{c, b}));
}

TEST(MemoryStore, CallsNoneOfItsCallersUnderALock)
{
    memory_store store({}, 1);
    stream_key const key{made(store, {"", {1, 1}}), 9000};
    int depth = 0;
    // Would wait for itself if the wake came under the stripe's lock.
    auto const handle = store.watch(key, event_store::interest::growth, [&] {
        if (++depth < 3)
            store.append(key, 0, {{text_of(1)}}, false, start, [](auto const&) {});
    });
    store.append(key, 0, {{text_of(1)}}, false, start, [&](auto const& top) {
        EXPECT_TRUE(top);
        store.end(key.session, expect_done);
    });
    EXPECT_EQ(store.census().sessions, 0u);
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

// What a follower does, in short: reads pages after its place and marks what it was given.
class reading {
public:
    reading(memory_store& store, stream_key key, std::uint64_t after) : store_(store), key_(key), at_(after) {}

    void step(std::size_t events)
    {
        store_.read_after(key_, at_, {events, 1u << 20}, [&](result<page> page) {
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
            store_.note_reader(key_, {true, at_, offset_, sent, given, at_});
        });
    }
    void leave()
    {
        store_.reader(key_, [&](result<reader_mark> mark) {
            if (!mark)
                return;
            mark->attached = false;
            mark->given = 0;
            store_.note_reader(key_, *mark);
        });
    }

private:
    memory_store& store_;
    stream_key key_;
    std::uint64_t at_;
    std::uint64_t offset_ = 0;
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
        memory_store store(limits, 1, &counted);
        auto now = start;
        std::size_t appended = 0;
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
            now += std::chrono::milliseconds(random.below(300));
            auto const pick = [&]() -> std::pair<stream_key, call*> {
                std::vector<std::pair<stream_key, call*>> own{{{session, 9000}, nullptr}};
                for (auto& [where, each] : calls)
                    if (where.first == n)
                        own.emplace_back(stream_key{session, where.second}, &each);
                return own[random.below(own.size())];
            };
            switch (random.below(10)) {
            case 0:
                store.open({session, next_stream}, {}, "node/1", now, [&](auto const& outcome) {
                    if (outcome)
                        calls[{n, next_stream}] = {outcome->fence};
                });
                ++next_stream;
                break;
            case 1:
            case 2:
            case 3:
            case 4: {
                auto const [key, owner] = pick();
                std::vector<event_data> events;
                for (auto left = 1 + random.below(4); left > 0; --left)
                    events.push_back(
                        {text_of(random.below(900)),
                         owner && random.below(6) == 0 ? event_kind::response : event_kind::ordinary});
                bool const ends = owner && random.below(4) == 0;
                auto const count = events.size();
                store.append(key, owner ? owner->fence : 0, std::move(events), ends, now, [&](auto const& top) {
                    if (top)
                        appended += count;
                });
                break;
            }
            case 5:
            case 6:
            case 7: {
                auto const key = pick().first;
                std::uint64_t sent = 0;
                store.reader(key, [&](auto const& mark) { sent = mark ? mark->sent : 0; });
                reading one(store, key, random.below(3) == 0 ? 0 : random.below(sent + 1));
                for (auto left = random.below(4); left > 0; --left)
                    one.step(1 + random.below(5));
                if (random.below(4) != 0)
                    one.leave();
                break;
            }
            case 8: store.sweep(now); break;
            default:
                if (random.below(10) == 0) {
                    store.end(session, [](auto const&) {});
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
            store.end({"", {n << 32, n}}, expect_done);
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
    memory_store store(limits, 1);
    stream_key const key{made(store, {"", {1, 1}}), 9000};
    std::atomic<int> hints{0};
    auto const handle = store.watch(key, event_store::interest::growth, [&] { ++hints; });
    std::vector<std::thread> writers;
    for (int i = 0; i < writer_count; ++i)
        writers.emplace_back([&store, &key, i] {
            for (int n = 0; n < appends_each; ++n)
                store.append(
                    key, 0, {{std::make_shared<std::string const>(std::to_string(i) + ' ' + std::to_string(n))}}, false,
                    start, [](auto const& top) { EXPECT_TRUE(top); });
        });
    // A reader beside them sees every sequence once and in order, and each writer's events in its order.
    std::uint64_t at = 0;
    std::array<int, writer_count> next{};
    while (at < writer_count * appends_each)
        store.read_after(key, at, {64, 1u << 20}, [&](result<page> page) {
            ASSERT_TRUE(page);
            for (auto const& each : page->events) {
                ASSERT_EQ(each.sequence, at + 1);
                at = each.sequence;
                auto const writer = static_cast<std::size_t>((*each.payload)[0] - '0');
                ASSERT_EQ(*each.payload, std::to_string(writer) + ' ' + std::to_string(next[writer]));
                ++next[writer];
            }
            store.note_reader(key, {true, at, 0, at, page->events.size(), at});
        });
    for (auto& each : writers)
        each.join();
    EXPECT_EQ(hints, writer_count * appends_each);
}

TEST(MemoryStore, ServesSessionsOfSeveralThreadsBesideEachOther)
{
    limits limits;
    limits.events_per_stream = 50;
    limits.event_age = std::chrono::seconds(1);
    memory_store store(limits, 1);
    std::atomic<bool> is_over{false};
    std::thread caretaker([&] {
        auto now = start;
        while (!is_over) {
            now += std::chrono::milliseconds(10);
            store.sweep(now);
            store.expired(now, 10, [](auto const&) {});
            store.renew("node/1", now);
            store.lapsed(now, 10, [](auto const&) {});
            (void)store.used();
            (void)store.census();
        }
    });
    std::vector<std::thread> users;
    for (std::uint64_t n = 0; n < writer_count; ++n)
        users.emplace_back([&store, n] {
            for (std::uint64_t round = 0; round < 20; ++round) {
                // Two users share each stripe.
                auto const session = made(store, {"", {(n / 2) << 32, n * 1000 + round}});
                stream_key const key{session, 1};
                fence fence = 0;
                store.open(key, {stream_kind::request, "", "1"}, "node/1", start, [&](auto const& outcome) {
                    ASSERT_TRUE(outcome);
                    fence = outcome->fence;
                });
                std::atomic<int> woken{0};
                auto const handle = store.watch(key, event_store::interest::growth, [&] { ++woken; });
                for (int i = 0; i < 20; ++i)
                    store.append(
                        key, fence, {{text_of(10)}}, i == 19, start, [](auto const& top) { EXPECT_TRUE(top); });
                EXPECT_EQ(woken, 20);
                store.touch(session, start, presence::idle);
                store.find(session, "1", [](auto const&) {});
                store.end(session, expect_done);
            }
        });
    for (auto& each : users)
        each.join();
    is_over = true;
    caretaker.join();
    auto const census = store.census();
    EXPECT_EQ(census.sessions + census.streams + census.bytes, 0u);
}

}

}
