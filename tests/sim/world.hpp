// A world from one seed: clients, their sessions and calls, a real node on a real memory store, loops and a
// clock under the scheduler's hand, and wires that lose bytes. Random operations; the promises are checked
// after every one of them.
#pragma once

#include "base/ids.hpp"
#include "observe/metrics.hpp"
#include "recording_store.hpp"
#include "runtime/node.hpp"
#include "sim_loop.hpp"
#include "store/memory_store.hpp"
#include "wire.hpp"

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace belay::sim {

/// A promise was broken; the text says which and where.
class broken_promise : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

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

    class counts final : public store::event_counter {
    public:
        void delivered(std::size_t, std::size_t first) override { first_deliveries += first; }
        void trimmed(std::size_t, std::size_t undelivered) override { trimmed_undelivered += undelivered; }
        void ended(std::size_t, std::size_t undelivered) override { ended_undelivered += undelivered; }
        std::uint64_t first_deliveries = 0;
        std::uint64_t trimmed_undelivered = 0;
        std::uint64_t ended_undelivered = 0;
    };

    // Operations. Each may find nothing to do.
    void open_session();
    void end_session();
    void begin_call();
    void begin_batch();
    void subscribe();
    void update_resource();
    void cancel_call();
    void
    looked_up(std::string const& id, recording_store::opened_call const* meant, std::optional<store::stream_id> found);
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
    void drain();

    void drain_step();
    void advance(base::duration by);
    void look_for_arrivals();
    void keep_reading();
    void step();
    void settle();
    void check_always();
    void check_balance();
    void check_end();

    [[nodiscard]] plan make_plan(bool is_steady);
    [[nodiscard]] std::string any_id(std::uint64_t number);
    void began(session& of, sim_loop& loop, result<runtime::begun_call> const& begun, std::unique_ptr<call> fresh);
    void use(session& of, sim_loop& loop, std::move_only_function<void(runtime::session_use)> then);
    void resume(call& which, sim_loop& loop);
    void follow(session& of, sim_loop& loop, call* which, std::optional<std::string> cursor);
    bool read(connection& from, std::size_t most);
    void saw(connection& on, http::sse_event const& event);
    void saw_response(call& which, std::string const& text, bool is_last);
    void drop_finished_connections();
    void answer(call& which, std::string const& question, std::string const& mark);
    void skip_blanks(connection& on, std::uint64_t to);
    [[nodiscard]] session* any_session();
    [[nodiscard]] call* any_call();
    [[nodiscard]] connection* any_connection();
    [[nodiscard]] bool is_open(call const& which) const;
    [[nodiscard]] call* call_of(store::stream_id stream) const;
    void require(bool holds, std::string const& what) const;
    void require_refusal(session const& of, std::error_code why) const;
    [[nodiscard]] bool chance(std::uint64_t in) { return random_.below(in) == 0; }
    void note(std::uint64_t what) { digest_ = (digest_ ^ what) * 1099511628211u; }

    base::seeded_random random_;
    base::seeded_random node_random_;
    scheduler scheduler_;
    runtime::settings settings_;
    counts counts_;
    observe::metrics metrics_;
    std::unique_ptr<store::memory_store> memory_;
    std::unique_ptr<recording_store> store_;
    std::unique_ptr<runtime::node> node_;
    bool has_wide_retention_ = false;
    bool is_steady_ = false; // some clients read all the time; streams have room for what tools may run ahead
    bool is_drained_ = false; // counted no running call: the process would close its connections and exit
    bool is_interrupted_ = false;
    std::vector<std::unique_ptr<session>> sessions_;
    std::vector<std::unique_ptr<call>> calls_;
    std::vector<std::unique_ptr<connection>> connections_;
    std::vector<std::shared_ptr<wire>> receipts_; // of connections that are over, until the server has looked
    std::set<store::stream_id> cancelled_; // the roots of calls that a cancel was meant for
    std::vector<std::pair<store::stream_id, std::string>> looked_up_; // calls, by the ids that they were named by
    std::size_t updates_ = 0; // of resources
    std::uint64_t digest_ = 14695981039346656037u;
};

}
