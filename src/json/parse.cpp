#include "json/parse.hpp"

#include "json/serialize.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include <charconv>
#include <cmath>
#include <string>

namespace belay::json_text {

namespace {

bool has_only_digits(json::string_view number) noexcept
{
    return number.find_first_of(".eE") == json::string_view::npos;
}

/// Whether the double is written with the digits that it was read from.
bool is_written_as(double number, json::string_view digits)
{
    std::string written;
    append_whole_number(written, number);
    return written == std::string_view(digits.data(), digits.size());
}

/// Builds a value from what the parser finds, as Boost.JSON's own does, except that doubles are read from their text.
/// The whole text is parsed in one go, so every number comes in one piece.
class builder {
public:
    static constexpr std::size_t max_object_size = json::object::max_size();
    static constexpr std::size_t max_array_size = json::array::max_size();
    static constexpr std::size_t max_key_size = json::string::max_size();
    static constexpr std::size_t max_string_size = json::string::max_size();

    using error_code = json::error_code;
    using text = json::string_view;

    builder(unsigned char* buffer, std::size_t size) : stack_({}, buffer, size) {}

    void reset(json::storage_ptr storage) { stack_.reset(std::move(storage)); }
    [[nodiscard]] json::value release() { return stack_.release(); }

    bool on_document_begin(error_code&) noexcept { return true; }
    bool on_document_end(error_code&) noexcept { return true; }
    bool on_object_begin(error_code&) noexcept { return true; }
    bool on_object_end(std::size_t size, error_code&)
    {
        stack_.push_object(size);
        return true;
    }
    bool on_array_begin(error_code&) noexcept { return true; }
    bool on_array_end(std::size_t size, error_code&)
    {
        stack_.push_array(size);
        return true;
    }
    bool on_key_part(text part, std::size_t, error_code&)
    {
        stack_.push_chars(part);
        return true;
    }
    bool on_key(text part, std::size_t, error_code&)
    {
        stack_.push_key(part);
        return true;
    }
    bool on_string_part(text part, std::size_t, error_code&)
    {
        stack_.push_chars(part);
        return true;
    }
    bool on_string(text part, std::size_t, error_code&)
    {
        stack_.push_string(part);
        return true;
    }
    bool on_number_part(text, error_code&) noexcept { return true; }
    bool on_int64(std::int64_t number, text digits, error_code&)
    {
        if (number == 0 && digits.front() == '-')
            stack_.push_double(-0.0);
        else
            stack_.push_int64(number);
        return true;
    }
    bool on_uint64(std::uint64_t number, text, error_code&)
    {
        stack_.push_uint64(number);
        return true;
    }
    bool on_double(double, text digits, error_code& error)
    {
        double number = 0;
        auto const [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        static_cast<void>(end);
        // Integers of 64 bits have gone elsewhere.
        if (code != std::errc() || (has_only_digits(digits) && !is_written_as(number, digits))) {
            error = json::error::not_exact;
            return false;
        }
        stack_.push_double(number);
        return true;
    }
    bool on_bool(bool value, error_code&)
    {
        stack_.push_bool(value);
        return true;
    }
    bool on_null(error_code&)
    {
        stack_.push_null();
        return true;
    }
    bool on_comment_part(text, error_code&) noexcept { return true; }
    bool on_comment(text, error_code&) noexcept { return true; }

private:
    json::value_stack stack_;
};

parse_error why(json::error_code const& error) noexcept
{
    if (error == json::error::too_deep)
        return parse_error::too_deep;
    if (error == json::error::not_exact || error == json::error::exponent_overflow)
        return parse_error::inexact_number;
    return parse_error::malformed;
}

}

std::expected<json::value, parse_error> parse(std::string_view text, json::storage_ptr storage, std::size_t max_depth)
{
    unsigned char buffer[4096]; // for what is not complete yet; most messages need no more
    json::parse_options options;
    options.max_depth = max_depth;
    json::basic_parser<builder> parser(options, buffer, sizeof buffer);
    parser.handler().reset(std::move(storage));
    json::error_code error;
    auto const taken = parser.write_some(false, text.data(), text.size(), error);
    if (error)
        return std::unexpected(why(error));
    if (taken < text.size())
        return std::unexpected(parse_error::malformed);
    return parser.handler().release();
}

}
