// What a world is made of: lives of the store, sessions and calls as their clients know them, tools, connections.
#pragma once

#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace belay::sim {

using namespace std::chrono_literals;

/// A store from its beginning to the loss of its data.
struct world::store_life {
    class counts final : public store::event_counter {
    public:
        void delivered(std::size_t, std::size_t first) override { first_deliveries += first; }
        void trimmed(std::size_t, std::size_t undelivered) override { trimmed_undelivered += undelivered; }
        void ended(std::size_t, std::size_t undelivered) override { ended_undelivered += undelivered; }
        std::uint64_t first_deliveries = 0;
        std::uint64_t trimmed_undelivered = 0;
        std::uint64_t ended_undelivered = 0;
    };
    store_life(store::limits const& limits, base::clock const& clock, std::uint64_t epoch)
        : memory(limits, clock, epoch, &counted), record(memory, clock)
    {
    }
    counts counted;
    store::memory_store memory;
    recorder record;
};

struct world::session {
    store_life* in = nullptr;
    std::string id;
    std::string principal;
    protocol::revision revision = protocol::newest_revision;
    store::stream_id standalone = 0;
    bool is_deleting = false; // its client has sent DELETE, and wants nothing of it any more
    bool is_removing = false; // is waiting for the answer to that
    bool is_deleted = false;  // which was given
    bool is_gone = false;     // the server said 404, and was right; or the store has lost it
    bool is_overdue = false;  // older than a session may get, and ended for it
    bool is_initialized = false; // its client has said so
    base::time_point made_at{};
    base::time_point last_active{};
    std::size_t announced = 0;
    std::map<std::string, std::size_t> calls_with_key; // asked for
    std::set<std::string> subscriptions;
    std::set<std::string> unsure_subscriptions; // changed with an unknown outcome
    // Of the standalone stream:
    std::uint64_t seen = 0;
    std::string last_id;

    [[nodiscard]] bool is_over() const noexcept { return is_deleting || is_gone || is_overdue; }
    [[nodiscard]] store::session_key key() const { return {principal, *base::parse_id128(id)}; }
};

/// A request: a call has one, a batch several.
struct world::request {
    std::string id;
    std::string mark; // what its tool writes into its messages
    std::shared_ptr<tool> runs; // null: answered at once, or its process was killed
    base::duration limit{};     // how long it may take
    std::optional<base::duration> orphan_limit{}; // how long it goes on without a reader
    std::size_t responses = 0;
};

struct world::call {
    session* of = nullptr;
    process* at = nullptr; // null: killed
    store::stream_id stream = 0;
    std::vector<request> requests;
    std::uint64_t seen = 0; // sequence of the last event received
    std::string last_id;
    bool is_lost = false; // refused with 400 or 404, rightly
    bool is_steady = false; // its client reads all the time
    bool is_resuming = false;
    std::map<std::string, std::string> questions; // seen and not answered, with the mark of who asked
    store::stream_id first = 0; // the call that it repeats

    /// The client has every answer.
    [[nodiscard]] bool is_answered() const
    {
        return std::ranges::all_of(requests, [](auto const& each) { return each.responses == 1; });
    }
    /// Whose work it is.
    [[nodiscard]] store::stream_id root() const noexcept { return first ? first : stream; }
};

/// A call without a stream: its answer goes to the connection that waits for it.
struct world::held_call {
    session* of = nullptr;
    process* at = nullptr; // null: killed
    std::string id;
    std::string mark;
    std::shared_ptr<tool> runs;
    std::size_t responses = 0;
    bool is_cancelled = false;
};

/// A small record that one of several who try may take.
struct world::code {
    store_life* in = nullptr;
    std::string name;
    std::uint64_t revision = 0; // 0: nobody knows whether it is there
    std::set<std::string> winners;
};

struct world::connection {
    std::shared_ptr<sim::wire> wire;
    process* at = nullptr; // null: killed
    std::string owner;     // the name of that process at the store
    base::time_point since{};
    session* of = nullptr;
    world::call* which = nullptr; // null: the standalone stream
    http::sse_reader reader;
    std::uint64_t position = 0;
    bool knows_position = false; // a plain GET learns it from the priming event

    [[nodiscard]] bool is_steady() const noexcept { return which && which->is_steady; }
};

// A tool is a list of things to do on its call, as a coroutine would do them.
struct world::tool : std::enable_shared_from_this<tool> {
    struct step {
        enum class kind { emit, progress, wait, close_connection, ask } what;
        std::size_t bytes = 0;
        base::duration time{};
    };
    tool(
        std::shared_ptr<runtime::call> on, std::vector<step> steps, std::size_t answer_bytes, std::string mark,
        bool ends_slowly)
        : on(std::move(on)), steps(std::move(steps)), answer_bytes(answer_bytes), mark(std::move(mark)),
          ends_slowly(ends_slowly), timer(this->on->loop().timers(), [this] { go(); })
    {
    }

    void go()
    {
        auto const self = shared_from_this();
        while (!is_stopped && at < steps.size()) {
            auto const& next = steps[at++];
            switch (next.what) {
            case step::kind::emit: {
                auto text = fmt::format(R"({{"of":"{}","n":{},"pad":")", mark, at);
                text.append(next.bytes, 'x');
                text += "\"}";
                auto const outcome = on->emit(std::move(text), [self](std::error_code error) {
                    self->is_stopped = self->is_stopped || is_final(error);
                    self->go();
                });
                if (!outcome)
                    return;
                is_stopped = is_stopped || is_final(*outcome);
                break;
            }
            case step::kind::progress:
                on->progress(static_cast<double>(at), fmt::format(R"({{"of":"{}","progress":{}}})", mark, at));
                break;
            case step::kind::wait: timer.after(next.time); return;
            case step::kind::close_connection: on->close_connection(100ms); break;
            case step::kind::ask:
                on->ask(
                    "ask", fmt::format(R"({{"of":"{}"}})", mark), keys ? fmt::format("q{}", at) : "",
                    [self](result<std::string> answer) {
                    // The answer of this caller, once.
                        if (answer && *answer != fmt::format(R"({{"result":{{"to":"{}"}}}})", self->mark))
                            self->is_misled = true;
                        ++self->answers;
                        self->go();
                    });
                ++questions;
                return;
            }
        }
        if (is_stopped || std::exchange(has_answered, true))
            return;
        on->answer(response(on->id(), mark, answer_bytes));
    }
    /// Whether nothing that it emits can be kept any more.
    [[nodiscard]] static bool is_final(std::error_code why)
    {
        return why == errc::finished || why == errc::fenced || why == errc::not_found || why == errc::stream_gone;
    }
    [[nodiscard]] static std::string response(std::string const& id, std::string const& mark, std::size_t bytes)
    {
        auto text = fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{{"of":"{}","pad":")", id, mark);
        text.append(bytes, 'y');
        text += "\"}}";
        return text;
    }
    /// Its process is killed.
    void let_go()
    {
        is_stopped = true;
        timer.cancel();
        on.reset();
    }
    void stop_when_interrupted()
    {
        on->on_interrupt([weak = weak_from_this()] {
            auto const self = weak.lock();
            if (!self)
                return;
            self->is_stopped = true;
            // Its frame is gone now or soon; one that is slow is not waited for.
            if (!self->ends_slowly && self->on)
                self->on->loop().post([call = self->on] { call->handler_left(); });
        });
    }

    std::shared_ptr<runtime::call> on;
    std::vector<step> steps;
    std::size_t answer_bytes;
    std::string mark;
    bool ends_slowly;
    bool keys = false; // answers are kept for another run
    std::size_t at = 0;
    bool is_stopped = false;
    bool has_answered = false;
    bool is_misled = false;
    std::size_t questions = 0;
    std::size_t answers = 0;
    base::timer timer;
};

}
