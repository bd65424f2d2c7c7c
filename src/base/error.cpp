#include <belay/error.hpp>

namespace belay::inline v0 {

namespace {

class category final : public std::error_category {
public:
    char const* name() const noexcept override { return "belay"; }

    std::string message(int value) const override
    {
        switch (static_cast<errc>(value)) {
        case errc::bad_request: return "the request cannot be understood";
        case errc::not_found: return "not found";
        case errc::finished: return "the stream has its final answer";
        case errc::fenced: return "the call belongs to another owner";
        case errc::conflict: return "the record changed meanwhile";
        case errc::too_large: return "larger than its limit";
        case errc::too_many_streams: return "the session keeps as many streams as it may";
        case errc::too_many_sessions: return "the server keeps as many sessions as it may";
        case errc::no_space: return "the byte limit is reached";
        case errc::other_epoch: return "the cursor belongs to an earlier life of the stream";
        case errc::unavailable: return "not available now";
        case errc::timed_out: return "took longer than its limit";
        case errc::closed: return "closed";
        case errc::cancelled: return "cancelled";
        case errc::key_spent: return "the outcome of the call with this key is no longer kept";
        case errc::key_mismatch: return "the key belongs to another call";
        case errc::duplicate_id: return "a call with this id is still running";
        case errc::too_many_subscriptions: return "the session has as many subscriptions as it may";
        case errc::stream_gone: return "the session does not keep such a stream";
        case errc::bad_cursor: return "the stream does not have the place that the cursor names";
        }
        return "unknown error";
    }
};

}

std::error_category const& error_category() noexcept
{
    static category const instance;
    return instance;
}

std::error_code make_error_code(errc code) noexcept
{
    return {static_cast<int>(code), error_category()};
}

}
