#include "server/call_state.hpp"

#include "base/io_loop.hpp"
#include "protocol/message.hpp"
#include "protocol/names.hpp"
#include "runtime/node.hpp"
#include "server/notices.hpp"
#include "server/render.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <system_error>

namespace belay::inline v0 {

progress_meter::progress_meter(std::shared_ptr<detail::call_state> state, std::optional<double> total)
    : state_(std::move(state)), total_(total)
{
}

task<void> progress_meter::step(std::string message)
{
    return report(value_ + 1, std::move(message));
}

task<void> progress_meter::report(double value, std::string message)
{
    state_->throw_if_ended();
    if (value > value_ || (value == 0 && !has_reported_)) {
        has_reported_ = true;
        value_ = value;
        state_->progress(value, total_, message);
    }
    if (state_->is_turn_over())
        co_await state_->give_way();
}

call::call(std::shared_ptr<detail::call_state> state) : state_(std::move(state))
{
}

task<void> call::log(log_level level, std::string logger, json::value data)
{
    state_->throw_if_ended();
    if (!state_->wants_log(level)) {
        if (state_->is_turn_over())
            co_await state_->give_way();
        co_return;
    }
    auto message = detail::log_notice(level, logger, data);
    co_await state_->emit(std::move(message));
}

task<void> call::log(log_level level, std::string logger, std::string text)
{
    state_->throw_if_ended();
    if (!state_->wants_log(level)) {
        if (state_->is_turn_over())
            co_await state_->give_way();
        co_return;
    }
    auto message = detail::log_notice(level, logger, text);
    co_await state_->emit(std::move(message));
}

task<void> call::log(log_level level, std::string logger, char const* text)
{
    return log(level, std::move(logger), std::string(text));
}

progress_meter call::progress(double total)
{
    return {state_, total};
}

progress_meter call::progress()
{
    return {state_, std::nullopt};
}

task<void> call::sleep(std::chrono::nanoseconds time)
{
    return state_->sleep(time);
}

bool call::is_cancelled() const noexcept
{
    return state_->is_ended();
}

session call::session() const
{
    return detail::access::make<belay::session>(
        std::make_shared<detail::session_link const>(state_->node(), state_->on().shared_session()));
}

trace call::trace() const
{
    return detail::trace_for(state_->on().trace());
}

json::object const& call::meta() const
{
    return state_->meta();
}

void call::close_connection(std::chrono::milliseconds retry)
{
    state_->close_connection(retry);
}

}

namespace belay::inline v0::detail {

namespace asio = boost::asio;

trace trace_for(std::optional<protocol::trace_context> const& of)
{
    if (!of)
        return {};
    return {of->trace_id, of->parent_id, of->tracestate, of->is_sampled()};
}

std::string progress_token_of(protocol::message const& message)
{
    return protocol::progress_token(message).value_or(std::string()); // a bad one was refused before
}

std::string_view subject_of(protocol::message const& message) noexcept
{
    for (std::string_view const key : {"name", "uri"})
        if (auto const* subject = message.params ? message.params->if_contains(key) : nullptr)
            if (auto const* text = subject->if_string())
                return {text->data(), text->size()};
    return {};
}

request_facts facts_of(runtime::incoming const& request) noexcept
{
    return {request.node, request.session, request.revision, request.message.meta, request.trace};
}

call_context context_of(runtime::incoming const& request)
{
    auto const subject = subject_of(request.message);
    auto handler = std::string(request.message.method) + (subject.empty() ? "" : " ");
    handler += subject;
    call_context context{request.revision, progress_token_of(request.message), {}, std::move(handler)};
    if (auto const* meta = request.message.meta)
        context.meta = json::object(*meta, json::storage_ptr());
    return context;
}

call_state::call_state(runtime::node& node, std::shared_ptr<runtime::call> on, call_context context)
    : node_(node), on_(std::move(on)), context_(std::move(context))
{
}

void call_state::notify_session(std::string message) const
{
    node_.announcer().notify(on_->shared_session(), std::move(message));
}

void call_state::throw_if_ended() const
{
    if (is_ended())
        throw unwinding();
}

bool call_state::wants_log(log_level level) const
{
    return wants(*on_->session().current_record(), level);
}

task<void> call_wait::suspended()
{
    auto initiate = [this](auto handler) {
        if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
            slot.assign([weak = weak_from_this()](asio::cancellation_type) {
                if (auto const self = weak.lock())
                    self->cancel();
            });
        resume_ = [handler = std::move(handler)]() mutable { std::move(handler)(); };
        of_->waits_.push_back(*this);
    };
    co_await asio::async_initiate<asio::use_awaitable_t<> const, void()>(std::ref(initiate), asio::use_awaitable);
    of_->throw_if_ended();
    if (is_cancelled_)
        throw boost::system::system_error(asio::error::operation_aborted);
}

void call_wait::resume()
{
    unlink();
    if (auto run = std::exchange(resume_, nullptr)) {
        base::handler_scope const running(of_->handler());
        run();
    }
}

void call_wait::cancel()
{
    if (!is_suspended() || of_->is_ended()) // the end of the call wakes all that wait
        return;
    is_cancelled_ = true;
    unlink();
    // Later: whoever emits the signal is still at it, and going on would take its slot from under it.
    of_->on().loop().post(std::exchange(resume_, nullptr));
}

task<void> call_state::emit(std::string message)
{
    throw_if_ended();
    auto const wait = std::make_shared<wait_for<std::error_code>>(shared_from_this(), std::error_code());
    auto const outcome = on_->emit(std::move(message), [weak = std::weak_ptr(wait)](std::error_code error) {
        if (auto const waiting = weak.lock())
            waiting->resume_with(error);
    });
    if (outcome)
        wait->value() = *outcome;
    else
        co_await wait->suspended();
    throw_if_ended();
    if (wait->value())
        throw std::system_error(wait->value(), "the message could not be kept");
}

task<void> call_state::sleep(std::chrono::nanoseconds time)
{
    throw_if_ended();
    auto const wait = std::make_shared<call_wait>(shared_from_this());
    base::timer timer(on_->loop().timers(), [&wait = *wait] { wait.resume(); });
    timer.after(time);
    co_await wait->suspended();
}

task<void> call_state::give_way()
{
    auto const wait = std::make_shared<call_wait>(shared_from_this());
    on_->loop().post([weak = std::weak_ptr(wait)] {
        if (auto const waiting = weak.lock())
            waiting->resume();
    });
    co_await wait->suspended();
}

void call_state::progress(double value, std::optional<double> total, std::string const& message)
{
    if (!context_.token.empty())
        on_->progress(
            value,
            progress_notice(context_.token, value, total, speaks().has_progress_messages ? message : std::string()));
}

void call_state::interrupt()
{
    auto const self = shared_from_this();
    signal_.emit(asio::cancellation_type::terminal);
    wake_all();
}

void call_state::close()
{
    is_over_ = true;
    wake_all();
}

void call_state::wake_all()
{
    // None comes anew: after the end, whoever would wait is thrown out first.
    while (!waits_.empty())
        waits_.front().resume();
}

namespace {

// The whole life of a tool. Takes what it needs by value; it ends when the tool ends.
task<void> tool_life(std::shared_ptr<call_state> state, std::string name, waiting_call run)
{
    auto context = access::make<call>(state);
    std::string response;
    try {
        tool_result result = co_await run(context);
        response = result_answer(state->on().id(), result, state->revision());
    } catch (unwinding const&) {
    } catch (...) {
        if (!state->is_ended()) // else: cancelled inside an operation that is not ours
            response = failed_answer(
                state->on().logger(), name, state->on().id(), state->revision(),
                state->on().session().current_record()->client_capabilities);
    }
    state->close();
    if (!response.empty())
        state->on().answer(std::move(response));
}

}

void start_tool(
    runtime::node& node, std::shared_ptr<runtime::call> on, call_context context, std::string name, waiting_call run)
{
    auto const state = std::make_shared<call_state>(node, std::move(on), std::move(context));
    auto life = tool_life(state, std::move(name), std::move(run));
    start_life(state, std::move(life));
}

void start_life(std::shared_ptr<call_state> const& state, task<void> life)
{
    auto const on = state->on().shared_from_this();
    on->on_interrupt([weak = std::weak_ptr(state)] {
        if (auto const self = weak.lock())
            self->interrupt();
    });
    base::handler_scope const running(state->handler());
    auto& loop = base::io_loop_of(on->loop());
    state->hold(loop.keeper());
    asio::any_io_executor executor = loop.executor();
    asio::co_spawn(
        executor, std::move(life),
        asio::bind_cancellation_slot(state->signal().slot(), [state, on](std::exception_ptr failure) {
            on->handler_left();
            // Lives catch what handlers throw; what comes here is the end of memory, or the loop going away.
            if (failure) {
                state->node().metrics().task_failures.Increment();
                on->end(protocol::end_reason::interrupted);
            }
        }));
}

}
