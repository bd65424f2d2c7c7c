// A world from one seed: clients, their sessions and calls, processes with real nodes on a real memory store, loops and
// clocks under the scheduler's hand, wires that lose bytes, links that lose replies. Random operations and random
// faults; the promises are checked after every one of them.
#pragma once

#include "base/ids.hpp"
#include "observe/metrics.hpp"
#include "process.hpp"
#include "recorder.hpp"
#include "sim_loop.hpp"
#include "store/memory_store.hpp"
#include "wire.hpp"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace belay::sim {

class world {
public:
    explicit world(std::uint64_t seed);
    ~world();

    /// The random part, then the end: everybody comes back for what is theirs.
    void run();

    /// What happened, for comparing two runs of one seed.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }

private:
    struct session;
    struct request;
    struct call;
    struct tool;
    struct connection;
    struct plan;
    struct store_life;
    struct held_call;
    struct code;
    class work;
    /// What can happen to the processes and the store, beside what clients do.
    enum class weather {
        calm, ///< nothing
        late, ///< completions come late and in any order
        stormy, ///< everything
    };
    /// Where a request goes.
    struct place {
        process* at = nullptr;
        sim_loop* loop = nullptr;
        std::size_t failures = 0; ///< of its link until now
        explicit operator bool() const noexcept { return at != nullptr; }
    };

    // Operations. Each may find nothing to do.
    void open_session();
    void end_session();
    void begin_call();
    void begin_batch();
    void subscribe();
    void update_resource();
    void cancel_call();
    void resume_call();
    void listen();
    void announce();
    void reinitialize();
    void present_foreign_id();
    void cut();
    void vanish();
    void read_some();
    void pass_time();
    void answer_some();
    void hold_call();
    void broadcast();
    void use_record();

    // Faults.
    void fault();
    void start_process();
    void kill(process& which);
    void replace_process();
    void pause_process();
    void cut_link();
    void stop_store();
    void lose_data();
    void drain(process& which);
    void drain_step(process& which);
    void end_drain(process& which);
    void end_faults();

    void advance(base::duration by);
    void look_for_arrivals();
    void keep_reading();
    void step();
    void settle();
    void check_always();
    void check_leases();
    void check_lost_calls();
    void check_balance();
    void check_end();
    void check_call(call const& which);
    void check_recorded();
    void check_readers();
    void check_held();
    void check_codes();
    void check_empty();

    [[nodiscard]] plan make_plan(bool is_steady);
    void run_again(std::string const& mark, plan const& does, std::shared_ptr<runtime::call> const& on);
    [[nodiscard]] std::string any_id(std::uint64_t number);
    void began(session& of, place at, std::shared_ptr<runtime::following> const& reader, std::unique_ptr<call> fresh);
    void use(
        session& of, place at, std::move_only_function<void(runtime::session_use)> then,
        std::move_only_function<void()> refused = [] {});
    void expired(session& of);
    void overdue(session& of);
    void put_code();
    void take(code& from, place at, std::string const& taker);
    void found_gone(session& of);
    void resume(call& which);
    void follow(session& of, call* which, std::optional<std::string> cursor);
    void follow_refused(session& of, call* which, place at, runtime::follow_refusal why);
    bool read(connection& from, std::size_t most);
    void saw(connection& on, http::sse_event const& event);
    void saw_response(call& which, std::string const& text, bool is_last);
    void require_ending(call const& which, request const& of, std::string const& text) const;
    void drop_finished_connections();
    void answer(call& which, std::string const& question, std::string const& mark);
    void remove(session& of);
    void skip_blanks(connection& on, std::uint64_t to);
    [[nodiscard]] bool may_begin_at(session const& of, std::uint64_t sequence) const;
    void heard_question(call& of, std::string const& text);
    [[nodiscard]] bool is_open_question(connection& on, std::string const& text);

    [[nodiscard]] session* any_session();
    [[nodiscard]] call* any_call();
    [[nodiscard]] connection* any_connection();
    [[nodiscard]] place any_place();
    [[nodiscard]] bool is_open(call const& which) const;
    [[nodiscard]] call* call_of(store::stream_id stream) const;
    [[nodiscard]] store_life& store() const noexcept { return *lives_.back(); }
    void make_store();

    /// A client waits for an answer of that process; `broken` tells it that there will be none.
    std::uint64_t begin_exchange(process& with, std::move_only_function<void()> broken);
    void end_exchange(std::uint64_t which) { exchanges_.erase(which); }
    /// Runs on the place's loop, now or when its process goes on.
    void ask(place at, std::move_only_function<void()> work);

    void require(bool holds, std::string const& what) const;
    void require_refusal(session const& of, place at, std::error_code why) const;
    /// Whether whoever asked there may be told that the server is not available.
    [[nodiscard]] bool may_be_unavailable(place at) const;
    [[nodiscard]] bool has_faults() const noexcept { return weather_ == weather::stormy; }
    [[nodiscard]] bool chance(std::uint64_t in) { return random_.below(in) == 0; }
    void note(std::uint64_t what) { digest_ = (digest_ ^ what) * 1099511628211u; }

    base::seeded_random random_;
    scheduler scheduler_;
    weather weather_ = weather::calm;
    network_faults network_faults_;
    runtime::settings settings_;
    observe::metrics metrics_;
    std::size_t wanted_processes_ = 1;
    std::vector<std::unique_ptr<store_life>> lives_; // of the store, the newest last
    std::vector<std::shared_ptr<link>> links_; // those of killed processes too, while something is under way
    std::vector<std::unique_ptr<process>> processes_; // that live
    bool has_killed_ = false;
    bool has_jumped_ = false; // time has, past the lease
    bool has_healed_ = false; // nothing goes wrong any more
    bool has_wide_retention_ = false;
    bool is_steady_ = false; // some clients read all the time; streams have room for what tools may run ahead
    std::set<std::string> interrupted_; // processes that ended their calls
    std::map<store::stream_id, std::size_t> runs_again_; // how often a call was
    std::uint64_t next_seed_;
    std::unique_ptr<work> work_; // of processes that can run calls again
    std::unique_ptr<work> other_work_; // of those that cannot
    struct rerun {
        process* at; // null: killed
        std::shared_ptr<tool> runs;
    };
    std::vector<rerun> reruns_;
    std::vector<rerun> former_; // those that were run again
    std::vector<std::unique_ptr<session>> sessions_;
    std::vector<std::unique_ptr<call>> calls_;
    std::vector<std::unique_ptr<connection>> connections_;
    std::vector<std::unique_ptr<held_call>> held_;
    std::vector<std::unique_ptr<code>> codes_; // to be taken once
    std::vector<std::shared_ptr<wire>> receipts_; // of connections that are over, until the server has looked
    struct exchange {
        process* with;
        std::move_only_function<void()> broken;
    };
    std::map<std::uint64_t, exchange> exchanges_;
    std::uint64_t last_exchange_ = 0;
    std::set<store::stream_id> cancelled_; // the roots of calls that a cancel was meant for
    std::vector<std::pair<store::stream_id, std::string>> looked_up_; // calls, by the ids that they were named by
    std::size_t updates_ = 0; // of resources
    std::size_t broadcasts_ = 0;
    std::size_t takers_ = 0;
    std::size_t marks_ = 0; // of calls, each once
    std::uint64_t digest_ = 14695981039346656037u;
};

}
