// Uses a template from a header that belongs to us.
#include "include/belay/bad_template.hpp"

task<std::string> user(std::string name)
{
    return bad_template(name);
}
