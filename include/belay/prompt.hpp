// Prompts: messages made ready for a model, with arguments that a person fills in.
//
//   R f()                                quick
//   R f(caller const&)                   the same, for one that wants to know who calls
//   task<R> f(call&)                     may wait
//
// With arguments each takes Args as well, a described struct whose members they are, or json::object.
// R is std::string (one message of the user), std::vector<prompt_message>, or prompt_result.
#pragma once

#include <belay/content.hpp>
#include <belay/json.hpp>
#include <belay/resource.hpp>

#include <memory>
#include <string>
#include <vector>

namespace belay::inline v0 {

struct prompt_message {
    belay::role from = role::user;
    json::object content; ///< see content.hpp
};

struct prompt_result {
    std::string description;
    std::vector<prompt_message> messages;
    json::object meta{}; ///< `_meta` of the result
};

namespace detail {
class server_core;
struct prompt_definition;
}

/// A prompt that is being registered. Clients see it when this is destroyed.
class prompt_entry {
public:
    prompt_entry(prompt_entry const&) = delete;
    prompt_entry& operator=(prompt_entry const&) = delete;
    ~prompt_entry();

    prompt_entry& title(std::string text);
    prompt_entry& describe(std::string text);
    prompt_entry& add_icon(icon icon);
    prompt_entry& meta(std::string key, json::value value);
    /// How an argument is completed.
    prompt_entry& complete(std::string argument, completer function);
    prompt_entry& complete(std::string argument, std::vector<std::string> values);

private:
    friend class server;
    prompt_entry(std::shared_ptr<detail::server_core> core, std::shared_ptr<detail::prompt_definition> definition);

    std::shared_ptr<detail::server_core> core_;
    std::shared_ptr<detail::prompt_definition> definition_;
    int exceptions_;
};

}
