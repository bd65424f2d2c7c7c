// The network between a following and its client: a socket buffer of some size, bytes that arrive in any
// pieces, cuts at any byte, peers that vanish without a word.
#pragma once

#include "http/sse.hpp"
#include "runtime/following.hpp"
#include "sim_loop.hpp"

#include <memory>
#include <string>

namespace belay::sim {

/// How long the HTTP server lets a write make no progress.
constexpr auto write_timeout = std::chrono::seconds(30);

class wire final : public runtime::event_sink, public std::enable_shared_from_this<wire> {
public:
    wire(
        base::clock const& clock, sim_loop& loop, std::shared_ptr<runtime::following> const& following,
        std::size_t capacity)
        : clock_(clock), loop_(&loop), following_(following), capacity_(capacity)
    {
    }

    // --- the server's side

    void write_priming(std::string_view id, std::chrono::milliseconds retry, runtime::priming_style style) override
    {
        auto const retry_ms = static_cast<std::uint32_t>(retry.count());
        if (style == runtime::priming_style::empty)
            http::append_event(staged_, {{}, id, retry_ms, ""});
        else
            http::append_event(staged_, {"belay", id, retry_ms, "{}"});
    }
    void write_event(std::string_view id, std::string_view message) override
    {
        http::append_event(staged_, {"message", id, {}, message});
    }
    void write_id(std::string_view id, runtime::priming_style style) override
    {
        if (style == runtime::priming_style::empty)
            http::append_event(staged_, {{}, id, {}, ""});
        else if (style == runtime::priming_style::typed)
            http::append_event(staged_, {"belay", id, {}, "{}"});
    }
    void write_comment(std::string_view text) override { http::append_comment(staged_, text); }
    void write_retry(std::chrono::milliseconds retry) override
    {
        http::append_retry(staged_, static_cast<std::uint32_t>(retry.count()));
    }
    bool flush() override
    {
        most_staged_ = std::max(most_staged_, staged_.size());
        written_ += staged_.size();
        unsent_ += std::exchange(staged_, {});
        pump();
        is_draining_ = !unsent_.empty();
        stalled_since_ = clock_.now();
        return !is_draining_;
    }
    std::shared_ptr<base::receipt> end(std::move_only_function<void()> arrived) override
    {
        written_ += staged_.size();
        unsent_ += std::exchange(staged_, {});
        pump();
        is_ended_ = true;
        over_at_ = clock_.now();
        receipt_ = std::make_shared<receipt>(weak_from_this(), std::move(arrived));
        return receipt_;
    }
    void abort() override
    {
        is_aborted_ = true;
        over_at_ = clock_.now();
        unsent_.clear();
        kernel_.clear();
    }
    std::uint64_t written() const override { return written_; }
    std::uint64_t unacknowledged() const override { return staged_.size() + unsent_.size() + kernel_.size(); }
    bool peer_gone() const override { return is_cut_; }

    // --- the client's side

    /// At most that many bytes that have arrived.
    std::string receive(std::size_t most)
    {
        auto const taken = kernel_.substr(0, most);
        kernel_.erase(0, taken.size());
        if (!taken.empty())
            stalled_since_ = clock_.now();
        pump();
        if (is_draining_ && unsent_.empty() && loop_) {
            is_draining_ = false;
            loop_->post([weak = following_] {
                if (auto const following = weak.lock())
                    following->drained();
            });
        }
        return taken;
    }
    /// The client closes. What it has not received is lost.
    void cut()
    {
        if (std::exchange(is_cut_, true) || is_over())
            return;
        over_at_ = clock_.now();
        tell_gone();
    }
    /// The server looks whether an ended answer has arrived. True if it has no more to look for.
    bool ask_arrived()
    {
        bool const can_look = loop_ && !loop_->is_paused();
        if (receipt_ && can_look && kernel_.empty() && unsent_.empty() && !is_aborted_)
            std::exchange(receipt_, nullptr)->tell();
        return !receipt_;
    }
    /// The server's process was killed. What is with the kernel arrives, and nothing after it.
    void lose_server()
    {
        loop_ = nullptr;
        following_.reset();
        receipt_.reset();
        staged_.clear();
        unsent_.clear();
        if (!is_over())
            over_at_ = clock_.now();
        has_lost_server_ = true;
    }
    /// The client is gone and nobody is told.
    void vanish() { has_vanished_ = true; }
    /// The server's socket gives up on a peer that takes nothing.
    void tick()
    {
        if (!is_draining_ || !loop_ || loop_->is_paused() || is_over() || is_cut_)
            return;
        if (clock_.now() >= stalled_since_ + write_timeout) {
            is_cut_ = true;
            over_at_ = clock_.now();
            tell_gone();
        }
    }

    /// Whose it is at the server; null: killed.
    [[nodiscard]] sim_loop const* loop() const noexcept { return loop_; }
    /// The server has ended the answer, and the client has all of it.
    [[nodiscard]] bool is_drained_to_end() const noexcept
    {
        return (is_ended_ || has_lost_server_) && kernel_.empty() && unsent_.empty();
    }
    [[nodiscard]] bool is_over() const noexcept { return is_ended_ || is_aborted_ || has_lost_server_; }
    /// When one side ended it.
    [[nodiscard]] base::time_point over_at() const noexcept { return over_at_; }
    [[nodiscard]] bool is_aborted() const noexcept { return is_aborted_; }
    [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
    [[nodiscard]] bool has_vanished() const noexcept { return has_vanished_; }
    [[nodiscard]] std::size_t arrived() const noexcept { return kernel_.size(); }
    [[nodiscard]] std::size_t most_staged() const noexcept { return most_staged_; }

private:
    class receipt final : public base::receipt {
    public:
        receipt(std::weak_ptr<wire> on, std::move_only_function<void()> arrived)
            : on_(std::move(on)), arrived_(std::move(arrived))
        {
        }
        void ask() override
        {
            if (auto const on = on_.lock())
                on->ask_arrived();
        }
        void tell() { arrived_(); }

    private:
        std::weak_ptr<wire> on_;
        std::move_only_function<void()> arrived_;
    };

    void pump()
    {
        if (!loop_ || loop_->is_paused()) // nobody is there to hand anything over
            return;
        auto const room = capacity_ > kernel_.size() ? capacity_ - kernel_.size() : 0;
        auto const moved = std::min(room, unsent_.size());
        kernel_.append(unsent_, 0, moved);
        unsent_.erase(0, moved);
    }
    void tell_gone()
    {
        if (!loop_)
            return;
        loop_->post([self = shared_from_this()] {
            if (self->is_over())
                return;
            if (auto const following = self->following_.lock())
                following->peer_gone();
        });
    }

    base::clock const& clock_; // the true one
    sim_loop* loop_;           // null: killed
    std::weak_ptr<runtime::following> following_;
    std::size_t capacity_;
    std::string staged_;
    std::string unsent_;
    std::string kernel_;
    std::uint64_t written_ = 0;
    std::size_t most_staged_ = 0;
    base::time_point stalled_since_{};
    bool is_draining_ = false;
    bool is_ended_ = false;
    bool is_aborted_ = false;
    bool is_cut_ = false;
    bool has_vanished_ = false;
    bool has_lost_server_ = false;
    base::time_point over_at_{};
    std::shared_ptr<receipt> receipt_;
};

}
