#include "server/blocking.hpp"

#include "server/access.hpp"

#include "protocol/message.hpp"
#include "runtime/node.hpp"
#include "server/call_state.hpp"
#include "server/checks.hpp"
#include "server/notices.hpp"
#include "server/render.hpp"

#include <stdexcept>
#include <utility>

namespace belay::inline v0 {

tool_entry& tool_entry::blocking()
{
    if (!definition_.blocking)
        throw std::invalid_argument(
            "tool " + definition_.name
            + " runs on its loop; only a plain function without caller const& can be blocking");
    definition_.quick = nullptr;
    return *this;
}

void blocking_call::log(log_level level, std::string const& logger, json::value const& data)
{
    state_.log(level, detail::log_notice(level, logger, data));
}

void blocking_call::log(log_level level, std::string const& logger, std::string const& text)
{
    state_.log(level, detail::log_notice(level, logger, text));
}

void blocking_call::log(log_level level, std::string const& logger, char const* text)
{
    state_.log(level, detail::log_notice(level, logger, std::string(text)));
}

void blocking_call::progress(double value, std::optional<double> total, std::string const& message)
{
    state_.progress(value, total, message);
}

session blocking_call::session() const
{
    return state_.session();
}

trace blocking_call::trace() const
{
    return detail::trace_for(state_.trace());
}

json::object const& blocking_call::meta() const
{
    return state_.meta();
}

bool blocking_call::is_cancelled() const noexcept
{
    return state_.is_cancelled();
}

}

namespace belay::inline v0::detail {

blocking_state::blocking_state(
    runtime::node& node, std::shared_ptr<runtime::call> const& on, job job, admission::place place)
    : node_(node), loop_(on->loop()), on_(on), id_(on->id()), session_(on->shared_session()), log_(on->logger()),
      trace_(on->trace()), job_(std::move(job)), place_(std::move(place))
{
}

belay::session blocking_state::session() const
{
    return access::make<belay::session>(std::make_shared<session_link const>(node_, session_));
}

void blocking_state::run() noexcept
{
    if (is_cancelled()) { // between the queue and here
        job_.run = nullptr;
        place_.reset();
        loop_.post([self = shared_from_this()] {
            if (auto const on = self->on_.lock())
                on->handler_left();
        });
        return;
    }
    std::optional<std::string> response;
    try {
        auto context = access::make<blocking_call>(*this);
        try {
            response = result_answer(id_, job_.run(context), job_.revision);
        } catch (...) {
            response
                = failed_answer(log_, job_.name, id_, job_.revision, session_->current_record()->client_capabilities);
        }
    } catch (...) { // failed_answer tells what tools throw; this is the end of memory
        response.reset();
    }
    // The author's objects go on the thread that used them, and the next call need not wait for the loop.
    job_.run = nullptr;
    place_.reset();
    finish(std::move(response));
}

void blocking_state::log(log_level level, std::string notice)
{
    if (!wants(*session_->current_record(), level))
        return; // so that it neither takes the place of what is wanted nor counts as dropped
    base::lock const lock(mutex_);
    put({std::move(notice), level});
}

void blocking_state::progress(double value, std::optional<double> total, std::string const& message)
{
    if (job_.token.empty())
        return;
    base::lock const lock(mutex_);
    if (!(value > progress_))
        return;
    progress_ = value;
    auto const& text = protocol::facts_of(job_.revision).has_progress_messages ? message : std::string();
    put({progress_notice(job_.token, value, total, text), std::nullopt, value});
}

void blocking_state::put(message fresh)
{
    auto const& window = node_.settings().flow;
    if (is_over_ || is_cancelled())
        return;
    if (!fresh.level && !outbox_.empty() && !outbox_.back().level) {
        outbox_bytes_ -= outbox_.back().text.size();
        outbox_.pop_back();
    }
    outbox_bytes_ += fresh.text.size();
    outbox_.push_back(std::move(fresh));
    // What others are held back by, this drops: a reader that keeps up is not overtaken by the stream's retention.
    while (outbox_.size() > 1 && (outbox_.size() > window.window_events || outbox_bytes_ > window.window_bytes)) {
        outbox_bytes_ -= outbox_.front().text.size();
        outbox_.pop_front();
        ++dropped_;
    }
    wake();
}

void blocking_state::finish(std::optional<std::string> response)
{
    base::lock const lock(mutex_);
    is_over_ = true;
    response_ = std::move(response);
    wake();
}

void blocking_state::wake()
{
    if (std::exchange(is_awake_, true))
        return;
    loop_.post([self = shared_from_this()] { self->flush(); });
}

void blocking_state::flush()
{
    if (underway_ > 0) { // the rest waits here, where it is bounded, until those are taken
        is_held_ = true;
        return;
    }
    std::deque<message> messages;
    std::size_t dropped = 0;
    bool is_over = false;
    std::optional<std::string> response;
    {
        base::lock const lock(mutex_);
        is_awake_ = false;
        messages.swap(outbox_);
        outbox_bytes_ = 0;
        dropped = std::exchange(dropped_, 0);
        is_over = is_over_;
        response = std::move(response_);
    }
    auto const on = on_.lock();
    if (!on) { // it has ended otherwise, to the last byte
        if (is_over)
            node_.metrics().late_answers.Increment();
        return;
    }
    if (dropped > 0)
        emit(*on, log_notice(log_level::warning, "blocking", json::value{{"dropped", dropped}}));
    auto const record = on->session().current_record();
    for (auto& each : messages) {
        if (!each.level)
            on->progress(each.progress, std::move(each.text));
        else if (wants(*record, *each.level))
            emit(*on, std::move(each.text));
    }
    if (!is_over)
        return;
    if (response) {
        on->answer(std::move(*response));
    } else {
        node_.metrics().task_failures.Increment();
        on->end(protocol::end_reason::interrupted);
    }
    on->handler_left();
}

void blocking_state::emit(runtime::call& on, std::string text)
{
    ++underway_;
    auto const done = [self = shared_from_this()](std::error_code error) { self->emitted(error); };
    if (auto const outcome = on.emit(std::move(text), done))
        emitted(*outcome);
}

void blocking_state::emitted(std::error_code error)
{
    if (error && error != errc::finished)
        node_.log().warning("a message of tool {} could not be kept: {}", job_.name, error.message());
    if (--underway_ == 0 && std::exchange(is_held_, false))
        flush();
}

std::expected<admission::begin, decode_error> prepare_blocking(
    tool_definition const& tool, runtime::incoming const& request, json::object const& arguments,
    std::string const& token, base::worker_pool* workers)
{
    if (!workers)
        throw std::logic_error("a blocking tool needs workers: server_core::work_on()");
    auto run = tool.blocking(arguments);
    if (!run)
        return std::unexpected(std::move(run).error());
    return [&node = request.node, workers,
            job = blocking_state::job{
                request.revision, tool.name, token, context_of(request).meta,
                with_output_check(
                    tool, std::move(*run))}](std::shared_ptr<runtime::call> on, admission::place place) mutable {
        auto const state = std::make_shared<blocking_state>(node, on, std::move(job), std::move(place));
        on->on_interrupt([state] { state->cancel(); });
        auto const ticket = workers->try_post([state] { state->run(); });
        if (!ticket)
            return on->end(protocol::end_reason::overloaded);
        on->on_give_up([workers, ticket] { return workers->withdraw(*ticket); });
    };
}

}
