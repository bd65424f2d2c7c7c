#include "server/completion.hpp"

#include "runtime/node.hpp"
#include "server/answers.hpp"
#include "server/render.hpp"

#include <algorithm>

namespace belay::inline v0::detail {

namespace {

constexpr std::size_t most_values = 100; // the protocol's limit

}

completer one_of(std::vector<std::string> values)
{
    return [values = std::move(values)](std::string_view typed, json::object const&) {
        std::vector<std::string> fitting;
        for (auto const& each : values)
            if (each.starts_with(typed))
                fitting.push_back(each);
        return fitting;
    };
}

completers completers_of(json::object const& schema)
{
    completers made;
    auto const* properties = schema.if_contains("properties");
    if (!properties || !properties->is_object())
        return made;
    for (auto const& [name, property] : properties->get_object()) {
        auto const* object = property.if_object();
        auto const* names = object ? object->if_contains("enum") : nullptr;
        if (!names || !names->is_array())
            continue;
        std::vector<std::string> values;
        for (auto const& each : names->get_array())
            if (each.is_string())
                values.emplace_back(view(each.get_string()));
        made.emplace_back(std::string(name), one_of(std::move(values)));
    }
    return made;
}

void put(completers& into, std::string name, completer function)
{
    std::erase_if(into, [&](auto const& each) { return each.first == name; });
    into.emplace_back(std::move(name), std::move(function));
}

runtime::outcome
complete(runtime::incoming const& request, prompt_catalogue const& prompts, resource_catalogue const& resources)
{
    auto const bad
        = [&](std::string text) { return refuse(request, {protocol::code::invalid_params, std::move(text), {}}); };
    auto const member = [](json::object const* in, std::string_view name) -> json::object const* {
        auto const* value = in ? in->if_contains(name) : nullptr;
        return value ? value->if_object() : nullptr;
    };
    auto const text = [](json::object const* in, std::string_view name) -> json::string const* {
        auto const* value = in ? in->if_contains(name) : nullptr;
        return value ? value->if_string() : nullptr;
    };
    auto const* ref = member(request.message.params, "ref");
    auto const* argument = member(request.message.params, "argument");
    auto const* type = text(ref, "type");
    auto const* name = text(argument, "name");
    auto const* value = text(argument, "value");
    if (!type || !name || !value)
        return bad("params needs ref {type, name or uri} and argument {name, value}");

    // Kept while the completer runs, whatever is removed meanwhile.
    std::shared_ptr<void const> keep;
    std::vector<std::pair<std::string, completer>> const* completers = nullptr;
    if (view(*type) == "ref/prompt") {
        auto const* key = text(ref, "name");
        if (auto const what = key ? prompts.find(view(*key)) : nullptr) {
            completers = &what->completers;
            keep = what;
        }
    } else if (view(*type) == "ref/resource") {
        auto const* key = text(ref, "uri");
        if (auto const what = key ? resources.template_of(view(*key)) : nullptr) {
            completers = &what->completers;
            keep = what;
        }
    } else {
        return bad("params.ref.type must be ref/prompt or ref/resource");
    }
    if (!completers)
        return bad("params.ref names no prompt or resource template of this server");

    auto const is_object = [](json::object const* in, std::string_view key) {
        return !in || !in->contains(key) || in->at(key).is_object();
    };
    auto const* context = member(request.message.params, "context");
    auto const* others = member(context, "arguments");
    if (!is_object(request.message.params, "context") || !is_object(context, "arguments"))
        return bad("params.context and its arguments must be objects");
    std::vector<std::string> values;
    auto const found = std::ranges::find(*completers, view(*name), [](auto const& each) { return each.first; });
    if (found != completers->end()) {
        static json::object const nothing;
        try {
            values = found->second(view(*value), others ? *others : nothing);
        } catch (...) {
            return refuse(
                request,
                read_failure(
                    log_of(request), "completion of " + found->first,
                    {protocol::code::invalid_params, "There is nothing to complete", {}}));
        }
    }
    auto const total = values.size();
    bool const has_more = total > most_values;
    if (has_more)
        values.resize(most_values);
    std::string out = R"({"completion":{"values":[)";
    for (auto const& each : values) {
        if (out.back() != '[')
            out += ',';
        json_text::append_json_string(out, each);
    }
    out += R"(],"total":)";
    json_text::append_json_number(out, static_cast<std::uint64_t>(total));
    out += has_more ? R"(,"hasMore":true}})" : R"(,"hasMore":false}})";
    return give(request, out);
}

}
