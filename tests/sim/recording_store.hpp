// A store that remembers every event ever appended, as the model to compare deliveries with, and that can
// answer late: then each completion comes as work of the loop that asked, in an order of its own.
#pragma once

#include "sim_loop.hpp"
#include "store/memory_store.hpp"
#include "support/forwarding_store.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <vector>

namespace belay::sim {

class recording_store final : public forwarding_store {
public:
    enum class pace { at_once, late };

    recording_store(store::memory_store& inner, scheduler& scheduler, pace pace)
        : forwarding_store(inner), inner_(inner), scheduler_(scheduler), pace_(pace)
    {
    }

    /// Everything appended to a stream, in order.
    [[nodiscard]] std::vector<store::event_data> const& log(store::stream_id stream) { return logs_[stream]; }
    [[nodiscard]] std::uint64_t appended() const noexcept { return appended_; }
    /// Whether a call was opened with an id in use, where ids are unique.
    [[nodiscard]] bool let_duplicates_in() const noexcept { return let_duplicates_in_; }
    /// How many appends to a stream were refused.
    [[nodiscard]] std::size_t refused(store::stream_id stream) { return refused_[stream]; }

    void create(
        store::session_record record, base::time_point now,
        store::completion<std::shared_ptr<store::session_record const>> done) override
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
    void
    expired(base::time_point now, std::size_t limit, store::completion<std::vector<store::session_key>> done) override
    {
        inner_.expired(now, limit, later(std::move(done)));
    }
    void end(store::session_key const& key, store::completion<void> done) override
    {
        inner_.end(key, later(std::move(done)));
    }
    void
    subscribe(store::session_key const& key, std::string uri, std::size_t limit, store::completion<void> done) override
    {
        inner_.subscribe(key, std::move(uri), limit, later(std::move(done)));
    }
    void unsubscribe(store::session_key const& key, std::string_view uri, store::completion<void> done) override
    {
        inner_.unsubscribe(key, uri, later(std::move(done)));
    }
    void subscribers(
        std::string_view uri, std::optional<store::session_key> after, std::size_t limit,
        store::completion<std::vector<store::subscriber>> done) override
    {
        inner_.subscribers(uri, std::move(after), limit, later(std::move(done)));
    }
    void open(
        store::stream_key const& key, store::stream_meta meta, std::string const& owner, base::time_point now,
        store::completion<store::opened_stream> done) override
    {
        auto label = meta.label;
        bool const is_duplicate = meta.has_unique_ids && is_any_in_use(key.session, label);
        inner_.open(
            key, std::move(meta), owner, now,
            [this, key, is_duplicate, label = std::move(label),
             done = later(std::move(done))](result<store::opened_stream> opened) mutable {
                let_duplicates_in_ = let_duplicates_in_ || (opened && is_duplicate);
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
                } else {
                    ++refused_[stream];
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
    void note_reader(store::stream_key const& key, store::reader_mark mark) override
    {
        delivered_[key.stream] = std::max(delivered_[key.stream], mark.delivered);
        inner_.note_reader(key, mark);
    }
    void note_delivered(store::stream_key const& key, std::uint64_t sequence) override
    {
        delivered_[key.stream] = std::max(delivered_[key.stream], sequence);
        inner_.note_delivered(key, sequence);
    }
    void reader(store::stream_key const& key, store::completion<store::reader_mark> done) override
    {
        inner_.reader(key, later(std::move(done)));
    }
    void lapsed(base::time_point now, std::size_t limit, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.lapsed(now, limit, later(std::move(done)));
    }
    void
    claim(store::stream_key const& key, std::string const& owner, store::completion<store::claimed_call> done) override
    {
        inner_.claim(key, owner, later(std::move(done)));
    }
    void find(store::session_key const& key, std::string_view label, store::completion<store::call_ref> done) override
    {
        auto const* const meant = meant_by(key, label);
        inner_.find(
            key, label,
            [this, key, meant, label = std::string(label),
             done = later(std::move(done))](result<store::call_ref> found) mutable {
                on_found_(key, label, meant, found ? std::optional(found->stream.stream) : std::nullopt);
                done(std::move(found));
            });
    }
    /// Called for every look-up of a call by its id: which one is meant by what was recorded, and which one was found.
    using found_function = std::function<void(
        store::session_key const&, std::string const& id, opened_call const* meant, std::optional<store::stream_id>)>;
    void on_found(found_function told) { on_found_ = std::move(told); }
    void running(store::session_key const& key, store::completion<std::vector<store::call_ref>> done) override
    {
        inner_.running(key, later(std::move(done)));
    }
    void send(std::string const& owner, store::owner_message message, store::completion<void> done) override
    {
        inner_.send(owner, std::move(message), later(std::move(done)));
    }

private:
    /// The newest call of the session with that id which has no answer to it; none if a newer one has an answer that
    /// has not arrived.
    [[nodiscard]] opened_call const* meant_by(store::session_key const& session, std::string_view id)
    {
        for (auto each = opened_.rbegin(); each != opened_.rend(); ++each) {
            bool is_kept = false;
            if (each->key.session == session)
                inner_.inspect(each->key, [&](result<store::stream_meta> meta) { is_kept = meta.has_value(); });
            if (!is_kept)
                continue;
            std::uint32_t line = 0;
            for (auto const part : std::views::split(each->label, '\n')) {
                if (std::string_view(part.begin(), part.end()) == id) {
                    auto const answer = answer_to(each->key.stream, line);
                    if (answer == 0)
                        return &*each;
                    if (answer > delivered_[each->key.stream])
                        return nullptr;
                }
                ++line;
            }
        }
        return nullptr;
    }
    [[nodiscard]] bool is_any_in_use(store::session_key const& session, std::string_view label)
    {
        return std::ranges::any_of(std::views::split(label, '\n'), [&](auto const part) {
            std::string_view const id(part.begin(), part.end());
            return std::ranges::any_of(opened_, [&](opened_call const& each) {
                bool is_kept = false;
                if (each.key.session == session)
                    inner_.inspect(each.key, [&](result<store::stream_meta> meta) { is_kept = meta.has_value(); });
                std::uint32_t line = 0;
                for (auto const own : std::views::split(each.label, '\n')) {
                    if (is_kept && std::string_view(own.begin(), own.end()) == id
                        && answer_to(each.key.stream, line) == 0)
                        return true;
                    ++line;
                }
                return false;
            });
        });
    }
    /// The sequence of the answer to a request; 0 if there is none.
    [[nodiscard]] std::uint64_t answer_to(store::stream_id stream, std::uint32_t line)
    {
        auto const& log = logs_[stream];
        auto const answer = std::ranges::find_if(log, [&](store::event_data const& event) {
            return event.kind == store::event_kind::response && event.line == line;
        });
        return answer == log.end() ? 0 : static_cast<std::uint64_t>(answer - log.begin()) + 1;
    }
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
    std::deque<opened_call> opened_;
    std::map<store::stream_id, std::size_t> refused_;
    std::map<store::stream_id, std::uint64_t> delivered_;
    found_function on_found_ = [](auto const&...) {};
    std::map<store::stream_id, std::vector<store::event_data>> logs_;
    std::set<std::pair<store::stream_id, std::uint64_t>> blanked_;
    std::uint64_t appended_ = 0;
    bool let_duplicates_in_ = false;
};

}
