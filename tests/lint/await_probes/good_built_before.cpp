// Operands are built in a statement of their own.
#include "probe.hpp"

task<std::string> good(std::string name, bool is_long, named a, named b)
{
    // [aggregate]
    pair_of_texts question{name, name};
    std::string out = co_await fetch(std::move(question));
    // [/aggregate]
    // [closure]
    auto work = [name] { return name; };
    out = co_await run(std::move(work));
    // [/closure]
    // [conditional]
    named const chosen = is_long ? a : b;
    out = co_await fetch_named(chosen);
    // [/conditional]
    std::vector<std::string> names{name, name};
    out = co_await collect(std::move(names));
    co_return out;
}
