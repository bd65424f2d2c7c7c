// What server::tool() makes of a function. Not for authors: nothing here is promised.
#pragma once

#include <belay/blocking.hpp>
#include <belay/call.hpp>
#include <belay/caller.hpp>
#include <belay/content.hpp>
#include <belay/json.hpp>
#include <belay/schema.hpp>
#include <belay/task.hpp>
#include <belay/tool_result.hpp>

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace belay::inline v0 {

namespace detail {

using quick_function = std::function<std::expected<tool_result, decode_error>(caller const&, json::object const&)>;
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
    bool runs_again = false; // after an interruption
    std::uint64_t work = 0;  // names it, for whoever runs it again
    std::shared_ptr<detail::admission> admission; // none: no limit
    std::string needs_waiting; // what was said of it that a quick tool cannot have; empty: nothing
    // How it runs: the first that is set. A plain function is quick, and can become blocking.
    quick_function quick;
    blocking_function blocking;
    waiting_function waiting;
};

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
task<tool_result> run_waiting(std::shared_ptr<F const> function, call& on, Args args)
{
    R value = co_await (*function)(on, std::move(args));
    co_return to_tool_result<R>(std::move(value));
}
template<class R, class F>
task<tool_result> run_waiting(std::shared_ptr<F const> function, call& on)
{
    R value = co_await (*function)(on);
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
        "a tool is R f(), R f(Args), R f(caller const&), R f(caller const&, Args), task<R> f(call&), task<R> f(call&, "
        "Args), R f(blocking_call&) or "
        "R f(blocking_call&, Args)");
    static void fill(tool_definition&, auto const&) {}
};
template<class R, class Args>
struct tool_shape<R (*)(caller const&, Args)> {
    static void fill(tool_definition& into, auto function)
    {
        using args_type = std::remove_cvref_t<Args>;
        into.input_schema = input_schema_of<args_type>();
        into.output_schema = output_schema_of<R>();
        into.quick = [function](caller const& by, json::object const& in) -> std::expected<tool_result, decode_error> {
            auto args = read_arguments<args_type>(in);
            if (!args)
                return std::unexpected(std::move(args).error());
            return to_tool_result<R>((*function)(by, std::move(*args)));
        };
    }
};
template<class R>
struct tool_shape<R (*)(caller const&)> {
    static void fill(tool_definition& into, auto function)
    {
        into.input_schema = schema_of<no_arguments>();
        into.output_schema = output_schema_of<R>();
        into.quick = [function](caller const& by, json::object const&) -> std::expected<tool_result, decode_error> {
            return to_tool_result<R>((*function)(by));
        };
    }
};
template<class R, class Args>
struct tool_shape<R (*)(Args)> {
    static void fill(tool_definition& into, auto function)
    {
        using args_type = std::remove_cvref_t<Args>;
        into.input_schema = input_schema_of<args_type>();
        into.output_schema = output_schema_of<R>();
        into.quick = [function](caller const&, json::object const& in) -> std::expected<tool_result, decode_error> {
            auto args = read_arguments<args_type>(in);
            if (!args)
                return std::unexpected(std::move(args).error());
            return to_tool_result<R>((*function)(std::move(*args)));
        };
        into.blocking = blocking_from<R, args_type>(
            [function](blocking_call&, args_type args) { return (*function)(std::move(args)); });
    }
};
template<class R>
struct tool_shape<R (*)()> {
    static void fill(tool_definition& into, auto function)
    {
        into.input_schema = schema_of<no_arguments>();
        into.output_schema = output_schema_of<R>();
        into.quick = [function](caller const&, json::object const&) -> std::expected<tool_result, decode_error> {
            return to_tool_result<R>((*function)());
        };
        into.blocking = blocking_from<R, void>([function](blocking_call&) { return (*function)(); });
    }
};
template<class R, class Args>
struct tool_shape<R (*)(blocking_call&, Args)> {
    static void fill(tool_definition& into, auto function)
    {
        using args_type = std::remove_cvref_t<Args>;
        into.input_schema = input_schema_of<args_type>();
        into.output_schema = output_schema_of<R>();
        into.blocking = blocking_from<R, args_type>(
            [function](blocking_call& on, args_type args) { return (*function)(on, std::move(args)); });
    }
};
template<class R>
struct tool_shape<R (*)(blocking_call&)> {
    static void fill(tool_definition& into, auto function)
    {
        into.input_schema = schema_of<no_arguments>();
        into.output_schema = output_schema_of<R>();
        into.blocking = blocking_from<R, void>([function](blocking_call& on) { return (*function)(on); });
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

}
