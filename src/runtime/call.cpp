#include "runtime/call.hpp"

#include "runtime/batch.hpp"
#include "runtime/context.hpp"

#include <utility>

namespace belay::runtime {

call::call(
    node_context& context, call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop,
    std::shared_ptr<call_output> output, std::string id, call_traits const& traits,
    std::optional<protocol::trace_context> trace)
    : context_(context), keeper_(keeper), session_(std::move(session)), loop_(loop), output_(std::move(output)),
      of_{0, std::move(id), traits}, trace_(std::move(trace)),
      deadline_(loop.timers(), [this] { end(protocol::end_reason::timed_out); }),
      orphan_(loop.timers(), [this] { end(protocol::end_reason::orphaned); })
{
}

call::call(
    node_context& context, call_keeper& keeper, std::shared_ptr<batch> of, std::uint32_t number, std::string id,
    call_traits const& traits)
    : call(context, keeper, of->shared_session(), of->loop(), of->output(), std::move(id), traits, of->trace())
{
    of_.number = number;
    batch_ = std::move(of);
    batch_->add(*this);
}

call::~call() = default;

void call::begin_again()
{
    auto const limit = terms_.time ? *terms_.time : of_.traits.max_duration.value_or(context_.settings().call_max);
    if (limit > base::duration::zero())
        deadline_.after(limit);
}

void call::begin()
{
    begin_again();
    if (!batch_)
        output_->begin(weak_from_this());
}

base::logger call::logger() const
{
    auto const stream = output_->stream();
    auto log
        = context_.log().with("session", session_->name).with("stream", stream ? stream_log_name(*stream) : "none");
    return trace_ ? log.with("trace", trace_->trace_id) : log;
}

void call::log(base::log_level level, std::string_view message, std::string_view reason) const
{
    if (context_.log().enabled(level))
        logger().log_fields(level, message, {{"reason", reason}});
}

std::optional<std::error_code> call::emit(std::string message, emitted done)
{
    if (is_ended_)
        return make_error_code(errc::finished);
    auto const bytes = message.size();
    auto const outcome = output_->emit(std::move(message), done);
    if (!outcome || !is_turn_over(bytes))
        return outcome;
    loop_.post([done = std::move(done), error = *outcome]() mutable { done(error); });
    return std::nullopt;
}

bool call::is_turn_over(std::size_t bytes) noexcept
{
    auto const& flow = context_.settings().flow;
    turn_bytes_ += bytes;
    if (++turn_events_ < flow.turn_events && turn_bytes_ < flow.turn_bytes)
        return false;
    turn_events_ = 0;
    turn_bytes_ = 0;
    return true;
}

void call::progress(double value, std::string message)
{
    if (!is_ended_ && !(terms_.progress && value <= *terms_.progress))
        output_->progress(of_.number, value, std::move(message));
}

void call::relay_question(std::string message, std::move_only_function<void()> failed)
{
    output_->relay_question(std::move(message), std::move(failed));
}

std::uint64_t call::ask(std::string_view method, std::string_view params, std::string_view key, answered done)
{
    if (!is_ended_)
        return output_->ask(of_.number, method, params, key, std::move(done));
    loop_.post([done = std::move(done)]() mutable { done(failure(errc::finished)); });
    return 0;
}

void call::withdraw(std::uint64_t question)
{
    output_->withdraw(question);
}

void call::close_connection(std::chrono::milliseconds retry)
{
    output_->close_connection(retry);
}

void call::cancel(std::uint32_t)
{
    end(protocol::end_reason::cancelled);
}

void call::reader_seen(bool is_there)
{
    if (is_there || is_ended_)
        orphan_.cancel();
    else if (of_.traits.orphan_limit && !orphan_.is_armed())
        orphan_.after(*of_.traits.orphan_limit);
}

void call::answer(std::string response)
{
    if (is_decided()) {
        context_.metrics().late_answers.Increment();
        return;
    }
    is_ended_ = true;
    leaving_ = leaving::no;
    if (response.size() > context_.settings().limits.event_bytes) {
        reason_ = protocol::end_reason::result_too_large;
        response = ended_answer(of_, *reason_);
    }
    finish(std::move(response));
}

void call::end(protocol::end_reason reason)
{
    if (is_decided())
        return;
    auto const self = shared_from_this();
    is_ended_ = true;
    leaving_ = leaving::no;
    reason_ = reason;
    log(base::log_level::debug, "call ended early", protocol::to_string(reason));
    if (reason == protocol::end_reason::interrupted)
        context_.metrics().calls_interrupted.Increment();
    if (auto give_up = std::exchange(give_up_, nullptr); give_up && give_up())
        of_.traits.has_started = false;
    finish(ended_answer(of_, reason));
    if (auto interrupt = std::exchange(interrupt_, nullptr))
        interrupt();
}

void call::interrupt()
{
    if (is_ended_ || !terms_.may_be_handed_over)
        return end(protocol::end_reason::interrupted);
    auto const self = shared_from_this();
    is_ended_ = true;
    leaving_ = leaving::waits;
    deadline_.cancel();
    orphan_.cancel();
    auto give_up = std::exchange(give_up_, nullptr);
    auto interrupt = std::exchange(interrupt_, nullptr);
    bool const is_kept_from_starting = give_up && give_up();
    if (is_kept_from_starting || !interrupt)
        return release();
    log(base::log_level::debug, "call is handed over", "its handler is told");
    interrupt();
}

void call::handler_left()
{
    if (leaving_ == leaving::waits)
        release();
}

void call::release()
{
    leaving_ = leaving::released;
    output_->release([weak = weak_from_this()] { // which this holds, and it may keep that for as long as it lives
        if (auto const self = weak.lock())
            self->done();
    });
}

void call::finish(std::string response)
{
    auto const self = shared_from_this();
    deadline_.cancel();
    if (batch_) // its output goes on, and the batch hears when the last answer is there
        batch_->remove(*this);
    output_->answer(of_, std::move(response));
    if (batch_)
        done();
}

void call::finished(std::optional<protocol::end_reason> replaced)
{
    if (replaced)
        reason_ = replaced;
    done();
}

void call::lost(std::error_code why)
{
    if (is_done_)
        return;
    auto const self = shared_from_this();
    log(base::log_level::warning, "the call is not ours any more", why.message());
    bool const was_ended = is_decided();
    is_ended_ = true;
    leaving_ = leaving::no;
    if (!was_ended)
        reason_ = why == errc::fenced ? protocol::end_reason::owner_lost : protocol::end_reason::session_ended;
    else
        context_.metrics().late_answers.Increment();
    if (batch_)
        batch_->remove(*this);
    auto interrupt = std::exchange(interrupt_, nullptr);
    give_up_ = nullptr;
    done();
    if (interrupt && !was_ended)
        interrupt();
}

void call::done()
{
    if (std::exchange(is_done_, true))
        return;
    deadline_.cancel();
    orphan_.cancel();
    if (handler_) // later: it may be what has just answered
        loop_.post([self = shared_from_this(), handler = std::move(handler_)] {});
    context_.metrics().call_ended(
        reason_                             ? protocol::to_string(*reason_)
            : leaving_ == leaving::released ? "handed_over"
                                            : "answered");
    keeper_.call_done(*this);
}

}
