#include "store/redis_link.hpp"

#include <algorithm>

namespace belay::store {

redis_link::redis_link(base::io_loop& loop, settings settings, events& told, statistics& counts)
    : loop_(loop), settings_(std::move(settings)), told_(&told), counts_(counts), queue_(settings_.most_bytes),
      again_(
          loop.timers(),
          [this] {
              if (is_up())
                  resend_held();
              else
                  look_for_master();
          }),
      check_(loop.timers(), [this] { check_times(); }), delay_(shortest_redis_delay)
{
}

void redis_link::start()
{
    look_for_master();
}

void redis_link::look_for_master()
{
    told_->find_master(
        settings_.connection.address, [weak = weak_from_this()](std::optional<redis_address> const& found) {
            auto const self = weak.lock();
            if (!self || self->is_closed_)
                return;
            if (!found)
                return self->on_lost("nobody knows where its master is");
            self->settings_.connection.address = *found;
            self->connect();
        });
}

void redis_link::connect()
{
    if (is_closed_)
        return;
    connection_ = std::make_shared<redis_connection>(loop_, settings_.connection, *this);
    connection_->start();
}

void redis_link::close()
{
    is_closed_ = true;
    again_.cancel();
    check_.cancel();
    if (connection_)
        connection_->close();
    connection_.reset();
    (void)queue_.take_all(); // whoever waits is gone too
    failed_.clear();
}

// --- sending

void redis_link::send(redis_command command)
{
    if (is_closed_)
        return;
    counts_.commands.fetch_add(1, std::memory_order_relaxed);
    if (command.give_up == base::time_point())
        command.give_up = loop_.recent() + settings_.give_up;
    if (!queue_.push(command))
        return fail(std::move(command), errc::unavailable);
    want_flush();
    want_check();
}

void redis_link::fail(redis_command command, errc why)
{
    counts_.errors.fetch_add(1, std::memory_order_relaxed);
    failed_.emplace_back(std::move(command), why);
    want_flush();
}

void redis_link::want_flush()
{
    if (std::exchange(wants_flush_, true))
        return;
    loop_.post([weak = weak_from_this()] {
        if (auto const self = weak.lock())
            self->flush();
    });
}

void redis_link::flush()
{
    wants_flush_ = false;
    auto const keep = shared_from_this();
    if (is_up() && loading_ == 0) {
        std::string bytes;
        queue_.take_unsent(bytes, loop_.recent());
        if (!bytes.empty())
            connection_->write(std::move(bytes));
    }
    for (auto& [command, why] : std::exchange(failed_, {}))
        command.done(failure(why));
}

// --- replies

bool redis_link::on_ready(std::vector<redis_reply> const& greeted)
{
    if (settings_.role && reply_view(greeted[*settings_.role].get())[0].text() != "master")
        return false;
    delay_ = shortest_redis_delay;
    former_client_ = std::exchange(client_, {});
    if (settings_.client_id) {
        client_ = std::to_string(reply_view(greeted[*settings_.client_id].get()).integer());
        auto server = field_of_info(reply_view(greeted[*settings_.client_id + 1].get()).text(), "run_id");
        if (server != server_)
            former_client_.clear();
        server_ = std::move(server);
    }
    if (!former_client_.empty()) {
        // What Redis has not read yet of the connection before must not be done after what comes now.
        connection_->write(redis_bytes(std::vector<std::string>{"CLIENT", "KILL", "ID", former_client_}));
        loading_ = 1;
    }
    told_->on_up();
    want_flush();
    return true;
}

void redis_link::on_reply(redis_reply reply)
{
    auto const keep = shared_from_this();
    if (loading_ > 0) {
        if (--loading_ == 0)
            resend_held();
        return;
    }
    auto answer = queue_.on_reply(*reply);
    switch (answer.what) {
    case redis_queue::answer::kind::complete: {
        if (answer.verdict == redis_verdict::answer) {
            answer.command.done(std::move(reply));
            break;
        }
        counts_.errors.fetch_add(1, std::memory_order_relaxed);
        answer.command.done(failure(answer.verdict == redis_verdict::full ? errc::no_space : errc::unavailable));
        break;
    }
    case redis_queue::answer::kind::hold: held_for_ = answer.verdict; break;
    case redis_queue::answer::kind::swallow: break;
    case redis_queue::answer::kind::none: drop_connection("it answered what nobody had asked"); return;
    }
    if (is_closed_ || !queue_.is_held())
        return;
    // All that was on its way has been answered.
    if (queue_.holds_for(redis_verdict::moved) || queue_.holds_for(redis_verdict::ask))
        return told_->on_moved(*this, queue_.take_all());
    switch (held_for_) {
    case redis_verdict::no_script: {
        std::string bytes;
        auto const& greeting = settings_.connection.greeting;
        for (std::size_t i = settings_.first_script; i < greeting.size(); ++i, ++loading_)
            bytes += redis_bytes(greeting[i]);
        if (loading_ == 0)
            return drop_connection("a script is not there");
        connection_->write(std::move(bytes));
        break;
    }
    case redis_verdict::other_master: drop_connection("it is no master"); break;
    default:
        again_.after(delay_);
        delay_ = std::min(delay_ * 2, longest_redis_delay);
        break;
    }
}

void redis_link::resend_held()
{
    queue_.release();
    want_flush();
}

// --- losing it

void redis_link::drop_connection(std::string const& why)
{
    if (connection_)
        connection_->close();
    on_lost(why);
}

void redis_link::on_lost(std::string const& why)
{
    auto const keep = shared_from_this();
    held_for_ = redis_verdict::answer;
    loading_ = 0;
    connection_.reset();
    queue_.on_lost();
    counts_.reconnects.fetch_add(1, std::memory_order_relaxed);
    told_->on_down(why);
    if (is_closed_)
        return;
    again_.after(delay_);
    delay_ = std::min(delay_ * 2, longest_redis_delay);
    want_check();
}

// --- time

void redis_link::want_check()
{
    if (!check_.is_armed())
        check_.after(settings_.timeout / 8);
}

void redis_link::check_times()
{
    auto const keep = shared_from_this();
    auto const now = loop_.now();
    for (auto& each : queue_.take_late(now)) {
        counts_.errors.fetch_add(1, std::memory_order_relaxed);
        each.done(failure(errc::unavailable));
    }
    if (is_closed_)
        return;
    if (auto const sent = queue_.oldest_sent(); sent && *sent + settings_.timeout <= now)
        drop_connection("it did not answer in time");
    if (!is_closed_ && !queue_.is_empty())
        want_check();
}

}
