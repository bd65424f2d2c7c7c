#include "app/http_host.hpp"

#include "app/console.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace belay::app {

namespace {

// How long the last answers have to be written once all calls have ended, and tools on workers to return.
constexpr auto flush_limit = std::chrono::seconds(1);

}

http_host::http_host(
    std::shared_ptr<detail::server_core> core, app::settings settings, base::clock const& clock,
    base::random_source& random, base::logger log, http_surroundings around)
    : settings_(std::move(settings)), clock_(clock), log_(log.with("node", settings_.runtime.node_name)),
      around_(std::move(around)), access_log_(log_), logs_access_(settings_.log_access)
{
    if (around_.given)
        loops_.push_back(std::make_unique<base::io_loop>(clock, *around_.given));
    for (unsigned i = 0; !around_.given && i < settings_.threads; ++i)
        loops_.push_back(std::make_unique<base::io_loop>(clock));
    whole_ = std::make_unique<assembly>(
        std::move(core), settings_, assembly::mounts::served, clock, random, log_, around_.make_store);
    store_health_ = whole_->store().on_health([is_well = is_store_well_](bool now) { is_well->store(now); });
    endpoint_ = std::make_unique<transport::streamable_http>(node(), whole_->core(), settings_.transport);
    add_routes();
    add_mounts();
    auto& policy = settings_.http.policy;
    policy.cors_methods = "GET, POST, DELETE, OPTIONS";
    policy.cors_headers = "Content-Type, Accept, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Last-Event-ID, "
                          "Mcp-Method, Mcp-Name, traceparent, tracestate";
    policy.cors_expose = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After";
    policy.exempt_paths = {"/healthz", "/readyz"};
    settings_.http.on_exchange_end = [this](http::access_record const& record) {
        metrics().request_seconds.Observe(std::chrono::duration<double>(record.duration).count());
        if (logs_access_.load(std::memory_order_relaxed))
            write_access(record);
    };
    settings_.http.takes_notes = &logs_access_;
    std::vector<base::io_loop*> loops;
    for (auto const& loop : loops_)
        loops.push_back(loop.get());
    http_ = std::make_unique<http::server>(std::move(loops), settings_.http, router_, log_);
    open_admin();
    node().departures().on_departure([this] { loops_.front()->post([this] { drain_step(); }); });
}

http_host::~http_host()
{
    if (around_.given) // abandoned, or never started
        return;
    cut_off();
    join_threads();
}

void http_host::add_mounts()
{
    transport::stateless_http_settings const with{settings_.transport.answer, settings_.transport.batch_max};
    for (auto const& each : whole_->core().mounts()) {
        auto& core = each.core ? *each.core : whole_->core();
        mounts_.push_back(std::make_unique<transport::stateless_http>(node(), core, with));
        router_.add(each.path, std::string(transport::stateless_methods), *mounts_.back());
    }
}

void http_host::add_routes()
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
    get("/readyz", [this](http::exchange& exchange) { answer_ready(exchange); });
    get("/metrics", [this](http::exchange& exchange) {
        exchange.respond({200, "text/plain; version=0.0.4; charset=utf-8", {}}, metrics_text());
    });
}

void http_host::answer_ready(http::exchange& exchange)
{
    if (node().departures().is_draining())
        http::respond_text(exchange, 503, "draining", {{"Retry-After", "5"}});
    else if (!is_store_well_->load())
        http::respond_text(exchange, 503, "the store cannot be reached", {{"Retry-After", "1"}});
    else
        http::respond_text(exchange, 200, "ready");
}

std::string http_host::metrics_text()
{
    base::lock const lock(metrics_mutex_);
    auto const http = http_->statistics();
    metrics().workers_running.Set(static_cast<double>(workers().running()));
    metrics().workers_queued.Set(static_cast<double>(workers().queued()));
    metrics().http_bytes_in.Set(static_cast<double>(http.bytes_in));
    metrics().http_bytes_out.Set(static_cast<double>(http.bytes_out));
    observe::catch_up(metrics().http_bodies_refused, http.refused_bodies);
    observe::catch_up(metrics().http_readers_closed, http.closed_readers);
    if (around_.dropped_log_lines)
        observe::catch_up(metrics().log_lines_dropped, around_.dropped_log_lines());
    return node().metrics_text(http.open_connections);
}

void http_host::open_admin()
{
    if (settings_.admin_listen.empty())
        return;
    admin_ = std::make_unique<admin>(node(), settings_.admin_max_page);
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

void http_host::write_access(http::access_record const& record) const
{
    std::vector<base::log_field> notes;
    for (auto const& each : record.notes)
        notes.emplace_back(each.name, std::string_view(each.value));
    access_log_.write(
        {http::to_string(record.method), record.path, record.status, record.bytes_in, record.bytes_out, record.duration,
         notes});
}

void http_host::start()
{
    if (around_.given)
        loops_.front()->set_keeper(around_.keeper);
    else
        start_threads();
    // Last: from here on others are in here.
    loops_.front()->post([this] {
        whole_->start(*loops_.front());
        http_->start();
        if (admin_http_)
            admin_http_->start();
    });
}

void http_host::start_threads()
try {
    for (auto const& loop : loops_)
        thread_ids_.push_back(threads_.emplace_back([&loop] { loop->run(); }).get_id());
    if (settings_.stall_warning > base::duration::zero())
        watch_loops();
} catch (...) { // the system gives no more threads
    for (auto const& loop : loops_)
        loop->stop();
    join_threads();
    throw;
}

void http_host::watch_loops()
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

void http_host::tell_stall(base::stall const& stall)
{
    if (!stall.is_told)
        metrics().loop_stalls.Increment();
    if (stall.is_over)
        metrics().loop_stall_seconds.Observe(std::chrono::duration<double>(stall.held).count());
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

void http_host::wait()
{
    if (!ending_->is_over()) {
        if (is_on_own_thread())
            throw std::logic_error("a host cannot be waited for on a thread that it needs to stop");
        if (around_.given && around_.given->stopped())
            throw std::logic_error(
                "a host cannot be waited for while its context is stopped; run the context, or destroy the host");
        ending_->wait();
    }
    if (!is_on_own_thread())
        join_threads();
}

void http_host::join_threads()
{
    base::lock const lock(threads_mutex_);
    for (auto& thread : threads_)
        if (thread.joinable())
            thread.join();
    watch_ = {};
    leave_server();
}

void http_host::leave_server()
{
    // A blocking tool that still runs may use what the server has.
    if (!is_held_up())
        whole_->leave();
}

bool http_host::is_on_own_thread() const
{
    if (around_.given)
        return loops_.front()->is_on_this_thread();
    return std::ranges::find(thread_ids_, std::this_thread::get_id()) != thread_ids_.end();
}

void http_host::abandon()
{
    auto& loop = *loops_.front();
    if (!ending_->is_over() && !loop.stop_unless_run()) {
        cut_off();
        if (loop.is_on_this_thread() || around_.given->stopped())
            stop_here();
        else
            ending_->wait();
    }
    workers().stop();
    workers().wait_until_idle();
    leave_server();
}

void http_host::stop_here()
{
    auto& loop = *loops_.front();
    loop.run_posted();
    // Where a blocking tool does not return, a timer would have given it some time.
    loop.post([this] { stop_loops(); });
    loop.run_posted();
}

void http_host::shut_down()
{
    loops_.front()->post([this] {
        if (phase_ != phase::serving)
            return;
        phase_ = phase::draining;
        node().departures().drain();
        log_.info("stopping; running calls: {}", node().departures().running_calls());
        limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] { interrupt_calls(); });
        limit_->after(settings_.drain);
        send_away();
        drain_step();
    });
}

void http_host::send_away()
{
    // Where the store stays, callers need not wait here for calls that run on: they come back to whoever is there then.
    // With a shared store that is another process, now; with a disk of its own it may still be this one.
    auto const promise = whole_->store().promise();
    if (promise == store::durability::process)
        return;
    if (promise == store::durability::shared)
        http_->stop_accepting();
    node().attachments().close_all(engine::close_reason::draining);
}

void http_host::interrupt_calls()
{
    has_interrupted_ = true;
    log_.warning("stopping; interrupted calls: {}", node().departures().running_calls());
    node().calls().interrupt_all();
    // Interrupted calls end at once; this is for a store that does not answer.
    limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] { close_connections(); });
    limit_->after(flush_limit);
}

void http_host::drain_step()
{
    if (phase_ == phase::draining && node().departures().calls() == 0)
        close_connections();
    else if (phase_ == phase::closing && node().departures().connections() == 0)
        stop_serving();
}

void http_host::close_connections()
{
    if (phase_ != phase::draining)
        return;
    phase_ = phase::closing;
    node().attachments().close_all(engine::close_reason::draining);
    limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] { stop_serving(); });
    limit_->after(flush_limit);
    drain_step();
}

void http_host::stop_serving()
{
    if (phase_ == phase::stopped)
        return;
    phase_ = phase::stopped;
    limit_.reset();
    // A tool that is left waiting would hold its call, and its call the tool.
    node().calls().interrupt_all();
    workers().stop();
    auto const servers_stopped = [this] {
        loops_.front()->post([this] {
            // Blocking tools were told to end. One that does not listen is left behind.
            limit_ = std::make_unique<base::timer>(loops_.front()->timers(), [this] { stop_loops(); });
            limit_->after(flush_limit);
            workers().on_idle([this] { loops_.front()->post([this] { stop_loops(); }); });
        });
    };
    http_->stop([this, servers_stopped] {
        if (admin_http_)
            admin_http_->stop(servers_stopped);
        else
            servers_stopped();
    });
}

void http_host::stop_loops()
{
    limit_.reset();
    watch_.request_stop();
    whole_->stop();
    for (auto const& loop : loops_)
        loop->stop();
    if (!around_.given)
        return ending_->tell();
    leave_server();
    // Whoever waits may destroy this at once, and functions that were cancelled just now are still on their way: after
    // those, and without this.
    boost::asio::post(*around_.given, [ending = ending_] { ending->tell(); });
}

void http_host::ending::tell()
{
    base::lock const lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
}

void http_host::ending::wait()
{
    base::lock lock(mutex_);
    while (!is_over_)
        lock.wait(changed_);
}

bool http_host::ending::is_over()
{
    base::lock const lock(mutex_);
    return is_over_;
}

void http_host::stop_now()
{
    loops_.front()->post([this] {
        if (has_interrupted_ || phase_ == phase::closing)
            return stop_serving();
        phase_ = phase::draining;
        node().departures().drain();
        send_away();
        interrupt_calls();
        drain_step();
    });
}

void http_host::cut_off()
{
    loops_.front()->post([this] { stop_serving(); });
}

void http_host::poke()
{
    for (auto const& loop : loops_)
        loop->poke();
}

std::uint16_t http_host::port() const
{
    return http_->local_endpoint().port();
}

std::string http_host::url() const
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

std::string http_host::admin_address() const
{
    return admin_http_ ? admin_http_->names().front() : std::string();
}

}
