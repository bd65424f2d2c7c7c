#include "server/uri_template.hpp"

#include <algorithm>
#include <stdexcept>

namespace belay::inline v0::detail {

namespace {

std::optional<std::string> percent_decoded(std::string_view text)
{
    auto const digit = [](char c) -> int {
        if (c >= '0' && c <= '9')
            return c - '0';
        if (c >= 'a' && c <= 'f')
            return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0)
            return std::nullopt;
        out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
        i += 2;
    }
    return out;
}

bool is_variable_name(std::string_view name)
{
    auto const is_allowed
        = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
    return !name.empty() && std::ranges::all_of(name, is_allowed);
}

}

uri_template::uri_template(std::string_view text)
{
    auto const refuse = [&](std::string const& why) {
        throw std::invalid_argument("URI template \"" + std::string(text) + "\": " + why);
    };
    for (auto rest = text; !rest.empty();) {
        auto const open = rest.find('{');
        if (open == std::string_view::npos) {
            tail_ = rest;
            break;
        }
        auto const close = rest.find('}', open);
        if (close == std::string_view::npos)
            refuse("a { has no }");
        piece next;
        next.literal = rest.substr(0, open);
        auto name = rest.substr(open + 1, close - open - 1);
        next.takes_slashes = name.starts_with('+');
        if (next.takes_slashes)
            name.remove_prefix(1);
        if (!is_variable_name(name))
            refuse("use {name} or {+name}, with letters, digits and underscores");
        if (!pieces_.empty() && next.literal.empty())
            refuse("two variables need something between them");
        next.variable = name;
        if (std::ranges::find(pieces_, next.variable, &piece::variable) != pieces_.end())
            refuse("{" + next.variable + "} is there twice");
        pieces_.push_back(std::move(next));
        rest.remove_prefix(close + 1);
    }
    if (pieces_.empty())
        refuse("it has no variable");
}

std::optional<json::object> uri_template::match(std::string_view uri) const
{
    json::object values;
    auto rest = uri;
    if (!rest.starts_with(pieces_.front().literal) || !rest.ends_with(tail_))
        return std::nullopt;
    rest.remove_prefix(pieces_.front().literal.size());
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        bool const is_last = i + 1 == pieces_.size();
        std::size_t end = 0;
        if (is_last) {
            if (rest.size() < tail_.size())
                return std::nullopt;
            end = rest.size() - tail_.size();
        } else {
            end = rest.find(pieces_[i + 1].literal);
            if (end == std::string_view::npos)
                return std::nullopt;
        }
        auto const raw = rest.substr(0, end);
        if (raw.empty() || (!pieces_[i].takes_slashes && raw.contains('/')))
            return std::nullopt;
        auto const value = percent_decoded(raw);
        // An encoded slash is a slash: `{name}` is safe to use as the name of a file.
        if (!value || (!pieces_[i].takes_slashes && value->contains('/')))
            return std::nullopt;
        values[pieces_[i].variable] = *value;
        if (!is_last)
            rest.remove_prefix(end + pieces_[i + 1].literal.size());
    }
    return values;
}

std::vector<std::string> uri_template::variables() const
{
    std::vector<std::string> names;
    for (auto const& each : pieces_)
        names.push_back(each.variable);
    return names;
}

}
