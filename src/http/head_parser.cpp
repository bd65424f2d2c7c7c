#include "http/head_parser.hpp"

#include "http/field_text.hpp"
#include "http/refusals.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace belay::http {

namespace {

constexpr refusal good{};

constexpr auto token_bytes = [] {
    std::array<bool, 256> is_token{};
    for (unsigned char c = 'a'; c <= 'z'; ++c)
        is_token[c] = is_token[static_cast<unsigned char>(c - 32)] = true;
    for (unsigned char c = '0'; c <= '9'; ++c)
        is_token[c] = true;
    for (char const c : std::string_view("!#$%&'*+-.^_`|~"))
        is_token[static_cast<unsigned char>(c)] = true;
    return is_token;
}();

/// How many bytes of a token it begins with.
std::size_t token_size(std::string_view text) noexcept
{
    auto const is_token = [&](std::size_t at) { return token_bytes[static_cast<unsigned char>(text[at])]; };
    std::size_t size = 0;
    while (size + 4 <= text.size() && is_token(size) && is_token(size + 1) && is_token(size + 2) && is_token(size + 3))
        size += 4;
    while (size < text.size() && is_token(size))
        ++size;
    return size;
}

}

refusal head_parser::parse()
{
    auto rest = head_;
    auto const next_line = [&] {
        auto const size = rest.find('\r');
        auto const line = rest.substr(0, size);
        rest.remove_prefix(size + 2);
        return line;
    };
    if (auto const why = take_first_line(next_line()); why.status != 0)
        return why;
    for (auto line = next_line(); !line.empty(); line = next_line())
        if (auto const why = take_field(line); why.status != 0)
            return why;
    return good;
}

refusal head_parser::take_first_line(std::string_view line)
{
    // The peer wants to know whether it is the version or the line.
    auto const version = line.substr(line.find_last_of(' ') + 1);
    bool const is_version = version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5])
        && version[6] == '.' && is_digit(version[7]);
    is_http11 = version == "HTTP/1.1";
    if (is_version && !is_http11 && version != "HTTP/1.0")
        return bad_version;
    auto const method_size = token_size(line);
    if (method_size == 0 || method_size == line.size() || line[method_size] != ' ')
        return bad_request_line;
    method = line.substr(0, method_size);
    line.remove_prefix(method_size + 1);
    auto const target_size = line.find_first_of(" \t");
    if (target_size == 0 || target_size == std::string_view::npos || line[target_size] != ' ')
        return bad_target;
    target = line.substr(0, target_size);
    return is_version && line.size() - target_size - 1 == version.size() ? good : bad_request_line;
}

refusal head_parser::take_field(std::string_view line)
{
    auto const name_size = token_size(line);
    if (name_size == 0 || name_size == line.size() || line[name_size] != ':')
        return bad_field;
    auto const name = line.substr(0, name_size);
    auto const value = trimmed(line.substr(name_size + 1));
    auto const key = field_key(name);
    if (fields_.size() == most_)
        return head_too_large;
    fields_.push_back({piece_of(head_, name), piece_of(head_, value), key});
    return look_at(key, name, value);
}

refusal head_parser::look_at(std::uint32_t key, std::string_view name, std::string_view value)
{
    auto const is = [&](std::string_view wanted) { return equals_ignoring_case(name, wanted); };
    switch (key) {
    case field_key("Connection"):
        if (is("Connection"))
            return take_connection(value);
        break;
    case field_key("Proxy-Connection"):
        if (is("Proxy-Connection"))
            return take_connection(value);
        break;
    case field_key("Content-Length"):
        if (is("Content-Length"))
            return take_length(value);
        break;
    case field_key("Transfer-Encoding"):
        if (is("Transfer-Encoding")) {
            if (transfer_encoding || content_length)
                return bad_encoding;
            transfer_encoding = value;
        }
        break;
    case field_key("Host"):
        if (is("Host") && (std::exchange(host, fields_.size()) != 0 || !is_host(value)))
            return bad_host;
        break;
    case field_key("Expect"):
        if (is("Expect") && (!expect || !equals_ignoring_case(value, "100-continue")))
            expect = value;
        break;
    default: break;
    }
    return good;
}

refusal head_parser::take_connection(std::string_view value)
{
    for (bool is_last = false; !is_last;) {
        auto const comma = value.find(',');
        is_last = comma == std::string_view::npos;
        auto const option = trimmed(value.substr(0, comma));
        if (token_size(option) != option.size())
            return bad_field;
        says_close_ = says_close_ || equals_ignoring_case(option, "close");
        says_keep_alive_ = says_keep_alive_ || equals_ignoring_case(option, "keep-alive");
        if (!is_last)
            value.remove_prefix(comma + 1);
    }
    return good;
}

refusal head_parser::take_length(std::string_view value)
{
    std::uint64_t length = 0;
    auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    // A list, even of the same number twice, is read differently by different parties.
    bool const is_number = error == std::errc() && end == value.data() + value.size();
    if (!is_number || content_length || transfer_encoding)
        return bad_length;
    content_length = length;
    return good;
}

}
