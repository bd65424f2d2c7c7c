#include "runtime/question_ledger.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

void question_ledger::add(std::uint64_t number, std::uint32_t request, std::uint64_t ticket, answered done)
{
    questions_.push_back({number, request, ticket, std::move(done)});
}

std::optional<question_ledger::closed> question_ledger::close(std::uint64_t number)
{
    auto const found = std::ranges::find(questions_, number, &question::number);
    if (found == questions_.end() || found->is_closed)
        return std::nullopt;
    closed result{std::exchange(found->done, nullptr), std::nullopt};
    if (found->sequence == 0) {
        found->is_closed = true;
    } else {
        result.blank = found->sequence;
        questions_.erase(found);
    }
    return result;
}

std::vector<std::uint64_t> question_ledger::open_of(std::uint32_t request) const
{
    std::vector<std::uint64_t> numbers;
    for (auto const& each : questions_)
        if (each.request == request && !each.is_closed)
            numbers.push_back(each.number);
    return numbers;
}

std::optional<std::uint64_t> question_ledger::kept(std::uint64_t ticket, std::uint64_t sequence)
{
    auto const found = std::ranges::find(questions_, ticket, &question::ticket);
    if (found == questions_.end())
        return std::nullopt;
    if (found->is_closed) {
        questions_.erase(found);
        return sequence;
    }
    found->sequence = sequence;
    return std::nullopt;
}

question_ledger::answered question_ledger::lost(std::uint64_t ticket)
{
    auto const found = std::ranges::find(questions_, ticket, &question::ticket);
    if (found == questions_.end())
        return nullptr;
    auto done = std::move(found->done);
    questions_.erase(found);
    return done;
}

}
