// The service of a process, as far as calls are run again by it.
#pragma once

#include "protocol/message.hpp"
#include "runtime/service.hpp"
#include "world_parts.hpp"

namespace belay::sim {

/// What a tool is going to do.
struct world::plan {
    std::vector<tool::step> steps;
    std::size_t answer_bytes = 0;
    bool ends_slowly = false;
};

class world::work final : public runtime::service {
public:
    /// `here`: without it nothing can be run.
    work(world& of, work* all, bool is_here) : of_(of), all_(all ? all : this), is_here_(is_here) {}

    struct kept {
        std::string mark;
        plan does;
    };
    [[nodiscard]] runtime::rerun_request request_for(std::string const& id, std::string mark, plan plan);

    [[nodiscard]] std::uint32_t features() const override { return 0; }
    [[nodiscard]] std::string initialize_result(protocol::revision, runtime::session_mode, std::uint32_t) const override
    {
        return "{}";
    }
    [[nodiscard]] runtime::route find(protocol::message const& request) override;
    [[nodiscard]] bool can_run(std::uint64_t work) const override;

private:
    world& of_;
    work* all_; // who keeps the plans
    bool is_here_;
    std::deque<kept> kept_;
};

}
