#include "runtime/stream_output.hpp"

#include "engine/cursor.hpp"
#include "protocol/message.hpp"
#include "protocol/names.hpp"
#include "runtime/context.hpp"
#include "runtime/hints.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

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

}

stream_output::stream_output(
    node_context& context, base::loop& loop, store::stream_key stream, store::fence fence,
    engine::flow_settings const& flow, std::size_t requests)
    : paced_output(context, loop, flow, requests), stream_(std::move(stream)), fence_(fence),
      again_(loop.timers(), [this] { ask_again(); })
{
}

stream_output::~stream_output() = default;

std::shared_ptr<stream_output> stream_output::self()
{
    return std::static_pointer_cast<stream_output>(shared_from_this());
}

void stream_output::watch()
{
    watch_ = context().store().watch(
        stream_, interest::reader | interest::mail,
        hints_to(loop(), std::weak_ptr(self()), [](stream_output& self, interest what) { self.hint(what); }));
}

void stream_output::begin(std::weak_ptr<output_user> user)
{
    paced_output::begin(std::move(user));
    // It was opened with a reader: flow control holds from the first event, whenever the store says where it is.
    store::reader_mark opened_with;
    opened_with.attached = true;
    reader_moved(opened_with);
}

void stream_output::listen()
{
    if (is_over())
        return;
    watch(); // first: what comes in between is a hint, not a loss
    read_reader();
    read_mail();
}

void stream_output::go_on(
    std::weak_ptr<output_user> user, store::claimed_call const& from, std::string notice,
    std::move_only_function<void()> ready)
{
    paced_output::begin(std::move(user));
    watch();
    read_reader();
    questions_.go_on_after(from.last_question);
    end_ = from.top.sequence;
    ready_ = std::move(ready);
    for (auto const& [number, sequence] : from.questions)
        tell_withdrawn(number);
    say(std::move(notice));
    perform();
    // An answer that comes before its question is blank is kept under its key: the letters are read after that.
    for (auto const& [number, sequence] : from.questions)
        left_open_.push_back(sequence);
    if (left_open_.empty())
        return read_mail();
    for (auto const sequence : std::vector(left_open_))
        blank(sequence);
}

void stream_output::blanked(std::uint64_t sequence)
{
    if (std::erase(left_open_, sequence) > 0 && left_open_.empty())
        read_mail();
}

void stream_output::hint(interest what)
{
    if (is_over())
        return;
    if (what == interest::mail)
        read_mail();
    else
        read_reader();
}

void stream_output::read_reader()
{
    // One at a time: an older mark must not come after a newer one.
    if (std::exchange(is_reading_reader_, true)) {
        has_reader_moved_ = true;
        return;
    }
    has_reader_moved_ = false;
    context().store().reader(stream_, [self = self()](result<store::reader_mark> mark) {
        self->is_reading_reader_ = false;
        if (self->is_over())
            return;
        if (!mark) {
            if (is_outcome_unknown(mark.error())) {
                self->reads_reader_again_ = true;
                self->again_.after(ask_again_time);
            }
            return;
        }
        if (auto const user = self->user())
            user->reader_seen(mark->attached);
        self->reader_moved(*mark);
        self->perform();
        if (self->has_reader_moved_ && !self->is_over())
            self->read_reader();
    });
}

void stream_output::read_mail()
{
    if (is_over() || !left_open_.empty())
        return;
    if (std::exchange(is_reading_mail_, true)) {
        has_more_mail_ = true;
        return;
    }
    has_more_mail_ = false;
    context().store().read_mail(
        stream_, fence_, last_letter_, [self = self()](result<std::vector<store::letter>> letters) {
            self->is_reading_mail_ = false;
            if (self->is_over())
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
            else if (letters && self->ready_ && !self->is_over())
                std::exchange(self->ready_, nullptr)();
        });
}

void stream_output::open_letter(store::letter letter)
{
    auto const user = this->user();
    if (letter.what == store::letter::kind::answer && ready_) // to what a former run has asked
        given_answers_.insert_or_assign(std::move(letter.key), std::move(letter.body));
    else if (letter.what == store::letter::kind::answer)
        take_answer(letter.number, std::move(letter.body));
    else if (user && letter.what == store::letter::kind::session_ended)
        user->end(protocol::end_reason::session_ended);
    else if (user)
        user->cancel(letter.number);
}

void stream_output::ask_again()
{
    auto const keep = shared_from_this();
    if (std::exchange(reads_reader_again_, false))
        read_reader();
    if (std::exchange(reads_mail_again_, false))
        read_mail();
    if (std::exchange(appends_again_, false))
        append();
    if (std::exchange(releases_again_, false))
        give_up_stream();
    for (auto const sequence : std::exchange(blanks_again_, {}))
        blank(sequence);
}

std::uint64_t stream_output::ask(
    std::uint32_t request, std::string_view method, std::string_view params, std::string_view key, answered done)
{
    auto const number = questions_.next_number();
    if (auto const given = given_answers_.find(key); !key.empty() && given != given_answers_.end()) {
        loop().post([done = std::move(done), answer = given->second]() mutable { done(std::move(answer)); });
        return number;
    }
    auto message = protocol::request(engine::to_string({stream_.stream, number}), method, params);
    bool const is_too_large = message.size() > context().settings().limits.event_bytes;
    if (is_finishing() || is_over() || is_too_large) {
        auto const why = is_too_large ? errc::too_large : errc::finished;
        loop().post([done = std::move(done), why]() mutable { done(failure(why)); });
        return number;
    }
    auto kept_under = keeps_answers_ && !key.empty() ? std::make_shared<std::string const>(key) : nullptr;
    auto const ticket = put_question(std::move(message), static_cast<std::uint32_t>(number), std::move(kept_under));
    questions_.add(number, request, ticket, std::move(done));
    perform();
    return number;
}

void stream_output::relay_question(std::string message, std::move_only_function<void()> failed)
{
    if (is_over())
        return loop().post(std::move(failed));
    // Its answer goes to the call that asked it.
    auto const ticket = put_question(std::move(message), 0, nullptr);
    relays_.push_back({ticket, std::move(failed)});
    perform();
}

void stream_output::settle(engine::asked const& asked)
{
    auto const relayed = std::ranges::find(relays_, asked.ticket, &relay::ticket);
    if (relayed != relays_.end()) {
        if (!asked.sequence)
            loop().post(std::move(relayed->failed));
        relays_.erase(relayed);
    } else if (asked.sequence) {
        if (auto const answered_before = questions_.kept(asked.ticket, *asked.sequence))
            blank(*answered_before);
    } else if (auto failed = questions_.lost(asked.ticket)) {
        loop().post(
            [failed = std::move(failed), why = asked.sequence.error()]() mutable { failed(std::unexpected(why)); });
    }
}

void stream_output::take_answer(std::uint64_t number, std::string response)
{
    auto closed = questions_.close(number);
    if (!closed)
        return;
    if (closed->blank)
        blank(*closed->blank);
    closed->done(std::move(response));
}

void stream_output::withdraw(std::uint64_t number)
{
    auto const closed = questions_.close(number);
    if (!closed)
        return;
    tell_withdrawn(number);
    if (closed->blank)
        blank(*closed->blank);
    perform();
}

void stream_output::close_request(std::uint32_t request)
{
    for (auto const number : questions_.open_of(request)) {
        tell_withdrawn(number);
        if (auto const closed = questions_.close(number); closed && closed->blank)
            blank(*closed->blank);
    }
}

void stream_output::tell_withdrawn(std::uint64_t number)
{
    auto const id = engine::to_string({stream_.stream, number});
    say(protocol::notification(protocol::method::cancelled, "{\"requestId\":\"" + id + "\"}"));
}

void stream_output::blank(std::uint64_t sequence)
{
    // Any other failure is harmless: the question is asked once more, and the second answer to it is ignored.
    context().store().blank(stream_, fence_, sequence, [self = self(), sequence](result<void> outcome) {
        if (self->is_over())
            return;
        if (outcome || !is_outcome_unknown(outcome.error()))
            return self->blanked(sequence);
        self->blanks_again_.push_back(sequence);
        self->again_.after(ask_again_time);
    });
}

void stream_output::close_connection(std::chrono::milliseconds retry)
{
    context().store().dismiss(stream_, {store::dismissal::asked, retry});
}

void stream_output::release(std::move_only_function<void()> done)
{
    end();
    released_ = std::move(done);
    give_up_stream();
}

void stream_output::give_up_stream()
{
    context().store().release(stream_, fence_, true, [self = self()](result<void> outcome) {
        if (!outcome && is_outcome_unknown(outcome.error())) {
            self->releases_again_ = true;
            self->again_.after(ask_again_time);
            return;
        }
        if (outcome)
            self->context().store().publish(std::string(released_word));
        if (auto released = std::exchange(self->released_, nullptr))
            self->loop().post(std::move(released));
    });
}

void stream_output::dismiss_reader()
{
    context().store().dismiss(stream_, {store::dismissal::stalled, context().retry_delay()});
}

void stream_output::write(engine::append_events& batch)
{
    appending_ = {std::move(batch.events), batch.finish, loop().now()};
    ++batch_number_;
    append();
}

void stream_output::append()
{
    context().store().append(
        stream_, fence_, batch_number_, end_, appending_.events, appending_.finish,
        [self = self()](result<store::stream_top> top) {
            auto& metrics = self->context().metrics();
            if (top)
                metrics.events_appended.Increment(static_cast<double>(self->appending_.events.size()));
            if (self->is_over())
                return;
            if (!top && is_outcome_unknown(top.error())) {
                self->appends_again_ = true;
                self->again_.after(ask_again_time);
                return;
            }
            auto const took = self->loop().now() - self->appending_.began;
            metrics.append_seconds.Observe(std::chrono::duration<double>(took).count());
            self->appending_.events.clear();
            if (top)
                self->end_ = top->sequence;
            auto const why = top ? std::error_code() : top.error();
            self->appended(std::move(top));
            if (is_lost(why))
                self->lose(why);
        });
}

void stream_output::close()
{
    again_.cancel();
    watch_.reset();
    auto const never_ready = std::exchange(ready_, nullptr);
    auto const unanswered = std::exchange(questions_, {}); // what they hold may hold this
}

}
