// One pass of the reaper over many live sessions: with none that has expired, and with a thousand.
// usage: belay_bench_reaper [SESSIONS [EXPIRING [ROUNDS]]]; prints one line of JSON, times in milliseconds.
#include "base/clock.hpp"
#include "base/loop.hpp"
#include "observe/metrics.hpp"
#include "runtime/node.hpp"
#include "store/memory_store.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <time.h>

namespace {

using namespace belay;

/// Nothing in a pass of the reaper waits; it goes on in bites, which are posted.
class bench_loop final : public base::loop {
public:
    using base::loop::loop;
    void post(std::move_only_function<void()> work) override { work_.push_back(std::move(work)); }
    void run()
    {
        while (!work_.empty())
            for (auto& each : std::exchange(work_, {}))
                each();
    }

private:
    std::vector<std::move_only_function<void()>> work_;
};

/// Processor time of this thread: a busy machine does not count.
double processor_ms()
{
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

struct house {
    explicit house(std::size_t sessions)
        : store(
              [&] {
                  store::limits limits;
                  limits.sessions = sessions;
                  return limits;
              }(),
              clock, 1),
          node({}, store, random, metrics, {})
    {
        node.start(loop);
    }
    ~house() { node.stop(); }

    void open(std::size_t count)
    {
        for (std::size_t i = 0; i < count; ++i)
            node.sessions().open(
                {"anonymous", protocol::newest_revision, "{}", "{}"}, [](result<runtime::session_use> use) {
                    if (!use) {
                        std::fprintf(stderr, "a session could not be opened: %s\n", use.error().message().c_str());
                        std::exit(1);
                    }
                });
        loop.run();
    }

    double reap()
    {
        auto const begun = processor_ms();
        node.sessions().reap();
        loop.run();
        return processor_ms() - begun;
    }

    base::manual_clock clock; // before the store, which reads it
    bench_loop loop{clock};
    base::seeded_random random{1};
    observe::metrics metrics;
    store::memory_store store;
    runtime::node node;
};

void print(char const* name, std::vector<double> const& times, char const* after)
{
    std::printf("\"%s\":[", name);
    for (std::size_t i = 0; i < times.size(); ++i)
        std::printf("%s%.4f", i == 0 ? "" : ",", times[i]);
    std::printf("]%s", after);
}

}

int main(int argc, char** argv)
{
    auto const number = [&](int i, std::size_t otherwise) {
        return i < argc ? static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)) : otherwise;
    };
    auto const sessions = number(1, 100'000);
    auto const expiring = std::min(number(2, 1000), sessions);
    auto const rounds = number(3, 7);
    std::vector<double> none;
    std::vector<double> some;
    house house(sessions);
    auto const idle = house.node.settings().limits.session_idle;
    house.open(expiring);
    for (std::size_t round = 0; round < rounds; ++round) {
        // The old ones are one step from expiry; the others have just come.
        house.clock.advance(idle / 2);
        auto const missing = sessions - house.store.used().sessions;
        house.open(missing);
        none.push_back(house.reap());
        if (house.store.used().sessions != sessions)
            return std::fprintf(stderr, "a session went too early\n"), 1;
        house.clock.advance(idle / 2);
        some.push_back(house.reap());
        auto const left = house.store.used().sessions;
        if (left != sessions - expiring)
            return std::fprintf(stderr, "%zu sessions are left of %zu\n", left, sessions), 1;
        // Start anew: everyone goes, the next generation's old ones come.
        house.clock.advance(idle);
        house.reap();
        house.open(expiring);
    }
    std::printf("{");
    print("none", none, ",");
    print("some", some, "}\n");
    return 0;
}
