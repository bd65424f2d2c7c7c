#include "server/core.hpp"

#include "base/ids.hpp"
#include "protocol/names.hpp"
#include "runtime/node.hpp"
#include "server/access.hpp"
#include "server/admission.hpp"
#include "server/answers.hpp"
#include "server/blocking.hpp"
#include "server/call_state.hpp"
#include "server/checks.hpp"
#include "server/completion.hpp"
#include "server/notices.hpp"
#include "server/render.hpp"
#include "json/serialize.hpp"

#include <algorithm>
#include <stdexcept>

namespace belay::inline v0::detail {

namespace {

using protocol::rpc_error;

std::string bad_arguments_answer(
    tool_definition const& tool, std::string_view id, decode_error const& error, protocol::revision revision)
{
    auto const text = "Invalid arguments for tool " + tool.name + ": " + error.text();
    if (protocol::facts_of(revision).has_bad_arguments_as_result)
        return result_answer(id, {text, {}, {}, true}, revision);
    return protocol::error_response(id, {protocol::code::invalid_params, text, {}});
}

/// Runs a quick tool; what it throws is an answer too.
std::string quick_answer(
    std::invocable auto const& log, tool_definition const& tool, std::string_view id, json::object const& arguments,
    request_facts const& facts)
{
    auto const revision = facts.revision;
    auto* const session = facts.session.get();
    try {
        auto const by = access::make<caller>(facts);
        auto const result = tool.quick(by, arguments);
        if (result)
            require_output(tool.output_check.get(), *result);
        return result ? result_answer(id, *result, revision) : bad_arguments_answer(tool, id, result.error(), revision);
    } catch (...) {
        auto const record = session ? session->current_record() : nullptr;
        return failed_answer(
            log(), tool.name, id, revision, record ? std::string_view(record->client_capabilities) : "{}");
    }
}

constexpr std::size_t max_key_bytes = 128;

json::value const* given_key(protocol::message const& message)
{
    return message.meta ? message.meta->if_contains(protocol::meta::idempotency_key) : nullptr;
}

/// The same for all texts of one value: the order of an object's members says nothing.
json::value in_order(json::value const& value)
{
    if (auto const* const array = value.if_array()) {
        json::array made;
        for (auto const& each : *array)
            made.push_back(in_order(each));
        return made;
    }
    auto const* const object = value.if_object();
    if (!object)
        return value;
    std::map<std::string_view, json::value const*> members;
    for (auto const& each : *object)
        members.emplace(each.key(), &each.value());
    json::object made;
    for (auto const& [name, each] : members)
        made.emplace(name, in_order(*each));
    return made;
}

/// The call's idempotency key, if its caller gave one.
std::expected<std::optional<store::once_key>, std::string>
read_once(protocol::message const& message, json::object const& arguments)
{
    auto const* given = given_key(message);
    if (!given)
        return std::nullopt;
    auto const* text = given->if_string();
    if (!text || text->empty() || text->size() > max_key_bytes)
        return std::unexpected(
            std::string(protocol::meta::idempotency_key) + " must be a string of 1 to " + std::to_string(max_key_bytes)
            + " bytes");
    auto const called
        = json_text::to_json(*message.params->if_contains("name")) + json_text::to_json(in_order(arguments));
    return store::once_key{std::string(view(*text)), base::fingerprint(called)};
}

std::expected<admission::begin, decode_error>
prepare_waiting(tool_definition const& tool, runtime::incoming const& request, json::object const& arguments)
{
    auto ready = tool.waiting(arguments);
    if (!ready)
        return std::unexpected(std::move(ready).error());
    return [&node = request.node, context = context_of(request), name = tool.name,
            run = with_output_check(tool, std::move(*ready))](
               std::shared_ptr<runtime::call> on, admission::place place) mutable {
        // The place is the tool's until its frame is gone.
        auto placed = [run = std::move(run), place = std::move(place)](call& on_call) mutable { return run(on_call); };
        start_tool(node, std::move(on), std::move(context), std::move(name), std::move(placed));
    };
}

/// The work of a route, with what holds for every request around it.
runtime::outcome run_guarded(runtime::incoming const& request, auto& work)
{
    // Whoever asks for progress in a way that cannot be followed is told so, and does not wait for it.
    if (auto const token = protocol::progress_token(request.message); !token)
        return refuse(request, token.error());
    base::handler_scope const running(request.message.method, subject_of(request.message));
    runtime::outcome outcome = work(request);
    auto* const instant = std::get_if<runtime::instant_answer>(&outcome);
    // Calls see to it themselves.
    if (instant && instant->response.size() > request.node.settings().limits.event_bytes)
        instant->response = too_large_answer(request);
    return outcome;
}

template<class F>
runtime::route route_to(bool is_instant, F work)
{
    return {is_instant, false, [work = std::move(work)](runtime::incoming const& request) {
                return run_guarded(request, work);
            }};
}

template<class F>
runtime::route instant(F work)
{
    return route_to(true, std::move(work));
}

/// What makes no sense where nothing is kept of a client.
template<class F>
auto in_session(F work)
{
    return [work = std::move(work)](runtime::incoming const& request) -> runtime::outcome {
        if (!request.session)
            return refuse(
                request, {protocol::code::method_not_found, "Method not found: this endpoint keeps no sessions", {}});
        return work(request);
    };
}

bool is_retry_safe(tool_definition const& tool)
{
    return tool.read_only.value_or(false) || tool.idempotent.value_or(false);
}

/// Names the tool as far as a call of it depends on it: its name, what it takes and what it gives.
std::uint64_t work_of(tool_definition const& tool)
{
    auto text = tool.name + '\n' + json_text::to_json(tool.input_schema);
    if (tool.output_schema)
        text += '\n' + json_text::to_json(*tool.output_schema);
    return std::max<std::uint64_t>(base::fingerprint(text), 1);
}

void say_failure(base::logger const& log, std::string const& failure)
{
    log.error("not registered: {}", failure);
}

bool is_name(std::string_view name)
{
    auto const is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'
            || c == '-';
    };
    return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, is_allowed);
}

}

server_core::server_core(std::string name, std::string version) : name_(std::move(name)), version_(std::move(version))
{
}

// --- registration

void server_core::reserve(tool_definition const& fresh)
{
    if (!is_name(fresh.name))
        throw std::invalid_argument(
            "tool name \"" + fresh.name + "\": use 1 to 128 letters, digits, underscores, dots and dashes");
    base::lock const lock(reserved_mutex_);
    if (tools_.now()->find(fresh.name) || !reserved_.insert("tool " + fresh.name).second)
        throw std::invalid_argument("tool " + fresh.name + " is registered twice");
}

void server_core::reserve(resource_definition const& fresh)
{
    base::lock const lock(reserved_mutex_);
    resources_.check(fresh);
    if (!reserved_.insert("resource " + fresh.uri).second)
        throw std::invalid_argument("resource " + fresh.uri + " is registered twice");
}

void server_core::reserve(prompt_definition const& fresh)
{
    base::lock const lock(reserved_mutex_);
    prompts_.check(fresh);
    if (!reserved_.insert("prompt " + fresh.name).second)
        throw std::invalid_argument("prompt " + fresh.name + " is registered twice");
}

template<class F>
void server_core::publish_as(list which, std::string const& reserved, bool is_broken, F const& add) noexcept
{
    std::string failure;
    try {
        if (!is_broken)
            add();
    } catch (std::exception const& error) {
        failure = error.what();
    }
    {
        base::lock const lock(reserved_mutex_);
        reserved_.erase(reserved);
    }
    if (is_broken)
        return;
    note_failure(reserved, failure);
    if (failure.empty())
        changed(which);
}

void server_core::note_failure(std::string const& of, std::string const& failure)
{
    base::logger log;
    {
        base::lock const lock(node_mutex_);
        std::erase_if(failures_, [&](auto const& each) { return each.first == of; });
        if (failure.empty())
            return;
        if (!log_)
            return static_cast<void>(failures_.emplace_back(of, failure));
        log = *log_;
    }
    // Without the lock: the log may be a function of the author's, which uses this server.
    say_failure(log, failure);
}

void server_core::publish(std::shared_ptr<tool_definition> fresh, bool is_broken) noexcept
{
    publish_as(list::tools, "tool " + fresh->name, is_broken, [&] {
        if (fresh->quick && !fresh->needs_waiting.empty())
            throw std::invalid_argument(
                "tool " + fresh->name + " cannot wait, so " + fresh->needs_waiting
                + "; if it takes long, say that it is blocking()");
        if (fresh->runs_again && !is_retry_safe(*fresh))
            throw std::invalid_argument(
                "tool " + fresh->name
                + " can be run again only if that does no harm: say that it is read_only() or idempotent()");
        if (fresh->runs_again)
            fresh->work = work_of(*fresh);
        listed as{fresh->name, texts_by_revision([&](std::string& out, protocol::revision revision) {
                      append_tool(out, *fresh, revision);
                  })};
        (void)tools_.add(fresh, std::move(as));
    });
}

void server_core::publish(std::shared_ptr<resource_definition> fresh, bool is_broken) noexcept
{
    publish_as(list::resources, "resource " + fresh->uri, is_broken, [&] { resources_.add(fresh); });
}

void server_core::publish(std::shared_ptr<prompt_definition> fresh, bool is_broken) noexcept
{
    publish_as(list::prompts, "prompt " + fresh->name, is_broken, [&] { prompts_.add(fresh); });
}

bool server_core::remove_tool(std::string_view name)
{
    bool const was_there = tools_.remove(name);
    if (was_there)
        changed(list::tools);
    return was_there;
}

bool server_core::remove_resource(std::string_view uri)
{
    bool const was_there = resources_.remove(uri);
    if (was_there)
        changed(list::resources);
    return was_there;
}

bool server_core::remove_prompt(std::string_view name)
{
    bool const was_there = prompts_.remove(name);
    if (was_there)
        changed(list::prompts);
    return was_there;
}

void server_core::changed(list which)
{
    base::lock const lock(node_mutex_);
    auto& is_pending = is_change_pending_[static_cast<std::size_t>(which)];
    if (!node_ || is_pending)
        return;
    // Several changes at once are told once.
    is_pending = true;
    node_->context().later([core = shared_from_this(), which] {
        base::lock const inner(core->node_mutex_);
        core->is_change_pending_[static_cast<std::size_t>(which)] = false;
        if (!core->node_)
            return;
        static constexpr std::string_view methods[]
            = {protocol::method::tools_list_changed, protocol::method::resources_list_changed,
               protocol::method::prompts_list_changed};
        core->node_->announcer().broadcast(
            protocol::notification(methods[static_cast<std::size_t>(which)], {}),
            [bit = bit_of(which)](store::session_record const& record) { return (record.told_features & bit) != 0; });
    });
}

void server_core::mount(std::string path, std::shared_ptr<server_core> const& what)
{
    if (path.size() < 2 || path.front() != '/' || path.find_first_of("?# ") != std::string::npos)
        throw std::invalid_argument("mount \"" + path + "\": use a path such as /hello/mcp");
    if (std::ranges::find(mounts_, path, &mounted::path) != mounts_.end())
        throw std::invalid_argument("two servers are mounted at " + path);
    bool const is_self = what.get() == this;
    if (!is_self && !what->mounts_.empty())
        throw std::invalid_argument("the server for " + path + " has mounts of its own; mount those here");
    mounts_.push_back({std::move(path), is_self ? nullptr : what}); // itself: not to keep itself alive
}

void server_core::get_ready(schema_limits const& limits)
{
    {
        base::lock const lock(reserved_mutex_);
        if (!reserved_.empty())
            throw std::invalid_argument(
                *reserved_.begin()
                + " is not registered yet: what server.tool(), resource() or prompt() returned is kept in a variable. "
                  "It registers when it is destroyed; end its statement or its scope before the server starts");
    }
    {
        base::lock const lock(node_mutex_);
        if (!failures_.empty())
            throw std::invalid_argument(failures_.front().second);
    }
    *schema_limits_ = limits;
    auto const tools = tools_.now();
    for (auto const& each : tools->in_order) {
        auto const& tool = *each->what;
        if (tool.input_check)
            (void)check_of(tool.name, "input", tool.input_schema, schema_limits_);
        if (tool.output_check)
            (void)check_of(tool.name, "output", *tool.output_schema, schema_limits_);
    }
}

// --- life

void server_core::work_on(base::worker_pool& workers)
{
    base::worker_pool* nobody = nullptr;
    if (!workers_.compare_exchange_strong(nobody, &workers))
        throw std::logic_error("the server " + name_ + " is served already; it can be served by one at a time");
}

void server_core::start(runtime::node& node, base::loop& loop, runtime::session_mode mode)
{
    decltype(failures_) failures; // since get_ready()
    {
        base::lock const lock(node_mutex_);
        failures.swap(failures_);
        log_ = node.log();
        if (mode != runtime::session_mode::none)
            node_ = &node;
    }
    for (auto const& [of, failure] : failures)
        say_failure(node.log(), failure);
    for (auto const& [period, function] : periodic_) {
        auto& timer = timers_.emplace_back();
        timer = std::make_unique<base::timer>(
            loop.timers(), [&node, &loop, &timer, period, &function, due = loop.now() + period]() mutable {
                base::handler_scope const running("a periodic function");
                try {
                    function();
                } catch (std::exception const& error) {
                    node.log().error("a periodic function failed: {}", error.what());
                } catch (...) {
                    node.log().error("a periodic function failed");
                }
                // From when it was due, so that it keeps its pace; what was missed is not made up for.
                due = std::max(due, loop.now() - period) + period;
                timer->at(due);
            });
        timer->after(period);
    }
}

void server_core::stop()
{
    timers_.clear();
    base::lock const lock(node_mutex_);
    log_.reset();
    node_ = nullptr;
    is_change_pending_ = {}; // what was to be told went with the node
}

void server_core::resource_updated(std::string const& uri)
{
    std::string params = "{\"uri\":";
    json_text::append_json_string(params, uri);
    params += '}';
    base::lock const lock(node_mutex_);
    if (node_)
        node_->announcer().notify_subscribers(uri, protocol::notification(protocol::method::resources_updated, params));
}

std::vector<std::string> server_core::subscriptions() const
{
    base::lock const lock(node_mutex_);
    return node_ ? node_->announcer().subscriptions() : std::vector<std::string>();
}

void server_core::log_to_all(log_level level, std::string notice)
{
    base::lock const lock(node_mutex_);
    if (node_)
        node_->announcer().broadcast(
            std::move(notice), [level](store::session_record const& record) { return wants(record, level); });
}

void server_core::notify_all(std::string_view method, json::object const& params)
{
    base::lock const lock(node_mutex_);
    if (node_)
        node_->announcer().broadcast(
            protocol::notification(method, json_text::to_json(params)),
            [](store::session_record const&) { return true; });
}

// --- requests

server_core::~server_core() = default;

std::uint32_t server_core::features() const
{
    auto const is_declared = [&](server::list which) { return about_.declared[static_cast<std::size_t>(which)]; };
    auto bits = bit_of(list::tools);
    if (!resources_.is_empty() || is_declared(server::list::resources) || is_declared(server::list::resource_templates))
        bits |= bit_of(list::resources);
    if (!prompts_.is_empty() || is_declared(server::list::prompts))
        bits |= bit_of(list::prompts);
    return bits;
}

std::string
server_core::initialize_result(protocol::revision revision, runtime::session_mode mode, std::uint32_t features) const
{
    auto const& speaks = protocol::facts_of(revision);
    bool const has_session = mode != runtime::session_mode::none;
    json::object result;
    result["protocolVersion"] = protocol::to_string(revision);
    auto& capabilities = result["capabilities"].emplace_object();
    json::object changing;
    if (has_session) {
        changing["listChanged"] = true;
        capabilities["logging"].emplace_object();
    }
    if (mode == runtime::session_mode::resumable)
        capabilities["experimental"].emplace_object()[protocol::feature::idempotency].emplace_object();
    capabilities["tools"] = changing;
    if (features & bit_of(list::resources)) {
        auto& resources = capabilities["resources"].emplace_object();
        if (has_session)
            resources = {{"subscribe", true}, {"listChanged", true}};
    }
    if (features & bit_of(list::prompts))
        capabilities["prompts"] = changing;
    if ((prompts_.has_completers() || resources_.has_completers()) && speaks.has_completions_capability)
        capabilities["completions"].emplace_object();
    auto& info = result["serverInfo"].emplace_object();
    info["name"] = name_;
    if (!about_.title.empty() && speaks.has_titles)
        info["title"] = about_.title;
    info["version"] = version_;
    if (!about_.description.empty() && speaks.has_server_details)
        info["description"] = about_.description;
    if (!about_.website.empty() && speaks.has_server_details)
        info["websiteUrl"] = about_.website;
    add_icons_and_meta(info, about_.icons, {}, revision);
    if (!about_.instructions.empty())
        result["instructions"] = about_.instructions;
    return json_text::to_json(result);
}

runtime::route server_core::find(protocol::message const& request)
{
    using runtime::incoming;
    auto const& method = request.method;
    if (method == protocol::method::tools_call)
        return find_tool(request);
    if (method == protocol::method::ping)
        return instant([](incoming const& of) { return give(of, "{}"); });
    if (method == protocol::method::tools_list)
        return instant(
            [this](incoming const& of) { return list_page(of, "tools", tools_, page_size(server::list::tools)); });
    if (method == protocol::method::resources_read) {
        auto found = resources_.find(request);
        bool const is_instant = !found || found->what->read.quick;
        auto route = route_to(
            is_instant, [this, found = std::move(found)](incoming const& of) { return resources_.read(of, found); });
        route.kind.is_retry_safe = true;
        return route;
    }
    if (method == protocol::method::resources_list)
        return instant([this](incoming const& of) { return resources_.list(of, page_size(server::list::resources)); });
    if (method == protocol::method::resources_templates_list)
        return instant([this](incoming const& of) {
            return resources_.list_templates(of, page_size(server::list::resource_templates));
        });
    if (method == protocol::method::prompts_get) {
        auto found = prompts_.find(request);
        bool const is_instant = !found || found->get.quick;
        auto route = route_to(
            is_instant, [this, found = std::move(found)](incoming const& of) { return prompts_.get(of, found); });
        route.kind.is_retry_safe = true;
        return route;
    }
    if (method == protocol::method::prompts_list)
        return instant([this](incoming const& of) { return prompts_.list(of, page_size(server::list::prompts)); });
    if (method == protocol::method::complete)
        return instant([this](incoming const& of) { return detail::complete(of, prompts_, resources_); });
    if (method == protocol::method::resources_subscribe) {
        auto found = resources_.find(request);
        bool const is_instant = !found || !found->what->on_subscribe;
        auto route = route_to(is_instant, in_session([this, found = std::move(found)](incoming const& of) {
                                  return resources_.subscribe(of, found);
                              }));
        route.kind.is_retry_safe = true;
        return route;
    }
    if (method == protocol::method::resources_unsubscribe)
        return instant(in_session([this](incoming const& of) { return resources_.unsubscribe(of); }));
    if (method == protocol::method::set_level)
        return instant(in_session([this](incoming const& of) { return set_level(of); }));
    return instant(
        [](incoming const& of) { return refuse(of, {protocol::code::method_not_found, "Method not found", {}}); });
}

runtime::route server_core::find_tool(protocol::message const& request) const
{
    auto const* const name = text_param(request, "name");
    auto found = name ? tools_.now()->find(view(*name)) : nullptr;
    bool const is_instant = !found || found->quick;
    runtime::request_kind const kind{true, found && is_retry_safe(*found)};
    auto route = route_to(
        is_instant, [this, found = std::move(found)](runtime::incoming const& of) { return call_tool(of, found); });
    route.has_key = given_key(request) != nullptr;
    route.kind = kind;
    return route;
}

bool server_core::can_run(std::uint64_t work) const
{
    auto const tools = tools_.now();
    return std::ranges::any_of(
        tools->in_order, [&](auto const& each) { return each->what->runs_again && each->what->work == work; });
}

void server_core::tell_level(
    runtime::node& node, std::shared_ptr<runtime::live_session> const& session, log_level level) const
{
    if (!on_log_level_)
        return;
    try {
        on_log_level_(access::make<belay::session>(std::make_shared<session_link const>(node, session)), level);
    } catch (std::exception const& error) {
        node.log().error("on_log_level failed: {}", error.what());
    } catch (...) {
        node.log().error("on_log_level failed");
    }
}

runtime::outcome server_core::set_level(runtime::incoming const& request) const
{
    auto const* value = request.message.params ? request.message.params->if_contains("level") : nullptr;
    auto const level = value && value->is_string() ? parse_log_level(view(value->get_string())) : std::nullopt;
    if (!level)
        return refuse(
            request,
            {protocol::code::invalid_params,
             "level must be one of debug, info, notice, warning, error, critical, alert, emergency",
             {}});
    return runtime::deferred_answer{[this, &node = request.node, session = request.session, level = *level,
                                     id = request.message.id](std::move_only_function<void(std::string)> answer) {
        node.sessions().change(
            session, [level](store::session_record& record) { record.log_level = static_cast<int>(level); },
            [this, &node, session, level, id, answer = std::move(answer)](result<void> changed) mutable {
                if (changed)
                    tell_level(node, session, level);
                answer(
                    changed ? protocol::result_response(id, "{}")
                            : protocol::error_response(
                                  id, {protocol::code::internal_error, changed.error().message(), {}}));
            });
    }};
}

runtime::outcome
server_core::call_tool(runtime::incoming const& request, std::shared_ptr<tool_definition const> const& found) const
{
    auto const& message = request.message;
    if (!found && !text_param(message, "name"))
        return refuse(request, {protocol::code::invalid_params, "params.name must be the name of a tool", {}});
    if (!found)
        return refuse(request, {protocol::code::invalid_params, "Unknown tool; tools/list names those there are", {}});
    auto const& tool = *found;

    static json::value const nothing = json::object();
    auto const* given = message.params->if_contains("arguments");
    if (!given)
        given = &nothing;
    if (!given->is_object())
        return refuse(request, {protocol::code::invalid_params, "params.arguments must be an object", {}});
    auto const bad_arguments = [&](decode_error const& error) {
        return runtime::instant_answer{bad_arguments_answer(tool, message.id, error, request.revision)};
    };

    auto once = read_once(message, given->get_object());
    if (!once)
        return refuse(request, {protocol::code::invalid_params, once.error(), {}});
    json::value without_nulls;
    auto const checked = check_arguments(tool, *given, without_nulls);
    if (!checked)
        return bad_arguments(checked.error());
    json::object const* const arguments = *checked;
    if (tool.quick && *once) {
        runtime::start_call start;
        start.once = std::move(*once);
        start.traits.is_retry_safe = is_retry_safe(tool);
        start.run = [found, &node = request.node, context = context_of(request), id = message.id,
                     arguments = json::object(*arguments, json::storage_ptr())](std::shared_ptr<runtime::call> on) {
            auto const trace = on->trace();
            request_facts const facts{
                node, on->shared_session(), context.revision, &context.meta, trace ? &*trace : nullptr};
            on->answer(quick_answer([&] { return on->logger(); }, *found, id, arguments, facts));
        };
        return start;
    }

    if (tool.quick)
        return runtime::instant_answer{
            quick_answer([&] { return log_of(request); }, tool, message.id, *arguments, facts_of(request))};

    auto const token = progress_token_of(message);
    auto begin = tool.blocking ? prepare_blocking(tool, request, *arguments, token, workers_)
                               : prepare_waiting(tool, request, *arguments);
    if (!begin)
        return bad_arguments(begin.error());
    runtime::call_traits traits;
    traits.is_retry_safe = is_retry_safe(tool);
    traits.max_duration = tool.timeout;
    traits.orphan_limit = tool.orphan_limit;
    traits.waits_for_reader = tool.waits_for_reader && !tool.blocking;
    runtime::start_call start{traits, in_turn(tool.admission, std::move(*begin)), std::move(*once), token};
    if (tool.runs_again)
        start.again = runtime::rerun_request{
            tool.work, protocol::request_text(message.id, message.method, json_text::to_json(*message.params))};
    return start;
}

}
