// The model of truth: stands where commands take effect and remembers every event, call and lease, so that what the
// store says and what clients see can be held against it. One for each life of the store.
#pragma once

#include "base/clock.hpp"
#include "store/memory_store.hpp"
#include "support/forwarding_store.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace belay::sim {

/// A call as the store has to know it.
struct recorded_call {
    store::stream_key key;
    std::vector<std::string> ids;
    std::string once;       ///< its key; empty: none
    store::stream_id root;  ///< whose work it is: its own, or that of the call it repeats
    std::string opened_by;
    std::string owner;      ///< empty: released
    store::fence fence = 0;
    base::time_point opened_at{};
    bool is_finished = false;
    bool may_be_lost = false; ///< it was taken over, from an owner that had lapsed or had let it go
    base::time_point released_at{};
    /// Who wrote the answer to each request, and when.
    struct answer {
        std::string owner;
        base::time_point at{};
    };
    std::map<std::uint32_t, answer> answers{};
};

class recorder final : public forwarding_store {
public:
    recorder(store::memory_store& inner, base::clock const& clock)
        : forwarding_store(inner), inner_(inner), clock_(clock)
    {
    }

    /// Everything appended to a stream, in order.
    [[nodiscard]] std::vector<store::event_data> const& log(store::stream_id stream) { return logs_[stream]; }
    [[nodiscard]] std::uint64_t appended() const noexcept { return appended_; }
    /// What the store has done that it must not do; empty: nothing.
    [[nodiscard]] std::string const& broken() const noexcept { return broken_; }
    /// How many appends to a stream were refused.
    [[nodiscard]] std::size_t refused(store::stream_id stream) { return refused_[stream]; }
    /// Whether the event's payload was taken out.
    [[nodiscard]] bool is_blank(store::stream_id stream, std::uint64_t sequence) const
    {
        return blanked_.contains({stream, sequence});
    }
    /// Whether an answer to that question has come to the store, whatever has become of it there.
    [[nodiscard]] bool has_come(store::stream_id stream, std::uint32_t question) const
    {
        return answers_come_.contains({stream, question});
    }
    [[nodiscard]] std::deque<recorded_call> const& calls() const noexcept { return calls_; }
    [[nodiscard]] recorded_call const* call_of(store::stream_id stream) const;
    [[nodiscard]] bool was_taken_over(store::stream_id stream) const
    {
        auto const* const known = call_of(stream);
        return known && known->may_be_lost;
    }
    /// The sequence of the answer to a request; 0 if there is none.
    [[nodiscard]] std::uint64_t answer_to(store::stream_id stream, std::uint32_t number);
    /// Since when a call without an answer has had no living owner; nothing if it has one.
    [[nodiscard]] std::optional<base::time_point> ownerless_since(recorded_call const& call) const;
    /// Until when the owner lives, as far as is known now.
    [[nodiscard]] base::time_point lease_of(std::string const& owner) const;
    /// Whether what the owner had since then may have been held by nobody for that long.
    [[nodiscard]] bool was_dead_for(std::string const& owner, base::time_point since, base::duration time) const;
    /// How long the owner can have held what it had since then, and has let go of now.
    [[nodiscard]] base::time_point held_until(std::string const& owner, base::time_point since) const;
    /// When the session was last asked for.
    [[nodiscard]] base::time_point loaded_at(store::session_key const& key) const;
    /// Whether the store keeps the session.
    [[nodiscard]] bool keeps(store::session_key const& key);
    /// Called for every look-up of a call by its id: which one is meant by what was recorded.
    void on_found(std::function<void(std::string const& id, recorded_call const& meant)> told)
    {
        on_found_ = std::move(told);
    }

    /// Asked when an owner has claimed a call that was its own before: whether it runs it.
    void ask_who_runs(std::function<bool(std::string const& owner, store::stream_key const&)> asked)
    {
        runs_ = std::move(asked);
    }

    /// Called when the store has removed a session because nothing held it.
    void on_expired(std::function<void(store::session_key const&)> told) { on_expired_ = std::move(told); }
    [[nodiscard]] bool is_kept(store::stream_key const& key);
    /// Called when the store has named a session that is older than it may get.
    void on_overdue(std::function<void(store::session_key const&)> told) { on_overdue_ = std::move(told); }
    [[nodiscard]] bool has_expired(store::session_key const& key) const { return expired_.contains(key.id); }

    void create(store::session_record record, store::completion<store::record_ptr> done) override;
    void load(store::session_key const& key, store::completion<store::record_ptr> done) override;
    void expire(std::size_t limit, store::completion<store::expired_sessions> done) override;
    void open(
        store::stream_key const& key, store::stream_meta meta, std::string const& owner,
        std::optional<store::reader_request> reader, store::completion<store::opened_stream> done) override;
    void append(
        store::stream_key const& key, store::fence fence, std::uint64_t batch, std::uint64_t after,
        std::vector<store::event_data> events, bool finish, store::completion<store::stream_top> done) override;
    void append_standalone(
        store::stream_key const& key, std::string const& owner, std::uint64_t batch,
        std::vector<store::event_data> events, store::completion<store::stream_top> done) override;
    void blank(store::stream_key const& key, store::fence fence, std::uint64_t sequence, store::completion<void> done)
        override;
    void attach(
        store::stream_key const& key, store::attach_request request,
        store::completion<store::attached_stream> done) override;
    void detach(
        store::stream_key const& key, store::reader_id const& reader, std::optional<store::reader_mark> mark) override;
    void read_after(
        store::stream_key const& key, std::uint64_t after, store::read_limit limit,
        std::optional<store::reader_id> reader, store::completion<store::page> done) override;
    void post(store::stream_key const& key, store::letter letter, store::completion<void> done) override;
    void renew(std::string const& owner, base::duration lease, store::completion<void> done) override;
    void lapsed(std::size_t limit, store::completion<std::vector<store::call_ref>> done) override;
    void claim(
        store::stream_key const& key, store::fence seen, std::string const& owner,
        store::completion<store::claimed_call> done) override;
    void release(store::stream_key const& key, store::fence fence, bool has_run, store::completion<void> done) override;
    void
    find(store::session_key const& key, std::string_view request_id, store::completion<store::call_ref> done) override;

private:
    void expect(bool holds, std::string_view what)
    {
        if (!holds && broken_.empty())
            broken_ = what;
    }
    [[nodiscard]] recorded_call* find_call(store::stream_id stream);
    [[nodiscard]] bool is_lapsed(std::string const& owner) const { return lease_of(owner) <= clock_.now(); }
    [[nodiscard]] recorded_call const* meant_by(store::session_key const& session, std::string_view id);
    [[nodiscard]] bool is_any_in_use(store::stream_key const& key, std::vector<std::string> const& ids);
    void opened(
        store::stream_key const& key, store::stream_meta const& meta, std::string const& owner, bool is_duplicate,
        store::opened_stream const& opened);
    /// An append has taken effect, or was refused. False: it was taken for a repetition.
    bool note_append(
        store::stream_id stream, std::string const& author, std::uint64_t batch,
        std::vector<store::event_data> const& events, result<store::stream_top> const& top);
    /// What another run of a call must not say.
    void note_said(store::stream_id stream, store::event_data const& event, std::uint64_t sequence);

    store::memory_store& inner_;
    base::clock const& clock_;
    std::string broken_;
    std::deque<recorded_call> calls_;
    std::map<store::stream_id, recorded_call*> by_stream_;
    std::map<store::stream_id, std::vector<store::event_data>> logs_;
    /// The appends of one author to a stream: its fence, or who it is.
    struct authored {
        std::uint64_t last = 0;
        std::set<std::uint64_t> arrived;
    };
    std::map<std::pair<store::stream_id, std::string>, authored> authored_;
    std::map<store::stream_id, std::size_t> refused_;
    std::set<std::pair<store::stream_id, std::uint64_t>> blanked_;
    std::set<std::pair<store::stream_id, std::uint32_t>> answers_come_;
    struct asked {
        std::uint64_t sequence;
        std::string key;
    };
    std::map<std::pair<store::stream_id, std::uint32_t>, asked> asked_; // questions with a key, by their numbers
    std::set<std::pair<store::stream_id, std::string>> answered_keys_;
    std::map<store::stream_id, double> progress_;
    struct lease {
        base::time_point until{};
        base::time_point lapsed_at{};  ///< when it was last dead, from then
        base::time_point revived_at{}; ///< until then
    };
    std::map<std::string, lease, std::less<>> leases_;
    std::map<base::id128, base::time_point> loaded_;
    std::set<base::id128> expired_;
    std::function<void(store::session_key const&)> on_expired_ = [](auto const&) {};
    std::function<void(store::session_key const&)> on_overdue_ = [](auto const&) {};
    std::function<bool(std::string const&, store::stream_key const&)> runs_ = [](auto const&...) { return false; };
    std::function<void(std::string const&, recorded_call const&)> on_found_ = [](auto const&...) {};
    std::uint64_t appended_ = 0;
};

}
