// Server-sent events: any bytes are read without harm and alike however they are cut, and what the writer
// writes the reader gives back. Input: one byte that chooses the cuts, then bytes used both ways.
#include "http/sse.hpp"

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

using belay::http::sse_event;
using belay::http::sse_reader;

void require(bool holds)
{
    if (!holds)
        std::abort();
}

struct outcome {
    std::vector<sse_event> events;
    std::string last_id;
    std::size_t comments = 0;
    bool has_failed = false;
    friend bool operator==(outcome const&, outcome const&) = default;
};

outcome read(std::string_view bytes, std::size_t piece, belay::http::sse_limits limits = {})
{
    sse_reader reader(limits);
    outcome result;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
        bool const goes_on = reader.feed(bytes.substr(0, piece));
        while (auto event = reader.next())
            result.events.push_back(std::move(*event));
        if (!goes_on)
            break;
    }
    result.last_id = reader.last_id();
    result.comments = reader.comment_count();
    result.has_failed = reader.has_failed();
    return result;
}

std::string with_line_feeds(std::string_view data)
{
    std::string text;
    for (std::size_t i = 0; i < data.size(); ++i) {
        if (data[i] == '\r' && i + 1 < data.size() && data[i + 1] == '\n')
            continue;
        text += data[i] == '\r' ? '\n' : data[i];
    }
    return text;
}

}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    if (size == 0)
        return 0;
    std::size_t const piece = 1 + data[0] % 16;
    std::string_view const bytes(reinterpret_cast<char const*>(data) + 1, size - 1);

    auto const whole = read(bytes, bytes.size() + 1);
    require(read(bytes, piece) == whole);
    belay::http::sse_limits const small{24, 40};
    require(read(bytes, piece, small) == read(bytes, bytes.size() + 1, small));
    for (auto const& event : read(bytes, piece, small).events)
        require(event.data.size() <= small.event_bytes);

    // Split in two events with comments between them; ids and types are arbitrary bytes too.
    auto const half = bytes.size() / 2;
    auto const tag = bytes.substr(0, data[0] % 8);
    bool const has_tag = tag.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
    std::string stream;
    belay::http::append_event(stream, {"first", tag, 7, bytes.substr(0, half)});
    belay::http::append_comment(stream, bytes);
    belay::http::append_event(stream, {tag, {}, {}, bytes.substr(half)});
    auto const back = read(stream, piece);
    require(!back.has_failed && back.events.size() == 2);
    require(back.events[0].type == "first" && back.events[0].retry_ms == 7u);
    require(back.events[0].id == (has_tag ? tag : std::string_view()));
    require(back.events[0].data == with_line_feeds(bytes.substr(0, half)));
    require(back.events[1].type == (has_tag && !tag.empty() ? tag : std::string_view("message")));
    require(back.events[1].id == back.events[0].id && !back.events[1].retry_ms);
    require(back.events[1].data == with_line_feeds(bytes.substr(half)));
    return 0;
}
