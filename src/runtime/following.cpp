#include "runtime/following.hpp"

#include "protocol/endings.hpp"
#include "runtime/context.hpp"
#include "runtime/hints.hpp"
#include "runtime/live_session.hpp"

#include <utility>

namespace belay::runtime {

namespace {

using interest = store::event_store::interest;

// So long a newcomer waits for its predecessor to say how far it came. One whose node is gone never says it.
constexpr base::duration predecessor_limit = std::chrono::seconds(1);

template<class... Fs>
struct overloaded : Fs... {
    using Fs::operator()...;
};
template<class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;

engine::follower_settings settings_for(settings const& settings, bool can_return)
{
    auto chosen = settings.follower;
    if (!can_return)
        chosen.max_age = base::duration::zero();
    return chosen;
}

engine::close_reason reason_for(store::dismissal why) noexcept
{
    switch (why) {
    case store::dismissal::taken_over: return engine::close_reason::taken_over;
    case store::dismissal::over_budget: return engine::close_reason::over_budget;
    case store::dismissal::asked: return engine::close_reason::asked;
    case store::dismissal::stalled: return engine::close_reason::stalled;
    }
    return engine::close_reason::taken_over;
}

}

following::following(
    node_context& context, std::shared_ptr<live_session> session, base::loop& loop, store::reader_id reader,
    store::stream_key stream, priming_style priming, bool can_return)
    : context_(context), session_(std::move(session)), loop_(loop), reader_(std::move(reader)),
      stream_(std::move(stream)), priming_(priming), settings_(settings_for(context.settings(), can_return)),
      tick_(loop.timers(), [this] {
          if (machine_) {
              if (std::exchange(asks_again_, false))
                  ask_whether_dismissed();
              machine_->tick(loop_.now(), actions_);
              perform();
          } else if (is_begun_ && !has_left_) {
              try_again(true);
          }
      })
{
}

following::~following() = default;

void following::follow_new(std::uint64_t epoch)
{
    ids_.emplace(stream_.stream, epoch);
}

void following::watch()
{
    watch_ = context_.store().watch(
        stream_, interest::growth | interest::dismissal,
        hints_to(loop_, weak_from_this(), [](following& self, interest what) { self.wake_hint(what); }));
}

void following::attach(store::attach_request request, store::completion<void> done)
{
    // Watch first, then read: what comes in between is a wake-up, not a loss.
    watch();
    request_ = std::move(request);
    request_->limit = settings_.page;
    context_.store().attach(
        stream_, *request_,
        [self = shared_from_this(), done = std::move(done)](result<store::attached_stream> attached) mutable {
            if (!attached) {
                self->watch_.reset();
                // Attached or not, it does not stay.
                if (attached.error() == errc::unavailable)
                    self->context_.store().detach(self->stream_, self->reader_, std::nullopt);
                return done(std::unexpected(attached.error()));
            }
            self->attached_ = std::move(*attached);
            self->is_standalone_ = self->attached_->kind == store::stream_kind::standalone;
            done({});
        });
}

void following::start(std::shared_ptr<event_sink> sink)
{
    sink_ = std::move(sink);
    session_->show_sink(*this);
    if (std::exchange(is_begun_, true) || has_left_)
        return;
    if (attached_ && attached_->waits)
        return wait_for_predecessor();
    begin();
}

void following::wait_for_predecessor()
{
    predecessor_watch_ = context_.store().watch(
        stream_, interest::reader,
        hints_to(loop_, weak_from_this(), [](following& self, interest) { self.try_again(false); }));
    tick_.after(predecessor_limit);
    try_again(false); // it may have left before it was watched
}

void following::try_again(bool insists)
{
    if (machine_ || has_left_ || !request_)
        return;
    request_->insists = request_->insists || insists;
    if (std::exchange(is_attaching_, true)) {
        was_woken_ = true;
        return;
    }
    context_.store().attach(stream_, *request_, [self = shared_from_this()](result<store::attached_stream> attached) {
        self->is_attaching_ = false;
        if (self->has_left_)
            return;
        if (attached && !attached->waits) {
            self->attached_ = std::move(*attached);
            self->predecessor_watch_.reset();
            self->tick_.cancel();
            return self->begin();
        }
        if (attached || attached.error() == errc::unavailable) {
            if (!self->tick_.is_armed())
                self->tick_.after(predecessor_limit);
            // Somebody left, or time was up, while the store was asked.
            if (std::exchange(self->was_woken_, false))
                self->try_again(false);
            return;
        }
        // A newer one has come, or there is nothing to follow any more.
        self->sink_->end([] {});
        self->leave(
            attached.error() == errc::not_found ? engine::close_reason::session_ended
                                                : engine::close_reason::taken_over);
    });
}

void following::begin()
{
    if (!attached_)
        return begin_new();
    ids_.emplace(stream_.stream, attached_->first.state.top.epoch);
    unanswered_ = std::exchange(attached_->questions, {});
    open(attached_->start, std::exchange(attached_->first, {}));
}

void following::begin_new()
{
    // Read before it watches: a call that has ended by now is all there. Of another, what has come in between is read
    // afterwards.
    open(0, std::nullopt);
    if (has_left_)
        return;
    watch();
    machine_->woken(actions_);
    if (actions_.empty()) // it writes, and reads when its peer has
        ask_whether_dismissed();
    perform();
}

void following::open(std::uint64_t position, std::optional<store::page> first)
{
    auto const priming
        = priming_ == priming_style::none ? engine::follower::priming::no : engine::follower::priming::yes;
    machine_.emplace(position, priming, attached_ && attached_->is_other_epoch, settings_, loop_.now());
    if (first && request_->from)
        machine_->announce_catching_up(first->state.top.sequence);
    if (!first)
        machine_->open(actions_);
    else if (first->dismissed)
        machine_->dismissed(reason_for(first->dismissed->why), first->dismissed->retry, actions_);
    else
        machine_->open(*first, loop_.now(), actions_);
    if (early_close_)
        machine_->close(early_close_->first, early_close_->second, actions_);
    else if (first && first->state.session_closed && is_standalone_)
        machine_->close(engine::close_reason::session_ended, std::nullopt, actions_);
    if (std::exchange(was_woken_, false))
        machine_->woken(actions_);
    perform();
}

void following::wake_hint(interest what)
{
    if (has_left_)
        return;
    if (!machine_) {
        was_woken_ = true;
        return;
    }
    if (what == interest::dismissal)
        return ask_whether_dismissed();
    machine_->woken(actions_);
    perform();
}

void following::ask_whether_dismissed()
{
    // By a question of its own: a connection that its peer does not read from does not read the log either.
    context_.store().read_after(
        stream_, machine_->position(), {0, 0}, reader_, [self = shared_from_this()](result<store::page> page) {
            if (self->has_left_)
                return;
            if (!page && page.error() == errc::unavailable) {
                self->asks_again_ = true;
                self->arm();
            } else if (page && page->dismissed) {
                self->leave_for(*page->dismissed);
            }
        });
}

void following::leave_for(store::dismissed_reader const& how)
{
    auto retry = how.retry;
    if (!retry && how.why != store::dismissal::taken_over)
        retry = context_.retry_delay();
    close_here(reason_for(how.why), retry);
}

void following::drained()
{
    if (!machine_ || has_left_)
        return;
    machine_->drained(sink_->written(), loop_.now(), actions_);
    perform();
}

void following::peer_gone()
{
    if (has_left_)
        return;
    if (machine_) {
        machine_->detach(sink_->written(), sink_->unacknowledged(), actions_);
        perform();
    }
    leave(engine::close_reason::peer_gone);
}

void following::close(engine::close_reason reason, std::optional<std::chrono::milliseconds> retry)
{
    loop_.post([self = shared_from_this(), reason, retry] { self->close_here(reason, retry); });
}

void following::close_here(engine::close_reason reason, std::optional<std::chrono::milliseconds> retry)
{
    if (has_left_)
        return;
    if (machine_) {
        machine_->close(reason, retry, actions_);
        return perform();
    }
    if (sink_ && is_begun_) { // still waiting for its predecessor
        sink_->end([] {});
        return leave(reason);
    }
    early_close_.emplace(reason, retry);
}

void following::read(std::uint64_t after)
{
    context_.store().read_after(
        stream_, after, settings_.page, reader_, [self = shared_from_this()](result<store::page> page) {
            if (self->has_left_)
                return;
            if (!page) {
                self->machine_->read_failed(
                    page.error() == errc::not_found         ? errc::not_found
                        : page.error() == errc::stream_gone ? errc::stream_gone
                                                            : errc::unavailable,
                    self->loop_.now(), self->actions_);
            } else if (page->dismissed) {
                // What it would still be told, its successor is told.
                auto retry = page->dismissed->retry;
                if (!retry && page->dismissed->why != store::dismissal::taken_over)
                    retry = self->context_.retry_delay();
                self->machine_->dismissed(reason_for(page->dismissed->why), retry, self->actions_);
            } else {
                self->machine_->page_read(*page, self->loop_.now(), self->actions_);
                if (page->state.session_closed && self->is_standalone_)
                    self->machine_->close(engine::close_reason::session_ended, std::nullopt, self->actions_);
            }
            self->perform();
        });
}

void following::perform()
{
    if (is_performing_)
        return;
    is_performing_ = true;
    auto const self = shared_from_this();
    std::optional<engine::close_reason> left;
    auto const id_of = [&](std::uint64_t sequence) -> std::string_view {
        id_text_.clear();
        ids_->append(id_text_, sequence);
        return id_text_;
    };
    while (!actions_.empty()) {
        // An idle follower keeps no memory for actions; a busy one gets its own back.
        performing_.clear();
        performing_.swap(actions_);
        for (auto const& action : performing_)
            std::visit(
                overloaded{
                    [&](engine::send_event const& send) {
                        if (send.payload->empty())
                            sink_->write_id(id_of(send.sequence), priming_);
                        else
                            sink_->write_event(id_of(send.sequence), *send.payload);
                    },
                    [&](engine::send_priming const& send) {
                        id_text_.clear();
                        ids_->append(id_text_, send.sequence, context_.next_nonce());
                        sink_->write_priming(id_text_, context_.retry_delay(), priming_);
                        for (auto const& question : std::exchange(unanswered_, {}))
                            sink_->write_event(id_of(send.sequence), *question);
                    },
                    [&](engine::send_gap const& gap) {
                        context_.metrics().gaps_told.Increment();
                        sink_->write_event(id_of(gap.to), protocol::gap_notice(gap.from, gap.to, gap.restarted));
                    },
                    [&](engine::send_comment const& comment) { sink_->write_comment(comment.text); },
                    [&](engine::send_retry const& retry) { sink_->write_retry(retry.delay); },
                    [&](engine::flush_output) {
                        if (sink_->flush())
                            machine_->drained(sink_->written(), loop_.now(), actions_);
                    },
                    [&](engine::read_log const& log) { read(log.after); },
                    [&](engine::note_mark const& note) {
                        if (note.mark.attached)
                            context_.store().note_reader(stream_, reader_, note.mark);
                        else if (!std::exchange(is_detached_, true))
                            context_.store().detach(stream_, reader_, note.mark);
                    },
                    [&](engine::ask_arrived) {
                        machine_->arrived(sink_->written(), sink_->unacknowledged(), loop_.now(), actions_);
                    },
                    [&](engine::end_output const& end) {
                        session_->hide_sink(*this);
                        left = end.reason;
                        if (end.reason == engine::close_reason::finished)
                            return end_finished();
                        auto const written = sink_->written();
                        auto const unacknowledged = sink_->unacknowledged();
                        sink_->end([] {});
                        machine_->detach(written, unacknowledged, actions_);
                    },
                    [&](engine::abort_output const& abort) {
                        session_->hide_sink(*this);
                        auto const written = sink_->written();
                        auto const unacknowledged = sink_->unacknowledged();
                        sink_->abort();
                        machine_->detach(written, unacknowledged, actions_);
                        left = abort.reason;
                    },
                },
                action);
    }
    is_performing_ = false;
    if (performing_.capacity() > 16)
        engine::follower_actions().swap(performing_);
    performing_.clear();
    if (left)
        leave(*left);
    else if (!has_left_)
        arm();
}

void following::end_finished()
{
    // The answer is the caller's when its machine has it, which is known later.
    auto receipt = sink_->end([&context = context_, stream = stream_, position = machine_->position()] {
        context.store().note_delivered(stream, position);
    });
    if (receipt)
        session_->expect(loop_, receipt);
}

void following::arm()
{
    // Moved to an earlier time only: output moves the next tick, but an early look costs nothing.
    auto when = asks_again_ ? loop_.now() : machine_->next_tick();
    if (tick_.is_armed() && tick_at_ <= when)
        return;
    when = std::max(when, loop_.now() + std::chrono::seconds(1));
    if (auto const due = machine_->mark_due()) // a call may wait for that
        when = std::min(when, *due);
    if (tick_.is_armed() && tick_at_ <= when)
        return;
    tick_at_ = when;
    tick_.at(when);
}

void following::leave(engine::close_reason reason)
{
    if (std::exchange(has_left_, true))
        return;
    auto const self = shared_from_this();
    tick_.cancel();
    watch_.reset();
    predecessor_watch_.reset();
    if (!std::exchange(is_detached_, true))
        context_.store().detach(stream_, reader_, std::nullopt); // it knows nothing of the stream that could be noted
    context_.metrics().connection_closed(engine::to_string(reason));
    if (session_->remove(*this))
        context_.departures().connection_left();
    sink_.reset();
}

}
