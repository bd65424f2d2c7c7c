// What a tool can ask of its caller's client: answers to a form, a model's words, the roots.
#pragma once

#include <belay/content.hpp>
#include <belay/json.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace belay::inline v0 {

/// What became of a question.
enum class action { accepted, declined, cancelled };

/// Holds the values if the person accepted.
template<class T>
class answer {
public:
    answer(belay::action what, std::optional<T> values) : action_(what), values_(std::move(values)) {}

    [[nodiscard]] belay::action what() const noexcept { return action_; }
    [[nodiscard]] explicit operator bool() const noexcept { return values_.has_value(); }
    [[nodiscard]] T const& operator*() const { return *values_; }
    [[nodiscard]] T const* operator->() const { return &*values_; }

private:
    belay::action action_;
    std::optional<T> values_;
};

/// Thrown where the client answered with an error, with what does not fit the question, or not in time. If a tool lets
/// it pass, the text becomes its `isError` result.
class client_error : public std::runtime_error {
public:
    client_error(int code, std::string const& text) : std::runtime_error(text), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

/// Thrown by a tool that cannot go on before a person has opened a URL: the client gets error -32042 with it and may
/// call again. Clients that cannot open URLs (call::can_ask_by_url()) get the text and the URL as a result.
class url_required : public std::runtime_error {
public:
    url_required(std::string const& text, std::string url, std::string id)
        : std::runtime_error(text), url_(std::move(url)), id_(std::move(id))
    {
    }
    [[nodiscard]] std::string const& url() const noexcept { return url_; }
    [[nodiscard]] std::string const& id() const noexcept { return id_; }

private:
    std::string url_;
    std::string id_;
};

struct sampling_message {
    belay::role from = role::user;
    /// A block of text, image or audio (content.hpp), or an array of them; clients before 2025-11-25 get an array as
    /// several messages. Those of 2025-11-25 also know `tool_use` and `tool_result`.
    json::value content;
};

struct sampling_request {
    std::vector<sampling_message> messages;
    int max_tokens = 1000;
    std::string system_prompt;
    std::optional<double> temperature;
    std::vector<std::string> stop_sequences;
    json::object model_preferences;
    /// "none", "thisServer", "allServers"; empty: the client's choice. Left out where the client does not have it.
    std::string include_context;
    json::array tools; ///< needs the client's `sampling.tools`
    std::string tool_choice; ///< "auto", "required", "none"; empty: the client's choice; needs the same
    json::object metadata;
};

struct sampled {
    belay::role from = role::assistant;
    json::value content;
    std::string model;
    std::string stop_reason;

    /// The text of the content; empty if it has none.
    [[nodiscard]] std::string text() const;
};

struct root {
    std::string uri;
    std::string name;
};

}
