// [blocking]
#include <belay/run.hpp>

struct count_args {
    std::int64_t below;
    static constexpr belay::field docs[] = {belay::field("below").range(2, 1'000'000'000)};
};
BOOST_DESCRIBE_STRUCT(count_args, (), (below))

struct count_result {
    std::int64_t primes;
};
BOOST_DESCRIBE_STRUCT(count_result, (), (primes))

bool is_prime(std::int64_t number)
{
    for (std::int64_t divisor = 2; divisor * divisor <= number; ++divisor)
        if (number % divisor == 0)
            return false;
    return true;
}

// Runs on one of the server's workers: it never awaits, and holds up nothing but its own thread.
count_result count_primes(belay::blocking_call& call, count_args args)
{
    count_result found{0};
    for (std::int64_t number = 2; number < args.below; ++number) {
        if (number % 4096 == 0) {
            if (call.is_cancelled())
                return found; // nobody will see it
            call.progress(static_cast<double>(number), static_cast<double>(args.below));
        }
        found.primes += is_prime(number);
    }
    call.log(belay::log_level::info, "primes", "counted all below " + std::to_string(args.below));
    return found;
}

int main(int argc, char** argv)
{
    belay::server server("blocking", "1.0");
    server.tool("count_primes", count_primes)
        .describe("Counts the primes below a number, one after the other")
        .read_only()
        .at_most(2)
        .timeout(std::chrono::minutes(10));
    return belay::run(server, argc, argv);
}
// [/blocking]
