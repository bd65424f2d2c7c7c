// A coroutine template in a header: found through the file that uses it.
#include "../../probe.hpp"

template<class T>
task<std::string> bad_template(T name)
{
    std::string out = co_await fetch(pair_of_texts{name, name});
    co_return out;
}
