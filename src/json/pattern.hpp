// Regular expressions as JSON Schema has them: the syntax of ECMAScript in Unicode mode, found anywhere in a text.
//
// Matching takes at most the size of the expression times the length of the text, and memory for one and for the
// other: there is no backtracking, so no expression and no text makes it slow. Look-ahead is there. Not there, and
// refused: back references, look-behind, and \p{…}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::inline v0::detail {

/// A value. Safe from any thread.
class pattern {
public:
    struct limits {
        std::size_t max_size = 10'000; ///< Steps after counted repetitions are written out.
        std::size_t max_depth = 64;    ///< Groups within groups.
    };

    /// Throws std::invalid_argument with a sentence about what is wrong and where.
    explicit pattern(std::string_view expression);
    pattern(std::string_view expression, limits const& limits);

    /// UTF-8. Bytes that are not count as U+FFFD, one for each.
    [[nodiscard]] bool is_in(std::string_view text) const;
    /// What the time for one character is in proportion to.
    [[nodiscard]] std::size_t size() const noexcept;

private:
    friend class pattern_compiler;

    struct range {
        char32_t first;
        char32_t last;
    };
    struct instruction {
        enum class kind : std::uint8_t { consume, fork, jump, begin, end, word_border, no_word_border, look, done };
        kind what;
        bool is_negative = false; ///< look
        std::uint32_t to = 0;     ///< consume: which set; fork, jump: where else; look: which part
    };
    /// The expression, or the inside of a look-ahead.
    struct part {
        std::vector<instruction> code;
        std::vector<std::vector<std::uint32_t>> sources; ///< from where each is reached without a character
    };

    std::vector<std::vector<range>> sets_;
    std::vector<part> parts_; ///< each after those it looks into; the expression itself last
};

}
