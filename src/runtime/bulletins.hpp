// What nodes tell each other of calls that no store knows of, because they have no stream.
#pragma once

#include "store/types.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace belay::runtime {

struct bulletin_text {
    store::session_key session;
    std::optional<std::string> cancelled; ///< the request's id, as JSON text; absent: the session has ended
};

[[nodiscard]] std::string cancel_bulletin(store::session_key const& session, std::string_view request);
[[nodiscard]] std::string session_ended_bulletin(store::session_key const& session);
/// None for one that is of another kind, or of another version of this program.
[[nodiscard]] std::optional<bulletin_text> read_bulletin(std::string_view text);

}
