#include "http/head_parser.hpp"

#include "http/field_text.hpp"
#include "http/refusals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
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

constexpr std::uint64_t each_byte = 0x0101010101010101;

/// The high bit of each of eight bytes that is a letter, a digit or a dash, as nearly all bytes of names are.
constexpr std::uint64_t common_bytes(std::uint64_t bytes) noexcept
{
    // A sum's high bit says that a byte of 7 bits is not below the bound; no sum runs over into the next byte.
    auto const is_from = [](std::uint64_t low, unsigned char bound) { return low + each_byte * (0x80u - bound); };
    auto const low = bytes & (each_byte * 0x7f);
    auto const small = low | (each_byte * 0x20);
    auto const is_letter = is_from(small, 'a') & ~is_from(small, 'z' + 1);
    auto const is_digit = is_from(low, '0') & ~is_from(low, '9' + 1);
    auto const is_other = is_from(low ^ (each_byte * '-'), 1);
    return (is_letter | is_digit | ~is_other) & ~bytes & (each_byte * 0x80);
}

/// How many bytes of a token it begins with.
std::size_t token_size(std::string_view text) noexcept
{
    std::size_t size = 0;
    if constexpr (std::endian::native == std::endian::little)
        for (; size + 8 <= text.size(); size += 8) {
            std::uint64_t bytes = 0;
            std::memcpy(&bytes, text.data() + size, 8);
            if (auto const rare = ~common_bytes(bytes) & (each_byte * 0x80); rare != 0) {
                size += static_cast<std::size_t>(std::countr_zero(rare)) / 8;
                break;
            }
        }
    while (size < text.size() && token_bytes[static_cast<unsigned char>(text[size])])
        ++size;
    return size;
}

}

refusal head_parser::parse()
{
    auto const first = next_line();
    if (!first)
        return bad_line_end;
    if (auto const why = take_first_line(*first); why.status != 0)
        return why;
    for (;;) {
        auto const line = next_line();
        if (!line)
            return bad_line_end;
        if (line->empty())
            return good;
        if (auto const why = take_field(*line); why.status != 0)
            return why;
    }
}

std::optional<std::string_view> head_parser::next_line()
{
    auto const line = text_.substr(size, text_.find('\r', size) - size);
    auto const end = size + line.size();
    if (text_.size() - end < 2 || text_[end + 1] != '\n')
        return std::nullopt;
    size = end + 2;
    ++lines;
    return line;
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
    fields_.add(piece_of(text_, name), piece_of(text_, value), key);
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
