// A server as the runtime sees it: the registry of tools, and the dispatch of requests to them.
#pragma once

#include "base/worker_pool.hpp"
#include "observe/metrics.hpp"
#include "runtime/service.hpp"

#include <belay/server.hpp>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace belay::detail {

class server_core final : public runtime::service {
public:
    server_core(std::string name, std::string version);
    ~server_core() override;

    tool_definition& add(std::unique_ptr<tool_definition> tool);
    void set_instructions(std::string text) { instructions_ = std::move(text); }
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] std::string const& version() const noexcept { return version_; }

    /// Where blocking tools run; set before the first request, and kept for as long as there are calls.
    void work_on(base::worker_pool* workers) { workers_ = workers; }
    /// Registration is over; makes the texts that do not change. Before the first request.
    void seal();

    [[nodiscard]] std::string initialize_result(protocol::revision revision) const override;
    [[nodiscard]] runtime::outcome handle(runtime::incoming const& request) override;
    [[nodiscard]] bool is_instant(protocol::message const& request) const override;

private:
    [[nodiscard]] runtime::outcome call_tool(runtime::incoming const& request) const;
    [[nodiscard]] runtime::outcome set_level(runtime::incoming const& request) const;
    [[nodiscard]] std::string list_tools(protocol::revision revision) const;

    std::string name_;
    std::string version_;
    std::string instructions_;
    base::worker_pool* workers_ = nullptr;
    std::map<std::string, std::unique_ptr<tool_definition>, std::less<>> tools_;
    std::vector<tool_definition const*> in_order_;
    std::array<std::string, 4> tool_lists_; // by revision
};

}
