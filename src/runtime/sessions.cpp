#include "runtime/sessions.hpp"

#include "protocol/revision.hpp"
#include "runtime/bulletins.hpp"
#include "runtime/following.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

// Sessions are reaped in bites, so that a great number of them does not hold a loop for long.
constexpr std::size_t reap_bite = 1000;

// So long after the store could not answer it is asked again.
constexpr base::duration close_again_time = std::chrono::milliseconds(500);

// How often a change is made anew because somebody else was first.
constexpr unsigned change_tries = 16;

}

// A session on its way out: closed in the store, and waiting for its last answers to be written.
class sessions::ending : public std::enable_shared_from_this<ending> {
public:
    ending(sessions& of, store::session_key key, base::loop& loop, store::completion<void> done)
        : of_(of), key_(std::move(key)), loop_(loop), done_(std::move(done)), tick_(loop.timers(), [this] { tick(); })
    {
    }

    void begin()
    {
        watch_ = of_.context_.store().watch_session(key_, [weak = weak_from_this(), &loop = loop_] {
            loop.post([weak] {
                if (auto const self = weak.lock())
                    self->look();
            });
        });
        close();
    }

private:
    void close()
    {
        of_.context_.store().close(key_, [self = shared_from_this()](result<std::vector<store::call_ref>> told) {
            // It may be closed by now, and then everything else has to follow: this goes on until that is known.
            if (!told && told.error() == errc::unavailable) {
                self->tell(std::unexpected(told.error()));
                return self->tick_.after(close_again_time);
            }
            bool const was_unsure = !self->done_;
            if (!told && !(was_unsure && told.error() == errc::not_found))
                return self->finish(std::unexpected(told.error()));
            self->closed(told.value_or(std::vector<store::call_ref>()));
        });
    }

    void closed(std::vector<store::call_ref> const& told)
    {
        // Calls that run here hear of it at once; a hint to others may be lost.
        bool const is_elsewhere
            = std::ranges::any_of(told, [&](auto const& each) { return each.owner != of_.context_.owner(); });
        removed_at_ = loop_.now() + (is_elsewhere ? store::closed_session_limit : end_flush_limit);
        if (auto const live = of_.table_.find(key_))
            live->end_held_calls();
        of_.context_.store().publish(session_ended_bulletin(key_));
        tick_.after(end_flush_limit);
        look();
    }

    void tick()
    {
        if (!removed_at_)
            return close();
        tell({}); // nobody serves it any more
        if (loop_.now() >= *removed_at_)
            return remove();
        tick_.after(end_flush_limit);
        look(); // a hint may be lost
    }

    void look()
    {
        if (!removed_at_ || is_removing_)
            return;
        of_.context_.store().is_quiet(key_, [self = shared_from_this()](result<bool> quiet) {
            if (quiet && *quiet)
                self->remove();
        });
    }

    void remove()
    {
        if (std::exchange(is_removing_, true))
            return;
        tick_.cancel();
        if (auto const live = of_.table_.find(key_))
            for (auto const& each : live->followers())
                each->close(engine::close_reason::cut_off, std::nullopt);
        of_.context_.log().log_fields(base::log_level::info, "session ended", {{"session", base::log_name(key_.id)}});
        of_.context_.store().remove(key_, [self = shared_from_this()](result<void>) {
            // Whatever came of it: nobody serves a closed session, and the store's own limit removes it.
            self->of_.table_.forget(self->key_);
            self->finish({});
        });
    }

    /// The first outcome counts.
    void tell(result<void> outcome)
    {
        if (auto done = std::exchange(done_, nullptr))
            done(std::move(outcome));
    }

    void finish(result<void> outcome)
    {
        auto const self = shared_from_this();
        tick_.cancel();
        watch_.reset();
        {
            base::lock const lock(of_.endings_mutex_);
            of_.endings_.erase(self);
        }
        tell(std::move(outcome));
    }

    sessions& of_;
    store::session_key key_;
    base::loop& loop_;
    store::completion<void> done_; // null: told
    std::unique_ptr<store::watch_handle> watch_;
    std::optional<base::time_point> removed_at_; // once it is closed: when it goes at the latest
    bool is_removing_ = false;
    base::timer tick_;
};

sessions::~sessions() = default;

void sessions::use(std::string_view principal, std::string_view id, store::completion<session_use> done)
{
    auto const parsed = base::parse_id128(id);
    if (!parsed)
        return done(failure(errc::not_found));
    context_.store().load(
        {std::string(principal), *parsed}, [this, done = std::move(done)](result<store::record_ptr> record) mutable {
            if (!record)
                return done(std::unexpected(record.error()));
            done(session_use(table_.enter(*record), *record));
        });
}

void sessions::open(client_hello hello, store::completion<session_use> done)
{
    if (context_.departures().is_draining())
        return done(failure(errc::unavailable));
    store::session_record record;
    record.key.principal = std::move(hello.principal);
    record.key.id = context_.random_id();
    record.standalone = context_.random();
    record.version = protocol::to_string(hello.revision);
    record.client_info = std::move(hello.info);
    record.client_capabilities = std::move(hello.capabilities);
    record.told_features = hello.features;
    context_.store().create(
        std::move(record), [this, done = std::move(done)](result<store::record_ptr> created) mutable {
            if (!created)
                return done(std::unexpected(created.error()));
            context_.metrics().sessions_opened.Increment();
            auto live = table_.enter(*created);
            context_.log().log_fields(
                base::log_level::info, "session opened", {{"session", live->name}, {"version", (*created)->version}});
            done(session_use(std::move(live), *created));
        });
}

void sessions::reopen(session_use const& use, client_hello hello, store::completion<void> done)
{
    change(
        use.session(),
        [hello = std::move(hello)](store::session_record& record) {
            record.version = protocol::to_string(hello.revision);
            record.client_info = hello.info;
            record.client_capabilities = hello.capabilities;
            record.told_features = hello.features;
        },
        std::move(done));
}

void sessions::change(
    std::shared_ptr<live_session> session, std::function<void(store::session_record&)> edit,
    store::completion<void> done)
{
    auto current = session->current_record();
    change_from(std::move(current), std::move(session), std::move(edit), change_tries, std::move(done));
}

void sessions::change_from(
    store::record_ptr current, std::shared_ptr<live_session> session, std::function<void(store::session_record&)> edit,
    unsigned tries, store::completion<void> done)
{
    auto record = *current;
    edit(record);
    if (record == *current)
        return done({});
    context_.store().update(
        std::move(record),
        [this, session = std::move(session), edit = std::move(edit), tries,
         done = std::move(done)](result<store::record_ptr> stored) mutable {
            if (stored) {
                session->see(*stored);
                return done({});
            }
            if (stored.error() != errc::conflict || tries == 0)
                return done(
                    stored.error() == errc::conflict ? failure(errc::unavailable) : std::unexpected(stored.error()));
            // Someone else was first: edit what is there now.
            auto const& key = session->key;
            context_.store().load(
                key,
                [this, session = std::move(session), edit = std::move(edit), tries,
                 done = std::move(done)](result<store::record_ptr> fresh) mutable {
                    if (!fresh)
                        return done(std::unexpected(fresh.error()));
                    session->see(*fresh);
                    change_from(std::move(*fresh), std::move(session), std::move(edit), tries - 1, std::move(done));
                });
        });
}

void sessions::subscribe(live_session const& session, std::string uri, store::completion<void> done)
{
    context_.store().subscribe(session.key, std::move(uri), context_.settings().max_subscriptions, std::move(done));
}

void sessions::unsubscribe(live_session const& session, std::string_view uri, store::completion<void> done)
{
    context_.store().unsubscribe(session.key, uri, std::move(done));
}

void sessions::end(store::session_key const& key, base::loop& loop, store::completion<void> done)
{
    auto const fresh = std::make_shared<ending>(*this, key, loop, std::move(done));
    {
        base::lock const lock(endings_mutex_);
        endings_.insert(fresh);
    }
    fresh->begin();
}

void sessions::list(std::string_view after, std::size_t limit, store::completion<session_page> done)
{
    context_.store().list(after, limit, [done = std::move(done)](result<store::session_list> found) mutable {
        if (!found)
            return done(std::unexpected(found.error()));
        session_page page;
        page.total = found->total;
        page.has_more = found->has_more;
        for (auto& each : found->sessions) {
            session_summary summary{
                base::log_name(each.record->key.id),
                each.record->version,
                each.record->client_info,
                each.age,
                each.idle,
                each.readers,
                each.running_calls,
                {}};
            for (auto const& owner : each.call_owners)
                summary.nodes.push_back(owner.substr(0, owner.find_last_of('/')));
            page.sessions.push_back(std::move(summary));
        }
        done(std::move(page));
    });
}

void sessions::end_by_name(std::string_view name, base::loop& loop, store::completion<void> done)
{
    context_.store().named(
        name, [this, &loop, done = std::move(done)](result<std::vector<store::session_key>> found) mutable {
            if (!found)
                return done(std::unexpected(found.error()));
            if (found->empty())
                return done(failure(errc::not_found));
            if (found->size() > 1)
                return done(failure(errc::conflict));
            end(found->front(), loop, std::move(done));
        });
}

void sessions::reap()
{
    context_.store().expire(reap_bite, [this](result<store::expired_sessions> found) {
        if (!found)
            return;
        for (auto const& key : found->removed) {
            table_.forget(key);
            context_.metrics().sessions_expired.Increment();
            context_.log().log_fields(base::log_level::info, "session expired", {{"session", base::log_name(key.id)}});
        }
        if (auto* const loop = context_.own_loop())
            for (auto const& key : found->overdue) {
                context_.metrics().sessions_expired.Increment();
                end(key, *loop, [](result<void>) {});
            }
        // The next one later: others have their turn in between.
        if (found->removed.size() == reap_bite)
            context_.later([this] { reap(); });
    });
}

void sessions::look_round()
{
    auto const in_use = table_.look_round();
    if (!in_use.empty())
        context_.store().touch(in_use);
}

}
