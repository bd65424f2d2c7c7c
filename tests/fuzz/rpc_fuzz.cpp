// JSON-RPC messages: any bytes are read or refused without harm, and a message that is read has an id that comes
// back with its value and type, however often it is written and read again. Input: the body of a POST.
#include "protocol/message.hpp"

#include "json/serialize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

namespace {

using namespace belay::protocol;
namespace json = belay::json;

void require(bool holds)
{
    if (!holds)
        std::abort();
}

// The same value, written and read again. A double may come back as an integer, and as its neighbour (the parser
// rounds nearly right only); one that is too great for a double has become infinite and is written as null.
bool is_same(json::value const& a, json::value const& b)
{
    if (b.is_double() && !std::isfinite(b.get_double()))
        return a.is_null();
    if (a.is_double() || b.is_double()) {
        if (!a.is_number() || !b.is_number())
            return false;
        auto const x = a.to_number<double>();
        auto const y = b.to_number<double>();
        return x == y || std::abs(x - y) <= std::abs(x) * 1e-14 + std::numeric_limits<double>::min();
    }
    if (a.is_array() && b.is_array())
        return std::ranges::equal(a.get_array(), b.get_array(), is_same);
    if (a.is_object() && b.is_object())
        return std::ranges::equal(a.get_object(), b.get_object(), [](auto const& x, auto const& y) {
            return x.key() == y.key() && is_same(x.value(), y.value());
        });
    return a == b;
}

// A refusal is an answer: it must be JSON itself.
void require_answer(rpc_error const& error)
{
    require(error.code == code::parse_error || error.code == code::invalid_request);
    auto const answer = parse_json(error_response("null", error), {});
    require(answer && answer->at("error").at("code") == error.code);
}

void require_same_id(std::string const& written, message const& as, message_limits const& limits)
{
    auto const value = parse_json(written, {}, limits);
    require(value.has_value());
    auto const again = read_message(*value, limits);
    require(again && again->id == as.id);
}

}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    message_limits const limits{16, 64};
    auto const value = parse_json(bytes, {}, limits);
    if (!value) {
        require_answer(value.error());
        return 0;
    }
    // What was read is written so that it reads as the same value.
    auto const text = belay::json_text::to_json(*value);
    auto const again = parse_json(text, {}, limits);
    require(again && is_same(*again, *value));

    auto const read = read_message(*value, limits);
    if (!read) {
        require_answer(read.error());
        return 0;
    }
    require((read->kind == message_kind::notification) == read->id.empty());
    require(read->kind != message_kind::response || (read->method.empty() && !read->params));
    require(!read->params || read->params == &value->as_object().at("params").as_object());
    if (read->id.empty())
        return 0;
    auto const id = parse_json(read->id, {}, limits);
    require(id && *id == value->as_object().at("id") && id_text(*id, limits) == read->id);
    require_same_id(text, *read, limits);
    require_same_id(result_response(read->id, "{}"), *read, limits);
    require_same_id(error_response(read->id, {code::internal_error, std::string(read->method), {}}), *read, limits);
    return 0;
}
