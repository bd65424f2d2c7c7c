// The writing end of a call's stream: batches appends (one outstanding per stream), holds the tool back
// while its reader is behind, coalesces progress, and lets exactly one final answer through. Pure: takes
// events, returns actions. Belongs to the call's loop.
#pragma once

#include "store/types.hpp"

#include <belay/error.hpp>

#include <deque>
#include <optional>
#include <system_error>
#include <variant>
#include <vector>

namespace belay::engine {

struct flow_settings {
    std::uint64_t window_events = 500;        ///< half the retention
    std::uint64_t window_bytes = 4u << 20;    ///< half the retention
    base::duration stall = std::chrono::seconds(5);
    base::duration grace = std::chrono::seconds(3);
    base::duration progress_gap = std::chrono::milliseconds(20);
    bool waits = true;
    /// What a handler may say in one go, whoever reads it; then others have their turn on the loop. As much as a
    /// connection reads at once, so that a burst leaves in as few writes as it would without turns.
    std::size_t turn_events = 256;
    std::size_t turn_bytes = 256u << 10;
};

struct append_events {
    std::vector<store::event_data> events;
    bool finish;
};
/// An emit may go on, or has failed.
struct resume_emit {
    std::uint64_t ticket;
    std::error_code error;
};
/// The reader held the call up for too long: close its connection.
struct drop_reader {};
/// A question is in the log, under this sequence, or is not.
struct asked {
    std::uint64_t ticket;
    result<std::uint64_t> sequence;
};
/// The oldest answer is in the log. After the last one the machine is done.
struct answered {
    bool is_last;
};
/// The oldest answer could not be appended as it is; replace_answer() gives another one.
struct answer_refused {
    std::error_code error;
};

using producer_action = std::variant<append_events, resume_emit, drop_reader, asked, answered, answer_refused>;
using producer_actions = std::vector<producer_action>;

class producer {
public:
    explicit producer(flow_settings const& settings) : settings_(settings) {}

    /// One message of the tool. resume_emit with this ticket follows, now or later.
    [[nodiscard]] std::uint64_t emit(store::bytes payload, base::time_point now, producer_actions& out);
    /// Newest wins within progress_gap; never waits; an error is not reported. `value` is how far that is, for whoever
    /// goes on with the call.
    void progress(
        store::bytes payload, base::time_point now, producer_actions& out, std::optional<double> value = std::nullopt);
    /// A message that the client has to answer, by that number; 0: the answer goes elsewhere. Under a key the answer is
    /// kept. Never waits; `asked` with this ticket follows.
    [[nodiscard]] std::uint64_t
    ask(store::bytes payload, std::uint32_t number, producer_actions& out, store::bytes key = {});
    /// An answer. A batch has several, each to one of its requests; nothing can follow the last one, and false is for
    /// what comes after it.
    [[nodiscard]] bool answer(store::bytes response, bool is_last, producer_actions& out, std::uint32_t request = 0);
    /// After answer_refused: another answer in its place.
    void replace_answer(store::bytes response, producer_actions& out);

    void appended(result<store::stream_top> top, base::time_point now, producer_actions& out);
    void reader_moved(store::reader_mark const& mark, base::time_point now, producer_actions& out);
    void tick(base::time_point now, producer_actions& out);

    /// When tick() is next needed; nothing if not.
    [[nodiscard]] std::optional<base::time_point> next_tick() const noexcept;
    [[nodiscard]] bool is_finishing() const noexcept { return is_finishing_; }
    [[nodiscard]] bool is_answered() const noexcept { return is_answered_; }

private:
    void append_next(producer_actions& out);
    [[nodiscard]] bool must_wait(base::time_point now) const noexcept;
    void release(producer_actions& out);

    flow_settings const& settings_;
    std::vector<store::event_data> next_batch_;
    std::vector<std::uint64_t> next_tickets_; // of the emits in next_batch_
    std::vector<std::uint64_t> batch_tickets_; // of the emits being appended
    struct question {
        std::uint64_t ticket;
        std::size_t place; // in its batch
    };
    std::vector<question> next_questions_;
    std::vector<question> batch_questions_;
    std::size_t batch_size_ = 0;
    struct waiting {
        std::uint64_t ticket;
        base::time_point since;
    };
    std::deque<waiting> waiting_; // appended, held back
    std::uint64_t last_ticket_ = 0;
    bool is_appending_ = false;
    bool is_finishing_ = false;
    bool has_answer_ = false; // the batch being appended
    bool is_answered_ = false;
    bool is_alone_ = false; // the next answer, because it was refused once
    bool is_refused_ = false; // the oldest answer waits to be replaced
    std::deque<store::event_data> answers_; // not in the log yet; the last of them is the last if is_finishing_

    std::optional<store::event_data> progress_; // held back
    std::optional<base::time_point> last_progress_;

    store::stream_top top_;
    store::reader_mark reader_;
    std::optional<base::time_point> detached_at_;
    bool is_waived_ = false; // the reader was dropped for stalling; nothing waits until one attaches
};

}
