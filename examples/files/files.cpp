// The files of one folder as resources: listed, read by URI, completed, and watched for clients that subscribe.
#include <belay/run.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace fs = std::filesystem;

namespace {

constexpr std::string_view scheme = "files:///";
// Read on the event loop, so it has to be quick.
constexpr std::uintmax_t largest_file = 1024 * 1024;
constexpr std::size_t most_files = 10'000;

// [inside]
/// The file that a path from a client names. Throws not_found for whatever is not a file below the folder: "..", an
/// absolute path, a link that leads out.
fs::path inside(fs::path const& folder, std::string const& path)
{
    if (path.contains('\0'))
        throw belay::not_found(path);
    std::error_code error;
    auto const file = fs::canonical(folder / path, error);
    if (error || !fs::is_regular_file(file, error))
        throw belay::not_found(path);
    auto const below = file.lexically_relative(folder);
    if (below.empty() || *below.begin() == "..")
        throw belay::not_found(path);
    return file;
}
// [/inside]

// [read]
std::string mime_of(fs::path const& file)
{
    static std::map<std::string, std::string> const types{
        {".csv", "text/csv"}, {".json", "application/json"}, {".md", "text/markdown"}, {".txt", "text/plain"}};
    auto const found = types.find(file.extension().string());
    return found == types.end() ? "application/octet-stream" : found->second;
}

belay::resource_contents read(fs::path const& folder, std::string const& path)
{
    auto const file = inside(folder, path);
    if (fs::file_size(file) > largest_file)
        throw belay::tool_error("The file is larger than 1 MiB; this server reads smaller ones only.");
    std::ifstream in(file, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    belay::resource_part part;
    part.mime = mime_of(file);
    if (part.mime == "application/octet-stream")
        part.data = belay::blob{std::move(bytes)};
    else
        part.text = std::move(bytes);
    return {{std::move(part)}};
}
// [/read]

std::string uri_of(std::string_view path)
{
    static constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string uri(scheme);
    for (char const c : path) {
        if (plain.contains(c)) {
            uri += c;
        } else {
            uri += '%';
            uri += digits[static_cast<unsigned char>(c) >> 4];
            uri += digits[static_cast<unsigned char>(c) & 15];
        }
    }
    return uri;
}

/// Path below the folder, and when the file was changed.
using state = std::map<std::string, fs::file_time_type>;

state look_at(fs::path const& folder)
{
    state now;
    std::error_code error;
    auto const skip = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(folder, skip, error), end; at != end && now.size() < most_files;
         at.increment(error))
        if (at->is_regular_file(error) && !at->is_symlink(error))
            now[at->path().lexically_relative(folder).string()] = at->last_write_time(error);
    return now;
}

// [watch]
/// Adds, removes and announces what has changed since the last look.
void update(belay::server& server, fs::path const& folder, state& last)
{
    auto now = look_at(folder);
    for (auto const& [path, time] : now) {
        auto const before = last.find(path);
        if (before == last.end())
            server.resource(uri_of(path), [folder, path] { return read(folder, path); }).name(path).mime(mime_of(path));
        else if (before->second != time)
            server.resource_updated(uri_of(path));
    }
    for (auto const& [path, time] : last)
        if (!now.contains(path)) {
            server.remove_resource(uri_of(path));
            server.resource_updated(uri_of(path));
        }
    last = std::move(now);
}
// [/watch]

// [template]
struct file_args {
    std::string path;
};
BOOST_DESCRIBE_STRUCT(file_args, (), (path))

void add_template(belay::server& server, fs::path const& folder)
{
    auto const complete = [folder](std::string_view typed, belay::json::object const&) {
        std::vector<std::string> paths;
        for (auto const& [path, time] : look_at(folder))
            if (path.starts_with(typed))
                paths.push_back(path);
        return paths;
    };
    server.resource("files:///{+path}", [folder](file_args args) { return read(folder, args.path); })
        .name("file")
        .describe("A file below the folder, by its path")
        .complete("path", complete);
}
// [/template]

}

int main(int argc, char** argv)
{
    std::error_code error;
    auto const folder = fs::canonical(argc > 1 ? argv[1] : "", error);
    if (error || !fs::is_directory(folder)) {
        std::fputs("usage: files FOLDER [OPTION…]; --help after the folder lists the options\n", stderr);
        return 2;
    }

    belay::server server("files", "1.0");
    add_template(server, folder);
    state last;
    update(server, folder, last);
    // [every]
    server.every(std::chrono::seconds(1), [&server, folder, &last] { update(server, folder, last); });
    // [/every]
    argv[1] = argv[0];
    return belay::run(server, argc - 1, argv + 1);
}
