#include "http/in_flight.hpp"

#include "http/connection.hpp"

#include <algorithm>

namespace belay::http {

in_flight::unread_list& in_flight::add(base::io_loop& loop)
{
    return *lists_.emplace_back(std::make_unique<unread_list>(loop));
}

void in_flight::count_out(std::size_t before, std::size_t now, base::io_loop& from)
{
    out_.fetch_add(now - before, std::memory_order_relaxed);
    // Later: whoever writes at this moment is in the middle of it.
    if (now > before && out() > max_out_ && !is_relieving_.exchange(true))
        relieve_later(from);
}

in_flight::unread_list* in_flight::too_slow() const noexcept
{
    if (out() <= max_out_)
        return nullptr;
    auto const slowest = std::ranges::min_element(lists_, {}, [](auto const& each) { return each->oldest.load(); });
    return (*slowest)->oldest.load() == unread_list::none ? nullptr : slowest->get();
}

void in_flight::relieve_later(base::io_loop& there)
{
    there.post([held = weak_from_this(), &there] {
        if (auto const self = held.lock())
            self->relieve(there);
    });
}

void in_flight::relieve(base::io_loop& here)
{
    do {
        while (auto* const list = too_slow()) {
            if (&list->loop != &here)
                return relieve_later(list->loop);
            list->first->close_unread();
        }
        is_relieving_ = false;
    } while (too_slow() && !is_relieving_.exchange(true)); // somebody may have come who was not heard meanwhile
}

}
