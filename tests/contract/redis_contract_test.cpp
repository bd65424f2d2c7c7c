// The Redis store keeps the contract, on a real Redis.
#include "contract/redis_fixture.hpp"
#include "contract/store_contract.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace belay::store {

namespace {

using real_clock = std::chrono::steady_clock;

/// How long a test waits for something that never comes.
constexpr auto patience = std::chrono::seconds(6);

class tested_redis_store final : public tested_store {
public:
    tested_redis_store(redis_place place, limits const& limits, std::uint64_t epoch) : loop_(clock_)
    {
        redis_options options;
        options.place = std::move(place);
        options.epoch = epoch;
        options.time_ahead = [this] { return std::chrono::duration_cast<std::chrono::microseconds>(ahead_); };
        options.log = base::logger(log_level::warning, [](log_level, std::string_view line) {
            std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
        });
        loops_[0] = &loop_;
        store_ = std::make_unique<redis_store>(limits, std::move(options), loops_);
    }

    backend& store() override { return *store_; }
    void advance(base::duration by) override
    {
        settle(); // what was told before happens before
        ahead_ += by;
    }
    bool work() override
    {
        auto const now = real_clock::now();
        // Somebody begins to wait, or waits on after something has happened.
        if (now - last_ > std::chrono::milliseconds(100))
            since_ = now;
        bool const has_worked = loop_.context().run_one_for(std::chrono::milliseconds(20)) > 0;
        last_ = real_clock::now();
        return has_worked || last_ - since_ < patience;
    }
    void settle() override
    {
        auto const give_up = real_clock::now() + patience;
        while (!store_->is_idle() && real_clock::now() < give_up)
            loop_.context().run_one_for(std::chrono::milliseconds(20));
    }

private:
    base::machine_clock clock_;
    base::io_loop loop_;
    base::io_loop* loops_[1];
    base::duration ahead_{};
    real_clock::time_point since_{};
    real_clock::time_point last_{};
    std::unique_ptr<redis_store> store_; // before the loop goes
};

INSTANTIATE_TEST_SUITE_P(
    Redis, StoreContract,
    testing::Values(
        store_factory{
            "redis",
            [](limits const& limits, std::uint64_t epoch) {
                shared_redis().ask({"FLUSHALL"});
                return std::make_unique<tested_redis_store>(shared_redis().place(), limits, epoch);
            }},
        store_factory{
            "cluster",
            [](limits const& limits, std::uint64_t epoch) {
                shared_redis_cluster().empty();
                return std::make_unique<tested_redis_store>(shared_redis_cluster().place(), limits, epoch);
            }}),
    store_name);

}

}
