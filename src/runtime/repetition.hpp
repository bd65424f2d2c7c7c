// A call that was made before with the same key: instead of running the tool again, it repeats the first
// call's stream as its own, under its own request id. Its caller can resume it like any other.
#pragma once

#include "runtime/call.hpp"

namespace belay::runtime {

class node;

/// Makes `on` repeat the stream of the first call, from its beginning to its answer. `token` is the progress token
/// of the repeating request, as JSON text; empty: it wants none.
void repeat(node& node, std::shared_ptr<call> const& on, store::stream_id first, std::string token);

}
