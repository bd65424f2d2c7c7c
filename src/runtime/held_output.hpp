// The output of a call whose answer is all that its caller gets, as one JSON document: messages go nowhere, by the
// operator's or the caller's choice, and nobody can be asked.
#pragma once

#include "base/loop.hpp"
#include "runtime/call_output.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace belay::runtime {

class held_output final : public call_output {
public:
    using answer_function = std::move_only_function<void(std::string)>;

    held_output(base::loop& loop, answer_function answer) : loop_(loop), answer_(std::move(answer)) {}

    void begin(std::weak_ptr<output_user> user) override { user_ = std::move(user); }
    [[nodiscard]] std::optional<std::error_code> emit(std::string, emitted&) override { return std::error_code(); }
    void progress(std::uint32_t, double, std::string) override {}
    void answer(open_request, std::string response) override
    {
        if (auto answer = std::exchange(answer_, nullptr))
            answer(std::move(response));
        if (auto const user = user_.lock())
            user->finished(std::nullopt);
    }
    std::uint64_t ask(std::uint32_t, std::string_view, std::string_view, std::string_view, answered done) override
    {
        loop_.post([done = std::move(done)]() mutable { done(failure(errc::unavailable)); });
        return 0;
    }
    void withdraw(std::uint64_t) override {}
    void relay_question(std::string, std::move_only_function<void()> failed) override { loop_.post(std::move(failed)); }

private:
    base::loop& loop_;
    answer_function answer_;
    std::weak_ptr<output_user> user_;
};

}
