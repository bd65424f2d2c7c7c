// How a connection reads requests.
#include "http/buffers.hpp"
#include "http/connection.hpp"

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sys/socket.h>

namespace belay::http {

namespace {

// Read at once while a head is awaited, and about what is kept behind an unfinished answer.
constexpr std::size_t pending_bytes = std::size_t(16) * 1024;

constexpr refusal no_room{503, "The server is reading as many request bodies as it may; try again in a moment."};

}

// Receives, in place of waiting until there is something: a wait costs the kernel a call of its own each time. So there
// has to be a place for what comes. Long answers are those to a GET; whoever gets one rarely sends anything but the end
// of the connection, and is given a single byte.
void connection::watch()
{
    if (read_armed_ || has_ended_input_ || phase_ == phase::closed)
        return;
    if (is_answering() && pending_.size() >= pending_bytes)
        return;
    read_armed_ = true;
    if (is_answering() && is_get_request_)
        site_.give_back(std::move(input_));
    else if (!input_)
        input_ = site_.take_input();
    auto const into = input_ ? boost::asio::buffer(input_.get(), connection_site::input_bytes)
                             : boost::asio::buffer(&first_input_, 1);
    socket_->async_receive(
        into, [self = shared_from_this(), into](boost::system::error_code const& error, std::size_t size) {
            self->on_received(error, {static_cast<char const*>(into.data()), size}, size == into.size());
        });
}

void connection::on_received(boost::system::error_code const& error, std::string_view bytes, bool is_full)
{
    read_armed_ = false;
    if (phase_ == phase::closed)
        return;
    if (error == boost::asio::error::eof)
        return on_end_of_input();
    if (error)
        return lose(stream_end::peer_gone);
    if (is_full)
        bytes = receive_rest(bytes);
    if (phase_ == phase::lingering) {
        // Discarded, so that the kernel does not answer it with a reset that would eat our last words.
    } else if (is_answering()) {
        pending_.append(bytes);
    } else if (!pending_.empty()) {
        pending_.append(bytes);
        consume_pending();
    } else {
        consume(bytes);
    }
    watch();
}

// There may be more than was received. An end or an error is not looked at here: it comes again.
std::string_view connection::receive_rest(std::string_view first)
{
    std::size_t room = connection_site::scratch_bytes;
    if (is_answering())
        room = std::max(first.size(), pending_bytes - std::min(pending_.size(), pending_bytes));
    else if (phase_ == phase::idle || phase_ == phase::head)
        room = pending_bytes;
    auto* const scratch = site_.scratch.get();
    std::memcpy(scratch, first.data(), first.size());
    auto const got = ::recv(fd_, scratch + first.size(), room - first.size(), MSG_DONTWAIT);
    return {scratch, first.size() + static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

void connection::on_end_of_input()
{
    has_ended_input_ = true;
    if (phase_ == phase::finishing) {
        // The whole answer is on its way; a peer that only shut down its sending side gets it.
        keep_alive_ = false;
        return;
    }
    lose(stream_end::peer_gone);
}

void connection::consume_pending()
{
    if (phase_ != phase::idle || pending_.empty())
        return;
    auto const bytes = std::exchange(pending_, {});
    consume(bytes);
    watch();
}

void connection::consume(std::string_view bytes)
{
    in_consume_ = true;
    while (phase_ <= phase::body && !bytes.empty()) {
        if (!reader_)
            reader_ = site_.take_reader();
        bytes.remove_prefix(reader_->feed(bytes));
        switch (reader_->where()) {
        case request_reader::state::head:
            if (phase_ == phase::idle && reader_->has_begun()) {
                phase_ = phase::head;
                deadline_after(site_.settings.header_timeout);
            }
            break;
        case request_reader::state::body:
            if (!has_room_for_body()) {
                count(site_.refused_bodies);
                refuse(no_room);
                break;
            }
            count_body();
            if (phase_ == phase::body)
                break;
            phase_ = phase::body;
            deadline_after(site_.settings.body_timeout);
            if (reader_->expects_continue() && reader_->body().empty()) {
                std::array<iovec, 2> parts{iovec{}, part_of("HTTP/1.1 100 Continue\r\n\r\n")};
                auto const outcome = transmit(parts);
                if (outcome == sent::failed)
                    lose(stream_end::peer_gone);
                else if (outcome == sent::part)
                    await_writable();
            }
            break;
        case request_reader::state::complete:
            count_body(); // kept until it is answered
            dispatch();
            break;
        case request_reader::state::failed: refuse(reader_->why()); break;
        }
    }
    in_consume_ = false;
    if (is_answering())
        pending_.assign(bytes);
    else if (phase_ == phase::idle && !reader_)
        deadline_after(site_.settings.idle_timeout);
}

bool connection::has_room_for_body() const
{
    auto most = reader_->bytes();
    if (phase_ != phase::body) { // known before it comes, unless it comes in chunks
        std::size_t announced = 0;
        auto const length = reader_->header("Content-Length").value_or("");
        std::from_chars(length.data(), length.data() + length.size(), announced);
        most = std::max(most, announced);
    }
    return most <= in_flight::uncounted || site_.in_flight.takes(most - std::min(most, counted_in_));
}

void connection::count_body()
{
    auto const kept = reader_ ? reader_->bytes() : 0;
    auto const now = kept > in_flight::uncounted ? kept : 0;
    if (now != counted_in_)
        site_.in_flight.count_in(std::exchange(counted_in_, now), now);
}

void connection::give_reader_back()
{
    site_.give_back(std::move(reader_));
    count_body();
}

}
