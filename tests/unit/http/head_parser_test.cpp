// The head parser beside Boost.Beast's, which many have tried to break: on heads made of parts that matter, both take
// the same ones and find the same in them.
#include "http/head_parser.hpp"

#include "http/field_text.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <gtest/gtest.h>

#include <array>
#include <random>

namespace belay::http {

namespace {

namespace beast = boost::beast;

struct reading {
    bool is_good = false;
    std::string method;
    std::string target;
    std::vector<std::pair<std::string, std::string>> fields;
    bool is_http11 = false;
    bool keeps_alive = false;
    std::optional<std::uint64_t> length;

    friend bool operator==(reading const&, reading const&) = default;
};

std::ostream& operator<<(std::ostream& out, reading const& o)
{
    out << (o.is_good ? "good " : "bad ") << o.method << ' ' << o.target << (o.is_http11 ? " 1.1 " : " 1.0 ")
        << (o.keeps_alive ? "keep " : "close ") << (o.length ? std::to_string(*o.length) : "-");
    for (auto const& [name, value] : o.fields)
        out << " [" << name << '|' << value << ']';
    return out;
}

reading ours(std::string_view head)
{
    head_fields fields;
    head_parser parser(head, fields, 100);
    reading found;
    found.is_good = parser.parse().status == 0;
    if (!found.is_good)
        return found;
    found.method = parser.method;
    found.target = parser.target;
    found.is_http11 = parser.is_http11;
    found.keeps_alive = parser.keeps_alive();
    found.length = parser.content_length;
    for (auto const& each : fields)
        found.fields.emplace_back(
            head.substr(each.name.at, each.name.size), head.substr(each.value.at, each.value.size));
    return found;
}

/// With what is refused here beyond what Beast refuses: whatever two parties could read differently.
class reference final : public beast::http::basic_parser<true> {
public:
    reference()
    {
        header_limit(~std::uint32_t(0));
        body_limit(boost::none);
    }
    reading found;
    bool is_refused = false;

private:
    using text = beast::string_view;

    void on_request_impl(beast::http::verb, text method, text target, int version, beast::error_code&) override
    {
        found.method = std::string(method.data(), method.size());
        found.target = std::string(target.data(), target.size());
        found.is_http11 = version == 11;
    }
    void on_field_impl(beast::http::field field, text name, text value, beast::error_code&) override
    {
        std::string const content(value.data(), value.size());
        found.fields.emplace_back(std::string(name.data(), name.size()), content);
        if (field == beast::http::field::content_length) {
            is_refused = is_refused || found.length || has_encoding_ || !std::ranges::all_of(content, &http::is_digit);
            found.length = std::strtoull(content.c_str(), nullptr, 10);
        } else if (field == beast::http::field::transfer_encoding) {
            is_refused = is_refused || std::exchange(has_encoding_, true) || found.length;
        } else if (field == beast::http::field::host) {
            is_refused = is_refused || std::exchange(has_host_, true) || !is_host(content);
        }
    }
    void on_response_impl(int, text, int, beast::error_code&) override {}
    void on_header_impl(beast::error_code&) override {}
    void on_body_init_impl(boost::optional<std::uint64_t> const&, beast::error_code&) override {}
    std::size_t on_body_impl(text body, beast::error_code&) override { return body.size(); }
    void on_chunk_header_impl(std::uint64_t, text, beast::error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, text body, beast::error_code&) override { return body.size(); }
    void on_finish_impl(beast::error_code&) override {}

    bool has_encoding_ = false;
    bool has_host_ = false;
};

reading theirs(std::string_view head)
{
    reference parser;
    beast::error_code error;
    auto const taken = parser.put(boost::asio::buffer(head.data(), head.size()), error);
    if (error || parser.is_refused || taken != head.size() || !parser.is_header_done())
        return {};
    parser.found.is_good = true;
    parser.found.keeps_alive = parser.keep_alive();
    return parser.found;
}

class head_maker {
public:
    std::string make()
    {
        std::string head(pick(methods_));
        head.append(pick(blanks_)).append(pick(targets_)).append(pick(blanks_)).append(pick(versions_)).append("\r\n");
        for (auto count = random_() % 5; count > 0; --count) {
            std::string line(pick(names_));
            line.append(pick(colons_)).append(pick(values_));
            if (random_() % 4 == 0)
                line.append(", ").append(pick(values_));
            if (line.empty())
                continue;
            if (random_() % 8 == 0)
                line[random_() % line.size()] = static_cast<char>(random_() % 224 + 32);
            if (line.find('\x7f') == std::string::npos && line[0] != ' ' && line[0] != '\t')
                head.append(line).append("\r\n");
        }
        return head.append("\r\n");
    }

private:
    template<std::size_t N>
    std::string_view pick(std::array<std::string_view, N> const& from)
    {
        // The first one most of the time, so that enough heads are good.
        return random_() % 2 == 0 ? from[0] : from[random_() % N];
    }

    std::mt19937 random_{20251125};
    std::array<std::string_view, 5> methods_{"POST", "GET", "M-SEARCH", "", "P(ST"};
    std::array<std::string_view, 4> blanks_{" ", "  ", "\t", ""};
    std::array<std::string_view, 6> targets_{"/mcp", "/mcp?a=b", "*", "", "/\xc3\xa4", "http://h/p"};
    std::array<std::string_view, 7> versions_{"HTTP/1.1", "HTTP/1.0",  "HTTP/1.2", "HTTP/2.0",
                                              "http/1.1", "HTTP/1.1 ", ""};
    std::array<std::string_view, 14> names_{
        "Accept",
        "Host",
        "host",
        "Content-Length",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "CONNECTION",
        "Proxy-Connection",
        "Expect",
        "X",
        "",
        "Mcp-Session-Id",
        "Con nection"};
    std::array<std::string_view, 6> colons_{": ", ":", " : ", ":\t \t", "", "::"};
    std::array<std::string_view, 18> values_{
        "x",
        "close",
        "keep-alive",
        "Keep-Alive",
        "upgrade",
        "5",
        "0005",
        "18446744073709551615",
        "18446744073709551616",
        "+5",
        "5 ",
        "",
        ",",
        ", ,close",
        "close keep-alive",
        "chunked",
        "gzip",
        "a\tb \t"};
};

}

TEST(HeadParser, TakesWhatBeastTakesAndFindsTheSame)
{
    head_maker maker;
    int good = 0;
    for (int i = 0; i < 200'000; ++i) {
        auto const head = maker.make();
        auto const expected = theirs(head);
        ASSERT_EQ(ours(head), expected) << head;
        good += expected.is_good ? 1 : 0;
    }
    EXPECT_GT(good, 5'000); // or this has compared refusals only
}

TEST(HeadParser, RefusesMoreFieldsThanAllowed)
{
    head_fields fields;
    head_parser parser("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\n\r\n", fields, 1);
    EXPECT_EQ(parser.parse().status, 431u);
}

}
