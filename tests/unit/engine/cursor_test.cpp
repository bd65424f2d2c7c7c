#include "engine/cursor.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace belay::engine {

void PrintTo(position const& at, std::ostream* out)
{
    *out << "stream " << at.stream << " epoch " << at.epoch << " sequence " << at.sequence;
}

namespace {

constexpr std::uint64_t greatest = ~std::uint64_t(0);

TEST(Cursor, IsReadAsItWasWritten)
{
    for (position const at :
         {position{0, 0, 0}, position{1, 2, 3}, position{61, 62, 63}, position{greatest, greatest, greatest},
          position{0, greatest, 0}})
        EXPECT_EQ(parse_event_id(to_event_id(at)), at);
}

TEST(Cursor, IsReadAsItWasWrittenForRandomPositions)
{
    base::seeded_random random(1);
    for (int i = 0; i < 10'000; ++i) {
        // Of every length.
        position const at{
            random.next() >> random.below(64), random.next() >> random.below(64), random.next() >> random.below(64)};
        ASSERT_EQ(parse_event_id(to_event_id(at)), at);
    }
}

TEST(Cursor, IsStreamEpochSequence)
{
    EXPECT_EQ(to_event_id({10, 62, 0}), "A.10.0");
}

TEST(Cursor, IgnoresTheNonce)
{
    event_ids const ids(5, 6);
    std::string first;
    std::string second;
    ids.append(first, 7, 1);
    ids.append(second, 7, greatest);
    EXPECT_NE(first, second);
    EXPECT_EQ(parse_event_id(first), (position{5, 6, 7}));
    EXPECT_EQ(parse_event_id(second), (position{5, 6, 7}));
}

TEST(Cursor, IsAppendedToWhatIsThere)
{
    std::string text = "id: ";
    event_ids(1, 2).append(text, 3);
    EXPECT_EQ(text, "id: 1.2.3");
}

TEST(Cursor, FitsItsLimitAtItsLongest)
{
    std::string text;
    event_ids(greatest, greatest).append(text, greatest, greatest);
    EXPECT_LE(text.size(), max_event_id_bytes);
    EXPECT_TRUE(parse_event_id(text));
}

TEST(Cursor, IsNotReadFromTextItCannotHaveWritten)
{
    for (std::string_view const text :
         {"",
          ".",
          "..",
          "...",
          "1",
          "1.2",
          "1.2.",
          "1..3",
          ".2.3",
          "1.2.3.",
          "1.2.3.4",
          ".1.2.3",
          "1.2.3~",
          "1.2.3~~",
          "1.2.3~4~5",
          "1.2.3~4.5",
          "1.2~3.4",
          "1~2.3.4",
          "~",
          "1.2.~3",
          " 1.2.3",
          "1.2.3 ",
          "1. 2.3",
          "1.2.3\n",
          "1.2.-3",
          "1.2.+3",
          "-1.2.3",
          "1,2,3",
          "1.2.3~-1",
          "01.2.3",
          "1.02.3",
          "1.2.03",
          "1.2.3~04",
          "00.0.0",
          "LygHa16AHYG.0.0",  // 2^64
          "0.LygHa16AHYG.0",
          "0.0.LygHa16AHYG",
          "0.0.0~LygHa16AHYG",
          "zzzzzzzzzzz.0.0",
          "111111111111.0.0",
          "1.2.\xC3\xA9",
          "{\"a\":1}",
          "null",
          "0x1.2.3"})
        EXPECT_EQ(parse_event_id(text), std::nullopt) << text;
    EXPECT_EQ(parse_event_id(std::string_view("1.2.3\0", 6)), std::nullopt);
}

TEST(Cursor, IsNotReadFromLongText)
{
    // Base62 has no leading zeros, so nothing that long has meaning anyway; it must not cost anything either.
    EXPECT_EQ(parse_event_id("1.2." + std::string(61, '3')), std::nullopt);
    EXPECT_EQ(parse_event_id(std::string(1'000'000, '.')), std::nullopt);
    EXPECT_EQ(parse_event_id("1.2.3~" + std::string(100, '1')), std::nullopt);
}

}

}
