#include "runtime/call.hpp"

#include "engine/cursor.hpp"
#include "protocol/message.hpp"
#include "protocol/names.hpp"
#include "runtime/context.hpp"
#include "runtime/direct_output.hpp"
#include "runtime/hints.hpp"
#include "runtime/live_session.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

constexpr base::duration never = std::chrono::hours(24 * 365);

// So long after the store could not answer it is asked again.
constexpr base::duration ask_again_time = std::chrono::milliseconds(500);

using interest = store::event_store::interest;

bool is_outcome_unknown(std::error_code error)
{
    return error == errc::unavailable;
}

/// Nothing that is appended from here will be there.
bool is_lost(std::error_code error)
{
    return error == errc::fenced || error == errc::not_found || error == errc::stream_gone || error == errc::finished;
}

engine::flow_settings flow_for(settings const& settings, call_traits const& traits)
{
    auto flow = settings.flow;
    flow.waits = flow.waits && traits.waits_for_reader;
    return flow;
}

}

call::call(
    node_context& context, call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop,
    store::stream_id stream, store::fence fence, std::string id, call_traits traits, held_answer answer)
    : context_(context), keeper_(keeper), session_(std::move(session)), loop_(loop), stream_{session_->key, stream},
      fence_(fence), id_(std::move(id)), traits_(traits), held_(std::move(answer)), has_stream_(!held_),
      flow_(flow_for(context.settings(), traits)), machine_(flow_),
      pending_(std::make_shared<std::atomic<std::uint8_t>>(std::uint8_t(0))),
      deadline_(loop.timers(), [this] { end(protocol::end_reason::timed_out); }),
      orphan_(loop.timers(), [this] { end(protocol::end_reason::orphaned); }),
      tick_(
          loop.timers(),
          [this] {
              machine_.tick(loop_.now(), actions_);
              perform();
          }),
      again_(loop.timers(), [this] { ask_again(); })
{
}

call::call(
    node_context& context, call_keeper& keeper, std::shared_ptr<live_session> session, base::loop& loop,
    std::shared_ptr<direct_output> output, std::string id, call_traits traits)
    : call(context, keeper, std::move(session), loop, 0, 0, std::move(id), traits, nullptr)
{
    direct_ = std::move(output);
    flow_.stall = never; // whoever cannot come back is not sent away; its connection has a time limit for writing
}

call::call(std::shared_ptr<call> batch, std::uint32_t number, std::string id, call_traits traits)
    : call(
          batch->context_, batch->keeper_, batch->session_, batch->loop_, batch->stream_.stream, batch->fence_,
          std::move(id), traits, nullptr)
{
    batch_ = std::move(batch);
    number_ = number;
    batch_->members_.push_back(this);
}

call::~call() = default;

void call::begin()
{
    auto const limit = traits_.max_duration.value_or(context_.settings().call_max);
    if (limit > base::duration::zero())
        deadline_.after(limit);
    if (direct_)
        return reader_moved();
    if (!has_stream() || is_member())
        return;
    watch_ = context_.store().watch(
        stream_, interest::reader | interest::mail,
        hints_to(loop_, pending_, weak_from_this(), [](call& self, interest what) { self.hint(what); }));
    // It was opened with a reader: flow control holds from the first event, whenever the store says where it is.
    store::reader_mark opened_with;
    opened_with.attached = true;
    machine_.reader_moved(opened_with, loop_.now(), actions_);
    read_reader();
}

void call::hint(interest what)
{
    if (is_done_)
        return;
    if (what == interest::mail)
        read_mail();
    else
        read_reader();
}

void call::expect_answers(std::size_t count)
{
    open_answers_ = count;
    deadline_.cancel();
}

base::logger call::logger() const
{
    auto const stream = has_stream_ && !direct_ ? stream_log_name(stream_.stream) : std::string("none");
    auto log = context_.log().with("session", session_->name).with("stream", stream);
    return trace_ ? log.with("trace", trace_->trace_id) : log;
}

void call::log(base::log_level level, std::string_view message, std::string_view reason) const
{
    if (context_.log().enabled(level))
        logger().log_fields(level, message, {{"reason", reason}});
}

void call::reader_moved()
{
    machine_.reader_moved(direct_->reader(), loop_.now(), actions_);
    if (direct_->is_caught_up()) {
        tell_late_progress();
        for (auto* const each : std::vector(members_))
            each->tell_late_progress();
    }
    perform();
}

void call::tell_late_progress()
{
    if (late_progress_.empty())
        return;
    auto& on = batch_ ? *batch_ : *this;
    auto message = std::make_shared<std::string const>(std::exchange(late_progress_, {}));
    (void)on.machine_.emit(std::move(message), loop_.now(), on.actions_);
}

void call::read_reader()
{
    context_.store().reader(stream_, [self = shared_from_this()](result<store::reader_mark> mark) {
        if (self->is_done_)
            return;
        if (!mark) {
            if (is_outcome_unknown(mark.error())) {
                self->reads_reader_again_ = true;
                self->again_.after(ask_again_time);
            }
            return;
        }
        if (mark->attached || self->is_ended_)
            self->orphan_.cancel();
        else if (self->traits_.orphan_limit && !self->orphan_.is_armed())
            self->orphan_.after(*self->traits_.orphan_limit);
        self->machine_.reader_moved(*mark, self->loop_.now(), self->actions_);
        self->perform();
    });
}

void call::read_mail()
{
    if (is_done_)
        return;
    if (std::exchange(is_reading_mail_, true)) {
        has_more_mail_ = true;
        return;
    }
    has_more_mail_ = false;
    context_.store().read_mail(
        stream_, fence_, last_letter_, [self = shared_from_this()](result<std::vector<store::letter>> letters) {
            self->is_reading_mail_ = false;
            if (self->is_done_)
                return;
            if (letters) {
                for (auto& each : *letters) {
                    self->last_letter_ = std::max(self->last_letter_, each.order);
                    self->open_letter(std::move(each));
                }
            } else if (is_outcome_unknown(letters.error())) {
                self->reads_mail_again_ = true;
                self->again_.after(ask_again_time);
            } else if (is_lost(letters.error())) {
                return self->lose(letters.error());
            }
            if (self->has_more_mail_)
                self->read_mail();
        });
}

void call::open_letter(store::letter letter)
{
    switch (letter.what) {
    case store::letter::kind::answer: return take_answer(letter.number, std::move(letter.body));
    case store::letter::kind::session_ended: return end(protocol::end_reason::session_ended);
    case store::letter::kind::cancel: break;
    }
    if (open_answers_ == 0)
        return end(protocol::end_reason::cancelled);
    for (auto* const each : std::vector(members_))
        if (each->number_ == letter.number)
            each->end(protocol::end_reason::cancelled);
}

void call::ask_again()
{
    auto const self = shared_from_this();
    if (std::exchange(reads_reader_again_, false))
        read_reader();
    if (std::exchange(reads_mail_again_, false))
        read_mail();
    if (std::exchange(appends_again_, false))
        append();
    for (auto const sequence : std::exchange(blanks_again_, {}))
        blank(sequence);
}

void call::lose(std::error_code why)
{
    if (is_done_)
        return;
    auto const self = shared_from_this();
    log(base::log_level::warning, "the call is not ours any more", why.message());
    bool const was_ended = std::exchange(is_ended_, true);
    if (!was_ended)
        reason_ = why == errc::fenced ? protocol::end_reason::owner_lost : protocol::end_reason::session_ended;
    else
        context_.metrics().late_answers.Increment();
    for (auto* const each : std::vector(members_))
        each->lose(why);
    auto interrupt = std::exchange(interrupt_, nullptr);
    give_up_ = nullptr;
    done();
    if (interrupt && !was_ended)
        interrupt();
}

std::optional<std::error_code> call::emit(std::string message, emitted done)
{
    if (is_ended_)
        return make_error_code(errc::finished);
    if (is_member() && message.size() <= context_.settings().limits.event_bytes)
        return batch_->emit(std::move(message), std::move(done));
    auto const bytes = message.size();
    auto const outcome = emit_now(std::move(message), done);
    if (!outcome || !is_turn_over(bytes))
        return outcome;
    loop_.post([done = std::move(done), error = *outcome]() mutable { done(error); });
    return std::nullopt;
}

std::optional<std::error_code> call::emit_now(std::string message, emitted& done)
{
    if (!has_stream_)
        return std::error_code(); // nowhere to go, by the operator's choice
    if (message.size() > context_.settings().limits.event_bytes)
        return make_error_code(errc::too_large);
    auto const outer = std::exchange(emitting_, ~std::uint64_t(0));
    emitted_now_.reset();
    auto const ticket = machine_.emit(std::make_shared<std::string const>(std::move(message)), loop_.now(), actions_);
    emitting_ = ticket;
    perform();
    emitting_ = outer;
    if (emitted_now_)
        return std::exchange(emitted_now_, std::nullopt);
    waiting_.push_back({ticket, std::move(done)});
    return std::nullopt;
}

bool call::is_turn_over(std::size_t bytes) noexcept
{
    if (batch_)
        return batch_->is_turn_over(bytes);
    turn_bytes_ += bytes;
    if (++turn_events_ < flow_.turn_events && turn_bytes_ < flow_.turn_bytes)
        return false;
    turn_events_ = 0;
    turn_bytes_ = 0;
    return true;
}

void call::progress(std::string message)
{
    if (is_ended_ || !has_stream_ || message.size() > context_.settings().limits.event_bytes)
        return;
    // There is no log that could be cut short: of what a reader leaves lying, the newest is kept.
    if (auto const& direct = batch_ ? batch_->direct_ : direct_; direct && !direct->is_caught_up()) {
        late_progress_ = std::move(message);
        return;
    }
    if (is_member()) { // several share the stream: the newest of one must not replace another's
        (void)batch_->emit(std::move(message), [](std::error_code) {});
        return;
    }
    machine_.progress(std::make_shared<std::string const>(std::move(message)), loop_.now(), actions_);
    perform();
}

void call::relay_question(std::string message, std::move_only_function<void()> failed)
{
    // Its answer goes to the call that asked it.
    auto const ticket = machine_.ask(std::make_shared<std::string const>(std::move(message)), 0, actions_);
    relays_.push_back({ticket, std::move(failed)});
    perform();
}

std::uint64_t call::ask(std::string_view method, std::string_view params, answered done)
{
    return (batch_ ? *batch_ : *this).ask_for(number_, method, params, std::move(done));
}

std::uint64_t call::ask_for(std::uint32_t request, std::string_view method, std::string_view params, answered done)
{
    auto const number = questions_.next_number();
    auto message = protocol::request(engine::to_string({stream_.stream, number}), method, params);
    bool const is_too_large = message.size() > context_.settings().limits.event_bytes;
    if (is_ended_ || !can_ask() || is_too_large) {
        auto const why = is_ended_ ? errc::finished : is_too_large ? errc::too_large : errc::unavailable;
        loop_.post([done = std::move(done), why]() mutable { done(failure(why)); });
        return number;
    }
    auto const ticket = machine_.ask(
        std::make_shared<std::string const>(std::move(message)), static_cast<std::uint32_t>(number), actions_);
    questions_.add(number, request, ticket, std::move(done));
    perform();
    return number;
}

void call::take_answer(std::uint64_t number, std::string response)
{
    auto closed = questions_.close(number);
    if (!closed)
        return;
    if (closed->blank)
        blank(*closed->blank);
    closed->done(std::move(response));
}

void call::withdraw(std::uint64_t number)
{
    if (is_member())
        return batch_->withdraw(number);
    auto const closed = questions_.close(number);
    if (!closed)
        return;
    tell_withdrawn(number);
    if (closed->blank)
        blank(*closed->blank);
    perform();
}

void call::withdraw_all(std::uint32_t request)
{
    for (auto const number : questions_.open_of(request)) {
        tell_withdrawn(number);
        if (auto const closed = questions_.close(number); closed && closed->blank)
            blank(*closed->blank);
    }
}

void call::tell_withdrawn(std::uint64_t number)
{
    auto const id = engine::to_string({stream_.stream, number});
    (void)machine_.emit(
        std::make_shared<std::string const>(
            protocol::notification(protocol::method::cancelled, "{\"requestId\":\"" + id + "\"}")),
        loop_.now(), actions_);
}

void call::blank(std::uint64_t sequence)
{
    // Any other failure is harmless: the question is asked once more, and the second answer to it is ignored.
    context_.store().blank(stream_, fence_, sequence, [self = shared_from_this(), sequence](result<void> outcome) {
        if (outcome || self->is_done_ || !is_outcome_unknown(outcome.error()))
            return;
        self->blanks_again_.push_back(sequence);
        self->again_.after(ask_again_time);
    });
}

void call::answer(std::string response)
{
    if (is_ended_) {
        context_.metrics().late_answers.Increment();
        return;
    }
    is_ended_ = true;
    if (response.size() > context_.settings().limits.event_bytes) {
        reason_ = protocol::end_reason::result_too_large;
        response = ended_answer({number_, id_, traits_}, *reason_);
    }
    finish(std::move(response));
}

void call::answer_member(std::uint32_t number, std::string id, std::string response)
{
    call_traits traits;
    traits.is_tool_call = false;
    append_answer({number, std::move(id), traits}, std::move(response), --open_answers_ == 0);
    perform();
}

std::string call::ended_answer(answering const& of, protocol::end_reason reason) const
{
    return protocol::ended_answer(
        {of.id, of.traits.is_tool_call, of.traits.is_retry_safe, of.traits.has_started}, reason);
}

void call::end(protocol::end_reason reason)
{
    if (is_ended_)
        return;
    auto const self = shared_from_this();
    if (open_answers_ > 0) { // each of a batch has its own answer
        for (auto* const each : std::vector(members_))
            each->end(reason);
        return;
    }
    is_ended_ = true;
    reason_ = reason;
    log(base::log_level::debug, "call ended early", protocol::to_string(reason));
    if (reason == protocol::end_reason::interrupted)
        context_.metrics().calls_interrupted.Increment();
    if (auto give_up = std::exchange(give_up_, nullptr); give_up && give_up())
        traits_.has_started = false;
    finish(ended_answer({number_, id_, traits_}, reason));
    if (auto interrupt = std::exchange(interrupt_, nullptr))
        interrupt();
}

void call::on_interrupt(std::move_only_function<void()> interrupt)
{
    interrupt_ = std::move(interrupt);
}

void call::close_connection(std::chrono::milliseconds retry)
{
    if (has_stream_ && !(batch_ ? batch_->direct_ : direct_))
        context_.store().dismiss(stream_, {store::dismissal::asked, retry});
}

void call::finish(std::string response)
{
    deadline_.cancel();
    if (!has_stream_) {
        if (auto answer = std::exchange(held_, nullptr))
            answer(std::move(response));
        done();
        return;
    }
    tell_late_progress();
    if (!is_member()) {
        withdraw_all(number_);
        append_answer({number_, id_, traits_}, std::move(response), true);
        return perform();
    }
    auto const batch = batch_;
    batch->withdraw_all(number_);
    std::erase(batch->members_, this);
    bool const is_last = --batch->open_answers_ == 0;
    batch->append_answer({number_, id_, traits_}, std::move(response), is_last);
    batch->perform();
    done();
}

void call::append_answer(answering of, std::string response, bool is_last)
{
    is_ended_ = is_ended_ || is_last;
    if (machine_.answer(std::make_shared<std::string const>(std::move(response)), is_last, actions_, of.number))
        answering_.push_back(std::move(of));
}

void call::perform()
{
    if (is_performing_)
        return;
    is_performing_ = true;
    auto const self = shared_from_this();
    while (!actions_.empty()) {
        performing_.clear();
        performing_.swap(actions_);
        for (auto& action : performing_)
            std::visit([this](auto& each) { perform(each); }, action);
    }
    is_performing_ = false;
    if (!is_done_)
        arm();
}

void call::perform(engine::resume_emit const& resume)
{
    if (resume.ticket == emitting_) {
        emitted_now_ = resume.error;
        return;
    }
    auto const found = std::ranges::find(waiting_, resume.ticket, &waiting::ticket);
    if (found == waiting_.end())
        return;
    auto resumed = std::move(found->done);
    waiting_.erase(found);
    // Later: the tool's code must not run inside the machine's step.
    loop_.post([resumed = std::move(resumed), error = resume.error]() mutable { resumed(error); });
}

void call::perform(engine::drop_reader const&)
{
    context_.store().dismiss(stream_, {store::dismissal::stalled, context_.retry_delay()});
}

void call::perform(engine::asked const& asked)
{
    auto const relayed = std::ranges::find(relays_, asked.ticket, &relay::ticket);
    if (relayed != relays_.end()) {
        if (!asked.sequence)
            loop_.post(std::move(relayed->failed));
        relays_.erase(relayed);
    } else if (asked.sequence) {
        if (auto const answered_before = questions_.kept(asked.ticket, *asked.sequence))
            blank(*answered_before);
    } else if (auto failed = questions_.lost(asked.ticket)) {
        loop_.post(
            [failed = std::move(failed), why = asked.sequence.error()]() mutable { failed(std::unexpected(why)); });
    }
}

void call::perform(engine::answered const& stored)
{
    answering_.pop_front();
    if (stored.is_last)
        done();
}

void call::perform(engine::answer_refused const& refused)
{
    bool const is_too_big = refused.error == errc::too_large || refused.error == errc::no_space;
    // Fenced: another node has answered. Gone: the session has ended. Either way there is nobody left to tell.
    if (!is_too_big || answering_.front().is_shortened)
        return lose(refused.error);
    answering_.front().is_shortened = true;
    reason_ = protocol::end_reason::result_too_large;
    machine_.replace_answer(std::make_shared<std::string const>(ended_answer(answering_.front(), *reason_)), actions_);
}

void call::perform(engine::append_events& action)
{
    auto const now = loop_.now();
    if (direct_)
        return machine_.appended(direct_->write(action.events, action.finish), now, actions_);
    appending_ = {std::move(action.events), action.finish, now};
    ++batch_number_;
    append();
}

void call::append()
{
    context_.store().append(
        stream_, fence_, batch_number_, appending_.events, appending_.finish,
        [self = shared_from_this()](result<store::stream_top> top) {
            auto& metrics = self->context_.metrics();
            if (top)
                metrics.events_appended.Increment(static_cast<double>(self->appending_.events.size()));
            if (self->is_done_)
                return;
            if (!top && is_outcome_unknown(top.error())) {
                self->appends_again_ = true;
                self->again_.after(ask_again_time);
                return;
            }
            auto const now = self->loop_.now();
            metrics.append_seconds.Observe(std::chrono::duration<double>(now - self->appending_.began).count());
            self->appending_.events.clear();
            bool const is_over = !top && is_lost(top.error());
            auto const why = top ? std::error_code() : top.error();
            self->machine_.appended(std::move(top), now, self->actions_);
            self->perform();
            if (is_over)
                self->lose(why);
        });
}

void call::arm()
{
    auto const when = machine_.next_tick();
    if (when)
        tick_.at(*when);
    else
        tick_.cancel();
}

void call::done()
{
    if (std::exchange(is_done_, true))
        return;
    deadline_.cancel();
    orphan_.cancel();
    tick_.cancel();
    again_.cancel();
    watch_.reset();
    auto const unanswered = std::exchange(questions_, {}); // what they hold may hold this call
    for (auto& each : std::exchange(waiting_, {}))
        loop_.post([resumed = std::move(each.done)]() mutable { resumed(make_error_code(errc::finished)); });
    if (handler_) // later: it may be what has just answered
        loop_.post([self = shared_from_this(), handler = std::move(handler_)] {});
    context_.metrics().call_ended(reason_ ? protocol::to_string(*reason_) : "answered");
    keeper_.call_done(*this);
}

}
