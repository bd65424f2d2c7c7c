// What keeps the promise when a node is lost: this one's lease, and the calls of those whose lease ran out. On the
// node's own loop.
#pragma once

#include "runtime/call_directory.hpp"
#include "runtime/context.hpp"

namespace belay::runtime {

class recovery {
public:
    recovery(node_context& context, call_directory& calls) : context_(context), calls_(calls) {}

    /// From start to stop the node has a lease.
    void renew(std::move_only_function<void()> then = [] {});
    /// Does what is about the living and the dead, with a lease that has been renewed of late: a node that has slept is
    /// not to take itself for dead.
    void while_alive(base::time_point now, std::move_only_function<void()> work);
    /// Ends the calls that have no living owner.
    void end_lapsed();
    /// Ends the calls that the store says this node runs, and that it does not: it was told of a failure when they were
    /// made, or the store has lost that they were answered.
    void end_forgotten();

private:
    void look_through_owned(std::optional<store::stream_key> after);
    void take_over(store::call_ref const& lost);
    void answer(store::stream_key const& stream, store::claimed_call const& claimed);

    node_context& context_;
    call_directory& calls_;
    std::optional<base::time_point> renewed_at_;
    std::vector<store::stream_key> suspects_; // owned and not run, at the last look
    std::vector<store::stream_key> ending_; // being claimed and answered
};

}
