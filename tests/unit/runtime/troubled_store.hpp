// A store that cannot always be reached: what it is asked can fail, before or after it took effect, and its replies can
// be held back.
#pragma once

#include "support/forwarding_store.hpp"

#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace belay::runtime {

class troubled_store final : public forwarding_store {
public:
    using forwarding_store::forwarding_store;

    enum class question { open, close, claim, update, read_after, reader, list, subscribers, post };
    enum class effect { none, taken };

    /// So many of the next ones of this kind give `errc::unavailable`.
    void fail(question which, std::size_t times, effect before = effect::none)
    {
        troubles_[which].failures = times;
        troubles_[which].before = before;
    }
    /// Each of this kind takes effect at once, and its reply waits.
    void hold(question which) { troubles_[which].is_held = true; }
    /// From now on replies of this kind come at once; those that wait stay.
    void hold_no_more(question which) { troubles_[which].is_held = false; }
    [[nodiscard]] std::size_t held() const noexcept { return replies_.size(); }
    /// Gives the reply that has waited so long, counted from the oldest.
    void reply(std::size_t place = 0)
    {
        auto const at = replies_.begin() + static_cast<std::ptrdiff_t>(place);
        auto one = std::move(*at);
        replies_.erase(at);
        one();
    }
    [[nodiscard]] std::size_t asked(question which) { return troubles_[which].asked; }

    void open(
        store::stream_key const& key, store::stream_meta meta, std::string const& owner,
        std::optional<store::reader_request> reader, store::completion<store::opened_stream> done) override
    {
        ask(question::open, std::move(done),
            [&](auto to) { forwarding_store::open(key, std::move(meta), owner, std::move(reader), std::move(to)); });
    }
    void close(store::session_key const& key, store::completion<std::vector<store::call_ref>> done) override
    {
        ask(question::close, std::move(done), [&](auto to) { forwarding_store::close(key, std::move(to)); });
    }
    void claim(
        store::stream_key const& key, store::fence seen, std::string const& owner,
        store::completion<store::claimed_call> done) override
    {
        ask(question::claim, std::move(done),
            [&](auto to) { forwarding_store::claim(key, seen, owner, std::move(to)); });
    }
    void update(store::session_record record, store::completion<store::record_ptr> done) override
    {
        ask(question::update, std::move(done),
            [&](auto to) { forwarding_store::update(std::move(record), std::move(to)); });
    }
    void read_after(
        store::stream_key const& key, std::uint64_t after, store::read_limit limit,
        std::optional<store::reader_id> reader, store::completion<store::page> done) override
    {
        ask(question::read_after, std::move(done),
            [&](auto to) { forwarding_store::read_after(key, after, limit, std::move(reader), std::move(to)); });
    }
    void reader(store::stream_key const& key, store::completion<store::reader_mark> done) override
    {
        ask(question::reader, std::move(done), [&](auto to) { forwarding_store::reader(key, std::move(to)); });
    }
    void list(std::string_view after, std::size_t limit, store::completion<store::session_list> done) override
    {
        ask(question::list, std::move(done), [&](auto to) { forwarding_store::list(after, limit, std::move(to)); });
    }
    void subscribers(
        std::string_view uri, std::optional<store::session_key> after, std::size_t limit,
        store::completion<std::vector<store::subscriber>> done) override
    {
        ask(question::subscribers, std::move(done),
            [&](auto to) { forwarding_store::subscribers(uri, std::move(after), limit, std::move(to)); });
    }
    void post(store::stream_key const& key, store::letter letter, store::completion<void> done) override
    {
        ask(question::post, std::move(done),
            [&](auto to) { forwarding_store::post(key, std::move(letter), std::move(to)); });
    }

private:
    struct trouble {
        std::size_t asked = 0;
        std::size_t failures = 0;
        effect before = effect::none;
        bool is_held = false;
    };

    template<class T, class F>
    void ask(question which, store::completion<T> done, F const& go)
    {
        auto& here = troubles_[which];
        ++here.asked;
        if (here.failures > 0) {
            --here.failures;
            if (here.before == effect::taken)
                go(store::completion<T>([](result<T>) {}));
            return done(failure(errc::unavailable));
        }
        if (!here.is_held)
            return go(std::move(done));
        go(store::completion<T>([this, done = std::move(done)](result<T> outcome) mutable {
            replies_.emplace_back(
                [done = std::move(done), outcome = std::move(outcome)]() mutable { done(std::move(outcome)); });
        }));
    }

    std::map<question, trouble> troubles_;
    std::deque<std::move_only_function<void()>> replies_;
};

}
