#include "runtime/following.hpp"

#include "protocol/endings.hpp"
#include "runtime/node.hpp"

#include <utility>

namespace belay::runtime {

namespace {

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

}

following::following(
    node& node, std::shared_ptr<live_session> session, base::loop& loop, engine::connection_id id,
    store::stream_key stream, start_position from, priming_style priming, bool can_return, bool waits)
    : node_(node), session_(std::move(session)), loop_(loop), id_(id), stream_(std::move(stream)), from_(from),
      priming_(priming), can_return_(can_return), is_allowed_(!waits),
      settings_(settings_for(node.settings(), can_return)), wake_pending_(std::make_shared<std::atomic<bool>>(false)),
      tick_(loop.timers(), [this] {
          if (machine_) {
              machine_->tick(loop_.now(), actions_);
              perform();
          }
      })
{
}

following::~following() = default;

void following::announce()
{
    is_announced_ = true;
    store::reader_mark mark;
    mark.attached = true;
    node_.store().note_reader(stream_, mark);
}

void following::start(std::shared_ptr<event_sink> sink)
{
    sink_ = std::move(sink);
    {
        std::lock_guard const lock(session_->mutex);
        sink_view_ = sink_.get();
    }
    if (is_allowed_)
        begin();
}

void following::allow()
{
    loop_.post([self = shared_from_this()] {
        self->is_allowed_ = true;
        if (self->sink_ && !self->has_left_)
            self->begin();
    });
}

void following::begin()
{
    if (std::exchange(is_begun_, true))
        return;
    // Watch first, then read: what comes in between is a wake-up, not a loss.
    watch_ = node_.store().watch(
        stream_, store::event_store::interest::growth,
        [weak = weak_from_this(), pending = wake_pending_, &loop = loop_] {
            if (pending->exchange(true))
                return;
            loop.post([weak, pending] {
                pending->store(false);
                if (auto const self = weak.lock())
                    self->wake_hint();
            });
        });
    if (from_.sequence && *from_.sequence > 0 && node_.settings().redeliver_requests)
        return collect_questions();
    if (from_.sequence)
        return open(*from_.sequence);
    node_.store().read_after(stream_, ~std::uint64_t(0), {0, 0}, [self = shared_from_this()](result<store::page> page) {
        if (self->has_left_)
            return;
        if (!page) {
            self->sink_->end([] {});
            return self->leave(engine::close_reason::session_ended);
        }
        bool const has_backlog = self->node_.settings().backlog == backlog_policy::undelivered;
        self->open(has_backlog ? page->state.reader.delivered : page->state.top.sequence);
    });
}

void following::collect_questions()
{
    node_.store().read_after(
        stream_, 0, {~std::size_t(0), ~std::size_t(0)}, [self = shared_from_this()](result<store::page> page) {
            if (self->has_left_)
                return;
            auto const position = *self->from_.sequence;
            if (page)
                for (auto const& event : page->events)
                    if (event.kind == store::event_kind::question && event.sequence <= position)
                        self->unanswered_.push_back(event.payload);
            self->open(position);
        });
}

void following::open(std::uint64_t position)
{
    auto const priming
        = priming_ == priming_style::none ? engine::follower::priming::no : engine::follower::priming::yes;
    machine_.emplace(position, priming, from_.restarted, settings_, loop_.now());
    if (from_.replay_end)
        machine_->announce_catching_up(*from_.replay_end);
    machine_->open(actions_);
    if (early_close_)
        machine_->close(early_close_->first, early_close_->second, actions_);
    perform();
}

void following::wake_hint()
{
    if (!machine_ || has_left_)
        return;
    machine_->woken(actions_);
    perform();
}

void following::drained()
{
    if (!machine_ || has_left_)
        return;
    machine_->drained(sink_->written(), actions_);
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
    if (reason == engine::close_reason::asked && !can_return_)
        return;
    if (machine_) {
        machine_->close(reason, retry, actions_);
        return perform();
    }
    if (sink_ && !is_begun_) { // still waiting for its predecessor
        sink_->end([] {});
        return leave(reason);
    }
    early_close_.emplace(reason, retry);
}

void following::abandon()
{
    // Never opened, so there is no mark to leave behind.
    leave(engine::close_reason::refused);
}

void following::perform()
{
    if (is_performing_)
        return;
    is_performing_ = true;
    auto const self = shared_from_this();
    std::optional<engine::close_reason> left;
    auto const hide_sink = [&] { // from here on it is not for other loops to ask
        std::lock_guard const lock(session_->mutex);
        forget_sink();
    };
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
                        ids_->append(id_text_, send.sequence, node_.next_nonce());
                        sink_->write_priming(id_text_, node_.retry_delay(), priming_);
                        for (auto const& question : std::exchange(unanswered_, {}))
                            sink_->write_event(id_of(send.sequence), *question);
                    },
                    [&](engine::send_gap const& gap) {
                        node_.metrics().gaps_told.Increment();
                        sink_->write_event(id_of(gap.to), protocol::gap_notice(gap.from, gap.to, gap.restarted));
                    },
                    [&](engine::send_comment const& comment) { sink_->write_comment(comment.text); },
                    [&](engine::send_retry const& retry) { sink_->write_retry(retry.delay); },
                    [&](engine::flush_output) {
                        if (sink_->flush())
                            machine_->drained(sink_->written(), actions_);
                    },
                    [&](engine::read_log const& read) {
                        node_.store().read_after(stream_, read.after, settings_.page, [self](result<store::page> page) {
                            if (self->has_left_)
                                return;
                            if (page)
                                self->machine_->page_read(*page, self->loop_.now(), self->actions_);
                            else
                                self->machine_->read_failed(
                                    page.error() == errc::not_found ? errc::not_found : errc::unavailable,
                                    self->actions_);
                            self->perform();
                        });
                    },
                    [&](engine::note_mark const& note) { node_.store().note_reader(stream_, note.mark); },
                    [&](engine::ask_arrived) {
                        machine_->arrived(sink_->written(), sink_->unacknowledged(), actions_);
                    },
                    [&](engine::end_output const& end) {
                        hide_sink();
                        left = end.reason;
                        if (end.reason == engine::close_reason::finished)
                            return end_finished();
                        auto const written = sink_->written();
                        auto const unacknowledged = sink_->unacknowledged();
                        sink_->end([] {});
                        machine_->detach(written, unacknowledged, actions_);
                    },
                    [&](engine::abort_output const& abort) {
                        hide_sink();
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
    auto receipt = sink_->end([&node = node_, stream = stream_, position = machine_->position()] {
        node.store().note_delivered(stream, position);
    });
    if (!receipt)
        return;
    std::lock_guard const lock(session_->mutex);
    session_->expect(loop_, receipt);
}

void following::arm()
{
    // Moved to an earlier time only: output moves the next tick, but an early look costs nothing.
    auto when = machine_->next_tick();
    if (tick_.is_armed() && tick_at_ <= when)
        return;
    when = std::max(when, loop_.now() + std::chrono::seconds(1));
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
    if (is_announced_ && (!machine_ || !machine_->has_read()))
        node_.store().note_reader(stream_, {}); // counted on, and never came
    node_.metrics().connection_closed(engine::to_string(reason));
    node_.detached(*session_, *this, loop_.now());
    sink_.reset();
}

}
