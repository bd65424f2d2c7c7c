#include "engine/producer.hpp"

#include <algorithm>
#include <utility>

namespace belay::engine {

std::uint64_t producer::emit(store::bytes payload, base::time_point, producer_actions& out)
{
    auto const ticket = ++last_ticket_;
    if (is_finishing_) {
        out.push_back(resume_emit{ticket, make_error_code(errc::finished)});
        return ticket;
    }
    next_batch_.push_back({std::move(payload), store::event_kind::ordinary});
    next_tickets_.push_back(ticket);
    append_next(out);
    return ticket;
}

void producer::progress(store::bytes payload, base::time_point now, producer_actions& out, std::optional<double> value)
{
    if (is_finishing_)
        return;
    store::event_data event{std::move(payload), store::event_kind::ordinary};
    event.progress = value;
    if (last_progress_ && now < *last_progress_ + settings_.progress_gap) {
        progress_ = std::move(event);
        return;
    }
    last_progress_ = now;
    progress_.reset();
    next_batch_.push_back(std::move(event));
    append_next(out);
}

std::uint64_t producer::ask(store::bytes payload, std::uint32_t number, producer_actions& out, store::bytes key)
{
    auto const ticket = ++last_ticket_;
    if (is_finishing_) {
        out.push_back(asked{ticket, failure(errc::finished)});
        return ticket;
    }
    next_questions_.push_back({ticket, next_batch_.size()});
    next_batch_.push_back({std::move(payload), store::event_kind::question, number, std::move(key)});
    append_next(out);
    return ticket;
}

bool producer::answer(store::bytes response, bool is_last, producer_actions& out, std::uint32_t request)
{
    if (is_finishing_)
        return false;
    is_finishing_ = is_last;
    // The last progress before the result is always sent.
    if (progress_)
        next_batch_.push_back(*std::exchange(progress_, std::nullopt));
    answers_.push_back({std::move(response), store::event_kind::response, request});
    append_next(out);
    return true;
}

void producer::replace_answer(store::bytes response, producer_actions& out)
{
    answers_.front().payload = std::move(response);
    is_refused_ = false;
    is_alone_ = true;
    append_next(out);
}

void producer::append_next(producer_actions& out)
{
    if (is_appending_ || is_answered_ || is_refused_ || (next_batch_.empty() && answers_.empty()))
        return;
    is_appending_ = true;
    has_answer_ = !answers_.empty();
    std::vector<store::event_data> events;
    // The room that is set aside is for the answer: what others of its batch say meanwhile must not take it along.
    if (!std::exchange(is_alone_, false)) {
        events.swap(next_batch_);
        batch_tickets_.swap(next_tickets_);
        batch_questions_.swap(next_questions_);
    }
    if (has_answer_)
        events.push_back(answers_.front());
    batch_size_ = events.size();
    out.push_back(append_events{std::move(events), is_finishing_ && answers_.size() == 1});
}

void producer::appended(result<store::stream_top> top, base::time_point now, producer_actions& out)
{
    is_appending_ = false;
    auto const tickets = std::exchange(batch_tickets_, {});
    auto const questions = std::exchange(batch_questions_, {});
    if (!top) {
        for (auto const ticket : tickets)
            out.push_back(resume_emit{ticket, top.error()});
        for (auto const& each : questions)
            out.push_back(asked{each.ticket, std::unexpected(top.error())});
        if (has_answer_) {
            is_refused_ = true;
            out.push_back(answer_refused{top.error()});
        } else {
            append_next(out);
        }
        return;
    }
    top_ = *top;
    for (auto const& each : questions)
        out.push_back(asked{each.ticket, top_.sequence - batch_size_ + each.place + 1});
    bool const waits = must_wait(now);
    for (auto const ticket : tickets) {
        if (waits)
            waiting_.push_back({ticket, now});
        else
            out.push_back(resume_emit{ticket, {}});
    }
    if (has_answer_) {
        answers_.pop_front();
        is_answered_ = is_finishing_ && answers_.empty();
        if (is_answered_)
            release(out);
        out.push_back(answered{is_answered_});
    }
    append_next(out);
}

bool producer::must_wait(base::time_point now) const noexcept
{
    if (!settings_.waits || is_waived_ || is_finishing_)
        return false;
    if (!reader_.attached && (!detached_at_ || now >= *detached_at_ + settings_.grace))
        return false;
    return top_.sequence - std::min(top_.sequence, reader_.position) > settings_.window_events
        || top_.offset - std::min(top_.offset, reader_.offset) > settings_.window_bytes;
}

void producer::release(producer_actions& out)
{
    while (!waiting_.empty()) {
        out.push_back(resume_emit{waiting_.front().ticket, {}});
        waiting_.pop_front();
    }
}

void producer::reader_moved(store::reader_mark const& mark, base::time_point now, producer_actions& out)
{
    if (mark.attached && !reader_.attached)
        is_waived_ = false;
    if (!mark.attached && reader_.attached)
        detached_at_ = now;
    bool const has_moved = mark.position > reader_.position;
    reader_ = mark;
    if (!must_wait(now))
        release(out);
    else if (has_moved)
        for (auto& each : waiting_) // a reader that reads is slow, not stalled
            each.since = now;
}

void producer::tick(base::time_point now, producer_actions& out)
{
    if (progress_ && last_progress_ && now >= *last_progress_ + settings_.progress_gap) {
        auto held = *std::exchange(progress_, std::nullopt);
        progress(std::move(held.payload), now, out, held.progress);
    }
    if (waiting_.empty())
        return;
    if (!must_wait(now)) { // grace is over
        release(out);
    } else if (now >= waiting_.front().since + settings_.stall) {
        is_waived_ = true;
        if (reader_.attached)
            out.push_back(drop_reader{});
        release(out);
    }
}

std::optional<base::time_point> producer::next_tick() const noexcept
{
    std::optional<base::time_point> when;
    auto const consider = [&](base::time_point at) { when = when ? std::min(*when, at) : at; };
    if (progress_ && last_progress_)
        consider(*last_progress_ + settings_.progress_gap);
    if (!waiting_.empty()) {
        consider(waiting_.front().since + settings_.stall);
        if (!reader_.attached && detached_at_)
            consider(*detached_at_ + settings_.grace);
    }
    return when;
}

}
