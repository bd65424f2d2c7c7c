// The resources of a server: listing, reading, subscribing.
#pragma once

#include "runtime/service.hpp"
#include "server/registry.hpp"
#include "server/uri_template.hpp"

#include <belay/detail/handler_shape.hpp>
#include <belay/resource.hpp>

namespace belay::inline v0::detail {

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

class resource_catalogue {
public:
    struct found {
        std::shared_ptr<resource_definition const> what;
        json::object variables;
    };
    /// What a request is about, by `params.uri`.
    [[nodiscard]] std::optional<found> find(protocol::message const& request) const;

    /// Throws std::invalid_argument for a bad or repeated URI.
    void check(resource_definition const& fresh) const;
    void add(std::shared_ptr<resource_definition const> fresh);
    [[nodiscard]] bool remove(std::string_view uri);
    [[nodiscard]] bool is_empty() const;
    [[nodiscard]] bool has_completers() const;

    [[nodiscard]] runtime::outcome list(runtime::incoming const& request, std::size_t page_size) const;
    [[nodiscard]] runtime::outcome list_templates(runtime::incoming const& request, std::size_t page_size) const;
    [[nodiscard]] runtime::outcome read(runtime::incoming const& request, std::optional<found> const& what) const;
    [[nodiscard]] runtime::outcome subscribe(runtime::incoming const& request, std::optional<found> const& what) const;
    [[nodiscard]] runtime::outcome unsubscribe(runtime::incoming const& request) const;
    /// The definition of a template, by its text.
    [[nodiscard]] std::shared_ptr<resource_definition const> template_of(std::string_view text) const;

private:
    registry<resource_definition> resources_;
    registry<resource_definition> templates_;
    registry<uri_template> patterns_; // by template
};

}
