// The requests of one message that share an output. Each ends by itself and has its own answer; the output is over when
// the last one has. On the loop of its calls.
#pragma once

#include "base/loop.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/call_output.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::runtime {

class call;
class call_keeper;
class live_session;

class batch final : public output_user, public std::enable_shared_from_this<batch> {
public:
    batch(
        call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop,
        std::shared_ptr<call_output> output, std::optional<protocol::trace_context> trace, store::identity caller);
    ~batch() override;

    /// Answers a request that has no call of its own.
    void answer(std::uint32_t number, std::string id, std::string response);

    // A request that has one, while it runs.
    void add(call& running);
    void remove(call& gone);

    void cancel(std::uint32_t request) override;
    void end(protocol::end_reason reason) override;
    void reader_seen(bool) override {}
    void finished(std::optional<protocol::end_reason> replaced) override;
    void lost(std::error_code why) override;

    // From any thread:
    [[nodiscard]] base::loop& loop() const noexcept { return loop_; }
    [[nodiscard]] live_session& session() const noexcept { return *session_; }
    [[nodiscard]] std::shared_ptr<live_session> const& shared_session() const noexcept { return session_; }
    [[nodiscard]] std::shared_ptr<call_output> const& output() const noexcept { return output_; }
    [[nodiscard]] std::optional<protocol::trace_context> const& trace() const noexcept { return trace_; }
    /// Who made it.
    [[nodiscard]] store::identity const& caller() const noexcept { return caller_; }

private:
    call_keeper& keeper_;
    std::shared_ptr<live_session> session_;
    base::loop& loop_;
    std::shared_ptr<call_output> output_;
    std::optional<protocol::trace_context> trace_;
    store::identity caller_;
    std::vector<call*> running_;
};

}
