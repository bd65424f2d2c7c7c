#include "http/sse.hpp"

#include "http/field_text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace belay::http {

namespace {

// Calls `line` for each line of the text; CR, LF and CRLF end one. A text without any is one line.
template<class Line>
void for_each_line(std::string_view text, Line line)
{
    for (;;) {
        auto const end = std::min(text.find('\n'), text.find('\r')); // two searches by memchr beat one by byte
        line(text.substr(0, end));
        if (end == std::string_view::npos)
            return;
        bool const is_pair = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
        text.remove_prefix(end + (is_pair ? 2 : 1));
    }
}

}

void append_event(std::string& out, sse_event_view const& event)
{
    // Names, blanks and line ends of the four fields come to less than 48 bytes.
    auto const needed = out.size() + event.data.size() + (event.type ? event.type->size() : 0)
        + (event.id ? event.id->size() : 0) + 48;
    if (needed > out.capacity())
        out.reserve(std::max(needed, 2 * out.capacity())); // reserve alone would grow by what is asked only
    if (event.type && is_one_line(*event.type))
        out.append("event: ").append(*event.type).push_back('\n');
    if (event.id && is_one_line(*event.id))
        out.append("id: ").append(*event.id).push_back('\n');
    if (event.retry_ms) {
        out.append("retry: ");
        append_number(out, *event.retry_ms);
        out.push_back('\n');
    }
    for_each_line(event.data, [&](std::string_view line) { out.append("data: ").append(line).push_back('\n'); });
    out.push_back('\n');
}

void append_comment(std::string& out, std::string_view text)
{
    for_each_line(text, [&](std::string_view line) { out.append(": ").append(line).push_back('\n'); });
    out.push_back('\n');
}

void append_retry(std::string& out, std::uint32_t retry_ms)
{
    out.append("retry: ");
    append_number(out, retry_ms);
    out.append("\n\n");
}

bool sse_reader::feed(std::string_view bytes)
{
    while (!bytes.empty() && !failed_) {
        if (after_cr_) {
            after_cr_ = false;
            if (bytes.front() == '\n') {
                bytes.remove_prefix(1);
                continue;
            }
        }
        auto const end = bytes.find_first_of("\r\n");
        auto const part = bytes.substr(0, end);
        if (line_.size() + part.size() > limits_.line_bytes) {
            failed_ = true;
            break;
        }
        if (end == std::string_view::npos) {
            line_.append(part);
            break;
        }
        after_cr_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        if (line_.empty()) {
            take_line(part);
        } else {
            line_.append(part);
            take_line(line_);
            line_.clear();
        }
    }
    return !failed_;
}

std::optional<sse_event> sse_reader::next()
{
    if (ready_.empty())
        return std::nullopt;
    auto event = std::move(ready_.front());
    ready_.pop_front();
    return event;
}

void sse_reader::take_line(std::string_view line)
{
    if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF"))
        line.remove_prefix(3);
    if (line.empty())
        return dispatch();
    auto const colon = line.find(':');
    if (colon == 0) {
        ++comments_;
        return;
    }
    auto const name = line.substr(0, colon);
    auto value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (value.starts_with(' '))
        value.remove_prefix(1);
    if (name == "data") {
        if (data_.size() + value.size() + 1 > limits_.event_bytes) {
            failed_ = true;
            return;
        }
        if (std::exchange(has_data_, true))
            data_.push_back('\n');
        data_.append(value);
    } else if (name == "event") {
        type_ = value;
    } else if (name == "id") {
        if (value.find('\0') == std::string_view::npos)
            next_id_ = value;
    } else if (name == "retry") {
        std::uint32_t number = 0;
        auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (!value.empty() && error == std::errc() && end == value.data() + value.size())
            event_retry_ = retry_ = number;
    }
}

void sse_reader::dispatch()
{
    last_id_ = next_id_; // an event that was cut off before its blank line has not been received
    if (has_data_) {
        auto& event = ready_.emplace_back();
        if (!type_.empty())
            event.type = std::move(type_);
        event.id = last_id_;
        event.retry_ms = event_retry_;
        event.data = std::move(data_);
    }
    data_.clear();
    type_.clear();
    event_retry_.reset();
    has_data_ = false;
}

}
