#include "runtime/direct_output.hpp"

#include "runtime/context.hpp"

#include <utility>

namespace belay::runtime {

namespace {

constexpr base::duration never = std::chrono::hours(24 * 365);

/// Whoever cannot come back is not sent away for being slow; its connection has a time limit for writing.
engine::flow_settings patient(engine::flow_settings flow)
{
    flow.stall = never;
    return flow;
}

}

direct_output::direct_output(node_context& context, base::loop& loop, engine::flow_settings flow, std::size_t requests)
    : paced_output(context, loop, patient(flow), requests), keep_alive_(loop.timers(), [this] { keep_alive(); })
{
    reader_.attached = true;
}

direct_output::~direct_output() = default;

void direct_output::begin(std::weak_ptr<output_user> user)
{
    paced_output::begin(std::move(user));
    reader_moved(reader_);
}

void direct_output::attach(std::shared_ptr<event_sink> sink)
{
    sink_ = std::move(sink);
    self_ = shared_from_this();
    context().departures().connection_came();
}

void direct_output::start()
{
    is_started_ = true;
    flush();
}

void direct_output::progress(std::uint32_t request, double value, std::string message)
{
    // There is no log that could be cut short: of what a reader leaves lying, the newest is kept.
    if (!is_caught_up() && message.size() <= context().settings().limits.event_bytes)
        late_progress_.insert_or_assign(request, std::move(message));
    else
        paced_output::progress(request, value, std::move(message));
}

void direct_output::close_request(std::uint32_t request)
{
    if (auto late = late_progress_.extract(request))
        say(std::move(late.mapped()));
}

std::uint64_t direct_output::ask(std::uint32_t, std::string_view, std::string_view, std::string_view, answered done)
{
    loop().post([done = std::move(done)]() mutable { done(failure(errc::unavailable)); });
    return 0;
}

void direct_output::relay_question(std::string, std::move_only_function<void()> failed)
{
    loop().post(std::move(failed));
}

void direct_output::write(engine::append_events& batch)
{
    for (auto const& event : batch.events) {
        ++top_.sequence;
        top_.offset += event.payload->size();
        if (sink_)
            sink_->write_event({}, *event.payload);
    }
    is_finished_ = is_finished_ || batch.finish;
    flush();
    appended(top_);
}

void direct_output::flush()
{
    if (!sink_ || !is_started_ || is_flushing_)
        return;
    flushed_ = top_;
    is_flushing_ = true;
    if (sink_->flush())
        drained();
    else
        keep_alive_.cancel();
}

void direct_output::drained()
{
    if (!sink_)
        return;
    is_flushing_ = false;
    reader_.position = flushed_.sequence;
    reader_.offset = flushed_.offset;
    if (flushed_.sequence != top_.sequence)
        return flush();
    if (is_finished_) {
        sink_->end([] {});
        return leave(engine::close_reason::finished);
    }
    keep_alive_.after(context().settings().follower.keepalive);
    reader_moved(reader_);
    for (auto& [request, message] : std::exchange(late_progress_, {}))
        say(std::move(message));
    perform();
}

void direct_output::keep_alive()
{
    sink_->write_comment("keepalive");
    flush();
}

void direct_output::peer_gone()
{
    if (!sink_)
        return;
    leave(engine::close_reason::peer_gone);
    if (auto const user = this->user())
        user->end(protocol::end_reason::cancelled);
}

void direct_output::leave(engine::close_reason reason)
{
    auto const self = std::exchange(self_, nullptr);
    keep_alive_.cancel();
    sink_.reset();
    context().metrics().connection_closed(engine::to_string(reason));
    context().departures().connection_left();
}

}
