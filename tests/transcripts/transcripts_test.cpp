// Plays the transcripts of this folder; README.md says how they are written.
#include "support/server_fixture.hpp"
#include "transcripts/demonstration.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace belay::test {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view revisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

bool writes_anew()
{
    auto const* const mode = std::getenv("BELAY_TRANSCRIPTS");
    return mode && std::string_view(mode) == "write";
}

struct transcript {
    std::string name; ///< of the file within the folder
    std::string revision;
};

void PrintTo(transcript const& which, std::ostream* out)
{
    *out << which.name << " in " << which.revision;
}

std::vector<transcript> transcripts()
{
    fs::path const folder = BELAY_TRANSCRIPTS_FOLDER;
    std::vector<transcript> all;
    auto const add = [&](std::string const& part, std::string_view revision) {
        for (auto const& file : fs::directory_iterator(folder / part))
            all.push_back({part + "/" + file.path().filename().string(), std::string(revision)});
    };
    for (auto const revision : revisions) {
        add(std::string(revision), revision);
        add("all", revision);
    }
    std::ranges::sort(all, {}, [](transcript const& each) { return each.revision + each.name; });
    return all;
}

std::string test_name(testing::TestParamInfo<transcript> const& info)
{
    auto name = fs::path(info.param.name).stem().string() + "_in_" + info.param.revision;
    std::ranges::replace(name, '-', '_');
    return name;
}

std::vector<std::string> lines_of(std::string const& text)
{
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

std::string read_all(fs::path const& file)
{
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void replace_all(std::string& in, std::string_view from, std::string_view to)
{
    for (auto at = in.find(from); at != std::string::npos; at = in.find(from, at + to.size()))
        in.replace(at, from.size(), to);
}

bool is_server_line(std::string_view line)
{
    return line.starts_with('<');
}

bool is_silent(std::string_view line)
{
    return line.empty() || line.starts_with('#');
}

}

class Player : public Server {
protected:
    static constexpr auto stateless_path = "/stateless/mcp";

    Player()
    {
        server_ = demonstration_server();
        server_.mount_stateless(stateless_path, server_);
    }

    /// The transcript as it went: the client's lines as they are, the server's as they came.
    std::string play(std::string const& text, std::string const& revision, bool is_shared = false)
    {
        session_.version = revision;
        is_shared_ = is_shared;
        std::string went;
        for (auto const& line : lines_of(text)) {
            if (is_server_line(line))
                continue;
            went += line + "\n";
            if (is_silent(line))
                continue;
            perform(line);
            for (auto const& came : arrivals())
                went += came + "\n";
        }
        return went;
    }

private:
    struct open_stream {
        http_client connection;
        std::string prefix;
        bool is_over = false;
    };

    void perform(std::string line)
    {
        if (line.starts_with("@ page size ")) {
            server_.page_size(std::stoul(line.substr(12)));
            return;
        }
        if (!is_started_) {
            is_started_ = true;
            start();
        }
        if (line.starts_with("> "))
            return send(named_values_in(line.substr(2)));
        if (line.starts_with("@ session")) {
            session_ = open_session(session_.version, {}, line.size() > 10 ? line.substr(10) : "{}");
            return;
        }
        if (line == "@ stateless") {
            is_stateless_ = true;
            return;
        }
        if (line == "@ get")
            return follow({}, "<<");
        if (line == "@ cut")
            return cut();
        if (line == "@ resume")
            return follow(cursor_, "<");
        if (line == "@ resume first")
            return follow(first_cursor_, "<");
        if (line.starts_with("@ advance ") && line.ends_with('s'))
            return advance_in_steps(std::chrono::seconds(std::stoi(line.substr(10))), 1s);
        if (line.starts_with("@ update "))
            return server_.resource_updated(line.substr(9));
        if (line.starts_with("@ add ") || line.starts_with("@ remove "))
            return change(line);
        ADD_FAILURE() << "README.md knows no such line: " << line;
    }

    void send(std::string const& body)
    {
        if (body.contains(R"("method":"tools/call")")) // the stream that it may have is the one to resume
            cursor_.clear();
        auto client = connect();
        header_list headers{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}};
        if (is_stateless_)
            headers.emplace_back("Mcp-Protocol-Version", session_.version);
        else if (!session_.id.empty())
            headers = headers_of(session_, headers);
        client.send_request("POST", is_stateless_ ? stateless_path : "/mcp", headers, body);
        take(std::move(client), "<");
    }

    void follow(std::string const& cursor, std::string prefix) { take(get(session_, cursor), std::move(prefix)); }

    /// The answer to a request: whole, or a stream that goes on.
    void take(http_client client, std::string prefix)
    {
        bool const has_head = client.head().status != 0 || client.read_head();
        ASSERT_TRUE(has_head);
        if (auto const id = client.head().header("Mcp-Session-Id"))
            session_.id = *id;
        if (client.head().header("Content-Type").value_or("") == "text/event-stream") {
            streams_.push_back({std::move(client), std::move(prefix)});
            return;
        }
        auto const answer = client.read_rest();
        auto line = prefix;
        if (answer.status != 200)
            line += fmt::format(" {}", answer.status);
        if (!answer.body.empty())
            line += " " + with_names(answer.body);
        came_.push_back(std::move(line));
    }

    void cut()
    {
        ASSERT_FALSE(streams_.empty());
        auto const call = std::ranges::find(streams_, "<", &open_stream::prefix);
        ASSERT_NE(call, streams_.end()) << "there is no call's stream to cut";
        call->connection.close();
        streams_.erase(call);
    }

    void change(std::string const& line)
    {
        std::istringstream words(line);
        std::string at;
        std::string verb;
        std::string kind;
        std::string name;
        words >> at >> verb >> kind >> name;
        bool const adds = verb == "add";
        bool is_done = true;
        if (kind == "tool")
            adds ? (void)server_.tool(name, [] { return std::string(); }) : (void)(is_done = server_.remove_tool(name));
        else if (kind == "resource")
            adds ? (void)server_.resource(name, [] { return std::string(); })
                 : (void)(is_done = server_.remove_resource(name));
        else if (kind == "prompt")
            adds ? (void)server_.prompt(name, [] { return std::string(); })
                 : (void)(is_done = server_.remove_prompt(name));
        else
            is_done = false;
        EXPECT_TRUE(is_done) << line;
    }

    /// Everything that has come since, with nothing left to come at this time.
    std::vector<std::string> arrivals()
    {
        if (!is_started_)
            return {};
        settle();
        for (auto& each : streams_) {
            while (auto const event = each.connection.poll_event()) {
                if (each.prefix == "<") {
                    if (cursor_.empty())
                        first_cursor_ = event->id;
                    cursor_ = event->id;
                }
                came_.push_back(each.prefix + " " + line_of(*event));
            }
            if (each.connection.poll_ending() != http_client::ending::open) {
                bool const is_proper = each.connection.how_it_ended() == http_client::ending::complete;
                came_.push_back(each.prefix + (is_proper ? " (end)" : " (broken)"));
                each.is_over = true;
            }
        }
        std::erase_if(streams_, [](open_stream const& each) { return each.is_over; });
        return std::exchange(came_, {});
    }

    std::string line_of(http::sse_event const& event)
    {
        if (!is_priming(event))
            return with_names(event.data);
        return fmt::format(
            "({}{}{})", event.type == "belay" && !is_shared_ ? "belay, " : "", event.id.empty() ? "no id" : "id",
            event.retry_ms ? ", retry" : "");
    }

    // --- values that the server makes up

    std::string with_names(std::string text)
    {
        boost::system::error_code error;
        auto const message = json::parse(text, error);
        if (at(message, "method").is_string() && at(message, "id").is_string()
            && !names_.contains(text_at(message, "id")))
            names_[text_at(message, "id")] = "$" + std::to_string(names_.size() + 1);
        if (auto const next = at(message, "result/nextCursor"); next.is_string())
            next_cursor_ = next.get_string().c_str();
        for (auto const& [value, name] : names_)
            replace_all(text, "\"" + value + "\"", "\"" + name + "\"");
        if (!next_cursor_.empty())
            replace_all(text, "\"" + next_cursor_ + "\"", "\"$cursor\"");
        return text;
    }

    std::string named_values_in(std::string text)
    {
        for (auto const& [value, name] : names_)
            replace_all(text, "\"" + name + "\"", "\"" + value + "\"");
        replace_all(text, "\"$cursor\"", "\"" + next_cursor_ + "\"");
        return text;
    }

    client_session session_;
    bool is_shared_ = false; ///< by several revisions
    bool is_started_ = false;
    bool is_stateless_ = false;
    std::deque<open_stream> streams_;
    std::string cursor_; ///< of the newest event of the newest call's stream
    std::string first_cursor_;
    std::vector<std::string> came_;
    std::map<std::string, std::string> names_;
    std::string next_cursor_;
};

class Transcript : public Player, public testing::WithParamInterface<transcript> {};

TEST_P(Transcript, GoesAsWritten)
{
    auto const file = fs::path(BELAY_TRANSCRIPTS_FOLDER) / GetParam().name;
    auto const text = read_all(file);
    auto const went = play(text, GetParam().revision, GetParam().name.starts_with("all/"));
    if (writes_anew())
        std::ofstream(file) << went;
    else
        EXPECT_EQ(went, text);
}

INSTANTIATE_TEST_SUITE_P(All, Transcript, testing::ValuesIn(transcripts()), test_name);

// --- that a transcript can fail

TEST_F(Player, ShowsAWrongMissingOrNeedlessLine)
{
    std::string const right = "@ session\n"
                              R"(> {"jsonrpc":"2.0","id":1,"method":"ping"})"
                              "\n"
                              R"(< {"jsonrpc":"2.0","id":1,"result":{}})"
                              "\n";
    EXPECT_EQ(play(right, "2025-11-25"), right);
    auto wrong = right;
    replace_all(wrong, R"("result":{})", R"("result":{"a":1})");
    EXPECT_NE(play(wrong, "2025-11-25"), wrong);
    auto const missing = right.substr(0, right.rfind('<'));
    EXPECT_NE(play(missing, "2025-11-25"), missing);
    auto const needless = right + "< 202\n";
    EXPECT_NE(play(needless, "2025-11-25"), needless);
}

TEST_F(Player, EveryMethodIsThereInEveryRevision)
{
    std::vector<std::string> const methods
        = {"initialize",     "ping",           "tools_list",    "tools_call",   "logging",
           "resources_list", "resources_read", "subscriptions", "prompts_list", "prompts_get",
           "completion",     "cancelled",      "elicitation",   "sampling",     "roots",
           "batch",          "list_changed",   "errors",        "streams",      "resources_templates_list"};
    auto const all = transcripts();
    for (auto const revision : revisions)
        for (auto const& method : methods)
            EXPECT_TRUE(std::ranges::any_of(
                all,
                [&](transcript const& each) {
                    return each.revision == revision && fs::path(each.name).stem() == method;
                }))
                << method << " in " << revision;
}

}
