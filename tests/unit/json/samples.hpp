// Structs as tool authors write them, shared by the tests of the json room.
#pragma once

#include "json/serialize.hpp"

#include <belay/schema.hpp>

#include <boost/json/parse.hpp>

#include <limits>

namespace samples {

namespace json = boost::json;

struct nothing {};
BOOST_DESCRIBE_STRUCT(nothing, (), ())

enum class level { low, middle, high };
BOOST_DESCRIBE_ENUM(level, low, middle, high)

enum plain_enum { red = 7, green = 9 };
BOOST_DESCRIBE_ENUM(plain_enum, red, green)

struct deploy_args {
    std::string service;
    std::string version;
    std::optional<int> copies;

    static constexpr belay::field docs[] = {
        belay::field("service").describe("name in the service catalogue"),
        belay::field("copies").describe("how many to run").range(1, 50),
    };

    friend bool operator==(deploy_args const&, deploy_args const&) = default;
};
BOOST_DESCRIBE_STRUCT(deploy_args, (), (service, version, copies))

struct place {
    std::string city;
    std::optional<std::string> country;

    friend bool operator==(place const&, place const&) = default;
};
BOOST_DESCRIBE_STRUCT(place, (), (city, country))

struct trip {
    place where;
    std::vector<place> stops;
    std::map<std::string, place> friends;
    std::optional<place> home;

    friend bool operator==(trip const&, trip const&) = default;
};
BOOST_DESCRIBE_STRUCT(trip, (), (where, stops, friends, home))

struct play_args {
    double duration = 10;
    double volume = 0.5;
    int steps = 5;
    float speed = 0.1F;
    bool loop = true;
    std::string title = "none";
    level loudness = level::middle;
    std::vector<int> marks = {1, 2};
    std::optional<int> seed;
    std::optional<int> tries = 3;

    static constexpr auto docs = std::array{
        belay::field("duration").describe("seconds").range(0.5, 3600).defaulted(),
        belay::field("volume").range(0, 3.14).defaulted(),
        belay::field("steps").defaulted(),
        belay::field("speed").minimum(0).defaulted(),
        belay::field("loop").defaulted(),
        belay::field("title").defaulted(),
        belay::field("loudness").describe("how loud").defaulted(),
        belay::field("marks").defaulted(),
        belay::field("seed").defaulted(),
        belay::field("tries").maximum(5).defaulted(),
    };

    friend bool operator==(play_args const&, play_args const&) = default;
};
BOOST_DESCRIBE_STRUCT(play_args, (), (duration, volume, steps, speed, loop, title, loudness, marks, seed, tries))

struct everything {
    bool flag = false;
    std::int8_t i8 = 0;
    std::uint8_t u8 = 0;
    short i16 = 0;
    std::uint16_t u16 = 0;
    int i32 = 0;
    unsigned u32 = 0;
    std::int64_t i64 = 0;
    std::uint64_t u64 = 0;
    long long big = 0;
    float f32 = 0;
    double f64 = 0;
    std::string text;
    level how = level::low;
    std::optional<std::string> maybe;
    std::vector<std::string> list;
    std::vector<bool> bits;
    std::map<std::string, int> counts;
    std::vector<std::vector<int>> grid;
    std::vector<std::optional<int>> gaps;
    std::map<std::string, std::vector<place>> places;
    json::value any;
    json::object extra;

    friend bool operator==(everything const&, everything const&) = default;
};
BOOST_DESCRIBE_STRUCT(
    everything, (),
    (flag, i8, u8, i16, u16, i32, u32, i64, u64, big, f32, f64, text, how, maybe, list, bits, counts, grid, gaps,
     places, any, extra))

struct paged {
    int limit = 20;
    std::optional<std::string> cursor;

    static constexpr belay::field docs[] = {
        belay::field("limit").describe("page size").range(1, 100).defaulted(),
        belay::field("cursor").describe("where to go on"),
    };
};
BOOST_DESCRIBE_STRUCT(paged, (), (limit, cursor))

struct search_args : paged {
    std::string query;

    static constexpr belay::field docs[] = {
        belay::field("query").describe("what to look for"),
        belay::field("cursor").describe("from the page before"),
    };
};
BOOST_DESCRIBE_STRUCT(search_args, (paged), (query))

struct plain_search_args : paged {
    std::string query;
};
BOOST_DESCRIBE_STRUCT(plain_search_args, (paged), (query))

struct inner {
    int x = 1;
    static constexpr belay::field docs[] = {belay::field("x").defaulted()};
};
BOOST_DESCRIBE_STRUCT(inner, (), (x))

struct outer {
    inner in{5};
};
BOOST_DESCRIBE_STRUCT(outer, (), (in))

struct bounded {
    int at_least = 0;
    double at_most = 0;
    unsigned few = 0;
    std::uint64_t huge = 0;
    std::int8_t tiny = 0;

    static constexpr belay::field docs[] = {
        belay::field("at_least").minimum(-3), belay::field("at_most").maximum(2.5),
        belay::field("few").maximum(10),      belay::field("huge").range(1, std::numeric_limits<std::uint64_t>::max()),
        belay::field("tiny").minimum(-1000),
    };
};
BOOST_DESCRIBE_STRUCT(bounded, (), (at_least, at_most, few, huge, tiny))

struct library {
    std::vector<std::string> docs;
};
BOOST_DESCRIBE_STRUCT(library, (), (docs))

struct level_4 {
    int leaf = 0;
};
BOOST_DESCRIBE_STRUCT(level_4, (), (leaf))
struct level_3 {
    std::vector<level_4> four;
};
BOOST_DESCRIBE_STRUCT(level_3, (), (four))
struct level_2 {
    std::map<std::string, level_3> three;
};
BOOST_DESCRIBE_STRUCT(level_2, (), (three))
struct level_1 {
    std::optional<level_2> two;
};
BOOST_DESCRIBE_STRUCT(level_1, (), (two))

struct tree {
    int value = 0;
    std::vector<tree> children;
};
BOOST_DESCRIBE_STRUCT(tree, (), (value, children))

template<class T>
std::string schema_text()
{
    return belay::json_text::to_json(belay::schema_of<T>());
}

template<class T>
std::expected<T, belay::decode_error> read(std::string_view text)
{
    return belay::decode<T>(json::parse(text));
}

/// The text of the error, or "no error".
template<class T>
std::string error_of(std::string_view text)
{
    auto const out = read<T>(text);
    return out ? "no error" : out.error().text();
}

template<class T>
std::string text_of(T const& in)
{
    return belay::json_text::to_json(belay::encode(in));
}

}
