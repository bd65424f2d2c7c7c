// What every store promises, as tests over a factory: the fixture. The tests are in the files beside this one, by
// subject. A backend passes by linking and instantiating them:
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
        auto const created = create(record_of(key));
        return created ? result<void>() : std::unexpected(created.error());
    }
    result<std::shared_ptr<session_record const>> create(session_record const& record)
    {
        return await<std::shared_ptr<session_record const>>(
            [&](auto done) { store().create(record, now_, std::move(done)); });
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
    result<claimed_call> claim(stream_key const& key, std::string const& owner)
    {
        return await<claimed_call>([&](auto done) { store().claim(key, owner, std::move(done)); });
    }
    result<void> subscribe(session_key const& key, std::string uri, std::size_t limit = 100)
    {
        return await<void>([&](auto done) { store().subscribe(key, std::move(uri), limit, std::move(done)); });
    }
    result<void> unsubscribe(session_key const& key, std::string_view uri)
    {
        return await<void>([&](auto done) { store().unsubscribe(key, uri, std::move(done)); });
    }
    /// All of them, by pages of that size.
    std::vector<subscriber> subscribers(std::string_view uri, std::size_t page_size = 100)
    {
        std::vector<subscriber> all;
        for (std::optional<session_key> after;;) {
            auto const page = await<std::vector<subscriber>>(
                [&](auto done) { store().subscribers(uri, after, page_size, std::move(done)); });
            all.insert(all.end(), page->begin(), page->end());
            if (page->size() < page_size)
                return all;
            after = page->back().session;
        }
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

}
