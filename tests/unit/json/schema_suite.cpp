// Runs the official JSON-Schema-Test-Suite, which is not part of this tree, against the checker:
//
//   cmake --build --preset dev --target schema_suite
//   build/dev/tests/unit/json/schema_suite PATH/tests/draft2020-12
//
// Prints the cases that differ and how many agree; status 1 if one differs. Our own cases, which every test run
// has, are in schema_check_test.cpp.
#include "json/schema_check.hpp"

#include <boost/json/parse.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace belay::inline v0::detail {

namespace {

// What schema_check.hpp says it does not do: other documents, and where $dynamicRef is more than $ref.
std::set<std::string> const left_out = {
    "dynamicRef.json", "refRemote.json", "vocabulary.json", "unevaluatedItems.json: unevaluatedItems with $dynamicRef",
    "unevaluatedProperties.json: unevaluatedProperties with $dynamicRef"};

bool is_known_refusal(std::string_view why)
{
    return why.contains("never fetched") || why.contains("only draft 2020-12") || why.contains("\\p{…}");
}

struct tally {
    std::size_t agree = 0;
    std::size_t differ = 0;
    std::size_t refused = 0; // for a reason that is documented

    void differs(std::string const& what)
    {
        ++differ;
        std::printf("%s\n", what.c_str());
    }
};

void run_group(std::string const& file, json::object const& group, tally& count)
{
    auto const title = file + ": " + std::string(group.at("description").as_string());
    if (left_out.contains(title))
        return;
    auto const& given = group.at("schema");
    // Ours begins with an object; one that is true or false is put into another.
    auto const schema = given.is_object() ? given.get_object() : json::object{{"allOf", json::array{given}}};
    std::optional<schema_check> checks;
    try {
        checks.emplace(schema);
    } catch (std::invalid_argument const& error) {
        if (is_known_refusal(error.what()))
            ++count.refused;
        else
            count.differs(title + ": " + error.what());
        return;
    }
    for (auto const& each : group.at("tests").as_array()) {
        auto const outcome = checks->check(each.at("data"));
        if (outcome.has_value() == each.at("valid").as_bool())
            ++count.agree;
        else
            count.differs(
                title + ": " + std::string(each.at("description").as_string()) + ": "
                + (outcome ? "taken" : outcome.error().text()));
    }
}

int run(std::filesystem::path const& folder)
{
    tally count;
    for (auto const& file : std::filesystem::directory_iterator(folder)) {
        auto const name = file.path().filename().string();
        if (file.path().extension() != ".json" || left_out.contains(name))
            continue;
        std::ifstream in(file.path());
        std::string const text((std::istreambuf_iterator<char>(in)), {});
        auto const groups = json::parse(text);
        for (auto const& group : groups.as_array())
            run_group(name, group.as_object(), count);
    }
    std::printf(
        "%zu cases agree, %zu differ; %zu schemas are refused, as documented\n", count.agree, count.differ,
        count.refused);
    return count.differ == 0 && count.agree > 0 ? 0 : 1;
}

}

}

int main(int argc, char** argv)
{
    if (argc != 2) {
        std::fprintf(stderr, "usage: schema_suite PATH/tests/draft2020-12\n");
        return 2;
    }
    return belay::detail::run(argv[1]);
}
