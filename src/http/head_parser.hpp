// A request's head: the first line, the fields, and what they say about the body and the connection. Whoever calls sees
// to it, before or after, that there is no other control character in it than the ends of the lines and tabs.
//
// RFC 9110 and 9112, and where they leave a choice, what Boost.Beast chooses: a test holds the two beside each other.
#pragma once

#include "http/request_reader.hpp"

#include <optional>

namespace belay::http {

class head_parser {
public:
    /// The text begins with the head. The fields go to `fields`, which has none, no more than `most` of them.
    head_parser(std::string_view text, head_fields& fields, std::size_t most)
        : text_(text), fields_(fields), most_(most)
    {
    }

    /// Status 0: it is whole and good, and what is below is known.
    [[nodiscard]] refusal parse();

    std::size_t size = 0; ///< of the head, with the empty line
    std::size_t lines = 0; ///< the first and the empty one too

    std::string_view method;
    std::string_view target;
    bool is_http11 = false;
    std::optional<std::uint64_t> content_length;
    std::optional<std::string_view> transfer_encoding;
    std::optional<std::string_view> expect; ///< of several, one that is not understood
    std::size_t host = 0; ///< which field it is, counted from 1; 0: there is none
    [[nodiscard]] bool keeps_alive() const noexcept { return is_http11 ? !says_close_ : says_keep_alive_; }

private:
    [[nodiscard]] std::optional<std::string_view> next_line();
    [[nodiscard]] refusal take_first_line(std::string_view line);
    [[nodiscard]] refusal take_field(std::string_view line);
    [[nodiscard]] refusal look_at(std::uint32_t key, std::string_view name, std::string_view value);
    [[nodiscard]] refusal take_connection(std::string_view value);
    [[nodiscard]] refusal take_length(std::string_view value);

    std::string_view text_;
    head_fields& fields_;
    std::size_t most_;
    bool says_close_ = false;
    bool says_keep_alive_ = false;
};

}
