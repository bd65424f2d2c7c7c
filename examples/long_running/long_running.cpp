// A tool that takes long: progress, log, and an orderly end when it is cancelled.
#include <belay/run.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

// [arguments]
struct index_args {
    int pages;
    int milliseconds = 100;

    static constexpr belay::field docs[] = {
        belay::field("pages").describe("How many pages to index").range(1, 100'000),
        belay::field("milliseconds").describe("How long a page takes").range(0, 60'000).defaulted(),
    };
};
BOOST_DESCRIBE_STRUCT(index_args, (), (pages, milliseconds))

struct index_result {
    int pages;
    std::int64_t bytes;
};
BOOST_DESCRIBE_STRUCT(index_result, (), (pages, bytes))
// [/arguments]

// [scratch]
/// A folder for the time of a call. The destructor runs however the call ends.
class scratch_folder {
public:
    scratch_folder()
    {
        std::string name = (std::filesystem::temp_directory_path() / "index-XXXXXX").string();
        if (!mkdtemp(name.data()))
            throw belay::tool_error("No scratch folder can be made; is the disk full?");
        path_ = name;
    }
    scratch_folder(scratch_folder const&) = delete;
    scratch_folder& operator=(scratch_folder const&) = delete;
    ~scratch_folder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};
// [/scratch]

// [tool]
belay::task<index_result> index_pages(belay::call& call, index_args args)
{
    scratch_folder const scratch;
    std::ofstream out(scratch.path() / "index");
    auto progress = call.progress(args.pages);
    co_await call.log(belay::log_level::info, "index", "started");
    for (int page = 1; page <= args.pages; ++page) {
        co_await call.sleep(std::chrono::milliseconds(args.milliseconds)); // the work; a cancelled call ends here
        out << "page " << page << '\n';
        co_await progress.step("page " + std::to_string(page));
        if (page % 10 == 0) {
            belay::json::object data;
            data["indexed"] = page;
            co_await call.log(belay::log_level::debug, "index", belay::json::value(data));
        }
    }
    out.flush();
    auto const bytes = static_cast<std::int64_t>(out.tellp());
    co_await call.log(belay::log_level::info, "index", "finished");
    co_return index_result{args.pages, bytes};
}
// [/tool]

int main(int argc, char** argv)
{
    belay::server server("long_running", "1.0");
    // [register]
    server.tool("index_pages", index_pages)
        .title("Index pages")
        .describe("Indexes pages one after the other")
        .idempotent()
        .closed_world()
        .at_most(4)
        .timeout(std::chrono::minutes(30))
        .cancel_when_orphaned(std::chrono::minutes(5));
    // [/register]
    return belay::run(server, argc, argv);
}
