// Resources by number, fixed and as a family; and those of the conformance suite.
#include "app/reference/parts.hpp"

#include <fmt/format.h>

namespace belay::app::reference {

namespace {

constexpr std::size_t page_size = 10;

bool is_text(std::int64_t id)
{
    return id % 2 == 1;
}

char const* mime_of(std::int64_t id)
{
    return is_text(id) ? "text/plain" : "application/octet-stream";
}

bool is_numbered(std::string const& uri)
{
    for (std::int64_t id = 1; id <= static_resources; ++id)
        if (uri == static_uri(id))
            return true;
    return false;
}

struct numbered_args {
    std::int64_t id = 0;
};
BOOST_DESCRIBE_STRUCT(numbered_args, (), (id))

resource_contents read_numbered(numbered_args args)
{
    if (args.id < 1 || args.id > static_resources)
        throw not_found("there is no such number");
    return {{static_part(args.id)}};
}

// As the reference server of the protocol does, so that a client sees a question outside of tools.
task<void> tell_model(call& call, std::string uri)
{
    if (!is_numbered(uri))
        throw not_found("there is no such number");
    if (!call.can_sample())
        co_return;
    sampling_request request;
    request.messages.push_back({role::user, content::text("A client subscribes to " + uri + ".")});
    request.max_tokens = 100;
    try {
        (void)co_await call.sample(std::move(request), std::chrono::minutes(1));
    } catch (client_error const&) {
        // The subscription does not depend on what the model says.
    }
}

struct data_args {
    std::string id;
};
BOOST_DESCRIBE_STRUCT(data_args, (), (id))

struct template_data {
    std::string id;
    bool templateTest = true;
    std::string data;
};
BOOST_DESCRIBE_STRUCT(template_data, (), (id, templateTest, data))

template_data read_data(data_args args)
{
    template_data made;
    made.id = args.id;
    made.data = "Data for ID: " + args.id;
    return made;
}

void add_suite_resources(server& server)
{
    server
        .resource("test://static-text", [] { return std::string("This is the content of the static text resource."); })
        .name("Static text")
        .describe("A text that never changes")
        .mime("text/plain");
    server.resource("test://static-binary", [] { return tiny_png(); })
        .name("Static image")
        .describe("An image that never changes")
        .mime("image/png");
    server.resource("test://watched-resource", [] { return std::string("Subscribe to this one to hear of it."); })
        .name("Watched resource")
        .describe("A resource to subscribe to")
        .mime("text/plain");
    server.resource("test://template/{id}/data", read_data)
        .name("Data by id")
        .describe("Data made from the id in the URI")
        .mime("application/json");
}

}

std::string static_uri(std::int64_t id)
{
    return fmt::format("test://static/resource/{}", id);
}

resource_part static_part(std::int64_t id)
{
    resource_part part;
    part.uri = static_uri(id);
    part.mime = mime_of(id);
    auto text = fmt::format("Resource {}: {}", id, is_text(id) ? "a text" : "some bytes");
    if (is_text(id))
        part.text = std::move(text);
    else
        part.data = blob{std::move(text)};
    return part;
}

json::object static_block(std::int64_t id)
{
    auto const part = static_part(id);
    return part.data ? content::embedded(part.uri, part.mime, *part.data)
                     : content::embedded(part.uri, part.mime, part.text);
}

void add_resources(server& server)
{
    server.page_size(server::list::resources, page_size);
    add_suite_resources(server);
    for (std::int64_t id = 1; id <= static_resources; ++id)
        server.resource(static_uri(id), [id] { return resource_contents{{static_part(id)}}; })
            .name(fmt::format("Resource {}", id))
            .mime(mime_of(id))
            .on_subscribe(tell_model);
    server.resource("test://static/resource/{id}", read_numbered)
        .name("Static Resource")
        .describe("A resource by its number, 1 to 100: odd ones are text, even ones bytes")
        .complete("id", {"1", "2", "3", "4", "5"})
        .on_subscribe(tell_model);
}

}
