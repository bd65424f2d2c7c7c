// A request's head, once it is whole: the first line, the fields, and what they say about the body and the connection.
// Whoever calls has seen to it that every line ends with CR LF, the last one is empty, none begins with a blank, and
// there is no other control character than tabs.
//
// RFC 9110 and 9112, and where they leave a choice, what Boost.Beast chooses: a test holds the two beside each other.
#pragma once

#include "http/request_reader.hpp"

#include <optional>

namespace belay::http {

class head_parser {
public:
    /// The fields go to `fields`, no more than `most` of them.
    head_parser(std::string_view head, std::vector<head_field>& fields, std::size_t most)
        : head_(head), fields_(fields), most_(most)
    {
    }

    /// Status 0: it is good, and what is below is known.
    [[nodiscard]] refusal parse();

    std::string_view method;
    std::string_view target;
    bool is_http11 = false;
    std::optional<std::uint64_t> content_length;
    std::optional<std::string_view> transfer_encoding;
    std::optional<std::string_view> expect; ///< of several, one that is not understood
    std::size_t host = 0;                   ///< which field it is, counted from 1; 0: there is none
    [[nodiscard]] bool keeps_alive() const noexcept { return is_http11 ? !says_close_ : says_keep_alive_; }

private:
    [[nodiscard]] refusal take_first_line(std::string_view line);
    [[nodiscard]] refusal take_field(std::string_view line);
    [[nodiscard]] refusal look_at(std::uint32_t key, std::string_view name, std::string_view value);
    [[nodiscard]] refusal take_connection(std::string_view value);
    [[nodiscard]] refusal take_length(std::string_view value);

    std::string_view head_;
    std::vector<head_field>& fields_;
    std::size_t most_;
    bool says_close_ = false;
    bool says_keep_alive_ = false;
};

}
