// The fields of one head, in their order, and found by name without going through all of them: a request is asked for
// some ten fields, most of which it does not have.
#pragma once

#include "http/field_text.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace belay::http {

/// A part of a head. An offset, because the head moves while it grows; 32 bits are plenty for header_bytes.
struct head_piece {
    std::uint32_t at = 0;
    std::uint32_t size = 0;

    [[nodiscard]] std::string_view in(std::string_view head) const noexcept { return {head.data() + at, size}; }
};

/// Where in the whole a part of it is.
[[nodiscard]] inline head_piece piece_of(std::string_view whole, std::string_view part) noexcept
{
    if (part.empty())
        return {};
    return {static_cast<std::uint32_t>(part.data() - whole.data()), static_cast<std::uint32_t>(part.size())};
}

struct head_field {
    head_piece name;
    head_piece value;
    std::uint32_t key = 0;  ///< of the name
    std::uint32_t next = 0; ///< the one before it in the same place of the table, counted from 1; 0: none
};

class head_fields {
public:
    void clear() noexcept
    {
        fields_.clear();
        table_.fill(0);
    }
    void add(head_piece name, head_piece value, std::uint32_t key)
    {
        auto& newest = table_[place_of(key)];
        fields_.push_back({name, value, key, newest});
        newest = static_cast<std::uint32_t>(fields_.size());
    }

    /// The first of that name, counted from 1; 0: there is none.
    [[nodiscard]] std::size_t find(std::string_view head, std::string_view name) const noexcept
    {
        std::size_t first = 0;
        each_of(head, name, [&](std::size_t number) { first = number; });
        return first;
    }
    [[nodiscard]] std::size_t count(std::string_view head, std::string_view name) const noexcept
    {
        std::size_t found = 0;
        each_of(head, name, [&](std::size_t) { ++found; });
        return found;
    }

    [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
    [[nodiscard]] auto begin() const noexcept { return fields_.begin(); }
    [[nodiscard]] auto end() const noexcept { return fields_.end(); }
    /// Counted from 1.
    [[nodiscard]] head_field& number(std::size_t number) noexcept { return fields_[number - 1]; }
    [[nodiscard]] head_field const& number(std::size_t number) const noexcept { return fields_[number - 1]; }

private:
    static constexpr unsigned place_bits = 6;

    [[nodiscard]] static std::size_t place_of(std::uint32_t key) noexcept
    {
        return (key * std::uint32_t(0x9E3779B1)) >> (32 - place_bits); // Knuth's: the high bits depend on all of them
    }
    /// From the last to the first.
    template<class F>
    void each_of(std::string_view head, std::string_view name, F const& f) const noexcept
    {
        auto const key = field_key(name);
        for (auto at = table_[place_of(key)]; at != 0; at = number(at).next)
            if (auto const& field = number(at); field.key == key && equals_ignoring_case(field.name.in(head), name))
                f(at);
    }

    std::vector<head_field> fields_;
    std::array<std::uint32_t, std::size_t(1) << place_bits> table_{}; // the newest of each place, counted from 1
};

}
