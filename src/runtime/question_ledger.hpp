// The questions on a stream that wait for an answer of the client: who hears it, and which place in the log is to be
// made blank then. An answer can overtake the store's word that the question is kept; such a question is closed at once
// and its place given out later. Pure.
#pragma once

#include <belay/error.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace belay::runtime {

class question_ledger {
public:
    /// The client's answer, as the JSON text of its response; or why there is none.
    using answered = std::move_only_function<void(result<std::string>)>;

    struct closed {
        answered done;
        std::optional<std::uint64_t> blank; ///< its place in the log; kept() gives it if it is not known yet
    };

    /// Numbers up to that one were used before.
    void go_on_after(std::uint64_t number) noexcept { last_number_ = number; }
    /// Numbers are never used twice.
    [[nodiscard]] std::uint64_t next_number() noexcept { return ++last_number_; }
    /// `request` is which request of the stream asks, `ticket` the name of what is being appended.
    void add(std::uint64_t number, std::uint32_t request, std::uint64_t ticket, answered done);
    /// The question is answered or withdrawn. Nothing if it is not open.
    [[nodiscard]] std::optional<closed> close(std::uint64_t number);
    /// The open questions of a request, oldest first.
    [[nodiscard]] std::vector<std::uint64_t> open_of(std::uint32_t request) const;

    /// What was appended under that ticket is in the log. Gives the place back if its question was closed meanwhile.
    [[nodiscard]] std::optional<std::uint64_t> kept(std::uint64_t ticket, std::uint64_t sequence);
    /// It could not be appended: nobody will answer. Gives who has to hear that, if anybody still wants to.
    [[nodiscard]] answered lost(std::uint64_t ticket);

    [[nodiscard]] std::size_t size() const noexcept { return questions_.size(); }

private:
    struct question {
        std::uint64_t number;
        std::uint32_t request;
        std::uint64_t ticket;
        answered done;
        std::uint64_t sequence = 0; // 0: not in the log yet
        bool is_closed = false; // before that
    };
    std::vector<question> questions_;
    std::uint64_t last_number_ = 0;
};

}
