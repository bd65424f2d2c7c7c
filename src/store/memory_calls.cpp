// The memory store's calls: taking them over, finding them, and the letters to them.
#include "store/memory_state.hpp"

#include <algorithm>

namespace belay::store {

// --- taking over

void memory_store::claim(stream_key const& key, fence seen, std::string const& owner, completion<claimed_call> done)
{
    auto outcome = [&]() -> result<claimed_call> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        auto& call = **found;
        if (call.is_standalone())
            return failure(errc::stream_gone);
        if (call.finished)
            return failure(errc::finished);
        bool const is_repetition = call.claimed_from == seen && call.owner == owner && call.attempt > 1;
        if (!is_repetition) {
            if (call.fence != seen)
                return failure(errc::conflict);
            auto& former = *call.runs_with;
            call.call_link.unlink();
            call.runs_with = &presence_of(at, call.of, owner);
            call.runs_with->calls.push_back(call);
            leave_if_empty(at, call.of, former, at.now);
            // Whoever came with the call goes with it: it may have been opened when nobody counted on it any more.
            for (auto const& each : call.of.readers.remove_from(call.id, call.owner))
                reader_removed(at, call.of, each);
            settle(at, call.of, at.now);
            call.owner = owner;
            call.claimed_from = seen;
            call.fence = next_fence(at.now);
            call.last_batch = 0;
            ++call.attempt;
            at.wake(call.watchers, mail_bit); // its former owner finds that it is not any more
        }
        claimed_call claimed;
        claimed.fence = call.fence;
        claimed.meta = call.meta;
        claimed.top = call.top;
        for (auto const& each : call.requests)
            if (each.answered_at == 0)
                claimed.unanswered.push_back(each.place);
        for (auto const& each : call.questions)
            claimed.questions.emplace_back(each.number, each.sequence);
        claimed.attempt = call.attempt;
        claimed.age = at.now - call.opened_at;
        claimed.last_question = call.last_question;
        claimed.progress = call.progress;
        claimed.repeats = call.repeats;
        return claimed;
    }();
    done(std::move(outcome));
}

void memory_store::release(stream_key const& key, fence fence, bool has_run, completion<void> done)
{
    auto outcome = [&]() -> result<void> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        auto& call = **found;
        if (call.is_standalone())
            return failure(errc::fenced);
        if (call.released_from == fence && fence != 0)
            return {};
        if (call.fence != fence)
            return failure(errc::fenced);
        if (call.finished)
            return failure(errc::finished);
        auto& former = *call.runs_with;
        call.call_link.unlink();
        call.runs_with = &presence_of(at, call.of, {});
        call.runs_with->calls.push_back(call);
        call.owner.clear();
        call.released_from = fence;
        if (!has_run && call.attempt > 1)
            --call.attempt;
        leave_if_empty(at, call.of, former, at.now);
        return {};
    }();
    done(std::move(outcome));
}

void memory_store::find(session_key const& key, std::string_view request_id, completion<call_ref> done)
{
    auto outcome = [&]() -> result<call_ref> {
        visit at(*this, key);
        auto* const session = at.in.find(key);
        if (!session)
            return failure(errc::not_found);
        request const* running = nullptr;
        std::optional<std::uint64_t> crossed; // the newest with an answer that is under way
        auto const [first, last] = session->requests.equal_range(request_id);
        for (auto const& each : std::ranges::subrange(first, last)) {
            auto const order = each.of->order;
            if (each.answered_at == 0) {
                if (!running || order > running->of->order
                    || (order == running->of->order && each.place < running->place))
                    running = &each;
            } else if (each.answered_at > each.of->reader.delivered) {
                crossed = std::max(crossed.value_or(0), order);
            }
        }
        if (crossed && (!running || *crossed > running->of->order))
            return failure(errc::finished);
        if (!running)
            return failure(errc::not_found);
        return running->of->call(running->place);
    }();
    done(std::move(outcome));
}

// --- letters

namespace {

std::size_t charge_of(letter const& each) noexcept
{
    return letter_overhead + each.body.size() + each.key.size();
}

}

template<class F>
void memory_store::take_letters(stream& of, F const& condition)
{
    std::erase_if(of.mail, [&](letter const& each) {
        if (!condition(each))
            return false;
        if (each.what == letter::kind::session_ended)
            return true;
        auto const charge = charge_of(each);
        of.mail_charge -= charge;
        release_bytes(of.of, charge);
        return true;
    });
}

void memory_store::take_letters_of(stream& of, letter::kind what, std::uint32_t number)
{
    take_letters(of, [&](letter const& each) { return each.what == what && each.number == number; });
}

void memory_store::take_all_letters(stream& of)
{
    take_letters(of, [](letter const&) { return true; });
}

bool memory_store::is_awaited(stream const& of, letter const& letter)
{
    if (of.is_standalone() || of.finished)
        return false;
    auto const is_same
        = [&](store::letter const& each) { return each.what == letter.what && each.number == letter.number; };
    if (std::ranges::any_of(of.mail, is_same))
        return false;
    switch (letter.what) {
    case letter::kind::answer:
        return std::ranges::find(of.questions, letter.number, &stream::open_question::number) != of.questions.end();
    case letter::kind::cancel: return letter.number < of.requests.size() && of.requests[letter.number].answered_at == 0;
    case letter::kind::session_ended: return true;
    }
    return false;
}

void memory_store::post(stream_key const& key, letter letter, completion<void> done)
{
    auto outcome = [&]() -> result<void> {
        visit at(*this, key.session);
        auto* const session = at.in.find(key.session);
        if (!session)
            return failure(errc::not_found);
        auto const found = session->streams.find(key.stream);
        if (found == session->streams.end() || !is_awaited(*found->second, letter))
            return {};
        auto& to = *found->second;
        if (letter.what != letter::kind::session_ended) {
            letter.key.clear();
            if (auto const question = std::ranges::find(to.questions, letter.number, &stream::open_question::number);
                letter.what == letter::kind::answer && question->key)
                letter.key = *question->key;
            auto const charge = charge_of(letter);
            // It makes room in the end, because its call goes on or ends: it may use what is kept for answers.
            demand const need{.bytes = charge, .is_final = true};
            if (auto const room = make_room(at, *session, need); !room)
                return room;
            to.mail_charge += charge;
            add_bytes(*session, charge);
        }
        letter.order = ++to.last_letter;
        to.mail.push_back(std::move(letter));
        at.wake(to.watchers, mail_bit);
        return {};
    }();
    done(std::move(outcome));
}

void memory_store::read_mail(
    stream_key const& key, fence fence, std::uint64_t after, completion<std::vector<letter>> done)
{
    auto outcome = [&]() -> result<std::vector<letter>> {
        visit at(*this, key.session);
        auto const found = find_stream(at, key);
        if (!found)
            return std::unexpected(found.error());
        auto const& of = **found;
        if (of.is_standalone() || of.fence != fence || of.owner.empty())
            return failure(errc::fenced);
        std::vector<letter> letters;
        for (auto const& each : of.mail)
            if (each.order > after)
                letters.push_back(each);
        return letters;
    }();
    done(std::move(outcome));
}

}
