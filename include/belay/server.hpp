// A server: a name, a version, and tools, resources and prompts. A tool is a function; its argument struct is its
// schema.
//
//   R f(Args)                  quick, cannot wait: answered at once
//   task<R> f(call&, Args)     may wait, log and report progress; survives its caller's connection
//   R f(blocking_call&, Args)  the same for code that holds its thread: runs on one of the server's workers
//
// Args is a described struct (see schema.hpp) or json::object, and may be left out. R is std::string, a
// described struct (also sent as structured content), or tool_result.
#pragma once

#include <belay/blocking.hpp>
#include <belay/call.hpp>
#include <belay/content.hpp>
#include <belay/json.hpp>
#include <belay/prompt.hpp>
#include <belay/resource.hpp>
#include <belay/schema.hpp>
#include <belay/task.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace belay {

/// What a tool answers, in full. Without content it is one text block.
struct tool_result {
    std::string text;
    json::array content;
    std::optional<json::value> structured;
    bool is_error = false;
    json::object meta{}; ///< `_meta` of the result
};

namespace detail {

using quick_function = std::function<std::expected<tool_result, decode_error>(json::object const&)>;
/// Reads the arguments, and gives the call that is ready to run.
using waiting_call = std::move_only_function<task<tool_result>(call&)>;
using waiting_function = std::function<std::expected<waiting_call, decode_error>(json::object const&)>;
/// The same for a worker's thread.
using blocking_work = std::move_only_function<tool_result(blocking_call&)>;
using blocking_function = std::function<std::expected<blocking_work, decode_error>(json::object const&)>;

class admission;
class schema_check;

struct tool_definition {
    std::string name;
    std::string title;
    std::string description;
    json::object input_schema;
    std::optional<json::object> output_schema;
    // Of schemas that the author wrote; those made from structs are held to by the codec.
    std::shared_ptr<schema_check const> input_check;
    std::shared_ptr<schema_check const> output_check;
    std::vector<icon> icons;
    json::object meta;
    std::optional<bool> read_only;
    std::optional<bool> destructive;
    std::optional<bool> idempotent;
    std::optional<bool> open_world;
    std::optional<std::chrono::nanoseconds> timeout;
    std::optional<std::chrono::nanoseconds> orphan_limit;
    bool waits_for_reader = true;
    std::shared_ptr<detail::admission> admission; // none: no limit
    bool runs_again = false;                      // after an interruption
    std::uint64_t work = 0;                       // names it, for whoever runs it again
    // How it runs: the first that is set. A plain function is quick, and can become blocking.
    quick_function quick;
    blocking_function blocking;
    waiting_function waiting;
};

class server_core;

template<class T>
inline constexpr bool is_task = false;
template<class T>
inline constexpr bool is_task<task<T>> = true;

template<class R>
tool_result to_tool_result(R value)
{
    tool_result made;
    if constexpr (std::is_same_v<R, tool_result>)
        made = std::move(value);
    else if constexpr (std::is_same_v<R, std::string>)
        made.text = std::move(value);
    else if constexpr (object_like<R>) // else: output_schema_of() says it
        made.structured = encode_finite(value);
    return made;
}

template<class R>
std::optional<json::object> output_schema_of()
{
    static_assert(
        !is_task<R>, "a tool that is a coroutine takes belay::call& first: task<R> f(call&) or task<R> f(call&, Args)");
    // Clients refuse a whole list of tools for one whose structured content is not an object.
    static_assert(
        is_task<R> || is_one_of<R, tool_result, std::string> || object_like<R>,
        "a tool returns std::string, a described struct (BOOST_DESCRIBE_STRUCT), std::map, json::object or "
        "belay::tool_result; put any other value into a struct");
    if constexpr (object_like<R>)
        return schema_of<R>();
    else
        return std::nullopt;
}

template<class Args>
json::object input_schema_of()
{
    static_assert(
        object_like<Args>,
        "a tool's arguments are a described struct (BOOST_DESCRIBE_STRUCT), std::map or json::object");
    if constexpr (object_like<Args>)
        return schema_of<Args>();
    else
        return {};
}

template<class Args>
std::expected<Args, decode_error> read_arguments(json::object const& in)
{
    if constexpr (std::is_same_v<Args, json::object>)
        return in;
    else if constexpr (object_like<Args>)
        return decode<Args>(in);
    else
        return std::unexpected(decode_error{}); // input_schema_of() says it
}

// g++ 12: the arguments live in the coroutine's own parameter, not in a temporary of an awaiting expression.
template<class R, class Args, class F>
task<tool_result> run_waiting(F function, call& on, Args args)
{
    R value = co_await function(on, std::move(args));
    co_return to_tool_result<R>(std::move(value));
}
template<class R, class F>
task<tool_result> run_waiting(F function, call& on)
{
    R value = co_await function(on);
    co_return to_tool_result<R>(std::move(value));
}

// `run` takes the blocking_call and, unless Args is void, the arguments.
template<class R, class Args, class F>
blocking_function blocking_from(F run)
{
    return [run](json::object const& in) -> std::expected<blocking_work, decode_error> {
        if constexpr (std::is_void_v<Args>) {
            return blocking_work([run](blocking_call& on) { return to_tool_result<R>(run(on)); });
        } else {
            auto args = read_arguments<Args>(in);
            if (!args)
                return std::unexpected(std::move(args).error());
            return blocking_work([run, args = std::move(*args)](blocking_call& on) mutable {
                return to_tool_result<R>(run(on, std::move(args)));
            });
        }
    };
}

struct no_arguments {};
BOOST_DESCRIBE_STRUCT(no_arguments, (), ())

template<class F>
struct tool_shape : tool_shape<decltype(&F::operator())> {};

template<class R, class... Args>
struct tool_shape<R (*)(Args...)> {
    static_assert(
        is_unknown<R>,
        "a tool is R f(), R f(Args), task<R> f(call&), task<R> f(call&, Args), R f(blocking_call&) or "
        "R f(blocking_call&, Args)");
    static void fill(tool_definition&, auto const&) {}
};
template<class R, class Args>
struct tool_shape<R (*)(Args)> {
    static void fill(tool_definition& into, auto function)
    {
        using args_type = std::remove_cvref_t<Args>;
        into.input_schema = input_schema_of<args_type>();
        into.output_schema = output_schema_of<R>();
        into.quick = [function](json::object const& in) -> std::expected<tool_result, decode_error> {
            auto args = read_arguments<args_type>(in);
            if (!args)
                return std::unexpected(std::move(args).error());
            return to_tool_result<R>(function(std::move(*args)));
        };
        into.blocking = blocking_from<R, args_type>(
            [function](blocking_call&, args_type args) { return function(std::move(args)); });
    }
};
template<class R>
struct tool_shape<R (*)()> {
    static void fill(tool_definition& into, auto function)
    {
        into.input_schema = schema_of<no_arguments>();
        into.output_schema = output_schema_of<R>();
        into.quick = [function](json::object const&) -> std::expected<tool_result, decode_error> {
            return to_tool_result<R>(function());
        };
        into.blocking = blocking_from<R, void>([function](blocking_call&) { return function(); });
    }
};
template<class R, class Args>
struct tool_shape<R (*)(blocking_call&, Args)> {
    static void fill(tool_definition& into, auto function)
    {
        using args_type = std::remove_cvref_t<Args>;
        into.input_schema = input_schema_of<args_type>();
        into.output_schema = output_schema_of<R>();
        into.blocking = blocking_from<R, args_type>(function);
    }
};
template<class R>
struct tool_shape<R (*)(blocking_call&)> {
    static void fill(tool_definition& into, auto function)
    {
        into.input_schema = schema_of<no_arguments>();
        into.output_schema = output_schema_of<R>();
        into.blocking = blocking_from<R, void>(function);
    }
};
template<class R, class Args>
struct tool_shape<task<R> (*)(call&, Args)> {
    static void fill(tool_definition& into, auto function)
    {
        using args_type = std::remove_cvref_t<Args>;
        into.input_schema = input_schema_of<args_type>();
        into.output_schema = output_schema_of<R>();
        into.waiting = [function](json::object const& in) -> std::expected<waiting_call, decode_error> {
            auto args = read_arguments<args_type>(in);
            if (!args)
                return std::unexpected(std::move(args).error());
            return waiting_call([function, args = std::move(*args)](call& on) mutable {
                return run_waiting<R, args_type>(function, on, std::move(args));
            });
        };
    }
};
template<class R>
struct tool_shape<task<R> (*)(call&)> {
    static void fill(tool_definition& into, auto function)
    {
        into.input_schema = schema_of<no_arguments>();
        into.output_schema = output_schema_of<R>();
        into.waiting = [function](json::object const&) -> std::expected<waiting_call, decode_error> {
            return waiting_call([function](call& on) { return run_waiting<R>(function, on); });
        };
    }
};
template<class C, class R, class... Args>
struct tool_shape<R (C::*)(Args...) const> : tool_shape<R (*)(Args...)> {};
template<class C, class R, class... Args>
struct tool_shape<R (C::*)(Args...) const noexcept> : tool_shape<R (*)(Args...)> {};
template<class R, class... Args>
struct tool_shape<R (*)(Args...) noexcept> : tool_shape<R (*)(Args...)> {};
template<class C, class R, class... Args>
struct tool_shape<R (C::*)(Args...)> : tool_shape<R (*)(Args...)> {
    static_assert(is_unknown<C>, "calls run at the same time, so a tool's function is const: no `mutable` lambda");
};

}

/// A tool that is being registered, to say more about it. Clients see it when this is destroyed: at the end of the
/// statement, unless it is kept. A server does not start while one is.
/// What becomes of a call whose server stops, or is lost, before the call has its answer. `rerun`: where servers share
/// a store, another one runs it again, once, on the same stream; its caller is told, and is not asked again what it has
/// answered under a key.
enum class after_interruption { end, rerun };
inline constexpr auto rerun = after_interruption::rerun;

class tool_entry {
public:
    tool_entry(std::shared_ptr<detail::server_core> core, std::shared_ptr<detail::tool_definition> definition);
    tool_entry(tool_entry const&) = delete;
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
    /// that survives the caller's connection. Not for coroutines. Say this before timeout() and the like.
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
    /// read_only() or idempotent(): say this after those. Not for quick tools.
    tool_entry& on_interruption(after_interruption what);

private:
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
        detail::tool_shape<F>::fill(*definition, function);
        return add(std::move(definition));
    }

    /// Registers a resource, or with `{variables}` in its URI a family of them. See resource.hpp.
    template<class F>
    resource_entry resource(std::string uri, F read)
    {
        using shape = detail::handler_shape<resource_contents, F>;
        return add(std::move(uri), shape::make(read, &detail::to_contents<typename shape::result_type>));
    }

    /// Registers a prompt. See prompt.hpp.
    template<class F>
    prompt_entry prompt(std::string name, F get)
    {
        using shape = detail::handler_shape<prompt_result, F>;
        return add_prompt(std::move(name), shape::make(get, &detail::to_prompt_result<typename shape::result_type>));
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

    /// Runs a quick function on one of the server's loops again and again while it serves. Before the start.
    server& every(std::chrono::nanoseconds period, std::function<void()> function);
    /// Called when a client has chosen a level. Before the start.
    server& on_log_level(std::function<void(session const&, log_level)> function);

    /// Serves that server, or this one, at a path of its own without sessions: every request stands alone, and a call
    /// ends with its connection (docs/stateless.md). Over HTTP only. Before the start. Throws std::invalid_argument for
    /// a path that does not begin with a slash or is taken, and for a server that has mounts itself.
    server& mount_stateless(std::string path, server const& what);

    /// For belay::run.
    [[nodiscard]] std::shared_ptr<detail::server_core> const& core() const noexcept { return core_; }

private:
    tool_entry add(std::shared_ptr<detail::tool_definition> definition);
    resource_entry add(std::string uri, detail::handler<resource_contents> read);
    prompt_entry add_prompt(std::string name, detail::handler<prompt_result> get);

    std::shared_ptr<detail::server_core> core_;
};

}
