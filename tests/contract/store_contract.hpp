// What every store promises, as tests over a factory: the fixture. The tests are in the files beside this one, by
// subject. A backend passes by linking them and instantiating StoreContract with a tested_store of its own, as
// memory_contract_test.cpp does.
//
// Sizes are chosen so that a backend may charge an event some hundred bytes beside its payload. Times are chosen so
// that a store's clock may also go on by itself: nothing is asked for within a `moment` of when it is due.
#pragma once

#include "store/ports.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace belay::store {

/// A store under test, with its time and its work in the test's hands.
class tested_store {
public:
    virtual ~tested_store() = default;
    [[nodiscard]] virtual backend& store() = 0;
    /// Lets the store's time pass.
    virtual void advance(base::duration by) = 0;
    /// How late it may remove an idle session: up to `store::expiry_slack`.
    [[nodiscard]] virtual base::duration slack() const { return base::duration::zero(); }
    /// Lets the store work for a moment. False once there is nothing that is worth waiting for.
    virtual bool work() { return false; }
    /// Lets the store do all that it was told to do, what nobody waits for included.
    virtual void settle() {}
};

struct store_factory {
    std::string name;
    /// The epoch names the life of the store.
    std::function<std::unique_ptr<tested_store>(limits const&, std::uint64_t epoch)> make;
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

inline void PrintTo(session_key const& key, std::ostream* out)
{
    *out << key.principal << '/' << key.id.low;
}

using ids = std::vector<stream_id>;
using strings = std::vector<std::string>;
using numbers = std::vector<std::uint64_t>;

class StoreContract : public testing::TestWithParam<store_factory> {
protected:
    static constexpr std::uint64_t epoch = 77;
    static constexpr stream_id standalone = 9000;
    static constexpr base::duration moment = std::chrono::seconds(5);
    static constexpr base::duration lease = std::chrono::minutes(1); // of owners that are to die
    static constexpr read_limit whole{100'000, 1u << 30};
    inline static std::string const node_1 = "node/1"; // live for as long as a test goes on
    inline static std::string const node_2 = "node/2";

    limits limit_; // before the first use of store()

    backend& store()
    {
        if (!tested_) {
            tested_ = GetParam().make(limit_, epoch);
            for (auto const& owner : {node_1, node_2})
                EXPECT_TRUE(renew(owner, std::chrono::hours(100'000)));
        }
        return tested_->store();
    }
    void advance(base::duration by)
    {
        store();
        tested_->advance(by);
    }

    /// So long after its time an idle session is gone.
    base::duration overdue()
    {
        store();
        return moment + tested_->slack();
    }

    /// Lets the store work until this holds. What is only a hint, or is counted late, is waited for with it.
    template<class Condition>
    bool eventually(Condition const& holds)
    {
        store();
        while (!holds())
            if (!tested_->work())
                return holds();
        return true;
    }
    /// The outcome of a function that takes a completion.
    template<class T, class Start>
    result<T> await(Start const& start)
    {
        // Shared with the completion, which may come when the test has given up.
        auto const outcome = std::make_shared<std::optional<result<T>>>();
        auto const calls = std::make_shared<int>(0);
        start(completion<T>([outcome, calls](result<T> given) {
            EXPECT_EQ(++*calls, 1) << "the store completed twice";
            outcome->emplace(std::move(given));
        }));
        if (!eventually([&] { return outcome->has_value(); })) {
            ADD_FAILURE() << "the store did not complete";
            return failure(errc::timed_out);
        }
        return std::move(**outcome);
    }
    template<class T>
    static std::error_code error_of(result<T> const& outcome)
    {
        return outcome ? std::error_code() : outcome.error();
    }

    // --- what is used, which a store may count late

    std::size_t bytes() { return store().used().bytes; }
    testing::AssertionResult uses_bytes(std::size_t expected)
    {
        if (eventually([&] { return bytes() == expected; }))
            return testing::AssertionSuccess();
        return testing::AssertionFailure() << bytes() << " bytes are used, not " << expected;
    }
    testing::AssertionResult uses_bytes_between(std::size_t least, std::size_t most)
    {
        if (eventually([&] { return bytes() >= least && bytes() <= most; }))
            return testing::AssertionSuccess();
        return testing::AssertionFailure() << bytes() << " bytes are used, not " << least << " to " << most;
    }
    testing::AssertionResult has_sessions(std::size_t expected)
    {
        if (eventually([&] { return store().used().sessions == expected; }))
            return testing::AssertionSuccess();
        return testing::AssertionFailure() << store().used().sessions << " sessions, not " << expected;
    }
    testing::AssertionResult has_streams(std::size_t expected)
    {
        if (eventually([&] { return store().used().streams == expected; }))
            return testing::AssertionSuccess();
        return testing::AssertionFailure() << store().used().streams << " streams, not " << expected;
    }

    // --- sessions

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
    result<record_ptr> create(session_record const& record)
    {
        return await<record_ptr>([&](auto done) { store().create(record, std::move(done)); });
    }
    result<record_ptr> create(session_key const& key) { return create(record_of(key)); }
    session_key made(std::uint64_t number = 1, std::string principal = "")
    {
        auto key = key_of(number, std::move(principal));
        EXPECT_TRUE(create(key)) << "cannot make a session";
        return key;
    }
    result<record_ptr> load(session_key const& key)
    {
        return await<record_ptr>([&](auto done) { store().load(key, std::move(done)); });
    }
    result<record_ptr> update(session_record const& record)
    {
        return await<record_ptr>([&](auto done) { store().update(record, std::move(done)); });
    }
    void touch(session_key const& key) { store().touch(std::span(&key, 1)); }
    expired_sessions expire(std::size_t limit = 100)
    {
        auto found = await<expired_sessions>([&](auto done) { store().expire(limit, std::move(done)); });
        EXPECT_TRUE(found);
        return found ? std::move(*found) : expired_sessions();
    }
    result<std::vector<call_ref>> close(session_key const& key)
    {
        return await<std::vector<call_ref>>([&](auto done) { store().close(key, std::move(done)); });
    }
    result<bool> is_quiet(session_key const& key)
    {
        return await<bool>([&](auto done) { store().is_quiet(key, std::move(done)); });
    }
    result<void> remove(session_key const& key)
    {
        return await<void>([&](auto done) { store().remove(key, std::move(done)); });
    }
    result<session_list> list(std::string_view after = {}, std::size_t limit = 100)
    {
        return await<session_list>([&](auto done) { store().list(after, limit, std::move(done)); });
    }
    std::vector<session_key> named(std::string_view name)
    {
        auto found = await<std::vector<session_key>>([&](auto done) { store().named(name, std::move(done)); });
        EXPECT_TRUE(found);
        return found ? std::move(*found) : std::vector<session_key>();
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
            if (!page)
                return all;
            all.insert(all.end(), page->begin(), page->end());
            if (page->size() < page_size)
                return all;
            after = page->back().session;
        }
    }

    // --- streams and their events

    static stream_meta meta_of(strings const& requests = {"1"})
    {
        stream_meta meta;
        meta.dialect = "2025-11-25";
        for (auto const& id : requests)
            meta.requests.push_back({id});
        return meta;
    }
    result<opened_stream> open_as(
        stream_key const& key, stream_meta const& meta, std::string const& owner = node_1,
        std::optional<reader_request> const& reader = {})
    {
        return await<opened_stream>([&](auto done) { store().open(key, meta, owner, reader, std::move(done)); });
    }
    result<opened_stream>
    try_open(stream_key const& key, strings const& requests = {"1"}, std::string const& owner = node_1)
    {
        return open_as(key, meta_of(requests), owner);
    }
    result<opened_stream> open_once(stream_key const& key, std::string text, std::uint64_t fingerprint = 1)
    {
        auto meta = meta_of();
        meta.once = once_key{std::move(text), fingerprint};
        return open_as(key, meta);
    }
    fence opened(stream_key const& key, strings const& requests = {"1"}, std::string const& owner = node_1)
    {
        auto const outcome = try_open(key, requests, owner);
        EXPECT_TRUE(outcome) << "cannot open a stream";
        return outcome ? outcome->fence : 0;
    }
    /// Opens a stream that is read from its beginning.
    result<opened_stream>
    open_read(stream_key const& key, reader_request const& reader, std::string const& owner = node_1)
    {
        return open_as(key, meta_of(), owner, reader);
    }

    static event_data event(std::string text, event_kind kind = event_kind::ordinary, std::uint32_t number = 0)
    {
        return {std::make_shared<std::string const>(std::move(text)), kind, number};
    }
    static event_data response(std::string text, std::uint32_t request = 0)
    {
        return event(std::move(text), event_kind::response, request);
    }
    static event_data question(std::string text, std::uint32_t number)
    {
        return event(std::move(text), event_kind::question, number);
    }

    result<stream_top> append_batch(
        stream_key const& key, fence fence, std::uint64_t batch, std::vector<event_data> const& events,
        bool finish = false, std::uint64_t after = 0)
    {
        return await<stream_top>(
            [&](auto done) { store().append(key, fence, batch, after, events, finish, std::move(done)); });
    }
    /// The next batch of that fence, by an author who knows of no end of the stream.
    result<stream_top> append(stream_key const& key, fence fence, std::vector<event_data> events, bool finish = false)
    {
        return append_batch(key, fence, next_batch(key, fence), events, finish);
    }
    std::uint64_t next_batch(stream_key const& key, fence fence)
    {
        return ++batches_[{key.session.id.low, key.stream, fence}];
    }
    result<stream_top> append_standalone(
        stream_key const& key, std::string const& owner, std::uint64_t batch, std::vector<event_data> const& events)
    {
        return await<stream_top>(
            [&](auto done) { store().append_standalone(key, owner, batch, events, std::move(done)); });
    }
    /// The next batch of node_1 on the session's standalone stream.
    result<stream_top> announce(session_key const& session, std::vector<event_data> events)
    {
        return append_standalone(
            {session, standalone}, node_1, ++batches_[{session.id.low, standalone, 0}], std::move(events));
    }
    result<void> blank(stream_key const& key, fence fence, std::uint64_t sequence)
    {
        return await<void>([&](auto done) { store().blank(key, fence, sequence, std::move(done)); });
    }
    /// Ends the call with a response, undelivered.
    void finish(stream_key const& key, fence fence) { EXPECT_TRUE(append(key, fence, {response("answer")}, true)); }
    /// A call that has finished and whose answer has arrived.
    void finished_and_delivered(stream_key const& key, strings const& requests = {"1"})
    {
        finish(key, opened(key, requests));
        deliver(key);
    }

    result<page> read(
        stream_key const& key, std::uint64_t after = 0, read_limit limit = whole,
        std::optional<reader_id> const& reader = {})
    {
        return await<page>([&](auto done) { store().read_after(key, after, limit, reader, std::move(done)); });
    }
    result<page> read_as(reader_request const& reader, stream_key const& key, std::uint64_t after = 0)
    {
        return read(key, after, whole, reader.id);
    }
    static std::vector<std::uint64_t> sequences(result<page> const& page)
    {
        std::vector<std::uint64_t> all;
        if (!page)
            ADD_FAILURE() << "no page: " << page.error().message();
        else
            for (auto const& each : page->events)
                all.push_back(each.sequence);
        return all;
    }
    static std::vector<std::string> texts(result<page> const& page)
    {
        std::vector<std::string> all;
        if (!page)
            ADD_FAILURE() << "no page: " << page.error().message();
        else
            for (auto const& each : page->events)
                all.push_back(*each.payload);
        return all;
    }
    stream_state state_of(stream_key const& key)
    {
        auto const page = read(key, ~std::uint64_t(0), {1, 1});
        EXPECT_TRUE(page);
        return page ? page->state : stream_state();
    }
    bool exists(stream_key const& key) { return read(key, ~std::uint64_t(0), {1, 1}).has_value(); }
    void sweep_after(base::duration time)
    {
        advance(time);
        store().sweep();
        tested_->settle();
    }

    /// Counts the wakes of a watch, which may come on any thread.
    struct watching {
        std::shared_ptr<std::atomic<int>> count = std::make_shared<std::atomic<int>>(0);
        std::unique_ptr<watch_handle> handle;
    };
    watching watch(stream_key const& key, event_store::interest interests)
    {
        watching made;
        made.handle = store().watch(key, interests, [count = made.count, interests](event_store::interest one) {
            EXPECT_EQ(one | interests, interests) << "a wake that nobody asked for";
            ++*count;
        });
        return made;
    }
    watching watch_session(session_key const& key)
    {
        watching made;
        made.handle = store().watch_session(key, [count = made.count] { ++*count; });
        return made;
    }
    bool is_woken(watching const& watch)
    {
        return eventually([&] { return *watch.count > 0; });
    }

    // --- readers

    static reader_request reader_of(std::uint64_t connection, std::string owner = node_1)
    {
        reader_request reader;
        reader.id = {std::move(owner), connection};
        return reader;
    }
    static reader_request reader_within(std::size_t budget, std::uint64_t connection, bool can_return = true)
    {
        auto reader = reader_of(connection);
        reader.budget = budget;
        reader.can_return = can_return;
        return reader;
    }
    static attach_request from_start(reader_request reader) { return from_cursor(std::move(reader), 0); }
    static attach_request from_cursor(reader_request reader, std::uint64_t sequence)
    {
        attach_request request;
        request.reader = std::move(reader);
        request.from = cursor{epoch, sequence};
        request.limit = whole;
        return request;
    }
    static attach_request without_cursor(reader_request reader, bool skips_backlog = false)
    {
        attach_request request;
        request.reader = std::move(reader);
        request.skips_backlog = skips_backlog;
        request.limit = whole;
        return request;
    }
    result<attached_stream> attach(stream_key const& key, attach_request const& request)
    {
        return await<attached_stream>([&](auto done) { store().attach(key, request, std::move(done)); });
    }
    /// Follows a stream that nobody else follows.
    reader_request follow(stream_key const& key, reader_request reader)
    {
        auto const attached = attach(key, from_start(reader));
        EXPECT_TRUE(attached) << "cannot follow";
        EXPECT_FALSE(attached && attached->waits) << "waits for nobody";
        return reader;
    }
    void leave(stream_key const& key, reader_request const& reader) { store().detach(key, reader.id, std::nullopt); }
    /// A reader's mark that everything up to there was given, and has arrived as far as that.
    static reader_mark mark_at(std::uint64_t position, std::uint64_t offset, std::uint64_t delivered)
    {
        return {true, position, offset, position, position, delivered};
    }
    result<reader_mark> reader(stream_key const& key)
    {
        return await<reader_mark>([&](auto done) { store().reader(key, std::move(done)); });
    }
    /// The stream's mark once it fulfils that, or as it is.
    template<class Condition>
    reader_mark reader_once(stream_key const& key, Condition const& holds)
    {
        reader_mark last;
        (void)eventually([&] {
            auto const mark = reader(key);
            last = mark ? *mark : reader_mark();
            return mark && holds(last);
        });
        return last;
    }
    bool is_followed(stream_key const& key)
    {
        return reader_once(key, [](reader_mark const& mark) { return mark.attached; }).attached;
    }
    bool is_left(stream_key const& key)
    {
        return !reader_once(key, [](reader_mark const& mark) { return !mark.attached; }).attached;
    }
    std::uint64_t delivered(stream_key const& key, std::uint64_t expected)
    {
        return reader_once(key, [&](reader_mark const& mark) { return mark.delivered == expected; }).delivered;
    }
    /// All that is in the stream has arrived, and its reader has gone.
    void deliver(stream_key const& key)
    {
        auto const reader = follow(key, reader_of(++last_connection_));
        auto const top = state_of(key).top;
        auto mark = mark_at(top.sequence, top.offset, top.sequence);
        mark.attached = false;
        store().detach(key, reader.id, mark);
        EXPECT_EQ(delivered(key, top.sequence), top.sequence);
        EXPECT_TRUE(is_left(key));
    }
    /// Why the reader has to leave, if it is told so.
    std::optional<dismissal> why_dismissed(reader_request const& reader, stream_key const& key)
    {
        auto const page = read_as(reader, key);
        EXPECT_TRUE(page);
        return page && page->dismissed ? std::optional(page->dismissed->why) : std::nullopt;
    }

    // --- calls

    result<void> renew(std::string const& owner, base::duration time)
    {
        return await<void>([&](auto done) { tested_->store().renew(owner, time, std::move(done)); });
    }
    /// An owner that lives for one lease.
    std::string mortal(std::string owner = "mortal/1")
    {
        store();
        EXPECT_TRUE(renew(owner, lease));
        return owner;
    }
    std::vector<call_ref> lapsed_calls(std::size_t limit = 100)
    {
        auto calls = await<std::vector<call_ref>>([&](auto done) { store().lapsed(limit, std::move(done)); });
        EXPECT_TRUE(calls);
        return calls ? std::move(*calls) : std::vector<call_ref>();
    }
    ids lapsed(std::size_t limit = 100) { return streams_of(lapsed_calls(limit)); }
    static ids streams_of(std::vector<call_ref> const& calls)
    {
        ids all;
        for (auto const& each : calls)
            all.push_back(each.stream.stream);
        std::ranges::sort(all);
        return all;
    }
    /// All of them, by pages of that size.
    ids owned(std::string const& owner, std::size_t page_size = 100)
    {
        std::vector<call_ref> all;
        for (std::optional<stream_key> after;;) {
            auto const page = await<std::vector<call_ref>>(
                [&](auto done) { store().owned(owner, after, page_size, std::move(done)); });
            if (!page)
                break;
            EXPECT_LE(page->size(), page_size);
            for (auto const& each : *page) {
                EXPECT_EQ(each.owner, owner);
                all.push_back(each);
            }
            if (page->size() < page_size)
                break;
            after = page->back().stream;
        }
        return streams_of(all);
    }
    result<claimed_call> claim(stream_key const& key, fence seen, std::string const& owner)
    {
        return await<claimed_call>([&](auto done) { store().claim(key, seen, owner, std::move(done)); });
    }
    result<void> release(stream_key const& key, fence fence, bool has_run = true)
    {
        return await<void>([&](auto done) { store().release(key, fence, has_run, std::move(done)); });
    }
    result<call_ref> find(session_key const& key, std::string_view request)
    {
        return await<call_ref>([&](auto done) { store().find(key, request, std::move(done)); });
    }
    static letter answer_to(std::uint32_t question, std::string body = "yes")
    {
        return {letter::kind::answer, question, std::move(body)};
    }
    static letter cancel_of(std::uint32_t request) { return {letter::kind::cancel, request, "reason"}; }
    result<void> post(stream_key const& key, letter const& letter)
    {
        return await<void>([&](auto done) { store().post(key, letter, std::move(done)); });
    }
    result<std::vector<letter>> read_mail(stream_key const& key, fence fence, std::uint64_t after = 0)
    {
        return await<std::vector<letter>>([&](auto done) { store().read_mail(key, fence, after, std::move(done)); });
    }
    /// The letters, each as "kind number body".
    strings mail(stream_key const& key, fence fence, std::uint64_t after = 0)
    {
        strings all;
        auto const letters = read_mail(key, fence, after);
        if (!letters) {
            ADD_FAILURE() << "no mail: " << letters.error().message();
            return all;
        }
        for (auto const& each : *letters) {
            auto const* const kind = each.what == letter::kind::answer ? "answer "
                : each.what == letter::kind::cancel                    ? "cancel "
                                                                       : "session_ended ";
            all.push_back(kind + std::to_string(each.number) + ' ' + each.body);
        }
        return all;
    }

    // --- small records

    result<std::uint64_t>
    put(std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime = std::chrono::hours(1))
    {
        return await<std::uint64_t>(
            [&](auto done) { store().put_record(name, seen, std::move(value), lifetime, std::move(done)); });
    }
    result<small_record_store::small_record> get(std::string_view name)
    {
        return await<small_record_store::small_record>([&](auto done) { store().get_record(name, std::move(done)); });
    }
    result<void> take(std::string_view name, std::uint64_t seen, std::string taker = "somebody")
    {
        return await<void>([&](auto done) { store().take_record(name, seen, std::move(taker), std::move(done)); });
    }

private:
    std::unique_ptr<tested_store> tested_;
    std::map<std::tuple<std::uint64_t, stream_id, fence>, std::uint64_t> batches_;
    std::uint64_t last_connection_ = 1'000'000;
};

}
