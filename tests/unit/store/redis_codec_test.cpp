#include "store/redis_codec.hpp"
#include "store/redis_scripts.hpp"

#include <gtest/gtest.h>

#include <regex>

namespace belay::store {

namespace {

TEST(RedisCodec, ReadsTheRecordThatItWrote)
{
    session_record record;
    record.standalone = ~std::uint64_t(0);
    record.version = "2025-11-25";
    record.client_info = std::string("\0\xff{}", 4);
    record.client_capabilities = std::string(1000, 'c');
    record.initialized = true;
    record.log_level = -1;
    record.told_features = 7;
    auto const read = read_record(write_record(record));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, record); // its key and revision are kept elsewhere
}

TEST(RedisCodec, ReadsTheMetaThatItWrote)
{
    stream_meta meta;
    meta.dialect = "2025-11-25";
    meta.requests = {{"1", 7}, {"\"two\"", 100'000}};
    meta.once = once_key{"k", ~std::uint64_t(0)};
    meta.call_notes = "notes";
    meta.caller = {"alice", {"a", ""}, "{}"};
    meta.work = 9;
    meta.held_bytes = 1u << 30;
    meta.has_unique_ids = true;
    auto const read = read_meta(write_meta(meta));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->dialect, meta.dialect);
    ASSERT_EQ(read->requests.size(), 2u);
    EXPECT_EQ(read->requests[1].id, "\"two\"");
    EXPECT_EQ(read->requests[1].answer_bytes, 100'000u);
    ASSERT_TRUE(read->once);
    EXPECT_EQ(read->once->text, "k");
    EXPECT_EQ(read->once->fingerprint, ~std::uint64_t(0));
    EXPECT_EQ(read->call_notes, "notes");
    EXPECT_EQ(read->caller, meta.caller);
    EXPECT_EQ(read->work, 9u);
    EXPECT_EQ(read->held_bytes, meta.held_bytes);
    EXPECT_TRUE(read->has_unique_ids);
}

TEST(RedisCodec, ReadsNothingThatIsCutOrTooLong)
{
    stream_meta meta;
    meta.requests = {{"1"}};
    meta.once = once_key{"k", 1};
    for (auto const& text : {write_meta(meta), write_record({})}) {
        bool const is_meta = text == write_meta(meta);
        for (std::size_t size = 0; size < text.size(); ++size)
            EXPECT_FALSE(
                is_meta ? read_meta(text.substr(0, size)).has_value() : read_record(text.substr(0, size)).has_value())
                << size;
        EXPECT_FALSE(is_meta ? read_meta(text + 'x').has_value() : read_record(text + 'x').has_value());
    }
    EXPECT_FALSE(read_event("short"));
    EXPECT_FALSE(read_event(std::string(19, '\7')));
}

TEST(RedisCodec, ReadsAnEntryOfAList)
{
    std::string entry(
        "\1"
        "\5\0\0\0\0\0"
        "\0\1\0\0\0\0"
        "\0\0\0\0\0\0"
        "payload",
        19 + 7);
    auto const event = read_event(entry);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, event_kind::question);
    EXPECT_EQ(event->sequence, 5u);
    EXPECT_EQ(event->end_offset, 256u);
    EXPECT_EQ(*event->payload, "payload");
}

TEST(RedisCodec, NamesASessionByItsIdAndPrincipal)
{
    session_key const key{"", {1, 2}};
    EXPECT_EQ(id_in_tag(tag_of(key)), key.id);
    session_key const of_alice{"alice", {1, 2}};
    session_key const of_bob{"bob", {1, 2}};
    EXPECT_EQ(id_in_tag(tag_of(of_alice)), key.id);
    EXPECT_NE(tag_of(of_alice), tag_of(of_bob));
    EXPECT_NE(tag_of(of_alice), tag_of(key));
    EXPECT_EQ(tag_of(of_alice).find("alice"), std::string::npos);
    EXPECT_FALSE(id_in_tag("short"));
}

TEST(RedisCodec, OrdersSubscribersBySession)
{
    subscriber const each{{"a principal\n", {3, 4}}, ~std::uint64_t(0)};
    auto const text = write_subscriber(each);
    auto const read = read_subscriber(text);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->session, each.session);
    EXPECT_EQ(read->standalone, each.standalone);
    EXPECT_LT(text, after_subscriber(each.session));
    EXPECT_LT(after_subscriber(each.session), write_subscriber({{"", {3, 5}}, 0}));
    EXPECT_FALSE(read_subscriber("short"));
}

TEST(RedisCodec, WritesMessagePack)
{
    msgpack_map map;
    map.text("t", "x").number("n", 200).flag("yes", true).flag("no", false);
    EXPECT_EQ(map.take(), std::string("\x83\xa1t\xa1x\xa1n\xcf\0\0\0\0\0\0\0\xc8\xa3yes\1", 21));
    EXPECT_EQ(msgpack().array(2).number(1.5).nil().take(), std::string("\x92\xcb\x3f\xf8\0\0\0\0\0\0\xc0", 11));
    EXPECT_EQ(msgpack().text(std::string(40, 'a')).take().substr(0, 3), std::string("\xda\0\x28", 3));
    EXPECT_EQ(msgpack().text(std::string(70'000, 'a')).take().substr(0, 5), std::string("\xdb\0\1\x11\x70", 5));
    EXPECT_EQ(msgpack().array(300).take(), std::string("\xdc\x01\x2c", 3));
}

TEST(RedisScripts, AreAllThereAndHaveTheirFlags)
{
    redis_scripts const own(redis_scripts::time::own);
    redis_scripts const moved(redis_scripts::time::moved);
    for (auto const& each : own.all()) {
        EXPECT_TRUE(each.text.starts_with("#!lua")) << each.name;
        EXPECT_EQ(each.sha.size(), 40u) << each.name;
        EXPECT_FALSE(each.is_moved) << each.name;
    }
    EXPECT_TRUE(own[redis_script::append_last].text.starts_with("#!lua flags=allow-oom\n"));
    EXPECT_FALSE(own[redis_script::append].text.starts_with("#!lua flags"));
    EXPECT_FALSE(own[redis_script::read].writes);
    EXPECT_TRUE(moved[redis_script::load].is_moved);
    EXPECT_NE(own[redis_script::load].sha, moved[redis_script::load].sha);
}

// A cluster's node refuses a script that asks for a key of another slot, and finds out when it does.
TEST(RedisScripts, TouchOnlyKeysThatTheyWereGiven)
{
    std::regex const command(R"(call\('([A-Z]+)', *([^,)]+))");
    std::regex const given(R"(root|list|KEYS\[.*|unpack\(KEYS)");
    redis_scripts const scripts(redis_scripts::time::own);
    std::size_t found = 0;
    for (auto const& each : scripts.all())
        for (std::sregex_iterator at(each.text.begin(), each.text.end(), command), end; at != end; ++at, ++found) {
            if (at->str(1) != "PUBLISH") {
                EXPECT_TRUE(std::regex_match(at->str(2), given)) << each.name << ": " << at->str(0);
            }
        }
    EXPECT_GT(found, 100u);
}

}

}
