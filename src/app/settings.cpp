#include "app/settings.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>

namespace belay::app {

namespace {

using namespace std::chrono_literals;
using outcome = std::expected<void, std::string>;

template<class Number>
std::expected<Number, std::string> parse_number(std::string_view text, Number least, Number most)
{
    Number value{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
        return std::unexpected(fmt::format("expected a number from {} to {}", least, most));
    return value;
}

std::string show(base::duration value)
{
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(value).count();
    if (ms == 0)
        return "off";
    if (ms % 3'600'000 == 0)
        return fmt::format("{}h", ms / 3'600'000);
    if (ms % 60'000 == 0)
        return fmt::format("{}m", ms / 60'000);
    if (ms % 1000 == 0)
        return fmt::format("{}s", ms / 1000);
    return fmt::format("{}ms", ms);
}

std::string show_bytes(std::size_t value)
{
    for (auto const& [unit, size] : {std::pair{"GiB", 30}, {"MiB", 20}, {"KiB", 10}})
        if (value != 0 && value % (std::size_t(1) << size) == 0)
            return fmt::format("{}{}", value >> size, unit);
    return fmt::format("{}", value);
}

std::string in_quotes(std::string_view text)
{
    std::string out = "\"";
    for (char const c : text) {
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out + '"';
}

std::string dashed(std::string_view key)
{
    std::string text(key);
    std::ranges::replace(text, '.', '-');
    std::ranges::replace(text, '_', '-');
    return text;
}

// Builds entries; each kind of value knows how to read and show itself. Texts come as views: a string made at each of a
// hundred calls is most of what this file costs to compile.
struct builder {
    std::vector<settings_table::entry>& into;

    void
    add(std::string_view key, std::string_view alias, std::string_view shape, std::string preset, std::string_view help,
        std::function<outcome(std::string const&)> set, std::function<std::string()> show, bool is_list = false,
        std::function<void()> clear = {})
    {
        into.push_back(
            {std::string(key), dashed(key), std::string(alias), std::string(shape), std::string(help),
             std::move(preset), is_list, false, std::move(set), std::move(clear), std::move(show)});
    }
    /// The last one can change while the program runs.
    void reloads() { into.back().reloads = true; }
    void text(
        std::string_view key, std::string_view alias, std::string_view shape, std::string& value, std::string_view help)
    {
        add(
            key, alias, shape, value, help,
            [&value](std::string const& given) -> outcome {
                value = given;
                return {};
            },
            [&value] { return in_quotes(value); });
    }
    /// Empty is "off".
    void text_or_off(
        std::string_view key, std::string_view alias, std::string_view shape, std::string& value, std::string_view help)
    {
        add(
            key, alias, std::string(shape) + "|off", value.empty() ? "off" : value, help,
            [&value](std::string const& given) -> outcome {
                value = given == "off" ? std::string() : given;
                return {};
            },
            [&value] { return in_quotes(value.empty() ? "off" : value); });
    }
    void mode(std::string_view key, unsigned& value, std::string_view help)
    {
        add(
            key, "", "MODE", fmt::format("{:03o}", value), help,
            [&value](std::string const& given) -> outcome {
                unsigned parsed = 0;
                auto const* const end = given.data() + given.size();
                auto const [stop, error] = std::from_chars(given.data(), end, parsed, 8);
                if (error != std::errc() || stop != end || parsed > 0777)
                    return std::unexpected("expected permissions in octal, such as 600 or 660");
                value = parsed;
                return {};
            },
            [&value] { return in_quotes(fmt::format("{:03o}", value)); });
    }
    enum class zero { allowed, refused };
    template<class Duration>
    void time(
        std::string_view key, std::string_view alias, Duration& value, std::string_view help, zero zero = zero::refused,
        std::string_view preset = {})
    {
        add(
            key, alias, zero == zero::allowed ? "TIME|off" : "TIME", preset.empty() ? show(value) : std::string(preset),
            help,
            [&value, zero](std::string const& given) -> outcome {
                if (zero == zero::allowed && given == "off") {
                    value = Duration::zero();
                    return {};
                }
                auto const parsed = parse_duration(given);
                if (!parsed)
                    return std::unexpected(parsed.error());
                if (*parsed <= base::duration::zero() && zero == zero::refused)
                    return std::unexpected("must be longer than zero");
                value = std::chrono::duration_cast<Duration>(*parsed);
                return {};
            },
            [&value, zero] {
                return value == Duration::zero() && zero == zero::refused ? std::string()
                                                                          : in_quotes(belay::app::show(value));
            });
    }
    void bytes(std::string_view key, std::string_view alias, std::size_t& value, std::string_view help)
    {
        add(
            key, alias, "SIZE", show_bytes(value), help,
            [&value](std::string const& given) -> outcome {
                auto const parsed = parse_bytes(given);
                if (!parsed)
                    return std::unexpected(parsed.error());
                value = *parsed;
                return {};
            },
            [&value] { return in_quotes(show_bytes(value)); });
    }
    template<class Number>
    void count(
        std::string_view key, std::string_view alias, Number& value, Number least, Number most, std::string_view help,
        std::string_view preset = {})
    {
        add(
            key, alias, "N", preset.empty() ? fmt::format("{}", value) : std::string(preset), help,
            [&value, least, most](std::string const& given) -> outcome {
                auto const parsed = parse_number<Number>(given, least, most);
                if (!parsed)
                    return std::unexpected(parsed.error());
                value = *parsed;
                return {};
            },
            [&value, least] { return value < least ? std::string() : fmt::format("{}", value); });
    }
    template<class Enum>
    void choice(
        std::string_view key, std::string_view alias, Enum& value,
        std::initializer_list<std::pair<std::string_view, Enum>> choices, std::string_view help)
    {
        std::string shape;
        std::string preset;
        std::vector const names(choices);
        for (auto const& [name, meaning] : names) {
            shape.append(shape.empty() ? "" : "|").append(name);
            if (meaning == value)
                preset = name;
        }
        add(
            key, alias, shape, preset, help,
            [&value, names, shape](std::string const& given) -> outcome {
                for (auto const& [name, meaning] : names)
                    if (name == given) {
                        value = meaning;
                        return {};
                    }
                return std::unexpected("expected " + shape);
            },
            [&value, names] {
                auto const found = std::ranges::find(names, value, [](auto const& each) { return each.second; });
                return found == names.end() ? std::string() : in_quotes(found->first);
            });
    }
    void list(
        std::string_view key, std::string_view alias, std::string_view shape, std::vector<std::string>& value,
        std::string_view help)
    {
        std::string preset;
        for (auto const& each : value)
            preset += (preset.empty() ? "" : ", ") + each;
        add(
            key, alias, shape, std::move(preset), help,
            [&value](std::string const& given) -> outcome {
                for (std::size_t at = 0; at <= given.size();) {
                    auto const comma = std::min(given.find(',', at), given.size());
                    if (comma > at)
                        value.push_back(given.substr(at, comma - at));
                    at = comma + 1;
                }
                return {};
            },
            [&value] {
                std::string text;
                for (auto const& each : value)
                    text += (text.empty() ? "" : ", ") + in_quotes(each);
                return '[' + text + ']';
            },
            true, [&value] { value.clear(); });
    }
};

}

std::string nearest(std::string_view word, std::span<std::string const> known)
{
    // By single letters that are changed, added or left out; up to a third of them.
    std::string best;
    auto least = word.size() / 3 + 1;
    std::vector<std::size_t> row;
    for (auto const& each : known) {
        row.resize(each.size() + 1);
        std::iota(row.begin(), row.end(), std::size_t(0));
        for (std::size_t i = 0; i < word.size(); ++i) {
            auto diagonal = std::exchange(row[0], i + 1);
            for (std::size_t j = 0; j < each.size(); ++j) {
                auto const changed = diagonal + (word[i] != each[j]);
                diagonal = row[j + 1];
                row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
            }
        }
        if (row.back() < least) {
            least = row.back();
            best = each;
        }
    }
    return best;
}

std::expected<base::duration, std::string> parse_duration(std::string_view text)
{
    auto const digits = std::min(text.find_first_not_of("0123456789"), text.size());
    auto const number = parse_number<std::int64_t>(text.substr(0, digits), 0, 1'000'000'000);
    auto const unit = text.substr(digits);
    auto const bad = std::unexpected("expected a time such as 500ms, 15s, 10m or 1h");
    if (!number)
        return bad;
    if (unit == "ms")
        return std::chrono::milliseconds(*number);
    if (unit == "s")
        return std::chrono::seconds(*number);
    // A hundred years are enough, and far from what a duration can hold.
    if (unit == "m" && *number <= 60 * 876'000)
        return std::chrono::minutes(*number);
    if (unit == "h" && *number <= 876'000)
        return std::chrono::hours(*number);
    return bad;
}

std::expected<std::size_t, std::string> parse_bytes(std::string_view text)
{
    auto const digits = std::min(text.find_first_not_of("0123456789"), text.size());
    auto const number = parse_number<std::size_t>(text.substr(0, digits), 1, std::size_t(1) << 40);
    auto const unit = text.substr(digits);
    auto const bad = std::unexpected("expected a size such as 65536, 64KiB, 8MiB or 1GiB");
    if (!number)
        return bad;
    int shift = 0;
    if (unit == "KiB")
        shift = 10;
    else if (unit == "MiB")
        shift = 20;
    else if (unit == "GiB")
        shift = 30;
    else if (!unit.empty() && unit != "B")
        return bad;
    if (*number > (std::size_t(1) << 50) >> shift)
        return bad;
    return *number << shift;
}

settings_table::settings_table(settings& into, program of)
{
    auto& run = into.runtime;
    auto& http = into.http;
    builder b{entries_};
    using zero = builder::zero;

    b.list(
        "listen", "", "ADDRESS", http.listen,
        "Addresses to serve on: HOST:PORT (port 0 takes a free one and prints it), unix:PATH, or systemd for the "
        "sockets "
        "of a socket unit.");
    b.text("endpoint", "", "PATH", into.endpoint, "Path of the MCP endpoint.");
    if (of != program::guest) {
        b.count<unsigned>("threads", "", into.threads, 1, 1024, "Event loops.", "one per core");
        b.time(
            "loop.stall_warning", "", into.stall_warning,
            "An event loop that a handler holds up for this long is named in the log.", zero::allowed);
    }
    b.count<unsigned>(
        "workers.threads", "", into.worker_threads, 1, 1024,
        "Threads for blocking tools; they start with the first call.", "one per core");
    b.count<std::size_t>(
        "workers.queue", "", into.worker_queue, 0, 1'000'000,
        "Calls of blocking tools that wait for a thread; further ones end with overloaded.");
    b.choice<bool>(
        "console", "", into.has_console, {{"on", true}, {"off", false}},
        "Whether / has the console, a page to browse and call what the server offers.");
    b.text("store", "", "memory", into.store, "Where sessions and streams are kept.");
    b.text("node.id", "", "NAME", run.node_name, "Name of this process among others.");
    b.list(
        "allow_host", "", "NAME[:PORT]", http.policy.allow_host,
        "Host names to answer to, beside the loopback names when bound to loopback. * allows all.");
    b.list(
        "allow_origin", "", "URL", http.policy.allow_origin,
        "Origins whose pages may connect, beside this server's own. * allows all.");

    b.count<std::size_t>(
        "batch.max", "", into.transport.batch_max, 1, 10'000, "Messages in one batch (revision 2025-03-26 only).");
    b.time(
        "session.idle_timeout", "session-idle", run.limits.session_idle,
        "A session ends after this long without a connection, a running call or a request.");
    b.time(
        "session.max_lifetime", "", run.limits.session_lifetime, "A session ends at this age in any case.",
        zero::allowed);
    b.count<std::size_t>(
        "session.max", "max-sessions", run.limits.sessions, 1, 100'000'000, "Sessions at most; further ones get 503.");
    b.bytes(
        "session.max_bytes", "", run.limits.bytes_per_session,
        "Bytes kept per session: its record, subscriptions, keys, calls and their events.");
    b.count<std::size_t>(
        "session.max_keys", "", run.limits.keys_per_session, 0, 1'000'000,
        "Idempotency keys remembered per session after their outcome is gone.");
    b.bytes(
        "user.max_bytes", "", run.limits.bytes_per_principal,
        "Bytes kept per user, over all sessions; without authorization everybody is one user.");
    b.count<std::size_t>(
        "session.max_subscriptions", "", run.max_subscriptions, 0, 1'000'000,
        "Resources that a session may subscribe to.");
    b.bytes("session.max_subscription_bytes", "", run.max_subscription_bytes, "The URI of a subscription at most.");
    b.bytes("session.max_client_info", "", run.max_client_info, "What a client may say of itself (clientInfo).");
    b.bytes("session.max_capabilities", "", run.max_client_capabilities, "The capabilities that a client may name.");
    b.time("reaper.interval", "", run.reaper_interval, "How often idle sessions are looked for.");
    b.time("keepalive", "", run.follower.keepalive, "A quiet stream connection gets a comment this often.");
    b.time(
        "retry", "", run.retry,
        "How long clients wait before they reconnect; up to a quarter is added at random. Most try twice.");
    b.time(
        "max_connection_age", "", run.follower.max_age, "Stream connections are closed at this age; clients resume.",
        zero::allowed);

    b.count<std::size_t>(
        "events.max_per_stream", "max-events", run.limits.events_per_stream, 2, 100'000'000, "Events kept per stream.");
    b.bytes("events.max_bytes_per_stream", "max-stream-bytes", run.limits.bytes_per_stream, "Bytes kept per stream.");
    b.bytes(
        "events.max_bytes", "", run.limits.event_bytes,
        "One event or answer at most; a larger result ends its call with result_too_large.");
    b.time(
        "events.max_age", "", run.limits.event_age,
        "Events are dropped at this age: on a call's stream counted from its end.", zero::refused,
        "session.idle_timeout");
    b.time("events.sweep", "", run.sweep_interval, "How often old events are looked for.");
    b.bytes(
        "events.max_bytes_total", "", run.limits.bytes_total,
        "Bytes kept in all; new sessions and calls get 503 beyond it.");
    b.count<std::size_t>(
        "streams.max_retained", "", run.limits.streams_per_session, 1, 1'000'000,
        "Calls whose streams are kept per session.");
    b.count<std::size_t>("streams.open", "", run.open_without_origin, 1, 1'000'000, "Stream connections per session.");
    b.count<std::size_t>(
        "streams.open_with_origin", "", run.open_with_origin, 1, 1'000'000,
        "The same for web pages, which share six connections per origin.");

    b.time("call.max_duration", "", run.call_max, "A call ends with timed_out after this long.");
    b.bytes(
        "call.max_rerun_bytes", "", run.max_rerun_bytes,
        "A request that is kept so that its tool can run again; a call with a larger one is run once.");
    b.bytes("call.max_identity_bytes", "", run.max_identity_bytes, "What is kept of its caller with a call.");
    b.time("owner.lease", "lease", run.lease, "Calls of a node that is not heard of for this long are ended.");
    b.time(
        "flow.stall", "", run.flow.stall,
        "A tool waits this long for a reader that does not read; then its connection is closed.");
    b.time(
        "flow.grace", "", run.flow.grace, "A tool that is far ahead waits this long for a reader that has gone.",
        zero::allowed);

    b.choice<transport::answer_form>(
        "answer", "", into.transport.answer,
        {{"auto", transport::answer_form::automatic},
         {"sse", transport::answer_form::sse},
         {"json", transport::answer_form::json}},
        "auto: quick tools answer as JSON, others as streams. sse: every request gets a stream. json: none does, and "
        "nothing can be resumed.");
    b.choice<transport::reinitialize_policy>(
        "reinitialize", "", into.transport.reinitialize,
        {{"reattach", transport::reinitialize_policy::reattach}, {"reject", transport::reinitialize_policy::reject}},
        "What initialize does on a live session.");
    b.choice<bool>(
        "accept_stale_initialize", "", into.transport.accept_stale_initialize, {{"false", false}, {"true", true}},
        "Whether initialize with an unknown session id opens a new session instead of 404.");
    b.choice<bool>(
        "redeliver_requests", "", run.redeliver_requests, {{"false", false}, {"true", true}},
        "Whether who resumes a call is asked again what it was asked before its cursor and has not answered.");
    b.choice<store::standalone_policy>(
        "standalone", "", run.standalone,
        {{"takeover", store::standalone_policy::takeover}, {"conflict", store::standalone_policy::conflict}},
        "What a second GET on the standalone stream does to the first.");
    b.choice<runtime::backlog_policy>(
        "standalone_backlog", "", run.backlog,
        {{"undelivered", runtime::backlog_policy::undelivered}, {"none", runtime::backlog_policy::none}},
        "What a GET without Last-Event-ID gets of earlier events.");
    b.choice<runtime::duplicate_policy>(
        "duplicate_ids", "", run.duplicate_ids,
        {{"isolate", runtime::duplicate_policy::isolate}, {"reject", runtime::duplicate_policy::reject}},
        "What a call gets whose id another running call of the session has.");
    b.choice<runtime::legacy_priming>(
        "priming.legacy", "", run.priming_legacy,
        {{"typed", runtime::legacy_priming::typed}, {"off", runtime::legacy_priming::off}},
        "How clients before 2025-11-25 get the id to resume from before the first message.");

    auto& schemas = into.schemas;
    auto const& widest = detail::widest_schema_limits;
    b.count<std::size_t>(
        "schema.max_depth", "", schemas.max_schema_depth, 1, widest.max_schema_depth,
        "Schemas within schemas that an author wrote; the server does not start beyond it.");
    b.count<std::size_t>(
        "schema.max_parts", "", schemas.max_schemas, 1, widest.max_schemas, "Schemas in such a schema; the same.");
    b.count<std::size_t>(
        "schema.max_pattern", "", schemas.max_pattern_size, 1, widest.max_pattern_size,
        "Size of a pattern in such a schema; the same.");
    b.count<std::size_t>(
        "schema.max_check_depth", "", schemas.max_depth, 1, widest.max_depth,
        "How deep a value is checked against such a schema; it is refused beyond it.");
    b.count<std::size_t>(
        "schema.max_check_steps", "", schemas.max_steps, 1, widest.max_steps,
        "Steps that checking one value may take; it is refused beyond them.");

    b.mode("http.unix_mode", http.unix_mode, "Permissions of a unix socket's file.");
    b.bytes("http.max_body", "max-body", http.limits.body_bytes, "Request body; 413 beyond it.");
    b.bytes("http.max_header", "", http.limits.header_bytes, "Request head; 431 beyond it.");
    b.count<std::size_t>(
        "http.max_header_fields", "", http.limits.header_count, 1, 10'000,
        "Header fields of a request; 431 beyond it.");
    b.bytes("http.max_target", "", http.limits.target_bytes, "Request target; 414 beyond it.");
    b.time("http.header_timeout", "", http.header_timeout, "Time for a request's head.");
    b.time("http.body_timeout", "", http.body_timeout, "Time for a request's body.");
    b.time("http.idle_timeout", "", http.idle_timeout, "A connection between requests is closed after this long.");
    b.time(
        "http.write_timeout", "", http.write_timeout,
        "A connection whose peer takes no bytes is closed after this long.");
    b.time(
        "http.user_timeout", "", http.user_timeout,
        "TCP_USER_TIMEOUT: unacknowledged bytes break a connection after this long.");
    b.bytes("http.send_buffer", "", http.send_buffer_bytes, "What the kernel keeps for a reader that is behind.");
    b.bytes(
        "http.max_bytes_in", "", http.max_bytes_in,
        "Request bodies that are being read or answered, of all connections; 503 for more. Those up to 16 KiB are not "
        "counted.");
    b.bytes(
        "http.max_bytes_out", "", http.max_bytes_out,
        "Answers that their readers have not taken, of all connections; beyond it the slowest readers are closed. Up "
        "to "
        "16 KiB of a connection are not counted.");
    b.count<std::size_t>(
        "http.max_connections", "", http.max_connections, 1, 100'000'000, "Connections at most; further ones get 503.",
        "by file descriptors");

    b.time("drain", "", into.drain, "After SIGTERM, running calls may finish within this time.", zero::allowed);
    bool const has_process = of == program::any || of == program::reference;
    if (has_process)
        b.time(
            "stdio.grace", "", into.stdio_grace,
            "With --stdio: after the end of the input, running calls may finish within this time.", zero::allowed);
    b.choice<base::log_threshold>(
        "log.level", "", into.log_level,
        {{"debug", base::log_level::debug},
         {"info", base::log_level::info},
         {"warning", base::log_level::warning},
         {"error", base::log_level::error},
         {"off", base::log_threshold::off()}},
        "The least that is logged. Reloaded on SIGHUP.");
    b.reloads();
    if (has_process)
        b.choice<base::log_format>(
            "log.format", "", into.log_format, {{"text", base::log_format::text}, {"json", base::log_format::json}},
            "Form of the log on standard error.");
    b.choice<bool>(
        "log.access", "", into.log_access, {{"off", false}, {"on", true}},
        "Whether the log has a line for every finished request. Reloaded on SIGHUP.");
    b.reloads();
    if (has_process)
        b.bytes(
            "log.queue", "", into.log_queue_bytes,
            "Log lines that wait to be written; those that find no room are dropped and counted.");
    b.text_or_off(
        "admin.listen", "", "ADDRESS", into.admin_listen,
        "Where to list and end sessions: HOST:PORT on loopback, or unix:PATH.");
    b.mode("admin.unix_mode", into.admin_unix_mode, "Permissions of that unix socket's file.");
    b.count<std::size_t>("admin.max_page", "", into.admin_max_page, 1, 100'000, "Sessions listed at a time at most.");
    if (of == program::reference) {
        b.choice<bool>(
            "reference.background", "", into.reference_background, {{"on", true}, {"off", false}},
            "Whether the reference server logs and updates subscribed resources now and then.");
        b.choice<bool>(
            "reference.stderr", "", into.reference_stderr, {{"on", true}, {"off", false}},
            "Whether it sends notifications/stderr, which is not of MCP, every 30 seconds.");
    }
}

std::string settings_table::entry::environment() const
{
    std::string name = "BELAY_" + key;
    for (char& c : name) {
        if (c == '.')
            c = '_';
        else if (c >= 'a' && c <= 'z')
            c = static_cast<char>(c - 32);
    }
    return name;
}

settings_table::entry const* settings_table::find(std::string_view key) const noexcept
{
    auto const found = std::ranges::find(entries_, key, &entry::key);
    return found == entries_.end() ? nullptr : &*found;
}

std::string settings_table::explain_unknown(std::string_view key) const
{
    std::vector<std::string> known;
    for (auto const& each : entries_)
        known.push_back(each.key);
    auto const like = nearest(key, known);
    return fmt::format("there is no setting {}{}", key, like.empty() ? "" : ", but " + like);
}

std::expected<void, std::string> settings_table::entry::set_all(std::vector<std::string> const& values) const
{
    if (clear)
        clear();
    for (auto const& value : values)
        if (auto const done = set(value); !done)
            return std::unexpected(fmt::format("{}: {}", value, done.error()));
    return {};
}

std::expected<void, std::string> settings_table::load_environment() const
{
    for (auto const& each : entries_)
        if (auto const* value = std::getenv(each.environment().c_str()))
            if (auto const set = each.set_all({value}); !set)
                return std::unexpected(fmt::format("{}={}", each.environment(), set.error()));
    return {};
}

namespace {

outcome load_value(settings_table::entry const& into, toml::node const& node)
{
    if (auto const text = node.value_exact<std::string>())
        return into.set(*text);
    if (auto const number = node.value_exact<std::int64_t>())
        return into.set(fmt::format("{}", *number));
    if (auto const flag = node.value_exact<bool>())
        return into.set(*flag ? "true" : "false");
    if (auto const* array = node.as_array(); array && into.is_list) {
        for (auto const& each : *array)
            if (auto const set = load_value(into, each); !set)
                return set;
        return {};
    }
    return std::unexpected("expected " + into.shape);
}

outcome load_table(settings_table const& table, toml::table const& from, std::string const& prefix)
{
    for (auto const& [name, node] : from) {
        auto const key = prefix + std::string(name.str());
        if (auto const* entry = table.find(key)) {
            if (entry->clear)
                entry->clear();
            if (auto const set = load_value(*entry, node); !set)
                return std::unexpected(fmt::format("line {}: {}: {}", node.source().begin.line, key, set.error()));
        } else if (auto const* nested = node.as_table(); nested && !nested->empty()) {
            if (auto const loaded = load_table(table, *nested, key + '.'); !loaded)
                return loaded;
        } else {
            return std::unexpected(fmt::format(
                "line {}: {}; --settings lists them", node.source().begin.line, table.explain_unknown(key)));
        }
    }
    return {};
}

}

std::expected<void, std::string> settings_table::load_file(std::string const& path) const
{
    if (std::error_code error; !std::filesystem::is_regular_file(path, error))
        return std::unexpected(fmt::format("{}: {}", path, error ? error.message() : "is not a file"));
    try {
        auto const file = toml::parse_file(path);
        if (auto const loaded = load_table(*this, file, ""); !loaded)
            return std::unexpected(path + ", " + loaded.error());
        return {};
    } catch (toml::parse_error const& error) {
        return std::unexpected(fmt::format("{}, line {}: {}", path, error.source().begin.line, error.description()));
    }
}

std::string settings_table::markdown() const
{
    std::string out = "| key in belay.toml | flag | value | default | meaning |\n| --- | --- | --- | --- | --- |\n";
    for (auto const& each : entries_) {
        auto shape = each.shape;
        for (std::size_t at = 0; (at = shape.find('|', at)) != std::string::npos; at += 2)
            shape.insert(at, "\\");
        out += fmt::format(
            "| `{}` | `--{}`{} | {} | {} | {} |\n", each.key, each.flag,
            each.alias.empty() ? "" : fmt::format(", `--{}`", each.alias), shape, each.preset, each.help);
    }
    return out;
}

std::string settings_table::toml() const
{
    std::string out;
    for (auto const& each : entries_) {
        auto const value = each.show();
        out += value.empty() ? fmt::format("# {}: {}\n", each.key, each.preset)
                             : fmt::format("{} = {}\n", each.key, value);
    }
    return out;
}

namespace {

outcome check_listen(settings const& settings)
{
    if (settings.http.listen.empty())
        return std::unexpected("listen: name an address such as 127.0.0.1:3000");
    for (auto const& text : settings.http.listen) {
        auto const where = http::parse_listen(text);
        if (!where)
            return std::unexpected("listen: " + where.error());
        if (where->reach() == http::reach::everyone && settings.http.policy.allow_host.empty())
            return std::unexpected(http::needs_hosts(text));
    }
    return {};
}

outcome check_admin(settings const& settings)
{
    if (settings.admin_listen.empty())
        return {};
    auto const where = http::parse_listen(settings.admin_listen);
    if (!where)
        return std::unexpected("admin.listen: " + where.error());
    auto const reach = where->reach();
    if (reach != http::reach::loopback && reach != http::reach::file_system)
        return std::unexpected(fmt::format(
            "admin.listen: {} is not on loopback, and whoever reaches it may end sessions; use 127.0.0.1:PORT or "
            "unix:PATH",
            settings.admin_listen));
    return {};
}

}

settings_changes compare(settings running, settings fresh, program of)
{
    settings_table const before(running, of);
    settings_table const after(fresh, of);
    settings_changes changes;
    for (std::size_t i = 0; i < before.entries().size(); ++i) {
        auto const& entry = before.entries()[i];
        if (entry.show() != after.entries()[i].show())
            (entry.reloads ? changes.reloaded : changes.not_reloaded).push_back(entry.key);
    }
    return changes;
}

std::expected<void, std::string> complete(settings& settings)
{
    if (settings.store != "memory")
        return std::unexpected("store: this version keeps everything in memory; use --store memory");
    if (settings.endpoint.empty() || settings.endpoint[0] != '/' || settings.endpoint.size() < 2)
        return std::unexpected("endpoint: expected a path such as /mcp");
    if (settings.runtime.limits.event_age == base::duration::zero())
        settings.runtime.limits.event_age = settings.runtime.limits.session_idle;
    if (settings.threads == 0)
        settings.threads = std::max(1u, std::thread::hardware_concurrency());
    if (settings.worker_threads == 0)
        settings.worker_threads = std::max(1u, std::thread::hardware_concurrency());
    if (auto const checked = check_listen(settings); !checked)
        return checked;
    return check_admin(settings);
}

}
