// Resources: things that a client can read by URI, one by one or as a family with a URI template.
//
//   R f()                            a fixed URI; quick
//   R f(Args)                        a template; the variables are the members of a described struct
//   task<R> f(call&) / f(call&, Args)  may wait
//
// R is std::string (text), blob (bytes), resource_contents, or a described struct (as JSON).
#pragma once

#include <belay/content.hpp>
#include <belay/json.hpp>
#include <belay/schema.hpp>
#include <belay/task.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace belay {

class call;

/// One part of what a URI holds: text, or bytes.
struct resource_part {
    std::string uri;  ///< empty: the one that was asked for
    std::string mime; ///< empty: the resource's own
    std::string text;
    std::optional<blob> data; ///< instead of text
    json::object meta{};      ///< `_meta` of the part; sent to clients of 2025-06-18 and newer
};

struct resource_contents {
    std::vector<resource_part> parts;
    json::object meta{}; ///< `_meta` of the result
};

/// Thrown where there is nothing under the URI or name that was asked for.
class not_found : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// What a client may want to complete: the values that begin with what was typed. `others` are the arguments that are
/// known already.
using completer = std::function<std::vector<std::string>(std::string_view typed, json::object const& others)>;

namespace detail {

struct argument {
    std::string name;
    std::string description;
    bool is_required = true;
};

/// A function that was registered, in one of its two forms. Arguments come as a JSON object of strings.
template<class Out>
struct handler {
    using waiting_work = std::move_only_function<task<Out>(call&)>;
    std::function<std::expected<Out, decode_error>(json::object const&)> quick;
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
        is_unknown<R>, "a resource or a prompt is R f(), R f(Args), task<R> f(call&) or task<R> f(call&, Args)");
    using result_type = R;
    static handler<Out> make(auto const&, Out (*)(R)) { return {}; }
};
template<class Out, class R>
struct handler_shape<Out, R (*)()> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        handler<Out> made;
        made.schema = json::object{{"type", "object"}};
        made.quick = [function, convert](json::object const&) -> std::expected<Out, decode_error> {
            return convert((*function)());
        };
        return made;
    }
};
template<class Out, class R, class Args>
struct handler_shape<Out, R (*)(Args)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        using args_type = std::remove_cvref_t<Args>;
        handler<Out> made;
        made.schema = texts_schema_of<args_type>();
        made.quick
            = [function, convert, schema = made.schema](json::object const& in) -> std::expected<Out, decode_error> {
            auto args = read_texts<args_type>(schema, in);
            if (!args)
                return std::unexpected(std::move(args).error());
            return convert((*function)(std::move(*args)));
        };
        return made;
    }
};
template<class Out, class R>
struct handler_shape<Out, task<R> (*)(call&)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        handler<Out> made;
        made.schema = json::object{{"type", "object"}};
        made.waiting = [function, convert](
                           json::object const&) -> std::expected<typename handler<Out>::waiting_work, decode_error> {
            return typename handler<Out>::waiting_work(
                [function, convert](call& on) { return run_and_convert<Out, R>(convert, function, on); });
        };
        return made;
    }
};
template<class Out, class R, class Args>
struct handler_shape<Out, task<R> (*)(call&, Args)> {
    using result_type = R;
    static handler<Out> make(auto function, Out (*convert)(R))
    {
        using args_type = std::remove_cvref_t<Args>;
        handler<Out> made;
        made.schema = texts_schema_of<args_type>();
        made.waiting = [function, convert, schema = made.schema](
                           json::object const& in) -> std::expected<typename handler<Out>::waiting_work, decode_error> {
            auto args = read_texts<args_type>(schema, in);
            if (!args)
                return std::unexpected(std::move(args).error());
            return typename handler<Out>::waiting_work([function, convert, args = std::move(*args)](call& on) mutable {
                return run_and_convert<Out, R>(convert, function, on, std::move(args));
            });
        };
        return made;
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

struct resource_definition {
    std::string uri; ///< or a template
    bool is_template = false;
    std::string name;
    std::string title;
    std::string description;
    std::string mime;
    std::optional<std::uint64_t> size;
    std::optional<belay::annotations> notes;
    std::vector<icon> icons;
    json::object meta;
    std::vector<std::pair<std::string, completer>> completers;
    std::function<task<void>(call&, std::string)> on_subscribe;
    handler<resource_contents> read;
};

class server_core;

}

class server;

/// A resource that is being registered. Clients see it when this is destroyed.
class resource_entry {
public:
    resource_entry(resource_entry const&) = delete;
    resource_entry& operator=(resource_entry const&) = delete;
    ~resource_entry();

    /// Without one, the URI is the name.
    resource_entry& name(std::string text);
    resource_entry& title(std::string text);
    resource_entry& describe(std::string text);
    resource_entry& mime(std::string type);
    resource_entry& size(std::uint64_t bytes);
    resource_entry& annotate(annotations notes);
    resource_entry& add_icon(icon icon);
    resource_entry& meta(std::string key, json::value value);
    /// How a variable of the template is completed.
    resource_entry& complete(std::string variable, completer function);
    resource_entry& complete(std::string variable, std::vector<std::string> values);
    /// Called with the URI whenever a session wants to subscribe. It may wait and ask; the session is subscribed when
    /// it returns. What it throws refuses the subscription, as it would refuse a read.
    resource_entry& on_subscribe(std::function<task<void>(call&, std::string uri)> function);

private:
    friend class server;
    resource_entry(std::shared_ptr<detail::server_core> core, std::shared_ptr<detail::resource_definition> definition);

    std::shared_ptr<detail::server_core> core_;
    std::shared_ptr<detail::resource_definition> definition_;
    int exceptions_;
};

}
