// A notebook: tools of every shape but the long ones, prompts with completion, and resources that come and go while the
// server runs.
#include <belay/run.hpp>

#include <algorithm>
#include <map>
#include <mutex>

namespace {

/// Tools run on several threads, so it locks.
class notebook {
public:
    void put(std::string const& title, std::string text)
    {
        std::lock_guard const lock(mutex_);
        notes_[title] = std::move(text);
    }
    bool remove(std::string const& title)
    {
        std::lock_guard const lock(mutex_);
        return notes_.erase(title) > 0;
    }
    [[nodiscard]] std::optional<std::string> find(std::string const& title) const
    {
        std::lock_guard const lock(mutex_);
        auto const found = notes_.find(title);
        return found == notes_.end() ? std::nullopt : std::optional(found->second);
    }
    [[nodiscard]] std::map<std::string, std::string> all() const
    {
        std::lock_guard const lock(mutex_);
        return notes_;
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::string> notes_;
};

std::string uri_of(std::string const& title)
{
    return "notes://" + title;
}

// [arguments]
enum class sort_by { title, length };
BOOST_DESCRIBE_ENUM(sort_by, title, length)

struct find_args {
    std::string word; // required
    std::optional<int> at_most; // may be left out
    sort_by order = sort_by::title; // may be left out: see its field
    std::vector<std::string> without; // an array; may be left out as well

    static constexpr belay::field docs[] = {
        belay::field("word").describe("What to look for"),
        belay::field("at_most").describe("How many notes to give").range(1, 100),
        belay::field("order").defaulted(),
        belay::field("without").describe("Leave out notes with one of these words").defaulted(),
    };
};
BOOST_DESCRIBE_STRUCT(find_args, (), (word, at_most, order, without))
// [/arguments]

// [structured]
struct hit {
    std::string title;
    std::int64_t length;
};
BOOST_DESCRIBE_STRUCT(hit, (), (title, length))

struct find_result {
    std::vector<hit> notes;
};
BOOST_DESCRIBE_STRUCT(find_result, (), (notes))
// [/structured]

find_result find_notes(notebook const& book, find_args const& args)
{
    find_result result;
    for (auto const& [title, text] : book.all()) {
        bool is_wanted = text.contains(args.word);
        for (auto const& each : args.without)
            is_wanted = is_wanted && !text.contains(each);
        if (is_wanted)
            result.notes.push_back({title, static_cast<std::int64_t>(text.size())});
    }
    if (args.order == sort_by::length)
        std::ranges::sort(result.notes, {}, &hit::length);
    if (args.at_most && result.notes.size() > static_cast<std::size_t>(*args.at_most))
        result.notes.resize(static_cast<std::size_t>(*args.at_most));
    return result;
}

struct note_args {
    std::string title;
};
BOOST_DESCRIBE_STRUCT(note_args, (), (title))

// [content]
belay::tool_result show_note(notebook const& book, note_args const& args)
{
    auto const text = book.find(args.title);
    if (!text)
        throw belay::tool_error("There is no note " + args.title + "; find_notes gives those there are.");
    belay::annotations for_person;
    for_person.for_user = true;
    belay::tool_result result;
    result.content.push_back(belay::content::text(*text));
    result.content.push_back(belay::content::link(uri_of(args.title), args.title, "text/plain"));
    result.content.push_back(belay::content::annotated(belay::content::text("Shown from the notebook."), for_person));
    result.meta["notes/length"] = text->size();
    return result;
}
// [/content]

// [raw]
belay::tool_result count_words(belay::json::object args)
{
    belay::json::string const& text = args.at("text").as_string(); // the schema says that there is one
    std::int64_t words = 0;
    bool was_blank = true;
    for (char const c : text) {
        words += was_blank && c != ' ' ? 1 : 0;
        was_blank = c == ' ';
    }
    belay::tool_result result;
    result.structured = belay::json::object{{"words", words}};
    return result;
}

belay::json::object count_words_schema()
{
    return belay::json::object{
        {"type", "object"},
        {"properties", {{"text", {{"type", "string"}, {"maxLength", 10'000}}}}},
        {"required", belay::json::array{"text"}}};
}
// [/raw]

struct add_args {
    std::string title;
    std::string text;
    static constexpr belay::field docs[] = {belay::field("title").describe("Letters, digits and dashes")};
};
BOOST_DESCRIBE_STRUCT(add_args, (), (title, text))

// [run-time]
std::string add_note(belay::server& server, notebook& book, add_args const& args)
{
    if (args.title.empty()
        || args.title.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
        throw belay::tool_error("A title has small letters, digits and dashes only.");
    bool const is_new = !book.find(args.title);
    book.put(args.title, args.text);
    auto const read = [&book, title = args.title] {
        auto text = book.find(title);
        if (!text)
            throw belay::not_found(title);
        return *text;
    };
    if (is_new)
        server.resource(uri_of(args.title), read).name(args.title).mime("text/plain");
    else
        server.resource_updated(uri_of(args.title));
    return "Kept.";
}

std::string remove_note(belay::server& server, notebook& book, note_args const& args)
{
    if (!book.remove(args.title))
        throw belay::tool_error("There is no note " + args.title + ".");
    server.remove_resource(uri_of(args.title));
    return "Removed.";
}
// [/run-time]

// [completer]
belay::completer titles_of(notebook const& book)
{
    return [&book](std::string_view typed, belay::json::object const& /*others*/) {
        std::vector<std::string> fitting;
        for (auto const& [title, text] : book.all())
            if (title.starts_with(typed))
                fitting.push_back(title);
        return fitting;
    };
}
// [/completer]

// [prompt]
struct summary_args {
    std::string title;
    std::optional<std::string> style;

    static constexpr belay::field docs[] = {
        belay::field("title").describe("Which note"),
        belay::field("style").describe("short or long"),
    };
};
BOOST_DESCRIBE_STRUCT(summary_args, (), (title, style))

std::vector<belay::prompt_message> summarise(notebook const& book, summary_args const& args)
{
    auto const text = book.find(args.title);
    if (!text)
        throw belay::not_found(args.title);
    return {
        {belay::role::user, belay::content::embedded(uri_of(args.title), "text/plain", *text)},
        {belay::role::user, belay::content::text("Summarise this note, " + args.style.value_or("short") + ".")},
    };
}

void add_prompts(belay::server& server, notebook const& book)
{
    server.prompt("summarise", [&book](summary_args args) { return summarise(book, args); })
        .describe("A summary of a note")
        .complete("title", titles_of(book))
        .complete("style", {"short", "long"});
}
// [/prompt]

}

int main(int argc, char** argv)
{
    notebook book;
    // [server]
    belay::server server("notes", "1.0");
    server.title("Notebook")
        .instructions("Keep what the person wants to remember with add_note; find_notes finds it again.")
        .page_size(50);
    // [/server]
    // [tools]
    server.tool("find_notes", [&book](find_args args) { return find_notes(book, args); })
        .title("Find notes")
        .describe("Finds the notes that contain a word")
        .read_only()
        .closed_world();
    server.tool("remove_note", [&](note_args args) { return remove_note(server, book, args); })
        .describe("Removes a note for good")
        .destructive();
    // [/tools]
    server.tool("show_note", [&book](note_args args) { return show_note(book, args); }).read_only();
    server.tool("add_note", [&](add_args args) { return add_note(server, book, args); })
        .describe("Keeps a note, or a new text for it")
        .idempotent();
    server.tool("count_words", count_words).input_schema(count_words_schema()).read_only();
    // [welcome]
    server
        .resource("notes://about-this-server", [] { return std::string("One resource per note; add_note makes one."); })
        .name("about")
        .mime("text/plain");
    // [/welcome]
    add_prompts(server, book);
    return belay::run(server, argc, argv);
}
