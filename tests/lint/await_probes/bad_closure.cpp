// A closure with a capture that has a destructor.
#include "probe.hpp"

task<std::string> bad(std::string name)
{
    // [closure]
    std::string out = co_await run([name] { return name; });
    // [/closure]
    co_return out;
}
