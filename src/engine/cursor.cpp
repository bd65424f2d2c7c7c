#include "engine/cursor.hpp"

namespace belay::engine {

event_ids::event_ids(store::stream_id stream, std::uint64_t epoch)
{
    base::append_base62(prefix_, stream);
    prefix_ += '.';
    base::append_base62(prefix_, epoch);
    prefix_ += '.';
}

void event_ids::append(std::string& out, std::uint64_t sequence) const
{
    out += prefix_;
    base::append_base62(out, sequence);
}

void event_ids::append(std::string& out, std::uint64_t sequence, std::uint64_t nonce) const
{
    append(out, sequence);
    out += '~';
    base::append_base62(out, nonce);
}

std::string to_string(question_id const& id)
{
    std::string text;
    base::append_base62(text, id.stream);
    text += '-';
    base::append_base62(text, id.number);
    return text;
}

std::optional<question_id> parse_question_id(std::string_view text) noexcept
{
    auto const dash = text.find('-');
    if (text.size() > max_event_id_bytes || dash == std::string_view::npos)
        return std::nullopt;
    auto const stream = base::parse_base62(text.substr(0, dash));
    auto const number = base::parse_base62(text.substr(dash + 1));
    if (!stream || !number)
        return std::nullopt;
    return question_id{*stream, *number};
}

std::string to_event_id(position const& at)
{
    std::string text;
    event_ids(at.stream, at.epoch).append(text, at.sequence);
    return text;
}

std::optional<position> parse_event_id(std::string_view text) noexcept
{
    if (text.size() > max_event_id_bytes)
        return std::nullopt;
    auto const first = text.find('.');
    if (first == std::string_view::npos)
        return std::nullopt;
    auto const second = text.find('.', first + 1);
    if (second == std::string_view::npos)
        return std::nullopt;
    auto rest = text.substr(second + 1);
    if (auto const tilde = rest.find('~'); tilde != std::string_view::npos) {
        if (!base::parse_base62(rest.substr(tilde + 1)))
            return std::nullopt;
        rest = rest.substr(0, tilde);
    }
    auto const stream = base::parse_base62(text.substr(0, first));
    auto const epoch = base::parse_base62(text.substr(first + 1, second - first - 1));
    auto const sequence = base::parse_base62(rest);
    if (!stream || !epoch || !sequence)
        return std::nullopt;
    return position{*stream, *epoch, *sequence};
}

}
