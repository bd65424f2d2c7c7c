// A store that remembers every event ever appended, as the model to compare deliveries with, and that can
// answer late: then each completion comes as work of the loop that asked, in an order of its own.
#pragma once

#include "sim_loop.hpp"
#include "store/memory_store.hpp"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace belay::sim {

class recording_store final : public store::backend {
public:
    enum class pace { at_once, late };

    recording_store(store::memory_store& inner, scheduler& scheduler, pace pace)
        : inner_(inner), scheduler_(scheduler), pace_(pace)
    {
    }

    /// Everything appended to a stream, in order.
    [[nodiscard]] std::vector<store::event_data> const& log(store::stream_id stream) { return logs_[stream]; }
    [[nodiscard]] std::uint64_t appended() const noexcept { return appended_; }

    void create(store::session_record record, base::time_point now, store::completion<void> done) override
    {
        inner_.create(std::move(record), now, later(std::move(done)));
    }
    void
    load(store::session_key const& key, store::completion<std::shared_ptr<store::session_record const>> done) override
    {
        inner_.load(key, later(std::move(done)));
    }
    void
    update(store::session_record record, store::completion<std::shared_ptr<store::session_record const>> done) override
    {
        inner_.update(std::move(record), later(std::move(done)));
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
    void end(store::session_key const& key, store::completion<void> done) override
    {
        inner_.end(key, later(std::move(done)));
    }
    void open(
        store::stream_key const& key, store::stream_meta meta, std::string const& owner, base::time_point now,
        store::completion<store::opened_stream> done) override
    {
        auto label = meta.label;
        inner_.open(
            key, std::move(meta), owner, now,
            [this, key, label = std::move(label),
             done = later(std::move(done))](result<store::opened_stream> opened) mutable {
                if (opened)
                    opened_.push_back({key, std::move(label), opened->twin.value_or(key.stream)});
                done(std::move(opened));
            });
    }
    void append(
        store::stream_key const& key, store::fence fence, std::vector<store::event_data> events, bool finish,
        base::time_point now, store::completion<store::stream_top> done) override
    {
        auto copy = events;
        inner_.append(
            key, fence, std::move(events), finish, now,
            [this, stream = key.stream, copy = std::move(copy),
             done = later(std::move(done))](result<store::stream_top> top) mutable {
                if (top) {
                    auto& log = logs_[stream];
                    log.insert(log.end(), copy.begin(), copy.end());
                    appended_ += copy.size();
                }
                done(std::move(top));
            });
    }
    void blank(
        store::stream_key const& key, store::fence fence, std::uint64_t sequence, store::completion<void> done) override
    {
        inner_.blank(
            key, fence, sequence, [this, key, sequence, done = later(std::move(done))](result<void> outcome) mutable {
                if (outcome)
                    blanked_.insert({key.stream, sequence});
                done(std::move(outcome));
            });
    }
    /// Whether the event's payload was taken out.
    [[nodiscard]] bool is_blank(store::stream_id stream, std::uint64_t sequence) const
    {
        return blanked_.contains({stream, sequence});
    }
    struct opened_call {
        store::stream_key key;
        std::string label;
        store::stream_id root; ///< whose work it is: its own, or that of the call it repeats
    };
    /// The newest of the session's calls with that id, whatever has become of it, of which anything is kept.
    [[nodiscard]] opened_call const* newest(store::session_key const& session, std::string_view id)
    {
        for (auto each = opened_.rbegin(); each != opened_.rend(); ++each) {
            bool is_kept = false;
            if (each->key.session == session && ("\n" + each->label + "\n").contains("\n" + std::string(id) + "\n"))
                inner_.inspect(each->key, [&](result<store::stream_meta> meta) { is_kept = meta.has_value(); });
            if (is_kept)
                return &*each;
        }
        return nullptr;
    }
    void read_after(
        store::stream_key const& key, std::uint64_t after, store::read_limit limit,
        store::completion<store::page> done) override
    {
        inner_.read_after(key, after, limit, later(std::move(done)));
    }
    void inspect(store::stream_key const& key, store::completion<store::stream_meta> done) override
    {
        inner_.inspect(key, later(std::move(done)));
    }
    std::unique_ptr<store::watch_handle>
    watch(store::stream_key const& key, interest interest, std::function<void()> wake) override
    {
        return inner_.watch(key, interest, std::move(wake));
    }
    void note_reader(store::stream_key const& key, store::reader_mark mark) override { inner_.note_reader(key, mark); }
    void reader(store::stream_key const& key, store::completion<store::reader_mark> done) override
    {
        inner_.reader(key, later(std::move(done)));
    }
    void sweep(base::time_point now) override { inner_.sweep(now); }
    void renew(std::string const& owner, base::time_point until) override { inner_.renew(owner, until); }
    void lapsed(base::time_point now, std::size_t limit, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.lapsed(now, limit, later(std::move(done)));
    }
    void claim(store::stream_key const& key, std::string const& owner, store::completion<store::fence> done) override
    {
        inner_.claim(key, owner, later(std::move(done)));
    }
    void find(store::session_key const& key, std::string_view label, store::completion<store::call_ref> done) override
    {
        inner_.find(key, label, later(std::move(done)));
    }
    void running(store::session_key const& key, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.running(key, later(std::move(done)));
    }
    void send(std::string const& owner, store::owner_message message, store::completion<void> done) override
    {
        inner_.send(owner, std::move(message), later(std::move(done)));
    }
    std::unique_ptr<store::watch_handle>
    listen(std::string const& owner, std::function<void(store::owner_message)> deliver) override
    {
        return inner_.listen(owner, std::move(deliver));
    }
    store::durability promise() const noexcept override { return inner_.promise(); }
    store::usage used() const override { return inner_.used(); }

private:
    template<class T>
    store::completion<T> later(store::completion<T> done)
    {
        if (pace_ == pace::at_once)
            return done;
        // Some rounds of the loop late, so that a wake-up may come before the answer to an older question.
        return [this, &loop = scheduler_.current(), done = std::move(done)](result<T> outcome) mutable {
            after(loop, scheduler_.random().below(5), [done = std::move(done), outcome = std::move(outcome)]() mutable {
                done(std::move(outcome));
            });
        };
    }
    static void after(sim_loop& loop, std::uint64_t rounds, std::move_only_function<void()> work)
    {
        loop.post([&loop, rounds, work = std::move(work)]() mutable {
            if (rounds == 0)
                work();
            else
                after(loop, rounds - 1, std::move(work));
        });
    }

    store::memory_store& inner_;
    scheduler& scheduler_;
    pace pace_;
    std::vector<opened_call> opened_;
    std::map<store::stream_id, std::vector<store::event_data>> logs_;
    std::set<std::pair<store::stream_id, std::uint64_t>> blanked_;
    std::uint64_t appended_ = 0;
};

}
