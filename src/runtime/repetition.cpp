#include "runtime/repetition.hpp"

#include "protocol/endings.hpp"
#include "protocol/message.hpp"
#include "runtime/hints.hpp"
#include "runtime/node.hpp"

#include <utility>

namespace belay::runtime {

namespace {

constexpr store::read_limit repeat_page{64, 64 * 1024};

// Owned by the call that repeats.
class repetition : public std::enable_shared_from_this<repetition> {
public:
    repetition(node& node, call& on, store::stream_id first, std::string token)
        : node_(node), on_(on), source_{on.session().key, first}, token_(std::move(token)),
          again_(on.loop().timers(), [this] { read(); })
    {
    }

    void begin()
    {
        // Watch first, then read: what comes in between is a wake-up, not a loss.
        watch_ = node_.store().watch(
            source_, store::event_store::interest::growth,
            hints_to(
                on_.loop(), weak_from_this(), [](repetition& self, store::event_store::interest) { self.read(); }));
        read();
    }

    /// Who cancels the repeated call means the work.
    void interrupted()
    {
        watch_.reset();
        if (on_.end_reason() == protocol::end_reason::cancelled)
            node_.calls().cancel_stream(source_);
    }

private:
    void read()
    {
        if (std::exchange(is_busy_, true)) {
            reads_again_ = true;
            return;
        }
        reads_again_ = false;
        node_.store().read_after(
            source_, position_, repeat_page, std::nullopt, [weak = weak_from_this()](result<store::page> page) {
                auto const self = weak.lock();
                if (!self || self->on_.is_ended())
                    return;
                if (!page && page.error() == errc::unavailable)
                    return self->read_later();
                if (!page) // gone: with its session, or to make room once it was delivered
                    return self->answer_spent();
                self->page_ = std::move(*page);
                self->next_ = 0;
                self->pass_on();
            });
    }

    void answer_spent()
    {
        on_.answer(protocol::error_response(
            on_.id(), {protocol::code::invalid_params, std::string(protocol::spent_key_text()), {}}));
    }

    void pass_on()
    {
        while (next_ < page_.events.size()) {
            auto const& event = page_.events[next_];
            std::string message;
            if (event.sequence > position_ + 1) {
                message = protocol::gap_notice(position_ + 1, event.sequence - 1, false);
                position_ = event.sequence - 1;
            } else {
                ++next_;
                position_ = event.sequence;
                if (event.kind == store::event_kind::response) {
                    watch_.reset();
                    return on_.answer(protocol::answer_for(*event.payload, on_.id()));
                }
                if (event.kind == store::event_kind::question) {
                    // Its caller would wait for an answer that nobody can give.
                    on_.relay_question(*event.payload, [weak = weak_from_this()] {
                        if (auto const self = weak.lock())
                            self->on_.answer(protocol::error_response(
                                self->on_.id(),
                                {protocol::code::server_error,
                                 "There is no room to repeat this call; resume the first one",
                                 {}}));
                    });
                    continue;
                }
                message = protocol::progress_for(*event.payload, token_);
                if (message.empty())
                    continue;
            }
            auto const outcome = on_.emit(std::move(message), [weak = weak_from_this()](std::error_code) {
                if (auto const self = weak.lock(); self && !self->on_.is_ended())
                    self->pass_on();
            });
            if (!outcome)
                return;
        }
        is_busy_ = false;
        bool const is_behind = page_.state.top.sequence > position_;
        bool const is_left = page_.events.empty() && is_behind; // nothing of what came after is kept
        if (is_left && page_.state.finished)
            return answer_spent();
        if (reads_again_ || (is_behind && !is_left))
            read_soon();
    }

    /// The store could not say.
    void read_later()
    {
        is_busy_ = false;
        again_.after(std::chrono::seconds(1));
    }

    /// Others have their turn between two pages.
    void read_soon()
    {
        on_.loop().post([weak = weak_from_this()] {
            if (auto const self = weak.lock())
                self->read();
        });
    }

    node& node_;
    call& on_;
    store::stream_key source_;
    std::string token_;
    std::unique_ptr<store::watch_handle> watch_;
    std::uint64_t position_ = 0;
    store::page page_;
    std::size_t next_ = 0;
    bool is_busy_ = false;
    bool reads_again_ = false;
    base::timer again_;
};

}

void repeat(node& node, std::shared_ptr<call> const& on, store::stream_id first, std::string token)
{
    node.metrics().calls_repeated.Increment();
    auto const repeating = std::make_shared<repetition>(node, *on, first, std::move(token));
    on->keep(repeating);
    on->on_interrupt([weak = std::weak_ptr(repeating)] {
        if (auto const self = weak.lock())
            self->interrupted();
    });
    repeating->begin();
}

}
