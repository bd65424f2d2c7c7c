// A process's way to the store. It can be slow, deliver in another order, fail with an unknown outcome, deliver twice,
// lose hints, and be cut.
#pragma once

#include "network.hpp"
#include "trace.hpp"

#include <algorithm>
#include <string>

namespace belay::sim {

class link final : public store::backend, public std::enable_shared_from_this<link> {
public:
    /// `at_once`: as if the store were part of the process.
    enum class pace { at_once, late };

    link(scheduler& scheduler, store::backend& store, pace pace, network_faults faults, store::durability promise)
        : scheduler_(scheduler), store_(&store), pace_(pace), faults_(faults), promise_(promise),
          network_(std::make_unique<network>(scheduler))
    {
        scheduler_.add(*network_);
    }
    ~link() override { scheduler_.remove(*network_); }

    /// Where completions go that nobody's loop has asked for.
    void set_home(sim_loop& loop) noexcept { home_ = &loop; }
    void set_faults(network_faults faults) noexcept { faults_ = faults; }
    /// The name under which its process rents its lease.
    [[nodiscard]] std::string const& owner() const noexcept { return owner_; }
    /// How many operations have failed so far, and when the last one did.
    [[nodiscard]] std::size_t failures() const noexcept { return failures_; }
    [[nodiscard]] std::optional<base::time_point> failed_at() const noexcept { return failed_at_; }

    [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
    void cut()
    {
        is_cut_ = true;
        note_failure();
        network_->cut();
    }
    void mend()
    {
        if (!std::exchange(is_cut_, false))
            return;
        note_failure();
        for (auto& each : std::exchange(unsent_, {}))
            network_->send(std::move(each));
        recheck();
    }
    /// The store was replaced by another, with its data or without.
    void move_to(store::backend& other)
    {
        store_ = &other;
        for (auto const& each : watches_)
            each->listen_to(*store_);
    }
    /// Its process is no more. What it has sent may still arrive.
    void die()
    {
        is_dead_ = true;
        network_->forget_callers();
        unsent_.clear();
        for (auto const& each : std::exchange(watches_, {}))
            each->stop();
    }
    [[nodiscard]] bool is_spent() const noexcept { return is_dead_ && network_->is_empty(); }

    // --- sessions

    void create(store::session_record record, store::completion<store::record_ptr> done) override
    {
        ask(no_lane, once_soon, std::move(done),
            [record](store::backend& to, auto told) { to.create(record, std::move(told)); });
    }
    void load(store::session_key const& key, store::completion<store::record_ptr> done) override
    {
        ask(no_lane, again, std::move(done), [key](store::backend& to, auto told) { to.load(key, std::move(told)); });
    }
    void update(store::session_record record, store::completion<store::record_ptr> done) override
    {
        ask(no_lane, again, std::move(done),
            [record](store::backend& to, auto told) { to.update(record, std::move(told)); });
    }
    void touch(std::span<store::session_key const> in_use) override
    {
        if (is_cut_) // a hint
            return;
        tell(no_lane, [keys = std::vector(in_use.begin(), in_use.end())](store::backend& to) { to.touch(keys); });
    }
    void expire(std::size_t limit, store::completion<store::expired_sessions> done) override
    {
        ask(no_lane, again, std::move(done),
            [limit](store::backend& to, auto told) { to.expire(limit, std::move(told)); });
    }
    void close(store::session_key const& key, store::completion<std::vector<store::call_ref>> done) override
    {
        ask(no_lane, again, std::move(done), [key](store::backend& to, auto told) { to.close(key, std::move(told)); });
    }
    void is_quiet(store::session_key const& key, store::completion<bool> done) override
    {
        ask(no_lane, again, std::move(done),
            [key](store::backend& to, auto told) { to.is_quiet(key, std::move(told)); });
    }
    void remove(store::session_key const& key, store::completion<void> done) override
    {
        ask(no_lane, again, std::move(done), [key](store::backend& to, auto told) { to.remove(key, std::move(told)); });
    }
    void list(std::string_view after, std::size_t limit, store::completion<store::session_list> done) override
    {
        ask(no_lane, again, std::move(done), [after = std::string(after), limit](store::backend& to, auto told) {
            to.list(after, limit, std::move(told));
        });
    }
    void named(std::string_view name, store::completion<std::vector<store::session_key>> done) override
    {
        ask(no_lane, again, std::move(done),
            [name = std::string(name)](store::backend& to, auto told) { to.named(name, std::move(told)); });
    }
    [[nodiscard]] std::unique_ptr<store::watch_handle>
    watch_session(store::session_key const& key, std::function<void()> wake) override
    {
        return watch_with(
            {},
            [key](store::backend& at, hint_function woken) {
                return at.watch_session(key, [woken = std::move(woken)] { woken({}); });
            },
            [wake = std::move(wake)](interest) { wake(); });
    }
    // The last word counts, so an old one must not come after it.
    void
    subscribe(store::session_key const& key, std::string uri, std::size_t limit, store::completion<void> done) override
    {
        ask(no_lane, once_soon, std::move(done),
            [key, uri, limit](store::backend& to, auto told) { to.subscribe(key, uri, limit, std::move(told)); });
    }
    void unsubscribe(store::session_key const& key, std::string_view uri, store::completion<void> done) override
    {
        ask(no_lane, once_soon, std::move(done), [key, uri = std::string(uri)](store::backend& to, auto told) {
            to.unsubscribe(key, uri, std::move(told));
        });
    }
    void subscribers(
        std::string_view uri, std::optional<store::session_key> after, std::size_t limit,
        store::completion<std::vector<store::subscriber>> done) override
    {
        ask(no_lane, again, std::move(done), [uri = std::string(uri), after, limit](store::backend& to, auto told) {
            to.subscribers(uri, after, limit, std::move(told));
        });
    }
    [[nodiscard]] std::vector<std::string> subscribed_uris() const override { return store_->subscribed_uris(); }

    // --- events

    void open(
        store::stream_key const& key, store::stream_meta meta, std::string const& owner,
        std::optional<store::reader_request> reader, store::completion<store::opened_stream> done) override
    {
        ask(key.stream, again, std::move(done), [key, meta, owner, reader](store::backend& to, auto told) {
            to.open(key, meta, owner, reader, std::move(told));
        });
    }
    void append(
        store::stream_key const& key, store::fence fence, std::uint64_t batch, std::uint64_t after,
        std::vector<store::event_data> events, bool finish, store::completion<store::stream_top> done) override
    {
        ask(key.stream, again, std::move(done),
            [key, fence, batch, after, events, finish](store::backend& to, auto told) {
                to.append(key, fence, batch, after, events, finish, std::move(told));
            });
    }
    void append_standalone(
        store::stream_key const& key, std::string const& owner, std::uint64_t batch,
        std::vector<store::event_data> events, store::completion<store::stream_top> done) override
    {
        ask(key.stream, again, std::move(done), [key, owner, batch, events](store::backend& to, auto told) {
            to.append_standalone(key, owner, batch, events, std::move(told));
        });
    }
    void blank(
        store::stream_key const& key, store::fence fence, std::uint64_t sequence, store::completion<void> done) override
    {
        ask(no_lane, again, std::move(done),
            [key, fence, sequence](store::backend& to, auto told) { to.blank(key, fence, sequence, std::move(told)); });
    }
    void attach(
        store::stream_key const& key, store::attach_request request,
        store::completion<store::attached_stream> done) override
    {
        ask(key.stream, again, std::move(done),
            [key, request](store::backend& to, auto told) { to.attach(key, request, std::move(told)); });
    }
    void read_after(
        store::stream_key const& key, std::uint64_t after, store::read_limit limit,
        std::optional<store::reader_id> reader, store::completion<store::page> done) override
    {
        ask(no_lane, again, std::move(done), [key, after, limit, reader](store::backend& to, auto told) {
            to.read_after(key, after, limit, reader, std::move(told));
        });
    }
    void note_reader(store::stream_key const& key, store::reader_id const& reader, store::reader_mark mark) override
    {
        tell(key.stream, [key, reader, mark](store::backend& to) { to.note_reader(key, reader, mark); });
    }
    void detach(
        store::stream_key const& key, store::reader_id const& reader, std::optional<store::reader_mark> mark) override
    {
        tell(key.stream, [key, reader, mark](store::backend& to) { to.detach(key, reader, mark); });
    }
    void dismiss(store::stream_key const& key, store::dismissed_reader how) override
    {
        tell(key.stream, [key, how](store::backend& to) { to.dismiss(key, how); });
    }
    void note_delivered(store::stream_key const& key, std::uint64_t sequence) override
    {
        tell(key.stream, [key, sequence](store::backend& to) { to.note_delivered(key, sequence); });
    }
    void reader(store::stream_key const& key, store::completion<store::reader_mark> done) override
    {
        ask(no_lane, again, std::move(done), [key](store::backend& to, auto told) { to.reader(key, std::move(told)); });
    }
    [[nodiscard]] std::unique_ptr<store::watch_handle>
    watch(store::stream_key const& key, interest interests, std::function<void(interest)> wake) override
    {
        return watch_with(
            interests,
            [key, interests](store::backend& at, hint_function woken) {
                return at.watch(key, interests, std::move(woken));
            },
            std::move(wake));
    }
    void sweep() override
    {
        tell(no_lane, [](store::backend& to) { to.sweep(); });
    }

    // --- calls

    void renew(std::string const& owner, base::duration lease, store::completion<void> done) override
    {
        owner_ = owner;
        ask(no_lane, again, std::move(done),
            [owner, lease](store::backend& to, auto told) { to.renew(owner, lease, std::move(told)); });
    }
    void lapsed(std::size_t limit, store::completion<std::vector<store::call_ref>> done) override
    {
        ask(no_lane, again, std::move(done),
            [limit](store::backend& to, auto told) { to.lapsed(limit, std::move(told)); });
    }
    void owned(
        std::string const& owner, std::optional<store::stream_key> after, std::size_t limit,
        store::completion<std::vector<store::call_ref>> done) override
    {
        ask(no_lane, again, std::move(done),
            [owner, after, limit](store::backend& to, auto told) { to.owned(owner, after, limit, std::move(told)); });
    }
    void claim(
        store::stream_key const& key, store::fence seen, std::string const& owner,
        store::completion<store::claimed_call> done) override
    {
        ask(no_lane, again, std::move(done),
            [key, seen, owner](store::backend& to, auto told) { to.claim(key, seen, owner, std::move(told)); });
    }
    void release(store::stream_key const& key, store::fence fence, bool has_run, store::completion<void> done) override
    {
        ask(no_lane, again, std::move(done),
            [key, fence, has_run](store::backend& to, auto told) { to.release(key, fence, has_run, std::move(told)); });
    }
    void
    find(store::session_key const& key, std::string_view request_id, store::completion<store::call_ref> done) override
    {
        ask(no_lane, again, std::move(done),
            [key, id = std::string(request_id)](store::backend& to, auto told) { to.find(key, id, std::move(told)); });
    }
    void post(store::stream_key const& key, store::letter letter, store::completion<void> done) override
    {
        ask(no_lane, again, std::move(done),
            [key, letter](store::backend& to, auto told) { to.post(key, letter, std::move(told)); });
    }
    void read_mail(
        store::stream_key const& key, store::fence fence, std::uint64_t after,
        store::completion<std::vector<store::letter>> done) override
    {
        ask(no_lane, again, std::move(done),
            [key, fence, after](store::backend& to, auto told) { to.read_mail(key, fence, after, std::move(told)); });
    }

    // --- small records, words to all

    void put_record(
        std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime,
        store::completion<std::uint64_t> done) override
    {
        ask(no_lane, again, std::move(done),
            [name = std::string(name), seen, value, lifetime](store::backend& to, auto told) {
                to.put_record(name, seen, value, lifetime, std::move(told));
            });
    }
    void get_record(std::string_view name, store::completion<small_record> done) override
    {
        ask(no_lane, again, std::move(done),
            [name = std::string(name)](store::backend& to, auto told) { to.get_record(name, std::move(told)); });
    }
    void
    take_record(std::string_view name, std::uint64_t seen, std::string taker, store::completion<void> done) override
    {
        ask(no_lane, again, std::move(done), [name = std::string(name), seen, taker](store::backend& to, auto told) {
            to.take_record(name, seen, taker, std::move(told));
        });
    }
    void publish(std::string text) override
    {
        if (!is_cut_)
            tell(no_lane, [text](store::backend& to) { to.publish(text); });
    }
    [[nodiscard]] std::unique_ptr<store::watch_handle> listen(std::function<void(std::string const&)> hear) override;

    [[nodiscard]] store::durability promise() const noexcept override { return promise_; }
    [[nodiscard]] std::unique_ptr<store::watch_handle> on_health(std::function<void(bool)> hear) override
    {
        return store_->on_health(std::move(hear));
    }
    [[nodiscard]] store::usage used() const override { return store_->used(); }

private:
    static constexpr std::uint64_t no_lane = 0;
    /// Whether a command may come once more after others have, or only before its caller knows of the first.
    enum repeatable { again, once_soon };

    using hint_function = std::function<void(interest)>;

    /// Somebody who wants to hear of something, whichever store there is.
    class listener {
    public:
        virtual ~listener() = default;
        virtual void listen_to(store::backend& at) = 0;
        virtual void stop() = 0;
        /// Something of that may have happened.
        virtual void wake(interest what) = 0;
        /// Anything may have happened.
        virtual void wake_all() = 0;
    };
    class watcher;
    class hearer;
    class handle;

    using watch_function = std::function<std::unique_ptr<store::watch_handle>(store::backend&, hint_function)>;
    [[nodiscard]] std::unique_ptr<store::watch_handle>
    watch_with(interest interests, watch_function watch, hint_function wake);
    void hint(std::shared_ptr<listener> const& to, interest what);
    void recheck();

    /// A command that somebody waits for.
    template<class T, class Command>
    void ask(std::uint64_t lane, repeatable how, store::completion<T> done, Command command);
    /// A command that nobody waits for. While the link is cut it is kept.
    template<class Command>
    void tell(std::uint64_t lane, Command command);

    [[nodiscard]] bool happens(std::uint64_t in) { return in != 0 && scheduler_.random().below(in) == 0; }
    [[nodiscard]] base::time_point in_seconds(std::uint64_t most)
    {
        return scheduler_.now() + std::chrono::milliseconds(scheduler_.random().below(1000 * most));
    }
    void note_failure()
    {
        ++failures_;
        failed_at_ = scheduler_.now();
    }

    scheduler& scheduler_;
    store::backend* store_;
    pace pace_;
    network_faults faults_;
    store::durability promise_;
    std::unique_ptr<network> network_;
    sim_loop* home_ = nullptr;
    std::string owner_;
    std::vector<std::shared_ptr<listener>> watches_;
    std::vector<network::parcel> unsent_;
    bool rechecks_ = false; // a look at everything that is watched is to come
    bool is_cut_ = false;
    bool is_dead_ = false;
    std::size_t failures_ = 0;
    std::optional<base::time_point> failed_at_;
};

// --- how commands and replies fare

template<class T, class Command>
void link::ask(std::uint64_t lane, repeatable how, store::completion<T> done, Command command)
{
    if (is_dead_)
        return;
    if (pace_ == pace::at_once)
        return command(*store_, std::move(done));
    auto* const current = scheduler_.current();
    auto const from = std::make_shared<waiting_caller<T>>(current ? *current : *home_, std::move(done));
    // Whoever dies while its command is under way is no caller any more.
    std::weak_ptr const replies_to = from;
    auto const fail = [replies_to] {
        if (auto const alive = replies_to.lock())
            alive->fail();
    };
    auto const now = scheduler_.now();
    if (is_cut_) {
        note_failure();
        return network_->send({fail, from, no_lane, happens(2) ? now : in_seconds(2)});
    }
    // Without a caller the reply is lost.
    auto const execute = [this, shared = std::make_shared<Command>(std::move(command))](
                             std::weak_ptr<waiting_caller<T>> const& replies_to) {
        (*shared)(*store_, store::completion<T>([this, replies_to](result<T> outcome) {
            if (auto const waits = replies_to.lock())
                network_->send(
                    {[weak = replies_to, outcome = std::move(outcome)]() mutable {
                         if (auto const alive = weak.lock())
                             alive->give(std::move(outcome));
                     },
                     waits, no_lane, happens(faults_.slow) ? in_seconds(4) : scheduler_.now()});
        }));
    };
    auto const due = happens(faults_.slow) ? in_seconds(4) : now;
    if (happens(faults_.fails)) {
        note_failure();
        trace("a command on lane {:x} of {} fails", lane, owner_);
        switch (scheduler_.random().below(how == again ? 3 : 2)) {
        case 0: // it never arrives
            return network_->send({fail, from, no_lane, due});
        case 1: // it arrives, and its reply does not
            return network_->send(
                {[execute, fail] {
                     execute({});
                     fail();
                 },
                 from, lane, due});
        default: // it arrives when nobody counts on it any more
            network_->send({[execute] { execute({}); }, nullptr, no_lane, in_seconds(5)});
            return network_->send({fail, from, no_lane, now});
        }
    }
    bool const is_repeated = happens(faults_.repeats);
    if (is_repeated)
        trace("a command on lane {:x} of {} is repeated", lane, owner_);
    if (is_repeated && how == again)
        network_->send({[execute] { execute({}); }, nullptr, no_lane, in_seconds(5)});
    network_->send(
        {[execute, replies_to, is_repeated, how] {
             if (is_repeated && how == once_soon)
                 execute({});
             execute(replies_to);
         },
         from, lane, due});
}

template<class Command>
void link::tell(std::uint64_t lane, Command command)
{
    if (is_dead_)
        return;
    if (pace_ == pace::at_once)
        return command(*store_);
    network::parcel sent{
        [this, command = std::move(command)] { command(*store_); }, nullptr, lane,
        happens(faults_.slow) ? in_seconds(4) : scheduler_.now()};
    if (is_cut_)
        unsent_.push_back(std::move(sent));
    else
        network_->send(std::move(sent));
}

}
