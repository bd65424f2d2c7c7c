#include "runtime/paced_output.hpp"

#include "runtime/context.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

store::bytes shared(std::string message)
{
    return std::make_shared<std::string const>(std::move(message));
}

}

paced_output::paced_output(
    node_context& context, base::loop& loop, engine::flow_settings const& flow, std::size_t requests)
    : context_(context), loop_(loop), flow_(flow), machine_(flow_), is_shared_(requests > 1), open_requests_(requests),
      tick_(loop.timers(), [this] {
          machine_.tick(loop_.now(), actions_);
          perform();
      })
{
}

paced_output::~paced_output() = default;

void paced_output::begin(std::weak_ptr<output_user> user)
{
    user_ = std::move(user);
}

std::optional<std::error_code> paced_output::emit(std::string message, emitted& done)
{
    if (is_over_)
        return make_error_code(errc::finished);
    if (message.size() > context_.settings().limits.event_bytes)
        return make_error_code(errc::too_large);
    auto const outer = std::exchange(emitting_, ~std::uint64_t(0));
    emitted_now_.reset();
    auto const ticket = machine_.emit(shared(std::move(message)), loop_.now(), actions_);
    emitting_ = ticket;
    perform();
    emitting_ = outer;
    if (emitted_now_)
        return std::exchange(emitted_now_, std::nullopt);
    if (is_over_) // it has come to its end meanwhile, and nobody would resume what waits now
        return make_error_code(errc::finished);
    waiting_.push_back({ticket, std::move(done)});
    return std::nullopt;
}

void paced_output::say(std::string message)
{
    (void)machine_.emit(shared(std::move(message)), loop_.now(), actions_);
}

void paced_output::progress(std::uint32_t, double value, std::string message)
{
    if (message.size() > context_.settings().limits.event_bytes)
        return;
    if (is_shared_) // the newest of one request must not replace another's
        say(std::move(message));
    else
        machine_.progress(shared(std::move(message)), loop_.now(), actions_, value);
    perform();
}

std::uint64_t paced_output::put_question(std::string message, std::uint32_t number, store::bytes key)
{
    return machine_.ask(shared(std::move(message)), number, actions_, std::move(key));
}

void paced_output::answer(open_request of, std::string response)
{
    if (is_over_)
        return;
    close_request(of.number);
    bool const is_last = --open_requests_ == 0;
    auto const number = of.number;
    if (machine_.answer(shared(std::move(response)), is_last, actions_, number))
        answering_.push_back({std::move(of)});
    perform();
}

void paced_output::appended(result<store::stream_top> top)
{
    machine_.appended(std::move(top), loop_.now(), actions_);
    perform();
}

void paced_output::reader_moved(store::reader_mark const& mark)
{
    machine_.reader_moved(mark, loop_.now(), actions_);
}

void paced_output::perform()
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
    if (!is_over_)
        arm();
}

void paced_output::perform(engine::resume_emit const& resume)
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

void paced_output::perform(engine::answered const& stored)
{
    answering_.pop_front();
    if (!stored.is_last)
        return;
    end();
    if (auto const user = user_.lock())
        user->finished(replaced_);
}

void paced_output::perform(engine::answer_refused const& refused)
{
    bool const is_too_big = refused.error == errc::too_large || refused.error == errc::no_space;
    auto& oldest = answering_.front();
    // Fenced: another node has answered. Gone: the session has ended. Either way there is nobody left to tell.
    if (!is_too_big || oldest.is_shortened)
        return lose(refused.error);
    oldest.is_shortened = true;
    replaced_ = protocol::end_reason::result_too_large;
    machine_.replace_answer(shared(ended_answer(oldest.of, *replaced_)), actions_);
}

void paced_output::arm()
{
    if (auto const when = machine_.next_tick())
        tick_.at(*when);
    else
        tick_.cancel();
}

void paced_output::lose(std::error_code why)
{
    if (is_over_)
        return;
    auto const self = shared_from_this();
    end();
    if (auto const user = user_.lock())
        user->lost(why);
}

void paced_output::end()
{
    is_over_ = true;
    tick_.cancel();
    close();
    for (auto& each : std::exchange(waiting_, {}))
        loop_.post([resumed = std::move(each.done)]() mutable { resumed(make_error_code(errc::finished)); });
}

}
