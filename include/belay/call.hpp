// The call a tool is serving: how it talks to its caller while it runs. Nothing here says HTTP, session or
// node; the caller may go away and come back, and the tool does not notice.
//
// A call and its tool live on one loop (one thread); none of this may be used from another thread. When the
// call is cancelled or ends otherwise, the next await on it leaves the tool by unwinding; destructors run.
#pragma once

#include <belay/json.hpp>
#include <belay/log_level.hpp>
#include <belay/question.hpp>
#include <belay/schema.hpp>
#include <belay/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::inline v0 {

/// Thrown by a tool: its text becomes an `isError` result that the model reads. The text of any other exception goes
/// to the log, and the caller gets a general sentence.
class tool_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

namespace detail {
struct access;
class call_state;
class session_link;
}

/// A W3C trace context, to be passed on to what a tool calls.
struct trace {
    std::string id;     ///< 32 hexadecimal digits
    std::string parent; ///< the caller's span, 16 hexadecimal digits
    std::string state;  ///< `tracestate`
    bool is_sampled = false;

    [[nodiscard]] explicit operator bool() const noexcept { return !id.empty(); }
    /// The `traceparent` header for a request made within the span (16 hexadecimal digits).
    [[nodiscard]] std::string header(std::string const& span) const;
};

/// One client's conversation with the server. Cheap to copy; may be used from any thread while the server runs.
class session {
public:
    /// A short name for logs. Not the session's id, which is a secret.
    [[nodiscard]] std::string name() const;
    /// Who the client acts for.
    [[nodiscard]] std::string principal() const;
    /// The `clientInfo` that the client gave.
    [[nodiscard]] json::object client() const;
    /// A log message that belongs to no call, unless its level is below what the session asked for.
    void log(log_level level, std::string const& logger, json::value const& data) const;
    void log(log_level level, std::string const& logger, std::string const& text) const;
    void log(log_level level, std::string const& logger, char const* text) const;

private:
    friend struct detail::access;
    explicit session(std::shared_ptr<detail::session_link const> link) : link_(std::move(link)) {}

    std::shared_ptr<detail::session_link const> link_;
};

/// Counts steps towards a total. Free when the caller did not ask for progress.
class progress_meter {
public:
    /// One step further.
    [[nodiscard]] task<void> step(std::string message = {});
    /// At this value now; only ever increasing. Reports closer than 20 ms are merged, the newest wins.
    [[nodiscard]] task<void> report(double value, std::string message = {});

private:
    friend class call;
    progress_meter(std::shared_ptr<detail::call_state> state, std::optional<double> total);

    std::shared_ptr<detail::call_state> state_;
    std::optional<double> total_;
    double value_ = 0;
    bool has_reported_ = false; // a first report may be of 0
};

class call {
public:
    /// Sends a log message to the caller, unless its level is below what the session asked for. Never dropped: waits
    /// while the caller is too far behind. Throws std::system_error if the message cannot be kept.
    [[nodiscard]] task<void> log(log_level level, std::string logger, json::value data);
    [[nodiscard]] task<void> log(log_level level, std::string logger, std::string text);
    [[nodiscard]] task<void> log(log_level level, std::string logger, char const* text);

    [[nodiscard]] progress_meter progress(double total);
    [[nodiscard]] progress_meter progress();

    // --- questions to the client. All of them wait for the answer, which may come after the client was away; they
    // throw tool_error if the client cannot be asked such a thing, and client_error if it refuses or does not answer
    // within the limit, if there is one.

    /// Shows a form made from T (a flat described struct) and gives what the person filled in. The key names the
    /// question within the call; each is asked once.
    template<class T>
    [[nodiscard]] task<answer<T>>
    ask(std::string key, std::string text, std::optional<std::chrono::nanoseconds> limit = std::nullopt);
    /// The same with a schema of your own.
    [[nodiscard]] task<answer<json::object>>
    ask(std::string key, std::string text, json::object schema,
        std::optional<std::chrono::nanoseconds> limit = std::nullopt);
    /// Asks the person to open a URL: for what must not go through the client. Accepted means that it was opened, not
    /// that it is done; say that with url_is_done().
    [[nodiscard]] task<action> ask_by_url(
        std::string key, std::string text, std::string url, std::string id,
        std::optional<std::chrono::nanoseconds> limit = std::nullopt);
    void url_is_done(std::string const& id);
    /// Words of the client's model.
    [[nodiscard]] task<sampled>
    sample(sampling_request request, std::optional<std::chrono::nanoseconds> limit = std::nullopt);
    [[nodiscard]] task<sampled>
    sample(std::string prompt, int max_tokens, std::optional<std::chrono::nanoseconds> limit = std::nullopt);
    /// The folders or places that the client lets servers work in.
    [[nodiscard]] task<std::vector<root>> roots(std::optional<std::chrono::nanoseconds> limit = std::nullopt);
    /// Whether the client is there.
    [[nodiscard]] task<void> ping(std::optional<std::chrono::nanoseconds> limit = std::nullopt);

    [[nodiscard]] bool can_ask() const;
    [[nodiscard]] bool can_ask_by_url() const;
    [[nodiscard]] bool can_sample() const;
    [[nodiscard]] bool has_roots() const;

    // --- who calls

    [[nodiscard]] belay::session session() const;
    [[nodiscard]] std::string principal() const { return session().principal(); }
    /// The W3C trace that the request belongs to, from its `_meta` or headers; empty fields if there is none.
    [[nodiscard]] belay::trace trace() const;
    /// The request's `_meta`.
    [[nodiscard]] json::object const& meta() const;

    /// Waits on the server's clock.
    [[nodiscard]] task<void> sleep(std::chrono::nanoseconds time);

    /// Whether the call has ended without the tool: cancelled, timed out, or the server is stopping.
    [[nodiscard]] bool is_cancelled() const noexcept;

    /// Ends the caller's connection, not the call: the caller comes back after `retry` and misses nothing. Clients
    /// before 2025-11-25 would not come back, and keep theirs.
    void close_connection(std::chrono::milliseconds retry);

private:
    friend struct detail::access;
    explicit call(std::shared_ptr<detail::call_state> state);

    std::shared_ptr<detail::call_state> state_;
};

namespace detail {

[[noreturn]] void throw_bad_answer(decode_error const& error);

/// Whether clients can show it: no structs, lists or maps in it, except that clients since 2025-11-25 have lists of
/// enums.
template<class T>
consteval bool is_form()
{
    if constexpr (structure<T>)
        return detail::each(tag<members_of<T>>(), []<class D>(tag<D>) {
            using member = typename without_optional<member_type<T, D>>::type;
            if constexpr (is_vector<member>)
                return named_enum<typename member::value_type>;
            else
                return std::is_same_v<member, bool> || integer<member> || real<member>
                    || std::is_same_v<member, std::string> || named_enum<member>;
        });
    return false;
}

// g++ 12: a free coroutine with what it needs in its parameters.
template<class T>
task<answer<T>> ask_typed(call& on, std::string key, std::string text, std::optional<std::chrono::nanoseconds> limit)
{
    static_assert(
        is_form<T>(), "a form is a flat described struct: strings, numbers, booleans, enums, and optionals of them");
    json::object schema = schema_of<T>();
    answer<json::object> got = co_await on.ask(std::move(key), std::move(text), std::move(schema), limit);
    std::optional<T> values;
    if (got) {
        auto read = decode<T>(json::value(*got));
        if (!read)
            throw_bad_answer(read.error());
        values = std::move(*read);
    }
    co_return answer<T>(got.what(), std::move(values));
}

}

template<class T>
task<answer<T>> call::ask(std::string key, std::string text, std::optional<std::chrono::nanoseconds> limit)
{
    return detail::ask_typed<T>(*this, std::move(key), std::move(text), limit);
}

}
