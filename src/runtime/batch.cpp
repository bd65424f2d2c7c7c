#include "runtime/batch.hpp"

#include "runtime/call.hpp"

#include <utility>

namespace belay::runtime {

batch::batch(
    call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop, std::shared_ptr<call_output> output,
    std::optional<protocol::trace_context> trace, store::identity caller)
    : keeper_(keeper), session_(std::move(session)), loop_(loop), output_(std::move(output)), trace_(std::move(trace)),
      caller_(std::move(caller))
{
}

batch::~batch() = default;

void batch::answer(std::uint32_t number, std::string id, std::string response)
{
    call_traits traits;
    traits.is_tool_call = false;
    output_->answer({number, std::move(id), traits}, std::move(response));
}

void batch::add(call& running)
{
    running_.push_back(&running);
}

void batch::remove(call& gone)
{
    std::erase(running_, &gone);
}

void batch::cancel(std::uint32_t request)
{
    for (auto* const each : std::vector(running_))
        if (each->number() == request)
            each->end(protocol::end_reason::cancelled);
}

void batch::end(protocol::end_reason reason)
{
    auto const self = shared_from_this();
    for (auto* const each : std::vector(running_))
        each->end(reason);
}

void batch::finished(std::optional<protocol::end_reason>)
{
    keeper_.batch_done(*this);
}

void batch::lost(std::error_code why)
{
    auto const self = shared_from_this();
    for (auto* const each : std::vector(running_))
        each->lost(why);
    keeper_.batch_done(*this);
}

}
