// Where log lines go: a queue of bounded size before a descriptor, and a thread that writes. Whoever logs never waits
// for whoever reads the log, and a reader that has gone ends nothing.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace belay::base {

class log_output {
public:
    /// How long the end of a log waits for its reader to take what is left.
    static constexpr duration default_patience = std::chrono::seconds(1);

    /// Writes to a duplicate of the descriptor, whatever it is: file, pipe, socket, terminal. It is not made
    /// non-blocking, because that flag belongs to everyone who has it open. `missing` makes the line that says how
    /// many were dropped.
    log_output(int descriptor, std::size_t max_bytes, std::function<std::string(std::uint64_t)> missing);
    /// Flushes, and leaves behind what nobody takes.
    ~log_output();
    log_output(log_output const&) = delete;
    log_output& operator=(log_output const&) = delete;

    /// Takes a line with its line feed, or drops it if the queue is full. From any thread.
    void write(std::string line);
    /// Waits until everything is written, or the time is over. From any thread.
    bool flush(duration patience = default_patience);
    /// Lines that found the queue full, or could not be written.
    [[nodiscard]] std::uint64_t dropped() const noexcept;

private:
    class state;
    std::shared_ptr<state> state_; // also the thread's, which may outlive this in a write that never returns
    std::thread thread_;
};

}
