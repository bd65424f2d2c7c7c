// An output with a reader that it keeps pace with: drives a producer machine, which batches what is said and holds
// handlers back while the reader is behind. Where the batches go is the business of those that derive from it.
#pragma once

#include "base/loop.hpp"
#include "engine/producer.hpp"
#include "runtime/call_output.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::runtime {

class node_context;

class paced_output : public call_output, public std::enable_shared_from_this<paced_output> {
public:
    void begin(std::weak_ptr<output_user> user) override;
    [[nodiscard]] std::optional<std::error_code> emit(std::string message, emitted& done) override;
    void progress(std::uint32_t request, double value, std::string message) override;
    void answer(open_request of, std::string response) override;

protected:
    /// `requests` is how many answers there will be.
    paced_output(node_context& context, base::loop& loop, engine::flow_settings const& flow, std::size_t requests);
    ~paced_output() override;

    /// The machine's batch; appended() has to follow, at once or later.
    virtual void write(engine::append_events& batch) = 0;
    /// The reader has held the handlers up for too long.
    virtual void dismiss_reader() = 0;
    /// What has become of a question.
    virtual void settle(engine::asked const&) {}
    /// Just before the answer to a request.
    virtual void close_request(std::uint32_t) {}
    /// Over, once: no function of this is called any more.
    virtual void close() = 0;

    void appended(result<store::stream_top> top);
    void reader_moved(store::reader_mark const& mark);
    /// Says something that waits for nobody and whose failure is nobody's concern.
    void say(std::string message);
    /// Gives the machine a question.
    [[nodiscard]] std::uint64_t put_question(std::string message, std::uint32_t number, store::bytes key);
    /// Does what the machine wants done by now.
    void perform();
    /// Nothing that is said from now on is heard by anybody.
    void lose(std::error_code why);
    /// The same, and nobody is told.
    void end();

    [[nodiscard]] node_context& context() const noexcept { return context_; }
    [[nodiscard]] base::loop& loop() const noexcept { return loop_; }
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }
    [[nodiscard]] bool is_finishing() const noexcept { return open_requests_ == 0; }
    [[nodiscard]] std::shared_ptr<output_user> user() const { return user_.lock(); }

private:
    void perform(engine::append_events& action) { write(action); }
    void perform(engine::resume_emit const& action);
    void perform(engine::drop_reader const&) { dismiss_reader(); }
    void perform(engine::asked const& action) { settle(action); }
    void perform(engine::answered const& action);
    void perform(engine::answer_refused const& action);
    void arm();

    node_context& context_;
    base::loop& loop_;
    std::weak_ptr<output_user> user_;
    engine::flow_settings flow_;
    engine::producer machine_;
    engine::producer_actions actions_;
    engine::producer_actions performing_; // swapped with actions_, so that both keep their memory
    bool is_performing_ = false;
    bool is_over_ = false;
    bool const is_shared_; // by several requests
    std::size_t open_requests_;
    std::optional<protocol::end_reason> replaced_; // why the last answer is another one than was given
    struct waiting {
        std::uint64_t ticket;
        emitted done;
    };
    std::vector<waiting> waiting_;
    struct answering {
        open_request of;
        bool is_shortened = false;
    };
    std::deque<answering> answering_; // in the order of the machine's answers
    // The outcome of the emit being made, if it came at once.
    std::uint64_t emitting_ = 0;
    std::optional<std::error_code> emitted_now_;
    base::timer tick_;
};

}
