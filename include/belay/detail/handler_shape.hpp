// What server::resource() and server::prompt() make of a function. Not for authors: nothing here is promised.
#pragma once

#include <belay/call.hpp>
#include <belay/caller.hpp>
#include <belay/json.hpp>
#include <belay/prompt.hpp>
#include <belay/resource.hpp>
#include <belay/schema.hpp>
#include <belay/task.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace belay::inline v0::detail {

/// A function that was registered, in one of its two forms. Arguments come as a JSON object of strings.
template<class Out>
struct handler {
    using waiting_work = std::move_only_function<task<Out>(call&)>;
    std::function<std::expected<Out, decode_error>(caller const&, json::object const&)> quick;
    std::function<std::expected<waiting_work, decode_error>(json::object const&)> waiting;
    json::object schema; ///< of the arguments
};

/// Texts as the types that a schema says: "3" as 3 where it wants a number.
[[nodiscard]] json::object typed_by(json::object const& schema, json::object const& texts);

template<class Args>
std::expected<Args, decode_error> read_texts(json::object const& schema, json::object const& in)
{
    if constexpr (std::is_same_v<Args, json::object>)
        return in;
    else
        return decode<Args>(typed_by(schema, in));
}

template<class Args>
json::object texts_schema_of()
{
    if constexpr (std::is_same_v<Args, json::object>)
        return json::object{{"type", "object"}};
    else
        return schema_of<Args>();
}

/// `run` takes the caller and the arguments.
template<class Out, class Args>
handler<Out> quick_handler(auto run)
{
    handler<Out> made;
    made.schema = texts_schema_of<Args>();
    made.quick
        = [run, schema = made.schema](caller const& by, json::object const& in) -> std::expected<Out, decode_error> {
        auto args = read_texts<Args>(schema, in);
        if (!args)
            return std::unexpected(std::move(args).error());
        return run(by, std::move(*args));
    };
    return made;
}

/// `start` takes the call and the arguments, and gives the coroutine.
template<class Out, class Args>
handler<Out> waiting_handler(auto start)
{
    using work = typename handler<Out>::waiting_work;
    handler<Out> made;
    made.schema = texts_schema_of<Args>();
    made.waiting = [start, schema = made.schema](json::object const& in) -> std::expected<work, decode_error> {
        auto args = read_texts<Args>(schema, in);
        if (!args)
            return std::unexpected(std::move(args).error());
        return work([start, args = std::move(*args)](call& on) mutable { return start(on, std::move(args)); });
    };
    return made;
}

// g++ 12: what a coroutine needs lives in its own parameters.
template<class Out, class R, class F, class... Args>
task<Out> run_and_convert(Out (*convert)(R), std::shared_ptr<F const> function, call& on, Args... args)
{
    R value = co_await (*function)(on, std::move(args)...);
    co_return convert(std::move(value));
}

template<class Out, class F>
struct handler_shape : handler_shape<Out, decltype(&F::operator())> {};
template<class Out, class R, class... Args>
struct handler_shape<Out, R (*)(Args...)> {
    static_assert(
        is_unknown<R>,
        "a resource or a prompt is R f(), R f(Args), R f(caller const&), R f(caller const&, Args), task<R> f(call&) or "
        "task<R> f(call&, Args)");
    using result_type = R;
    static handler<Out> make(auto const&, Out (*)(R)) { return {}; }
};
template<class Out, class R>
struct handler_shape<Out, R (*)()> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        return quick_handler<Out, json::object>(
            [function, convert](caller const&, json::object const&) { return convert((*function)()); });
    }
};
template<class Out, class R, class Args>
struct handler_shape<Out, R (*)(Args)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        using args_type = std::remove_cvref_t<Args>;
        return quick_handler<Out, args_type>(
            [function, convert](caller const&, args_type args) { return convert((*function)(std::move(args))); });
    }
};
template<class Out, class R>
struct handler_shape<Out, R (*)(caller const&)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        return quick_handler<Out, json::object>(
            [function, convert](caller const& by, json::object const&) { return convert((*function)(by)); });
    }
};
template<class Out, class R, class Args>
struct handler_shape<Out, R (*)(caller const&, Args)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        using args_type = std::remove_cvref_t<Args>;
        return quick_handler<Out, args_type>([function, convert](caller const& by, args_type args) {
            return convert((*function)(by, std::move(args)));
        });
    }
};
template<class Out, class R>
struct handler_shape<Out, task<R> (*)(call&)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        return waiting_handler<Out, json::object>([function, convert](call& on, json::object const&) {
            return run_and_convert<Out, R>(convert, function, on);
        });
    }
};
template<class Out, class R, class Args>
struct handler_shape<Out, task<R> (*)(call&, Args)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        using args_type = std::remove_cvref_t<Args>;
        return waiting_handler<Out, args_type>([function, convert](call& on, args_type args) {
            return run_and_convert<Out, R>(convert, function, on, std::move(args));
        });
    }
};
template<class Out, class C, class R, class... Args>
struct handler_shape<Out, R (C::*)(Args...) const> : handler_shape<Out, R (*)(Args...)> {};
template<class Out, class C, class R, class... Args>
struct handler_shape<Out, R (C::*)(Args...) const noexcept> : handler_shape<Out, R (*)(Args...)> {};
template<class Out, class R, class... Args>
struct handler_shape<Out, R (*)(Args...) noexcept> : handler_shape<Out, R (*)(Args...)> {};
template<class Out, class C, class R, class... Args>
struct handler_shape<Out, R (C::*)(Args...)> : handler_shape<Out, R (*)(Args...)> {
    static_assert(is_unknown<C>, "requests run at the same time, so the function is const: no `mutable` lambda");
};

[[nodiscard]] resource_contents json_contents(json::value const& value);

template<class R>
resource_contents to_contents(R value)
{
    if constexpr (std::is_same_v<R, resource_contents>)
        return value;
    else if constexpr (std::is_same_v<R, std::string>)
        return {{{{}, {}, std::move(value), {}}}};
    else if constexpr (std::is_same_v<R, blob>)
        return {{{{}, {}, {}, std::move(value)}}};
    else
        return json_contents(encode(value));
}

template<class R>
prompt_result to_prompt_result(R value)
{
    if constexpr (std::is_same_v<R, prompt_result>)
        return value;
    else if constexpr (std::is_same_v<R, std::string>)
        return {{}, {{role::user, content::text(value)}}};
    else
        return {{}, std::move(value)};
}

}
