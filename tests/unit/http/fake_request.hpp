// A request made of values, for tests of what only looks at requests.
#pragma once

#include "http/field_text.hpp"
#include "http/request_reader.hpp"

#include <string>
#include <utility>
#include <vector>

namespace belay::http {

struct fake_request final : request {
    http::method verb = method::get;
    std::string where = "/";
    std::vector<std::pair<std::string, std::string>> fields;

    http::method method() const noexcept override { return verb; }
    std::string_view method_text() const noexcept override { return "?"; }
    std::string_view path() const noexcept override { return where; }
    std::string_view query() const noexcept override { return {}; }
    std::optional<std::string_view> header(std::string_view name) const noexcept override
    {
        for (auto const& [key, value] : fields)
            if (equals_ignoring_case(key, name))
                return value;
        return std::nullopt;
    }
    std::size_t header_count(std::string_view name) const noexcept override
    {
        std::size_t n = 0;
        for (auto const& entry : fields)
            n += equals_ignoring_case(entry.first, name);
        return n;
    }
    std::string_view body() const noexcept override { return {}; }
};

inline fake_request request_with(std::vector<std::pair<std::string, std::string>> fields)
{
    fake_request made;
    made.fields = std::move(fields);
    return made;
}

}
