// The node's periodic work: reaper, sweep, lease. On the loop that the node was started on.
#pragma once

#include "runtime/node.hpp"

namespace belay::runtime {

struct node::periodic {
    periodic(node& node, base::loop& loop)
        : loop(loop), reaper(
                          loop.timers(),
                          [this, &node] {
                              node.reap(this->loop.now());
                              reaper.after(node.settings_.reaper_interval);
                          }),
          sweep(
              loop.timers(),
              [this, &node] {
                  node.store_.sweep(this->loop.now());
                  sweep.after(node.settings_.sweep_interval);
              }),
          lease(loop.timers(), [this, &node] {
              auto const now = this->loop.now();
              node.store_.renew(node.owner_, now + node.settings_.lease);
              node.recover_lapsed(now);
              lease.after(node.settings_.lease / 3);
          })
    {
        node.store_.renew(node.owner_, loop.now() + node.settings_.lease);
        reaper.after(node.settings_.reaper_interval);
        sweep.after(node.settings_.sweep_interval);
        lease.after(node.settings_.lease / 3);
    }

    base::loop& loop;
    base::timer reaper;
    base::timer sweep;
    base::timer lease;
};

}
