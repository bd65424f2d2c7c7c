// The flags of an author's own.
#include "app/settings.hpp"

#include <belay/run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace belay::inline v0 {

namespace {

template<class Number>
Number number_from(std::string const& text, std::string_view otherwise)
{
    Number value{};
    auto const* const end = text.data() + text.size();
    auto const [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stopped != end)
        throw std::invalid_argument(std::string(otherwise));
    return value;
}

bool is_flag_name(std::string_view text)
{
    return text.size() > 3 && text.starts_with("--") && text[2] != '-'
        && std::ranges::all_of(
               text.substr(2), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

}

flags& flags::add_flag(std::string const& usage, flag made, bool has_value)
{
    auto const space = std::min(usage.find(' '), usage.size());
    made.name = usage.substr(0, space);
    made.shape = space < usage.size() ? usage.substr(space + 1) : std::string();
    if (!is_flag_name(made.name) || made.shape.contains(' ') || made.shape.empty() == has_value)
        throw std::invalid_argument("the flag \"" + usage + "\" is not of the form --name WORD, or --name for a bool");
    if (std::ranges::find(all_, made.name, &flag::name) != all_.end())
        throw std::invalid_argument("the flag " + made.name + " is added twice");
    all_.push_back(std::move(made));
    return *this;
}

flags& flags::add(std::string usage, std::string help, std::string& into)
{
    return add_flag(
        usage, {{}, {}, std::move(help), into, false, [&into](auto const& given) { into = given.back(); }}, true);
}

flags& flags::add(std::string usage, std::string help, double& into)
{
    return add_flag(
        usage,
        {{},
         {},
         std::move(help),
         fmt::format("{}", into),
         false,
         [&into](auto const& given) { into = number_from<double>(given.back(), "expected a number"); }},
        true);
}

flags& flags::add(std::string usage, std::string help, std::chrono::milliseconds& into)
{
    return add_flag(
        usage,
        {{},
         {},
         std::move(help),
         fmt::format("{}ms", into.count()),
         false,
         [&into](auto const& given) {
             auto const parsed = app::parse_duration(given.back());
             if (!parsed)
                 throw std::invalid_argument(parsed.error());
             into = std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
         }},
        true);
}

flags& flags::add(std::string usage, std::string help, std::vector<std::string>& into)
{
    return add_flag(
        usage,
        {{},
         {},
         std::move(help),
         fmt::format("{}", fmt::join(into, ", ")),
         true,
         [&into](auto const& given) { into = given; }},
        true);
}

flags& flags::add(std::string usage, std::string help, bool& into)
{
    return add_flag(usage, {{}, {}, std::move(help), {}, false, [&into](auto const&) { into = true; }}, false);
}

flags& flags::add_number(
    std::string usage, std::string help, std::string preset, std::int64_t least, std::int64_t most,
    std::function<void(std::int64_t)> set)
{
    return add_flag(
        usage,
        {{},
         {},
         std::move(help),
         std::move(preset),
         false,
         [least, most, set = std::move(set)](auto const& given) {
             auto const expected = fmt::format("expected a number from {} to {}", least, most);
             auto const value = number_from<std::int64_t>(given.back(), expected);
             if (value < least || value > most)
                 throw std::invalid_argument(expected);
             set(value);
         }},
        true);
}

flags& flags::then(std::function<void()> function)
{
    then_.push_back(std::move(function));
    return *this;
}

}
