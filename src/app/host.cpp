// belay::host: a server inside somebody else's program.
#include "app/host_body.hpp"
#include "server/access.hpp"

#include <belay/host.hpp>

#include <fmt/format.h>

#include <map>
#include <stdexcept>

namespace belay::app {

namespace {

using texts = std::map<std::string, std::vector<std::string>>;

texts texts_of(host_settings const& given)
{
    texts by_key;
    auto const put = [&](std::string const& key, auto const& value, auto const& as_text) {
        if (value)
            by_key[key] = {as_text(*value)};
    };
    auto const list = [&](std::string const& key, std::vector<std::string> const& values) {
        if (!values.empty())
            by_key[key] = values;
    };
    auto const as_time = [](std::chrono::milliseconds value) { return fmt::format("{}ms", value.count()); };
    list("listen", given.listen);
    list("allow_host", given.allow_host);
    list("allow_origin", given.allow_origin);
    put("endpoint", given.endpoint, [](std::string const& value) { return value; });
    put("console", given.console, [](bool value) { return std::string(value ? "on" : "off"); });
    put("threads", given.threads, [](unsigned value) { return fmt::format("{}", value); });
    put("session.idle_timeout", given.session_idle, as_time);
    put("drain", given.drain, as_time);
    put("log.level", given.log_level, [](log_level value) { return std::string(to_string(value)); });
    for (auto const& [key, value] : given.others)
        by_key[key].push_back(value);
    return by_key;
}

void set_or_throw(settings_table const& table, std::string const& key, std::vector<std::string> const& values)
{
    auto const* const entry = table.find(key);
    if (!entry)
        throw std::invalid_argument(table.explain_unknown(key) + "; docs/settings.md lists them");
    if (auto const set = entry->set_all(values); !set)
        throw std::invalid_argument(fmt::format("{} {}", key, set.error()));
}

settings settings_from(host_settings const& given, program of)
{
    settings chosen;
    settings_table const table(chosen, of);
    for (auto const& [key, values] : texts_of(given))
        set_or_throw(table, key, values);
    if (auto const completed = complete(chosen); !completed)
        throw std::invalid_argument(completed.error());
    // They are told by the environment, and can be taken once.
    for (auto const& address : chosen.http.listen)
        if (http::parse_listen(address)->kind == http::listen_address::kind::inherited)
            throw std::invalid_argument(
                "listen: " + address + " is for programs; a host is told HOST:PORT or unix:PATH");
    return chosen;
}

base::logger logger_for(
    std::function<void(log_entry const&)> write, base::logger::shared_level level,
    std::shared_ptr<std::atomic<bool>> is_open)
{
    if (!write)
        return {};
    return {
        std::move(level),
        [write = std::move(write), is_open = std::move(is_open)](
            log_level severity, std::string_view message, std::span<log_field const> fields) {
            if (!is_open->load())
                return;
            try {
                write({severity, message, fields});
            } catch (...) { // there is no place left to say it
            }
        }};
}

std::function<std::uint64_t()> counter_for(std::function<std::uint64_t()> dropped)
{
    if (!dropped)
        return {};
    return [dropped = std::move(dropped), last = std::make_shared<std::atomic<std::uint64_t>>(0)] {
        try {
            *last = dropped();
        } catch (...) { // nothing new is known
        }
        return last->load();
    };
}

}

host_body::host_body(
    std::shared_ptr<detail::server_core> core, settings settings, program of, host_log log,
    boost::asio::io_context* given)
    : core_(std::move(core)), settings_(std::move(settings)), of_(of), given_(given),
      dropped_(counter_for(std::move(log.dropped))),
      level_(std::make_shared<std::atomic<base::log_threshold>>(settings_.log_level)),
      log_(logger_for(std::move(log.write), level_, is_log_open_))
{
}

void host_body::start()
{
    if (serving_)
        throw std::logic_error("a host starts once; make another to serve again");
    serving_.emplace(
        core_, settings_, clock_, random_, log_,
        http_surroundings{dropped_, given_, std::weak_ptr<void>(weak_from_this())});
    try {
        serving_->start();
    } catch (...) {
        serving_.reset();
        throw;
    }
}

void host_body::stop()
{
    if (serving_)
        serving_->shut_down();
}

void host_body::stop_now()
{
    if (serving_)
        serving_->stop_now();
}

void host_body::wait()
{
    if (serving_)
        serving_->wait();
}

void host_body::end()
{
    if (serving_ && given_)
        serving_->abandon();
    else
        serving_.reset();
    is_log_open_->store(false);
}

http_host& host_body::serving() const
{
    if (!serving_)
        throw std::logic_error("the host was not started");
    return const_cast<http_host&>(*serving_);
}

bool host_body::is_held_up() const
{
    return serving_ && serving_->is_held_up();
}

settings_changes host_body::take_over(settings fresh)
{
    auto changes = compare(settings_, fresh, of_);
    settings_.log_level = fresh.log_level;
    settings_.log_access = fresh.log_access;
    level_->store(fresh.log_level);
    serving().log_access(fresh.log_access);
    return changes;
}

}

namespace belay::inline v0 {

host_settings& host_settings::set(std::string key, std::string value)
{
    app::settings scratch;
    app::set_or_throw(app::settings_table(scratch, app::program::embedded), key, {value});
    others.emplace_back(std::move(key), std::move(value));
    return *this;
}

std::string log_entry::text() const
{
    std::string out(message);
    base::append_fields(out, fields);
    return out;
}

host::host(server const& server, host_settings settings, host_log log)
    : host(std::make_shared<app::host_body>(
          detail::access::core(server), app::settings_from(settings, app::program::embedded), app::program::embedded,
          std::move(log)))
{
}

host::host(server const& server, boost::asio::io_context& on, host_settings settings, host_log log)
    : host(std::make_shared<app::host_body>(
          detail::access::core(server), app::settings_from(settings, app::program::guest), app::program::guest,
          std::move(log), &on))
{
}

host::host(std::shared_ptr<app::host_body> body) : body_(std::move(body))
{
}

host::~host()
{
    body_->end();
}

void host::start()
{
    body_->start();
}

void host::stop()
{
    body_->stop();
}

void host::stop_now()
{
    body_->stop_now();
}

void host::wait()
{
    body_->wait();
}

bool host::is_held_up() const
{
    return body_->is_held_up();
}

std::uint16_t host::port() const
{
    return body_->serving().port();
}

std::string host::url() const
{
    return body_->serving().url();
}

std::vector<std::string> host::addresses() const
{
    return body_->serving().addresses();
}

}
