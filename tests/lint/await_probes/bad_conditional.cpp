// A choice between two objects of a class.
#include "probe.hpp"

task<std::string> bad(bool is_long, named a, named b)
{
    // [conditional]
    std::string out = co_await fetch_named(is_long ? a : b);
    // [/conditional]
    co_return out;
}
