// An aggregate built in the awaiting expression.
#include "probe.hpp"

task<std::string> bad(std::string name)
{
    // [aggregate]
    std::string out = co_await fetch(pair_of_texts{name, name});
    // [/aggregate]
    co_return out;
}
