#include "engine/follower.hpp"

#include <algorithm>
#include <utility>

namespace belay::engine {

namespace {

// A last page up to this size ends the answer in the same write; a larger one is drained first.
constexpr std::size_t end_at_once_bytes = 64 * 1024;

// How many writes are remembered for the delivered mark before the kernel is asked how far they came.
constexpr std::size_t remembered_writes = 32;

// So long after a write the kernel is asked. A store that outlives the node has the mark by then.
constexpr base::duration arrival_time = std::chrono::seconds(1);

// So long after the store could not answer it is asked again.
constexpr base::duration read_again_time = std::chrono::seconds(1);

}

std::string_view to_string(close_reason reason) noexcept
{
    switch (reason) {
    case close_reason::finished: return "finished";
    case close_reason::peer_gone: return "peer_gone";
    case close_reason::taken_over: return "taken_over";
    case close_reason::over_budget: return "over_budget";
    case close_reason::asked: return "asked";
    case close_reason::aged: return "aged";
    case close_reason::stalled: return "stalled";
    case close_reason::session_ended: return "session_ended";
    case close_reason::cut_off: return "cut_off";
    case close_reason::draining: return "draining";
    case close_reason::failed: return "failed";
    case close_reason::refused: return "refused";
    }
    return "?";
}

follower::follower(
    std::uint64_t position, priming priming, bool restarted, follower_settings const& settings, base::time_point now)
    : settings_(settings), position_(position), delivered_(position), noted_(position), priming_(priming),
      restarted_(restarted), opened_(now), last_output_(now)
{
}

void follower::open(follower_actions& out)
{
    prime(out);
    out.push_back(read_log{position_});
}

void follower::open(store::page const& first, base::time_point now, follower_actions& out)
{
    prime(out);
    page_read(first, now, out);
}

void follower::prime(follower_actions& out)
{
    // The priming event waits for the first page, so that both leave in one write.
    is_reading_ = true;
    has_news_ = false;
    if (priming_ == priming::yes) {
        out.push_back(send_priming{position_});
        has_output_ = true;
    }
}

void follower::woken(follower_actions& out)
{
    has_news_ = true;
    advance(out);
}

void follower::page_read(store::page const& page, base::time_point now, follower_actions& out)
{
    if (is_done_)
        return;
    is_reading_ = false;
    bool const ends_here = is_last(page);
    if (is_first_page_) {
        is_first_page_ = false;
        sent_ = page.state.reader.sent;
        delivered_ = std::max(position_, page.state.reader.delivered);
        has_output_ = true; // the head of the answer, even if there is nothing else
    }
    auto const tell_gap = [&](std::uint64_t to) {
        out.push_back(send_gap{position_ + 1, to, std::exchange(restarted_, false)});
        position_ = to;
        has_output_ = true;
    };
    if (restarted_ && !page.events.empty() && page.events.front().sequence == position_ + 1) {
        // The log began anew: what was missed cannot be counted, but it is told.
        out.push_back(send_gap{position_ + 1, position_, true});
        restarted_ = false;
    }
    for (auto const& event : page.events) {
        if (event.sequence <= position_)
            continue;
        if (event.sequence > position_ + 1)
            tell_gap(event.sequence - 1);
        out.push_back(send_event{event.sequence, event.payload});
        ++given_;
        position_ = event.sequence;
        offset_ = event.end_offset;
        has_output_ = true;
        tell_caught_up(out);
    }
    if (page.events.empty() && position_ < page.state.top.sequence) {
        tell_gap(page.state.top.sequence);
        offset_ = page.state.top.offset;
    }
    if (restarted_ && page.events.empty()) {
        out.push_back(send_gap{position_ + 1, position_, true});
        restarted_ = false;
        has_output_ = true;
    }
    tell_caught_up(out);
    sent_ = std::max(sent_, position_);
    if (position_ < page.state.top.sequence)
        has_news_ = true;
    else if (page.state.finished)
        is_finished_ = true;
    if (ends_here)
        return finish(close_reason::finished, out);
    if (has_output_) {
        last_output_ = now;
        is_writing_ = true;
        has_output_ = false;
        out.push_back(flush_output{});
    } else {
        advance(out);
    }
}

/// Whether the stream ends with the page, in one write.
bool follower::is_last(store::page const& page) const noexcept
{
    std::size_t bytes = 0;
    for (auto const& event : page.events)
        bytes += event.sequence > position_ ? event.payload->size() : 0;
    bool const is_rest = page.events.empty() || page.events.back().sequence >= page.state.top.sequence
        || position_ >= page.state.top.sequence;
    return page.state.finished && is_rest && bytes <= end_at_once_bytes;
}

void follower::tell_caught_up(follower_actions& out)
{
    if (!replay_end_ || position_ < *replay_end_)
        return;
    replay_end_.reset();
    out.push_back(send_comment{"caught up"});
    has_output_ = true;
}

void follower::read_failed(errc why, base::time_point now, follower_actions& out)
{
    if (is_done_)
        return;
    is_reading_ = false;
    if (why == errc::unavailable) {
        // The connection costs nothing meanwhile, and its client would only ask somebody else who cannot say.
        read_again_at_ = now + read_again_time;
        if (closing_ && !reads_once_more_)
            finish(*closing_, out);
        return;
    }
    finish(why == errc::not_found ? close_reason::session_ended : close_reason::failed, out);
}

void follower::dismissed(close_reason reason, std::optional<std::chrono::milliseconds> retry, follower_actions& out)
{
    is_reading_ = false;
    close(reason, retry, out);
    advance(out); // it may have been closing already, and have waited for this
}

void follower::drained(std::uint64_t written, base::time_point now, follower_actions& out)
{
    if (is_done_ || !is_writing_)
        return;
    is_writing_ = false;
    // In the kernel's hands is not delivered.
    if (position_ > (writes_.empty() ? delivered_ : writes_.back().sequence)) {
        writes_.push_back({written, position_});
        if (writes_.size() >= remembered_writes)
            out.push_back(ask_arrived{});
    }
    if (position_ != noted_)
        note_soon(now, out);
    advance(out);
}

void follower::arrived(std::uint64_t written, std::uint64_t unacknowledged, base::time_point now, follower_actions& out)
{
    if (is_done_)
        return;
    auto const before = delivered_;
    confirm(written, unacknowledged);
    if (delivered_ != before)
        note_soon(now, out);
    if (writes_.size() >= remembered_writes) { // a slow peer: every second one says enough
        std::size_t kept = 0;
        for (std::size_t at = 1; at < writes_.size(); at += 2)
            writes_[kept++] = writes_[at];
        if (writes_.size() % 2 == 1)
            writes_[kept++] = writes_.back();
        writes_.resize(kept);
    }
}

void follower::confirm(std::uint64_t written, std::uint64_t unacknowledged)
{
    auto const arrived = written - std::min(written, unacknowledged);
    auto const open = std::ranges::find_if(writes_, [&](auto const& each) { return each.bytes > arrived; });
    if (open != writes_.begin())
        delivered_ = std::max(delivered_, std::prev(open)->sequence);
    if (open == writes_.end())
        std::vector<struct written>().swap(writes_); // an idle connection keeps no memory for it
    else
        writes_.erase(writes_.begin(), open);
}

void follower::tick(base::time_point now, follower_actions& out)
{
    if (is_done_)
        return;
    if (!writes_.empty())
        out.push_back(ask_arrived{});
    if (mark_due_ && now >= *mark_due_)
        note_soon(now, out);
    if (read_again_at_ && now >= *read_again_at_ && !is_reading_) {
        read_again_at_.reset();
        has_news_ = true;
        advance(out);
    }
    if (is_writing_ || is_reading_ || closing_)
        return;
    if (settings_.max_age > base::duration::zero() && now >= opened_ + settings_.max_age) {
        close(close_reason::aged, std::nullopt, out);
        return;
    }
    if (now >= last_output_ + settings_.keepalive) {
        out.push_back(send_comment{"keepalive"});
        out.push_back(flush_output{});
        last_output_ = now;
        is_writing_ = true;
    }
}

void follower::close(close_reason reason, std::optional<std::chrono::milliseconds> retry, follower_actions& out)
{
    bool const is_urgent
        = reason == close_reason::stalled || reason == close_reason::taken_over || reason == close_reason::cut_off;
    if (is_done_ || (closing_ && !is_urgent))
        return;
    if (is_writing_ && is_urgent) {
        // Nothing more would get through, or nobody wants it; the log has what was not read.
        is_done_ = true;
        out.push_back(abort_output{reason});
        return;
    }
    if (!closing_) {
        closing_ = reason;
        retry_ = retry;
        // There may be nothing to come back to: what the log has by now goes out first. The wake-up for it can be
        // behind this, because a loop's own posts and those of other loops keep no order between them.
        reads_once_more_ = reason == close_reason::draining;
    }
    advance(out);
}

void follower::advance(follower_actions& out)
{
    if (is_done_ || is_writing_)
        return;
    if (is_finished_)
        return finish(close_reason::finished, out);
    if (is_reading_)
        return;
    if (closing_ && !reads_once_more_)
        return finish(*closing_, out);
    if (std::exchange(reads_once_more_, false) || has_news_) {
        has_news_ = false;
        is_reading_ = true;
        out.push_back(read_log{position_});
    }
}

void follower::finish(close_reason reason, follower_actions& out)
{
    is_done_ = true;
    if (retry_ && reason != close_reason::finished)
        out.push_back(send_retry{*retry_});
    if (reason == close_reason::taken_over)
        out.push_back(send_comment{"taken over by a newer connection"});
    if (reason == close_reason::finished) // whether the rest arrives is told when it has
        note(out, false);
    out.push_back(end_output{reason});
}

void follower::detach(std::uint64_t written, std::uint64_t unacknowledged, follower_actions& out)
{
    is_done_ = true;
    if (is_first_page_) // it knows nothing of the stream that could be noted
        return;
    confirm(written, unacknowledged);
    note(out, false);
}

void follower::note(follower_actions& out, bool attached)
{
    noted_ = position_;
    noted_offset_ = offset_;
    mark_due_.reset();
    out.push_back(note_mark{{attached, position_, offset_, sent_, std::exchange(given_, 0), delivered_}});
}

void follower::note_soon(base::time_point now, follower_actions& out)
{
    bool const is_much = position_ - noted_ >= settings_.mark_events || offset_ - noted_offset_ >= settings_.mark_bytes;
    if (!is_much && noted_at_ && now < *noted_at_ + settings_.mark_gap) {
        mark_due_ = *noted_at_ + settings_.mark_gap;
        return;
    }
    noted_at_ = now;
    note(out, true);
}

base::time_point follower::next_tick() const noexcept
{
    auto when = last_output_ + settings_.keepalive;
    if (settings_.max_age > base::duration::zero())
        when = std::min(when, opened_ + settings_.max_age);
    if (!writes_.empty())
        when = std::min(when, last_output_ + arrival_time);
    if (read_again_at_)
        when = std::min(when, *read_again_at_);
    if (mark_due_)
        when = std::min(when, *mark_due_);
    return when;
}

}
