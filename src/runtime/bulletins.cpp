#include "runtime/bulletins.hpp"

#include "base/ids.hpp"

namespace belay::runtime {

namespace {

// A line says what it is about, one names the session, and of a cancel one the request; the rest is the principal.
constexpr std::string_view cancel_word = "cancel";
constexpr std::string_view ended_word = "ended";

/// The next line, which is then gone from the text.
std::optional<std::string_view> take_line(std::string_view& from)
{
    auto const end = from.find('\n');
    if (end == std::string_view::npos)
        return std::nullopt;
    auto const line = from.substr(0, end);
    from.remove_prefix(end + 1);
    return line;
}

std::string begin(std::string_view word, store::session_key const& session)
{
    return std::string(word) + '\n' + base::to_string(session.id) + '\n';
}

}

std::string cancel_bulletin(store::session_key const& session, std::string_view request)
{
    return begin(cancel_word, session) + std::string(request) + '\n' + session.principal;
}

std::string session_ended_bulletin(store::session_key const& session)
{
    return begin(ended_word, session) + session.principal;
}

std::optional<bulletin_text> read_bulletin(std::string_view text)
{
    auto const word = take_line(text);
    if (word != cancel_word && word != ended_word)
        return std::nullopt;
    auto const line = take_line(text);
    auto const id = line ? base::parse_id128(*line) : std::nullopt;
    auto const request = word == cancel_word ? take_line(text) : std::nullopt;
    if (!id || (word == cancel_word && !request))
        return std::nullopt;
    bulletin_text read{{std::string(text), *id}, std::nullopt};
    if (request)
        read.cancelled = std::string(*request);
    return read;
}

}
