// A JSON Schema after reading: what schema_check walks through. Points into its own copy of the schema.
#pragma once

#include "json/pattern.hpp"
#include "json/schema_check.hpp"

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace belay::inline v0::detail {

/// A number as decimal digits, so that 0.0075 is a multiple of 0.0001. Without its sign.
struct decimal {
    std::uint64_t digits = 0; ///< not divisible by 10, unless 0
    int exponent = 0;
};

/// Nothing for what is not a finite number.
[[nodiscard]] std::optional<decimal> decimal_of(json::value const& number);
[[nodiscard]] bool is_multiple(decimal const& number, decimal const& of) noexcept;

namespace type_bit {
inline constexpr unsigned null = 1;
inline constexpr unsigned boolean = 2;
inline constexpr unsigned integer = 4;
inline constexpr unsigned number = 8;
inline constexpr unsigned string = 16;
inline constexpr unsigned array = 32;
inline constexpr unsigned object = 64;
}

struct schema_node {
    struct counts {
        std::size_t low = 0;
        std::size_t high = std::numeric_limits<std::size_t>::max();
    };
    using child = schema_node const*;
    using named = std::pair<std::string_view, child>;

    std::optional<bool> verdict; ///< a schema that is true or false
    unsigned types = 0;          ///< 0: any
    json::array const* one_of = nullptr;
    json::value const* only = nullptr;

    field::bound minimum;
    field::bound maximum;
    field::bound above; ///< exclusiveMinimum
    field::bound below;
    std::optional<decimal> multiple;
    json::value const* multiple_given = nullptr;

    counts length;
    std::optional<pattern> text;
    std::string_view text_given;

    counts size; ///< of objects
    std::vector<std::string_view> required;
    std::vector<std::pair<std::string_view, std::vector<std::string_view>>> dependent_required;
    std::vector<named> dependent;
    std::unordered_map<std::string_view, child> properties;
    std::vector<std::pair<pattern, child>> pattern_properties;
    child additional = nullptr;
    child names = nullptr;
    child unevaluated_members = nullptr;

    counts items_count;
    bool is_unique = false;
    std::vector<child> prefix;
    child items = nullptr;
    child contains = nullptr;
    counts contains_count{1};
    child unevaluated_items = nullptr;

    std::vector<child> references;
    std::vector<child> all;
    std::vector<child> any;
    std::vector<child> exactly_one;
    child no = nullptr;
    child condition = nullptr;
    child then = nullptr;
    child otherwise = nullptr;
};

struct schema_program {
    json::value document;
    schema_limits limits;
    std::deque<schema_node> nodes;
    schema_node const* root = nullptr;
};

/// Throws std::invalid_argument.
[[nodiscard]] std::shared_ptr<schema_program const>
compile_schema(json::object const& schema, schema_limits const& limits);

}
