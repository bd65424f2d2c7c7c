// What the connections of one loop share.
#include "http/connection.hpp"

namespace belay::http {

namespace {

// How long after an answer the kernel is asked whether it has arrived.
constexpr base::duration arrival_time = std::chrono::seconds(1);

constexpr std::size_t spare_count = 64; // of readers, and of input buffers

}

connection_site::connection_site(
    base::io_loop& on, server_settings const& with, http::policy const& by, http::handler& to,
    std::atomic<std::size_t>& count, http::in_flight& in_flight)
    : loop(on), settings(with), policy(by), handler(to), scratch(std::make_unique_for_overwrite<char[]>(scratch_bytes)),
      ask_arrived(
          on.timers(),
          [this] {
              std::erase_if(awaiting, [](std::weak_ptr<connection> const& each) {
                  auto const open = each.lock();
                  return !open || open->tell_arrived();
              });
              if (!awaiting.empty())
                  ask_arrived.after(arrival_time);
          }),
      in_flight(in_flight), unread(in_flight.add(on)), open_connections(count)
{
    spare_readers.reserve(spare_count);
    spare_inputs.reserve(spare_count);
    gathered.reserve(gathered_bytes);
}

void connection_site::await_arrival(std::weak_ptr<connection> on)
{
    awaiting.push_back(std::move(on));
    if (!ask_arrived.is_armed())
        ask_arrived.after(arrival_time);
}

std::unique_ptr<request_reader> connection_site::take_reader()
{
    if (spare_readers.empty())
        return std::make_unique<request_reader>(settings.limits);
    auto reader = std::move(spare_readers.back());
    spare_readers.pop_back();
    return reader;
}

void connection_site::give_back(std::unique_ptr<request_reader> reader) noexcept
{
    if (!reader || spare_readers.size() == spare_count)
        return;
    reader->reset();
    spare_readers.push_back(std::move(reader));
}

std::unique_ptr<char[]> connection_site::take_input()
{
    if (spare_inputs.empty())
        return std::make_unique_for_overwrite<char[]>(input_bytes);
    auto input = std::move(spare_inputs.back());
    spare_inputs.pop_back();
    return input;
}

void connection_site::give_back(std::unique_ptr<char[]> input) noexcept
{
    if (input && spare_inputs.size() < spare_count)
        spare_inputs.push_back(std::move(input));
}

}
