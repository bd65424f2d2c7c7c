// What clients do with their sessions.
#include "world_parts.hpp"

#include <ranges>

namespace belay::sim {

using namespace std::chrono_literals;

void world::open_session()
{
    auto const at = any_place();
    if (!at)
        return;
    runtime::client_hello hello;
    hello.principal = chance(3) ? "bob" : "anonymous";
    hello.revision = chance(3) ? protocol::revision::r2025_06_18 : protocol::newest_revision;
    ask(at, [this, at, hello]() mutable {
        auto const principal = hello.principal;
        auto const revision = hello.revision;
        at.at->node().sessions().open(
            std::move(hello), [this, at, principal, revision](result<runtime::session_use> use) {
                if (!use)
                    return require(
                        use.error() == errc::too_many_sessions || use.error() == errc::no_space
                            || (use.error() == errc::unavailable && may_be_unavailable(at)),
                        "open: " + use.error().message());
                auto fresh = std::make_unique<session>();
                // Of the store's life in which it was made, which may be over.
                auto const& key = use->session()->key;
                auto const made_in = std::ranges::find_if(std::views::reverse(lives_), [&](auto const& each) {
                    return each->record.loaded_at(key) != base::time_point{};
                });
                fresh->in = made_in->get();
                fresh->is_gone = fresh->in != &store();
                fresh->id = base::to_string(key.id);
                fresh->principal = principal;
                fresh->revision = revision;
                fresh->standalone = use->record()->standalone;
                fresh->last_active = fresh->in->record.loaded_at(key);
                fresh->made_at = fresh->last_active;
                sessions_.push_back(std::move(fresh));
            });
    });
}

void world::use(
    session& of, place at, std::move_only_function<void(runtime::session_use)> then,
    std::move_only_function<void()> refused)
{
    if (!at)
        return refused();
    bool const was_over = of.is_deleted || of.is_gone;
    auto const began = scheduler_.now();
    // Both the server's answer and the loss of the server lead to it.
    auto const otherwise = std::make_shared<std::move_only_function<void()>>(std::move(refused));
    auto const waits = begin_exchange(*at.at, [otherwise] { (*otherwise)(); });
    ask(at, [this, &of, at, was_over, began, otherwise, waits, then = std::move(then)]() mutable {
        at.at->node().sessions().use(
            of.principal, of.id,
            [this, &of, at, was_over, began, otherwise, waits,
             then = std::move(then)](result<runtime::session_use> use) mutable {
                end_exchange(waits);
                if (use) {
                    require(!was_over, "a session was served that had been deleted, or was gone");
                    of.last_active = std::max(of.last_active, began);
                    return then(std::move(*use));
                }
                if (use.error() == errc::unavailable)
                    require(may_be_unavailable(at), "503 from a store that is there");
                else
                    require(use.error() == errc::not_found, "use: " + use.error().message());
                if (use.error() == errc::not_found)
                    found_gone(of);
                (*otherwise)();
            });
    });
}

void world::found_gone(session& of)
{
    require(of.is_over() || of.in->record.has_expired(of.key()), "404 for a session that lives");
    of.is_gone = true;
}

/// I1: a session that is in use does not expire.
void world::expired(session& of)
{
    if (of.is_over())
        return;
    auto const now = scheduler_.now();
    auto const idle = settings_.limits.session_idle;
    require(
        now >= of.last_active + idle,
        fmt::format("a session expired before its time, {} ms after it was last active", (now - of.last_active) / 1ms));
    // What holds a session does so while its process lives.
    auto& record = of.in->record;
    for (auto const& each : connections_)
        require(
            each->of != &of || each->wire->is_over() || each->wire->is_cut()
                || record.was_dead_for(each->owner, each->since, idle),
            "a session with an open connection expired");
    auto const key = of.key();
    for (auto const& each : record.calls())
        require(
            each.key.session != key || each.is_finished || record.was_dead_for(each.owner, each.opened_at, idle),
            "a session with a running call expired");
}

void world::overdue(session& of)
{
    require(
        scheduler_.now() >= of.made_at + settings_.limits.session_lifetime,
        "a session was ended for its age before its time");
    of.is_overdue = true;
}

void world::end_session()
{
    auto* const of = any_session();
    if (of && !of->is_over() && chance(3))
        remove(*of);
}

void world::remove(session& of)
{
    auto const at = any_place();
    if (!at || std::exchange(of.is_removing, true))
        return;
    use(
        of, at,
        [this, at, &of](runtime::session_use taken) {
            of.is_deleting = true;
            auto const waits = begin_exchange(*at.at, [&of] { of.is_removing = false; });
            at.at->node().sessions().end(taken.session()->key, *at.loop, [this, at, &of, waits](result<void> ended) {
                end_exchange(waits);
                of.is_removing = false;
                if (ended || ended.error() == errc::not_found)
                    of.is_deleted = true;
                else
                    require(
                        ended.error() == errc::unavailable && may_be_unavailable(at),
                        "end: " + ended.error().message());
            });
        },
        [&of] { of.is_removing = false; });
}

void world::subscribe()
{
    auto* const of = any_session();
    if (!of || of->is_over())
        return;
    auto const uri = fmt::format("test://{}", random_.below(3));
    bool const wanted = !chance(3);
    auto const at = any_place();
    use(*of, at, [this, of, uri, wanted, at](runtime::session_use taken) {
        auto const waits = begin_exchange(*at.at, [of, uri] { of->unsure_subscriptions.insert(uri); });
        auto done = [this, of, uri, wanted, at, waits](result<void> changed) {
            end_exchange(waits);
            if (!changed) {
                of->unsure_subscriptions.insert(uri);
                return require(
                    changed.error() == errc::no_space
                        || (changed.error() == errc::not_found
                            && (of->is_over() || of->in->record.has_expired(of->key())))
                        || (changed.error() == errc::unavailable && may_be_unavailable(at)),
                    "subscribe: " + changed.error().message());
            }
            if (wanted)
                of->subscriptions.insert(uri);
            else
                of->subscriptions.erase(uri);
        };
        if (wanted)
            at.at->node().sessions().subscribe(*taken.session(), uri, std::move(done));
        else
            at.at->node().sessions().unsubscribe(*taken.session(), uri, std::move(done));
    });
    scheduler_.run_all(); // or what two of them leave behind would be anybody's guess
    if (has_faults())
        of->unsure_subscriptions.insert(uri);
}

void world::update_resource()
{
    scheduler_.run_all();
    auto const at = any_place();
    if (!at || at.at->is_paused())
        return;
    auto& record = store().record;
    auto const uri = fmt::format("test://{}", random_.below(3));
    auto const text = fmt::format(R"({{"updated":"{}","n":{}}})", uri, ++updates_);
    std::map<session*, std::size_t> refused;
    for (auto const& each : sessions_)
        refused[each.get()] = record.refused(each->standalone);
    ask(at, [&] { at.at->node().announcer().notify_subscribers(uri, text); });
    scheduler_.run_all();
    for (auto const& each : sessions_) {
        if (each->unsure_subscriptions.contains(uri))
            continue;
        auto const& log = record.log(each->standalone);
        bool const was_told = std::ranges::any_of(log, [&](auto const& event) { return *event.payload == text; });
        require(!was_told || each->subscriptions.contains(uri), "an update for a session that is not subscribed"); // I3
        bool const has_room = record.refused(each->standalone) == refused[each.get()];
        require(
            was_told || !each->subscriptions.contains(uri) || has_faults() || !has_room || !record.keeps(each->key()),
            "a subscriber was not told");
    }
}

void world::announce()
{
    auto* const of = any_session();
    if (!of || of->is_over())
        return;
    auto const at = any_place();
    auto text = fmt::format(R"({{"announcement":{},"of":"{}"}})", ++of->announced, of->id);
    use(*of, at, [at, text = std::move(text)](runtime::session_use taken) {
        at.at->node().announcer().notify(taken.session(), text);
    });
}

void world::reinitialize()
{
    auto* const of = any_session();
    if (!of || of->is_over())
        return;
    auto const at = any_place();
    use(*of, at, [of, at](runtime::session_use taken) {
        runtime::client_hello hello;
        hello.principal = of->principal;
        hello.revision = of->revision;
        hello.info = R"({"name":"again"})";
        at.at->node().sessions().reopen(taken, hello, [](result<void>) {});
        at.at->node().sessions().change(
            taken.session(), [](store::session_record& record) { record.initialized = true; },
            [of](result<void> changed) { of->is_initialized = of->is_initialized || changed.has_value(); });
    });
}

/// To all who have said that they are there, once.
void world::broadcast()
{
    scheduler_.run_all();
    auto const at = any_place();
    if (!at || at.at->is_paused())
        return;
    auto& record = store().record;
    auto const text = fmt::format(R"({{"broadcast":{}}})", ++broadcasts_);
    std::map<session*, std::size_t> refused;
    for (auto const& each : sessions_)
        refused[each.get()] = record.refused(each->standalone);
    ask(at, [&] { at.at->node().announcer().broadcast(text, [](store::session_record const&) { return true; }); });
    scheduler_.run_all();
    for (auto const& each : sessions_) {
        auto const told = std::ranges::count_if(
            record.log(each->standalone), [&](auto const& event) { return *event.payload == text; });
        bool const has_room = record.refused(each->standalone) == refused[each.get()];
        require(told <= 1, "one word was said twice");
        require(
            told == 1 || !each->is_initialized || has_faults() || !has_room || each->in != &store()
                || !record.keeps(each->key()),
            "a session was not told what all are told");
    }
}

void world::present_foreign_id()
{
    // I3: another's session id, and another's event id, are unknown.
    auto* const one = any_session();
    auto* const other = any_session();
    auto const at = any_place();
    if (!one || !other || one == other || one->is_over() || !at)
        return;
    auto const stranger = one->principal == "bob" ? "anonymous" : "bob";
    ask(at, [this, at, stranger, one] {
        at.at->node().sessions().use(stranger, one->id, [this, at](result<runtime::session_use> taken) {
            require(
                !taken
                    && (taken.error() == errc::not_found
                        || (taken.error() == errc::unavailable && may_be_unavailable(at))),
                "a foreign session was found");
        });
    });
    auto const foreign = other->last_id;
    if (foreign.empty())
        return;
    use(*one, at, [this, at, foreign, one](runtime::session_use taken) {
        at.at->node().attachments().follow(
            taken, *at.loop, {foreign, runtime::caller::program},
            [this, at, one](std::expected<std::shared_ptr<runtime::following>, runtime::follow_refusal> followed) {
                using refusal = runtime::follow_refusal;
                require(
                    !followed
                        && (followed.error() == refusal::bad_cursor || one->is_over()
                            || (followed.error() == refusal::unavailable && may_be_unavailable(at))),
                    "a foreign event id was followed");
            });
    });
}

}
