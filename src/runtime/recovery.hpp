// What keeps the promise when a node is lost: this one's lease, and the calls of those whose lease ran out, or who gave
// them up. Such a call is run again if it may be and this node has what it runs, and ends with `owner_lost` otherwise.
// On the node's own loop, where calls that are run again run too.
#pragma once

#include "runtime/call_directory.hpp"
#include "runtime/call_notes.hpp"
#include "runtime/context.hpp"
#include "runtime/service.hpp"
#include "runtime/sessions.hpp"

namespace belay::runtime {

class recovery {
public:
    recovery(node_context& context, sessions& sessions, call_directory& calls);

    /// What calls are run again with. Before start.
    void run_with(node& node, service& service);

    /// From start to stop the node has a lease.
    void renew(std::move_only_function<void()> then = [] {});
    /// Does what is about the living and the dead, with a lease that has been renewed of late: a node that has slept is
    /// not to take itself for dead.
    void while_alive(base::time_point now, std::move_only_function<void()> work);
    /// Goes on with the calls that have no living owner, or ends them.
    void look_for_lapsed(base::time_point now);
    /// Ends the calls that the store says this node runs, and that it does not: it was told of a failure when they were
    /// made, or the store has lost that they were answered.
    void end_forgotten();

private:
    /// A call on its way here.
    struct taking {
        store::call_ref from;
        std::shared_ptr<session_use> use; ///< its session, if it is to be run again
    };

    void consider(store::call_ref const& lost, base::time_point now);
    /// A node that cannot run it lets others be first for a while.
    [[nodiscard]] bool was_left_to_others(store::call_ref const& lost, base::time_point now);
    using streams = std::vector<store::stream_key>;
    /// A page of them; `before` is what the last look has seen.
    void look_through_owned(std::optional<store::stream_key> after, std::shared_ptr<streams const> before);
    void run_again(store::call_ref const& lost);
    void take_over(store::call_ref const& lost);
    void claim(std::shared_ptr<taking> const& what);
    /// False if it cannot be.
    [[nodiscard]] bool start(taking const& what, store::claimed_call const& claimed);
    void answer(store::stream_key const& stream, store::claimed_call const& claimed);

    node_context& context_;
    sessions& sessions_;
    call_directory& calls_;
    node* node_ = nullptr;
    service* service_ = nullptr; // null: nothing is run again
    std::unique_ptr<store::watch_handle> bulletins_;
    std::optional<base::time_point> renewed_at_;
    streams suspects_; // owned and not run, at the last look
    streams ending_; // being claimed, and answered or run
    std::vector<std::shared_ptr<taking>> unsure_; // whether they were claimed
    struct left {
        store::stream_key stream;
        base::time_point since;
        bool is_there = true;
    };
    std::vector<left> left_to_others_;
};

}
