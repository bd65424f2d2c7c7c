// What every store promises, as test bodies over a factory. A backend passes by instantiating them:
//
//     INSTANTIATE_TEST_SUITE_P(
//         Memory, StoreContract, testing::Values(store_factory{"memory", make_memory_store}), store_name);
//
// Sizes are chosen so that a backend may charge an event some hundred bytes beside its payload.
#pragma once

#include "store/ports.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::store {

struct store_factory {
    std::string name;
    /// The epoch names the life of the store.
    std::function<std::unique_ptr<backend>(limits const&, std::uint64_t epoch)> make;
    /// Lets the store work until the condition holds. Without it, everything completes at once.
    std::function<void(std::function<bool()> const&)> wait = [](std::function<bool()> const&) {};
};

inline void PrintTo(store_factory const& factory, std::ostream* out)
{
    *out << factory.name;
}

inline std::string store_name(testing::TestParamInfo<store_factory> const& info)
{
    return info.param.name;
}

inline void PrintTo(stored_event const& event, std::ostream* out)
{
    *out << event.sequence << ' ' << *event.payload;
}

class StoreContract : public testing::TestWithParam<store_factory> {
protected:
    static constexpr std::uint64_t epoch = 77;
    static constexpr stream_id standalone = 9000;

    limits limit_; // before the first use of store()
    base::time_point now_{std::chrono::hours(1)};

    backend& store()
    {
        if (!store_)
            store_ = GetParam().make(limit_, epoch);
        return *store_;
    }

    /// The outcome of a function that takes a completion.
    template<class T, class Start>
    result<T> await(Start const& start)
    {
        std::optional<result<T>> outcome;
        start(completion<T>([&](result<T> given) { outcome.emplace(std::move(given)); }));
        GetParam().wait([&] { return outcome.has_value(); });
        if (!outcome) {
            ADD_FAILURE() << "the store did not complete";
            return failure(errc::unavailable);
        }
        return std::move(*outcome);
    }

    // --- words for the ports

    static session_key key_of(std::uint64_t number, std::string principal = "")
    {
        return {std::move(principal), {number << 32, number}};
    }
    static session_record record_of(session_key key)
    {
        session_record record;
        record.key = std::move(key);
        record.standalone = standalone;
        record.version = "2025-11-25";
        return record;
    }
    result<void> create(session_key const& key)
    {
        return await<void>([&](auto done) { store().create(record_of(key), now_, std::move(done)); });
    }
    session_key made(std::uint64_t number = 1, std::string principal = "")
    {
        auto key = key_of(number, std::move(principal));
        EXPECT_TRUE(create(key)) << "cannot make a session";
        return key;
    }
    result<std::shared_ptr<session_record const>> load(session_key const& key)
    {
        return await<std::shared_ptr<session_record const>>([&](auto done) { store().load(key, std::move(done)); });
    }
    result<std::shared_ptr<session_record const>> update(session_record const& record)
    {
        return await<std::shared_ptr<session_record const>>(
            [&](auto done) { store().update(record, std::move(done)); });
    }
    std::vector<session_key> expired(std::size_t limit = 100)
    {
        return await<std::vector<session_key>>([&](auto done) { store().expired(now_, limit, std::move(done)); })
            .value();
    }
    result<void> end(session_key const& key)
    {
        return await<void>([&](auto done) { store().end(key, std::move(done)); });
    }

    result<opened_stream> try_open(stream_key const& key, std::string label = "1", std::string const& owner = "node/1")
    {
        return await<opened_stream>([&](auto done) {
            store().open(key, {stream_kind::request, "2025-11-25", label}, owner, now_, std::move(done));
        });
    }
    result<opened_stream> open_once(stream_key const& key, std::string text, std::uint64_t fingerprint = 1)
    {
        stream_meta meta{stream_kind::request, "tag", "1", once_key{std::move(text), fingerprint}};
        return await<opened_stream>(
            [&](auto done) { store().open(key, std::move(meta), "node/1", now_, std::move(done)); });
    }
    fence opened(stream_key const& key, std::string label = "1", std::string const& owner = "node/1")
    {
        auto const outcome = try_open(key, std::move(label), owner);
        EXPECT_TRUE(outcome) << "cannot open a stream";
        return outcome ? outcome->fence : 0;
    }

    static event_data event(std::string text, event_kind kind = event_kind::ordinary)
    {
        return {std::make_shared<std::string const>(std::move(text)), kind};
    }
    static event_data response(std::string text) { return event(std::move(text), event_kind::response); }

    result<stream_top> append(stream_key const& key, fence fence, std::vector<event_data> events, bool finish = false)
    {
        return await<stream_top>(
            [&](auto done) { store().append(key, fence, std::move(events), finish, now_, std::move(done)); });
    }
    result<void> blank(stream_key const& key, fence fence, std::uint64_t sequence)
    {
        return await<void>([&](auto done) { store().blank(key, fence, sequence, std::move(done)); });
    }
    /// Ends the call with a response, undelivered.
    void finish(stream_key const& key, fence fence) { EXPECT_TRUE(append(key, fence, {response("answer")}, true)); }
    /// A call that has finished and whose answer has arrived.
    void finished_and_delivered(stream_key const& key, std::string label = "1")
    {
        finish(key, opened(key, std::move(label)));
        deliver(key);
    }
    /// All that is in the stream has arrived, and its reader has gone.
    void deliver(stream_key const& key)
    {
        auto const top = read(key)->state.top;
        store().note_reader(key, {false, top.sequence, top.offset, top.sequence, top.sequence, top.sequence});
    }
    void attach(stream_key const& key) { store().note_reader(key, {true, 0, 0, 0, 0, 0}); }

    result<page> read(stream_key const& key, std::uint64_t after = 0, read_limit limit = {100'000, 1u << 30})
    {
        return await<page>([&](auto done) { store().read_after(key, after, limit, std::move(done)); });
    }
    static std::vector<std::uint64_t> sequences(result<page> const& page)
    {
        std::vector<std::uint64_t> all;
        for (auto const& each : page.value().events)
            all.push_back(each.sequence);
        return all;
    }
    static std::vector<std::string> texts(result<page> const& page)
    {
        std::vector<std::string> all;
        for (auto const& each : page.value().events)
            all.push_back(*each.payload);
        return all;
    }
    result<reader_mark> reader(stream_key const& key)
    {
        return await<reader_mark>([&](auto done) { store().reader(key, std::move(done)); });
    }
    bool exists(stream_key const& key)
    {
        return await<stream_meta>([&](auto done) { store().inspect(key, std::move(done)); }).has_value();
    }
    void sweep_after(base::duration time)
    {
        now_ += time;
        store().sweep(now_);
    }

    std::vector<stream_id> lapsed(std::size_t limit = 100)
    {
        std::vector<stream_id> ids;
        auto const calls
            = await<std::vector<call_ref>>([&](auto done) { store().lapsed(now_, limit, std::move(done)); });
        for (auto const& each : *calls)
            ids.push_back(each.stream.stream);
        std::ranges::sort(ids);
        return ids;
    }
    result<fence> claim(stream_key const& key, std::string const& owner)
    {
        return await<fence>([&](auto done) { store().claim(key, owner, std::move(done)); });
    }
    result<call_ref> find(session_key const& key, std::string_view label)
    {
        return await<call_ref>([&](auto done) { store().find(key, label, std::move(done)); });
    }
    std::vector<stream_id> running(session_key const& key)
    {
        std::vector<stream_id> ids;
        auto const calls = await<std::vector<call_ref>>([&](auto done) { store().running(key, std::move(done)); });
        for (auto const& each : *calls)
            ids.push_back(each.stream.stream);
        std::ranges::sort(ids);
        return ids;
    }
    result<void> send(std::string const& owner, owner_message message)
    {
        return await<void>([&](auto done) { store().send(owner, std::move(message), std::move(done)); });
    }

    template<class T>
    static std::error_code error_of(result<T> const& outcome)
    {
        return outcome ? std::error_code() : outcome.error();
    }

private:
    std::unique_ptr<backend> store_;
};

using ids = std::vector<stream_id>;
using strings = std::vector<std::string>;
using numbers = std::vector<std::uint64_t>;

// --- append

TEST_P(StoreContract, GivesConsecutiveSequencesFromOne)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(append(key, fence, {event("a")})->sequence, 1u);
    EXPECT_EQ(append(key, fence, {event("b"), event("c")})->sequence, 3u);
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2, 3}));
}

TEST_P(StoreContract, KeepsABatchInItsOrder)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), response("c")}, true));
    EXPECT_EQ(texts(read(key)), (strings{"a", "b", "c"}));
}

TEST_P(StoreContract, KeepsTheKindOfAnEvent)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), response("b")}));
    auto const page = read(key);
    EXPECT_EQ(page->events[0].kind, event_kind::ordinary);
    EXPECT_EQ(page->events[1].kind, event_kind::response);
}

TEST_P(StoreContract, CountsPayloadBytesInOffsets)
{
    stream_key const key{made(), 1};
    auto const top = append(key, opened(key), {event("four"), event(""), event("sixsix")});
    EXPECT_EQ(top->offset, 10u);
    auto const page = read(key);
    EXPECT_EQ(page->events[0].end_offset, 4u);
    EXPECT_EQ(page->events[1].end_offset, 4u);
    EXPECT_EQ(page->events[2].end_offset, 10u);
}

TEST_P(StoreContract, AppendsNothingOfABatchWithATooLargeEvent)
{
    limit_.event_bytes = 100;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const outcome = append(key, fence, {event("small"), event(std::string(101, 'x')), event("small")});
    EXPECT_EQ(error_of(outcome), errc::too_large);
    EXPECT_EQ(read(key)->state.top.sequence, 0u);
    EXPECT_EQ(append(key, fence, {event("next")})->sequence, 1u);
}

TEST_P(StoreContract, TakesAnEventOfExactlyTheLimit)
{
    limit_.event_bytes = 100;
    stream_key const key{made(), 1};
    EXPECT_TRUE(append(key, opened(key), {event(std::string(100, 'x'))}));
}

TEST_P(StoreContract, DoesNotFinishAStreamByARefusedAppend)
{
    limit_.event_bytes = 100;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_FALSE(append(key, fence, {response(std::string(101, 'x'))}, true));
    EXPECT_FALSE(read(key)->state.finished);
    EXPECT_TRUE(append(key, fence, {response("shorter")}, true));
}

TEST_P(StoreContract, RefusesAnAppendToAFinishedStream)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    finish(key, fence);
    EXPECT_EQ(error_of(append(key, fence, {event("late")})), errc::finished);
    EXPECT_EQ(error_of(append(key, fence, {response("second answer")}, true)), errc::finished);
    EXPECT_EQ(texts(read(key)), strings{"answer"});
}

TEST_P(StoreContract, RefusesAWrongFence)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(error_of(append(key, fence + 1, {event("a")})), errc::fenced);
    EXPECT_EQ(read(key)->state.top.sequence, 0u);
}

TEST_P(StoreContract, FencesTheOldOwnerOffAfterAClaim)
{
    stream_key const key{made(), 1};
    auto const old = opened(key);
    auto const fresh = claim(key, "node/2");
    ASSERT_TRUE(fresh);
    EXPECT_EQ(error_of(append(key, old, {event("from the old owner")})), errc::fenced);
    EXPECT_TRUE(append(key, *fresh, {event("from the new owner")}));
}

TEST_P(StoreContract, RefusesAClaimOfAFinishedCall)
{
    stream_key const key{made(), 1};
    finish(key, opened(key));
    EXPECT_EQ(error_of(claim(key, "node/2")), errc::finished);
}

TEST_P(StoreContract, RefusesAClaimOfWhatIsNoCall)
{
    auto const session = made();
    ASSERT_TRUE(append({session, standalone}, 0, {event("a")}));
    EXPECT_EQ(error_of(claim({session, standalone}, "node/2")), errc::not_found);
    EXPECT_EQ(error_of(claim({session, 1}, "node/2")), errc::not_found);
}

TEST_P(StoreContract, HasTheStandaloneStreamFromItsFirstUse)
{
    auto const page = read({made(), standalone});
    ASSERT_TRUE(page);
    EXPECT_EQ(page->state.top.sequence, 0u);
    EXPECT_EQ(page->state.top.epoch, epoch);
    EXPECT_FALSE(page->state.finished);
}

TEST_P(StoreContract, TakesAnyFenceOnTheStandaloneStream)
{
    stream_key const key{made(), standalone};
    EXPECT_TRUE(append(key, 0, {event("a")}));
    EXPECT_EQ(append(key, 12345, {event("b")})->sequence, 2u);
}

TEST_P(StoreContract, NamesItsEpochEverywhere)
{
    stream_key const key{made(), 1};
    auto const made_stream = try_open(key);
    EXPECT_EQ(made_stream->epoch, epoch);
    EXPECT_EQ(append(key, made_stream->fence, {event("a")})->epoch, epoch);
    EXPECT_EQ(read(key)->state.top.epoch, epoch);
}

TEST_P(StoreContract, DoesNotFindAStreamThatWasNotOpened)
{
    stream_key const key{made(), 1};
    EXPECT_EQ(error_of(append(key, 1, {event("a")})), errc::not_found);
    EXPECT_EQ(error_of(read(key)), errc::not_found);
    EXPECT_EQ(error_of(reader(key)), errc::not_found);
    EXPECT_FALSE(exists(key));
}

TEST_P(StoreContract, RefusesToOpenAStreamInASessionThatIsNotThere)
{
    EXPECT_EQ(error_of(try_open({key_of(1), 1})), errc::not_found);
}

TEST_P(StoreContract, RefusesToOpenAStreamTwice)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(error_of(try_open(key)), errc::conflict);
    EXPECT_TRUE(append(key, fence, {event("the first one goes on")}));
}

TEST_P(StoreContract, GivesEveryCallAFenceOfItsOwn)
{
    auto const session = made();
    EXPECT_NE(opened({session, 1}), opened({session, 2}));
}

TEST_P(StoreContract, KeepsWhatAStreamWasOpenedWith)
{
    stream_key const key{made(), 1};
    opened(key, "\"abc\"");
    auto const meta = await<stream_meta>([&](auto done) { store().inspect(key, std::move(done)); });
    ASSERT_TRUE(meta);
    EXPECT_EQ(meta->kind, stream_kind::request);
    EXPECT_EQ(meta->tag, "2025-11-25");
    EXPECT_EQ(meta->label, "\"abc\"");
}

// --- read

TEST_P(StoreContract, ReadsAfterASequence)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c")}));
    EXPECT_EQ(texts(read(key, 1)), (strings{"b", "c"}));
    EXPECT_EQ(texts(read(key, 2)), strings{"c"});
}

TEST_P(StoreContract, ReadsNothingAtTheEndAndBeyond)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a")}));
    EXPECT_EQ(sequences(read(key, 1)), numbers{});
    EXPECT_EQ(sequences(read(key, 1000)), numbers{});
    EXPECT_EQ(sequences(read(key, ~std::uint64_t(0))), numbers{});
}

TEST_P(StoreContract, ReadsAtMostAsManyEventsAsAsked)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c")}));
    EXPECT_EQ(sequences(read(key, 0, {2, 1u << 20})), (numbers{1, 2}));
}

TEST_P(StoreContract, ReadsAtMostAsManyBytesAsAsked)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("1234"), event("1234"), event("1234")}));
    EXPECT_EQ(sequences(read(key, 0, {100, 8})), (numbers{1, 2}));
    EXPECT_EQ(sequences(read(key, 0, {100, 7})), numbers{1});
}

TEST_P(StoreContract, ReadsAtLeastOneEventHoweverLarge)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event(std::string(1000, 'x')), event("b")}));
    EXPECT_EQ(sequences(read(key, 0, {100, 10})), numbers{1});
}

TEST_P(StoreContract, TellsTheStateOfAStream)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    EXPECT_EQ(read(key)->state.first_kept, 1u);
    ASSERT_TRUE(append(key, fence, {event("a"), event("b")}));
    auto const open_state = read(key, 2)->state;
    EXPECT_EQ(open_state.top.sequence, 2u);
    EXPECT_EQ(open_state.top.offset, 2u);
    EXPECT_FALSE(open_state.finished);
    finish(key, fence);
    auto const state = read(key, 3)->state;
    EXPECT_TRUE(state.finished);
    EXPECT_EQ(state.first_kept, 1u);
}

TEST_P(StoreContract, CarriesTheReadersMark)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b")}));
    store().note_reader(key, {true, 2, 2, 2, 2, 1});
    auto const mark = reader(key);
    ASSERT_TRUE(mark);
    EXPECT_TRUE(mark->attached);
    EXPECT_EQ(mark->position, 2u);
    EXPECT_EQ(mark->offset, 2u);
    EXPECT_EQ(mark->sent, 2u);
    EXPECT_EQ(mark->delivered, 1u);
    EXPECT_EQ(read(key)->state.reader.delivered, 1u);
}

// --- retention

TEST_P(StoreContract, KeepsTheNewestEventsByCount)
{
    limit_.events_per_stream = 3;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(append(key, fence, {event("x")}));
    auto const page = read(key);
    EXPECT_EQ(sequences(page), (numbers{8, 9, 10}));
    EXPECT_EQ(page->state.first_kept, 8u);
    EXPECT_EQ(page->state.top.sequence, 10u);
}

TEST_P(StoreContract, TrimsWithinABatch)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c"), event("d")}));
    EXPECT_EQ(texts(read(key)), (strings{"c", "d"}));
}

TEST_P(StoreContract, KeepsTheNewestEventsByBytes)
{
    limit_.bytes_per_stream = 64 * 1024;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    for (int i = 0; i < 50; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(8 * 1024, 'x'))}));
    auto const kept = sequences(read(key));
    EXPECT_LE(kept.size(), 8u);
    EXPECT_GE(kept.size(), 6u);
    EXPECT_EQ(kept.back(), 50u);
}

TEST_P(StoreContract, ReadsOnFromATrimmedAnchor)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a"), event("b"), event("c"), event("d")}));
    EXPECT_EQ(sequences(read(key, 1)), (numbers{3, 4}));
}

TEST_P(StoreContract, KeepsAnUndeliveredResponseThatTheCountHasPassedBy)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a"), response("answer"), event("c"), event("d"), event("e")}));
    auto const page = read(key);
    EXPECT_EQ(sequences(page), (numbers{2, 4, 5}));
    EXPECT_EQ(page->state.first_kept, 2u);
}

TEST_P(StoreContract, KeepsAnUndeliveredResponseThatBytesHavePassedBy)
{
    limit_.bytes_per_stream = 64 * 1024;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {response("answer")}));
    for (int i = 0; i < 30; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(8 * 1024, 'x'))}));
    EXPECT_EQ(sequences(read(key)).front(), 1u);
}

TEST_P(StoreContract, PagesThroughPinnedResponses)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    ASSERT_TRUE(
        append(key, opened(key), {response("a"), event("b"), response("c"), event("d"), event("e"), event("f")}));
    EXPECT_EQ(sequences(read(key, 0, {2, 1000})), (numbers{1, 3}));
    EXPECT_EQ(sequences(read(key, 1, {2, 1000})), (numbers{3, 5}));
    EXPECT_EQ(sequences(read(key, 3, {2, 1000})), (numbers{5, 6}));
}

TEST_P(StoreContract, TrimsADeliveredResponse)
{
    limit_.events_per_stream = 2;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {response("answer")}));
    deliver(key);
    ASSERT_TRUE(append(key, fence, {event("b"), event("c"), event("d")}));
    EXPECT_EQ(sequences(read(key)), (numbers{3, 4}));
}

TEST_P(StoreContract, AgesARequestStreamFromItsFinish)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    now_ += limit_.event_age * 2;
    finish(key, fence);
    deliver(key);
    sweep_after(limit_.event_age - std::chrono::seconds(1));
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2}));
    sweep_after(std::chrono::seconds(1));
    EXPECT_FALSE(exists(key));
}

TEST_P(StoreContract, NeverAgesAnOpenRequestStream)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a")}));
    sweep_after(limit_.event_age * 100);
    EXPECT_EQ(sequences(read(key)), numbers{1});
}

TEST_P(StoreContract, KeepsAnUndeliveredResponseBeyondItsAge)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    finish(key, fence);
    sweep_after(limit_.event_age * 10);
    auto const page = read(key);
    EXPECT_EQ(sequences(page), numbers{2});
    EXPECT_TRUE(page->state.finished);
}

TEST_P(StoreContract, DropsAnAgedStreamOnceItsResponseIsDelivered)
{
    stream_key const key{made(), 1};
    finish(key, opened(key));
    sweep_after(limit_.event_age * 2);
    ASSERT_TRUE(exists(key));
    deliver(key);
    sweep_after(limit_.event_age * 2);
    EXPECT_FALSE(exists(key));
}

TEST_P(StoreContract, DoesNotAgeAStreamThatIsBeingRead)
{
    stream_key const key{made(), 1};
    finish(key, opened(key));
    store().note_reader(key, {true, 1, 6, 1, 1, 1});
    sweep_after(limit_.event_age * 2);
    EXPECT_EQ(sequences(read(key)), numbers{1});
}

TEST_P(StoreContract, AgesTheStandaloneStreamEventByEvent)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(append(key, 0, {event("a")}));
    now_ += limit_.event_age / 2;
    ASSERT_TRUE(append(key, 0, {event("b")}));
    sweep_after(limit_.event_age / 2);
    EXPECT_EQ(sequences(read(key)), numbers{2});
    sweep_after(limit_.event_age / 2);
    auto const page = read(key);
    EXPECT_EQ(sequences(page), numbers{});
    EXPECT_EQ(page->state.top.sequence, 2u);
    EXPECT_EQ(page->state.first_kept, 3u);
}

TEST_P(StoreContract, GoesOnNumberingAfterEverythingHasAged)
{
    stream_key const key{made(), standalone};
    ASSERT_TRUE(append(key, 0, {event("a"), event("b")}));
    sweep_after(limit_.event_age);
    EXPECT_EQ(append(key, 0, {event("c")})->sequence, 3u);
    sweep_after(limit_.event_age);
    EXPECT_EQ(sequences(read(key)), numbers{});
}

TEST_P(StoreContract, BoundsTheBytesOfASession)
{
    limit_.bytes_per_session = 128 * 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(8 * 1024, 'x'))}));
    EXPECT_LE(store().used().bytes, limit_.bytes_per_session);
    EXPECT_EQ(sequences(read(key)).back(), 100u);
}

TEST_P(StoreContract, TrimsTheAppendingStreamNotAnother)
{
    limit_.bytes_per_session = 128 * 1024;
    auto const session = made();
    stream_key const quiet{session, 1};
    stream_key const loud{session, 2};
    ASSERT_TRUE(append(quiet, opened(quiet), {event(std::string(32 * 1024, 'q'))}));
    auto const fence = opened(loud, "2");
    for (int i = 0; i < 50; ++i)
        ASSERT_TRUE(append(loud, fence, {event(std::string(8 * 1024, 'x'))}));
    EXPECT_EQ(sequences(read(quiet)), numbers{1});
}

TEST_P(StoreContract, RefusesNewCallsOfAFullSession)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    std::error_code why;
    for (int i = 0; i < 1000 && !why; ++i)
        why = error_of(append(key, fence, {response(std::string(1024, 'x'))}));
    EXPECT_EQ(why, errc::no_space);
    std::error_code refused;
    for (stream_id id = 2; id < 200 && !refused; ++id)
        refused = error_of(try_open({session, id}));
    EXPECT_EQ(refused, errc::no_space);
}

TEST_P(StoreContract, DropsFinishedAndDeliveredStreamsForBytes)
{
    limit_.bytes_per_session = 128 * 1024;
    auto const session = made();
    stream_key const old{session, 1};
    auto const old_fence = opened(old);
    ASSERT_TRUE(append(old, old_fence, {event(std::string(60 * 1024, 'o'))}));
    finish(old, old_fence);
    deliver(old);
    stream_key const key{session, 2};
    auto const fence = opened(key, "2");
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(append(key, fence, {event(std::string(10 * 1024, 'x'))}));
    EXPECT_FALSE(exists(old));
    EXPECT_EQ(sequences(read(key)).size(), 10u);
}

TEST_P(StoreContract, BoundsTheBytesOfAllSessions)
{
    limit_.bytes_total = 256 * 1024;
    limit_.bytes_per_session = 256 * 1024;
    for (std::uint64_t n = 1; n <= 10; ++n) {
        stream_key const key{made(n), 1};
        if (auto const stream = try_open(key))
            for (int i = 0; i < 20; ++i)
                (void)append(key, stream->fence, {event(std::string(8 * 1024, 'x'))});
    }
    EXPECT_LE(store().used().bytes, limit_.bytes_total);
    EXPECT_GT(store().used().bytes, limit_.bytes_total / 2);
}

TEST_P(StoreContract, BoundsTheBytesOfAPrincipal)
{
    limit_.bytes_per_principal = 128 * 1024;
    auto const fill = [&](session_key const& session) {
        stream_key const key{session, 1};
        auto const stream = try_open(key);
        for (std::size_t size = stream ? 8 * 1024 : 0; size > 100; size /= 2)
            while (append(key, stream->fence, {response(std::string(size, 'x'))})) {
            }
    };
    fill(made(1, "ann"));
    fill(made(2, "ann"));
    EXPECT_LE(store().used().bytes, limit_.bytes_per_principal);
    EXPECT_EQ(error_of(try_open({made(3, "ann"), 1})), errc::no_space);
    // Another's room is not touched, and an ended session gives its own back.
    EXPECT_TRUE(try_open({made(4, "bob"), 1}));
    ASSERT_TRUE(end(key_of(1, "ann")));
    EXPECT_TRUE(try_open({key_of(3, "ann"), 1}));
}

TEST_P(StoreContract, KeepsRoomForTheAnswerOfEveryCall)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    stream_key const greedy{session, 1};
    stream_key const modest{session, 2};
    auto const greedy_fence = opened(greedy, "1");
    auto const modest_fence = opened(modest, "2");
    while (append(greedy, greedy_fence, {event(std::string(512, 'x'), event_kind::question)})) {
    }
    // The reserve beyond the limit goes to an answer as large as it takes.
    std::size_t size = 32 * 1024;
    while (size > 100 && !append(greedy, greedy_fence, {response(std::string(size, 'y'))}, true))
        size -= 100;
    ASSERT_GT(size, 100u);
    EXPECT_TRUE(append(modest, modest_fence, {response(std::string(300, 'z'))}, true));
}

// --- calls that are to be made once

TEST_P(StoreContract, GivesTheSecondCallWithAKeyItsTwin)
{
    auto const session = made();
    auto const first = open_once({session, 1}, "k");
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->twin);
    auto const second = open_once({session, 2}, "k");
    ASSERT_TRUE(second);
    EXPECT_EQ(second->twin, stream_id(1));
    finish({session, 1}, first->fence);
    auto const third = open_once({session, 3}, "k");
    ASSERT_TRUE(third);
    EXPECT_EQ(third->twin, stream_id(1)); // the first, not the newest
    // Other keys and other sessions have nothing to do with it.
    EXPECT_FALSE(open_once({session, 4}, "other")->twin);
    EXPECT_FALSE(open_once({made(2), 5}, "k")->twin);
    EXPECT_FALSE(try_open({session, 6})->twin);
}

TEST_P(StoreContract, RefusesAKeyOfAnotherCall)
{
    auto const session = made();
    ASSERT_TRUE(open_once({session, 1}, "k", 7));
    EXPECT_EQ(error_of(open_once({session, 2}, "k", 8)), errc::key_mismatch);
    EXPECT_FALSE(exists({session, 2}));
}

TEST_P(StoreContract, RemembersAKeyLongerThanItsStream)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    auto const first = open_once({session, 1}, "k");
    ASSERT_TRUE(first);
    finish({session, 1}, first->fence);
    deliver({session, 1});
    opened({session, 2}); // takes its place
    ASSERT_FALSE(exists({session, 1}));
    EXPECT_EQ(error_of(open_once({session, 3}, "k")), errc::key_spent);
}

TEST_P(StoreContract, BoundsTheKeysItRemembers)
{
    limit_.streams_per_session = 1;
    limit_.keys_per_session = 3;
    auto const session = made();
    for (stream_id id = 1; id <= 20; ++id) {
        auto const made_call = open_once({session, id}, "k" + std::to_string(id));
        ASSERT_TRUE(made_call);
        finish({session, id}, made_call->fence);
        deliver({session, id});
    }
    auto const used = store().used().bytes;
    EXPECT_LT(used, 4096u);
    // Of the twenty the last has its stream, three are remembered.
    for (auto const* key : {"k17", "k18", "k19"})
        EXPECT_EQ(error_of(open_once({session, 100}, key)), errc::key_spent) << key;
    auto const older = open_once({session, 102}, "k16");
    ASSERT_TRUE(older);
    EXPECT_FALSE(older->twin);
    finish({session, 102}, older->fence);
    deliver({session, 102});
    auto const forgotten = open_once({session, 101}, "k1");
    ASSERT_TRUE(forgotten);
    EXPECT_FALSE(forgotten->twin);
    ASSERT_TRUE(end(session));
    EXPECT_EQ(store().used().bytes, 0u);
}

// --- questions

TEST_P(StoreContract, KeepsAQuestionUntilItIsDeliveredOrBlank)
{
    limit_.events_per_stream = 3;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("q", event_kind::question), event("r", event_kind::question)}));
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(append(key, fence, {event("x")}));
    EXPECT_EQ(sequences(read(key)), (numbers{1, 2, 10, 11, 12}));
    ASSERT_TRUE(blank(key, fence, 1));
    auto const page = read(key);
    ASSERT_TRUE(page);
    EXPECT_EQ(*page->events[0].payload, "");
    EXPECT_EQ(*page->events[1].payload, "r");
    // One that is not kept is no error; one of another owner is.
    EXPECT_TRUE(blank(key, fence, 5));
    EXPECT_TRUE(blank(key, fence, 500));
    EXPECT_EQ(error_of(blank(key, fence + 1, 2)), errc::fenced);
}

TEST_P(StoreContract, GivesBackTheRoomOfABlank)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const before = store().used().bytes;
    ASSERT_TRUE(append(key, fence, {event(std::string(5000, 'q'), event_kind::question)}));
    ASSERT_TRUE(blank(key, fence, 1));
    EXPECT_LT(store().used().bytes, before + 1000);
    ASSERT_TRUE(end(key.session));
    EXPECT_EQ(store().used().bytes, 0u);
}

// --- several requests on one stream

TEST_P(StoreContract, FindsACallByEachOfItsLabels)
{
    auto const session = made();
    opened({session, 1}, "1\n\"two\"\n3");
    for (auto const* label : {"1", "\"two\"", "3"}) {
        auto const found = find(session, label);
        ASSERT_TRUE(found) << label;
        EXPECT_EQ(found->stream.stream, 1u);
    }
    EXPECT_EQ(error_of(find(session, "2")), errc::not_found);
    EXPECT_EQ(error_of(find(session, "two")), errc::not_found);
}

TEST_P(StoreContract, KeepsRoomForEachAnswerOfABatch)
{
    limit_.bytes_per_session = 64 * 1024;
    stream_key const key{made(), 1};
    auto const fence = opened(key, "1\n2\n3");
    while (append(key, fence, {event(std::string(512, 'x'), event_kind::question)})) {
    }
    for (int i = 0; i < 2; ++i)
        EXPECT_TRUE(append(key, fence, {response(std::string(500, 'a'))}));
    EXPECT_TRUE(append(key, fence, {response(std::string(500, 'a'))}, true));
}

TEST_P(StoreContract, RefusesNewCallsOfAFullStore)
{
    limit_.bytes_total = 64 * 1024;
    stream_key const key{made(1), 1};
    auto const fence = opened(key);
    while (append(key, fence, {response(std::string(1024, 'x'))})) {
    }
    auto const other = made(2);
    std::error_code refused;
    for (stream_id id = 1; id < 200 && !refused; ++id)
        refused = error_of(try_open({other, id}));
    EXPECT_EQ(refused, errc::no_space);
}

TEST_P(StoreContract, TakesAShortAnswerOfEveryOpenCallWhenFull)
{
    limit_.bytes_total = 256 * 1024;
    std::vector<std::pair<stream_key, fence>> calls;
    for (std::uint64_t n = 1; n <= 2; ++n) {
        auto const session = made(n);
        for (stream_id id = 1; id <= 30; ++id)
            calls.emplace_back(stream_key{session, id}, opened({session, id}, std::to_string(id)));
    }
    // Undelivered questions cannot be trimmed, so this really fills it.
    while (append(calls[0].first, calls[0].second, {event(std::string(512, 'x'), event_kind::question)})) {
    }
    for (auto const& [key, fence] : calls)
        EXPECT_TRUE(append(key, fence, {response(std::string(500, 'a'))}, true)) << key.stream;
    for (auto const& [key, fence] : calls)
        EXPECT_EQ(*read(key)->events.back().payload, std::string(500, 'a')) << key.stream;
}

TEST_P(StoreContract, ChangesNothingByAnAppendThatDoesNotFit)
{
    limit_.bytes_per_session = 64 * 1024;
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("history"), event("more")}));
    EXPECT_EQ(error_of(append(key, fence, {event(std::string(80 * 1024, 'x'))})), errc::no_space);
    EXPECT_EQ(texts(read(key)), (strings{"history", "more"}));
}

TEST_P(StoreContract, DropsTheOldestFinishedAndDeliveredStreamFirst)
{
    limit_.streams_per_session = 3;
    auto const session = made();
    finished_and_delivered({session, 30});
    finished_and_delivered({session, 10});
    finished_and_delivered({session, 20});
    EXPECT_TRUE(try_open({session, 40}));
    EXPECT_FALSE(exists({session, 30}));
    EXPECT_TRUE(exists({session, 10}));
    EXPECT_TRUE(exists({session, 20}));
}

TEST_P(StoreContract, NeverDropsARunningAnUndeliveredOrAnAttachedStreamForAnother)
{
    limit_.streams_per_session = 4;
    auto const session = made();
    opened({session, 1}); // runs
    finish({session, 2}, opened({session, 2})); // undelivered
    finished_and_delivered({session, 3});
    store().note_reader({session, 3}, {true, 1, 6, 1, 0, 1}); // being read again
    finished_and_delivered({session, 4});
    EXPECT_TRUE(try_open({session, 5}));
    EXPECT_FALSE(exists({session, 4}));
    EXPECT_EQ(error_of(try_open({session, 6})), errc::too_many_streams);
    for (stream_id const id : {1u, 2u, 3u, 5u})
        EXPECT_TRUE(exists({session, id})) << id;
}

TEST_P(StoreContract, DoesNotCountTheStandaloneStream)
{
    limit_.streams_per_session = 1;
    auto const session = made();
    ASSERT_TRUE(append({session, standalone}, 0, {event("a")}));
    EXPECT_TRUE(try_open({session, 1}));
    EXPECT_EQ(error_of(try_open({session, 2})), errc::too_many_streams);
}

// --- watch

TEST_P(StoreContract, WakesAfterGrowth)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    int woken = 0;
    auto const handle = store().watch(key, event_store::interest::growth, [&] { ++woken; });
    EXPECT_EQ(woken, 0);
    ASSERT_TRUE(append(key, fence, {event("a")}));
    GetParam().wait([&] { return woken > 0; });
    EXPECT_GT(woken, 0);
}

TEST_P(StoreContract, ShowsTheEventToTheOneItWakes)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    bool was_there = false;
    auto const handle
        = store().watch(key, event_store::interest::growth, [&] { was_there = read(key)->state.top.sequence == 1; });
    ASSERT_TRUE(append(key, fence, {event("a")}));
    GetParam().wait([&] { return was_there; });
    EXPECT_TRUE(was_there);
}

TEST_P(StoreContract, WakesAfterTheFinish)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    int woken = 0;
    auto const handle = store().watch(key, event_store::interest::growth, [&] { ++woken; });
    ASSERT_TRUE(append(key, fence, {}, true));
    GetParam().wait([&] { return woken > 0; });
    EXPECT_GT(woken, 0);
}

TEST_P(StoreContract, WakesAfterTheEndOfTheSession)
{
    auto const session = made();
    opened({session, 1});
    int woken = 0;
    bool was_gone = false;
    auto const handle = store().watch({session, 1}, event_store::interest::growth, [&] {
        ++woken;
        was_gone = !exists({session, 1});
    });
    auto const other = store().watch({session, standalone}, event_store::interest::growth, [&] { ++woken; });
    ASSERT_TRUE(end(session));
    GetParam().wait([&] { return woken >= 2; });
    EXPECT_GE(woken, 2);
    EXPECT_TRUE(was_gone);
}

TEST_P(StoreContract, DoesNotWakeWhenTheHandleHasGone)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    int woken = 0;
    auto handle = store().watch(key, event_store::interest::growth, [&] { ++woken; });
    handle.reset();
    ASSERT_TRUE(append(key, fence, {event("a")}));
    ASSERT_TRUE(end(key.session));
    EXPECT_EQ(woken, 0);
}

TEST_P(StoreContract, LetsAHandleOutliveItsSession)
{
    stream_key const key{made(), 1};
    opened(key);
    auto handle = store().watch(key, event_store::interest::growth, [] {});
    ASSERT_TRUE(end(key.session));
    handle.reset();
}

TEST_P(StoreContract, WakesTheWriterWhenTheReaderMoves)
{
    stream_key const key{made(), 1};
    ASSERT_TRUE(append(key, opened(key), {event("a")}));
    int woken = 0;
    auto const handle = store().watch(key, event_store::interest::reader, [&] { ++woken; });
    store().note_reader(key, {true, 1, 1, 1, 1, 1});
    GetParam().wait([&] { return woken > 0; });
    EXPECT_GT(woken, 0);
}

TEST_P(StoreContract, IgnoresAMarkOnAStreamThatIsNotThere)
{
    auto const session = made();
    store().note_reader({session, 5}, {true, 1, 1, 1, 1, 1});
    EXPECT_FALSE(exists({session, 5}));
}

// --- sessions

TEST_P(StoreContract, LoadsWhatWasCreated)
{
    auto record = record_of(key_of(1, "someone"));
    record.client_info = R"({"name":"x"})";
    record.client_capabilities = R"({"roots":{}})";
    record.log_level = 3;
    record.subscriptions = {"a", "b"};
    ASSERT_TRUE(await<void>([&](auto done) { store().create(record, now_, std::move(done)); }));
    auto const loaded = load(record.key);
    ASSERT_TRUE(loaded);
    EXPECT_EQ((*loaded)->key, record.key);
    EXPECT_EQ((*loaded)->standalone, record.standalone);
    EXPECT_EQ((*loaded)->version, record.version);
    EXPECT_EQ((*loaded)->client_info, record.client_info);
    EXPECT_EQ((*loaded)->client_capabilities, record.client_capabilities);
    EXPECT_EQ((*loaded)->log_level, 3);
    EXPECT_EQ((*loaded)->subscriptions, record.subscriptions);
    EXPECT_FALSE((*loaded)->initialized);
}

TEST_P(StoreContract, RefusesToCreateASessionTwice)
{
    auto const key = made();
    EXPECT_EQ(error_of(create(key)), errc::conflict);
    EXPECT_EQ(store().used().sessions, 1u);
}

TEST_P(StoreContract, BoundsTheNumberOfSessions)
{
    limit_.sessions = 2;
    made(1);
    made(2);
    EXPECT_EQ(error_of(create(key_of(3))), errc::too_many_sessions);
    ASSERT_TRUE(end(key_of(1)));
    EXPECT_TRUE(create(key_of(3)));
}

TEST_P(StoreContract, UpdatesARecordAndGivesItTheNextRevision)
{
    auto record = *load(made()).value();
    record.initialized = true;
    auto const stored = update(record);
    ASSERT_TRUE(stored);
    EXPECT_EQ((*stored)->revision, record.revision + 1);
    EXPECT_TRUE((*load(record.key))->initialized);
}

TEST_P(StoreContract, RefusesAnUpdateOfAnOlderRevision)
{
    auto record = *load(made()).value();
    record.log_level = 1;
    ASSERT_TRUE(update(record));
    record.log_level = 2;
    EXPECT_EQ(error_of(update(record)), errc::conflict);
    EXPECT_EQ((*load(record.key))->log_level, 1);
}

TEST_P(StoreContract, RefusesAnUpdateOfASessionThatIsNotThere)
{
    EXPECT_EQ(error_of(update(record_of(key_of(1)))), errc::not_found);
}

TEST_P(StoreContract, KeepsALoadedRecordAsItWas)
{
    auto const before = load(made()).value();
    auto record = *before;
    record.log_level = 5;
    ASSERT_TRUE(update(record));
    EXPECT_EQ(before->log_level, 0);
}

TEST_P(StoreContract, ExpiresASessionThatWasNeverTouched)
{
    auto const key = made();
    now_ += limit_.session_idle - std::chrono::milliseconds(1);
    EXPECT_TRUE(expired().empty());
    now_ += std::chrono::milliseconds(1);
    EXPECT_EQ(expired(), std::vector{key});
}

TEST_P(StoreContract, CountsIdlenessFromTheLastTouch)
{
    auto const key = made();
    now_ += limit_.session_idle / 2;
    store().touch(key, now_, presence::idle);
    now_ += limit_.session_idle / 2;
    EXPECT_TRUE(expired().empty());
    now_ += limit_.session_idle / 2;
    EXPECT_EQ(expired(), std::vector{key});
}

TEST_P(StoreContract, NeverExpiresAHeldSession)
{
    auto const key = made();
    store().touch(key, now_, presence::held);
    now_ += limit_.session_idle * 100;
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, ExpiresASessionThatIsNoLongerHeld)
{
    auto const key = made();
    store().touch(key, now_, presence::held);
    now_ += limit_.session_idle * 3;
    store().touch(key, now_, presence::idle);
    EXPECT_TRUE(expired().empty());
    now_ += limit_.session_idle;
    EXPECT_EQ(expired(), std::vector{key});
}

TEST_P(StoreContract, IsNotSetBackByALateTouch)
{
    auto const key = made();
    now_ += limit_.session_idle / 2;
    store().touch(key, now_, presence::idle);
    store().touch(key, now_ - limit_.session_idle / 2, presence::idle);
    now_ += limit_.session_idle / 2;
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, GivesAtMostAsManyExpiredSessionsAsAskedAndAllInTheEnd)
{
    for (std::uint64_t n = 1; n <= 25; ++n)
        made(n);
    now_ += limit_.session_idle;
    std::size_t ended = 0;
    for (int round = 0; round < 3; ++round) {
        auto const some = expired(10);
        EXPECT_LE(some.size(), 10u);
        for (auto const& key : some)
            ended += end(key).has_value();
    }
    EXPECT_EQ(ended, 25u);
}

TEST_P(StoreContract, KeepsAnExpiredSessionUntilItIsEnded)
{
    auto const key = made();
    now_ += limit_.session_idle;
    ASSERT_FALSE(expired().empty());
    EXPECT_TRUE(load(key));
    store().touch(key, now_, presence::held);
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, RemovesEverythingOfASessionAtItsEnd)
{
    limit_.events_per_stream = 2;
    auto const key = made();
    auto const fence = opened({key, 1});
    ASSERT_TRUE(append({key, 1}, fence, {response("pinned"), event("b"), event("c"), event("d")}));
    finished_and_delivered({key, 2}, "2");
    ASSERT_TRUE(append({key, standalone}, 0, {event("x")}));
    opened({key, 3});
    ASSERT_TRUE(end(key));
    auto const left = store().used();
    EXPECT_EQ(left.sessions, 0u);
    EXPECT_EQ(left.streams, 0u);
    EXPECT_EQ(left.bytes, 0u);
    EXPECT_EQ(error_of(load(key)), errc::not_found);
    for (stream_id const id : {stream_id(1), stream_id(2), stream_id(3), standalone})
        EXPECT_FALSE(exists({key, id})) << id;
    EXPECT_EQ(error_of(append({key, 1}, fence, {event("late")})), errc::not_found);
    EXPECT_EQ(running(key), ids{});
    sweep_after(limit_.event_age * 3);
    EXPECT_TRUE(expired().empty());
}

TEST_P(StoreContract, DoesNotFindASessionToEndTwice)
{
    auto const key = made();
    ASSERT_TRUE(end(key));
    EXPECT_EQ(error_of(end(key)), errc::not_found);
}

TEST_P(StoreContract, StartsAnewUnderAnEndedId)
{
    auto const key = made();
    ASSERT_TRUE(append({key, standalone}, 0, {event("old")}));
    ASSERT_TRUE(end(key));
    ASSERT_TRUE(create(key));
    EXPECT_EQ(read({key, standalone})->state.top.sequence, 0u);
}

TEST_P(StoreContract, DoesNotFindASessionUnderAnotherPrincipal)
{
    auto const own = made(1, "alice");
    auto const foreign = key_of(1, "bob");
    auto const fence = opened({own, 1});
    EXPECT_EQ(error_of(load(foreign)), errc::not_found);
    EXPECT_EQ(error_of(update(record_of(foreign))), errc::not_found);
    EXPECT_EQ(error_of(end(foreign)), errc::not_found);
    EXPECT_EQ(error_of(try_open({foreign, 2})), errc::not_found);
    EXPECT_EQ(error_of(append({foreign, 1}, fence, {event("x")})), errc::not_found);
    EXPECT_EQ(error_of(read({foreign, 1})), errc::not_found);
    EXPECT_EQ(error_of(read({foreign, standalone})), errc::not_found);
    EXPECT_EQ(error_of(claim({foreign, 1}, "node/2")), errc::not_found);
    EXPECT_EQ(error_of(find(foreign, "1")), errc::not_found);
    EXPECT_EQ(running(foreign), ids{});
    store().touch(foreign, now_, presence::held);
    store().note_reader({foreign, 1}, {true, 1, 1, 1, 1, 1});
    EXPECT_FALSE(reader({own, 1})->attached);
    now_ += limit_.session_idle;
    EXPECT_EQ(expired(), std::vector{own});
}

TEST_P(StoreContract, KeepsTheSameIdOfTwoPrincipalsApart)
{
    auto const alice = made(1, "alice");
    auto const bob = made(1, "bob");
    ASSERT_TRUE(append({alice, standalone}, 0, {event("for alice")}));
    EXPECT_EQ(texts(read({bob, standalone})), strings{});
    ASSERT_TRUE(end(bob));
    EXPECT_EQ(texts(read({alice, standalone})), strings{"for alice"});
}

// --- calls

TEST_P(StoreContract, LapsesTheCallsOfAnOwnerThatDoesNotRenew)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    opened({session, 1}, "1", "node/1");
    EXPECT_EQ(lapsed(), ids{});
    now_ += std::chrono::seconds(15);
    EXPECT_EQ(lapsed(), ids{1});
}

TEST_P(StoreContract, DoesNotLapseTheCallsOfAnOwnerThatRenews)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    store().renew("node/2", now_ + std::chrono::seconds(15));
    opened({session, 1}, "1", "node/1");
    opened({session, 2}, "2", "node/2");
    now_ += std::chrono::seconds(10);
    store().renew("node/1", now_ + std::chrono::seconds(15));
    now_ += std::chrono::seconds(10);
    EXPECT_EQ(lapsed(), ids{2});
}

TEST_P(StoreContract, DoesNotLapseAFinishedCall)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    finish({session, 1}, opened({session, 1}));
    now_ += std::chrono::hours(1);
    EXPECT_EQ(lapsed(), ids{});
}

TEST_P(StoreContract, GivesAtMostAsManyLapsedCallsAsAsked)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    for (stream_id id = 1; id <= 5; ++id)
        opened({session, id}, std::to_string(id));
    now_ += std::chrono::hours(1);
    EXPECT_EQ(lapsed(3).size(), 3u);
}

TEST_P(StoreContract, HandsAClaimedCallToItsNewOwner)
{
    auto const session = made();
    store().renew("node/1", now_ + std::chrono::seconds(15));
    opened({session, 1}, "1", "node/1");
    now_ += std::chrono::seconds(20);
    store().renew("node/2", now_ + std::chrono::seconds(15));
    ASSERT_TRUE(claim({session, 1}, "node/2"));
    EXPECT_EQ(lapsed(), ids{});
    EXPECT_EQ(find(session, "1")->owner, "node/2");
}

TEST_P(StoreContract, FindsTheNewestCallWithALabel)
{
    auto const session = made();
    opened({session, 50}, "0");
    opened({session, 10}, "0", "node/2");
    opened({session, 90}, "1");
    auto const found = find(session, "0");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->stream, (stream_key{session, 10}));
    EXPECT_EQ(found->owner, "node/2");
    EXPECT_EQ(found->label, "0");
}

TEST_P(StoreContract, TellsTheLabelsOfANumberAndAStringApart)
{
    auto const session = made();
    opened({session, 1}, "1");
    opened({session, 2}, "\"1\"");
    EXPECT_EQ(find(session, "1")->stream.stream, 1u);
    EXPECT_EQ(find(session, "\"1\"")->stream.stream, 2u);
}

TEST_P(StoreContract, FindsNoOlderCallBehindAFinishedOne)
{
    auto const session = made();
    opened({session, 1}, "0");
    finish({session, 2}, opened({session, 2}, "0"));
    EXPECT_EQ(error_of(find(session, "0")), errc::finished);
}

TEST_P(StoreContract, FindsNothingForAnUnusedLabel)
{
    auto const session = made();
    ASSERT_TRUE(append({session, standalone}, 0, {event("a")}));
    EXPECT_EQ(error_of(find(session, "0")), errc::not_found);
    EXPECT_EQ(error_of(find(session, "")), errc::not_found);
    EXPECT_EQ(error_of(find(key_of(2), "0")), errc::not_found);
}

TEST_P(StoreContract, ListsTheRunningCallsOfASession)
{
    auto const session = made();
    opened({session, 1});
    finish({session, 2}, opened({session, 2}));
    opened({session, 3});
    ASSERT_TRUE(append({session, standalone}, 0, {event("a")}));
    opened({made(2), 4});
    EXPECT_EQ(running(session), (ids{1, 3}));
}

// --- mail

TEST_P(StoreContract, BringsAMessageToTheOwner)
{
    auto const session = made();
    std::vector<owner_message> got;
    auto const mine = store().listen("node/1", [&](owner_message message) { got.push_back(std::move(message)); });
    auto const other = store().listen("node/2", [](owner_message) { FAIL() << "a message for another owner"; });
    ASSERT_TRUE(send("node/1", {{session, 5}, "cancel", "body"}));
    GetParam().wait([&] { return !got.empty(); });
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].stream, (stream_key{session, 5}));
    EXPECT_EQ(got[0].kind, "cancel");
    EXPECT_EQ(got[0].body, "body");
}

TEST_P(StoreContract, TellsThatAnOwnerDoesNotListen)
{
    auto const session = made();
    EXPECT_EQ(error_of(send("node/1", {{session, 5}, "cancel", ""})), errc::not_found);
    auto handle = store().listen("node/1", [](owner_message) { FAIL() << "nobody listens any more"; });
    handle.reset();
    EXPECT_EQ(error_of(send("node/1", {{session, 5}, "cancel", ""})), errc::not_found);
}

// --- use

TEST_P(StoreContract, CountsWhatItUses)
{
    EXPECT_EQ(store().used().bytes, 0u);
    auto const session = made();
    opened({session, 1});
    ASSERT_TRUE(append({session, standalone}, 0, {event(std::string(1000, 'x'))}));
    auto const used = store().used();
    EXPECT_EQ(used.sessions, 1u);
    EXPECT_EQ(used.streams, 2u);
    EXPECT_GE(used.bytes, 1000u);
}

}
