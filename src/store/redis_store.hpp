// The store that nodes share: everything in Redis, each operation of a session one script (docs/design/004-redis.md has
// the data model). Safe from every loop; completions come on the loop of the caller if that is one of the given ones,
// and else on the first, and never before a function returns.
#pragma once

#include "base/io_loop.hpp"
#include "base/log.hpp"
#include "store/ports.hpp"
#include "store/redis_connection.hpp"
#include "store/redis_url.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::store {

struct redis_options {
    redis_place place;
    redis_tls tls{};
    std::string prefix = "belay:"; ///< of every key
    base::duration timeout = std::chrono::seconds(2); ///< of a command, until its connection is given up
    base::duration give_up = std::chrono::seconds(5); ///< of a command, until it is unavailable
    std::size_t most_waiting_bytes = 64u << 20; ///< of commands, for each loop
    base::duration recheck = std::chrono::seconds(15); ///< how late a hint can be that was lost
    /// Names this node in Redis; never used again. Empty: something random.
    std::string node{};
    /// Names the life of new sessions' streams, for tests. Absent: when the session began.
    std::optional<std::uint64_t> epoch{};
    base::logger log{};
    /// Only for tests: by how much the store's time is ahead of Redis' own. Read for every command that has to do with
    /// time.
    std::function<std::chrono::microseconds()> time_ahead{};
};

class redis_core;

class redis_store final : public backend {
public:
    struct figures {
        std::uint64_t commands = 0;
        std::uint64_t errors = 0;
        std::uint64_t reconnects = 0;
        std::uint64_t hints = 0;
        std::uint64_t hints_missed = 0;
    };

    /// The loops outlive the store, and do not run while it is destroyed, or it is destroyed on the only one.
    redis_store(limits limits, redis_options options, std::span<base::io_loop* const> loops);
    ~redis_store() override;

    // session_store: redis_sessions.cpp, redis_listing.cpp
    void create(session_record record, completion<record_ptr> done) override;
    void load(session_key const& key, completion<record_ptr> done) override;
    void update(session_record record, completion<record_ptr> done) override;
    void touch(std::span<session_key const> in_use) override;
    void expire(std::size_t limit, completion<expired_sessions> done) override;
    void close(session_key const& key, completion<std::vector<call_ref>> done) override;
    void is_quiet(session_key const& key, completion<bool> done) override;
    void remove(session_key const& key, completion<void> done) override;
    void list(std::string_view after, std::size_t limit, completion<session_list> done) override;
    void named(std::string_view name, completion<std::vector<session_key>> done) override;
    [[nodiscard]] std::unique_ptr<watch_handle>
    watch_session(session_key const& key, std::function<void()> wake) override;
    void subscribe(session_key const& key, std::string uri, std::size_t limit, completion<void> done) override;
    void unsubscribe(session_key const& key, std::string_view uri, completion<void> done) override;
    void subscribers(
        std::string_view uri, std::optional<session_key> after, std::size_t limit,
        completion<std::vector<subscriber>> done) override;
    [[nodiscard]] std::vector<std::string> subscribed_uris() const override;

    // event_store: redis_events.cpp, redis_readers.cpp
    void open(
        stream_key const& key, stream_meta meta, std::string const& owner, std::optional<reader_request> reader,
        completion<opened_stream> done) override;
    void append(
        stream_key const& key, fence fence, std::uint64_t batch, std::uint64_t after, std::vector<event_data> events,
        bool finish, completion<stream_top> done) override;
    void append_standalone(
        stream_key const& key, std::string const& owner, std::uint64_t batch, std::vector<event_data> events,
        completion<stream_top> done) override;
    void blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done) override;
    void attach(stream_key const& key, attach_request request, completion<attached_stream> done) override;
    void read_after(
        stream_key const& key, std::uint64_t after, read_limit limit, std::optional<reader_id> reader,
        completion<page> done) override;
    void note_reader(stream_key const& key, reader_id const& reader, reader_mark mark) override;
    void detach(stream_key const& key, reader_id const& reader, std::optional<reader_mark> mark) override;
    void dismiss(stream_key const& key, dismissed_reader how) override;
    void note_delivered(stream_key const& key, std::uint64_t sequence) override;
    void reader(stream_key const& key, completion<reader_mark> done) override;
    [[nodiscard]] std::unique_ptr<watch_handle>
    watch(stream_key const& key, interest interests, std::function<void(interest)> wake) override;
    void sweep() override;

    // call_store: redis_calls.cpp
    void renew(std::string const& owner, base::duration lease, completion<void> done) override;
    void lapsed(std::size_t limit, completion<std::vector<call_ref>> done) override;
    void claim(stream_key const& key, fence seen, std::string const& owner, completion<claimed_call> done) override;
    void owned(
        std::string const& owner, std::optional<stream_key> after, std::size_t limit,
        completion<std::vector<call_ref>> done) override;
    void release(stream_key const& key, fence fence, bool has_run, completion<void> done) override;
    void find(session_key const& key, std::string_view request_id, completion<call_ref> done) override;
    void post(stream_key const& key, letter letter, completion<void> done) override;
    void
    read_mail(stream_key const& key, fence fence, std::uint64_t after, completion<std::vector<letter>> done) override;

    // small_record_store, bulletin: redis_records.cpp, redis_watching.cpp
    void put_record(
        std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime,
        completion<std::uint64_t> done) override;
    void get_record(std::string_view name, completion<small_record> done) override;
    void take_record(std::string_view name, std::uint64_t seen, std::string taker, completion<void> done) override;
    void publish(std::string text) override;
    [[nodiscard]] std::unique_ptr<watch_handle> listen(std::function<void(std::string const&)> hear) override;

    [[nodiscard]] durability promise() const noexcept override { return durability::shared; }
    /// False when Redis has not answered for a second. On the first loop.
    [[nodiscard]] std::unique_ptr<watch_handle> on_health(std::function<void(bool)> hear) override;
    /// As this node has known it for at most a second, with what has changed here since.
    [[nodiscard]] usage used() const override;

    [[nodiscard]] figures count() const noexcept;
    /// Whether nothing is under way, the hints of others apart.
    [[nodiscard]] bool is_idle() const;

private:
    std::shared_ptr<redis_core> core_;
};

}
