#include "protocol/message.hpp"

#include "protocol/names.hpp"
#include "json/serialize.hpp"

#include <fmt/format.h>

namespace belay::protocol {

namespace {

char const* text_of(json_text::parse_error why) noexcept
{
    switch (why) {
    case json_text::parse_error::malformed: break;
    case json_text::parse_error::too_deep: return "JSON is nested too deeply";
    case json_text::parse_error::inexact_number:
        return "A number cannot be kept as it is: integers have 64 bits, others are doubles";
    }
    return "Invalid JSON";
}

}

std::expected<json::value, rpc_error>
parse_json(std::string_view bytes, json::storage_ptr storage, message_limits const& limits)
{
    auto value = json_text::parse(bytes, std::move(storage), limits.depth);
    if (!value)
        return std::unexpected(rpc_error{code::parse_error, std::string("Parse error: ") + text_of(value.error()), {}});
    return std::move(*value);
}

std::string id_text(json::value const& value, message_limits const& limits)
{
    std::string text;
    if (value.is_string()) {
        if (value.get_string().size() <= limits.id_bytes)
            json_text::append_json_string(text, {value.get_string().data(), value.get_string().size()});
    } else if (value.is_int64()) {
        json_text::append_json_number(text, value.get_int64());
    } else if (value.is_uint64()) {
        json_text::append_json_number(text, value.get_uint64());
    }
    return text;
}

std::string object_text(json::object const* params, std::string_view name)
{
    auto const* value = params ? params->if_contains(name) : nullptr;
    return value && value->is_object() ? json_text::to_json(*value) : "{}";
}

std::string outcome_text(message const& response)
{
    std::string text = "{";
    for (auto const* name : {"result", "error"})
        if (auto const* value = response.whole->if_contains(name)) {
            text += '"';
            text += name;
            text += "\":";
            json_text::append_json(text, *value);
        }
    text += '}';
    return text;
}

std::expected<message, rpc_error> read_message(json::value const& value, message_limits const& limits)
{
    auto const refuse = [](std::string why) {
        return std::unexpected(rpc_error{code::parse_error, "Parse error: Invalid JSON-RPC message: " + why, {}});
    };
    auto const* object = value.if_object();
    if (!object)
        return refuse("expected an object");
    auto const* version = object->if_contains("jsonrpc");
    if (!version || !version->is_string() || version->get_string() != "2.0")
        return refuse("jsonrpc must be \"2.0\"");
    message read;
    auto const* id = object->if_contains("id");
    if (id) {
        read.id = id_text(*id, limits);
        if (read.id.empty()) {
            auto const text = fmt::format("id must be an integer or a string of at most {} bytes", limits.id_bytes);
            if (!id->is_string())
                return refuse(text);
            return std::unexpected(rpc_error{code::invalid_request, "Invalid Request: " + text, {}});
        }
    }
    auto const* method = object->if_contains("method");
    if (!method) {
        if (!id || object->contains("result") == object->contains("error"))
            return refuse("a message has a method, or an id and either a result or an error");
        read.kind = message_kind::response;
        read.whole = object;
        return read;
    }
    if (!method->is_string())
        return refuse("method must be a string");
    read.method = {method->get_string().data(), method->get_string().size()};
    read.kind = id ? message_kind::request : message_kind::notification;
    if (auto const* params = object->if_contains("params")) {
        read.params = params->if_object();
        if (!read.params)
            return refuse("params must be an object");
        auto const* meta = read.params->if_contains("_meta");
        read.meta = meta ? meta->if_object() : nullptr;
    }
    return read;
}

std::expected<std::string, rpc_error> progress_token(message const& message, message_limits const& limits)
{
    auto const* token = message.meta ? message.meta->if_contains(meta::progress_token) : nullptr;
    if (!token || token->is_null())
        return std::string();
    auto text = id_text(*token, limits);
    if (token->is_double())
        json_text::append_json_number(text, token->get_double());
    if (text.empty())
        return std::unexpected(rpc_error{
            code::invalid_params,
            fmt::format("_meta.progressToken must be a number or a string of at most {} bytes", limits.id_bytes),
            {}});
    return text;
}

std::expected<revision, rpc_error> negotiate(message const& initialize)
{
    auto const* version = initialize.params ? initialize.params->if_contains("protocolVersion") : nullptr;
    if (!version || !version->is_string())
        return std::unexpected(
            rpc_error{code::invalid_params, "params.protocolVersion must be a string such as 2025-11-25", {}});
    return negotiate(std::string_view(version->get_string().data(), version->get_string().size()));
}

std::string begin_result(std::string_view id, std::size_t bytes)
{
    std::string out;
    out.reserve(id.size() + bytes + 40);
    out += R"({"jsonrpc":"2.0","id":)";
    out += id;
    out += R"(,"result":)";
    return out;
}

std::string result_response(std::string_view id, std::string_view result)
{
    auto out = begin_result(id, result.size());
    out += result;
    out += '}';
    return out;
}

std::string error_response(std::string_view id, rpc_error const& error)
{
    std::string out = R"({"jsonrpc":"2.0","id":)";
    out += id;
    out += R"(,"error":{"code":)";
    json_text::append_json_number(out, std::int64_t(error.code));
    out += R"(,"message":)";
    json_text::append_json_string(out, error.message);
    if (!error.data.empty()) {
        out += R"(,"data":)";
        out += error.data;
    }
    out += "}}";
    return out;
}

namespace {

// What result_response() and error_response() begin with, and progress notifications.
constexpr std::string_view answer_head = R"({"jsonrpc":"2.0","id":)";
constexpr std::string_view progress_head
    = R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)";

/// Where a string or number that begins here ends.
std::size_t scalar_end(std::string_view text, std::size_t from)
{
    if (text[from] != '"')
        return text.find_first_of(",}", from);
    auto end = from + 1;
    while (text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
    return end + 1;
}

std::string with_scalar(std::string_view text, std::size_t at, std::string_view scalar)
{
    std::string changed(text.substr(0, at));
    changed += scalar;
    changed += text.substr(scalar_end(text, at));
    return changed;
}

}

std::string answer_for(std::string_view answer, std::string_view id)
{
    return with_scalar(answer, answer_head.size(), id);
}

std::string progress_for(std::string_view message, std::string_view token)
{
    if (!message.starts_with(progress_head))
        return std::string(message);
    return token.empty() ? std::string() : with_scalar(message, progress_head.size(), token);
}

std::string request(std::string_view id, std::string_view method, std::string_view params)
{
    if (params.empty())
        return fmt::format(R"({{"jsonrpc":"2.0","id":"{}","method":"{}"}})", id, method);
    return fmt::format(R"({{"jsonrpc":"2.0","id":"{}","method":"{}","params":{}}})", id, method, params);
}

std::string request_text(std::string_view id, std::string_view method, std::string_view params)
{
    return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"{}","params":{}}})", id, method, params);
}

std::string notification(std::string_view method, std::string_view params)
{
    std::string out;
    out.reserve(method.size() + params.size() + 48);
    out += R"({"jsonrpc":"2.0","method":")";
    out += method;
    out += '"';
    if (!params.empty()) {
        out += R"(,"params":)";
        out += params;
    }
    out += '}';
    return out;
}

}
