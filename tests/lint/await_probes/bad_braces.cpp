// A result that initialises a member in braces.
#include "probe.hpp"

task<pair_of_texts> bad(named from)
{
    co_return pair_of_texts{co_await fetch_named(from), "b"};
}
