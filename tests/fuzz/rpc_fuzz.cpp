// JSON-RPC messages: any bytes are read or refused without harm, and a message that is read has an id that comes
// back with its value and type, however often it is written and read again. Input: the body of a POST.
#include "protocol/message.hpp"

#include "json/serialize.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

namespace {

using namespace belay::protocol;
namespace json = belay::json;

void require(bool holds)
{
    if (!holds)
        std::abort();
}

// The same value, written and read again. A double may come back as an integer.
bool is_same(json::value const& a, json::value const& b)
{
    if (a.is_double() || b.is_double()) {
        if (!a.is_number() || !b.is_number())
            return false;
        auto const x = a.to_number<double>();
        auto const y = b.to_number<double>();
        return std::isfinite(y) && x == y && std::signbit(x) == std::signbit(y);
    }
    if (a.is_array() && b.is_array())
        return std::ranges::equal(a.get_array(), b.get_array(), is_same);
    if (a.is_object() && b.is_object())
        return std::ranges::equal(a.get_object(), b.get_object(), [](auto const& x, auto const& y) {
            return x.key() == y.key() && is_same(x.value(), y.value());
        });
    return a == b;
}

bool is_near(json::value const& a, json::value const& b)
{
    if (a.is_double() && b.is_number()) {
        auto const x = a.get_double();
        auto const y = b.to_number<double>();
        // Boost.JSON multiplies by powers of ten, which may be too large where the number is not.
        return x == y || !std::isfinite(y)
            || std::abs(x - y) <= std::abs(x) * 1e-14 + std::numeric_limits<double>::min();
    }
    if (a.is_array() && b.is_array())
        return std::ranges::equal(a.get_array(), b.get_array(), is_near);
    if (a.is_object() && b.is_object())
        return std::ranges::equal(a.get_object(), b.get_object(), [](auto const& x, auto const& y) {
            return x.key() == y.key() && is_near(x.value(), y.value());
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

// Next to Boost.JSON's parser: what is read here is read there too, as the same value but for the last places of a
// double; what is refused for its syntax is refused there too.
void require_same_reading(std::string_view bytes, std::expected<json::value, rpc_error> const& here, std::size_t depth)
{
    json::parse_options options;
    options.max_depth = depth;
    boost::system::error_code failed;
    auto const there = json::parse(json::string_view(bytes.data(), bytes.size()), failed, {}, options);
    if (!here) {
        bool const is_number = here.error().message.find("number") != std::string::npos;
        require(is_number || failed.failed());
        return;
    }
    require(!failed && is_near(*here, there));
}

// A number that stands alone, next to the C library's reading.
void require_exact(std::string const& text, json::value const& value)
{
    if (!value.is_double())
        return;
    double const expected = std::strtod(text.c_str(), nullptr);
    require(std::bit_cast<std::uint64_t>(expected) == std::bit_cast<std::uint64_t>(value.get_double()));
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
    require_same_reading(bytes, value, limits.depth);
    if (!value) {
        require_answer(value.error());
        return 0;
    }
    require_exact(std::string(bytes), *value);
    // What was read is written so that it reads as the same value, and is written so again.
    auto const text = belay::json_text::to_json(*value);
    auto const again = parse_json(text, {}, limits);
    require(again && is_same(*again, *value) && belay::json_text::to_json(*again) == text);

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
