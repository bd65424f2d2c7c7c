// What the connections of a server keep of bodies that are not answered and of answers that are not read, counted over
// all loops; and who goes when that is too much. Two accounts, so that neither kind takes the other's room.
//
// A connection keeps a little uncounted: requests and answers of ordinary size never touch a number that loops share.
#pragma once

#include "base/io_loop.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace belay::http {

class connection;

class in_flight : public std::enable_shared_from_this<in_flight> {
public:
    /// What a connection may keep of each kind without its being counted: one read buffer.
    static constexpr std::size_t uncounted = std::size_t(16) * 1024;

    /// The connections of one site with answers that are counted, the one longest without progress first.
    struct unread_list {
        explicit unread_list(base::io_loop& on) : loop(on) {}
        base::io_loop& loop;
        connection* first = nullptr;
        connection* last = nullptr;
        std::atomic<base::duration::rep> oldest{none}; ///< since when the first has made none; for other loops
        static constexpr auto none = base::duration::max().count();
    };

    in_flight(std::size_t max_in, std::size_t max_out) : max_in_(max_in), max_out_(max_out) {}

    /// For a site of a loop. Before any of the loops uses this.
    [[nodiscard]] unread_list& add(base::io_loop& loop);

    /// Whether there is room for so much more of bodies.
    [[nodiscard]] bool takes(std::size_t more) const noexcept
    {
        return in_.load(std::memory_order_relaxed) + more <= max_in_;
    }
    /// A connection keeps `now` instead of `before`; both are counted bytes.
    void count_in(std::size_t before, std::size_t now) noexcept
    {
        in_.fetch_add(now - before, std::memory_order_relaxed);
    }
    /// The same for answers. Beyond what may be kept, the slowest readers are closed, soon.
    void count_out(std::size_t before, std::size_t now, base::io_loop& from);

    [[nodiscard]] std::size_t in() const noexcept { return in_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::size_t out() const noexcept { return out_.load(std::memory_order_relaxed); }

private:
    /// The list with the slowest reader, if there is too much; else null.
    [[nodiscard]] unread_list* too_slow() const noexcept;
    /// Closes readers of this loop as long as theirs are the slowest; then goes on where slower ones are.
    void relieve(base::io_loop& here);
    void relieve_later(base::io_loop& there);

    std::size_t const max_in_;
    std::size_t const max_out_;
    std::atomic<std::size_t> in_{0};
    std::atomic<std::size_t> out_{0};
    std::atomic<bool> is_relieving_{false};
    std::vector<std::unique_ptr<unread_list>> lists_;
};

}
