// Which connections follow which streams of a session. Decides takeovers, the storm guard, the budget of readers, who
// waits for whom, and who has to leave. Pure; a store runs it under the session's lock.
#pragma once

#include "store/types.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace belay::store {

class reader_table {
public:
    struct entry {
        reader_id id;
        stream_id stream = 0;
        stream_kind kind = stream_kind::request;
        bool can_return = true;
        bool took_over = false;                   ///< from a living reader, when it came
        std::optional<dismissed_reader> leaving{}; ///< has to leave; counts no longer
        std::optional<std::uint64_t> start{};      ///< where it began to read; absent while it waits
        bool is_other_epoch = false;               ///< its cursor was of an earlier life
    };
    struct place {
        reader_id reader;
        stream_id stream = 0;
        friend bool operator==(place const&, place const&) = default;
    };
    struct request {
        stream_id stream = 0;
        stream_kind kind = stream_kind::request;
        reader_request const& reader;
        standalone_policy policy = standalone_policy::takeover;
        std::optional<reader_id> broken{};
        bool insists = false;
    };
    enum class verdict { accepted, conflict };
    struct decision {
        reader_table::verdict verdict = reader_table::verdict::accepted;
        bool is_new = true; ///< it was not there before
        bool waits = false; ///< an earlier one is still leaving
        std::vector<place> removed;   ///< were there, and are not any more: of dead owners, or insisted on
        std::vector<place> dismissed; ///< have to leave from now on
    };
    using alive_function = std::function<bool(std::string const& owner)>;

    /// Whether a new call's reader would be within the budget, or somebody could leave for it.
    [[nodiscard]] bool can_take(reader_request const& reader, alive_function const& is_alive) const;
    decision attach(request const& request, base::time_point now, alive_function const& is_alive);
    /// False if it was not there.
    bool detach(stream_id stream, reader_id const& reader);
    /// False if nobody follows the stream who could be told, or it cannot return and the call only asked.
    bool dismiss(stream_id stream, dismissed_reader how);
    std::vector<place> remove_all_of(std::string const& owner);
    std::vector<place> remove_from(stream_id stream, std::string const& owner);

    [[nodiscard]] entry* find(stream_id stream, reader_id const& reader) noexcept;
    /// Who came last to the stream, even if it waits or has to leave.
    [[nodiscard]] entry const* newest(stream_id stream) const noexcept;
    /// Who follows the stream and does not have to leave.
    [[nodiscard]] entry const* current(stream_id stream) const noexcept;
    [[nodiscard]] std::vector<entry> const& entries() const noexcept { return entries_; }

private:
    [[nodiscard]] std::size_t budget_of(reader_request const& reader) const noexcept;
    [[nodiscard]] static bool is_closable(entry const& each) noexcept;
    template<class F>
    void remove_if(std::vector<place>& removed, F const& condition);

    std::vector<entry> entries_; // longest attached first
    std::vector<base::time_point> takeovers_; // counted ones, newest last
    bool is_of_page_ = false;
};

}
