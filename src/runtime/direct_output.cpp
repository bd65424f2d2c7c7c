#include "runtime/direct_output.hpp"

#include "runtime/call.hpp"
#include "runtime/context.hpp"

#include <utility>

namespace belay::runtime {

direct_output::direct_output(node_context& context, base::loop& loop)
    : context_(context), keep_alive_(loop.timers(), [this] { keep_alive(); })
{
    reader_.attached = true;
}

direct_output::~direct_output() = default;

void direct_output::attach(std::shared_ptr<event_sink> sink, std::weak_ptr<call> of)
{
    sink_ = std::move(sink);
    call_ = std::move(of);
    self_ = shared_from_this();
    context_.departures().connection_came();
}

void direct_output::start()
{
    is_started_ = true;
    flush();
}

store::stream_top direct_output::write(std::vector<store::event_data> const& events, bool is_last)
{
    for (auto const& event : events) {
        ++top_.sequence;
        top_.offset += event.payload->size();
        if (sink_)
            sink_->write_event({}, *event.payload);
    }
    is_finished_ = is_finished_ || is_last;
    flush();
    return top_;
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
    keep_alive_.after(context_.settings().follower.keepalive);
    if (auto const of = call_.lock())
        of->reader_moved();
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
    if (auto const of = call_.lock())
        of->end(protocol::end_reason::cancelled);
}

void direct_output::leave(engine::close_reason reason)
{
    auto const self = std::exchange(self_, nullptr);
    keep_alive_.cancel();
    sink_.reset();
    context_.metrics().connection_closed(engine::to_string(reason));
    context_.departures().connection_left();
}

}
