// A braced list of class values.
#include "probe.hpp"

task<std::string> bad(std::string name)
{
    std::string out = co_await collect({name, name});
    co_return out;
}
