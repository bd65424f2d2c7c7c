// The builders that authors use: server, and the entries for tools, resources and prompts.
#include "runtime/node.hpp"
#include "server/admission.hpp"
#include "server/checks.hpp"
#include "server/completion.hpp"
#include "server/core.hpp"
#include "server/notices.hpp"

#include <belay/server.hpp>

#include <algorithm>
#include <exception>
#include <stdexcept>

namespace belay::inline v0 {

server::server(std::string name, std::string version)
    : core_(std::make_shared<detail::server_core>(std::move(name), std::move(version)))
{
}

std::shared_ptr<detail::server_core> const& server::core() const
{
    if (!core_)
        throw std::logic_error("this server was moved from; use the one that it was moved to");
    return core_;
}

server& server::instructions(std::string text)
{
    core()->about().instructions = std::move(text);
    return *this;
}
server& server::title(std::string text)
{
    core()->about().title = std::move(text);
    return *this;
}
server& server::describe(std::string text)
{
    core()->about().description = std::move(text);
    return *this;
}
server& server::website(std::string url)
{
    core()->about().website = std::move(url);
    return *this;
}
server& server::add_icon(icon icon)
{
    core()->about().icons.push_back(std::move(icon));
    return *this;
}
server& server::page_size(std::size_t items)
{
    core()->about().page_sizes.fill(items);
    return *this;
}
server& server::page_size(list which, std::size_t items)
{
    core()->about().page_sizes[static_cast<std::size_t>(which)] = items;
    return *this;
}
server& server::declare(list which)
{
    core()->about().declared[static_cast<std::size_t>(which)] = true;
    return *this;
}
server& server::mount_stateless(std::string path, server const& what)
{
    core()->mount(std::move(path), what.core());
    return *this;
}
server& server::every(std::chrono::nanoseconds period, std::function<void()> function)
{
    core()->every(period, std::move(function));
    return *this;
}
server& server::on_log_level(std::function<void(session const&, log_level)> function)
{
    core()->on_log_level(std::move(function));
    return *this;
}

tool_entry server::add(std::shared_ptr<detail::tool_definition> definition)
{
    core()->reserve(*definition);
    return {core(), std::move(definition)};
}

resource_entry server::add(std::string uri, detail::handler<resource_contents> read)
{
    auto definition = std::make_shared<detail::resource_definition>();
    definition->is_template = uri.contains('{');
    definition->uri = std::move(uri);
    definition->read = std::move(read);
    if (definition->is_template)
        definition->completers = detail::completers_of(definition->read.schema);
    core()->reserve(*definition);
    return {core(), std::move(definition)};
}

prompt_entry server::add_prompt(std::string name, detail::handler<prompt_result> get)
{
    auto definition = std::make_shared<detail::prompt_definition>();
    definition->name = std::move(name);
    definition->get = std::move(get);
    definition->arguments = detail::arguments_of(definition->get.schema);
    definition->completers = detail::completers_of(definition->get.schema);
    core()->reserve(*definition);
    return {core(), std::move(definition)};
}

bool server::remove_tool(std::string_view name)
{
    return core()->remove_tool(name);
}
bool server::remove_resource(std::string_view uri)
{
    return core()->remove_resource(uri);
}
bool server::remove_prompt(std::string_view name)
{
    return core()->remove_prompt(name);
}
void server::resource_updated(std::string const& uri)
{
    core()->resource_updated(uri);
}
void server::notify(std::string const& method, json::object const& params)
{
    core()->notify_all(method, params);
}
std::vector<std::string> server::subscriptions() const
{
    return core()->subscriptions();
}
void server::log(log_level level, std::string const& logger, json::value const& data)
{
    core()->log_to_all(level, detail::log_notice(level, logger, data));
}
void server::log(log_level level, std::string const& logger, std::string const& text)
{
    core()->log_to_all(level, detail::log_notice(level, logger, text));
}
void server::log(log_level level, std::string const& logger, char const* text)
{
    log(level, logger, std::string(text));
}

// --- tools

tool_entry::tool_entry(std::shared_ptr<detail::server_core> core, std::shared_ptr<detail::tool_definition> definition)
    : core_(std::move(core)), kept_(std::move(definition)), definition_(*kept_), exceptions_(std::uncaught_exceptions())
{
}
tool_entry::~tool_entry()
{
    // A tool whose description threw is not published.
    core_->publish(std::move(kept_), std::uncaught_exceptions() > exceptions_);
}

tool_entry& tool_entry::describe(std::string text)
{
    definition_.description = std::move(text);
    return *this;
}
tool_entry& tool_entry::title(std::string text)
{
    definition_.title = std::move(text);
    return *this;
}
tool_entry& tool_entry::add_icon(icon icon)
{
    definition_.icons.push_back(std::move(icon));
    return *this;
}
tool_entry& tool_entry::meta(std::string key, json::value value)
{
    definition_.meta[key] = std::move(value);
    return *this;
}
tool_entry& tool_entry::input_schema(json::object schema)
{
    definition_.input_check = detail::check_of(definition_.name, "input", schema, core_->schema_bounds());
    definition_.input_schema = std::move(schema);
    return *this;
}
tool_entry& tool_entry::output_schema(json::object schema)
{
    definition_.output_check = detail::check_of(definition_.name, "output", schema, core_->schema_bounds());
    definition_.output_schema = std::move(schema);
    return *this;
}
tool_entry& tool_entry::read_only()
{
    definition_.read_only = true;
    return *this;
}
tool_entry& tool_entry::destructive(bool may)
{
    definition_.destructive = may;
    return *this;
}
tool_entry& tool_entry::idempotent()
{
    definition_.idempotent = true;
    return *this;
}
tool_entry& tool_entry::closed_world()
{
    definition_.open_world = false;
    return *this;
}
tool_entry& tool_entry::timeout(std::chrono::nanoseconds limit)
{
    definition_.needs_waiting = "it can have no timeout";
    definition_.timeout = limit;
    return *this;
}
tool_entry& tool_entry::cancel_when_orphaned(std::chrono::nanoseconds limit)
{
    definition_.needs_waiting = "it can have no orphan limit";
    definition_.orphan_limit = limit;
    return *this;
}
tool_entry& tool_entry::never_wait()
{
    definition_.waits_for_reader = false;
    return *this;
}

tool_entry& tool_entry::on_interruption(after_interruption what)
{
    definition_.runs_again = what == rerun;
    if (definition_.runs_again)
        definition_.needs_waiting = "nothing interrupts it";
    return *this;
}

// --- resources

resource_entry::resource_entry(
    std::shared_ptr<detail::server_core> core, std::shared_ptr<detail::resource_definition> definition)
    : core_(std::move(core)), definition_(std::move(definition)), exceptions_(std::uncaught_exceptions())
{
}
resource_entry::~resource_entry()
{
    core_->publish(std::move(definition_), std::uncaught_exceptions() > exceptions_);
}
resource_entry& resource_entry::name(std::string text)
{
    definition_->name = std::move(text);
    return *this;
}
resource_entry& resource_entry::title(std::string text)
{
    definition_->title = std::move(text);
    return *this;
}
resource_entry& resource_entry::describe(std::string text)
{
    definition_->description = std::move(text);
    return *this;
}
resource_entry& resource_entry::mime(std::string type)
{
    definition_->mime = std::move(type);
    return *this;
}
resource_entry& resource_entry::size(std::uint64_t bytes)
{
    definition_->size = bytes;
    return *this;
}
resource_entry& resource_entry::annotate(annotations notes)
{
    definition_->notes = std::move(notes);
    return *this;
}
resource_entry& resource_entry::add_icon(icon icon)
{
    definition_->icons.push_back(std::move(icon));
    return *this;
}
resource_entry& resource_entry::meta(std::string key, json::value value)
{
    definition_->meta[key] = std::move(value);
    return *this;
}
resource_entry& resource_entry::complete(std::string variable, completer function)
{
    if (!definition_->is_template)
        throw std::invalid_argument("resource " + definition_->uri + " has no variables to complete");
    auto const variables = detail::uri_template(definition_->uri).variables();
    if (std::ranges::find(variables, variable) == variables.end())
        throw std::invalid_argument("resource " + definition_->uri + " has no {" + variable + "}");
    detail::put(definition_->completers, std::move(variable), std::move(function));
    return *this;
}
resource_entry& resource_entry::complete(std::string variable, std::vector<std::string> values)
{
    return complete(std::move(variable), detail::one_of(std::move(values)));
}
resource_entry& resource_entry::on_subscribe(std::function<task<void>(call&, std::string uri)> function)
{
    definition_->on_subscribe = std::move(function);
    return *this;
}

// --- prompts

prompt_entry::prompt_entry(
    std::shared_ptr<detail::server_core> core, std::shared_ptr<detail::prompt_definition> definition)
    : core_(std::move(core)), definition_(std::move(definition)), exceptions_(std::uncaught_exceptions())
{
}
prompt_entry::~prompt_entry()
{
    core_->publish(std::move(definition_), std::uncaught_exceptions() > exceptions_);
}
prompt_entry& prompt_entry::title(std::string text)
{
    definition_->title = std::move(text);
    return *this;
}
prompt_entry& prompt_entry::describe(std::string text)
{
    definition_->description = std::move(text);
    return *this;
}
prompt_entry& prompt_entry::add_icon(icon icon)
{
    definition_->icons.push_back(std::move(icon));
    return *this;
}
prompt_entry& prompt_entry::meta(std::string key, json::value value)
{
    definition_->meta[key] = std::move(value);
    return *this;
}
prompt_entry& prompt_entry::complete(std::string argument, completer function)
{
    if (std::ranges::find(definition_->arguments, argument, &detail::argument::name) == definition_->arguments.end())
        throw std::invalid_argument("prompt " + definition_->name + " has no argument " + argument);
    detail::put(definition_->completers, std::move(argument), std::move(function));
    return *this;
}
prompt_entry& prompt_entry::complete(std::string argument, std::vector<std::string> values)
{
    return complete(std::move(argument), detail::one_of(std::move(values)));
}

}
