// A picture and a sound, as small as they can be.
#include "app/reference/parts.hpp"

namespace belay::app::reference {

namespace {

// 4 by 4 pixels in two colours.
constexpr unsigned char png[]
    = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
       0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x04, 0x08, 0x02, 0x00, 0x00, 0x00, 0x26, 0x93, 0x09,
       0x29, 0x00, 0x00, 0x00, 0x16, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xb4, 0xd1, 0x04,
       0x8e, 0x18, 0xe4, 0xf3, 0xbb, 0xe1, 0x88, 0x01, 0xa7, 0x0c, 0x00, 0x8c, 0x7a, 0x17, 0x81, 0xb0,
       0x09, 0x29, 0xdb, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

void append_number(std::string& out, std::uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; ++i)
        out += static_cast<char>(value >> (8 * i) & 0xff);
}

}

blob tiny_png()
{
    return {std::string(reinterpret_cast<char const*>(png), sizeof png)};
}

blob tiny_wav()
{
    constexpr std::uint32_t rate = 8000;
    constexpr std::uint32_t samples = 400;
    std::string out = "RIFF";
    append_number(out, 36 + samples, 4);
    out += "WAVEfmt ";
    append_number(out, 16, 4);   // bytes of what follows
    append_number(out, 1, 2);    // plain samples
    append_number(out, 1, 2);    // one channel
    append_number(out, rate, 4); // samples per second
    append_number(out, rate, 4); // bytes per second
    append_number(out, 1, 2);    // bytes per sample
    append_number(out, 8, 2);    // bits per sample
    out += "data";
    append_number(out, samples, 4);
    // A square wave of 400 Hz.
    for (std::uint32_t i = 0; i < samples; ++i)
        out += i / 10 % 2 == 0 ? '\xa0' : '\x60';
    return {std::move(out)};
}

}
