// Temporaries of classes with constructors, and scalar choices.
#include "probe.hpp"

task<std::string> good(std::string name, bool is_long)
{
    std::string out = co_await fetch_named(named(name + "!", is_long ? "a" : "b"));
    out = co_await fetch_named(named{name});
    co_return out + (is_long ? "a" : "b");
}
