#include "base/ids.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>

namespace belay::base {

namespace {

constexpr std::uint64_t greatest = ~std::uint64_t(0);

std::string base62(std::uint64_t value)
{
    std::string text;
    append_base62(text, value);
    return text;
}

TEST(Base62, WritesNumbersWithoutLeadingZeros)
{
    EXPECT_EQ(base62(0), "0");
    EXPECT_EQ(base62(9), "9");
    EXPECT_EQ(base62(10), "A");
    EXPECT_EQ(base62(35), "Z");
    EXPECT_EQ(base62(36), "a");
    EXPECT_EQ(base62(61), "z");
    EXPECT_EQ(base62(62), "10");
    EXPECT_EQ(base62(greatest), "LygHa16AHYF");
}

TEST(Base62, ReadsWhatItWrites)
{
    seeded_random random(1);
    for (int i = 0; i < 10'000; ++i) {
        auto const value = random.next() >> random.below(64);
        ASSERT_EQ(parse_base62(base62(value)), value);
    }
    EXPECT_EQ(parse_base62(base62(0)), 0u);
    EXPECT_EQ(parse_base62(base62(greatest)), greatest);
}

TEST(Base62, KeepsTheOrderOfNumbersOfOneLength)
{
    EXPECT_LT(base62(100'000), base62(100'001));
    EXPECT_LT(base62(35), base62(36));
}

TEST(Base62, RefusesOtherText)
{
    for (std::string_view const text :
         {"", "00", "01", "-1", "+1", " 1", "1 ", "1.", "a_b", "a-b", "\xC3\xA9", "LygHa16AHYG", "zzzzzzzzzzz",
          "100000000000"})
        EXPECT_EQ(parse_base62(text), std::nullopt) << text;
    EXPECT_EQ(parse_base62(std::string_view("1\0", 2)), std::nullopt);
}

TEST(Id128, HasTwentyTwoCharacters)
{
    EXPECT_EQ(to_string(id128{0, 0}), std::string(22, '0'));
    EXPECT_EQ(to_string(id128{greatest, greatest}), "LygHa16AHYFLygHa16AHYF");
    EXPECT_EQ(to_string(id128{1, 62}), "0000000000100000000010");
}

TEST(Id128, IsReadAsItWasWritten)
{
    seeded_random random(2);
    for (int i = 0; i < 10'000; ++i) {
        auto const id = make_id128(random);
        ASSERT_EQ(parse_id128(to_string(id)), id);
    }
}

TEST(Id128, RefusesOtherText)
{
    auto const good = to_string(id128{123, 456});
    ASSERT_TRUE(parse_id128(good));
    EXPECT_FALSE(parse_id128(""));
    EXPECT_FALSE(parse_id128(good.substr(1)));
    EXPECT_FALSE(parse_id128(good + "0"));
    EXPECT_FALSE(parse_id128("LygHa16AHYG00000000000")); // the high half does not fit
    EXPECT_FALSE(parse_id128("00000000000LygHa16AHYG"));
    for (std::size_t at = 0; at < good.size(); ++at)
        for (char const c : {'-', ' ', '.', '/', ':', '@', '[', '`', '{', '\0', '\xFF'}) {
            auto bad = good;
            bad[at] = c;
            EXPECT_FALSE(parse_id128(bad)) << bad;
        }
}

TEST(Id128, HasALogNameThatIsNotPartOfIt)
{
    seeded_random random(3);
    std::set<std::string> names;
    for (int i = 0; i < 1000; ++i) {
        auto const id = make_id128(random);
        auto const name = log_name(id);
        ASSERT_EQ(name.size(), 12u);
        ASSERT_EQ(name.find_first_not_of("0123456789abcdef"), std::string::npos);
        ASSERT_EQ(name, log_name(id));
        names.insert(name);
    }
    EXPECT_GT(names.size(), 990u);
    EXPECT_NE(log_name({0, 1}), log_name({1, 0}));
}

TEST(RandomSource, GivesEveryNumberBelowItsBoundAlike)
{
    seeded_random random(4);
    std::array<int, 7> counts{};
    for (int i = 0; i < 70'000; ++i)
        ++counts[random.below(7)];
    for (int const count : counts) {
        EXPECT_GT(count, 9'500);
        EXPECT_LT(count, 10'500);
    }
}

TEST(RandomSource, GivesZeroBelowZeroAndOne)
{
    seeded_random random(5);
    EXPECT_EQ(random.below(0), 0u);
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(random.below(1), 0u);
}

// Numbers in a fixed order, to see which of them are refused.
class scripted final : public random_source {
public:
    explicit scripted(std::vector<std::uint64_t> numbers) : numbers_(std::move(numbers)) {}
    std::uint64_t next() override { return numbers_.at(used_++); }
    std::size_t used_ = 0;

private:
    std::vector<std::uint64_t> numbers_;
};

TEST(RandomSource, SkipsNumbersThatWouldFavourSmallOnes)
{
    // 2^64 - 1 is a multiple of 3: the one number above it is skipped.
    scripted random({greatest, 5});
    EXPECT_EQ(random.below(3), 2u);
    EXPECT_EQ(random.used_, 2u);
}

TEST(RandomSource, StaysBelowLargeBounds)
{
    seeded_random random(6);
    bool has_high = false;
    auto const bound = (std::uint64_t(1) << 63) + 1;
    for (int i = 0; i < 1000; ++i) {
        auto const value = random.below(bound);
        ASSERT_LT(value, bound);
        has_high = has_high || value > bound / 2;
    }
    EXPECT_TRUE(has_high);
}

TEST(SystemRandom, DoesNotRepeatItself)
{
    system_random random;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i)
        EXPECT_TRUE(seen.insert(random.next()).second);
}

TEST(SystemRandom, GivesEveryThreadItsOwnNumbers)
{
    system_random random;
    std::array<std::vector<std::uint64_t>, 4> numbers;
    std::vector<std::thread> threads;
    for (auto& own : numbers)
        threads.emplace_back([&random, &own] {
            for (int i = 0; i < 200; ++i)
                own.push_back(random.next());
        });
    for (auto& each : threads)
        each.join();
    std::set<std::uint64_t> seen;
    for (auto const& own : numbers)
        seen.insert(own.begin(), own.end());
    EXPECT_EQ(seen.size(), 800u);
}

TEST(SeededRandom, RepeatsItselfForTheSameSeed)
{
    seeded_random a(9);
    seeded_random b(9);
    seeded_random c(10);
    auto const first = a.next();
    EXPECT_EQ(first, b.next());
    EXPECT_NE(first, c.next());
}

}

}
