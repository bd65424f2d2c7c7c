// A reply of Redis, and what to do about one that is an error.
#pragma once

#include <hiredis/hiredis.h>

#include <belay/error.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace belay::store {

struct free_redis_reply {
    void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using redis_reply = std::unique_ptr<redisReply, free_redis_reply>;

/// What an error reply means for whoever sent the command.
enum class redis_verdict {
    answer, ///< no error, or one that the command has deserved
    no_script, ///< load the scripts, send it again
    wait, ///< send it again a little later
    other_master, ///< what answers is no master any more: connect again, then send it again
    moved, ///< the slot is elsewhere: the text says where
    ask, ///< this once, elsewhere
    full, ///< no memory is left
    refused, ///< no right to it, or no password
};
[[nodiscard]] redis_verdict judge(redisReply const& reply) noexcept;

/// The value of a line "name:value" of INFO; empty if there is none.
[[nodiscard]] std::string field_of_info(std::string_view info, std::string_view name);

/// A reply's parts without their types in the way. A part of another type than asked for is empty or 0.
class reply_view {
public:
    reply_view() = default;
    explicit reply_view(redisReply const* reply) noexcept : reply_(reply) {}

    [[nodiscard]] bool is_nil() const noexcept { return !reply_ || reply_->type == REDIS_REPLY_NIL; }
    [[nodiscard]] bool is_error() const noexcept { return reply_ && reply_->type == REDIS_REPLY_ERROR; }
    [[nodiscard]] std::string_view text() const noexcept
    {
        if (!reply_ || !reply_->str)
            return {};
        return {reply_->str, static_cast<std::size_t>(reply_->len)};
    }
    [[nodiscard]] std::string string() const { return std::string(text()); }
    /// An integer, or a text that is one.
    [[nodiscard]] std::int64_t integer() const noexcept;
    [[nodiscard]] std::uint64_t count() const noexcept { return static_cast<std::uint64_t>(integer()); }
    [[nodiscard]] std::size_t size() const noexcept
    {
        return reply_ && reply_->type == REDIS_REPLY_ARRAY ? reply_->elements : 0;
    }
    [[nodiscard]] reply_view operator[](std::size_t index) const noexcept
    {
        return index < size() ? reply_view(reply_->element[index]) : reply_view();
    }

private:
    redisReply const* reply_ = nullptr;
};

}
