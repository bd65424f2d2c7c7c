// How the store's values are written for Redis: arguments of scripts in MessagePack, which Lua unpacks there, and texts
// of our own that only we read again. Pure.
#pragma once

#include "store/types.hpp"

#include <belay/error.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belay::store {

/// Writes MessagePack. Who begins a map or an array writes as many parts as were announced.
class msgpack {
public:
    msgpack& map(std::size_t count) { return begin(count, 0x80, 0xde); }
    msgpack& array(std::size_t count) { return begin(count, 0x90, 0xdc); }
    msgpack& text(std::string_view text);
    msgpack& number(std::uint64_t number);
    msgpack& number(double number);
    msgpack& nil()
    {
        out_ += '\xc0';
        return *this;
    }
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    msgpack& begin(std::size_t count, unsigned small, unsigned large);
    void big_endian(std::uint64_t value, int bytes);

    std::string out_;
};

/// A map whose size is known when all is in it: keys are short names, false and absent values are left out.
class msgpack_map {
public:
    msgpack_map& text(std::string_view name, std::string_view value);
    msgpack_map& number(std::string_view name, std::uint64_t value);
    msgpack_map& flag(std::string_view name, bool value) { return value ? number(name, 1) : *this; }
    /// Something that is packed already.
    msgpack_map& packed(std::string_view name, std::string_view value);
    [[nodiscard]] std::string take() const;

private:
    std::size_t count_ = 0;
    std::string parts_;
};

// Numbers go through Lua, which counts exactly up to here.
constexpr std::uint64_t largest_number = (std::uint64_t(1) << 53) - 1;

/// What is kept of a record: not its key and not its revision.
[[nodiscard]] std::string write_record(session_record const& record);
[[nodiscard]] std::optional<session_record> read_record(std::string_view text);

/// What is kept of how a call was opened.
[[nodiscard]] std::string write_meta(stream_meta const& meta);
[[nodiscard]] std::optional<stream_meta> read_meta(std::string_view text);

/// An entry of a stream's list.
[[nodiscard]] std::optional<stored_event> read_event(std::string_view text);

// --- names

/// What a session is called in keys: its id, and a digest of its principal if it has one.
[[nodiscard]] std::string tag_of(session_key const& key);
/// The id in a tag.
[[nodiscard]] std::optional<base::id128> id_in_tag(std::string_view tag) noexcept;
/// The member of the index of names: sessions in the order of their names.
[[nodiscard]] std::string name_member(session_key const& key);
[[nodiscard]] std::string stream_name(stream_id id);

/// A subscriber, as a member of the index of its URI.
[[nodiscard]] std::string write_subscriber(subscriber const& each);
[[nodiscard]] std::optional<subscriber> read_subscriber(std::string_view text);
/// Behind which the subscribers that come after a session's begin.
[[nodiscard]] std::string after_subscriber(session_key const& key);

}
