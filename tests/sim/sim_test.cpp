// Runs worlds. BELAY_SEEDS says how many, from BELAY_FIRST_SEED on, to the first that breaks a promise or, with
// BELAY_KEEP_GOING, all of them. BELAY_SEED runs one, which is how a failure is replayed; BELAY_TRACE shows what
// happens.
#include "world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace {

std::uint64_t number_from(char const* name, std::uint64_t otherwise)
{
    auto const* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

void run_seed(std::uint64_t seed)
{
    try {
        belay::sim::world world(seed);
        world.run();
    } catch (std::exception const& error) {
        FAIL() << "seed " << seed << ": " << error.what() << "\nreplay with: BELAY_SEED=" << seed
               << " sim_test --gtest_filter=Simulation.KeepsThePromises";
    }
}

}

TEST(Simulation, KeepsThePromises)
{
    if (std::getenv("BELAY_SEED"))
        return run_seed(number_from("BELAY_SEED", 0));
    auto const first = number_from("BELAY_FIRST_SEED", 1);
    auto const count = number_from("BELAY_SEEDS", 1000);
    bool const keeps_going = std::getenv("BELAY_KEEP_GOING") != nullptr;
    for (auto seed = first; seed < first + count && (keeps_going || !HasFailure()); ++seed)
        run_seed(seed);
}

TEST(Simulation, KeepsThePromisesForSeedsThatOnceFailed)
{
    std::ifstream file(BELAY_SEED_FILE);
    ASSERT_TRUE(file) << BELAY_SEED_FILE;
    for (std::uint64_t seed = 0; file >> seed;)
        run_seed(seed);
}

TEST(Simulation, DoesTheSameForTheSameSeed)
{
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        belay::sim::world first(seed);
        belay::sim::world second(seed);
        first.run();
        second.run();
        EXPECT_EQ(first.digest(), second.digest()) << "seed " << seed;
    }
}
