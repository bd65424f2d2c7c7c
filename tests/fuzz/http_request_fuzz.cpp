// The request reader: whatever the bytes are and however they are cut, the outcome is the same and within
// the limits. Input: bytes that choose the cuts up to the first zero byte, then the connection's bytes.
#include "http/request_reader.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using belay::http::request_reader;
using state = request_reader::state;

void require(bool holds)
{
    if (!holds)
        std::abort();
}

constexpr belay::http::reader_limits limits{512, 12, 64, 256};

void describe(std::string& to, request_reader const& reader)
{
    to += static_cast<char>('0' + static_cast<int>(reader.where()));
    if (reader.where() == state::failed) {
        require(reader.why().status >= 400 && !reader.why().text.empty());
        to += std::to_string(reader.why().status);
        to += reader.why().text;
        return;
    }
    if (reader.where() == state::head)
        return;
    require(reader.path().size() <= limits.target_bytes && reader.body().size() <= limits.body_bytes);
    require(!reader.path().empty() && (reader.path()[0] == '/' || reader.path() == "*"));
    require(reader.header_count("content-length") <= 1);
    require(reader.header_count("content-length") + reader.header_count("transfer-encoding") <= 1);
    require(reader.header_count("host") <= 1 && (!reader.is_http11() || reader.header_count("host") == 1));
    for (auto const text :
         {reader.method_text(), reader.path(), reader.query(), reader.header("host").value_or(""),
          reader.header("origin").value_or("")}) {
        require(text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
        to += '|';
        to += text;
    }
    to += reader.keeps_alive() ? 'k' : 'c';
    to += reader.expects_continue() ? 'e' : '-';
    to += '|';
    to += reader.body();
}

// Reads all requests of the bytes, the pieces as long as the cuts say, and writes down what came of it.
std::string read(std::string_view bytes, std::string_view cuts)
{
    request_reader reader(limits);
    std::string story;
    std::size_t turn = 0;
    std::string_view piece;
    for (;;) {
        if (piece.empty()) {
            if (bytes.empty())
                break;
            auto const size
                = cuts.empty() ? bytes.size() : 1 + static_cast<unsigned char>(cuts[turn++ % cuts.size()]) % 64;
            piece = bytes.substr(0, size);
            bytes.remove_prefix(piece.size());
        }
        auto const taken = reader.feed(piece);
        require(taken <= piece.size());
        piece.remove_prefix(taken);
        if (reader.where() == state::failed)
            break;
        if (reader.where() == state::complete) {
            describe(story, reader);
            reader.reset();
        } else {
            require(piece.empty());
        }
    }
    describe(story, reader);
    return story;
}

}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const input(reinterpret_cast<char const*>(data), size);
    auto const zero = input.find('\0');
    auto const cuts = zero == std::string_view::npos ? std::string_view() : input.substr(0, zero);
    auto const bytes = zero == std::string_view::npos ? input : input.substr(zero + 1);
    auto const whole = read(bytes, {});
    require(read(bytes, cuts) == whole);
    require(read(bytes, "@") == whole); // byte by byte: '@' is 64
    return 0;
}
