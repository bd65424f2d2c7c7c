#include "store/reader_table.hpp"

#include <algorithm>
#include <ranges>

namespace belay::store {

std::size_t reader_table::budget_of(reader_request const& reader) const noexcept
{
    return is_of_page_ || reader.is_of_page ? reader.budget_of_page : reader.budget;
}

bool reader_table::is_closable(entry const& each) noexcept
{
    return !each.leaving && each.can_return && each.kind == stream_kind::request;
}

template<class F>
void reader_table::remove_if(std::vector<place>& removed, F const& condition)
{
    std::erase_if(entries_, [&](entry const& each) {
        if (!condition(each))
            return false;
        removed.push_back({each.id, each.stream});
        return true;
    });
}

bool reader_table::can_take(reader_request const& reader, alive_function const& is_alive) const
{
    auto const budget = budget_of(reader);
    if (entries_.size() < budget)
        return true;
    std::size_t staying = 0;
    bool has_closable = false;
    for (auto const& each : entries_)
        if (!each.leaving && is_alive(each.id.owner)) {
            ++staying;
            has_closable = has_closable || is_closable(each);
        }
    return staying < budget || has_closable;
}

reader_table::decision
reader_table::attach(request const& request, base::time_point now, alive_function const& is_alive)
{
    auto const& reader = request.reader;
    decision decided;
    remove_if(decided.removed, [&](entry const& each) { return each.id != reader.id && !is_alive(each.id.owner); });

    auto const waits_for = [&](entry const& each) { return each.stream == request.stream && each.id != reader.id; };
    if (auto* const known = find(request.stream, reader.id)) {
        decided.is_new = false;
        if (known->leaving || known->start)
            return decided;
        if (request.insists)
            remove_if(decided.removed, [&](entry const& each) { return waits_for(each) && each.leaving; });
        decided.waits = std::ranges::any_of(entries_, waits_for);
        return decided;
    }

    bool is_counted = false;
    bool took_over = false;
    auto const rival = std::ranges::find_if(
        entries_, [&](entry const& each) { return each.stream == request.stream && !each.leaving; });
    if (rival != entries_.end()) {
        took_over = rival->id != request.broken;
        if (request.kind == stream_kind::standalone && took_over) {
            std::erase_if(takeovers_, [&](base::time_point at) { return at + takeover_window <= now; });
            if (request.policy == standalone_policy::conflict || takeovers_.size() >= takeovers_per_window) {
                decided.verdict = verdict::conflict;
                return decided;
            }
            is_counted = true;
        }
        rival->leaving = dismissed_reader{dismissal::taken_over, {}};
        decided.dismissed.push_back({rival->id, rival->stream});
    }
    if (is_counted)
        takeovers_.push_back(now);
    auto const budget = budget_of(reader);
    auto const staying = std::ranges::count_if(entries_, [](entry const& each) { return !each.leaving; });
    if (static_cast<std::size_t>(staying) + 1 > budget)
        if (auto const oldest = std::ranges::find_if(entries_, is_closable); oldest != entries_.end()) {
            oldest->leaving = dismissed_reader{dismissal::over_budget, {}};
            decided.dismissed.push_back({oldest->id, oldest->stream});
        }
    is_of_page_ = is_of_page_ || reader.is_of_page;
    if (request.insists) {
        remove_if(decided.removed, waits_for);
        std::erase_if(decided.dismissed, [&](place const& each) { return each.stream == request.stream; });
    }
    decided.waits = std::ranges::any_of(entries_, waits_for);
    entries_.push_back(
        {.id = reader.id,
         .stream = request.stream,
         .kind = request.kind,
         .can_return = reader.can_return,
         .took_over = took_over});
    return decided;
}

bool reader_table::detach(stream_id stream, reader_id const& reader)
{
    return std::erase_if(entries_, [&](entry const& each) { return each.stream == stream && each.id == reader; }) > 0;
}

bool reader_table::dismiss(stream_id stream, dismissed_reader how)
{
    auto const found
        = std::ranges::find_if(entries_, [&](entry const& each) { return each.stream == stream && !each.leaving; });
    if (found == entries_.end())
        return false;
    if (how.why == dismissal::asked && !found->can_return && found->kind == stream_kind::request)
        return false;
    found->leaving = how;
    return true;
}

std::vector<reader_table::place> reader_table::remove_all_of(std::string const& owner)
{
    std::vector<place> removed;
    remove_if(removed, [&](entry const& each) { return each.id.owner == owner; });
    return removed;
}

std::vector<reader_table::place> reader_table::remove_from(stream_id stream, std::string const& owner)
{
    std::vector<place> removed;
    remove_if(removed, [&](entry const& each) { return each.stream == stream && each.id.owner == owner; });
    return removed;
}

reader_table::entry* reader_table::find(stream_id stream, reader_id const& reader) noexcept
{
    auto const found
        = std::ranges::find_if(entries_, [&](entry const& each) { return each.stream == stream && each.id == reader; });
    return found == entries_.end() ? nullptr : &*found;
}

reader_table::entry const* reader_table::newest(stream_id stream) const noexcept
{
    for (auto const& each : std::views::reverse(entries_))
        if (each.stream == stream)
            return &each;
    return nullptr;
}

reader_table::entry const* reader_table::current(stream_id stream) const noexcept
{
    for (auto const& each : entries_)
        if (each.stream == stream && !each.leaving)
            return &each;
    return nullptr;
}

}
