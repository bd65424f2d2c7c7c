// W3C Trace Context: which distributed trace a request belongs to, as its header fields or its `_meta` say.
// Read strictly: what is not exactly a trace context is none, and never an error for the caller.
#pragma once

#include <belay/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belay::protocol {

struct trace_context {
    std::string trace_id;  ///< 32 hexadecimal digits in lower case, not all zero
    std::string parent_id; ///< 16 of them: the caller's span
    std::uint8_t flags = 0;
    std::string tracestate; ///< as it came; empty if there was none or it was not one

    [[nodiscard]] bool is_sampled() const noexcept { return (flags & 1) != 0; }
    /// As it is written in a `traceparent`, in version 00.
    [[nodiscard]] std::string traceparent() const;

    friend bool operator==(trace_context const&, trace_context const&) = default;
};

/// A bad `tracestate` is left out; without a good `traceparent` there is nothing.
[[nodiscard]] std::optional<trace_context>
parse_trace_context(std::string_view traceparent, std::string_view tracestate = {});

/// What a message says of its trace: its `_meta` if that is good, else the fields of the request that carried it.
[[nodiscard]] std::optional<trace_context> trace_context_of(
    json::object const* meta, std::optional<std::string_view> traceparent, std::optional<std::string_view> tracestate);

}
