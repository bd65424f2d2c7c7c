// Resources: things that a client can read by URI, one by one or as a family with a URI template.
//
//   R f()                                quick
//   R f(caller const&)                   the same, for one that wants to know who calls
//   task<R> f(call&)                     may wait
//
// For a template each takes Args as well, a described struct whose members are the variables, or json::object.
// R is std::string (text), blob (bytes), resource_contents, or a described struct (as JSON).
#pragma once

#include <belay/content.hpp>
#include <belay/json.hpp>
#include <belay/task.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace belay::inline v0 {

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
class server_core;
struct resource_definition;
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
