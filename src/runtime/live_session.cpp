#include "runtime/live_session.hpp"

#include "runtime/batch.hpp"
#include "runtime/call.hpp"
#include "runtime/following.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

/// A version that is not known was written by a newer program.
protocol::revision revision_of(store::session_record const& record)
{
    return protocol::parse_revision(record.version).value_or(protocol::newest_revision);
}

constexpr std::size_t few_receipts = 32;

/// Out of the list; null if it is not there.
template<class T>
std::shared_ptr<T> take(std::vector<std::shared_ptr<T>>& from, T& what)
{
    auto const found = std::ranges::find_if(from, [&](auto const& each) { return each.get() == &what; });
    if (found == from.end())
        return nullptr;
    auto taken = std::move(*found);
    from.erase(found);
    return taken;
}

}

session_use::session_use(std::shared_ptr<live_session> session, store::record_ptr record)
    : session_(std::move(session)), record_(std::move(record)), revision_(session_->see(record_))
{
    session_->add_use();
}

live_session::live_session(store::record_ptr record)
    : key(record->key), name(base::log_name(key.id)), record_(std::move(record)), revision_(revision_of(*record_))
{
}

live_session::~live_session() = default;

store::record_ptr live_session::current_record()
{
    base::lock const lock(mutex_);
    return record_;
}

protocol::revision live_session::current_revision()
{
    base::lock const lock(mutex_);
    return revision_;
}

protocol::revision live_session::see(store::record_ptr const& record)
{
    base::lock const lock(mutex_);
    if (record_ == record)
        return revision_;
    auto const revision = revision_of(*record);
    if (record_->revision < record->revision) {
        revision_ = revision;
        record_ = record;
    }
    return revision;
}

void live_session::add(std::shared_ptr<following> fresh)
{
    base::lock const lock(mutex_);
    followers_.push_back(std::move(fresh));
}

bool live_session::remove(following& gone)
{
    std::shared_ptr<following> taken; // its destructor must not run under the lock
    base::lock const lock(mutex_);
    taken = take(followers_, gone);
    if (taken)
        gone.forget_sink();
    return taken != nullptr;
}

std::vector<std::shared_ptr<following>> live_session::followers()
{
    base::lock const lock(mutex_);
    return followers_;
}

std::optional<store::reader_id> live_session::broken_reader(store::stream_id stream)
{
    base::lock const lock(mutex_);
    for (auto const& each : followers_)
        if (each->stream() == stream && each->is_peer_gone())
            return each->reader();
    return std::nullopt;
}

void live_session::hide_sink(following& of)
{
    base::lock const lock(mutex_);
    of.forget_sink();
}

void live_session::show_sink(following& of)
{
    base::lock const lock(mutex_);
    of.offer_sink();
}

void live_session::add(std::shared_ptr<call> fresh)
{
    base::lock const lock(mutex_);
    calls_.push_back(std::move(fresh));
}

bool live_session::remove(call& gone)
{
    std::shared_ptr<call> taken;
    base::lock const lock(mutex_);
    taken = take(calls_, gone);
    return taken != nullptr;
}

void live_session::add(std::shared_ptr<batch> fresh)
{
    base::lock const lock(mutex_);
    batches_.push_back(std::move(fresh));
}

bool live_session::remove(batch& gone)
{
    std::shared_ptr<batch> taken;
    base::lock const lock(mutex_);
    taken = take(batches_, gone);
    return taken != nullptr;
}

std::vector<std::shared_ptr<call>> live_session::calls()
{
    base::lock const lock(mutex_);
    return calls_;
}

void live_session::end_held_calls()
{
    for (auto const& each : calls())
        if (!each->has_stream())
            each->loop().post([each] { each->end(protocol::end_reason::session_ended); });
}

bool live_session::runs(store::stream_id stream)
{
    base::lock const lock(mutex_);
    auto const is_it = [&](call_output const& output) { return output.stream() == stream; };
    return std::ranges::any_of(calls_, [&](auto const& each) { return is_it(each->output()); })
        || std::ranges::any_of(batches_, [&](auto const& each) { return is_it(*each->output()); });
}

void live_session::expect(base::loop& loop, std::shared_ptr<base::receipt> const& receipt)
{
    base::lock const lock(mutex_);
    // Looked through when there are twice as many as the last time: a constant share of it falls on each.
    if (receipts_.size() >= many_receipts_) {
        std::erase_if(receipts_, [](awaited_receipt const& each) { return each.receipt.expired(); });
        many_receipts_ = std::max(few_receipts, 2 * receipts_.size());
    }
    receipts_.push_back({&loop, receipt});
}

std::vector<live_session::awaited_receipt> live_session::receipts()
{
    base::lock const lock(mutex_);
    return receipts_;
}

void live_session::watch_record(store::session_store& store, std::function<void()> reload)
{
    {
        base::lock const lock(mutex_);
        if (std::exchange(is_watched_, true))
            return;
    }
    auto watch = store.watch_session(key, std::move(reload));
    base::lock const lock(mutex_);
    watch_ = std::move(watch);
}

void live_session::let_go()
{
    std::vector<std::shared_ptr<following>> followers;
    std::vector<std::shared_ptr<call>> calls;
    std::vector<std::shared_ptr<batch>> batches;
    std::unique_ptr<store::watch_handle> watch;
    base::lock const lock(mutex_);
    followers.swap(followers_);
    calls.swap(calls_);
    batches.swap(batches_);
    watch.swap(watch_);
}

}
