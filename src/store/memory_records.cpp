// The memory store's small records, and its bulletin.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

struct memory_store::listener {
    std::function<void(std::string const&)> hear;
    std::atomic<bool> is_active{true};
};

// --- small records

namespace {

std::size_t record_charge(std::string_view name, std::string_view value) noexcept
{
    return record_overhead + 2 * name.size() + value.size();
}

}

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
    record_count_ -= gone->second.is_taken ? 0 : 1;
    records_.erase(gone);
}

void memory_store::keep_record(record_map::iterator of, base::time_point now, base::duration lifetime)
{
    auto& [name, kept] = *of;
    auto const end = lifetime > base::time_point::max() - now ? base::time_point::max() : now + lifetime;
    if (kept.charge != 0)
        records_by_end_.erase(kept.ends);
    kept.ends = records_by_end_.emplace(end, name);
    auto const charge = record_charge(name, kept.record.value) + kept.taker.size();
    total_bytes_.fetch_add(charge, std::memory_order_relaxed);
    total_bytes_.fetch_sub(kept.charge, std::memory_order_relaxed);
    kept.charge = charge;
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
        bool const is_known = found != records_.end();
        bool const is_there = is_known && !found->second.is_taken;
        if (is_known && found->second.replaced == seen && found->second.record.value == value)
            return found->second.record.revision; // a repetition
        if ((is_there ? found->second.record.revision : 0) != seen)
            return failure(errc::conflict);
        auto const charge = record_charge(name, value);
        auto const freed = is_known ? found->second.charge : 0;
        if (!is_there && record_count_ >= limits_.small_records)
            return failure(errc::no_space);
        if (charge > freed && total_bytes_.load(std::memory_order_relaxed) + charge - freed > limits_.bytes_total)
            return failure(errc::no_space);
        if (!is_known)
            found = records_.try_emplace(std::string(name)).first;
        auto& kept = found->second;
        kept.record = {std::move(value), kept.record.revision + 1};
        kept.replaced = seen;
        kept.is_taken = false;
        record_count_ += is_there ? 0 : 1;
        keep_record(found, now, lifetime);
        return kept.record.revision;
    }();
    done(std::move(outcome));
}

void memory_store::get_record(std::string_view name, completion<small_record> done)
{
    auto outcome = [&]() -> result<small_record> {
        base::lock const lock(records_mutex_);
        forget_records_here(clock_.now());
        auto const found = records_.find(name);
        if (found == records_.end() || found->second.is_taken)
            return failure(errc::not_found);
        return found->second.record;
    }();
    done(std::move(outcome));
}

void memory_store::take_record(std::string_view name, std::uint64_t seen, std::string taker, completion<void> done)
{
    auto outcome = [&]() -> result<void> {
        base::lock const lock(records_mutex_);
        auto const now = clock_.now();
        forget_records_here(now);
        auto const found = records_.find(name);
        if (found == records_.end())
            return failure(errc::not_found);
        auto& kept = found->second;
        if (kept.taken == seen && kept.taken != 0 && kept.taker == taker)
            return {}; // a repetition
        if (kept.is_taken)
            return failure(errc::not_found);
        if (kept.record.revision != seen)
            return failure(errc::conflict);
        kept.is_taken = true;
        kept.taken = seen;
        kept.taker = std::move(taker);
        --record_count_;
        // Its value too: who has put it may not know that yet, and must not put it there once more.
        keep_record(found, now, late_command_limit);
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
