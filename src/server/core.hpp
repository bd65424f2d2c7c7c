// A server as the runtime sees it: the registry of what it features, and the dispatch of requests to it.
#pragma once

#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "base/worker_pool.hpp"
#include "observe/metrics.hpp"
#include "runtime/service.hpp"
#include "server/prompts.hpp"
#include "server/registry.hpp"
#include "server/resources.hpp"
#include "json/schema_check.hpp"

#include <belay/server.hpp>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace belay::inline v0::detail {

class server_core final : public runtime::service, public std::enable_shared_from_this<server_core> {
public:
    /// What a server says of itself. Settled before the first request.
    struct self {
        std::string title;
        std::string description;
        std::string website;
        std::string instructions;
        std::vector<icon> icons;
        std::array<std::size_t, 4> page_sizes{}; // by server::list; 0: all
        std::array<bool, 4> declared{};          // by server::list: also while it is empty
    };

    server_core(std::string name, std::string version);
    ~server_core() override;

    [[nodiscard]] self& about() noexcept { return about_; }
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] std::string const& version() const noexcept { return version_; }

    // Registration. From any thread. A name is taken by reserve(), which throws std::invalid_argument, and seen by
    // clients after publish().
    void reserve(tool_definition const& fresh);
    void reserve(resource_definition const& fresh);
    void reserve(prompt_definition const& fresh);
    // What it cannot publish is left out, and said by get_ready(), or by the log of the server that runs. `is_broken`:
    // its author was interrupted by an exception, and knows.
    void publish(std::shared_ptr<tool_definition> fresh, bool is_broken) noexcept;
    void publish(std::shared_ptr<resource_definition> fresh, bool is_broken) noexcept;
    void publish(std::shared_ptr<prompt_definition> fresh, bool is_broken) noexcept;
    bool remove_tool(std::string_view name);
    bool remove_resource(std::string_view uri);
    bool remove_prompt(std::string_view name);

    /// Another server, at a path of its own and without sessions. Before the start.
    struct mounted {
        std::string path;
        std::shared_ptr<server_core> core; ///< null: this one
    };
    void mount(std::string path, std::shared_ptr<server_core> const& what);
    [[nodiscard]] std::vector<mounted> const& mounts() const noexcept { return mounts_; }

    void every(std::chrono::nanoseconds period, std::function<void()> function)
    {
        periodic_.emplace_back(period, std::move(function));
    }
    void on_log_level(std::function<void(belay::session const&, log_level)> function)
    {
        on_log_level_ = std::move(function);
    }

    /// Before the start, with what schemas that authors wrote may ask for, and what checking against them may cost.
    /// Throws std::invalid_argument for a schema beyond that, and for what is still being registered: its author keeps
    /// the entry in a variable, and no client would ever see it; and for what could not be published.
    void get_ready(schema_limits const& limits);
    [[nodiscard]] std::shared_ptr<schema_limits const> schema_bounds() const { return schema_limits_; }

    /// Where blocking tools run: before the first request, and until there are no calls any more. Whoever says this
    /// serves it: throws std::logic_error if somebody does.
    void work_on(base::worker_pool& workers);
    void stop_working() noexcept { workers_ = nullptr; }
    /// Begins the periodic functions, and if there are sessions to tell them of changes. On the loop; stop() too.
    void start(runtime::node& node, base::loop& loop, runtime::session_mode mode = runtime::session_mode::kept);
    void stop();

    // From any thread; without effect while the server does not run.
    void resource_updated(std::string const& uri);
    [[nodiscard]] std::vector<std::string> subscriptions() const;
    void log_to_all(log_level level, std::string notice);
    void notify_all(std::string_view method, json::object const& params);

    [[nodiscard]] std::uint32_t features() const override;
    [[nodiscard]] std::string
    initialize_result(protocol::revision revision, runtime::session_mode mode, std::uint32_t features) const override;
    [[nodiscard]] runtime::route find(protocol::message const& request) override;
    [[nodiscard]] bool can_run(std::uint64_t work) const override;

private:
    enum class list { tools, resources, prompts };
    [[nodiscard]] static constexpr std::uint32_t bit_of(list which) noexcept
    {
        return 1u << static_cast<unsigned>(which);
    }

    [[nodiscard]] std::size_t page_size(server::list which) const noexcept
    {
        return about_.page_sizes[static_cast<std::size_t>(which)];
    }
    [[nodiscard]] runtime::route find_tool(protocol::message const& request) const;
    [[nodiscard]] runtime::outcome
    call_tool(runtime::incoming const& request, std::shared_ptr<tool_definition const> const& found) const;
    [[nodiscard]] runtime::outcome set_level(runtime::incoming const& request) const;
    void tell_level(runtime::node& node, std::shared_ptr<runtime::live_session> const& session, log_level level) const;
    void changed(list which);
    /// Adds what was reserved, or notes why that cannot be.
    template<class F>
    void publish_as(list which, std::string const& reserved, bool is_broken, F const& add) noexcept;
    /// Why that is not registered, in the place of what was said of it before; empty: it is.
    void note_failure(std::string const& of, std::string const& failure);

    std::string name_;
    std::string version_;
    self about_;
    std::atomic<base::worker_pool*> workers_ = nullptr;
    registry<tool_definition> tools_;
    resource_catalogue resources_;
    prompt_catalogue prompts_;
    std::function<void(belay::session const&, log_level)> on_log_level_;
    std::deque<std::pair<std::chrono::nanoseconds, std::function<void()>>> periodic_;
    std::vector<mounted> mounts_;
    std::deque<std::unique_ptr<base::timer>> timers_;

    std::shared_ptr<schema_limits> schema_limits_ = std::make_shared<schema_limits>(widest_schema_limits);

    base::mutex reserved_mutex_;
    std::set<std::string> reserved_ BELAY_GUARDED_BY(reserved_mutex_);

    mutable base::mutex node_mutex_;
    runtime::node* node_ BELAY_GUARDED_BY(node_mutex_) = nullptr;
    std::optional<base::logger> log_ BELAY_GUARDED_BY(node_mutex_); // while it is served
    std::vector<std::pair<std::string, std::string>>
        failures_ BELAY_GUARDED_BY(node_mutex_); // of publish() before the start: what is not there, and why
    std::array<bool, 3> is_change_pending_ BELAY_GUARDED_BY(node_mutex_){};
};

/// The arguments of a prompt, from the schema of its struct.
[[nodiscard]] std::vector<argument> arguments_of(json::object const& schema);

}
