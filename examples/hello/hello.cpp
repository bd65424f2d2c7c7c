// [hello]
#include <belay/run.hpp>

struct countdown_args {
    int from;
};
BOOST_DESCRIBE_STRUCT(countdown_args, (), (from))

belay::task<std::string> countdown(belay::call& call, countdown_args args)
{
    for (int left = args.from; left > 0; --left) {
        co_await call.log(belay::log_level::info, "countdown", std::to_string(left));
        co_await call.sleep(std::chrono::seconds(1));
    }
    co_return "Lift-off";
}

int main(int argc, char** argv)
{
    belay::server server("hello", "1.0");
    server.tool("countdown", countdown).describe("Counts down, one number a second").read_only();
    return belay::run(server, argc, argv);
}
// [/hello]
