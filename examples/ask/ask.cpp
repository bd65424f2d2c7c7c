// Tools that ask back: a form for the person, words of the client's model, the client's roots. Each does something
// sensible with a client that cannot be asked.
#include <belay/run.hpp>

// [form]
enum class seating { inside, outside };
BOOST_DESCRIBE_ENUM(seating, inside, outside)

struct table {
    int people;
    seating where = seating::inside;
    std::optional<std::string> note;

    static constexpr belay::field docs[] = {
        belay::field("people").describe("How many you are").range(1, 20),
        belay::field("where").defaulted(),
        belay::field("note").describe("Anything the kitchen should know"),
    };
};
BOOST_DESCRIBE_STRUCT(table, (), (people, where, note))
// [/form]

// [ask]
struct book_args {
    std::string day;
};
BOOST_DESCRIBE_STRUCT(book_args, (), (day))

belay::task<std::string> book_table(belay::call& call, book_args args)
{
    if (!call.can_ask())
        co_return "For how many people, inside or outside? Ask the person, then call book_table_for.";
    belay::answer<table> const wanted = co_await call.ask<table>("table", "A table for " + args.day);
    if (!wanted)
        co_return "Nothing was booked: the person did not want to.";
    // Only now: what stands above a question may have to run twice one day, so it changes nothing.
    std::string const where = wanted->where == seating::inside ? "inside" : "outside";
    co_return "Booked for " + args.day + ": " + std::to_string(wanted->people) + " people, " + where + ".";
}
// [/ask]

struct book_for_args {
    std::string day;
    table wanted;
};
BOOST_DESCRIBE_STRUCT(book_for_args, (), (day, wanted))

std::string book_table_for(book_for_args args)
{
    return "Booked for " + args.day + ": " + std::to_string(args.wanted.people) + " people.";
}

// [url]
belay::task<std::string> pay_deposit(belay::call& call, book_args args)
{
    std::string const url = "https://restaurant.example/pay?day=" + args.day;
    if (!call.can_ask_by_url())
        co_return "The deposit is paid at " + url;
    belay::action const what = co_await call.ask_by_url("pay", "Please pay the deposit", url, "deposit-" + args.day);
    if (what != belay::action::accepted)
        co_return "No deposit was paid.";
    co_return "The payment page was opened; the booking holds once the deposit has arrived.";
}
// [/url]

// [sample]
struct menu_args {
    std::string dish;
};
BOOST_DESCRIBE_STRUCT(menu_args, (), (dish))

belay::task<std::string> describe_dish(belay::call& call, menu_args args)
{
    std::string text = args.dish;
    if (!call.can_sample())
        co_return text;
    std::string failure;
    try {
        belay::sampled const words = co_await call.sample("One sentence for a menu about: " + args.dish, 100);
        text += ": " + words.text();
    } catch (belay::client_error const& error) {
        failure = error.what(); // the person refused, or the model failed
    }
    if (!failure.empty())
        co_await call.log(belay::log_level::notice, "menu", "written without a model: " + failure);
    co_return text;
}
// [/sample]

// [roots]
belay::task<std::string> where_to_save(belay::call& call)
{
    if (!call.has_roots())
        co_return "The client names no folder; the menu stays here.";
    std::vector<belay::root> const roots = co_await call.roots();
    if (roots.empty())
        co_return "The client has no folder open.";
    co_return "The menu would go to " + roots.front().uri;
}
// [/roots]

int main(int argc, char** argv)
{
    belay::server server("ask", "1.0");
    server.tool("book_table", book_table).describe("Books a table; asks for how many");
    server.tool("book_table_for", book_table_for).describe("Books a table without asking");
    server.tool("pay_deposit", pay_deposit).describe("Asks the person to pay the deposit on a web page");
    server.tool("describe_dish", describe_dish).describe("A line for the menu, by the client's model").read_only();
    server.tool("where_to_save", where_to_save).describe("The folder a menu would be saved in").read_only();
    return belay::run(server, argc, argv);
}
