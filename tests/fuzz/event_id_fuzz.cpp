// Event ids and the ids of questions: any text is read or refused without harm; what is read is written as the same text but for its nonce,
// and what is written is read as the same position. Input: text; its first bytes also make a position.
#include "engine/cursor.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using namespace belay::engine;

void require(bool holds)
{
    if (!holds)
        std::abort();
}

}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    if (auto const read = parse_event_id(text)) {
        require(text.size() <= max_event_id_bytes);
        require(to_event_id(*read) == text.substr(0, text.find('~')));
    }

    if (auto const read = parse_question_id(text))
        require(to_string(*read) == text);

    std::array<std::uint64_t, 4> numbers{};
    std::memcpy(numbers.data(), data, std::min(size, sizeof numbers));
    position const at{numbers[0], numbers[1], numbers[2]};
    require(parse_event_id(to_event_id(at)) == at);
    question_id const question{numbers[0], numbers[3]};
    require(parse_question_id(to_string(question)) == question);
    std::string with_nonce;
    event_ids(at.stream, at.epoch).append(with_nonce, at.sequence, numbers[3]);
    require(with_nonce.size() <= max_event_id_bytes && parse_event_id(with_nonce) == at);
    // Cut anywhere, it is refused or names something; it is never harmful.
    for (std::size_t length = 0; length < with_nonce.size(); ++length)
        if (auto const cut = parse_event_id(std::string_view(with_nonce).substr(0, length)))
            require(cut->stream == at.stream && cut->epoch == at.epoch);
    return 0;
}
