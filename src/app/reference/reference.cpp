#include "app/reference/reference.hpp"

#include "app/reference/parts.hpp"

namespace belay::app {

void add_reference(server& server)
{
    // The conformance suite calls the first tool that is listed, without arguments.
    reference::add_content_tools(server);
    reference::add_tools(server);
    reference::add_questions(server);
    reference::add_conformance(server);
    reference::add_resources(server);
    reference::add_prompts(server);
}

}
