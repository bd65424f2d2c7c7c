#include "app/settings.hpp"

#include "app/command_line.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace belay::app {

namespace {

using namespace std::chrono_literals;

// --- values

TEST(Duration, IsANumberWithAUnit)
{
    EXPECT_EQ(parse_duration("500ms"), 500ms);
    EXPECT_EQ(parse_duration("15s"), 15s);
    EXPECT_EQ(parse_duration("10m"), 10min);
    EXPECT_EQ(parse_duration("1h"), 1h);
    EXPECT_EQ(parse_duration("0s"), 0s);
    EXPECT_EQ(parse_duration("007s"), 7s);
}

TEST(Duration, RefusesOtherText)
{
    for (auto const text :
         {"", "s", "15", "15 s", " 15s", "15s ", "-1s", "+1s", "1.5s", "1S", "1sec", "1d", "1m30s", "1e3s", "0x1s",
          "99999999999999999999s"})
        EXPECT_FALSE(parse_duration(text)) << text;
    EXPECT_EQ(parse_duration("1").error(), "expected a time such as 500ms, 15s, 10m or 1h");
}

TEST(Duration, IsRightOrRefusedHoweverLong)
{
    // Whatever is accepted can be added to a time.
    for (auto const unit : {"ms", "s", "m", "h"})
        for (std::int64_t number = 1; number < 1'000'000'000'000; number *= 10) {
            auto const parsed = parse_duration(std::to_string(number) + unit);
            if (parsed) {
                EXPECT_GT(base::machine_clock().now() + *parsed, base::machine_clock().now()) << number << unit;
            }
        }
    EXPECT_TRUE(parse_duration("87600h")); // ten years
}

TEST(Bytes, AreANumberWithAUnit)
{
    EXPECT_EQ(parse_bytes("1"), 1u);
    EXPECT_EQ(parse_bytes("65536"), 65536u);
    EXPECT_EQ(parse_bytes("100B"), 100u);
    EXPECT_EQ(parse_bytes("64KiB"), 65536u);
    EXPECT_EQ(parse_bytes("8MiB"), 8u << 20);
    EXPECT_EQ(parse_bytes("1GiB"), 1u << 30);
}

TEST(Bytes, RefuseOtherText)
{
    for (auto const text :
         {"", "0", "0KiB", "-1", "+1", "1.5MiB", "1MB", "1kb", "1 MiB", " 1", "MiB", "1KiBs", "99999999999999999999",
          "1099511627776GiB"})
        EXPECT_FALSE(parse_bytes(text)) << text;
    EXPECT_EQ(parse_bytes("x").error(), "expected a size such as 65536, 64KiB, 8MiB or 1GiB");
}

// --- the table

/// A value of the entry's shape that is not its default.
std::string sample_of(settings_table::entry const& entry)
{
    if (entry.key == "listen" || entry.key == "admin.listen")
        return "127.0.0.1:4567";
    if (entry.shape == "MODE")
        return "660";
    if (entry.key == "endpoint")
        return "/other";
    if (entry.key == "store")
        return "memory";
    if (entry.shape == "TIME" || entry.shape == "TIME|off")
        return "1234ms";
    if (entry.shape == "SIZE")
        return "12345";
    if (entry.shape == "N")
        return "123";
    if (entry.is_list)
        return "https://a.example";
    if (auto const bar = entry.shape.find('|'); bar != std::string::npos) {
        auto const first = entry.shape.substr(0, bar);
        auto const rest = entry.shape.substr(bar + 1);
        return first != entry.preset ? first : rest.substr(0, rest.find('|'));
    }
    return "sample";
}

/// What the settings are, as text.
std::map<std::string, std::string> shown(settings const& of)
{
    settings copy = of;
    std::map<std::string, std::string> values;
    settings_table const table(copy, program::reference);
    for (auto const& each : table.entries())
        values[each.key] = each.show();
    return values;
}

/// Exactly this key has changed.
void expect_only(settings const& changed, std::string const& key)
{
    settings fresh;
    settings_table const make_fresh(fresh, program::reference);
    auto const before = shown(fresh);
    for (auto const& [name, value] : shown(changed)) {
        if (name != key) {
            EXPECT_EQ(value, before.at(name)) << name << " changed with " << key;
        } else if (name != "store") { // there is only one
            EXPECT_NE(value, before.at(name)) << name << " is as before";
        }
    }
}

class Settings : public ::testing::Test {
protected:
    Settings()
    {
        auto pattern = (std::filesystem::temp_directory_path() / "belay_settings_XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    ~Settings() override
    {
        for (auto const& name : variables_)
            ::unsetenv(name.c_str());
        std::filesystem::remove_all(folder_);
    }

    std::string file(std::string const& text)
    {
        auto const path = (folder_ / "belay.toml").string();
        std::ofstream(path) << text;
        return path;
    }
    void environment(std::string const& name, std::string const& value)
    {
        ::setenv(name.c_str(), value.c_str(), 1);
        variables_.insert(name);
    }
    /// The settings, or the exit status. What it prints is kept in printed_.
    std::expected<settings, int> parse(std::vector<std::string> arguments)
    {
        arguments.insert(arguments.begin(), "belay");
        if (std::ranges::find(arguments, "--config") == arguments.end()) {
            arguments.insert(arguments.end(), {"--config", file("")});
        }
        std::vector<char*> pointers;
        for (auto& each : arguments)
            pointers.push_back(each.data());
        ::testing::internal::CaptureStderr();
        ::testing::internal::CaptureStdout();
        auto parsed
            = parse_command_line("belay", "1", static_cast<int>(pointers.size()), pointers.data(), program::reference);
        out_ = ::testing::internal::GetCapturedStdout();
        printed_ = ::testing::internal::GetCapturedStderr();
        if (!parsed)
            return std::unexpected(parsed.error());
        source_ = parsed->source;
        return parsed->settings;
    }
    std::string load(std::string const& text)
    {
        settings into;
        auto const loaded = settings_table(into, program::reference).load_file(file(text));
        if (loaded)
            return "loaded";
        auto error = loaded.error();
        auto const prefix = (folder_ / "belay.toml").string();
        EXPECT_TRUE(error.starts_with(prefix)) << error;
        return error.substr(std::min(prefix.size(), error.size()));
    }

    static std::vector<settings_table::entry> const& entries()
    {
        static settings fresh;
        static settings_table const table(fresh, program::reference);
        return table.entries();
    }

    std::filesystem::path folder_;
    std::string printed_;
    std::string out_;
    settings_source source_; ///< of the last that was parsed

private:
    std::set<std::string> variables_;
};

TEST_F(Settings, HaveAKeyAFlagAndAMeaningEach)
{
    std::set<std::string> keys;
    std::set<std::string> flags;
    for (auto const& each : entries()) {
        EXPECT_TRUE(keys.insert(each.key).second) << each.key;
        EXPECT_TRUE(flags.insert(each.flag).second) << each.flag;
        if (!each.alias.empty()) {
            EXPECT_TRUE(flags.insert(each.alias).second) << each.alias;
        }
        EXPECT_TRUE(each.help.ends_with('.')) << each.key;
        EXPECT_TRUE(each.environment().starts_with("BELAY_")) << each.key;
    }
    EXPECT_TRUE(keys.contains("session.idle_timeout"));
}

TEST_F(Settings, HaveNoKeyThatIsATableOfOthers)
{
    // TOML could not hold both.
    for (auto const& each : entries())
        for (auto const& other : entries())
            EXPECT_FALSE(other.key.starts_with(each.key + '.')) << each.key << " and " << other.key;
}

TEST_F(Settings, TakeTheirOwnPresets)
{
    for (auto const& each : entries()) {
        if (each.preset.empty() || each.preset == "one per core" || each.preset == "by file descriptors"
            || each.preset == "session.idle_timeout")
            continue;
        EXPECT_TRUE(each.set(each.preset)) << each.key << ' ' << each.preset;
    }
}

TEST_F(Settings, AreSetByFlag)
{
    for (auto const& each : entries()) {
        auto const parsed = parse({"--" + each.flag, sample_of(each)});
        ASSERT_TRUE(parsed) << each.flag << ' ' << printed_;
        auto changed = *parsed;
        // complete() has filled in what follows from others.
        if (each.key != "threads")
            changed.threads = 0;
        if (each.key != "workers.threads")
            changed.worker_threads = 0;
        if (each.key == "events.max_age") {
            EXPECT_EQ(changed.runtime.limits.event_age, 1234ms);
        }
        changed.runtime.limits.event_age = std::chrono::milliseconds(each.key == "events.max_age" ? 1 : 0);
        expect_only(changed, each.key);
    }
}

TEST_F(Settings, AreSetByTheShorterFlag)
{
    for (auto const& each : entries())
        if (!each.alias.empty()) {
            EXPECT_TRUE(parse({"--" + each.alias, sample_of(each)})) << each.alias << ' ' << printed_;
        }
    auto const parsed = parse({"--session-idle", "3m"});
    EXPECT_EQ(parsed->runtime.limits.session_idle, 3min);
}

TEST_F(Settings, AreSetByTheEnvironment)
{
    for (auto const& each : entries()) {
        settings into;
        settings_table const table(into, program::reference);
        ::setenv(each.environment().c_str(), sample_of(each).c_str(), 1);
        auto const loaded = table.load_environment();
        ::unsetenv(each.environment().c_str());
        ASSERT_TRUE(loaded) << loaded.error();
        expect_only(into, each.key);
    }
}

TEST_F(Settings, AreSetByTheFile)
{
    for (auto const& each : entries()) {
        settings into;
        settings_table const table(into, program::reference);
        auto const sample = sample_of(each);
        auto const loaded = table.load_file(file(each.key + " = \"" + sample + "\"\n"));
        ASSERT_TRUE(loaded) << loaded.error();
        expect_only(into, each.key);
    }
}

TEST_F(Settings, AreAllSetByOneFile)
{
    std::string text;
    for (auto const& each : entries())
        text += each.key + " = \"" + sample_of(each) + "\"\n";
    EXPECT_EQ(load(text), "loaded");
}

TEST_F(Settings, TakeTablesNumbersFlagsAndLists)
{
    settings into;
    settings_table const table(into, program::reference);
    ASSERT_TRUE(table.load_file(file("threads = 3\n"
                                     "accept_stale_initialize = true\n"
                                     "allow_host = [\"a.example\", \"b.example:8080\"]\n"
                                     "[session]\n"
                                     "max = 5\n"
                                     "idle_timeout = \"2m\"\n"
                                     "[http]\n"
                                     "max_body = 1000\n")));
    EXPECT_EQ(into.threads, 3u);
    EXPECT_TRUE(into.transport.accept_stale_initialize);
    EXPECT_EQ(into.http.policy.allow_host, (std::vector<std::string>{"a.example", "b.example:8080"}));
    EXPECT_EQ(into.runtime.limits.sessions, 5u);
    EXPECT_EQ(into.runtime.limits.session_idle, 2min);
    EXPECT_EQ(into.http.limits.body_bytes, 1000u);
}

TEST_F(Settings, SplitAListAtCommas)
{
    settings into;
    settings_table const table(into, program::reference);
    environment("BELAY_ALLOW_ORIGIN", "https://a,,https://b,");
    ASSERT_TRUE(table.load_environment());
    EXPECT_EQ(into.http.policy.allow_origin, (std::vector<std::string>{"https://a", "https://b"}));
}

// --- weight

TEST_F(Settings, PreferTheEnvironmentToTheFileAndFlagsToBoth)
{
    auto const path = file("keepalive = \"1s\"\nretry = \"1s\"\ndrain = \"1s\"\n");
    environment("BELAY_RETRY", "2s");
    environment("BELAY_DRAIN", "2s");
    auto const parsed = parse({"--config", path, "--drain", "3s"});
    ASSERT_TRUE(parsed) << printed_;
    EXPECT_EQ(parsed->runtime.follower.keepalive, 1s);
    EXPECT_EQ(parsed->runtime.retry, 2s);
    EXPECT_EQ(parsed->drain, 3s);
}

TEST_F(Settings, ReplaceAListByTheWeightierOne)
{
    auto const path = file("allow_host = [\"*\"]\n");
    auto const parsed = parse({"--config", path, "--allow-host", "a.example", "b.example"});
    ASSERT_TRUE(parsed) << printed_;
    EXPECT_EQ(parsed->http.policy.allow_host, (std::vector<std::string>{"a.example", "b.example"}));
}

TEST_F(Settings, CollectRepeatedFlagsOfAList)
{
    auto const parsed = parse({"--allow-host", "a.example", "--allow-host", "b.example"});
    ASSERT_TRUE(parsed) << printed_;
    EXPECT_EQ(parsed->http.policy.allow_host, (std::vector<std::string>{"a.example", "b.example"}));
}

// --- errors

struct bad_file {
    char const* text;
    char const* error;
};

TEST_F(Settings, NameTheLineOfAnError)
{
    for (auto const& [text, error] : {
             bad_file{"\n\nkeepalive = \"15\"", ", line 3: keepalive: expected a time such as 500ms, 15s, 10m or 1h"},
             bad_file{"keepalive = 15", ", line 1: keepalive: expected a time such as 500ms, 15s, 10m or 1h"},
             bad_file{"keepalive = \"0s\"", ", line 1: keepalive: must be longer than zero"},
             bad_file{
                 "[http]\nmax_body = \"1MB\"",
                 ", line 2: http.max_body: expected a size such as 65536, 64KiB, 8MiB or 1GiB"},
             bad_file{"threads = 0", ", line 1: threads: expected a number from 1 to 1024"},
             bad_file{"threads = -1", ", line 1: threads: expected a number from 1 to 1024"},
             bad_file{"threads = 1.5", ", line 1: threads: expected N"},
             bad_file{"threads = [1]", ", line 1: threads: expected N"},
             bad_file{"answer = \"xml\"", ", line 1: answer: expected auto|sse|json"},
             bad_file{"answer = {a = 1}", ", line 1: answer: expected auto|sse|json"},
             bad_file{"answer = 2020-01-01", ", line 1: answer: expected auto|sse|json"},
             bad_file{
                 "keepalives = \"1s\"",
                 ", line 1: there is no setting keepalives, but keepalive; --settings lists them"},
             bad_file{
                 "[session]\nidle = \"1s\"",
                 ", line 2: there is no setting session.idle, but session.max; --settings lists them"},
             bad_file{"[nothing]", ", line 1: there is no setting nothing; --settings lists them"},
             bad_file{"session = 1", ", line 1: there is no setting session; --settings lists them"},
         })
        EXPECT_EQ(load(text), error) << text;
}

TEST_F(Settings, NameTheLineOfTextThatIsNotToml)
{
    EXPECT_TRUE(load("a = 1\nb == 2\n").starts_with(", line 2: "));
    EXPECT_NE(load("keepalive = \"1s\"\nkeepalive = \"2s\"\n"), "loaded");
}

TEST_F(Settings, NameAFileThatCannotBeRead)
{
    auto const missing = (folder_ / "missing.toml").string();
    EXPECT_EQ(parse({"--config", missing}).error(), 2);
    EXPECT_NE(printed_.find(missing), std::string::npos) << printed_;
}

TEST_F(Settings, NameTheVariableOfAnError)
{
    environment("BELAY_KEEPALIVE", "soon");
    settings into;
    EXPECT_EQ(
        settings_table(into, program::reference).load_environment().error(),
        "BELAY_KEEPALIVE=soon: expected a time such as 500ms, 15s, 10m or 1h");
}

TEST_F(Settings, NameTheFlagOfAnError)
{
    EXPECT_EQ(parse({"--keepalive", "soon"}).error(), 2);
    EXPECT_EQ(printed_, "belay: --keepalive soon: expected a time such as 500ms, 15s, 10m or 1h\n");
    for (auto const& [words, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"--listn", "1"}, "there is no flag --listn, but --listen; --help lists them"},
             {{"--listn=1"}, "there is no flag --listn, but --listen; --help lists them"},
             {{"--zzzzzzzz"}, "there is no flag --zzzzzzzz; --help lists them"},
             {{"now"}, "there is no use for \"now\"; --help lists the flags"},
         }) {
        EXPECT_EQ(parse(words).error(), 2);
        EXPECT_EQ(printed_, "belay: " + said + "\n");
    }
}

TEST_F(Settings, RefuseAFlagThatIsNone)
{
    EXPECT_EQ(parse({"--no-such-flag", "1"}).error(), 2);
    EXPECT_NE(printed_.find("--no-such-flag"), std::string::npos) << printed_;
}

TEST_F(Settings, LeaveAfterHelpAndTheReference)
{
    EXPECT_EQ(parse({"--help"}).error(), 0);
    EXPECT_NE(out_.find("--session-idle"), std::string::npos);
    EXPECT_EQ(parse({"--version"}).error(), 0);
    EXPECT_TRUE(
        std::regex_match(out_, std::regex(R"(belay 1\nbelay \d+\.\d+\.\d+, (clang|g\+\+) \d+\.\d+\.\d+, \w+\n)")))
        << out_;
    EXPECT_EQ(parse({"--settings"}).error(), 0);
    for (auto const& each : entries())
        EXPECT_NE(out_.find("| `" + each.key + "` | `--" + each.flag), std::string::npos) << each.key;
}

TEST_F(Settings, AllowOffWhereZeroHasAMeaning)
{
    settings into;
    settings_table const table(into, program::reference);
    for (auto const& each : table.entries()) {
        if (each.shape == "TIME|off") {
            EXPECT_TRUE(each.set("off") && each.set("0s")) << each.key;
        } else if (each.shape == "TIME") {
            EXPECT_FALSE(each.set("off") || each.set("0s")) << each.key;
        }
    }
}

TEST_F(Settings, LeaveTheReferenceServersToTheReferenceServer)
{
    settings into;
    EXPECT_EQ(settings_table(into).find("reference.background"), nullptr);
    EXPECT_TRUE(parse({})->reference_background);
    EXPECT_FALSE(parse({"--reference-background", "off"})->reference_background);
}

// --- what follows

TEST_F(Settings, KeepEventsAsLongAsSessionsUnlessToldOtherwise)
{
    EXPECT_EQ(parse({"--session-idle", "7m"})->runtime.limits.event_age, 7min);
    EXPECT_EQ(parse({"--session-idle", "7m", "--events-max-age", "3m"})->runtime.limits.event_age, 3min);
}

TEST_F(Settings, UseAtLeastOneThread)
{
    EXPECT_GE(parse({})->threads, 1u);
}

TEST_F(Settings, RefuseToServeOthersWithoutAHostName)
{
    for (auto const listen : {"0.0.0.0:3000", "[::]:3000", "192.0.2.1:0"}) {
        EXPECT_EQ(parse({"--listen", listen}).error(), 2);
        EXPECT_NE(printed_.find("--allow-host"), std::string::npos) << printed_;
        auto const allowed = parse({"--listen", listen, "--allow-host", "mcp.example"});
        EXPECT_TRUE(allowed) << printed_;
    }
}

TEST_F(Settings, NeedNoHostNameWhereOnlyThisMachineComes)
{
    for (auto const listen : {"127.0.0.1:0", "127.1.2.3:80", "[::1]:3000", "unix:/run/belay.sock", "systemd"})
        EXPECT_TRUE(parse({"--listen", listen})) << listen << printed_;
    EXPECT_EQ(parse({"--listen", "127.0.0.1:0", "--listen", "0.0.0.0:0"}).error(), 2) << "each address counts";
}

TEST_F(Settings, ListenOnSeveralAddresses)
{
    auto const parsed = parse({"--listen", "127.0.0.1:0", "--listen", "unix:/run/belay.sock"});
    ASSERT_TRUE(parsed) << printed_;
    EXPECT_EQ(parsed->http.listen, (std::vector<std::string>{"127.0.0.1:0", "unix:/run/belay.sock"}));
}

TEST_F(Settings, AdministerOnThisMachineOnly)
{
    for (auto const where : {"127.0.0.1:0", "[::1]:0", "unix:/run/admin.sock", "off"})
        EXPECT_TRUE(parse({"--admin-listen", where})) << where << printed_;
    for (auto const where : {"0.0.0.0:0", ":4000", "192.0.2.1:0", "systemd", "nowhere"}) {
        EXPECT_EQ(parse({"--admin-listen", where, "--allow-host", "*"}).error(), 2) << where;
        EXPECT_NE(printed_.find("admin.listen"), std::string::npos) << printed_;
    }
}

TEST_F(Settings, TakeAModeInOctal)
{
    EXPECT_EQ(parse({"--http-unix-mode", "660"})->http.unix_mode, 0660u);
    EXPECT_EQ(parse({"--http-unix-mode", "0600"})->http.unix_mode, 0600u);
    for (auto const mode : {"", "8", "1777", "rw", "-1", "66x"})
        EXPECT_FALSE(parse({"--http-unix-mode", mode})) << mode;
}

// --- check-config

TEST_F(Settings, AreCheckedWithoutServing)
{
    EXPECT_EQ(parse({"--check-config", "--session-idle", "7m", "--allow-host", "a\"b"}).error(), 0);
    EXPECT_NE(out_.find("session.idle_timeout = \"7m\"\n"), std::string::npos) << out_;
    EXPECT_NE(out_.find("events.max_age = \"7m\"\n"), std::string::npos) << "what follows is shown: " << out_;
    EXPECT_NE(out_.find("allow_host = [\"a\\\"b\"]\n"), std::string::npos) << out_;
    EXPECT_NE(out_.find("# http.max_connections: by file descriptors\n"), std::string::npos) << out_;
    for (auto const& each : entries())
        EXPECT_TRUE(
            ('\n' + out_).find('\n' + each.key + " = ") != std::string::npos
            || out_.find("# " + each.key + ": ") != std::string::npos)
            << each.key;
    EXPECT_EQ(parse({"--check-config", "--listen", "0.0.0.0:80"}).error(), 2);
    EXPECT_EQ(out_, "");
    EXPECT_NE(printed_.find("--allow-host"), std::string::npos) << printed_;
}

TEST_F(Settings, AreShownAsAFileThatSetsTheSame)
{
    std::string all;
    for (auto const& each : entries())
        all += each.key + " = \"" + sample_of(each) + "\"\n";
    EXPECT_EQ(parse({"--check-config", "--config", file(all)}).error(), 0) << printed_;
    auto const shown_once = out_;
    EXPECT_EQ(parse({"--check-config", "--config", file(shown_once)}).error(), 0) << printed_;
    EXPECT_EQ(out_, shown_once);
    EXPECT_EQ(parse({"--check-config"}).error(), 0);
    EXPECT_NE(out_, shown_once);
}

TEST_F(Settings, RefuseWhatThisProgramCannotServe)
{
    for (auto const& [flag, value] : {
             std::pair{"--store", "redis://127.0.0.1"},
             std::pair{"--endpoint", "mcp"},
             std::pair{"--endpoint", "/"},
             std::pair{"--endpoint", ""},
             std::pair{"--listen", "nowhere"},
             std::pair{"--listen", "127.0.0.1"},
             std::pair{"--listen", "127.0.0.1:70000"},
             std::pair{"--listen", ""},
         }) {
        EXPECT_FALSE(parse({flag, value})) << flag << ' ' << value;
        EXPECT_NE(printed_.find(std::string(flag).substr(2)), std::string::npos) << printed_;
    }
}

TEST_F(Settings, AreReadAgainFromTheSamePlaces)
{
    environment("BELAY_DRAIN", "3s");
    auto const first
        = parse({"--config", file("session.max = 5\ndrain = \"1s\"\n[log]\nlevel = \"error\"\n"), "--threads", "2"});
    ASSERT_TRUE(first) << printed_;
    file("session.max = 6\ndrain = \"2s\"\nthreads = 7\n");
    auto const again = source_.read();
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(again->runtime.limits.sessions, 6u);
    EXPECT_EQ(again->drain, 3s) << "the environment outweighs the file";
    EXPECT_EQ(again->threads, 2u) << "flags outweigh both";
    EXPECT_EQ(again->log_level, base::log_level::info) << "what is no longer set is as if it never was";
    file("session.max = \"many\"");
    EXPECT_NE(source_.read().error().find("session.max"), std::string::npos);
}

TEST_F(Settings, SayWhichOfThemARunningServerTakesOver)
{
    settings const running;
    EXPECT_EQ(compare(running, running).not_reloaded, std::vector<std::string>{});
    auto fresh = running;
    fresh.log_level = base::log_level::debug;
    fresh.log_access = true;
    fresh.drain = 7s;
    fresh.http.listen.emplace_back("127.0.0.1:1");
    auto const changes = compare(running, fresh);
    EXPECT_EQ(changes.reloaded, (std::vector<std::string>{"log.level", "log.access"}));
    EXPECT_EQ(changes.not_reloaded, (std::vector<std::string>{"listen", "drain"}));
}

}

}
