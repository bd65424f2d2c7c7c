#include "runtime/question_ledger.hpp"

#include <gtest/gtest.h>

namespace belay::runtime {
namespace {

class QuestionLedger : public testing::Test {
protected:
    question_ledger ledger_;
    std::vector<std::string> heard_;

    std::uint64_t ask(std::uint64_t ticket, std::uint32_t request = 0)
    {
        auto const number = ledger_.next_number();
        ledger_.add(number, request, ticket, [this](result<std::string> answer) {
            heard_.push_back(answer ? *answer : answer.error().message());
        });
        return number;
    }
};

TEST_F(QuestionLedger, ClosingGivesThePlaceToMakeBlank)
{
    auto const number = ask(7);
    EXPECT_EQ(ledger_.kept(7, 42), std::nullopt);
    auto closed = ledger_.close(number);
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->blank, 42u);
    closed->done("yes");
    EXPECT_EQ(heard_, std::vector<std::string>{"yes"});
    EXPECT_EQ(ledger_.size(), 0u);
}

TEST_F(QuestionLedger, AnAnswerMayOvertakeTheStore)
{
    auto const number = ask(7);
    auto const closed = ledger_.close(number);
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->blank, std::nullopt);
    EXPECT_EQ(ledger_.kept(7, 42), 42u);
    EXPECT_EQ(ledger_.size(), 0u);
}

TEST_F(QuestionLedger, ASecondAnswerIsNone)
{
    auto const number = ask(7);
    EXPECT_TRUE(ledger_.close(number));
    EXPECT_FALSE(ledger_.close(number)); // while its place is not known
    EXPECT_EQ(ledger_.kept(7, 42), 42u);
    EXPECT_FALSE(ledger_.close(number)); // and after
    EXPECT_FALSE(ledger_.close(number + 1));
}

TEST_F(QuestionLedger, WhatCouldNotBeKeptIsToldToWhoAsked)
{
    ask(7);
    auto done = ledger_.lost(7);
    ASSERT_TRUE(done);
    done(failure(errc::no_space));
    EXPECT_EQ(heard_, std::vector<std::string>{make_error_code(errc::no_space).message()});
    EXPECT_EQ(ledger_.size(), 0u);
}

TEST_F(QuestionLedger, NobodyIsToldOfTheLossOfAClosedQuestion)
{
    auto const number = ask(7);
    EXPECT_TRUE(ledger_.close(number));
    EXPECT_FALSE(ledger_.lost(7));
    EXPECT_EQ(ledger_.size(), 0u);
}

TEST_F(QuestionLedger, TicketsThatAreNoQuestionsAreNobodys)
{
    ask(7);
    EXPECT_EQ(ledger_.kept(8, 42), std::nullopt);
    EXPECT_FALSE(ledger_.lost(8));
    EXPECT_EQ(ledger_.size(), 1u);
}

TEST_F(QuestionLedger, KnowsTheOpenQuestionsOfARequest)
{
    auto const first = ask(1, 0);
    auto const other = ask(2, 1);
    auto const second = ask(3, 0);
    EXPECT_EQ(ledger_.open_of(0), (std::vector{first, second}));
    EXPECT_TRUE(ledger_.close(first)); // closed and not in the log yet
    EXPECT_EQ(ledger_.open_of(0), std::vector{second});
    EXPECT_EQ(ledger_.open_of(1), std::vector{other});
    EXPECT_TRUE(ledger_.open_of(2).empty());
}

TEST_F(QuestionLedger, NumbersAreNotUsedTwice)
{
    auto const first = ask(1);
    EXPECT_EQ(ledger_.kept(1, 1), std::nullopt);
    EXPECT_TRUE(ledger_.close(first));
    EXPECT_NE(ask(2), first);
}

}
}
