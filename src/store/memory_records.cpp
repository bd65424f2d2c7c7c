// The memory store's small records, and its bulletin.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

struct memory_store::listener {
    std::function<void(std::string const&)> hear;
    std::atomic<bool> is_active{true};
};

// --- small records

void memory_store::forget_old_records(base::time_point now)
{
    base::lock const lock(records_mutex_);
    forget_records_here(now);
}

void memory_store::forget_records_here(base::time_point now)
{
    while (!records_by_end_.empty() && records_by_end_.begin()->first <= now)
        forget_record(records_.find(records_by_end_.begin()->second));
}

void memory_store::forget_record(record_map::iterator gone)
{
    total_bytes_.fetch_sub(gone->second.charge, std::memory_order_relaxed);
    records_by_end_.erase(gone->second.ends);
    records_.erase(gone);
}

void memory_store::put_record(
    std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime,
    completion<std::uint64_t> done)
{
    auto outcome = [&]() -> result<std::uint64_t> {
        base::lock const lock(records_mutex_);
        auto const now = clock_.now();
        forget_records_here(now);
        auto found = records_.find(name);
        bool const is_there = found != records_.end();
        auto const revision = is_there ? found->second.record.revision : 0;
        if (is_there && revision == seen + 1 && found->second.record.value == value)
            return revision; // a repetition
        if (revision != seen)
            return failure(errc::conflict);
        auto const charge = record_overhead + 2 * name.size() + value.size();
        auto const freed = is_there ? found->second.charge : 0;
        if (!is_there && records_.size() >= limits_.small_records)
            return failure(errc::no_space);
        if (charge > freed && total_bytes_.load(std::memory_order_relaxed) + charge - freed > limits_.bytes_total)
            return failure(errc::no_space);
        if (is_there)
            records_by_end_.erase(found->second.ends);
        else
            found = records_.try_emplace(std::string(name)).first;
        auto const end = lifetime > base::time_point::max() - now ? base::time_point::max() : now + lifetime;
        found->second.ends = records_by_end_.emplace(end, found->first);
        found->second.record = {std::move(value), seen + 1};
        found->second.charge = charge;
        total_bytes_.fetch_add(charge, std::memory_order_relaxed);
        total_bytes_.fetch_sub(freed, std::memory_order_relaxed);
        return seen + 1;
    }();
    done(std::move(outcome));
}

void memory_store::get_record(std::string_view name, completion<small_record> done)
{
    auto outcome = [&]() -> result<small_record> {
        base::lock const lock(records_mutex_);
        forget_records_here(clock_.now());
        auto const found = records_.find(name);
        if (found == records_.end())
            return failure(errc::not_found);
        return found->second.record;
    }();
    done(std::move(outcome));
}

void memory_store::remove_record(std::string_view name, std::uint64_t seen, completion<void> done)
{
    auto outcome = [&]() -> result<void> {
        base::lock const lock(records_mutex_);
        forget_records_here(clock_.now());
        auto const found = records_.find(name);
        if (found == records_.end())
            return failure(errc::not_found);
        if (found->second.record.revision != seen)
            return failure(errc::conflict);
        forget_record(found);
        return {};
    }();
    done(std::move(outcome));
}

// --- the bulletin

void memory_store::publish(std::string text)
{
    std::vector<std::shared_ptr<listener>> all;
    {
        base::lock const lock(listeners_mutex_);
        all = listeners_;
    }
    for (auto const& each : all)
        if (each->is_active.load(std::memory_order_acquire))
            each->hear(text);
}

std::unique_ptr<watch_handle> memory_store::listen(std::function<void(std::string const&)> hear)
{
    auto entry = std::make_shared<listener>();
    entry->hear = std::move(hear);
    {
        base::lock const lock(listeners_mutex_);
        listeners_.push_back(entry);
    }
    return std::make_unique<unwatch>([this, entry] {
        entry->is_active.store(false, std::memory_order_release);
        base::lock const lock(listeners_mutex_);
        std::erase(listeners_, entry);
    });
}

}
