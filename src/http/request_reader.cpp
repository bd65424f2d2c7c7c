#include "http/request_reader.hpp"

#include "http/field_text.hpp"

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace belay::http {

namespace beast = boost::beast;

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

constexpr refusal bad_byte{400, "The request head holds a control character; send an HTTP/1.1 request in plain text."};
constexpr refusal bad_line_end{400, "Each line of the request head must end with CR LF."};
constexpr refusal folded_line{400, "A header line must not begin with a blank; send each header on one line."};
constexpr refusal bad_request_line{
    400, "The first line must be METHOD, target and HTTP version with one blank between."};
constexpr refusal bad_version{505, "This server speaks HTTP/1.1 and HTTP/1.0 only."};
constexpr refusal bad_target{400, "The request target must be an absolute path or URL in visible ASCII characters."};
constexpr refusal bad_field{
    400, "A header line is malformed; send name, colon and value without a blank before the colon."};
constexpr refusal bad_length{
    400, "Content-Length must be sent once, as one decimal number, and not with Transfer-Encoding."};
constexpr refusal bad_encoding{400, "Send either Transfer-Encoding: chunked or Content-Length, once, on HTTP/1.1."};
constexpr refusal other_encoding{501, "The only Transfer-Encoding understood here is chunked."};
constexpr refusal bad_host{400, "An HTTP/1.1 request must carry exactly one valid Host header."};
constexpr refusal bad_expectation{417, "The only expectation understood here is 100-continue."};
constexpr refusal bad_chunk{400, "The chunked body is malformed."};
constexpr refusal head_too_large{
    431, "The request head is larger than this server accepts; send fewer or shorter headers."};
constexpr refusal target_too_long{414, "The request target is longer than this server accepts."};
constexpr refusal body_too_large{413, "The request body is larger than this server accepts."};

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

constexpr bool is_visible(char c) noexcept
{
    return c > 0x20 && c < 0x7f;
}

constexpr bool is_digit(char c) noexcept
{
    return c >= '0' && c <= '9';
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

bool is_host(std::string_view text) noexcept
{
    return std::all_of(text.begin(), text.end(), [](char c) {
        return is_visible(c) && std::string_view("/\\@?#\"<>`{}|^").find(c) == std::string_view::npos;
    });
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

// Beast's parser with the storage left out: it reports what it finds, and the reader remembers where. Only
// the head goes through it; Beast folds trailers into the fields and takes bare LF inside chunk extensions.
class request_reader::head_parser final : public beast::http::basic_parser<true> {
public:
    explicit head_parser(request_reader& owner) : owner_(owner)
    {
        // The reader has its own limits, which do not depend on how the bytes were cut.
        header_limit(~std::uint32_t(0));
        body_limit(boost::none);
    }

    refusal why;
    std::string_view content_length;
    std::string_view transfer_encoding;
    std::string_view expect;
    std::size_t host = 0; // index + 1
    bool has_content_length = false;
    bool has_transfer_encoding = false;
    bool has_expect = false;

private:
    using error_code = beast::error_code;
    using text = beast::string_view;

    static std::string_view view(text t) noexcept { return {t.data(), t.size()}; }

    void refuse(refusal reason, error_code& error)
    {
        why = reason;
        error = beast::http::error::bad_field;
    }

    void on_request_impl(beast::http::verb, text method, text target, int version, error_code&) override
    {
        owner_.method_text_ = owner_.piece_of(view(method));
        owner_.target_ = owner_.piece_of(view(target));
        owner_.method_ = method_of(view(method));
        owner_.http11_ = version == 11;
    }

    void on_field_impl(beast::http::field field, text name, text value, error_code& error) override
    {
        auto& fields = owner_.fields_;
        if (fields.size() == owner_.limits_.header_count)
            return refuse(head_too_large, error);
        fields.push_back({owner_.piece_of(view(name)), owner_.piece_of(view(value))});
        switch (field) {
        case beast::http::field::content_length:
            if (std::exchange(has_content_length, true))
                refuse(bad_length, error);
            content_length = view(value);
            break;
        case beast::http::field::transfer_encoding:
            if (std::exchange(has_transfer_encoding, true))
                refuse(bad_encoding, error);
            transfer_encoding = view(value);
            break;
        case beast::http::field::host:
            if (std::exchange(host, fields.size()) != 0 || !is_host(view(value)))
                refuse(bad_host, error);
            break;
        case beast::http::field::expect:
            has_expect = true;
            if (expect.empty() || !equals_ignoring_case(view(value), "100-continue"))
                expect = view(value);
            break;
        default: break;
        }
    }

    void on_response_impl(int, text, int, error_code&) override {}
    void on_header_impl(error_code&) override {}
    void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
    std::size_t on_body_impl(text body, error_code&) override { return body.size(); }
    void on_chunk_header_impl(std::uint64_t, text, error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, text body, error_code&) override { return body.size(); }
    void on_finish_impl(error_code&) override {}

    request_reader& owner_;
};

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

request_reader::piece request_reader::piece_of(std::string_view part) const noexcept
{
    if (part.empty())
        return {};
    return {static_cast<std::uint32_t>(part.data() - head_.data()), static_cast<std::uint32_t>(part.size())};
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
    if (ended)
        finish_head();
    return skipped + i;
}

void request_reader::finish_head()
{
    // Beast has one error for all versions; the peer wants to know whether it is the version or the line.
    std::string_view const first_line = std::string_view(head_).substr(0, head_.find('\r'));
    auto const version = first_line.substr(first_line.find_last_of(' ') + 1);
    bool const is_version = version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5])
        && version[6] == '.' && is_digit(version[7]);
    if (is_version && version != "HTTP/1.1" && version != "HTTP/1.0")
        return fail(bad_version);

    head_parser parser(*this);
    beast::error_code error;
    auto const taken = parser.put(boost::asio::buffer(head_), error);
    if (parser.why.status != 0)
        return fail(parser.why);
    if (error == beast::http::error::bad_content_length || error == beast::http::error::multiple_content_length)
        return fail(bad_length);
    if (error == beast::http::error::bad_transfer_encoding)
        return fail(bad_encoding);
    if (error == beast::http::error::bad_target)
        return fail(bad_target);
    if (error == beast::http::error::bad_method || error == beast::http::error::bad_version)
        return fail(bad_request_line);
    if (error || taken != head_.size() || !parser.is_header_done())
        return fail(bad_field);

    if (auto const why = parse_target(text(target_)); why.status != 0)
        return fail(why);
    if (parser.host == 0 && (http11_ || path_.at != target_.at))
        return fail(bad_host);
    if (path_.at != target_.at) {
        // RFC 9112 section 3.2.2: the authority of an absolute target stands in for Host.
        auto const slashes = text(target_).find("//") + 2;
        auto const authority = text(target_).substr(slashes);
        fields_[parser.host - 1].value = piece_of(authority.substr(0, authority.find_first_of("/?")));
    }

    if (parser.has_transfer_encoding) {
        if (parser.has_content_length || !http11_)
            return fail(bad_encoding);
        if (!equals_ignoring_case(parser.transfer_encoding, "chunked"))
            return fail(other_encoding);
        chunked_ = true;
    } else if (parser.has_content_length) {
        // Beast takes "5, 5"; another party may not.
        if (!std::all_of(parser.content_length.begin(), parser.content_length.end(), is_digit))
            return fail(bad_length);
        remaining_ = *parser.content_length_remaining();
        if (remaining_ > limits_.body_bytes)
            return fail(body_too_large);
    }
    if (parser.has_expect && http11_) {
        if (!equals_ignoring_case(parser.expect, "100-continue"))
            return fail(bad_expectation);
        expects_continue_ = true;
    }
    keep_alive_ = parser.keep_alive();
    join_list_fields();
    body_.reserve(std::min<std::size_t>(remaining_, first_body_bytes));
    state_ = chunked_ || remaining_ > 0 ? state::body : state::complete;
}

void request_reader::join_list_fields()
{
    for (auto const name : list_fields) {
        auto const is_named = [&](stored_field const& field) { return equals_ignoring_case(text(field.name), name); };
        auto const first = std::find_if(fields_.begin(), fields_.end(), is_named);
        if (first == fields_.end() || std::find_if(first + 1, fields_.end(), is_named) == fields_.end())
            continue;
        std::string joined(text(first->value));
        for (auto each = first + 1; each != fields_.end(); ++each)
            if (is_named(*each))
                joined.append(", ").append(text(each->value));
        // Behind the head: what is joined is a part of it, so this is bounded too.
        first->value = {static_cast<std::uint32_t>(head_.size()), static_cast<std::uint32_t>(joined.size())};
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
                chunk_step_ = step::trailer;
            }
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
    for (auto const& field : fields_)
        if (field.name.size == name.size() && equals_ignoring_case(text(field.name), name))
            return text(field.value);
    return std::nullopt;
}

std::size_t request_reader::header_count(std::string_view name) const noexcept
{
    return static_cast<std::size_t>(std::count_if(fields_.begin(), fields_.end(), [&](stored_field const& field) {
        return equals_ignoring_case(text(field.name), name);
    }));
}

}
