#include "transport/beginning.hpp"

#include "protocol/endings.hpp"
#include "runtime/repetition.hpp"

#include <utility>

namespace belay::transport {

namespace code = protocol::code;

runtime::call_request
request_for(std::string id, protocol::revision revision, runtime::start_call& start, call_origin origin)
{
    runtime::call_request request;
    request.ids.push_back(std::move(id));
    request.revision = revision;
    request.traits = start.traits;
    request.from = origin.from;
    request.once = std::move(start.once);
    request.trace = std::move(origin.trace);
    request.bytes = origin.bytes;
    request.who.principal = origin.principal;
    request.again = std::move(start.again);
    return request;
}

void run(runtime::node& node, runtime::start_call& start, runtime::begun_call const& begun)
{
    if (begun.repeats)
        runtime::repeat(node, begun.call, *begun.repeats, std::move(start.progress_token));
    else
        start.run(begun.call);
}

bool is_about_key(std::error_code why) noexcept
{
    return why == errc::key_spent || why == errc::key_mismatch;
}

protocol::rpc_error batched_key_error()
{
    return {code::invalid_params, "A call with an idempotency key cannot be part of a batch", {}};
}

protocol::rpc_error begin_error(std::error_code why)
{
    if (why == errc::key_spent)
        return {code::invalid_params, std::string(protocol::spent_key_text()), {}};
    if (why == errc::key_mismatch)
        return {
            code::invalid_params,
            "This idempotency key was used for a call with another name or other arguments. Use a new key.",
            {}};
    return {code::server_error, "The server cannot take this now: " + why.message(), {}};
}

}
