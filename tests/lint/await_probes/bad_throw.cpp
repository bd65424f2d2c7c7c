// A result that is thrown.
#include "probe.hpp"

task<std::string> bad(named from)
{
    throw co_await fetch_named(from);
    co_return "";
}
