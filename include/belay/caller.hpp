// Who makes the request that a quick function answers.
#pragma once

#include <belay/call.hpp>
#include <belay/json.hpp>

#include <optional>
#include <string>

namespace belay::inline v0 {

namespace detail {
struct access;
struct request_facts;
}

/// Valid while the function runs, and on its thread.
class caller {
public:
    caller(caller const&) = delete;
    caller& operator=(caller const&) = delete;

    /// Nothing where the server keeps no sessions.
    [[nodiscard]] std::optional<belay::session> session() const;
    /// Who the client acts for; empty where the server keeps no sessions.
    [[nodiscard]] std::string principal() const;
    /// The revision of MCP that the client speaks, as in `2025-11-25`.
    [[nodiscard]] std::string revision() const;
    /// The request's `_meta`; empty if there is none.
    [[nodiscard]] json::object const& meta() const;
    /// The W3C trace that the request belongs to; empty fields if there is none.
    [[nodiscard]] belay::trace trace() const;

private:
    friend struct detail::access;
    explicit caller(detail::request_facts const& of) : of_(of) {}

    detail::request_facts const& of_;
};

}
