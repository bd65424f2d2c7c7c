// A store in front of another: passes everything on. Tests derive from it and change what they are about.
#pragma once

#include "store/ports.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::inline v0 {

class forwarding_store : public store::backend {
public:
    explicit forwarding_store(store::backend& inner) : inner_(inner) {}

    void create(store::session_record record, store::completion<store::record_ptr> done) override
    {
        inner_.create(std::move(record), std::move(done));
    }
    void load(store::session_key const& key, store::completion<store::record_ptr> done) override
    {
        inner_.load(key, std::move(done));
    }
    void update(store::session_record record, store::completion<store::record_ptr> done) override
    {
        inner_.update(std::move(record), std::move(done));
    }
    void touch(std::span<store::session_key const> in_use) override { inner_.touch(in_use); }
    void expire(std::size_t limit, store::completion<store::expired_sessions> done) override
    {
        inner_.expire(limit, std::move(done));
    }
    void close(store::session_key const& key, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.close(key, std::move(done));
    }
    void is_quiet(store::session_key const& key, store::completion<bool> done) override
    {
        inner_.is_quiet(key, std::move(done));
    }
    void remove(store::session_key const& key, store::completion<void> done) override
    {
        inner_.remove(key, std::move(done));
    }
    void list(std::string_view after, std::size_t limit, store::completion<store::session_list> done) override
    {
        inner_.list(after, limit, std::move(done));
    }
    void named(std::string_view name, store::completion<std::vector<store::session_key>> done) override
    {
        inner_.named(name, std::move(done));
    }
    [[nodiscard]] std::unique_ptr<store::watch_handle>
    watch_session(store::session_key const& key, std::function<void()> wake) override
    {
        return inner_.watch_session(key, std::move(wake));
    }
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
        store::stream_key const& key, store::stream_meta meta, std::string const& owner,
        std::optional<store::reader_request> reader, store::completion<store::opened_stream> done) override
    {
        inner_.open(key, std::move(meta), owner, std::move(reader), std::move(done));
    }
    void append(
        store::stream_key const& key, store::fence fence, std::uint64_t batch, std::uint64_t after,
        std::vector<store::event_data> events, bool finish, store::completion<store::stream_top> done) override
    {
        inner_.append(key, fence, batch, after, std::move(events), finish, std::move(done));
    }
    void append_standalone(
        store::stream_key const& key, std::string const& owner, std::uint64_t batch,
        std::vector<store::event_data> events, store::completion<store::stream_top> done) override
    {
        inner_.append_standalone(key, owner, batch, std::move(events), std::move(done));
    }
    void blank(
        store::stream_key const& key, store::fence fence, std::uint64_t sequence, store::completion<void> done) override
    {
        inner_.blank(key, fence, sequence, std::move(done));
    }
    void attach(
        store::stream_key const& key, store::attach_request request,
        store::completion<store::attached_stream> done) override
    {
        inner_.attach(key, std::move(request), std::move(done));
    }
    void read_after(
        store::stream_key const& key, std::uint64_t after, store::read_limit limit,
        std::optional<store::reader_id> reader, store::completion<store::page> done) override
    {
        inner_.read_after(key, after, limit, std::move(reader), std::move(done));
    }
    void note_reader(store::stream_key const& key, store::reader_id const& reader, store::reader_mark mark) override
    {
        inner_.note_reader(key, reader, mark);
    }
    void detach(
        store::stream_key const& key, store::reader_id const& reader, std::optional<store::reader_mark> mark) override
    {
        inner_.detach(key, reader, mark);
    }
    void dismiss(store::stream_key const& key, store::dismissed_reader how) override { inner_.dismiss(key, how); }
    void note_delivered(store::stream_key const& key, std::uint64_t sequence) override
    {
        inner_.note_delivered(key, sequence);
    }
    void reader(store::stream_key const& key, store::completion<store::reader_mark> done) override
    {
        inner_.reader(key, std::move(done));
    }
    [[nodiscard]] std::unique_ptr<store::watch_handle>
    watch(store::stream_key const& key, interest interests, std::function<void(interest)> wake) override
    {
        return inner_.watch(key, interests, std::move(wake));
    }
    void sweep() override { inner_.sweep(); }

    void renew(std::string const& owner, base::duration lease, store::completion<void> done) override
    {
        inner_.renew(owner, lease, std::move(done));
    }
    void lapsed(std::size_t limit, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.lapsed(limit, std::move(done));
    }
    void claim(
        store::stream_key const& key, store::fence seen, std::string const& owner,
        store::completion<store::claimed_call> done) override
    {
        inner_.claim(key, seen, owner, std::move(done));
    }
    void owned(
        std::string const& owner, std::optional<store::stream_key> after, std::size_t limit,
        store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.owned(owner, std::move(after), limit, std::move(done));
    }
    void release(store::stream_key const& key, store::fence fence, bool has_run, store::completion<void> done) override
    {
        inner_.release(key, fence, has_run, std::move(done));
    }
    void
    find(store::session_key const& key, std::string_view request_id, store::completion<store::call_ref> done) override
    {
        inner_.find(key, request_id, std::move(done));
    }
    void post(store::stream_key const& key, store::letter letter, store::completion<void> done) override
    {
        inner_.post(key, std::move(letter), std::move(done));
    }
    void read_mail(
        store::stream_key const& key, store::fence fence, std::uint64_t after,
        store::completion<std::vector<store::letter>> done) override
    {
        inner_.read_mail(key, fence, after, std::move(done));
    }

    void put_record(
        std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime,
        store::completion<std::uint64_t> done) override
    {
        inner_.put_record(name, seen, std::move(value), lifetime, std::move(done));
    }
    void get_record(std::string_view name, store::completion<small_record> done) override
    {
        inner_.get_record(name, std::move(done));
    }
    void
    take_record(std::string_view name, std::uint64_t seen, std::string taker, store::completion<void> done) override
    {
        inner_.take_record(name, seen, std::move(taker), std::move(done));
    }

    void publish(std::string text) override { inner_.publish(std::move(text)); }
    [[nodiscard]] std::unique_ptr<store::watch_handle> listen(std::function<void(std::string const&)> hear) override
    {
        return inner_.listen(std::move(hear));
    }

    [[nodiscard]] store::durability promise() const noexcept override { return inner_.promise(); }
    [[nodiscard]] std::unique_ptr<store::watch_handle> on_health(std::function<void(bool)> hear) override
    {
        return inner_.on_health(std::move(hear));
    }
    [[nodiscard]] store::usage used() const override { return inner_.used(); }

private:
    store::backend& inner_;
};

}
