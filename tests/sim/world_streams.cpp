// What clients do with streams: come back, listen, read, leave; and time that passes.
#include "engine/cursor.hpp"
#include "world_parts.hpp"

namespace belay::sim {

using namespace std::chrono_literals;

void world::follow(session& of, call* which, std::optional<std::string> cursor)
{
    auto const at = any_place();
    if (!at)
        return;
    auto const capacity = 100 + random_.below(chance(2) ? 500 : 100'000);
    bool const has_origin = chance(2);
    auto const from = cursor ? engine::parse_event_id(*cursor)->sequence : 0;
    if (which)
        which->is_resuming = true;
    // A client that comes back has left its old connection; the server may or may not have heard.
    for (auto const& each : connections_)
        if (each->of == &of && each->which == which) {
            if (chance(2))
                each->wire->cut();
            else
                each->wire->vanish();
        }
    auto const refused = [which] {
        if (which)
            which->is_resuming = false;
    };
    use(
        of, at,
        [this, &of, at, which, cursor, capacity, has_origin, from, refused](runtime::session_use taken) {
            runtime::follow_request request{cursor, has_origin ? runtime::caller::browser : runtime::caller::program};
            auto const waits = begin_exchange(*at.at, refused);
            at.at->node().attachments().follow(
                taken, *at.loop, request,
                [this, &of, at, which, cursor, capacity, from, refused,
                 waits](std::expected<std::shared_ptr<runtime::following>, runtime::follow_refusal> followed) {
                    end_exchange(waits);
                    refused();
                    if (!followed)
                        return follow_refused(of, which, at, followed.error());
                    auto line = std::make_unique<connection>();
                    line->wire = std::make_shared<wire>(scheduler_.clock(), *at.loop, *followed, capacity);
                    line->at = at.at;
                    line->owner = at.at->way().owner();
                    line->since = scheduler_.now();
                    line->of = &of;
                    line->which = which;
                    line->position = from;
                    line->knows_position = cursor.has_value();
                    auto const sink = line->wire;
                    connections_.push_back(std::move(line));
                    (*followed)->start(sink);
                });
        },
        refused);
}

void world::follow_refused(session& of, call* which, place at, runtime::follow_refusal why)
{
    using refusal = runtime::follow_refusal;
    switch (why) {
    case refusal::nothing_left:
        require(which && which->is_answered(), "204 for a call whose answer was not received");
        return;
    case refusal::bad_cursor:
        // Kept until delivered, or the session's end.
        require((which && which->is_answered()) || of.is_over(), "400 for a call whose answer was not received");
        if (which)
            which->is_lost = true;
        return;
    case refusal::conflict: require(!which, "409 for a call's stream"); return;
    case refusal::session_gone: found_gone(of); return;
    case refusal::unavailable: require(may_be_unavailable(at), "503 from a store that is there"); return;
    }
}

void world::resume(call& which)
{
    if (which.is_resuming || which.is_lost || which.of->is_over())
        return;
    if (which.last_id.empty()) {
        // No id ever reached the client: the one case in which it cannot come back.
        which.is_lost = true;
        return;
    }
    follow(*which.of, &which, which.last_id);
}

void world::resume_call()
{
    auto* const which = any_call();
    if (which && !which->is_steady)
        resume(*which);
}

void world::listen()
{
    auto* const of = any_session();
    if (!of || of->is_over())
        return;
    std::optional<std::string> cursor;
    if (!of->last_id.empty() && chance(2))
        cursor = of->last_id;
    follow(*of, nullptr, cursor);
}

void world::cut()
{
    if (auto* const line = any_connection(); line && !line->is_steady()) {
        read(*line, random_.below(line->wire->arrived() + 1)); // any byte, also inside an event
        line->wire->cut();
    }
}

void world::vanish()
{
    if (auto* const line = any_connection(); line && !line->is_steady())
        line->wire->vanish();
}

void world::read_some()
{
    if (auto* const line = any_connection())
        read(*line, chance(3) ? 1 + random_.below(40) : 1 + random_.below(20'000));
}

void world::pass_time()
{
    auto const pick = random_.below(40);
    if (pick == 0)
        advance(1s * random_.below(900));
    else if (pick < 6)
        advance(1s * random_.below(8));
    else
        advance(1ms * random_.below(300));
    for (auto const& each : connections_)
        each->wire->tick();
    look_for_arrivals();
}

void world::look_for_arrivals()
{
    std::erase_if(receipts_, [&](auto const& each) {
        // Done, or the kernel has given up.
        return each->ask_arrived() || scheduler_.now() > each->over_at() + 45s;
    });
}

}
