#include "app/command_line.hpp"

#include "app/build_info.hpp"
#include "app/say.hpp"
#include "server/access.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace belay::app {

namespace {

constexpr std::string_view default_file = "belay.toml";

/// What CLI11 says of a bad command line, in our words where it only lists what it did not expect.
std::string explain(CLI::ParseError const& error, CLI::App const& app, int argc, char** argv)
{
    if (!dynamic_cast<CLI::ExtrasError const*>(&error))
        return fmt::format("{}; --help lists the flags", error.what());
    std::vector<std::string> known;
    for (auto const* option : app.get_options())
        for (auto const& name : option->get_lnames())
            known.push_back("--" + name);
    for (int i = 1; i < argc; ++i) {
        std::string_view const word(argv[i]);
        auto const flag = word.substr(0, word.find('='));
        if (!flag.starts_with('-') || flag == "-h" || std::ranges::find(known, flag) != known.end())
            continue;
        auto const like = nearest(flag, known);
        return fmt::format("there is no flag {}{}; --help lists them", flag, like.empty() ? "" : ", but " + like);
    }
    return fmt::format("there is no use for \"{}\"; --help lists the flags", app.remaining().front());
}

void add_own(CLI::App& app, flags const& own, std::map<std::string, std::vector<std::string>>& given)
{
    for (auto const& each : detail::access::all(own)) {
        if (each.shape.empty()) {
            app.add_flag(each.name, each.help)->group("Options of this program");
            continue;
        }
        auto* const option = app.add_option(each.name, given[each.name], each.help);
        option->type_name(each.shape)->default_str(each.preset)->group("Options of this program");
        option->expected(1, each.is_list ? 1000 : 1);
    }
}

std::expected<void, std::string>
set_own(CLI::App const& app, flags const& own, std::map<std::string, std::vector<std::string>> const& given)
{
    for (auto const& each : detail::access::all(own)) {
        if (app.count(each.name) == 0)
            continue;
        auto const found = given.find(each.name);
        auto const values = found == given.end() ? std::vector<std::string>() : found->second;
        try {
            each.set(values);
        } catch (std::invalid_argument const& error) {
            return std::unexpected(fmt::format("{} {}: {}", each.name, fmt::join(values, " "), error.what()));
        }
    }
    return {};
}

}

std::expected<settings, std::string> settings_source::read() const
{
    settings chosen;
    chosen.is_stdio = is_stdio;
    settings_table const table(chosen, of);
    auto path = file;
    if (path.empty() && std::filesystem::exists(default_file))
        path = default_file;
    if (!path.empty())
        if (auto const loaded = table.load_file(path); !loaded)
            return std::unexpected(loaded.error());
    if (auto const loaded = table.load_environment(); !loaded)
        return std::unexpected(loaded.error());
    for (auto const& each : table.entries()) {
        auto const given = flags.find(each.key);
        if (given == flags.end() || given->second.empty())
            continue;
        if (auto const set = each.set_all(given->second); !set)
            return std::unexpected(fmt::format("--{} {}", each.flag, set.error()));
    }
    if (auto const completed = complete(chosen); !completed)
        return std::unexpected(completed.error());
    return chosen;
}

std::expected<command_line, int> parse_command_line(
    std::string const& name, std::string const& version, int argc, char** argv, program of, flags const& own)
{
    settings presets;
    settings_table const table(presets, of);
    settings_source source;
    source.of = of;
    CLI::App app(fmt::format(
        "{} {}: serves MCP over HTTP or stdio; calls survive the loss of their connection.\n"
        "Each setting can also stand in belay.toml under its key or in the environment as BELAY_KEY; flags win.\n"
        "Times are written 500ms, 15s, 10m, 1h; sizes 64KiB, 8MiB, 1GiB.",
        name, version));
    app.set_version_flag("--version", fmt::format("{} {}\n{}", name, version, build_info()));
    app.add_option("--config", source.file, "Settings file; belay.toml in this folder is read without it.")
        ->type_name("FILE");
    for (auto const& each : table.entries()) {
        auto const flags = each.alias.empty() ? "--" + each.flag : "--" + each.flag + ",--" + each.alias;
        auto* const option = app.add_option(flags, source.flags[each.key], each.help);
        option->type_name(each.shape)->default_str(each.preset);
        if (each.is_list)
            option->expected(1, 1000);
        else
            option->expected(1);
    }
    app.add_flag(
        "--stdio", source.is_stdio,
        "Serve one client over standard input and output, a message per line, instead of HTTP.");
    bool wants_settings = false;
    app.add_flag("--settings", wants_settings, "Print the reference of all settings as Markdown and exit.");
    bool wants_check = false;
    app.add_flag("--check-config", wants_check, "Print the settings as a belay.toml, or what is wrong, and exit.");
    std::map<std::string, std::vector<std::string>> given_own;
    try {
        add_own(app, own, given_own);
    } catch (CLI::OptionAlreadyAdded const&) {
        say_error(name, "a flag that the program adds is one of the server's; --settings lists those");
        return std::unexpected(2);
    }
    try {
        app.parse(argc, argv);
    } catch (CLI::Success const& asked) {
        return std::unexpected(app.exit(asked));
    } catch (CLI::ParseError const& error) {
        say_error(name, explain(error, app, argc, argv));
        return std::unexpected(2);
    }
    if (auto const set = set_own(app, own, given_own); !set) {
        say_error(name, set.error());
        return std::unexpected(2);
    }
    if (wants_settings) {
        fmt::print("{}", table.markdown());
        return std::unexpected(0);
    }
    auto chosen = source.read();
    if (!chosen) {
        say_error(name, chosen.error());
        return std::unexpected(2);
    }
    if (wants_check) {
        fmt::print("{}", settings_table(*chosen, of).toml());
        return std::unexpected(0);
    }
    return command_line{std::move(source), std::move(*chosen)};
}

}
