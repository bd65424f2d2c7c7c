// A store in front of another: passes everything on. Tests derive from it and change what they are about.
#pragma once

#include "store/ports.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay {

class forwarding_store : public store::backend {
public:
    explicit forwarding_store(store::backend& inner) : inner_(inner) {}

    void create(
        store::session_record record, base::time_point now,
        store::completion<std::shared_ptr<store::session_record const>> done) override
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
    void
    subscribe(store::session_key const& key, std::string uri, std::size_t limit, store::completion<void> done) override
    {
        inner_.subscribe(key, std::move(uri), limit, std::move(done));
    }
    void unsubscribe(store::session_key const& key, std::string_view uri, store::completion<void> done) override
    {
        inner_.unsubscribe(key, uri, std::move(done));
    }
    void subscribers(
        std::string_view uri, std::optional<store::session_key> after, std::size_t limit,
        store::completion<std::vector<store::subscriber>> done) override
    {
        inner_.subscribers(uri, std::move(after), limit, std::move(done));
    }
    [[nodiscard]] std::vector<std::string> subscribed_uris() const override { return inner_.subscribed_uris(); }

    void open(
        store::stream_key const& key, store::stream_meta meta, std::string const& owner, base::time_point now,
        store::completion<store::opened_stream> done) override
    {
        inner_.open(key, std::move(meta), owner, now, std::move(done));
    }
    void append(
        store::stream_key const& key, store::fence fence, std::vector<store::event_data> events, bool finish,
        base::time_point now, store::completion<store::stream_top> done) override
    {
        inner_.append(key, fence, std::move(events), finish, now, std::move(done));
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
    [[nodiscard]] std::unique_ptr<store::watch_handle>
    watch(store::stream_key const& key, interest interest, std::function<void()> wake) override
    {
        return inner_.watch(key, interest, std::move(wake));
    }
    void note_reader(store::stream_key const& key, store::reader_mark mark) override { inner_.note_reader(key, mark); }
    void note_delivered(store::stream_key const& key, std::uint64_t sequence) override
    {
        inner_.note_delivered(key, sequence);
    }
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
    void
    claim(store::stream_key const& key, std::string const& owner, store::completion<store::claimed_call> done) override
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
    [[nodiscard]] std::unique_ptr<store::watch_handle>
    listen(std::string const& owner, std::function<void(store::owner_message)> deliver) override
    {
        return inner_.listen(owner, std::move(deliver));
    }
    [[nodiscard]] store::durability promise() const noexcept override { return inner_.promise(); }
    [[nodiscard]] store::usage used() const override { return inner_.used(); }

private:
    store::backend& inner_;
};

}
