// A server: a name, a version, and tools, resources and prompts. A tool is a function; its argument struct is its
// schema.
//
//   R f(Args)                  quick, cannot wait: answered at once
//   R f(caller const&, Args)   the same, for one that wants to know who calls
//   task<R> f(call&, Args)     may wait, log and report progress; survives its caller's connection
//   R f(blocking_call&, Args)  the same for code that holds its thread: runs on one of the server's workers
//
// Args is a described struct (see schema.hpp) or json::object, and may be left out. R is std::string, a
// described struct (also sent as structured content), or tool_result.
#pragma once

#include <belay/blocking.hpp>
#include <belay/call.hpp>
#include <belay/caller.hpp>
#include <belay/content.hpp>
#include <belay/detail/handler_shape.hpp>
#include <belay/detail/tool_shape.hpp>
#include <belay/json.hpp>
#include <belay/prompt.hpp>
#include <belay/resource.hpp>
#include <belay/schema.hpp>
#include <belay/task.hpp>
#include <belay/tool_result.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::inline v0 {

/// What becomes of a call whose server stops, or is lost, before the call has its answer. `rerun`: where servers share
/// a store, another one runs it again, once, on the same stream; its caller is told, and is not asked again what it has
/// answered under a key.
enum class after_interruption { end, rerun };
inline constexpr auto rerun = after_interruption::rerun;

/// A tool that is being registered, to say more about it. Clients see it when this is destroyed: at the end of the
/// statement, unless it is kept. A server does not start while one is.
class tool_entry {
public:
    tool_entry(tool_entry const&) = delete;
    tool_entry& operator=(tool_entry const&) = delete;
    /// Throws nothing. A tool that cannot be what was said of it is not published; a server does not start with such a
    /// one, and says why.
    ~tool_entry();

    tool_entry& describe(std::string text);
    tool_entry& title(std::string text);
    tool_entry& add_icon(icon icon);
    /// A member of the tool's `_meta`.
    tool_entry& meta(std::string key, json::value value);
    /// A schema of your own (JSON Schema 2020-12) in the place of the one made from the argument struct. It is passed
    /// on as it is, and checked before the tool runs; `$ref` is followed within the schema and never fetched. Throws
    /// std::invalid_argument, with the place, for a schema that cannot be used.
    tool_entry& input_schema(json::object schema);
    /// The same for structured content. A result without it, or whose content does not fit, is a failure of the tool:
    /// the log says why. Results that are errors are not checked.
    tool_entry& output_schema(json::object schema);
    /// It changes nothing. Such a call may be made again after an interruption.
    tool_entry& read_only();
    /// Whether it may destroy something. Clients take a tool that changes things for one that may, unless it says not.
    tool_entry& destructive(bool may = true);
    /// Doing it twice is doing it once.
    tool_entry& idempotent();
    /// It touches only a closed world, not "the internet".
    tool_entry& closed_world();
    /// A plain function runs on a worker's thread instead of the loop, so it may take long; its answer goes to a stream
    /// that survives the caller's connection. Not for coroutines.
    tool_entry& blocking();
    /// At most so many calls of the tool run at once in this process; others wait in the order of their arrival. Not
    /// for quick tools.
    tool_entry& at_most(std::size_t calls);
    /// The call ends with `timed_out` this long after it was accepted, whether or not it has waited for its turn. Not
    /// for quick tools, which cannot wait.
    tool_entry& timeout(std::chrono::nanoseconds limit);
    /// The call is cancelled once its caller has been away for this long. Without it, the tool runs to its end and
    /// its answer waits for the caller. Not for quick tools.
    tool_entry& cancel_when_orphaned(std::chrono::nanoseconds limit);
    /// Messages never wait for a slow caller; retention decides what such a caller gets.
    tool_entry& never_wait();
    /// Without it, an interrupted call ends, and its caller is told whether a retry is safe. Only for tools that are
    /// read_only() or idempotent(). Not for quick tools.
    tool_entry& on_interruption(after_interruption what);

private:
    friend class server;
    tool_entry(std::shared_ptr<detail::server_core> core, std::shared_ptr<detail::tool_definition> definition);

    std::shared_ptr<detail::server_core> core_;
    std::shared_ptr<detail::tool_definition> kept_;
    detail::tool_definition& definition_;
    int exceptions_;
};

/// Everything here may also be called while the server runs, from any thread; clients are told that a list has changed.
/// What a server says of itself (instructions, title …) is settled when it starts.
class server {
public:
    server(std::string name, std::string version);
    /// One that was moved from can be assigned to and destroyed; all else throws std::logic_error.
    server(server&&) noexcept = default;
    server& operator=(server&&) noexcept = default;

    /// Shown to models by clients that support it.
    server& instructions(std::string text);
    server& title(std::string text);
    /// What it is for, in a sentence; for people.
    server& describe(std::string text);
    server& website(std::string url);
    server& add_icon(icon icon);
    /// The lists that clients read.
    enum class list { tools, resources, resource_templates, prompts };
    /// Items per page of every list. 0, the default: all.
    server& page_size(std::size_t items);
    /// The same for one list.
    server& page_size(list which, std::size_t items);

    /// Clients are told of the list even if there is nothing in it when they connect, so that they hear of what is
    /// added later. Before the start.
    server& declare(list which);

    /// Registers a tool. Throws std::invalid_argument for a bad or repeated name.
    template<class F>
    tool_entry tool(std::string name, F function)
    {
        auto definition = std::make_shared<detail::tool_definition>();
        definition->name = std::move(name);
        detail::tool_shape<F>::fill(*definition, std::make_shared<F const>(std::move(function)));
        return add(std::move(definition));
    }

    /// Registers a resource, or with `{variables}` in its URI a family of them. See resource.hpp.
    template<class F>
    resource_entry resource(std::string uri, F read)
    {
        using shape = detail::handler_shape<resource_contents, F>;
        return add(
            std::move(uri),
            shape::make(std::make_shared<F const>(std::move(read)), &detail::to_contents<typename shape::result_type>));
    }

    /// Registers a prompt. See prompt.hpp.
    template<class F>
    prompt_entry prompt(std::string name, F get)
    {
        using shape = detail::handler_shape<prompt_result, F>;
        return add_prompt(
            std::move(name),
            shape::make(
                std::make_shared<F const>(std::move(get)), &detail::to_prompt_result<typename shape::result_type>));
    }

    /// False if there is none of that name. Calls that run go on.
    bool remove_tool(std::string_view name);
    bool remove_resource(std::string_view uri);
    bool remove_prompt(std::string_view name);

    /// Tells the sessions that are subscribed to the URI.
    void resource_updated(std::string const& uri);
    /// What sessions are subscribed to, each URI once.
    [[nodiscard]] std::vector<std::string> subscriptions() const;
    /// A log message for every session, unless its level is below what the session asked for.
    void log(log_level level, std::string const& logger, json::value const& data);
    void log(log_level level, std::string const& logger, std::string const& text);
    void log(log_level level, std::string const& logger, char const* text);

    /// A notification of your own for every session. Clients pass over methods that they do not know.
    void notify(std::string const& method, json::object const& params);

    /// Runs a quick function on one of the server's loops again and again while it serves. Each process does so by
    /// itself, also where several share a store: what is to be done once for all of them is not for here. Before the
    /// start.
    server& every(std::chrono::nanoseconds period, std::function<void()> function);
    /// Called when a client has chosen a level. Before the start.
    server& on_log_level(std::function<void(session const&, log_level)> function);

    /// Serves that server, or this one, at a path of its own without sessions: every request stands alone, and a call
    /// ends with its connection (docs/stateless.md). Over HTTP only. Before the start. Throws std::invalid_argument for
    /// a path that does not begin with a slash or is taken, and for a server that has mounts itself.
    server& mount_stateless(std::string path, server const& what);

private:
    friend struct detail::access;

    [[nodiscard]] std::shared_ptr<detail::server_core> const& core() const;
    tool_entry add(std::shared_ptr<detail::tool_definition> definition);
    resource_entry add(std::string uri, detail::handler<resource_contents> read);
    prompt_entry add_prompt(std::string name, detail::handler<prompt_result> get);

    std::shared_ptr<detail::server_core> core_;
};

}
