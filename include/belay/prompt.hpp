// Prompts: messages made ready for a model, with arguments that a person fills in.
//
//   R f() / f(Args)                  quick; the arguments are the members of a described struct
//   task<R> f(call&) / f(call&, Args)  may wait
//
// R is std::string (one message of the user), std::vector<prompt_message>, or prompt_result.
#pragma once

#include <belay/content.hpp>
#include <belay/resource.hpp>

#include <memory>
#include <string>
#include <vector>

namespace belay {

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

struct prompt_definition {
    std::string name;
    std::string title;
    std::string description;
    std::vector<argument> arguments;
    std::vector<icon> icons;
    json::object meta;
    std::vector<std::pair<std::string, completer>> completers;
    handler<prompt_result> get;
};

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
