#include "runtime/node.hpp"

#include <algorithm>
#include <utility>

namespace belay::runtime {

namespace {

// Calls of a lost node have their answers within the lease and this.
constexpr base::duration look_interval = std::chrono::seconds(1);

}

// The node's periodic work, on the loop that it was started on.
struct node::periodic {
    class job {
    public:
        job(base::loop& loop, base::duration every, std::function<void()> work)
            : every_(every), work_(std::move(work)), timer_(loop.timers(), [this] {
                  work_();
                  timer_.after(every_);
              })
        {
            timer_.after(every_);
        }

    private:
        base::duration every_;
        std::function<void()> work_;
        base::timer timer_;
    };

    periodic(node& node, base::loop& loop)
        : lapsed(
              loop, look_interval,
              [&node, &loop] {
                  auto const now = loop.now();
                  node.recovery_.while_alive(now, [&node, now] { node.recovery_.look_for_lapsed(now); });
              }),
          forgotten(loop, node.settings().lease / 3, [&node] { node.recovery_.end_forgotten(); }),
          in_use(
              loop, std::min(activity_write_interval, node.settings().limits.session_idle / 4),
              [&node] { node.sessions_.look_round(); }),
          reaper(
              loop, node.settings().reaper_interval,
              [&node, &loop] { node.recovery_.while_alive(loop.now(), [&node] { node.sessions_.reap(); }); }),
          sweep(loop, node.settings().sweep_interval, [&node] { node.store().sweep(); })
    {
    }

    job lapsed;
    job forgotten;
    job in_use;
    job reaper;
    job sweep;
};

node::node(
    runtime::settings settings, store::backend& store, base::random_source& random, observe::metrics& metrics,
    base::logger log)
    : context_(std::move(settings), store, random, metrics, std::move(log)), sessions_(context_, table_),
      attachments_(context_, table_), calls_(context_, table_, attachments_), announcer_(context_),
      recovery_(context_, sessions_, calls_)
{
    recovery_.renew();
}

node::~node()
{
    // Sessions and what runs in them hold each other while they live, and speak to the other parts when they go.
    for (auto const& each : table_.all())
        each->let_go();
}

void node::start(base::loop& loop)
{
    context_.set_own_loop(&loop);
    recovery_.renew();
    periodic_ = std::make_unique<periodic>(*this, loop);
}

void node::stop()
{
    context_.set_own_loop(nullptr);
    announcer_.stop();
    periodic_.reset();
}

std::string node::metrics_text(std::size_t http_connections)
{
    auto const used = store().used();
    auto& gauges = metrics();
    gauges.sessions.Set(static_cast<double>(used.sessions));
    gauges.sessions_served.Set(static_cast<double>(table_.count()));
    gauges.streams.Set(static_cast<double>(used.streams));
    gauges.store_bytes.Set(static_cast<double>(used.bytes));
    gauges.connections.Set(static_cast<double>(http_connections));
    gauges.calls_running.Set(static_cast<double>(departures().running_calls()));
    return gauges.text();
}

}
