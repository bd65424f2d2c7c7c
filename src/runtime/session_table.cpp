#include "runtime/session_table.hpp"

#include <utility>

namespace belay::runtime {

namespace {

// Above all levels: a client that could not choose one gets no log messages.
constexpr int no_log_level = 8;

}

session_table::~session_table()
{
    for (auto const& each : all())
        each->let_go();
}

session_table::stripe& session_table::stripe_of(store::session_key const& key) noexcept
{
    return stripes_[(key.id.high >> 40) % stripe_count];
}

std::shared_ptr<live_session> session_table::enter(store::record_ptr const& record)
{
    auto& stripe = stripe_of(record->key);
    base::lock const lock(stripe.mutex);
    auto& entry = stripe.sessions[record->key];
    if (!entry)
        entry = make(record);
    return entry;
}

std::shared_ptr<live_session> session_table::find(store::session_key const& key)
{
    auto& stripe = stripe_of(key);
    base::lock const lock(stripe.mutex);
    auto const found = stripe.sessions.find(key);
    return found == stripe.sessions.end() ? nullptr : found->second;
}

void session_table::forget(store::session_key const& key)
{
    std::shared_ptr<live_session> gone; // its destructor must not run under the lock
    auto& stripe = stripe_of(key);
    base::lock const lock(stripe.mutex);
    auto const found = stripe.sessions.find(key);
    if (found == stripe.sessions.end())
        return;
    gone = std::move(found->second);
    stripe.sessions.erase(found);
    list_keyless(gone);
}

std::shared_ptr<live_session> session_table::make(store::record_ptr record)
{
    return {new live_session(std::move(record)), [keyless = keyless_](live_session* gone) {
                {
                    base::lock const lock(keyless->mutex);
                    keyless->all.erase(gone);
                }
                delete gone;
            }};
}

void session_table::list_keyless(std::shared_ptr<live_session> const& session)
{
    base::lock const lock(keyless_->mutex);
    keyless_->all.emplace(session.get(), session);
}

std::shared_ptr<live_session> session_table::stand_in(protocol::revision revision)
{
    auto record = std::make_shared<store::session_record>();
    record->version = protocol::to_string(revision);
    record->log_level = no_log_level;
    auto fresh = make(std::move(record));
    list_keyless(fresh);
    return fresh;
}

std::vector<std::shared_ptr<live_session>> session_table::all()
{
    std::vector<std::shared_ptr<live_session>> all;
    for (auto& stripe : stripes_) {
        base::lock const lock(stripe.mutex);
        for (auto const& [key, session] : stripe.sessions)
            all.push_back(session);
    }
    base::lock const lock(keyless_->mutex);
    for (auto const& [at, session] : keyless_->all)
        if (auto alive = session.lock())
            all.push_back(std::move(alive));
    return all;
}

std::size_t session_table::count()
{
    std::size_t count = 0;
    for (auto& stripe : stripes_) {
        base::lock const lock(stripe.mutex);
        count += stripe.sessions.size();
    }
    return count;
}

std::vector<store::session_key> session_table::look_round()
{
    std::vector<store::session_key> in_use;
    std::vector<std::shared_ptr<live_session>> unused;
    for (auto& stripe : stripes_) {
        base::lock const lock(stripe.mutex);
        for (auto each = stripe.sessions.begin(); each != stripe.sessions.end();) {
            // Nobody can come to hold it meanwhile: that begins here, under this lock.
            if (each->second.use_count() == 1) {
                unused.push_back(std::move(each->second));
                each = stripe.sessions.erase(each);
                continue;
            }
            if (each->second->is_in_use())
                in_use.push_back(each->first);
            ++each;
        }
    }
    return in_use;
}

}
