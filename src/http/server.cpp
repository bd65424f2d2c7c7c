#include "http/server.hpp"

#include "base/mutex.hpp"
#include "http/listener.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <sys/resource.h>

namespace belay::http {

namespace {

using boost::asio::ip::tcp;

policy_settings policy_for(reach reach, policy_settings settings)
{
    settings.loopback = settings.loopback && reach != reach::everyone;
    // A browser cannot open a unix socket: a page that comes that way came through a proxy, from any machine.
    settings.loopback_origin = settings.loopback_origin && reach == reach::loopback;
    return settings;
}

}

struct server::parts {
    parts(server_settings with, std::vector<base::io_loop*> on)
        : settings(std::move(with)), loops(std::move(on)),
          bytes(std::make_shared<in_flight>(settings.max_bytes_in, settings.max_bytes_out))
    {
    }

    void remove_files()
    {
        base::lock const lock(files_mutex);
        files.clear();
    }

    server_settings const settings;
    std::vector<base::io_loop*> const loops;
    std::vector<std::unique_ptr<http::policy const>> policies; // one per address
    std::atomic<std::size_t> open_connections{0};
    std::shared_ptr<in_flight> const bytes;
    std::atomic<std::size_t> loops_to_stop{0};
    std::move_only_function<void()> stopped;
    tcp::endpoint endpoint;
    std::vector<std::string> names;
    std::vector<std::vector<std::shared_ptr<listener>>> listeners; // of each loop
    base::mutex files_mutex;
    std::vector<socket_file> files BELAY_GUARDED_BY(files_mutex);
};

server::server(std::vector<base::io_loop*> loops, server_settings settings, handler& handler, base::logger log)
    : parts_(std::make_shared<parts>(std::move(settings), std::move(loops)))
{
    auto& parts = *parts_;
    if (parts.loops.empty())
        throw std::logic_error("an HTTP server needs a loop");
    std::vector<listening_socket> sockets;
    for (auto const& text : parts.settings.listen) {
        auto const wanted = parse_listen(text);
        if (!wanted)
            throw std::runtime_error("bad listen address: " + wanted.error());
        auto opened = open_listening(*wanted, {parts.loops.size(), parts.settings.backlog, parts.settings.unix_mode});
        for (auto& each : opened) {
            bool const is_open_to_all = wanted->kind == listen_address::kind::inherited && each.reach == reach::everyone
                && parts.settings.policy.allow_host.empty();
            if (is_open_to_all)
                throw std::runtime_error(needs_hosts(each.name));
            sockets.push_back(std::move(each));
        }
    }
    if (sockets.empty())
        throw std::runtime_error("there is no address to listen on; name one with --listen");

    parts.listeners.resize(parts.loops.size());
    for (auto& socket : sockets) {
        parts.names.push_back(socket.name);
        if (parts.endpoint.port() == 0)
            parts.endpoint = socket.endpoint;
        for (auto& file : socket.files)
            parts.files.push_back(std::move(file));
        auto const& policy = *parts.policies.emplace_back(
            std::make_unique<http::policy const>(policy_for(socket.reach, parts.settings.policy)));
        for (std::size_t i = 0; i < parts.loops.size(); ++i) {
            auto& loop = *parts.loops[i];
            parts.listeners[i].push_back(std::make_shared<listener>(
                loop, parts.settings, policy, handler, log, parts.open_connections, *parts.bytes,
                socket.per_loop[i].get(), socket.family));
            static_cast<void>(socket.per_loop[i].release()); // the listener's now
        }
    }
}

server::~server()
{
    parts_->remove_files();
}

void server::start()
{
    for (std::size_t i = 0; i < parts_->loops.size(); ++i)
        for (auto const& each : parts_->listeners[i])
            parts_->loops[i]->post([held = std::weak_ptr(each)] {
                if (auto const present = held.lock())
                    present->start();
            });
}

tcp::endpoint server::local_endpoint() const noexcept
{
    return parts_->endpoint;
}

std::vector<std::string> server::names() const
{
    return parts_->names;
}

server_statistics server::statistics() const noexcept
{
    server_statistics sum;
    sum.open_connections = parts_->open_connections.load(std::memory_order_relaxed);
    sum.bytes_in = parts_->bytes->in();
    sum.bytes_out = parts_->bytes->out();
    for (auto const& of_loop : parts_->listeners)
        for (auto const& each : of_loop) {
            auto const& site = each->site();
            sum.accepted += site.accepted.load(std::memory_order_relaxed);
            sum.refused_full += site.refused_full.load(std::memory_order_relaxed);
            sum.refused_descriptors += site.refused_descriptors.load(std::memory_order_relaxed);
            sum.refused_requests += site.refused_requests.load(std::memory_order_relaxed);
            sum.refused_bodies += site.refused_bodies.load(std::memory_order_relaxed);
            sum.closed_readers += site.closed_readers.load(std::memory_order_relaxed);
            sum.requests += site.requests.load(std::memory_order_relaxed);
            sum.sends += site.sends.load(std::memory_order_relaxed);
        }
    return sum;
}

void server::stop_accepting()
{
    parts_->remove_files();
    for (std::size_t i = 0; i < parts_->loops.size(); ++i)
        parts_->loops[i]->post([held = parts_, i] {
            for (auto const& each : held->listeners[i])
                each->stop_accepting();
        });
}

void server::stop(std::move_only_function<void()> stopped)
{
    parts_->remove_files();
    parts_->stopped = std::move(stopped);
    parts_->loops_to_stop = parts_->loops.size();
    for (std::size_t i = 0; i < parts_->loops.size(); ++i)
        parts_->loops[i]->post([held = parts_, i] {
            for (auto const& each : held->listeners[i])
                each->stop();
            if (--held->loops_to_stop == 0 && held->stopped)
                held->stopped();
        });
}

std::size_t raise_descriptor_limit() noexcept
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        auto raised = limit;
        raised.rlim_cur = raised.rlim_max;
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return static_cast<std::size_t>(limit.rlim_cur);
}

}
