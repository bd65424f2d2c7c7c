// What belongs to no session: codes that one of several who try may take.
#include "world_parts.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

void world::use_record()
{
    auto const at = any_place();
    if (!at)
        return;
    if (codes_.empty() || chance(3))
        return put_code();
    auto& from = *codes_[random_.below(codes_.size())];
    if (from.in == &store() && from.revision != 0)
        take(from, at, fmt::format("t{}", ++takers_));
}

void world::put_code()
{
    auto const at = any_place();
    codes_.push_back(std::make_unique<code>());
    auto* const fresh = codes_.back().get();
    fresh->in = &store();
    fresh->name = fmt::format("code{}", codes_.size());
    if (at)
        ask(at, [this, fresh, at] {
            at.at->way().put_record(fresh->name, 0, "secret", 5min, [this, fresh, at](result<std::uint64_t> put) {
                if (put)
                    fresh->revision = *put;
                else
                    require(
                        put.error() == errc::no_space || (put.error() == errc::unavailable && may_be_unavailable(at)),
                        "put: " + put.error().message());
            });
        });
}

/// Whoever does not know whether it was the one asks again, wherever it gets an answer.
void world::take(code& from, place at, std::string const& taker)
{
    ask(at, [this, &from, at, taker] {
        at.at->way().take_record(from.name, from.revision, taker, [this, &from, taker](result<void> taken) {
            if (!taken) {
                if (taken.error() == errc::unavailable && !has_healed_)
                    if (auto const elsewhere = any_place())
                        take(from, elsewhere, taker);
                return;
            }
            if (from.in != &store())
                return;
            from.winners.insert(taker);
            // What is under way while time jumps is later than any command is.
            require(from.winners.size() == 1 || has_jumped_, "what one may take was taken by two");
        });
    });
}

}
