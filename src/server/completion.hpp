// completion/complete: values for an argument of a prompt or a variable of a resource template.
#pragma once

#include "runtime/service.hpp"
#include "server/prompts.hpp"
#include "server/resources.hpp"

namespace belay::inline v0::detail {

[[nodiscard]] runtime::outcome
complete(runtime::incoming const& request, prompt_catalogue const& prompts, resource_catalogue const& resources);

/// A completer that offers those of the values that begin with what was typed.
[[nodiscard]] completer one_of(std::vector<std::string> values);

using completers = std::vector<std::pair<std::string, completer>>;
/// Members with an enum complete themselves.
[[nodiscard]] completers completers_of(json::object const& schema);
/// In the place of the one that there may be.
void put(completers& into, std::string name, completer function);

}
