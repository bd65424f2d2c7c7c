// JSON values against a JSON Schema, draft 2020-12.
//
// Everything a reference needs must be in the schema itself: by JSON Pointer, `$anchor` or `$id`. Nothing is ever
// fetched. `$dynamicRef` is taken as `$ref`; `format` and the content keywords are notes; unknown keywords are passed
// over. What `pattern` may hold is in pattern.hpp.
#pragma once

#include <belay/json.hpp>
#include <belay/schema.hpp>

#include <cstddef>
#include <expected>
#include <memory>

namespace belay::inline v0::detail {

struct schema_program;

struct schema_limits {
    std::size_t max_schema_depth = 64;    ///< Schemas within schemas.
    std::size_t max_schemas = 10'000;     ///< All of them.
    std::size_t max_depth = 512;          ///< Schemas and values within each other while a value is checked.
    std::size_t max_steps = 10'000'000;   ///< Schemas, comparisons and bits of patterns in one check.
    std::size_t max_pattern_size = 10'000;
};

/// As far as they can be set; what goes deep uses the stack.
inline constexpr schema_limits widest_schema_limits{256, 1'000'000, 2'000, 1'000'000'000, 1'000'000};

/// A schema that is ready for use. A value; copies share what they have. Safe from any thread.
class schema_check {
public:
    /// Throws std::invalid_argument for a schema that cannot be used, with a JSON Pointer to the place and what to do.
    explicit schema_check(json::object const& schema, schema_limits const& limits = {});
    /// The same with limits that others have a hold of: values are checked within what they are at that time.
    schema_check(json::object const& schema, std::shared_ptr<schema_limits const> limits);

    /// The first error. A value that takes more steps or depth than the limits is an error too.
    [[nodiscard]] std::expected<void, decode_error> check(json::value const& value) const;

private:
    std::shared_ptr<schema_program const> program_;
    std::shared_ptr<schema_limits const> limits_;
};

}
