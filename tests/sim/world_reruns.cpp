// What processes do with calls of others that may be run again.
#include "world_reruns.hpp"
#include "trace.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t the_work = 1;

}

runtime::rerun_request world::work::request_for(std::string const& id, std::string mark, plan plan)
{
    kept_.push_back({std::move(mark), std::move(plan)});
    return {the_work, protocol::request_text(id, "run", fmt::format(R"({{"plan":"{}"}})", kept_.size() - 1))};
}

bool world::work::can_run(std::uint64_t work) const
{
    return work == the_work && is_here_;
}

runtime::route world::work::find(protocol::message const& request)
{
    auto const* const named = request.params ? request.params->if_contains("plan") : nullptr;
    of_.require(named && named->is_string(), "a call is run again with another request");
    auto const& text = named->get_string();
    auto const which = std::stoull(std::string(text.data(), text.size()));
    runtime::route route;
    route.is_instant = false;
    route.run = [this, which](runtime::incoming const&) -> runtime::outcome {
        runtime::start_call start;
        start.run = [this, which](std::shared_ptr<runtime::call> const& on) {
            of_.run_again(all_->kept_[which].mark, all_->kept_[which].does, on);
        };
        return start;
    };
    return route;
}

void world::run_again(std::string const& mark, plan const& does, std::shared_ptr<runtime::call> const& on)
{
    trace("run again {:x}", on->stream().stream);
    auto const* const recorded = store().record.call_of(on->stream().stream);
    require(!recorded || recorded->opened_by == on->caller().principal, "a call is run again for another caller");
    require(++runs_again_[on->stream().stream] == 1, "a call is run again and again");
    require(
        !recorded || (recorded->ids.size() == 1 && recorded->root == recorded->key.stream),
        "a batch, or a call that repeats another, is run again");
    auto const runs = std::make_shared<tool>(on, does.steps, does.answer_bytes, mark, does.ends_slowly);
    runs->keys = true;
    runs->stop_when_interrupted();
    auto const here = std::ranges::find_if(processes_, [&](auto const& each) { return each->has(on->loop()); });
    reruns_.push_back({here->get(), runs});
    if (auto* const known = call_of(on->stream().stream)) {
        auto& current = known->requests.front().runs;
        if (current)
            former_.push_back({known->at, std::move(current)});
        known->at = here->get();
        current = runs;
    }
    runs->go();
}

}
