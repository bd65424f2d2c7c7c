// Aggregates, lists and closures where nothing is awaited.
#include "probe.hpp"

task<pair_of_texts> good(std::string name)
{
    std::vector<std::string> const names{name, name};
    std::string const out = co_await collect(names);
    if (out.empty())
        throw named(name);
    co_return pair_of_texts{out, name};
}
