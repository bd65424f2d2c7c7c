#include "server/notices.hpp"

#include "protocol/message.hpp"
#include "protocol/names.hpp"
#include "json/serialize.hpp"

namespace belay::inline v0::detail {

namespace {

std::string log_head(log_level level, std::string const& logger)
{
    std::string params = R"({"level":")";
    params += to_string(level);
    params += '"';
    if (!logger.empty()) {
        params += R"(,"logger":)";
        json_text::append_json_string(params, logger);
    }
    params += R"(,"data":)";
    return params;
}

}

std::string log_notice(log_level level, std::string const& logger, json::value const& data)
{
    auto params = log_head(level, logger);
    json_text::append_json(params, data);
    params += '}';
    return protocol::notification(protocol::method::message, params);
}

std::string log_notice(log_level level, std::string const& logger, std::string const& text)
{
    auto params = log_head(level, logger);
    json_text::append_json_string(params, text);
    params += '}';
    return protocol::notification(protocol::method::message, params);
}

std::string
progress_notice(std::string const& token, double value, std::optional<double> total, std::string const& message)
{
    std::string params = R"({"progressToken":)";
    params += token;
    params += R"(,"progress":)";
    json_text::append_json_number(params, value);
    if (total) {
        params += R"(,"total":)";
        json_text::append_json_number(params, *total);
    }
    if (!message.empty()) {
        params += R"(,"message":)";
        json_text::append_json_string(params, message);
    }
    params += '}';
    return protocol::notification(protocol::method::progress, params);
}

}
