// JSON-RPC 2.0 as bytes: reading one message of a client, writing answers and notifications. Ids keep
// their value and type: they are carried as JSON text.
#pragma once

#include "protocol/revision.hpp"
#include "json/parse.hpp"

#include <belay/json.hpp>

#include <expected>
#include <string>
#include <string_view>

namespace belay::protocol {

namespace code {
inline constexpr int parse_error = -32700;
inline constexpr int invalid_request = -32600;
inline constexpr int method_not_found = -32601;
inline constexpr int invalid_params = -32602;
inline constexpr int internal_error = -32603;
inline constexpr int server_error = -32000;
inline constexpr int session_not_found = -32001;
inline constexpr int resource_not_found = -32002;
inline constexpr int url_required = -32042;
inline constexpr int cancelled = -32800;
}

struct rpc_error {
    int code = code::internal_error;
    std::string message;
    std::string data; ///< JSON text; empty: none
};

enum class message_kind { request, notification, response };

/// One message. Views and pointers live as long as the JSON value it was read from.
struct message {
    message_kind kind = message_kind::request;
    std::string id; ///< JSON text; empty for a notification
    std::string_view method;
    json::object const* params = nullptr; ///< null if absent
    json::object const* meta = nullptr;   ///< the `_meta` of the params; null if there is none
    json::object const* whole = nullptr;  ///< of a response: has `result` or `error`
};

struct message_limits {
    std::size_t depth = json_text::default_depth;
    std::size_t id_bytes = 256;
};

/// Reads bytes as JSON, without changing a number. The error is ready to be sent with 400.
[[nodiscard]] std::expected<json::value, rpc_error>
parse_json(std::string_view bytes, json::storage_ptr storage, message_limits const& limits = {});

/// The JSON text of the request's progress token; empty if there is none.
[[nodiscard]] std::expected<std::string, rpc_error>
progress_token(message const& message, message_limits const& limits = {});

/// Reads one JSON-RPC message.
[[nodiscard]] std::expected<message, rpc_error>
read_message(json::value const& value, message_limits const& limits = {});

/// The revision that an `initialize` is answered with.
[[nodiscard]] std::expected<revision, rpc_error> negotiate(message const& initialize);

/// The front of a response, with room for a result of that size: its JSON text and a `}` are to follow. For results
/// that are large, so that there is one copy of them.
[[nodiscard]] std::string begin_result(std::string_view id, std::size_t bytes);
/// `result` is JSON text.
[[nodiscard]] std::string result_response(std::string_view id, std::string_view result);
/// `id` is JSON text; "null" where the request could not be read.
[[nodiscard]] std::string error_response(std::string_view id, rpc_error const& error);
/// A request of ours. `id` is the content of a JSON string that needs no escapes; `params` is the JSON text of an
/// object, or empty.
[[nodiscard]] std::string request(std::string_view id, std::string_view method, std::string_view params);
/// A client's request once more. `id` is JSON text.
[[nodiscard]] std::string request_text(std::string_view id, std::string_view method, std::string_view params);
/// `params` is the JSON text of an object, or empty.
[[nodiscard]] std::string notification(std::string_view method, std::string_view params);

/// An answer of ours as the answer to another request.
[[nodiscard]] std::string answer_for(std::string_view answer, std::string_view id);
/// A message of ours for a caller with another progress token (JSON text): progress carries that one, and is left
/// out (empty) if there is none; other messages stay as they are.
[[nodiscard]] std::string progress_for(std::string_view message, std::string_view token);

/// The JSON text of a request id; empty if it is not a string or integer.
[[nodiscard]] std::string id_text(json::value const& value, message_limits const& limits = {});

/// The `result` or `error` of a response, as the JSON text of an object that has just that.
[[nodiscard]] std::string outcome_text(message const& response);

/// The JSON text of an object among the params; "{}" if it is not there or not an object.
[[nodiscard]] std::string object_text(json::object const* params, std::string_view name);

}
