// What is read out of Redis, and the URL that says where it is: whatever the bytes are, nothing but a value or a
// refusal comes of them.
#include "store/redis_codec.hpp"
#include "store/redis_url.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    using namespace belay::store;
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    if (auto const record = read_record(text); record && !read_record(write_record(*record)))
        std::abort();
    if (auto const meta = read_meta(text); meta && !read_meta(write_meta(*meta)))
        std::abort();
    if (auto const event = read_event(text); event && event->payload->size() + 19 != size)
        std::abort();
    (void)read_subscriber(text);
    (void)id_in_tag(text);
    (void)parse_redis_url(text);
    return 0;
}
