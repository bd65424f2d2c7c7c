// A memory store whose appends can be held back, and then go through or fail.
#pragma once

#include "store/memory_store.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace belay {

class late_store final : public store::backend {
public:
    /// From now on appends wait for go_on() or fail().
    void hold() { is_holding_ = true; }
    /// Lets everything through that was held, and is in time again.
    void go_on()
    {
        is_holding_ = false;
        for (auto& each : std::exchange(held_, {}))
            each.go_on();
    }
    /// Fails everything that was held, and is in time again.
    void fail(errc why)
    {
        is_holding_ = false;
        for (auto& each : std::exchange(held_, {}))
            each.fail(why);
    }
    [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }
    /// The most events that came in one append.
    [[nodiscard]] std::size_t largest() const noexcept { return largest_; }

    void append(
        store::stream_key const& key, store::fence fence, std::vector<store::event_data> events, bool finish,
        base::time_point now, store::completion<store::stream_top> done) override
    {
        largest_ = std::max(largest_, events.size());
        if (!is_holding_)
            return inner_.append(key, fence, std::move(events), finish, now, std::move(done));
        auto const shared = std::make_shared<store::completion<store::stream_top>>(std::move(done));
        held_.push_back(
            {[this, key, fence, events = std::move(events), finish, now, shared]() mutable {
                 inner_.append(key, fence, std::move(events), finish, now, std::move(*shared));
             },
             [shared](errc why) { (*shared)(failure(why)); }});
    }

    void create(store::session_record record, base::time_point now, store::completion<void> done) override
    {
        inner_.create(std::move(record), now, std::move(done));
    }
    void
    load(store::session_key const& key, store::completion<std::shared_ptr<store::session_record const>> done) override
    {
        inner_.load(key, std::move(done));
    }
    void
    update(store::session_record record, store::completion<std::shared_ptr<store::session_record const>> done) override
    {
        inner_.update(std::move(record), std::move(done));
    }
    void touch(store::session_key const& key, base::time_point at, store::presence presence) override
    {
        inner_.touch(key, at, presence);
    }
    void
    expired(base::time_point now, std::size_t limit, store::completion<std::vector<store::session_key>> done) override
    {
        inner_.expired(now, limit, std::move(done));
    }
    void end(store::session_key const& key, store::completion<void> done) override { inner_.end(key, std::move(done)); }
    void open(
        store::stream_key const& key, store::stream_meta meta, std::string const& owner, base::time_point now,
        store::completion<store::opened_stream> done) override
    {
        inner_.open(key, std::move(meta), owner, now, std::move(done));
    }
    void blank(
        store::stream_key const& key, store::fence fence, std::uint64_t sequence, store::completion<void> done) override
    {
        inner_.blank(key, fence, sequence, std::move(done));
    }
    void read_after(
        store::stream_key const& key, std::uint64_t after, store::read_limit limit,
        store::completion<store::page> done) override
    {
        inner_.read_after(key, after, limit, std::move(done));
    }
    void inspect(store::stream_key const& key, store::completion<store::stream_meta> done) override
    {
        inner_.inspect(key, std::move(done));
    }
    std::unique_ptr<store::watch_handle>
    watch(store::stream_key const& key, interest interest, std::function<void()> wake) override
    {
        return inner_.watch(key, interest, std::move(wake));
    }
    void note_reader(store::stream_key const& key, store::reader_mark mark) override { inner_.note_reader(key, mark); }
    void reader(store::stream_key const& key, store::completion<store::reader_mark> done) override
    {
        inner_.reader(key, std::move(done));
    }
    void sweep(base::time_point now) override { inner_.sweep(now); }
    void renew(std::string const& owner, base::time_point until) override { inner_.renew(owner, until); }
    void lapsed(base::time_point now, std::size_t limit, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.lapsed(now, limit, std::move(done));
    }
    void claim(store::stream_key const& key, std::string const& owner, store::completion<store::fence> done) override
    {
        inner_.claim(key, owner, std::move(done));
    }
    void find(store::session_key const& key, std::string_view label, store::completion<store::call_ref> done) override
    {
        inner_.find(key, label, std::move(done));
    }
    void running(store::session_key const& key, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.running(key, std::move(done));
    }
    void send(std::string const& owner, store::owner_message message, store::completion<void> done) override
    {
        inner_.send(owner, std::move(message), std::move(done));
    }
    std::unique_ptr<store::watch_handle>
    listen(std::string const& owner, std::function<void(store::owner_message)> deliver) override
    {
        return inner_.listen(owner, std::move(deliver));
    }
    store::durability promise() const noexcept override { return inner_.promise(); }
    store::usage used() const override { return inner_.used(); }

private:
    struct late_append {
        std::move_only_function<void()> go_on;
        std::move_only_function<void(errc)> fail;
    };

    store::memory_store inner_{{}, 1};
    bool is_holding_ = false;
    std::size_t largest_ = 0;
    std::deque<late_append> held_;
};

}
