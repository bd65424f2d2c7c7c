// A session as handlers see it, and the parts of registration that need no core.
#include "base/ids.hpp"
#include "protocol/message.hpp"
#include "runtime/node.hpp"
#include "server/call_state.hpp"
#include "server/core.hpp"
#include "server/notices.hpp"
#include "json/parse.hpp"

#include <charconv>

namespace belay::inline v0 {

std::string trace::header(std::string const& span) const
{
    return "00-" + id + "-" + span + (is_sampled ? "-01" : "-00");
}

detail::session_link::session_link(runtime::node& node, std::shared_ptr<runtime::live_session> session)
    : node_(node), session_(std::move(session))
{
    node_.calls().watch_record(session_); // its author may keep it for as long as it likes
}

std::string session::name() const
{
    return link_->session()->name;
}

std::string session::principal() const
{
    return link_->session()->key.principal;
}

json::object session::client() const
{
    auto const value = json_text::parse(link_->session()->current_record()->client_info);
    return value && value->is_object() ? value->get_object() : json::object();
}

void session::log(log_level level, std::string const& logger, json::value const& data) const
{
    if (detail::wants(*link_->session()->current_record(), level))
        link_->node().announcer().notify(link_->session(), detail::log_notice(level, logger, data));
}

void session::log(log_level level, std::string const& logger, std::string const& text) const
{
    log(level, logger, json::value(json::string(text)));
}

void session::log(log_level level, std::string const& logger, char const* text) const
{
    log(level, logger, json::value(text));
}

std::optional<belay::session> caller::session() const
{
    if (!of_.session)
        return std::nullopt;
    return detail::access::make<belay::session>(std::make_shared<detail::session_link const>(of_.node, of_.session));
}

std::string caller::principal() const
{
    return of_.session ? of_.session->key.principal : std::string();
}

std::string caller::revision() const
{
    return std::string(protocol::to_string(of_.revision));
}

json::object const& caller::meta() const
{
    static json::object const nothing;
    return of_.meta ? *of_.meta : nothing;
}

trace caller::trace() const
{
    return of_.trace ? detail::trace_for(*of_.trace) : belay::trace();
}

}

namespace belay::inline v0::detail {

void throw_bad_answer(decode_error const& error)
{
    throw client_error(
        protocol::code::invalid_params, "The client's answer is not what was asked for: " + error.text());
}

json::object typed_by(json::object const& schema, json::object const& texts)
{
    json::object typed;
    auto const* properties = schema.if_contains("properties");
    for (auto const& each : texts) {
        auto const* property
            = properties && properties->is_object() ? properties->get_object().if_contains(each.key()) : nullptr;
        auto const* type = property && property->is_object() ? property->get_object().if_contains("type") : nullptr;
        auto const* text = each.value().if_string();
        json::value value = each.value();
        if (type && type->is_string() && text) {
            auto const& name = type->get_string();
            auto const* const begin = text->data();
            auto const* const end = begin + text->size();
            if (name == "integer") {
                std::int64_t number = 0;
                if (auto const [rest, bad] = std::from_chars(begin, end, number); bad == std::errc() && rest == end)
                    value = number;
            } else if (name == "number") {
                double number = 0;
                if (auto const [rest, bad] = std::from_chars(begin, end, number); bad == std::errc() && rest == end)
                    value = number;
            } else if (name == "boolean" && (*text == "true" || *text == "false")) {
                value = *text == "true";
            }
        }
        typed[each.key()] = std::move(value);
    }
    return typed;
}

std::vector<argument> arguments_of(json::object const& schema)
{
    std::vector<argument> arguments;
    auto const* properties = schema.if_contains("properties");
    auto const* required = schema.if_contains("required");
    if (!properties || !properties->is_object())
        return arguments;
    for (auto const& each : properties->get_object()) {
        argument one;
        one.name = each.key();
        if (auto const* object = each.value().if_object())
            if (auto const* text = object->if_contains("description"); text && text->is_string())
                one.description = text->get_string().c_str();
        one.is_required = required && required->is_array()
            && std::ranges::find(required->get_array(), json::value(each.key())) != required->get_array().end();
        arguments.push_back(std::move(one));
    }
    return arguments;
}

}
