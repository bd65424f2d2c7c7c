#include "http/connection.hpp"

#include "http/buffers.hpp"

#include <algorithm>
#include <sys/socket.h>

namespace belay::http {

namespace {

constexpr std::size_t recorded_path_bytes = 256;

constexpr refusal slow_head{408, "The request head took too long to arrive."};
constexpr refusal slow_body{408, "The request body took too long to arrive."};

}

std::string_view to_string(method method) noexcept
{
    switch (method) {
    case method::get: return "GET";
    case method::head: return "HEAD";
    case method::post: return "POST";
    case method::put: return "PUT";
    case method::delete_: return "DELETE";
    case method::options: return "OPTIONS";
    case method::other: return "OTHER";
    }
    return "?";
}

connection::connection(connection_site& site, socket connected)
    : site_(site), loop_(site.loop), socket_(std::move(connected)), timer_(site.loop.timers(), [this] { on_timer(); }),
      fd_(socket_->native_handle())
{
}

connection::~connection() = default;

void connection::start()
{
    self_ = shared_from_this();
    next_ = site_.first;
    if (next_)
        next_->previous_ = this;
    site_.first = this;
    site_.open_connections.fetch_add(1, std::memory_order_relaxed);
    deadline_after(site_.settings.first_byte_timeout);
    watch();
}

void connection::start_refused(refusal why)
{
    start();
    refuse(why);
}

void connection::stop()
{
    lose(stream_end::stopping);
}

void connection::close_unread()
{
    count(site_.closed_readers);
    lose(stream_end::peer_gone, true);
}

// --- Time ------------------------------------------------------------------------------------------------

void connection::set_deadline(base::time_point when)
{
    deadline_ = when;
    if (when < armed_) {
        armed_ = when;
        timer_.at(when);
    }
}

void connection::on_timer()
{
    auto const held = shared_from_this();
    armed_ = base::time_point::max();
    if (deadline_ == base::time_point::max())
        return;
    if (loop_.now() < deadline_)
        return set_deadline(deadline_);
    no_deadline();
    switch (phase_) {
    case phase::idle: return close();
    case phase::head: return refuse(slow_head);
    case phase::body: return refuse(slow_body);
    case phase::answering:
    case phase::streaming:
    case phase::finishing:
        // The peer does not read. A reset gives the kernel's buffer back at once.
        return lose(stream_end::peer_gone, true);
    case phase::lingering: return close();
    case phase::closed: return;
    }
}

// --- The access log --------------------------------------------------------------------------------------

void connection::note(std::string_view name, std::string value)
{
    if (!record_)
        return;
    auto const known = std::ranges::find(record_->notes, name, &access_note::name);
    if (known != record_->notes.end())
        known->value = std::move(value);
    else
        record_->notes.push_back({name, std::move(value)});
}

void connection::begin_record()
{
    if (record_ || !site_.settings.on_exchange_end)
        return;
    record_ = std::make_unique<record>();
    record_->begun = loop_.now();
    if (!reader_)
        return;
    record_->method = reader_->method();
    record_->path = reader_->path().substr(0, recorded_path_bytes);
    record_->bytes_in = reader_->bytes();
}

void connection::report()
{
    if (!record_)
        return;
    auto const done = std::move(record_);
    access_record entry;
    entry.method = done->method;
    entry.path = done->path;
    entry.status = done->status;
    entry.duration = loop_.now() - done->begun;
    entry.bytes_in = done->bytes_in;
    entry.bytes_out = done->bytes_out;
    entry.is_stream = done->is_stream;
    entry.notes = done->notes;
    site_.settings.on_exchange_end(entry);
}

// --- Ending ----------------------------------------------------------------------------------------------

void connection::close(bool with_reset)
{
    if (phase_ == phase::closed)
        return;
    auto const held = std::move(self_);
    unacknowledged_at_close_ = unacknowledged();
    tell_arrived();
    receipts_.clear();
    phase_ = phase::closed;
    is_closed_.store(true, std::memory_order_release);
    timer_.cancel();
    no_deadline();
    if (with_reset) {
        linger const at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    boost::system::error_code ignored;
    socket_->close(ignored);
    socket_.reset();
    if (previous_)
        previous_->next_ = next_;
    else
        site_.first = next_;
    if (next_)
        next_->previous_ = previous_;
    previous_ = next_ = nullptr;
    site_.open_connections.fetch_sub(1, std::memory_order_relaxed);
    report();
    give_reader_back();
    release(pending_);
    release(unsent_);
    unsent_at_ = 0;
    count_unsent(false);
}

void connection::lose(stream_end why, bool with_reset)
{
    auto const held = shared_from_this();
    close(with_reset);
    if (auto* const told = std::exchange(observer_, nullptr))
        told->on_closed(why);
}

void connection::lose_later()
{
    close();
    tell_closed_later();
}

void connection::tell_closed_later()
{
    loop_.post([self = shared_from_this()] {
        if (auto* const told = std::exchange(self->observer_, nullptr))
            told->on_closed(stream_end::peer_gone);
    });
}

}
