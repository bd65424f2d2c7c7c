#include "app/host.hpp"

#include "app/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <stdexcept>

namespace belay::app {

namespace {

// How long the last answers have to be written once all calls have ended, and tools on workers to return.
constexpr auto flush_limit = std::chrono::seconds(1);

}

class host::event_counts final : public store::event_counter {
public:
    explicit event_counts(observe::metrics& metrics) : metrics_(metrics) {}
    void delivered(std::size_t events, std::size_t first) override
    {
        metrics_.events_delivered.Increment(static_cast<double>(first));
        metrics_.events_replayed.Increment(static_cast<double>(events - first));
    }
    void trimmed(std::size_t events, std::size_t undelivered) override
    {
        metrics_.events_trimmed.Increment(static_cast<double>(events - undelivered));
        metrics_.events_trimmed_undelivered.Increment(static_cast<double>(undelivered));
    }
    void ended(std::size_t events, std::size_t undelivered) override
    {
        metrics_.events_ended.Increment(static_cast<double>(events - undelivered));
        metrics_.events_ended_undelivered.Increment(static_cast<double>(undelivered));
    }

private:
    observe::metrics& metrics_;
};

host::host(
    std::shared_ptr<detail::server_core> core, app::settings settings, base::clock const& clock,
    base::random_source& random, base::logger log, std::shared_ptr<base::log_output const> log_lines)
    : settings_(std::move(settings)), clock_(clock), log_(log.with("node", settings_.runtime.node_name)),
      core_(std::move(core)), log_lines_(std::move(log_lines)), access_log_(log_), logs_access_(settings_.log_access)
{
    for (unsigned i = 0; i < settings_.threads; ++i)
        loops_.push_back(std::make_unique<base::io_loop>(clock));
    metrics_ = std::make_unique<observe::metrics>();
    event_counts_ = std::make_unique<event_counts>(*metrics_);
    // The epoch names this life of the store; 32 bits keep event ids short.
    store_ = std::make_unique<store::memory_store>(
        settings_.runtime.limits, clock, random.next() >> 32, event_counts_.get());
    node_ = std::make_unique<runtime::node>(settings_.runtime, *store_, random, *metrics_, log_);
    workers_ = std::make_unique<base::worker_pool>(settings_.worker_threads, settings_.worker_queue);
    core_->work_on(workers_.get());
    core_->get_ready(settings_.schemas);
    node_->run_with(*core_);
    endpoint_ = std::make_unique<transport::streamable_http>(*node_, *core_, settings_.transport);
    add_routes();
    add_mounts();
    auto& policy = settings_.http.policy;
    policy.cors_methods = "GET, POST, DELETE, OPTIONS";
    policy.cors_headers = "Content-Type, Accept, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Last-Event-ID, "
                          "Mcp-Method, Mcp-Name, traceparent, tracestate";
    policy.cors_expose = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After";
    policy.exempt_paths = {"/healthz", "/readyz"};
    settings_.http.on_exchange_end = [this](http::access_record const& record) {
        metrics_->request_seconds.Observe(std::chrono::duration<double>(record.duration).count());
        if (logs_access_.load(std::memory_order_relaxed))
            write_access(record);
    };
    settings_.http.takes_notes = &logs_access_;
    std::vector<base::io_loop*> loops;
    for (auto const& loop : loops_)
        loops.push_back(loop.get());
    http_ = std::make_unique<http::server>(std::move(loops), settings_.http, router_, log_);
    open_admin();
    node_->departures().on_departure([this] { loops_.front()->post([this] { drain_step(); }); });
}

host::~host()
{
    stop_now();
    wait();
    core_->work_on(nullptr);
    for (auto const& core : mounted_cores())
        core->work_on(nullptr);
    workers_.reset(); // waits for what is running, while everything it speaks to is still there
}

std::vector<std::shared_ptr<detail::server_core>> host::mounted_cores() const
{
    std::vector<std::shared_ptr<detail::server_core>> cores;
    for (auto const& each : core_->mounts())
        if (each.core && std::ranges::find(cores, each.core) == cores.end())
            cores.push_back(each.core);
    return cores;
}

void host::add_mounts()
{
    for (auto const& core : mounted_cores()) {
        core->work_on(workers_.get());
        core->get_ready(settings_.schemas);
    }
    transport::stateless_http_settings const with{settings_.transport.answer, settings_.transport.batch_max};
    for (auto const& each : core_->mounts()) {
        auto& core = each.core ? *each.core : *core_;
        mounts_.push_back(std::make_unique<transport::stateless_http>(*node_, core, with));
        router_.add(each.path, std::string(transport::stateless_methods), *mounts_.back());
    }
}

void host::add_routes()
{
    router_.add(settings_.endpoint, "GET, POST, DELETE, OPTIONS", *endpoint_);
    if (settings_.has_console)
        add_console(router_);
    auto const get = [this](std::string path, auto answer) {
        router_.add(std::move(path), "GET, HEAD, OPTIONS", [answer](std::shared_ptr<http::exchange> exchange) {
            auto const method = exchange->request().method();
            if (method != http::method::get && method != http::method::head)
                return http::respond_text(*exchange, 405, "Use GET here.", {{"Allow", "GET, HEAD, OPTIONS"}});
            answer(*exchange);
        });
    };
    get("/healthz", [](http::exchange& exchange) { http::respond_text(exchange, 200, "ok"); });
    get("/readyz", [this](http::exchange& exchange) {
        if (node_->departures().is_draining())
            http::respond_text(exchange, 503, "draining", {{"Retry-After", "5"}});
        else
            http::respond_text(exchange, 200, "ready");
    });
    get("/metrics", [this](http::exchange& exchange) {
        exchange.respond({200, "text/plain; version=0.0.4; charset=utf-8", {}}, metrics_text());
    });
}

std::string host::metrics_text()
{
    std::lock_guard const lock(metrics_mutex_);
    auto const http = http_->statistics();
    metrics_->workers_running.Set(static_cast<double>(workers_->running()));
    metrics_->workers_queued.Set(static_cast<double>(workers_->queued()));
    metrics_->http_bytes_in.Set(static_cast<double>(http.bytes_in));
    metrics_->http_bytes_out.Set(static_cast<double>(http.bytes_out));
    observe::catch_up(metrics_->http_bodies_refused, http.refused_bodies);
    observe::catch_up(metrics_->http_readers_closed, http.closed_readers);
    if (log_lines_)
        observe::catch_up(metrics_->log_lines_dropped, log_lines_->dropped());
    return node_->metrics_text(http.open_connections);
}

void host::open_admin()
{
    if (settings_.admin_listen.empty())
        return;
    admin_ = std::make_unique<admin>(*node_, settings_.admin_max_page);
    http::server_settings with = settings_.http;
    with.listen = {settings_.admin_listen};
    with.unix_mode = settings_.admin_unix_mode;
    // Who may call this is who has a place on this machine: no web page, whatever its origin.
    with.policy.takes_pages = false;
    with.policy.loopback_origin = false;
    with.policy.allow_origin.clear();
    with.policy.exempt_paths.clear();
    with.on_exchange_end = nullptr;
    with.takes_notes = nullptr;
    admin_http_ = std::make_unique<http::server>(
        std::vector<base::io_loop*>{loops_.front().get()}, std::move(with), *admin_, log_);
}

void host::write_access(http::access_record const& record) const
{
    std::vector<base::log_field> notes;
    for (auto const& each : record.notes)
        notes.emplace_back(each.name, std::string_view(each.value));
    access_log_.write(
        {http::to_string(record.method), record.path, record.status, record.bytes_in, record.bytes_out, record.duration,
         notes});
}

void host::start()
{
    loops_.front()->post([this] {
        node_->start(*loops_.front());
        core_->start(*node_, *loops_.front());
        for (auto const& core : mounted_cores())
            core->start(*node_, *loops_.front(), runtime::session_mode::none);
    });
    for (auto const& loop : loops_)
        threads_.emplace_back([&loop] { loop->run(); });
    if (settings_.stall_warning > base::duration::zero())
        watch_loops();
}

void host::watch_loops()
{
    std::vector<base::loop*> loops;
    for (auto const& loop : loops_)
        loops.push_back(loop.get());
    watch_ = std::jthread([this, loops](std::stop_token const& stop) {
        base::stall_watch watch(
            loops, clock_, settings_.stall_warning, [this](base::stall const& stall) { tell_stall(stall); });
        std::mutex mutex;
        std::condition_variable_any ended;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
            watch.look();
            // Often enough to see a stall not much later than it counts as one.
            ended.wait_for(lock, stop, settings_.stall_warning / 4, [] { return false; });
        }
    });
}

void host::tell_stall(base::stall const& stall)
{
    if (!stall.is_told)
        metrics_->loop_stalls.Increment();
    if (stall.is_over)
        metrics_->loop_stall_seconds.Observe(std::chrono::duration<double>(stall.held).count());
    std::vector<base::log_field> fields{
        {"loop", stall.loop},
        {"held_ms", std::chrono::duration_cast<std::chrono::milliseconds>(stall.held).count()},
        {"started", stall.started}};
    // What is running holds it; what has returned may have left something behind that does, or have nothing to do with
    // it.
    if (!stall.handler.name.empty())
        fields.emplace_back(
            stall.handler.is_running ? "handler" : "last_handler", std::string_view(stall.handler.name));
    log_.log_fields(
        base::log_level::warning, stall.is_over ? "an event loop was held up and goes on" : "an event loop is held up",
        fields);
}

void host::wait()
{
    for (auto& thread : threads_)
        if (thread.joinable())
            thread.join();
    watch_ = {};
}

void host::shut_down()
{
    loops_.front()->post([this] {
        if (phase_ != phase::serving)
            return;
        phase_ = phase::draining;
        node_->departures().drain();
        log_.info("stopping; running calls: {}", node_->departures().calls());
        limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] {
            log_.warning("stopping; interrupted calls: {}", node_->departures().calls());
            node_->calls().interrupt_all();
            // Interrupted calls end at once; this is for a store that does not answer.
            limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] { close_connections(); });
            limit_->after(flush_limit);
        });
        limit_->after(settings_.drain);
        drain_step();
    });
}

void host::drain_step()
{
    if (phase_ == phase::draining && node_->departures().calls() == 0)
        close_connections();
    else if (phase_ == phase::closing && node_->departures().connections() == 0)
        stop_serving();
}

void host::close_connections()
{
    if (phase_ != phase::draining)
        return;
    phase_ = phase::closing;
    node_->attachments().close_all(engine::close_reason::draining);
    limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] { stop_serving(); });
    limit_->after(flush_limit);
    drain_step();
}

void host::stop_serving()
{
    if (phase_ == phase::stopped)
        return;
    phase_ = phase::stopped;
    limit_.reset();
    // A tool that is left waiting would hold its call, and its call the tool.
    node_->calls().interrupt_all();
    workers_->stop();
    auto const servers_stopped = [this] {
        loops_.front()->post([this] {
            // Blocking tools were told to end. One that does not listen is left behind.
            limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] { stop_loops(); });
            limit_->after(flush_limit);
            workers_->on_idle([this] { loops_.front()->post([this] { stop_loops(); }); });
        });
    };
    http_->stop([this, servers_stopped] {
        if (admin_http_)
            admin_http_->stop(servers_stopped);
        else
            servers_stopped();
    });
}

void host::stop_loops()
{
    limit_.reset();
    watch_.request_stop();
    core_->stop();
    for (auto const& core : mounted_cores())
        core->stop();
    node_->stop();
    for (auto const& loop : loops_)
        loop->stop();
}

void host::stop_now()
{
    loops_.front()->post([this] { stop_serving(); });
}

void host::poke()
{
    for (auto const& loop : loops_)
        loop->poke();
}

std::uint16_t host::port() const
{
    return http_->local_endpoint().port();
}

std::string host::url() const
{
    auto const where = http_->local_endpoint();
    auto const address = where.address();
    if (where.port() == 0)
        return "http://localhost";
    if (address.is_unspecified())
        return fmt::format("http://localhost:{}", where.port());
    return address.is_v6() ? fmt::format("http://[{}]:{}", address.to_string(), where.port())
                           : fmt::format("http://{}:{}", address.to_string(), where.port());
}

std::string host::admin_address() const
{
    return admin_http_ ? admin_http_->names().front() : std::string();
}

}
