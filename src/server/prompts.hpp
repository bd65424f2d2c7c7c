// The prompts of a server: listing and getting them.
#pragma once

#include "runtime/service.hpp"
#include "server/registry.hpp"

#include <belay/detail/handler_shape.hpp>
#include <belay/prompt.hpp>

namespace belay::inline v0::detail {

struct argument {
    std::string name;
    std::string description;
    bool is_required = true;
};

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

class prompt_catalogue {
public:
    /// Throws std::invalid_argument for a bad or repeated name.
    void check(prompt_definition const& fresh) const;
    void add(std::shared_ptr<prompt_definition const> fresh);
    [[nodiscard]] bool remove(std::string_view name) { return prompts_.remove(name); }
    [[nodiscard]] bool is_empty() const { return prompts_.now()->in_order.empty(); }
    [[nodiscard]] bool has_completers() const;
    [[nodiscard]] std::shared_ptr<prompt_definition const> find(std::string_view name) const
    {
        return prompts_.now()->find(name);
    }
    /// What a request is about, by `params.name`.
    [[nodiscard]] std::shared_ptr<prompt_definition const> find(protocol::message const& request) const;

    [[nodiscard]] runtime::outcome list(runtime::incoming const& request, std::size_t page_size) const;
    [[nodiscard]] runtime::outcome
    get(runtime::incoming const& request, std::shared_ptr<prompt_definition const> const& what) const;

private:
    registry<prompt_definition> prompts_;
};

}
