// The `belay` program: the reference server.
#include "app/build_info.hpp"
#include "app/command_line.hpp"
#include "app/reference/reference.hpp"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace {

constexpr auto usage = "belay: an MCP server that never drops a call\n"
                       "\n"
                       "  belay serve [flags]         serve the reference tools; `belay serve --help` lists the flags\n"
                       "  belay check-config [flags]  print the settings that serve would use, or what is wrong\n"
                       "  belay settings              print the reference of all settings as Markdown\n"
                       "  belay --version\n";

}

int main(int argc, char** argv)
{
    using belay::app::program;
    if (argc < 2 || std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0) {
        fmt::print("{}", usage);
        return argc < 2 ? 2 : 0;
    }
    if (std::strcmp(argv[1], "--version") == 0) {
        fmt::print("{}\n", belay::app::build_info());
        return 0;
    }
    if (std::strcmp(argv[1], "settings") == 0) {
        belay::app::settings settings;
        fmt::print("{}", belay::app::settings_table(settings, program::reference).markdown());
        return 0;
    }
    if (std::strcmp(argv[1], "check-config") == 0) {
        static char flag[] = "--check-config";
        std::vector<char*> arguments(argv + 1, argv + argc);
        arguments.insert(arguments.begin() + 1, flag);
        auto const parsed = belay::app::parse_command_line(
            "belay check-config", BELAY_VERSION, static_cast<int>(arguments.size()), arguments.data(),
            program::reference);
        return parsed ? 0 : parsed.error();
    }
    if (std::strcmp(argv[1], "serve") != 0) {
        fmt::print(stderr, "belay: there is no command {}\n\n{}", argv[1], usage);
        return 2;
    }
    static char name[] = "belay serve";
    argv[1] = name;
    auto const parsed = belay::app::parse_command_line("belay", BELAY_VERSION, argc - 1, argv + 1, program::reference);
    if (!parsed)
        return parsed.error();
    belay::server server("belay", BELAY_VERSION);
    belay::app::add_reference(server);
    server.mount_stateless(belay::app::hello_path, belay::app::hello_server(BELAY_VERSION));
    belay::base::system_random random;
    if (parsed->settings.reference_background)
        belay::app::add_reference_background(server, random);
    if (parsed->settings.reference_stderr)
        belay::app::add_reference_stderr(server);
    return belay::app::serve(server, *parsed);
}
