// How a connection's answers get to the kernel, and what is kept meanwhile.
#include "http/buffers.hpp"
#include "http/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>

namespace belay::http {

connection::sent connection::transmit(std::span<iovec> parts)
{
    parts[0] = part_of(std::string_view(unsent_).substr(unsent_at_));
    std::size_t total = 0;
    for (auto const& part : parts)
        total += part.iov_len;
    if (record_)
        record_->bytes_out += total - (write_armed_ ? parts[0].iov_len : 0);
    if (total == 0)
        return sent::all;
    auto const taken = send_once(parts[0].iov_len == 0 ? parts.subspan(1) : parts, total);
    if (taken < 0)
        return sent::failed;
    auto left = static_cast<std::size_t>(taken);
    handed_over_ += left;
    if (left == total) {
        release(unsent_);
        unsent_at_ = 0;
        if (counted_out_ != 0)
            count_unsent(true);
        return sent::all;
    }
    auto const from_unsent = std::min(left, parts[0].iov_len);
    unsent_at_ += from_unsent;
    left -= from_unsent;
    if (unsent_at_ == unsent_.size()) {
        unsent_.clear();
        unsent_at_ = 0;
    }
    for (auto const& part : parts.subspan(1)) {
        auto const skipped = std::min(left, part.iov_len);
        left -= skipped;
        unsent_.append(static_cast<char const*>(part.iov_base) + skipped, part.iov_len - skipped);
    }
    count_unsent(taken > 0);
    return sent::part;
}

// How much the kernel took, or -1.
ssize_t connection::send_once(std::span<iovec> parts, std::size_t total)
{
    auto one = parts.front();
    if (total <= connection_site::gathered_bytes && parts.size() > 1) {
        auto& whole = site_.gathered;
        whole.clear();
        for (auto const& part : parts)
            whole.append(static_cast<char const*>(part.iov_base), part.iov_len);
        one = part_of(whole);
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    ssize_t taken = 0;
    do {
        count(site_.sends);
        taken = one.iov_len == total ? ::send(fd_, one.iov_base, one.iov_len, flags) : ::sendmsg(fd_, &message, flags);
    } while (taken < 0 && errno == EINTR);
    return taken < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : taken;
}

// Counts what is kept, sent or not: it is given back as a whole.
void connection::count_unsent(bool has_progress)
{
    auto const now = unsent_.size() > in_flight::uncounted ? unsent_.size() : 0;
    if (has_progress || counted_out_ == 0 || now == 0) {
        unlist_unread();
        if (now != 0)
            list_unread();
    }
    if (now != counted_out_)
        site_.in_flight.count_out(std::exchange(counted_out_, now), now, loop_);
}

void connection::list_unread()
{
    auto& list = site_.unread;
    progress_at_ = loop_.now();
    slower_ = std::exchange(list.last, this);
    if (slower_)
        slower_->faster_ = this;
    else
        list.first = this;
    list.oldest = list.first->progress_at_.time_since_epoch().count();
}

void connection::unlist_unread() noexcept
{
    auto& list = site_.unread;
    if (counted_out_ == 0)
        return;
    (slower_ ? slower_->faster_ : list.first) = faster_;
    (faster_ ? faster_->slower_ : list.last) = slower_;
    slower_ = faster_ = nullptr;
    list.oldest = list.first ? list.first->progress_at_.time_since_epoch().count() : in_flight::unread_list::none;
}

void connection::await_writable()
{
    // While a body is awaited its own deadline holds; an unsent "100 Continue" does not lengthen it.
    if (phase_ >= phase::answering)
        deadline_after(site_.settings.write_timeout);
    if (std::exchange(write_armed_, true))
        return;
    socket_->async_wait(socket::wait_write, [self = shared_from_this()](boost::system::error_code const& error) {
        self->on_writable(error);
    });
}

void connection::on_writable(boost::system::error_code const& error)
{
    if (phase_ == phase::closed)
        return;
    if (error)
        return lose(stream_end::peer_gone);
    auto const before = unsent_.size() - unsent_at_;
    std::array<iovec, 1> parts{};
    auto const outcome = transmit(parts);
    write_armed_ = false;
    if (outcome == sent::failed)
        return lose(stream_end::peer_gone);
    if (outcome == sent::part) {
        auto const kept = deadline_;
        bool const has_progress = unsent_.size() - unsent_at_ < before;
        await_writable();
        if (!has_progress)
            deadline_ = kept;
        return;
    }
    switch (phase_) {
    case phase::finishing: return answer_sent();
    case phase::streaming:
        no_deadline();
        if (std::exchange(drain_awaited_, false) && observer_)
            observer_->on_drained();
        return;
    default: return; // a "100 Continue"
    }
}

void connection::finish_answer(sent outcome)
{
    report();
    give_reader_back();
    phase_ = phase::finishing;
    switch (outcome) {
    case sent::all: return answer_sent();
    case sent::part: return await_writable();
    case sent::failed: return close();
    }
}

void connection::answer_sent()
{
    release(out_);
    if (!keep_alive_ || has_ended_input_)
        return finish_connection();
    phase_ = phase::idle;
    if (in_consume_) // which goes on with what it has
        return;
    deadline_after(site_.settings.idle_timeout);
    if (!pending_.empty())
        loop_.post([self = shared_from_this()] { self->consume_pending(); });
    watch();
}

// The last answer is with the kernel. The peer sees our end first and closes; closing at once with unread
// input would make the kernel send a reset, which may overtake the answer.
void connection::finish_connection()
{
    if (has_ended_input_ || ::shutdown(fd_, SHUT_WR) != 0)
        return close();
    phase_ = phase::lingering;
    release(pending_);
    deadline_after(site_.settings.linger_timeout);
    watch();
}

}
