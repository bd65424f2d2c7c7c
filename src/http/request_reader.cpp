#include "http/request_reader.hpp"

#include "http/field_text.hpp"
#include "http/head_parser.hpp"
#include "http/refusals.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace belay::http {

namespace {

// Buffers larger than this are given back between requests: a head and a small body fit, an upload does not.
constexpr std::size_t kept_buffer_bytes = std::size_t(16) * 1024;
// A body is not given memory for what its sender only announces.
constexpr std::size_t first_body_bytes = std::size_t(64) * 1024;
// 16 hex digits hold any size; more is padding that only costs us.
constexpr std::size_t chunk_size_digits = 16;
// Of the fields that somebody here reads, those that are lists. Connection, Content-Length, Expect and
// Transfer-Encoding are dealt with while the head is parsed.
constexpr std::array<std::string_view, 4> list_fields{"Accept", "Accept-Encoding", "If-None-Match", "tracestate"};

enum byte_kind : std::uint8_t { plain, blank, cr, lf, bad };

constexpr std::array<std::uint8_t, 256> make_kinds()
{
    std::array<std::uint8_t, 256> kinds{};
    for (std::size_t c = 0; c < 0x20; ++c)
        kinds[c] = bad;
    kinds[0x7f] = bad;
    kinds[' '] = kinds['\t'] = blank;
    kinds['\r'] = cr;
    kinds['\n'] = lf;
    return kinds;
}
constexpr auto kinds = make_kinds();

constexpr byte_kind kind_of(char c) noexcept
{
    return static_cast<byte_kind>(kinds[static_cast<unsigned char>(c)]);
}

/// Neither plain nor a blank.
constexpr bool is_control(char c) noexcept
{
    auto const byte = static_cast<unsigned char>(c);
    return ((byte < 0x20) & (byte != '\t')) | (byte == 0x7f);
}

/// In blocks whose count fits in a byte: the compiler then looks at many bytes at once.
std::size_t count_controls(std::string_view text) noexcept
{
    constexpr std::size_t block = 32;
    std::size_t count = 0;
    for (; text.size() >= block; text.remove_prefix(block)) {
        std::uint8_t here = 0;
        for (std::size_t i = 0; i < block; ++i)
            here = static_cast<std::uint8_t>(here + (is_control(text[i]) ? 1 : 0));
        count += here;
    }
    for (char const c : text)
        count += is_control(c) ? 1 : 0;
    return count;
}

constexpr int hex_value(char c) noexcept
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

http::method method_of(std::string_view text) noexcept
{
    if (text == "POST")
        return method::post;
    if (text == "GET")
        return method::get;
    if (text == "DELETE")
        return method::delete_;
    if (text == "OPTIONS")
        return method::options;
    if (text == "HEAD")
        return method::head;
    if (text == "PUT")
        return method::put;
    return method::other;
}

}

request_reader::request_reader(reader_limits const& limits) : limits_(limits)
{
}

request_reader::~request_reader() = default;

void request_reader::reset() noexcept
{
    auto const clear = [](std::string& buffer) {
        if (buffer.capacity() > kept_buffer_bytes)
            std::string().swap(buffer);
        else
            buffer.clear();
    };
    clear(head_);
    clear(body_);
    fields_.clear();
    method_text_ = target_ = path_ = query_ = {};
    refusal_ = {};
    remaining_ = 0;
    chunk_overhead_ = 0;
    line_start_ = target_start_ = size_digits_ = 0;
    state_ = state::head;
    method_ = method::other;
    chunk_step_ = chunk_step::size_first;
    skipped_cr_ = target_done_ = chunked_ = keep_alive_ = expects_continue_ = false;
    http11_ = true;
}

void request_reader::fail(refusal why) noexcept
{
    refusal_ = why;
    state_ = state::failed;
}

std::size_t request_reader::feed(std::string_view bytes)
{
    std::size_t taken = 0;
    if (state_ == state::head)
        taken = feed_head(bytes);
    if (state_ == state::body && taken < bytes.size())
        taken += chunked_ ? feed_chunked(bytes.substr(taken)) : feed_sized(bytes.substr(taken));
    return taken;
}

std::size_t request_reader::feed_head(std::string_view bytes)
{
    std::size_t skipped = 0;
    if (head_.empty()) {
        // RFC 9112 section 2.2: blank lines before a request are ignored; some clients end a body with one.
        for (; skipped < bytes.size(); ++skipped) {
            char const c = bytes[skipped];
            if (skipped_cr_ ? c != '\n' : c == '\n') {
                fail(bad_line_end);
                return skipped;
            }
            if (!skipped_cr_ && c != '\r')
                break;
            skipped_cr_ = !skipped_cr_;
        }
        bytes.remove_prefix(skipped);
        if (bytes.empty())
            return skipped;
    }

    auto const before = head_.size();
    auto const window = std::min(bytes.size(), limits_.header_bytes - before);
    char const* const p = bytes.data();
    if (before == 0)
        if (auto const size = take_whole_head(bytes.substr(0, window)))
            return skipped + size;
    bool const was_cr = before > 0 && head_.back() == '\r';
    if (was_cr && window > 0 && p[0] != '\n') {
        fail(bad_line_end);
        return skipped;
    }

    // Checked before anything else is said about a byte past the limit, so that the order of errors is the
    // order of bytes.
    auto const target_is_long = [&](std::size_t at) {
        return target_start_ > 0 && !target_done_ && before + at - target_start_ > limits_.target_bytes;
    };
    bool ended = false;
    std::size_t i = 0;
    while (i < window && !ended) {
        auto kind = kind_of(p[i]);
        if (kind == plain) {
            ++i;
            continue;
        }
        if (target_is_long(i))
            return fail(target_too_long), skipped;
        switch (kind) {
        case plain: break;
        case blank:
            if (before + i == line_start_)
                return fail(line_start_ == 0 ? bad_request_line : folded_line), skipped;
            if (line_start_ == 0) {
                if (target_start_ == 0)
                    target_start_ = static_cast<std::uint32_t>(before + i + 1);
                else
                    target_done_ = true;
            }
            ++i;
            break;
        case bad: return fail(bad_byte), skipped;
        case cr:
            target_done_ = true;
            if (i + 1 == window) {
                ++i;
                break;
            }
            if (p[i + 1] != '\n')
                return fail(bad_line_end), skipped;
            ++i;
            [[fallthrough]];
        case lf:
            if (i == 0 ? !was_cr : p[i - 1] != '\r')
                return fail(bad_line_end), skipped;
            ended = before + i - line_start_ == 1; // CR LF at the start of a line
            line_start_ = static_cast<std::uint32_t>(before + i + 1);
            ++i;
            break;
        }
    }
    if (!ended && target_is_long(i))
        return fail(target_too_long), skipped;
    if (!ended && i < bytes.size())
        return fail(head_too_large), skipped;
    head_.append(p, i);
    if (ended) {
        head_parser parser(head_, fields_, limits_.header_count);
        if (auto const why = parser.parse(); why.status != 0)
            return fail(why), skipped + i;
        take_head(head_, parser);
    }
    return skipped + i;
}

// Most heads come in one piece and have nothing in them that needs a closer look. The size of such a one, else 0.
std::size_t request_reader::take_whole_head(std::string_view bytes)
{
    head_parser parser(bytes, fields_, limits_.header_count);
    bool const is_simple = parser.parse().status == 0
        && parser.target.size() <= limits_.target_bytes
        // No control character but the ends of the lines.
        && count_controls(bytes.substr(0, parser.size)) == 2 * parser.lines;
    if (!is_simple) {
        fields_.clear();
        return 0;
    }
    head_.assign(bytes.data(), parser.size);
    take_head(bytes, parser);
    return parser.size;
}

void request_reader::take_head(std::string_view parsed, head_parser const& parser)
{
    method_text_ = http::piece_of(parsed, parser.method);
    method_ = method_of(parser.method);
    target_ = http::piece_of(parsed, parser.target);
    http11_ = parser.is_http11;
    keep_alive_ = parser.keeps_alive();

    if (auto const why = parse_target(text(target_)); why.status != 0)
        return fail(why);
    if (parser.host == 0 && (http11_ || path_.at != target_.at))
        return fail(bad_host);
    if (path_.at != target_.at) {
        // RFC 9112 section 3.2.2: the authority of an absolute target stands in for Host.
        auto const slashes = text(target_).find("//") + 2;
        auto const authority = text(target_).substr(slashes);
        fields_.number(parser.host).value = piece_of(authority.substr(0, authority.find_first_of("/?")));
    }

    if (parser.transfer_encoding) {
        if (!http11_)
            return fail(bad_encoding);
        if (!equals_ignoring_case(*parser.transfer_encoding, "chunked"))
            return fail(other_encoding);
        chunked_ = true;
    } else if (parser.content_length) {
        remaining_ = *parser.content_length;
        if (remaining_ > limits_.body_bytes)
            return fail(body_too_large);
    }
    if (parser.expect && http11_) {
        if (!equals_ignoring_case(*parser.expect, "100-continue"))
            return fail(bad_expectation);
        expects_continue_ = true;
    }
    join_list_fields();
    body_.reserve(std::min<std::size_t>(remaining_, first_body_bytes));
    state_ = chunked_ || remaining_ > 0 ? state::body : state::complete;
}

void request_reader::join_list_fields()
{
    for (auto const name : list_fields) {
        if (fields_.count(head_, name) < 2)
            continue;
        auto& first = fields_.number(fields_.find(head_, name));
        std::string joined(text(first.value));
        for (auto const& each : fields_)
            if (&each != &first && each.key == first.key && equals_ignoring_case(text(each.name), name))
                joined.append(", ").append(text(each.value));
        // Behind the head: what is joined is a part of it, so this is bounded too.
        first.value = {static_cast<std::uint32_t>(head_.size()), static_cast<std::uint32_t>(joined.size())};
        head_ += joined;
    }
}

refusal request_reader::parse_target(std::string_view target)
{
    if (!std::all_of(target.begin(), target.end(), is_visible))
        return bad_target;
    auto rest = target;
    auto const starts_with
        = [&](std::string_view scheme) { return equals_ignoring_case(target.substr(0, scheme.size()), scheme); };
    if (target == "*") {
        if (method_ != method::options)
            return bad_target;
    } else if (starts_with("http://") || starts_with("https://")) {
        auto const slashes = target.find("//");
        auto const authority_end = std::min(target.find_first_of("/?#", slashes + 2), target.size());
        auto const authority = target.substr(slashes + 2, authority_end - slashes - 2);
        if (authority.empty() || !is_host(authority))
            return bad_target;
        rest = target.substr(authority_end);
        if (!rest.starts_with('/')) {
            // An empty path means "/"; one stands in the scheme's separator.
            path_ = piece_of(target.substr(slashes + 1, 1));
            if (rest.starts_with('?'))
                query_ = piece_of(rest.substr(1));
            else if (!rest.empty())
                return bad_target;
            return {};
        }
    } else if (!target.starts_with('/')) {
        return bad_target;
    }
    auto const question = rest.find('?');
    path_ = piece_of(rest.substr(0, question));
    if (question != std::string_view::npos)
        query_ = piece_of(rest.substr(question + 1));
    return {};
}

std::size_t request_reader::feed_sized(std::string_view bytes)
{
    auto const part = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), remaining_));
    body_.append(part);
    remaining_ -= part.size();
    if (remaining_ == 0)
        state_ = state::complete;
    return part.size();
}

std::size_t request_reader::feed_chunked(std::string_view bytes)
{
    using step = chunk_step;
    // RFC 9112 section 7.1, without blanks around the size and with CR LF only. Extensions and trailers are
    // checked, counted and dropped.
    std::size_t i = 0;
    auto const overhead_allowed = [&] { return ++chunk_overhead_ <= limits_.header_bytes; };
    while (i < bytes.size()) {
        char const c = bytes[i];
        bool good = true;
        switch (chunk_step_) {
        case step::size_first:
        case step::size_more: {
            int const digit = hex_value(c);
            if (digit >= 0) {
                size_digits_ = chunk_step_ == step::size_first ? 1 : size_digits_ + 1;
                remaining_ = remaining_ * 16 + static_cast<unsigned>(digit);
                chunk_step_ = step::size_more;
                good = size_digits_ <= chunk_size_digits;
                if (good && remaining_ > limits_.body_bytes - body_.size())
                    return fail(body_too_large), i;
            } else if (chunk_step_ == step::size_more && c == ';') {
                chunk_step_ = step::extension;
            } else if (chunk_step_ == step::size_more && c == '\r') {
                chunk_step_ = step::size_lf;
            } else {
                good = false;
            }
            ++i;
            break;
        }
        case step::extension:
            if (c == '\r')
                chunk_step_ = step::size_lf;
            else
                good = kind_of(c) <= blank && overhead_allowed();
            ++i;
            break;
        case step::size_lf:
            good = c == '\n';
            chunk_step_ = remaining_ > 0 ? step::data : step::trailer_start;
            ++i;
            break;
        case step::data: {
            auto const part = bytes.substr(i, std::min<std::uint64_t>(bytes.size() - i, remaining_));
            body_.append(part);
            remaining_ -= part.size();
            i += part.size();
            if (remaining_ == 0)
                chunk_step_ = step::data_cr;
            break;
        }
        case step::data_cr:
            good = c == '\r';
            chunk_step_ = step::data_lf;
            ++i;
            break;
        case step::data_lf:
            good = c == '\n';
            chunk_step_ = step::size_first;
            ++i;
            break;
        case step::trailer_start:
            if (c == '\r') {
                chunk_step_ = step::last_lf;
            } else {
                good = is_visible(c) && c != ':' && overhead_allowed();
                chunk_step_ = step::trailer_name;
            }
            ++i;
            break;
        case step::trailer_name:
            if (c == ':')
                chunk_step_ = step::trailer;
            else
                good = is_visible(c) && overhead_allowed();
            ++i;
            break;
        case step::trailer:
            if (c == '\r')
                chunk_step_ = step::trailer_lf;
            else
                good = kind_of(c) <= blank && overhead_allowed();
            ++i;
            break;
        case step::trailer_lf:
            good = c == '\n';
            chunk_step_ = step::trailer_start;
            ++i;
            break;
        case step::last_lf:
            ++i;
            if (c == '\n') {
                state_ = state::complete;
                return i;
            }
            good = false;
            break;
        }
        if (!good)
            return fail(bad_chunk), i;
    }
    return i;
}

std::optional<std::string_view> request_reader::header(std::string_view name) const noexcept
{
    auto const number = fields_.find(head_, name);
    return number == 0 ? std::nullopt : std::optional(text(fields_.number(number).value));
}

std::size_t request_reader::header_count(std::string_view name) const noexcept
{
    return fields_.count(head_, name);
}

}
